//! Programs of others that tests ask for an opinion: fetched once and kept under the target folder.
//!
//! Tests run at the same time, in one process and in several, also on a machine that has nothing yet. So whoever comes first
//! fetches, under a lock, into a folder that nobody else looks at, and renames it when it is whole: a folder with the name of a
//! download is a whole download. Building and testing must need Rust only: where something cannot be had, the test says so, loudly,
//! and leaves that part out.

#![allow(dead_code, reason = "each test binary that mounts this module uses a part of it")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where downloads are kept.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("downloads")
}

/// The folder of this name under `root`, made by whoever comes first; why not, where it cannot be made.
pub(crate) fn once(root: &Path, name: &str, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let whole = root.join(name);
    let told = |error: io::Error| format!("{}: {error}", whole.display());
    std::fs::create_dir_all(root).map_err(told)?;
    let lock = File::create(root.join(format!("{name}.lock"))).map_err(told)?;
    // Given back when the file is closed, also by the end of a process that was killed.
    lock.lock().map_err(told)?;
    if whole.is_dir() {
        return Ok(whole);
    }
    let partial = root.join(format!("{name}.partial"));
    // What a process left behind that did not come to its end.
    match std::fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(told(error)),
        _ => {}
    }
    std::fs::create_dir(&partial).map_err(told)?;
    make(&partial)?;
    std::fs::rename(&partial, &whole).map_err(told)?;
    Ok(whole)
}

/// Runs a program to its end; the last line that it complains with, where it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let last = told.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed and did not say why");
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {last}")) }
}

/// TypeScript's own compiler, ready for its arguments.
pub(crate) fn tsc(version: &str) -> Result<Command, String> {
    // The compiler may be here from a time when there was a node to run it with.
    run(Command::new("node").arg("--version"))?;
    let folder = once(&folder(), &format!("typescript-{version}"), |partial| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--fetch-timeout=20000", "--fetch-retries=1"]);
        run(npm.arg("--prefix").arg(partial).arg(format!("typescript@{version}")))?;
        let tsc = partial.join("node_modules/typescript/bin/tsc");
        if tsc.is_file() { Ok(()) } else { Err(format!("npm did not bring {}", tsc.display())) }
    })?;
    let mut tsc = Command::new("node");
    tsc.arg(folder.join("node_modules/typescript/bin/tsc"));
    Ok(tsc)
}

/// The programs of a Python environment that has this requirement from PyPI. Call scripts among them as arguments of its
/// `python`: the path that they name themselves was that of the folder before it was whole.
pub(crate) fn python(requirement: &str) -> Result<PathBuf, String> {
    let folder = once(&folder(), &requirement.replace("==", "-"), |partial| {
        run(Command::new("python3").args(["-m", "venv"]).arg(partial))?;
        let mut pip = Command::new(partial.join("bin/python"));
        run(pip.args(["-m", "pip", "install", "--quiet", "--timeout", "20", "--retries", "1", requirement]))
    })?;
    let python = folder.join("bin/python");
    // The Python that the environment was made with may be gone.
    run(Command::new(&python).arg("--version"))?;
    Ok(folder.join("bin"))
}

/// Says that a part of a test was left out. Not by `println!`, which nobody sees of a test that passes.
pub(crate) fn skipped(what: &str, why: &str) {
    // There is nobody else to tell.
    let _ = writeln!(io::stderr(), "\nSKIPPED: {what}: {why}\n");
}
