//! Pressure: when it rises, how it falls, and what becomes of requests where work follows it.

use super::*;

/// Up to twice as much as can be done, in steps.
fn ramp(shape: Shape, capacity: f64) -> Vec<Load> {
    let step = |at: u64| rate(shape, capacity * (0.5 + 0.1 * at as f64), at * SECOND / 2, (at + 1) * SECOND / 2);
    (0..=15).map(step).collect()
}

#[test]
fn pressure_is_at_its_highest_before_anyone_is_refused() {
    for (shape, cost) in [(COMPUTES, COMPUTES.pool), (CHEAP, READ + CHEAP.on_loop + CHEAP.answer)] {
        for deadline in [DEADLINE, Some(SECOND)] {
            let shape = Shape { deadline, ..shape };
            let played = Machine::new(1, &ramp(shape, SECOND as f64 / cost as f64)).play();
            let loads = || 0..=15;
            let refused = loads().find_map(|load| played.first(load, |one| matches!(one.end, Some((_, End::Refused)))));
            let pressed = loads().find_map(|load| played.first(load, |one| one.pressure == PRESSURE_MAX));
            let (refused, pressed) = (refused.unwrap(), pressed.unwrap());
            assert!(pressed < refused, "{pressed} {refused}");
            let early = |load| played.first(load, |one| one.pressure > 0);
            assert!(early(0).is_none() && early(1).is_none(), "half of what can be done, and 60 %");
        }
    }
}

#[test]
fn pressure_rises_at_once_and_falls_by_an_eighth_in_a_tenth_of_a_second() {
    let (settings, epoch) = (AdmissionSettings { queue: None, limit_max: 10.0 }, clock::now());
    let mut limiter = Limiter::<()>::new(&settings);
    let at = |ms: u64| epoch + Duration::from_millis(ms);
    let mut pressure =
        |ms: u64, round_us: u64| limiter.pressure(at(ms), Some(at(ms + 100)), Duration::from_micros(round_us));
    let told = [
        (0, 0),
        (1, 6_500),
        (2, 12_500),
        (50, 0),
        (101, 0),
        (102, 0),
        (201, 0),
        (202, 0),
        (203, 9_000),
        (450, 0),
        (9000, 0),
    ];
    let pressures: Vec<u8> = told.into_iter().map(|(ms, round_us)| pressure(ms, round_us)).collect();
    assert_eq!(pressures, [0, 4, 8, 8, 8, 7, 7, 6, 6, 4, 0]);
}

/// A dial to a fifth: twice as much as can be done at its first value.
#[test]
fn what_follows_pressure_takes_the_place_of_refusals() {
    let refusals = |gives_up: Ns| {
        let shape = Shape { gives_up, ..COMPUTES };
        let load = rate(shape, 2.0 * SECOND as f64 / shape.pool as f64, 0, 4 * SECOND);
        let played = Machine::new(1, &[load]).play();
        let (refused, capacity) = (played.count(0, 0, 4 * SECOND, End::Refused), SECOND as f64 / shape.pool as f64);
        (refused, played.goodput(0, 0, 4 * SECOND) / capacity)
    };
    let ((without, _), (with, goodput)) = (refusals(0), refusals(COMPUTES.pool * 4 / 5));
    assert!(5 * with < without, "{with} and {without}");
    assert!(goodput >= 1.9, "{goodput}");
}
