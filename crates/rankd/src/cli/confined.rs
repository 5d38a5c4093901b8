//! `rankd compile-confined`: one plan in TypeScript, compiled under limits that the system keeps. The server starts it.
//!
//! Reads the registry's texts from stdin. Prints one JSON object: what confines it, and the artifact or what is wrong with the plan.
//! Whoever reads it trusts nothing in it. With `--probe` it compiles nothing and says what it can still do.

use crate::cli::{DONE, WRONG, say};
use crate::confinement;
use clap::Args;
use rankd_edge::library::{Library, PlanProblem};
use rankd_edge::registry_files::RegistryTexts;
use rankd_plan::json::Writer;
use rankd_plan::limits::REGISTRY_BYTES_MAX;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

/// Address space, of which the parser's stack is 256 MiB that are hardly ever touched.
const MEMORY_BYTES: u64 = 512 << 20;
const CPU_SECONDS: u64 = 2;
/// Three texts, each in a JSON string, which may take more bytes than it has.
const INPUT_BYTES_MAX: u64 = 6 * REGISTRY_BYTES_MAX as u64;

#[derive(Args)]
pub(crate) struct ConfinedArgs {
    /// Plan file
    #[arg(required_unless_present = "probe")]
    path: Option<PathBuf>,
    /// Compile nothing: try what must not be possible, and print the results
    #[arg(long)]
    probe: bool,
}

pub(crate) fn run(args: &ConfinedArgs, library: &Library) -> u8 {
    // Without a parent there is nobody to compile for. Where it cannot be had, the limit on CPU time ends it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    for (resource, limit) in [
        (Resource::As, MEMORY_BYTES),
        (Resource::Cpu, CPU_SECONDS),
        // It writes no file and starts no process.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        if let Err(error) = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }) {
            say::to_people(&format!("error: cannot set limits, so nothing is compiled: {error}"));
            return WRONG;
        }
    }
    let confinement = confinement::confine();
    let output = match &args.path {
        Some(path) => compile(path, library, &confinement),
        None => Some(probe(&confinement)),
    };
    match output {
        Some(output) => say::to_programs(&output),
        None => {
            say::to_people("error: stdin does not have the texts of a registry");
            return WRONG;
        }
    }
    DONE
}

fn compile(path: &Path, library: &Library, confinement: &str) -> Option<String> {
    let mut input = String::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut input).ok()?;
    let registry = RegistryTexts::from_json(&input)?.parse();
    let file = library.load_plan(path, &registry);
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("confinement").string(confinement);
        match (&file.artifact, &file.checked.plan) {
            (Some(artifact), Some(_)) => {
                w.field("artifact").string(artifact);
            }
            _ => {
                let PlanProblem { message, diagnostics } = PlanProblem::of(&file);
                w.field("message").string(&message).field("diagnostics").string(&diagnostics);
            }
        }
    });
    Some(writer.finish())
}

/// What is possible and must not be, each with `allowed` or the system's answer.
fn probe(confinement: &str) -> String {
    let outcome = |result: io::Result<()>| result.map_or_else(|error| error.to_string(), |()| "allowed".to_owned());
    let new_file = std::env::temp_dir().join(format!("rankd-probe-{}", std::process::id()));
    let tried = [
        ("socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("process", std::process::Command::new("/proc/self/exe").arg("--version").status().map(drop)),
        ("new_file", File::options().create_new(true).write(true).open(&new_file).map(drop)),
    ];
    // Only there if it must not be; then it is of no use.
    let _ = std::fs::remove_file(new_file);
    let environment: Vec<String> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("confinement").string(confinement);
        for (what, result) in tried {
            w.field(what).string(&outcome(result));
        }
        w.field("environment").array(|w| {
            for name in &environment {
                w.string(name);
            }
        });
    });
    writer.finish()
}
