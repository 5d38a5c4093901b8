//! `rankd serve` as its clients and its operators see it: the real program, on a port of loopback, asked by curl and by hand.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test starts servers and threads, writes plans, prints what it measured and says what is wrong"
)]

mod admin;
mod admission;
mod arrow;
mod bench;
mod browser;
mod capture_disks;
mod capture_weather;
mod captures;
mod client;
mod confined;
mod console;
mod console_pages;
mod degraded;
mod details;
#[path = "../downloads/mod.rs"]
mod downloads;
mod endpoints;
mod experiments;
mod feature_log;
mod heavy;
mod http2;
#[path = "../run/json.rs"]
mod json;
mod lifecycle;
mod logs;
mod many_plans;
mod metric_names;
mod models;
mod models_page;
mod otlp;
mod patterns;
#[path = "../redis/server.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod redis_server;
mod refusals;
mod registry;
mod reload;
mod schema;
mod server;
mod shadow;
mod slow;
mod stop;
mod tables;
mod untaken;
mod versions;
mod why;
