//! Whether requests should be sent to this process, and what its operators should know meanwhile.

use arc_swap::ArcSwap;
use rankd_edge::date;
use rankd_plan::json::Writer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How far the process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The plans are being read for the first time.
    Loading,
    Ready,
    Stopping,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Loading, Phase::Ready, Phase::Stopping];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Loading => "loading",
            Phase::Ready => "ready",
            Phase::Stopping => "stopping",
        }
    }
}

/// Something that is not as it should be while requests are served all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Since when.
    pub(crate) at: String,
    pub(crate) message: String,
}

/// What may be wrong with the process as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Warnings {
    /// The plan folder has no plans or cannot be listed: the last good plans are served.
    pub(crate) plan_folder: Option<Warning>,
    /// The registry on disk was refused: the one before it is in use.
    pub(crate) registry: Option<Warning>,
    /// Files of tables were refused: the versions before them are in use.
    pub(crate) tables: Option<Warning>,
    /// Files of models were refused: the versions before them are in use.
    pub(crate) models: Option<Warning>,
    /// The file of experiments was refused, or one of them cannot be applied.
    pub(crate) experiments: Option<Warning>,
    /// The shadow of a plan cannot run.
    pub(crate) shadows: Option<Warning>,
}

pub(crate) struct Readiness {
    phase: AtomicU8,
    warnings: ArcSwap<Warnings>,
}

impl Readiness {
    pub(crate) fn new(phase: Phase) -> Readiness {
        Readiness { phase: AtomicU8::new(phase as u8), warnings: ArcSwap::default() }
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed)).min(Phase::ALL.len() - 1)]
    }

    /// Phases only move on: a process that stops does not become ready.
    pub(crate) fn reach(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn warnings(&self) -> Arc<Warnings> {
        self.warnings.load_full()
    }

    /// Sets or clears one of the warnings; says whether that is news. Only one thread calls it.
    pub(crate) fn warn(&self, which: fn(&mut Warnings) -> &mut Option<Warning>, message: Option<&str>) -> bool {
        let mut warnings = Warnings::clone(&*self.warnings.load_full());
        let warning = which(&mut warnings);
        if warning.as_ref().map(|warning| warning.message.as_str()) == message {
            return false;
        }
        *warning = message.map(|message| Warning { at: date::now(), message: message.to_owned() });
        self.warnings.store(Arc::new(warnings));
        true
    }

    /// What `/readyz` answers.
    pub(crate) fn to_json(&self) -> String {
        let Warnings { plan_folder, registry, tables, models, experiments, shadows } = &**self.warnings.load();
        let all = [
            ("plan_folder", plan_folder),
            ("registry", registry),
            ("tables", tables),
            ("models", models),
            ("experiments", experiments),
            ("shadows", shadows),
        ];
        let all: Vec<(&str, &Warning)> =
            all.into_iter().filter_map(|(about, warning)| Some((about, warning.as_ref()?))).collect();
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("status").string(self.phase().name());
            if !all.is_empty() {
                w.field("warnings").array(|w| {
                    for (about, Warning { at, message }) in all {
                        w.object(|w| {
                            w.field("about").string(about).field("at").string(at).field("message").string(message);
                        });
                    }
                });
            }
        });
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_stops_does_not_become_ready() {
        let readiness = Readiness::new(Phase::Loading);
        assert_eq!(readiness.to_json(), r#"{"status":"loading"}"#);
        readiness.reach(Phase::Stopping);
        readiness.reach(Phase::Ready);
        assert_eq!(readiness.phase(), Phase::Stopping);
    }

    #[test]
    fn a_warning_is_news_once() {
        let readiness = Readiness::new(Phase::Ready);
        assert!(readiness.warn(|all| &mut all.registry, Some("it is wrong")));
        assert!(!readiness.warn(|all| &mut all.registry, Some("it is wrong")));
        assert!(readiness.to_json().contains(r#""about":"registry""#));
        assert!(readiness.warn(|all| &mut all.registry, None));
        assert_eq!(readiness.to_json(), r#"{"status":"ready"}"#);
    }
}
