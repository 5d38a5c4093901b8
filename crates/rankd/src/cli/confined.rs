//! `rankd compile-confined`: one plan in TypeScript, compiled under limits that the system keeps. The server starts it.
//!
//! Prints one JSON object: the artifact, or what is wrong with the plan. Whoever reads it trusts nothing in it.

use crate::cli::{DONE, WRONG, say};
use crate::library::{self, PlanFile};
use crate::serve::fresh;
use clap::Args;
use rankd_plan::json::Writer;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::path::PathBuf;

/// Address space, of which the parser's stack is 256 MiB that are hardly ever touched.
const MEMORY_BYTES: u64 = 512 << 20;
const CPU_SECONDS: u64 = 2;

#[derive(Args)]
pub(crate) struct ConfinedArgs {
    /// File of the plan
    path: PathBuf,
    #[arg(long)]
    registry: PathBuf,
    #[arg(long)]
    env: String,
}

pub(crate) fn run(args: &ConfinedArgs) -> u8 {
    for (resource, limit) in [
        (Resource::As, MEMORY_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        // It writes no file and starts no process.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        if let Err(error) = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }) {
            say::to_people(&format!("error: no limits, so nothing is compiled: {error}"));
            return WRONG;
        }
    }
    let loaded = library::load_registry(&args.registry, &args.env);
    let file = PlanFile::load(&args.path, &loaded.registry);
    let mut writer = Writer::new();
    writer.object(|w| match (&file.artifact, &file.checked.plan) {
        (Some(artifact), Some(_)) => {
            w.field("artifact").string(artifact);
        }
        _ => {
            let (message, diagnostics) = fresh::wrong(&file);
            w.field("message").string(&message).field("diagnostics").string(&diagnostics);
        }
    });
    say::to_programs(&writer.finish());
    DONE
}
