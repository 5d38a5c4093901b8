//! `cargo xtask bench [SECTION…]`: runs the benches and writes their tables into `bench/REPORT.md`.
//!
//! Each section says which commit, machine and command it comes from. Sections that were not asked for stay as they are. What the
//! tables mean is in `bench/FINDINGS.md`, which people write.

use crate::{command, root, say};
use std::process::Stdio;

/// A section of the report, and the flags of cargo for the bench behind it.
const SECTIONS: &[(&str, &[&str])] = &[
    ("nodes", &["--bin", "nodes"]),
    ("turns", &["--bin", "turns"]),
    ("rows", &["--bin", "rows", "--features", "peers"]),
    ("tables", &["--bin", "tables"]),
    ("vectors", &["--bin", "vectors"]),
    ("functions", &["--bin", "functions"]),
    ("models", &["--bin", "models"]),
    ("operators", &["--bin", "operators"]),
    ("schedulers", &["--bin", "schedulers"]),
    ("redis", &["--bin", "redis", "--features", "redis-rs"]),
    ("outages", &["--bin", "outages"]),
    ("http", &["--bin", "http"]),
    ("faults", &["--bin", "faults"]),
    ("service", &["--bin", "service"]),
    ("replay", &["--bin", "replay"]),
    ("layout", &["--bin", "layout"]),
];

const HEADER: &str = "# Report\n\nWritten by `cargo xtask bench`. [README.md](README.md) tells the method, [FINDINGS.md](FINDINGS.md) what follows from it.\n";

#[expect(clippy::disallowed_methods, reason = "the report is a file of the repository")]
pub(crate) fn run(asked: &[String]) -> bool {
    if let Some(unknown) = asked.iter().find(|name| !SECTIONS.iter().any(|(known, _)| known == *name)) {
        let known: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        say(&format!("there is no bench {unknown:?}; there are {}", known.join(", ")));
        return false;
    }
    let path = root().join("bench/REPORT.md");
    for (name, flags) in SECTIONS.iter().filter(|(name, _)| asked.is_empty() || asked.iter().any(|asked| asked == name))
    {
        say(&format!("── {name}"));
        let before = ProcessorTime::now();
        let Some(tables) = output(
            "cargo",
            &[&["run", "--release", "--locked", "--manifest-path", "bench/Cargo.toml"], *flags].concat(),
        ) else {
            say(&format!("{name}: the bench failed; its section stays as it was"));
            return false;
        };
        let stolen = ProcessorTime::now().stolen_since(before);
        let section = format!("# {name}\n\n{}\n\n{}\n", provenance(flags, stolen), tables.trim_end());
        // Read again for each: a bench that fails leaves what the ones before it have told.
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if let Err(error) = std::fs::write(&path, replaced(&before, name, &section)) {
            say(&format!("{}: {error}", path.display()));
            return false;
        }
    }
    true
}

/// The report with one section in the place of its old version.
fn replaced(report: &str, name: &str, section: &str) -> String {
    let section_of = |wanted: &str| {
        let start = report.find(&format!("\n# {wanted}\n"))? + 1;
        let end = report[start..].find("\n# ").map_or(report.len(), |at| start + at + 1);
        Some(report[start..end].trim_end().to_owned())
    };
    let mut out = HEADER.to_owned();
    for (known, _) in SECTIONS.iter().copied() {
        let text = if known == name { Some(section.trim_end().to_owned()) } else { section_of(known) };
        if let Some(text) = text {
            out += &format!("\n{text}\n");
        }
    }
    out
}

#[expect(clippy::disallowed_methods, reason = "what machine this is stands in a file")]
fn provenance(flags: &[&str], stolen: f64) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("?", |rest| rest.trim_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let text = |program: &str, args: &[&str]| output(program, args).unwrap_or_default().trim().to_owned();
    format!(
        "Commit `{}`. {model}, {cores} cores, {}, load average {} at the end, {stolen:.1} % of the processor time \
         taken by the host. `cargo run --release {}` in `bench/`.",
        text("git", &["rev-parse", "--short", "HEAD"]),
        text("rustc", &["--version"]),
        load.split(' ').next().unwrap_or("?"),
        flags.join(" ")
    )
}

/// Ticks of all processors: all of them, and those that a virtual machine wanted and its host gave to others.
#[derive(Clone, Copy)]
struct ProcessorTime {
    all: u64,
    stolen: u64,
}

impl ProcessorTime {
    #[expect(clippy::disallowed_methods, reason = "what the processors did stands in a file")]
    fn now() -> ProcessorTime {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = stat.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|word| word.parse().ok());
        let ticks: Vec<u64> = ticks.take(8).collect();
        ProcessorTime { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    fn stolen_since(self, before: ProcessorTime) -> f64 {
        100.0 * (self.stolen - before.stolen) as f64 / (self.all - before.all).max(1) as f64
    }
}

/// What a program prints to stdout, if it succeeds. If it fails, what it has printed by then is said: a bench may have measured for a quarter of an hour.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let ran = command(program, args).stderr(Stdio::inherit()).output().ok()?;
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    if !ran.status.success() {
        say(&printed);
        return None;
    }
    Some(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_that_was_measured_changes() {
        let report = replaced("", "rows", "# rows\n\nold\n");
        let report = replaced(&report, "nodes", "# nodes\n\n| a |\n");
        let report = replaced(&report, "rows", "# rows\n\nnew\n");
        assert_eq!(report, format!("{HEADER}\n# nodes\n\n| a |\n\n# rows\n\nnew\n"));
    }
}
