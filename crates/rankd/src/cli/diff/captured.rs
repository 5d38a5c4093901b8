//! Requests that were captured, as both plans get them: with what the captured run has read, its arms, its time, its seed and how hard it was pressed, and without its
//! weather, which struck nodes of the plan that ran then.

use crate::cli::command_error::CommandError;
use crate::cli::diff::compare::{Comparing, DiffRequest, GROUP};
use crate::cli::say;
use rankd_edge::capture::{CaptureFiles, CapturedRequest, ExperimentsBeside};
use rankd_edge::diff::NotCompared;
use rankd_edge::input;
use rankd_engine::Request;
use rankd_engine::recorded::Replay;
use rankd_plan::Registry;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many plans are named that requests were captured for.
const PLANS_SHOWN: usize = 10;

/// Compares all requests of these files that were captured for one of these plans.
pub(super) fn compare(comparing: &mut Comparing<'_>, named: &[PathBuf], plans: &[&str]) -> Result<(), CommandError> {
    let caused = |error| CommandError::Caused(Box::new(error));
    let files = CaptureFiles::find(named).map_err(caused)?.one_by_one();
    let mut bar = say::Progress::new("diff: files", files.len());
    let (mut group, mut others, mut found, mut cut) = (Vec::new(), BTreeSet::new(), 0_u64, 0);
    let mut experiments = ExperimentsBeside::default();
    for (at, file) in files.iter().enumerate() {
        let seen = file.each(|folder, captured| {
            if !plans.contains(&&*captured.plan) {
                if others.len() < PLANS_SHOWN {
                    others.insert(captured.plan);
                }
                return comparing.diff.leave_out(NotCompared::OtherPlan);
            }
            found += 1;
            match request(folder, captured, comparing.registry, &mut experiments) {
                Ok(request) => group.push(request),
                Err(why) => comparing.diff.leave_out(why),
            }
            if group.len() == GROUP {
                comparing.compare(&std::mem::take(&mut group));
            }
        });
        cut += seen.map_err(caused)?.cut;
        bar.at(at + 1);
    }
    comparing.compare(&group);
    if cut > 0 {
        say::note(format!("{cut} files end in the middle of a batch, which was passed over"));
    }
    if found == 0 {
        let (wanted, others) = (plans.join(" or "), others.into_iter().collect::<Vec<_>>().join(", "));
        let help = match others.is_empty() {
            true => String::new(),
            false => format!("; there are requests for {others}: --captured_plan NAME takes those"),
        };
        return Err(CommandError::Wrong(format!("no request was captured for {wanted}{help}")));
    }
    Ok(())
}

fn request(
    folder: &Path,
    captured: CapturedRequest,
    registry: &Registry,
    experiments: &mut ExperimentsBeside,
) -> Result<DiffRequest, NotCompared> {
    let mut read = input::read(&captured.request, registry).map_err(|refused| {
        NotCompared::NotComparable(format!("the request does not fit the registry: {}", refused.error.message))
    })?;
    if let Some(arms) = &captured.run.arms {
        let put = experiments.put_into(folder, arms, registry, &mut read.request);
        put.map_err(|why| NotCompared::NotComparable(why.to_string()))?;
    }
    let request = Request {
        request_id: captured.request_id,
        // A plan that did not ask for the time may be compared with one that does.
        now_ms: captured.run.now_ms.or(read.request.now_ms).or(Some(captured.at_ms)),
        seed: captured.run.seed.or(read.request.seed),
        pressure: captured.run.pressure,
        trace: false,
        ..read.request
    };
    let text = String::from_utf8_lossy(&captured.request).trim().to_owned();
    let replay = Replay::of(captured.record.reads, captured.record.calls);
    Ok(DiffRequest { request, text, captured: Some(Arc::new(replay)) })
}
