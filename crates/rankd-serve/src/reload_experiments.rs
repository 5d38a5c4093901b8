//! Takes a changed `experiments.toml` into use, on the thread that looks after the plans.
//!
//! It is read beside the experiments that are in use and then swapped in with the catalog, so that no request sees parts of both. No plan gets a
//! new version by it. A file that cannot be used, or is gone, leaves the last good one where it is, and that is said in the log, by
//! `/readyz` and in the metrics.

use crate::arm_counts::ArmCounts;
use crate::watched_folder::LookReason;
use crate::watched_tables::SeenFile;
use rankd_edge::experiments::UnappliedExperiment;
use rankd_edge::files;
use rankd_edge::registry_files::ExperimentsFile;
use rankd_plan::Registry;
use rankd_plan::registry::Experiments;
use rankd_plan::render::Report;
use std::path::PathBuf;
use std::sync::Arc;

/// The experiments that are in use, and the counters of their arms.
#[derive(Clone, Debug)]
pub(crate) struct ServedExperiments {
    pub(crate) all: Arc<Experiments>,
    pub(crate) counts: Arc<ArmCounts>,
}

impl ServedExperiments {
    pub(crate) fn new(all: Arc<Experiments>, before: Option<&ServedExperiments>) -> ServedExperiments {
        let counts = Arc::new(ArmCounts::new(all.clone(), before.map(|before| &*before.counts)));
        ServedExperiments { all, counts }
    }
}

/// The file of experiments, checked periodically, and what is wrong with it.
pub(crate) struct WatchedExperiments {
    path: PathBuf,
    seen: SeenFile,
    /// What the experiments in use were read from; `None` where there was no file.
    text: Option<String>,
    problem: Option<String>,
}

/// What came of a look at the file.
pub(crate) enum LookResult {
    Same,
    /// It is good and to be taken into use.
    Changed(Arc<Experiments>),
    Refused,
}

impl WatchedExperiments {
    /// `file` is in use. Whether it has changed since it was read is found at the first look.
    pub(crate) fn new(file: &ExperimentsFile) -> WatchedExperiments {
        let (path, text) = (file.path.clone(), file.text.clone());
        WatchedExperiments { path, seen: SeenFile::read_as(None), text, problem: None }
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.seen.is_changing()
    }

    pub(crate) fn look(&mut self, reason: LookReason, registry: &Registry) -> LookResult {
        if !self.seen.is_due(files::stamp(&self.path), reason) {
            return LookResult::Same;
        }
        let file = ExperimentsFile::read_from(self.path.clone(), registry);
        self.problem = first_error(&file);
        if self.problem.is_some() {
            return LookResult::Refused;
        }
        if file.text == self.text {
            return LookResult::Same;
        }
        if file.text.is_none() {
            self.problem = Some(format!("{} is gone; an empty file ends all experiments", file.file()));
            return LookResult::Refused;
        }
        self.text = file.text;
        LookResult::Changed(file.experiments)
    }

    /// The experiments with the parameters of another registry: as they are on disk now, or else as they were in use. The error says why
    /// neither is possible.
    pub(crate) fn with_registry(
        &self,
        on_disk: &ExperimentsFile,
        registry: &Registry,
    ) -> Result<ExperimentsFile, String> {
        let in_use = match first_error(on_disk) {
            None if on_disk.text.is_some() || self.text.is_none() => return Ok(on_disk.clone()),
            _ => ExperimentsFile::parse(self.path.clone(), self.text.clone(), registry),
        };
        first_error(&in_use).map_or(Ok(in_use), Err)
    }

    /// Another registry is in use now, with these experiments. What is wrong with the file is another question now, so the next look reads it again.
    pub(crate) fn is_using(&mut self, file: &ExperimentsFile) {
        self.text.clone_from(&file.text);
        self.seen = SeenFile::read_as(None);
    }

    /// What is wrong, in a sentence; `None` where the file is in use as a whole.
    pub(crate) fn message(&self, left_out: &[UnappliedExperiment]) -> Option<String> {
        let refused = self.problem.as_ref().map(|why| format!("the last good experiments stay in use: {why}"));
        let left_out = left_out.iter().map(|UnappliedExperiment { experiment, plan }| {
            format!("the experiment {experiment} is not applied: its plan {plan} is not served")
        });
        let all: Vec<String> = refused.into_iter().chain(left_out).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn first_error(file: &ExperimentsFile) -> Option<String> {
    Report { file: &file.file(), text: file.text.as_deref(), found: &file.found }.first_error()
}
