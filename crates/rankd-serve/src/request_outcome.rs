//! What can become of a request for a plan, as the metrics, the log and the spans name it.

use rankd_engine::ErrorKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Ok,
    /// It has rows, some of which stand for others that are missing, or are missing themselves.
    Degraded,
    Failed(ErrorKind),
}

impl RequestOutcome {
    pub(crate) const COUNT: usize = ErrorKind::ALL.len() + 2;

    /// In the order of their positions.
    pub(crate) fn all() -> impl Iterator<Item = RequestOutcome> {
        let failed = ErrorKind::ALL.iter().map(|kind| RequestOutcome::Failed(*kind));
        [RequestOutcome::Ok, RequestOutcome::Degraded].into_iter().chain(failed)
    }

    pub(crate) fn position(self) -> usize {
        match self {
            RequestOutcome::Ok => 0,
            RequestOutcome::Degraded => 1,
            RequestOutcome::Failed(kind) => 2 + kind as usize,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            RequestOutcome::Ok => "ok",
            RequestOutcome::Degraded => "degraded",
            RequestOutcome::Failed(kind) => kind.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_position_and_a_name_of_its_own() {
        let all: Vec<RequestOutcome> = RequestOutcome::all().collect();
        let positions: Vec<usize> = all.iter().map(|outcome| outcome.position()).collect();
        assert_eq!(positions, (0..RequestOutcome::COUNT).collect::<Vec<_>>());
        let names: std::collections::BTreeSet<&str> = all.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(names.len(), RequestOutcome::COUNT);
    }
}
