//! A plan by itself, on one thread and without HTTP: the part of a request's cost that is not the server's.

use crate::engine::Engine;
use crate::http::server::repository;
use rankd_column::Value;
use rankd_engine::Policy;
use rankd_plan::Registry;
use rankd_plan::registry::Text;
use std::time::Instant;

const RUNS: u32 = 20_000;

/// Microseconds that a run takes, best of so many rounds.
pub fn micros(plan: &str, rounds: usize) -> f64 {
    let registry = registry();
    let params = registry.params.list().iter().map(|param| param.default.clone().unwrap_or(Value::Null)).collect();
    let engine = Engine::of(plan, &registry, params, Policy::default());
    let round = |_| {
        let began = Instant::now();
        (0..RUNS).for_each(|_| drop(engine.run()));
        began.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS)
    };
    (0..=rounds).map(round).fold(f64::INFINITY, f64::min)
}

fn registry() -> Registry {
    let read = |file: &str| std::fs::read_to_string(repository().join("registry").join(file)).expect("it is there");
    let (keys, params, endpoints) = (read("keys.toml"), read("params.toml"), read("endpoints.local.toml"));
    let text = |file, text| Text { file, text };
    let (registry, problems) =
        Registry::parse(text("keys", &keys), text("params", &params), text("endpoints", &endpoints));
    assert!(problems.is_empty(), "the registry is right");
    registry
}
