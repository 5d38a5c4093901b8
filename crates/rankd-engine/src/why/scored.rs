//! What a model's score of a row is made of: what the model expects of any row, and what each feature adds to that.

use super::trail::Walked;
use crate::clock;
use crate::degraded::StandIn;
use crate::task::{ModelScore, stop};
use rankd_column::Key;
use rankd_plan::plan::NodeIx;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// So long the contributions to one score may take, and so long those of a whole question.
const TIME_MAX: Duration = Duration::from_millis(50);
pub(super) const TIME_MAX_IN_ALL: Duration = Duration::from_millis(1_000);

/// A raw score, taken apart as far as it can be.
pub(super) struct Scored {
    /// Nothing where the row was not scored, or there was no time to do it again.
    pub(super) raw: Option<f64>,
    /// Nothing where `why_not` says why.
    pub(super) expected: Option<f64>,
    /// What the model reads: the feature's name, its key and what it adds; the largest first. In the order of the model where it is not known what they add.
    pub(super) features: Vec<(String, Key, Option<f64>)>,
    pub(super) why_not: Option<String>,
}

/// The score that a node gave its row at a position.
pub(super) fn scored(walked: &Walked<'_>, node: NodeIx, position: usize, score: ModelScore) -> Option<Scored> {
    let used = walked.request.models.as_ref()?.get(score.model)?;
    let rows = walked.calls.get(&node)?.inputs.first()?;
    let names = used.keys().iter().zip(used.model().features()).enumerate();
    let read = names.filter_map(|(at, (key, feature))| Some((at, feature.name.clone(), (*key)?)));
    let unscored = walked.outcome.degraded.iter().any(|degraded| match degraded.fallback {
        StandIn::Finished(finished) => degraded.node == node && position >= finished,
        StandIn::Substitute(_) | StandIn::Prefix(_) => false,
    });
    if unscored || position >= rows.len() {
        let why_not = Some("there was no time to score the row".to_owned());
        return Some(Scored { raw: None, expected: None, features: Vec::new(), why_not });
    }
    let (began, left) = (clock::now(), walked.explaining_left.get());
    let never = AtomicBool::new(false);
    let explained =
        used.explain(rows, position, score.scoring, score.at, stop(&never, Some(began + left.min(TIME_MAX))));
    walked.explaining_left.set(left.saturating_sub(clock::now().saturating_duration_since(began)));
    let contributions = explained.made_of.as_ref().ok();
    let adds = |at: usize| contributions.and_then(|of| of.features.get(at).copied());
    let mut features: Vec<(String, Key, Option<f64>)> = read.map(|(at, name, key)| (name, key, adds(at))).collect();
    features.sort_by(|(_, _, a), (_, _, b)| b.unwrap_or(0.0).abs().total_cmp(&a.unwrap_or(0.0).abs()));
    Some(Scored {
        raw: explained.raw,
        expected: contributions.map(|of| of.expected),
        features,
        why_not: explained.made_of.err().map(|why| why.to_string()),
    })
}
