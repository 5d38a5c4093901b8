//! `rankd serve` under faults, as a process on loopback: each figure beside its goal, and whether it was met.
//!
//! `target/release/rankd` must be built. Times are told and not asserted; that all is answered, and how, is asserted. With
//! arguments, only the faults of these names.

use rankd_bench::faults::overload::{self, WORK};
use rankd_bench::faults::stage::{TEN, pin_load, unpin_load};
use rankd_bench::faults::{
    ceiling, clock, degraded, dial, hog, learned, network, reload, reserve, rollback, slow, stop, swap, swap_model,
    upgrade,
};

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!(
        "D is the deadline, 100 ms; C the highest rate at which 99 of 100 answers have rows within D; B is p99 at C/2. Late is later \
         than D + 20 ms. Requests are due at fixed times and count from then on. The server has its default settings but for \
         `--deadline_ms`; where C is told, it is pinned to one core and the load to the other."
    );
    // First those where the server has a core of its own.
    pin_load();
    let pinned: [(&str, fn()); 6] = [
        ("overload", || overload::run(WORK, &[(2.0, 95.0, 0), (10.0, 60.0, 0), (2.0, 95.0, 3)])),
        ("cheap", || overload::run(TEN, &[(2.0, 95.0, 0), (2.0, 95.0, 3)])),
        ("refusals", overload::refusals),
        ("slow", slow::run),
        ("hog", hog::run),
        ("dial", dial::run),
    ];
    pinned.into_iter().filter(|(name, _)| wanted(name)).for_each(|(_, run)| run());
    unpin_load();
    let anywhere: [(&str, fn()); 11] = [
        ("sources", || network::inside("sources", degraded::run)),
        ("reserve", reserve::run),
        ("learned", learned::run),
        ("reload", reload::run),
        ("swap", swap::run),
        ("swap_model", swap_model::run),
        ("rollback", rollback::run),
        ("stop", stop::run),
        ("upgrade", upgrade::run),
        ("ceiling", ceiling::run),
        ("clock", clock::run),
    ];
    anywhere.into_iter().filter(|(name, _)| wanted(name)).for_each(|(_, run)| run());
}
