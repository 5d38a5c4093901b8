//! The tests read from a real Redis: makes sure that `redis-server` is there, from the system's packages where it is not.

use crate::{say, succeeds};
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

/// The package managers we know, and what each must be told.
const MANAGERS: &[(&str, &[&[&str]])] = &[
    ("apt-get", &[&["update"], &["install", "-y", "redis-server"]]),
    ("dnf", &[&["install", "-y", "redis"]]),
    ("yum", &[&["install", "-y", "redis"]]),
    ("apk", &[&["add", "redis"]]),
    ("brew", &[&["install", "redis"]]),
];

pub(crate) fn run() -> bool {
    if answers("redis-server") {
        return true;
    }
    // Two of these at the same time would get in each other's way, and a package manager that is busy just fails. Given back at
    // the end of this function, or of the process.
    let lock = File::create(std::env::temp_dir().join("rankd-redis-server.lock"));
    if let Err(error) = lock.as_ref().map_or_else(|error| Err(io::Error::from(error.kind())), File::lock) {
        say(&format!("no lock for installing redis-server ({error}): it is tried without one"));
    }
    if answers("redis-server") {
        return true;
    }
    let Some((manager, steps)) = MANAGERS.iter().find(|(manager, _)| answers(manager)) else {
        say(
            "the tests need redis-server: it is not on the PATH, and no package manager is known here to install it with",
        );
        return false;
    };
    say(&format!("the tests need redis-server, which is not on the PATH: {manager} installs it"));
    let installed = steps.iter().all(|args| succeeds(Command::new(manager).args(*args)));
    if installed && answers("redis-server") {
        return true;
    }
    say(&format!("{manager} did not bring redis-server: install it (it may take more rights) and try again"));
    false
}

/// Whether there is such a program.
fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
