//! `rankd try-onnxruntime`: loads a shared library of ONNX Runtime and ends. A process that needs the library starts this one first, because a
//! library that hangs or crashes while it is loaded takes its process along: a hanging one even keeps it from ending.

use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_edge::library::Library;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub(crate) struct OnnxTrialArgs {
    /// Shared library of ONNX Runtime
    library: PathBuf,
}

/// The command that tries a library. Where this program's own file is gone, it is whatever took its place in the search path.
pub(crate) fn command(library: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "rankd".into()));
    command.arg("try-onnxruntime").arg(library);
    command
}

pub(crate) fn run(args: &OnnxTrialArgs, library: &Library) -> u8 {
    // Without a parent there is nobody to try it for.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match library.onnx(Some(&args.library)).map(|onnx| onnx.load()) {
        Some(Ok(())) => DONE,
        Some(Err(problem)) => {
            say::to_people(&problem.message);
            WRONG
        }
        None => {
            say::to_people("this program was built without the feature onnx");
            WRONG
        }
    }
}
