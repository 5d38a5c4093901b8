//! When a run and each of its nodes must be done, and which limit that is; and how much memory a run may hold.

use crate::clock::Instant;
use std::time::Duration;

/// This part of its limit is left when an anytime node with a fallback hands over what it has.
const HAND_OVER_PART: u32 = 8;

/// Which limit a moment comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Request,
    Node,
    /// What the request's deadline leaves a node that has a fallback, by what nodes usually take.
    Learned,
}

/// A moment, the limit that it comes from, and how long that limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    pub at: Instant,
    pub limit: Limit,
    pub allowed: Duration,
}

impl Deadline {
    pub fn has_passed(&self, now: Instant) -> bool {
        now >= self.at
    }
}

/// How long a request and each of its nodes may take, and how many bytes of rows it may hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    pub deadline: Option<Duration>,
    pub node_timeout: Option<Duration>,
    pub run_bytes_max: Option<usize>,
}

/// The limits of one run, fixed when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub request: Option<Deadline>,
    pub node_timeout: Option<Duration>,
    /// Bytes of rows that the run has made and still holds.
    pub run_bytes_max: usize,
    /// Whether the timeouts that nodes have in their plan count. They do not in a replay.
    pub times_nodes: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { request: None, node_timeout: None, run_bytes_max: usize::MAX, times_nodes: true }
    }
}

impl Limits {
    pub fn from_start(at: Instant, deadline: Option<Duration>, node_timeout: Option<Duration>) -> Limits {
        Limits::tighter(at, Allowed { deadline, node_timeout, run_bytes_max: None }, Allowed::default())
    }

    /// The process's own limits, tightened by what the request asks for; never loosened.
    pub fn tighter(at: Instant, own: Allowed, asked: Allowed) -> Limits {
        let shorter = |own: Option<Duration>, asked: Option<Duration>| match (own, asked) {
            (Some(own), Some(asked)) => Some(own.min(asked)),
            (own, asked) => own.or(asked),
        };
        let deadline = shorter(own.deadline, asked.deadline);
        // A deadline beyond what the clock can express is none.
        let end = deadline.and_then(|allowed| Some((at.checked_add(allowed)?, allowed)));
        let request = end.map(|(at, allowed)| Deadline { at, limit: Limit::Request, allowed });
        let run_bytes_max = own.run_bytes_max.unwrap_or(usize::MAX).min(asked.run_bytes_max.unwrap_or(usize::MAX));
        let node_timeout = shorter(own.node_timeout, asked.node_timeout);
        Limits { request, node_timeout, run_bytes_max, times_nodes: true }
    }

    /// Nothing is timed, whatever the plan says.
    pub fn timeless(run_bytes_max: Option<usize>) -> Limits {
        let run_bytes_max = run_bytes_max.unwrap_or(usize::MAX);
        Limits { request: None, node_timeout: None, run_bytes_max, times_nodes: false }
    }

    /// The earliest of the request's deadline, the run's node timeout and the node's own.
    pub fn of_node(&self, start: Instant, own: Option<Duration>) -> Option<Deadline> {
        let timeout = match (self.node_timeout, own.filter(|_| self.times_nodes)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let end = timeout.and_then(|allowed| Some((start.checked_add(allowed)?, allowed)));
        let node = end.map(|(at, allowed)| Deadline { at, limit: Limit::Node, allowed });
        match (self.request, node) {
            (Some(request), Some(node)) => Some(if node.at < request.at { node } else { request }),
            (request, node) => request.or(node),
        }
    }

    /// When a node must be done, and when it hands over what it has, by the limit that is its own: only one that is anytime does, and
    /// not in a strict run. One with a fallback hands over a little earlier: at the limit itself its fallback is taken, whether it has begun or not.
    pub(crate) fn split(
        &self,
        own: Option<Deadline>,
        (hands_over, has_fallback): (bool, bool),
    ) -> (Option<Deadline>, Option<Instant>) {
        match own {
            Some(Deadline { at, limit: Limit::Node | Limit::Learned, allowed }) if hands_over => match has_fallback {
                true => (own, Some(at.checked_sub(allowed / HAND_OVER_PART).unwrap_or(at))),
                false => (self.request, Some(at)),
            },
            own => (own, None),
        }
    }

    /// Whether any node can be timed: without limits the clock need not be read.
    pub fn is_timed(&self, own: Option<Duration>) -> bool {
        self.request.is_some() || self.node_timeout.is_some() || (own.is_some() && self.times_nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_earliest_limit_counts() {
        let start = clock::now();
        let ms = Duration::from_millis;
        let limits = Limits::from_start(start, Some(ms(100)), Some(ms(50)));
        assert_eq!(limits.of_node(start, None).map(|d| (d.limit, d.allowed)), Some((Limit::Node, ms(50))));
        assert_eq!(limits.of_node(start, Some(ms(20))).map(|d| d.allowed), Some(ms(20)));
        assert_eq!(limits.of_node(start + ms(60), None).map(|d| d.limit), Some(Limit::Request));
        assert_eq!(Limits::default().of_node(start, None), None);
        assert_eq!(limits.run_bytes_max, usize::MAX);
    }

    #[test]
    fn an_anytime_node_hands_over_at_its_limit_and_before_a_fallback_would_be_taken() {
        let start = clock::now();
        let ms = Duration::from_millis;
        let limits = Limits::from_start(start, Some(ms(100)), Some(ms(40)));
        let own = limits.of_node(start, None);
        assert_eq!(limits.split(own, (false, true)), (own, None));
        assert_eq!(limits.split(own, (true, false)), (limits.request, Some(start + ms(40))));
        assert_eq!(limits.split(own, (true, true)), (own, Some(start + ms(35))));
        assert_eq!(limits.split(limits.request, (true, true)), (limits.request, None));
    }
}
