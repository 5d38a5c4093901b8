//! More than can be done: who is refused, and how much is done all the same.

use super::*;

/// What becomes of `factor` times as much as the pool can do for four seconds, and of half as much after it.
fn overload(shape: Shape, threads: usize, factor: f64) -> (f64, Played) {
    let capacity = threads as f64 * SECOND as f64 / shape.pool as f64;
    let loads = [rate(shape, factor * capacity, 0, 4 * SECOND), rate(shape, capacity / 2.0, 4 * SECOND, 8 * SECOND)];
    let played = Machine::new(threads, &loads).play();
    (played.goodput(0, 0, 4 * SECOND) / capacity, played)
}

#[test]
fn under_overload_the_pool_does_what_can_be_done_in_time() {
    for (factor, goal) in [(2.0, 0.95), (10.0, 0.9)] {
        let (goodput, played) = overload(COMPUTES, 1, factor);
        assert!(goodput >= goal, "{goodput} at {factor}");
        assert!(played.latest(0) <= 20 * MS, "{}", played.latest(0));
        assert_eq!(played.count(1, 5 * SECOND, 8 * SECOND, End::Refused), 0);
        assert_eq!(played.count(1, 5 * SECOND, 8 * SECOND, End::TimedOut), 0);
    }
}

/// Work that is done on the loop competes with refusals for it; what they take is lost, and no more.
#[test]
fn under_overload_the_loop_does_what_refusals_leave_it() {
    for deadline in [DEADLINE, Some(SECOND)] {
        let shape = Shape { deadline, ..CHEAP };
        let cost = READ + shape.on_loop + shape.answer;
        let capacity = SECOND as f64 / cost as f64;
        for factor in [2.0, 5.0] {
            let loads =
                [rate(shape, factor * capacity, 0, 4 * SECOND), rate(shape, capacity / 2.0, 4 * SECOND, 6 * SECOND)];
            let played = Machine::new(1, &loads).play();
            let share = REFUSE as f64 / cost as f64;
            let (goodput, left) = (played.goodput(0, 0, 4 * SECOND) / capacity, (1.0 - factor * share) / (1.0 - share));
            assert!(goodput >= 0.9 * left, "{goodput} of {left} at {factor}");
            assert!(played.latest(0) <= 20 * MS, "{}", played.latest(0));
            assert_eq!(played.count(1, 5 * SECOND, 6 * SECOND, End::Refused), 0);
        }
    }
}

#[test]
fn what_the_pool_does_in_time_is_as_much_with_a_long_deadline() {
    for factor in [2.0, 10.0] {
        let (goodput, played) = overload(Shape { deadline: Some(SECOND), ..COMPUTES }, 1, factor);
        assert!(goodput >= 0.95, "{goodput} at {factor}");
        assert!(played.latest(0) <= 20 * MS, "{}", played.latest(0));
        assert_eq!(played.count(1, 5 * SECOND, 8 * SECOND, End::Refused), 0);
    }
}

#[test]
fn runs_that_read_before_they_compute_or_compute_for_long_are_shed_as_well() {
    let reads = Shape { store: 40 * MS, ..COMPUTES };
    let heavy = Shape { pool: 20 * MS, ..COMPUTES };
    let heaviest = Shape { pool: 60 * MS, ..COMPUTES };
    for (shape, threads, factor, goal) in [
        (reads, 1, 2.0, 0.85),
        (reads, 1, 10.0, 0.8),
        (reads, 4, 2.0, 0.85),
        (heavy, 1, 2.0, 0.75),
        (heavy, 1, 10.0, 0.85),
        (heaviest, 1, 10.0, 0.6),
    ] {
        let (goodput, _) = overload(shape, threads, factor);
        let (store, pool) = (shape.store / MS, shape.pool / MS);
        assert!(goodput >= goal, "{goodput} of {goal} at {factor}: store {store}, pool {pool}, {threads} threads");
    }
}

/// Sixteen times 3 ms is less than either deadline.
#[test]
fn a_closed_loop_of_sixteen_that_can_be_answered_in_time_is_not_refused() {
    for deadline in [DEADLINE, Some(SECOND)] {
        for shape in [Shape { on_loop: 3 * MS, ..Shape::default() }, Shape { pool: 3 * MS, ..Shape::default() }] {
            let load =
                Load { shape: Shape { deadline, ..shape }, source: Source::Clients(16), from: 0, to: 5 * SECOND };
            let played = Machine::new(1, &[load]).play();
            let ended = |end| played.count(0, SECOND, 5 * SECOND, end);
            // In the first second it is being learned how long they take.
            assert_eq!((ended(End::Refused), ended(End::TimedOut)), (0, 0), "{deadline:?} {}", shape.pool);
        }
    }
}

/// The queue is a part of the deadline: what makes it within 1000 ms and not within 100 is refused with the one and not with the other.
#[test]
fn a_burst_is_refused_only_where_it_cannot_be_done_in_time() {
    for (deadline, burst, refuses) in [(100, 20, false), (100, 200, true), (1000, 200, false), (1000, 2000, true)] {
        let shape = Shape { deadline: Some(deadline * MS), ..COMPUTES };
        let half = rate(shape, 500.0, 0, 4 * SECOND);
        let burst =
            Load { shape, source: Source::Rate(burst as f64 * 1e4), from: 2 * SECOND, to: 2 * SECOND + MS / 10 };
        let played = Machine::new(1, &[half, burst]).play();
        let refused = played.count(0, 0, 4 * SECOND, End::Refused) + played.count(1, 0, 4 * SECOND, End::Refused);
        assert_eq!(refused > 0, refuses, "{deadline} ms: {refused}");
        let late = played.count(1, 0, 4 * SECOND, End::TimedOut);
        assert!(refuses || late == 0, "{deadline} ms: {late}");
        // Each takes a millisecond of the pool, and half of that is in use.
        let rows = played.count(1, 0, 4 * SECOND, End::Rows);
        assert!(!refuses || rows * 2 > deadline as usize / 2, "{deadline} ms: {rows} with rows, {late} late");
    }
}
