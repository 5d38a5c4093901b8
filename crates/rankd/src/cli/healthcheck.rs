//! `rankd healthcheck`: asks a server whether it takes requests, for containers that have no other program to ask with.

use crate::cli::ask_server::{self, ServerAnswer};
use crate::cli::{DONE, FAILED, say};
use clap::Args;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct HealthcheckArgs {
    /// Address of the server
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Only check whether the process is alive
    #[arg(long)]
    alive: bool,
    /// How long the answer may take, in ms
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout_ms: u64,
}

pub(crate) fn run(args: &HealthcheckArgs) -> u8 {
    let path = if args.alive { "/healthz" } else { "/readyz" };
    let address = args.listen.to_string();
    match ask_server::ask(&address, "GET", path, "", Duration::from_millis(args.timeout_ms)) {
        Ok(ServerAnswer { status: 200, .. }) => DONE,
        Ok(ServerAnswer { status, .. }) => {
            say::to_people(&format!("{path}: status {status}"));
            FAILED
        }
        Err(error) => {
            say::to_people(&format!("{address}: {error}"));
            FAILED
        }
    }
}
