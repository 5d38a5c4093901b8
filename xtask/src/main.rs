//! Chores of the repository: `cargo xtask ready` is what must pass before a change lands.

mod bench;
mod modules;
mod new_task;
mod redis;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask ready | tidy | fmt | bench [SECTION…] | new-task NAME";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let steps: &[Step] = match task.as_str() {
        "ready" => &[FORMAT_CHECK, CLIPPY, REDIS, TESTS, ONNX, EXAMPLE, DOCS, TIDY],
        "tidy" => &[TIDY],
        "fmt" => &[FORMAT],
        "new-task" => {
            let asked: Vec<String> = std::env::args().skip(2).collect();
            return if new_task::run(&asked) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        "bench" => {
            let asked: Vec<String> = std::env::args().skip(2).collect();
            return if bench::run(&asked) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    for (name, run) in steps {
        say(&format!("── {name}"));
        if !run() {
            say(&format!("{task}: {name} failed"));
            return ExitCode::FAILURE;
        }
    }
    say(&format!("{task}: all good"));
    ExitCode::SUCCESS
}

type Step = (&'static str, fn() -> bool);

const FORMAT_CHECK: Step = ("format", || format(&["--check"]));
const FORMAT: Step = ("format", || format(&[]));
const CLIPPY: Step =
    ("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]));
/// Before the tests, which start servers of their own.
const REDIS: Step = ("redis-server", redis::run);
const TESTS: Step = ("tests", || cargo(&["test", "--workspace", "--locked"]));
/// The program as the feature `onnx` builds it. Its own test only: all others have run with the program that ships.
const ONNX: Step =
    ("ONNX models", || cargo(&["test", "--locked", "-p", "rankd", "--features", "onnx", "--test", "onnx"]));
/// A program with a task of its own, as a team would have it: it uses the crates from outside.
const EXAMPLE: Step = ("examples/own-task", || {
    let mut test = command("cargo", &["test", "--locked", "--manifest-path", "examples/own-task/Cargo.toml"]);
    // What both need is built once.
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        test.env("CARGO_TARGET_DIR", root().join("target"));
    }
    succeeds(&mut test)
});
const DOCS: Step = ("docs", || {
    let mut doc = command("cargo", &["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"]);
    // The documentation is for those who change the code, so it may point at what is private.
    succeeds(doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"))
});
const TIDY: Step = ("tidy", tidy::run);

/// Formats by the list of files: the task files are found by a build script, which `cargo fmt` does not follow.
fn format(flags: &[&str]) -> bool {
    let files = tidy::files(&["*.rs"]);
    let mut rustfmt = command("rustfmt", &["--edition", "2024"]);
    succeeds(rustfmt.args(flags).args(files))
}

fn cargo(args: &[&str]) -> bool {
    succeeds(&mut command("cargo", args))
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).args(args);
    // What cargo says of this program to this program. A build script that looks at it would believe that something has changed, and
    // everything after it would be built again whenever `cargo xtask` and `cargo` take turns.
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME"
    }) {
        command.env_remove(name);
    }
    command
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            say(&format!("{} cannot be started: {error}", command.get_program().display()));
            false
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

#[expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]
fn say(line: &str) {
    eprintln!("{line}");
}
