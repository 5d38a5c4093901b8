//! What rankd promises about Redis, against a real server on loopback, one that is killed and frozen, and one that lies.

#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test starts servers and threads, prints what it measured and says what is wrong"
)]

#[path = "redis/asker.rs"]
mod asker;
#[path = "redis/cluster.rs"]
mod cluster;
#[path = "redis/commands.rs"]
mod commands;
#[path = "redis/encrypted.rs"]
mod encrypted;
#[path = "redis/fake.rs"]
mod fake;
#[path = "redis/greetings.rs"]
mod greetings;
#[path = "redis/hostile.rs"]
mod hostile;
#[path = "redis/large.rs"]
mod large;
#[path = "redis/layouts.rs"]
mod layouts;
#[path = "redis/loss.rs"]
mod loss;
#[path = "redis/members.rs"]
mod members;
#[path = "redis/moves.rs"]
mod moves;
#[path = "redis/nodes.rs"]
mod nodes;
#[path = "redis/oracle.rs"]
mod oracle;
#[path = "redis/outages.rs"]
mod outages;
#[path = "redis/program.rs"]
mod program;
#[path = "redis/proxy.rs"]
mod proxy;
#[path = "redis/sample.rs"]
mod sample;
#[path = "redis/second_tries.rs"]
mod second_tries;
#[path = "redis/secrets.rs"]
mod secrets;
#[path = "redis/server.rs"]
mod server;
#[path = "redis/signals.rs"]
mod signals;
#[path = "redis/trips.rs"]
mod trips;
#[path = "redis/why.rs"]
mod why;
