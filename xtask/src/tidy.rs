//! Rules of the house that no compiler knows.

use crate::{command, root, say};
use std::collections::BTreeSet;
use std::path::Path;

/// The files of the repository that match, as git knows them.
pub(crate) fn files(patterns: &[&str]) -> Vec<String> {
    let listed = command("git", &["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"])
        .args(patterns)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    listed.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect()
}

pub(crate) fn run() -> bool {
    let mut wrong = Vec::new();
    for file in files(&["*.rs", "*.js"]) {
        let text = read(&file);
        check_source(&file, &text, &mut wrong);
    }
    for file in files(&["*.md", "*.rs", "*.toml", "*.ts", "*.js", "*.json", "*.sh"]) {
        check_words(&file, &read(&file), &mut wrong);
    }
    check_rooms(&mut wrong);
    check_adrs(&mut wrong);
    crate::modules::check(&mut wrong);
    wrong.iter().for_each(|line| say(line));
    wrong.is_empty()
}

#[expect(clippy::disallowed_methods, reason = "a chore reads the repository")]
pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_default()
}

fn check_source(file: &str, text: &str, wrong: &mut Vec<String>) {
    let opening = if file.ends_with(".js") { "// " } else { "//!" };
    if !text.starts_with(opening) {
        wrong.push(format!("{file}: a file opens with {opening} and what it is"));
    }
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let lines = code.lines().count();
    if lines > 600 && !file.contains("/tests/") {
        wrong.push(format!("{file}: {lines} lines outside tests are more than one idea"));
    }
    for (number, line) in text.lines().enumerate() {
        if line.contains(&["#[", "ignore"].concat()) {
            wrong.push(format!("{file}:{}: no test is ignored", number + 1));
        }
    }
}

/// The project stands alone: it does not point at what only its authors have, nor at the machine it was made on.
fn check_words(file: &str, text: &str, wrong: &mut Vec<String>) {
    // Built from halves, so that this file does not find itself.
    let banned =
        [["../", "shared"].concat(), ["seed ", "00"].concat(), ["/work", "/main"].concat(), ["/home", "/"].concat()];
    for (number, line) in text.lines().enumerate() {
        for word in banned.iter().filter(|word| line.contains(word.as_str())) {
            wrong.push(format!("{file}:{}: {word:?} means nothing to a reader of this project", number + 1));
        }
    }
}

/// What each room may depend on. A new edge is a decision, not an accident.
const WALLS: &[(&str, &[&str])] = &[
    ("rankd-column", &[]),
    ("rankd-plan", &["rankd-column"]),
    ("rankd-engine", &["rankd-column", "rankd-plan"]),
    ("rankd-tasks-build", &[]),
    ("rankd-testing", &["rankd-column", "rankd-plan", "rankd-engine"]),
    ("rankd-tasks", &["rankd-column", "rankd-plan", "rankd-engine"]),
    ("dslc", &["rankd-column", "rankd-plan"]),
    ("rankd-edge", &["rankd-column", "rankd-plan", "rankd-engine"]),
    ("rankd-onnx", &["rankd-column", "rankd-plan"]),
    ("rankd-serve", &["rankd-column", "rankd-plan", "rankd-engine", "rankd-edge"]),
    (
        "rankd",
        &[
            "rankd-column",
            "rankd-plan",
            "rankd-engine",
            "rankd-tasks",
            "dslc",
            "rankd-edge",
            "rankd-onnx",
            "rankd-serve",
        ],
    ),
];

/// What must never be found below a room, however it got there.
const ABSENT: &[(&str, &[&str])] =
    &[("rankd-column", &["serde", "serde_json", "tokio"]), ("rankd-plan", &["tokio", "rayon-core", "hyper"])];

fn check_rooms(wrong: &mut Vec<String>) {
    for (room, allowed) in WALLS {
        for dependency in dependencies(room, &["--depth", "1"]) {
            let is_room = WALLS.iter().any(|(name, _)| *name == dependency) && dependency != *room;
            if is_room && !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{room} may not depend on {dependency}"));
            }
        }
    }
    for (room, absent) in ABSENT {
        let all = dependencies(room, &[]);
        for name in absent.iter().filter(|name| all.contains(**name)) {
            wrong.push(format!("{room} must not have {name} anywhere below it"));
        }
    }
}

fn dependencies(room: &str, flags: &[&str]) -> BTreeSet<String> {
    let output = command("cargo", &["tree", "--locked", "--edges", "normal", "--prefix", "none", "-p", room])
        .args(flags)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    output.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn check_adrs(wrong: &mut Vec<String>) {
    for file in files(&["docs/adr/*.md"]) {
        let lines = read(&file).lines().count();
        if lines > 60 {
            wrong.push(format!("{file}: {lines} lines are more than a page"));
        }
        let index = read("ARCHITECTURE.md");
        let name = Path::new(&file).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !index.contains(&name) {
            wrong.push(format!("{file}: ARCHITECTURE.md does not list it"));
        }
    }
}
