//! The thread that puts another version of a plan into service: because an operator asks for it, or because a new version turns out to be
//! bad. It reads no file, so it works while the thread that does hangs.
//!
//! A version is linked beside the one in service, and the catalog is swapped in one step, as for a changed file. Whoever changes the
//! catalog does so under its lock, which is never held while files are read.

use crate::app::App;
use crate::build_version::build;
use crate::catalog::{Arrival, GoodVersion, ServedPlan};
use crate::probation::{Probations, VersionDecision};
use crate::start_error::StartError;
use crate::verdict::{Verdict, WATCHED};
use crate::version_history::{DIGITS_MIN, KeptVersion, NoVersion, VersionHistory, short};
use crate::version_wish::{NotSwitched, SwitchRequest, Wish};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use rankd_edge::library::PlanProblem;
use rankd_engine::{Engine, RunError, clock, codes};
use rankd_plan::diagnostic::quoted;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How often new versions are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(crate) struct Switcher {
    app: Arc<App>,
    engine: Arc<Engine>,
}

impl Switcher {
    /// Starts the thread, which ends with the process.
    pub(crate) fn start(
        app: &Arc<App>,
        engine: &Arc<Engine>,
        requests: Receiver<SwitchRequest>,
    ) -> Result<(), StartError> {
        let switcher = Switcher { app: app.clone(), engine: engine.clone() };
        std::thread::Builder::new()
            .name("rankd-versions".to_owned())
            .spawn(move || switcher.attend(&requests))
            .map(drop)
            .map_err(|error| StartError::Thread { purpose: "versions of plans", error })
    }

    fn attend(&self, requests: &Receiver<SwitchRequest>) {
        let is_watching = self.app.settings.versions.auto_rollback;
        let mut probations = Probations::default();
        loop {
            let request = match is_watching {
                true => requests.recv_timeout(LOOK_EVERY),
                false => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match request {
                Ok(SwitchRequest { plan, wish, done }) => {
                    let result = self.guarded(|| self.grant(&plan, &wish));
                    // Whoever asked may have gone meanwhile.
                    let _ = done.send(
                        result.unwrap_or_else(|| Err(RunError::bug("the server failed to switch versions").into())),
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if is_watching {
                self.guarded(|| {
                    let decided = probations.look(&self.app.catalog.load_full(), clock::now());
                    decided.iter().for_each(|decision| self.follow(decision));
                });
            }
        }
    }

    /// A panic is a bug that is reported; versions stay as they are.
    fn guarded<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let result = catch_unwind(AssertUnwindSafe(work)).ok();
        if result.is_none() {
            self.app.log.event("error", "bug: a panic while versions were switched; they stay as they are");
        }
        result
    }

    /// Does what an operator wants.
    fn grant(&self, name: &str, wish: &Wish) -> Result<(), NotSwitched> {
        match wish {
            Wish::RollBack(to) => self.roll_back(name, None, to.as_deref(), "an operator rolled it back"),
            Wish::Pin(digits) => self.pin(name, digits),
            Wish::Unpin => self.unpin(name),
        }
    }

    /// Does what was decided about a new version.
    fn follow(&self, decision: &VersionDecision) {
        let VersionDecision { plan, sha256, counts, before_sha256, new, before, verdict } = decision;
        let compared = format!("{new}; before, {before}");
        let (level, verdict) = match verdict {
            Verdict::Open => return,
            Verdict::Good => ("info", format!("good: {compared}")),
            Verdict::TooFew => {
                ("info", format!("no verdict: {} answers in its first {} s are too few", new.all, WATCHED.as_secs()))
            }
            Verdict::TooFewBefore => {
                ("info", format!("no verdict: the version before had {} answers, which are too few", before.all))
            }
            Verdict::RollBack => {
                match self.roll_back(
                    plan,
                    Some(sha256),
                    Some(before_sha256),
                    &format!("rolled back by itself: {compared}"),
                ) {
                    Ok(()) => ("error", format!("rolled back: {compared}")),
                    Err(refused) => ("error", format!("bad, and stays: {compared}; {}", refused.error.message)),
                }
            }
        };
        self.app.log.event(level, &format!("plan {plan}: version {}: {verdict}", short(sha256)));
        counts.set_verdict(verdict);
    }

    /// Goes back to a version, if `from` is still in service where it is given.
    fn roll_back(&self, name: &str, from: Option<&str>, to: Option<&str>, why: &str) -> Result<(), NotSwitched> {
        let _changing = self.app.change_catalog();
        let catalog = self.app.catalog.load_full();
        let plan = self.app.find_plan(&catalog, name)?;
        let served = plan.version()?;
        if from.is_some_and(|from| from != served.sha256) {
            return Err(RunError::new(codes::NO_EARLIER_VERSION, "another version is in service by now").into());
        }
        if let Some(pin) = &plan.history.pinned {
            let pinned = short(&pin.sha256);
            let message = format!("the plan {name:?} is pinned to {pinned}: pin another version, or unpin it first");
            return Err(RunError::new(codes::PLAN_PINNED, message).into());
        }
        let target = match to {
            Some(digits) => find(plan, digits)?,
            None => plan.history.before(&served.sha256).ok_or_else(|| {
                let message = format!("the plan {name:?} has no earlier version to go back to");
                RunError::new(codes::NO_EARLIER_VERSION, message)
            })?,
        };
        if target.sha256 == served.sha256 {
            return Ok(());
        }
        let mut history = plan.history.clone();
        history.roll_back_to(&target.sha256, why);
        self.serve(plan, target, history, Arrival::Switched)?;
        plan.counters.rollbacks.add(1);
        let (left, back) = (short(&served.sha256), short(&target.sha256));
        self.app.log.event("warn", &format!("plan {name}: back from version {left} to {back}: {why}"));
        Ok(())
    }

    fn pin(&self, name: &str, digits: &str) -> Result<(), NotSwitched> {
        let _changing = self.app.change_catalog();
        let catalog = self.app.catalog.load_full();
        let plan = self.app.find_plan(&catalog, name)?;
        plan.version()?;
        let target = find(plan, digits)?;
        let mut history = plan.history.clone();
        history.pin(&target.sha256);
        self.serve(plan, target, history, Arrival::Switched)?;
        self.app.log.event("warn", &format!("plan {name}: pinned to version {}", short(&target.sha256)));
        Ok(())
    }

    /// Serves the newest good version again.
    fn unpin(&self, name: &str) -> Result<(), NotSwitched> {
        let _changing = self.app.change_catalog();
        let catalog = self.app.catalog.load_full();
        let plan = self.app.find_plan(&catalog, name)?;
        let served = plan.version()?;
        if plan.history.pinned.is_none() {
            return Ok(());
        }
        let mut history = plan.history.clone();
        history.pinned = None;
        let target = plan.history.newest_good().or_else(|| plan.history.get(&served.sha256));
        let target = target.ok_or_else(|| unknown(name, &served.sha256))?;
        self.serve(plan, target, history, Arrival::File)?;
        let sha256 = short(&target.sha256);
        self.app.log.event("info", &format!("plan {name}: unpinned; version {sha256} is served"));
        Ok(())
    }

    /// Puts a version into service, with what is known of the plan's versions then. Called under the catalog's lock.
    fn serve(
        &self,
        plan: &ServedPlan,
        target: &KeptVersion,
        history: VersionHistory,
        arrival: Arrival,
    ) -> Result<(), NotSwitched> {
        let catalog = self.app.catalog.load_full();
        let served = plan.version()?;
        let good = if target.sha256 == served.sha256 {
            served.clone()
        } else {
            let artifact = target.artifact.as_deref().ok_or_else(|| unknown(&plan.name, &target.sha256))?;
            let built = build(&plan.name, artifact, &catalog.registry, &self.app.tasks, &self.engine);
            let (built, linked) = built.map_err(|PlanProblem { message, diagnostics }| {
                let version = short(&target.sha256);
                let message = format!("the version {version} of the plan {:?} cannot be served: {message}", plan.name);
                let error = RunError::new(codes::VERSION_NOT_USABLE, message);
                NotSwitched { error, diagnostics: Some(diagnostics) }
            })?;
            let artifact = self.app.capture.as_ref().and(target.artifact.clone());
            let good = GoodVersion::new(built, linked, artifact, target, Some(served), arrival);
            good.logged(self.app.feature_log.as_ref(), &catalog.registry)
        };
        let changed = ServedPlan { good: Some(good), history, registry: catalog.registry.clone(), ..plan.clone() };
        let changed = [(plan.name.clone(), Some(Arc::new(changed)))];
        self.app.catalog.store(Arc::new(catalog.with(catalog.base(), changed)));
        Ok(())
    }
}

/// The version that digits name.
fn find<'p>(plan: &'p ServedPlan, digits: &str) -> Result<&'p KeptVersion, RunError> {
    plan.history.find(digits).map_err(|why| match why {
        NoVersion::NotADigest => RunError::new(
            codes::WRONG_VALUE,
            format!("sha256 must be {DIGITS_MIN} to 64 hexadecimal digits in lower case, not {}", quoted(digits)),
        ),
        NoVersion::Unknown => RunError::new(
            codes::UNKNOWN_VERSION,
            format!("the plan {:?} has no version that begins with {}", plan.name, quoted(digits)),
        ),
        NoVersion::Ambiguous(count) => RunError::new(
            codes::WRONG_VALUE,
            format!("{count} versions of the plan {:?} begin with {}: give more digits", plan.name, quoted(digits)),
        ),
    })
}

fn unknown(plan: &str, sha256: &str) -> RunError {
    let message = format!("the artifact of the version {} of the plan {plan:?} is not kept any more", short(sha256));
    RunError::new(codes::UNKNOWN_VERSION, message)
}
