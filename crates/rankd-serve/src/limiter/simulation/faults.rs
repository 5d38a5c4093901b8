//! Nobody is refused for what went before: a store that was down, runs that were shorter, an overload that is over.

use super::*;

#[test]
fn a_store_that_was_down_is_forgotten_at_once() {
    let (fails, ends, over) = (2 * SECOND, 4 * SECOND, 8 * SECOND);
    for outage in [Outage::Refuses, Outage::Hangs] {
        for deadline in [None, Some(300 * MS)] {
            let load = rate(Shape { deadline, ..READS }, 200.0, 0, over);
            let played = Machine::new(1, &[load]).down(fails, ends, outage).play();
            assert_eq!(played.count(0, ends + SECOND, over, End::Refused), 0);
            assert_eq!(played.count(0, 0, fails, End::Refused), 0);
        }
    }
}

#[test]
fn requests_with_hardly_any_time_teach_nothing() {
    let hasty = Shape { deadline: Some(MS), ..READS };
    for deadline in [None, Some(200 * MS)] {
        let loads = [
            rate(Shape { deadline, ..READS }, 200.0, SECOND, 6 * SECOND),
            // Before the others, and among them.
            Load { shape: hasty, source: Source::Clients(1), from: 0, to: 50 * MS },
            Load { shape: hasty, source: Source::Clients(8), from: 2 * SECOND, to: 2 * SECOND + 50 * MS },
        ];
        let played = Machine::new(1, &loads).play();
        assert!(played.count(1, 0, SECOND, End::TimedOut) >= 40);
        assert!(played.count(2, 0, 3 * SECOND, End::TimedOut) >= 40);
        assert_eq!(played.count(0, 0, 6 * SECOND, End::Refused), 0);
    }
}

#[test]
fn runs_that_take_longer_than_they_did_are_let_in() {
    let quick = Shape { store: 2 * MS, pool: MS / 5, ..READS };
    for (slow_ms, deadline) in [(60, None), (60, DEADLINE), (600, None), (600, Some(SECOND))] {
        let slow = Shape { store: slow_ms * MS, ..quick };
        let loads = [
            rate(Shape { deadline, ..quick }, 500.0, 0, 2 * SECOND),
            rate(Shape { deadline, ..slow }, 500.0, 2 * SECOND, 6 * SECOND),
        ];
        let played = Machine::new(1, &loads).play();
        assert_eq!(played.count(1, 2 * SECOND + SECOND / 2, 6 * SECOND, End::Refused), 0, "{slow_ms} ms");
    }
}

#[test]
fn a_closed_loop_of_sixteen_without_a_deadline_is_never_refused() {
    let shapes = [
        // Large answers, long jobs, long turns.
        Shape { pool: 2 * MS, answer: 5 * MS, ..Shape::default() },
        Shape { pool: 100 * MS, answer: MS, ..Shape::default() },
        Shape { on_loop: 30 * MS, answer: MS, ..Shape::default() },
        Shape { on_loop: 3 * MS, ..Shape::default() },
        Shape { pool: 3 * MS, ..Shape::default() },
    ];
    for shape in shapes {
        let load = Load { shape, source: Source::Clients(16), from: 0, to: 5 * SECOND };
        let played = Machine::new(1, &[load]).play();
        assert_eq!(played.count(0, 0, 5 * SECOND, End::Refused), 0);
        assert!(played.count(0, 0, 5 * SECOND, End::Rows) >= 40);
    }
}

/// Whatever was learned before, half of what can be done is let in a second later.
#[test]
fn half_of_what_can_be_done_is_let_in_whatever_went_before() {
    let after = [
        Shape { deadline: Some(500 * MS), ..READS },
        READS,
        COMPUTES,
        Shape { store: 200 * MS, pool: 2 * MS, deadline: Some(SECOND), ..COMPUTES },
    ];
    let before = [
        (COMPUTES, 10.0),
        (Shape { pool: 60 * MS, ..COMPUTES }, 10.0),
        (Shape { pool: 300 * MS, ..COMPUTES }, 20.0),
        (Shape { deadline: Some(MS), ..COMPUTES }, 10.0),
        (Shape { store: 40 * MS, ..COMPUTES }, 10.0),
    ];
    for (old, (fault, factor)) in before.iter().enumerate() {
        for (new, shape) in after.iter().enumerate() {
            let of_pool = |shape: &Shape| SECOND as f64 / shape.pool as f64;
            let loads = [
                rate(*fault, factor * of_pool(fault), 0, 3 * SECOND),
                rate(*shape, 0.5 * of_pool(shape), 3 * SECOND, 7 * SECOND),
            ];
            let played = Machine::new(1, &loads).play();
            let refused = played.count(1, 4 * SECOND, 7 * SECOND, End::Refused);
            assert_eq!(refused, 0, "after fault {old}, load {new}");
        }
    }
}
