//! `http_fetch` from a service with faults: which answers come when, and how many come late.
//!
//! `target/release/rankd` must be built. With arguments, only the faults whose names contain one of them.

use rankd_bench::faults::service;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    service::run(|name| asked.is_empty() || asked.iter().any(|asked| name.contains(asked.as_str())));
}
