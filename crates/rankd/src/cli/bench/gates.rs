//! Figures that a bench is judged by: against limits on the command line (`--fail_if`) and against an earlier bench (`--baseline`).

use crate::cli::command_error::{BadArgument, CommandError};
use crate::cli::condition::{Condition, FigureSeen, Unit};
use rankd_edge::files;
use rankd_edge::listing::Listing;
use rankd_plan::json::{Fault, Kind, Number, Reader};
use std::fmt;
use std::path::Path;

/// The largest report of an earlier bench.
const BASELINE_BYTES_MAX: usize = 1 << 20;

/// Every figure, by the name that people use, and where the report for programs has it.
const FIGURES: [(&str, Unit, &[&str]); 11] = [
    ("min", Unit::Micros, &["latency_us", "min"]),
    ("mean", Unit::Micros, &["latency_us", "mean"]),
    ("p50", Unit::Micros, &["latency_us", "p50"]),
    ("p90", Unit::Micros, &["latency_us", "p90"]),
    ("p99", Unit::Micros, &["latency_us", "p99"]),
    ("p99.9", Unit::Micros, &["latency_us", "p99.9"]),
    ("max", Unit::Micros, &["latency_us", "max"]),
    ("throughput", Unit::PerSecond, &["throughput_per_s"]),
    ("goodput", Unit::PerSecond, &["goodput_per_s"]),
    ("errors", Unit::Share, &["error_share"]),
    ("degraded", Unit::Share, &["degraded_share"]),
];

/// The figures of one bench, in the order of the list above; nothing where its report does not have one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures([Option<f64>; FIGURES.len()]);

/// Why a text is not the report of a bench.
#[derive(Debug)]
pub(crate) enum NotAReport {
    Json(Fault),
    NoFigures,
}

impl std::error::Error for NotAReport {}

impl fmt::Display for NotAReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAReport::Json(fault) => fault.fmt(f),
            NotAReport::NoFigures => f.write_str("it contains no bench figures"),
        }
    }
}

impl Figures {
    /// Reads them from the report for programs: the one of this bench, or of an earlier one.
    pub(crate) fn of_report(json: &str) -> Result<Figures, NotAReport> {
        let mut found = [None; FIGURES.len()];
        for (value, (.., path)) in found.iter_mut().zip(&FIGURES) {
            *value = number_at(json, path).map_err(NotAReport::Json)?;
        }
        if found.iter().all(Option::is_none) {
            return Err(NotAReport::NoFigures);
        }
        Ok(Figures(found))
    }

    pub(crate) fn of_file(path: &Path) -> Result<Figures, CommandError> {
        let thing = format!("the baseline {}", path.display());
        let text = files::read_named_text(path, BASELINE_BYTES_MAX).map_err(CommandError::with(&thing))?;
        Figures::of_report(&text).map_err(CommandError::with(&thing))
    }

    /// Both benches side by side.
    pub(crate) fn beside(&self, before: &Figures) -> String {
        let mut listing = Listing::new(&["figure", "now", "baseline", "now/baseline"]);
        for (at, (name, unit, _)) in FIGURES.iter().enumerate() {
            let (Some(now), Some(before)) = (self.0[at], before.0[at]) else { continue };
            let ratio = if before == 0.0 { "-".to_owned() } else { format!("{:.3}", now / before) };
            listing.row(vec![(*name).to_owned(), unit.shown(now), unit.shown(before), ratio]);
        }
        listing.render()
    }
}

/// The number at a path of field names, if it is there.
fn number_at(json: &str, path: &[&str]) -> Result<Option<f64>, Fault> {
    let mut reader = Reader::new(json, 16);
    for wanted in path {
        if reader.peek()? != Kind::Object {
            return Ok(None);
        }
        let mut fields = reader.open_object()?;
        loop {
            match reader.field(&mut fields)? {
                Some((name, _)) if name == *wanted => break,
                Some(_) => reader.skip()?,
                None => return Ok(None),
            }
        }
    }
    Ok(match reader.peek()? {
        Kind::Number => match reader.number()? {
            Number::Int(value) => Some(value as f64),
            Number::Float(value) => Some(value),
            Number::OutOfRange => None,
        },
        _ => None,
    })
}

/// A condition that fails a bench: `p99 > 5ms`, `throughput < 1000`, `errors > 1%`, `degraded > 5%`, `p50 > 1.2x` (of the baseline's).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate(Condition);

impl Gate {
    pub(crate) fn parse(text: &str) -> Result<Gate, BadArgument> {
        Condition::parse(text, "p99 > 5ms", FIGURES.iter().map(|(name, unit, _)| (*name, *unit))).map(Gate)
    }

    pub(crate) fn needs_baseline(&self) -> bool {
        self.0.is_relative()
    }

    /// Why a bench fails, if it does.
    pub(crate) fn failure(&self, now: &Figures, before: Option<&Figures>) -> Option<String> {
        let at = FIGURES.iter().position(|(name, ..)| *name == self.0.figure);
        let of = |figures: &Figures| at.and_then(|at| figures.0[at]);
        self.0.failure(&FigureSeen {
            now: of(now),
            before: before.and_then(of),
            called: ["this bench", "the baseline"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"plan":"p","errors":{"task":5},"error_share":0.05,"degraded_share":0.2,"throughput_per_s":1000,"latency_us":{"p50":100,"p99":6000.5}}"#;

    fn failure(gate: &str) -> Option<String> {
        let now = Figures::of_report(REPORT).unwrap();
        let before = Figures::of_report(r#"{"latency_us":{"p99":3000}}"#).unwrap();
        Gate::parse(gate).unwrap().failure(&now, Some(&before))
    }

    #[test]
    fn a_condition_that_holds_fails_the_bench_and_says_what_it_saw() {
        for (gate, expected) in [
            ("p99 > 5ms", Some("failed: p99 > 5ms: p99 is 6.00 ms")),
            ("p99>6000.5us", None),
            ("p99 >= 6000.5us", Some("failed: p99 >= 6000.5us: p99 is 6.00 ms")),
            ("p99 > 1s", None),
            ("p50 < 1ms", Some("failed: p50 < 1ms: p50 is 100.0 µs")),
            ("throughput < 1000", None),
            ("throughput <= 1000/s", Some("failed: throughput <= 1000/s: throughput is 1000 a second")),
            ("errors > 1%", Some("failed: errors > 1%: errors is 5.00 %")),
            ("errors > 0.05", None),
            ("degraded > 5%", Some("failed: degraded > 5%: degraded is 20.00 %")),
            ("degraded > 20%", None),
            ("p99 > 1.5x", Some("failed: p99 > 1.5x: p99 is 6.00 ms")),
            ("p99 > 2.5x", None),
            ("p50 > 2x", Some("failed: p50 > 2x: the baseline has no p50")),
            ("p90 > 2ms", Some("failed: p90 > 2ms: this bench has no p90")),
        ] {
            assert_eq!(failure(gate).as_deref(), expected, "{gate}");
        }
    }

    #[test]
    fn a_condition_that_cannot_be_read_says_what_to_write() {
        for (gate, expected) in [
            ("p99", "is not a condition"),
            ("p98 > 5ms", "did you mean \"p90\"?"),
            ("latency > 5ms", "known: min, mean"),
            ("p99 > 5", "a time with its unit"),
            ("p99 > ms", "a time with its unit"),
            ("throughput > 5ms", "requests a second"),
            ("errors > 5", "a share, such as"),
            ("p99 > -1x", "a time with its unit"),
            ("p99 > 5ms > 3ms", "a time with its unit"),
        ] {
            let told = Gate::parse(gate).unwrap_err();
            assert!(told.0.contains(expected), "{gate}: {told}");
        }
    }

    #[test]
    fn benches_stand_side_by_side() {
        let now = Figures::of_report(REPORT).unwrap();
        let beside = now.beside(&Figures::of_report(r#"{"latency_us":{"p99":3000},"error_share":0}"#).unwrap());
        assert!(beside.contains("p99     6.00 ms  3.00 ms   2.000"), "{beside}");
        assert!(beside.contains("errors  5.00 %   0.00 %    -"), "{beside}");
        for wrong in ["", "[]", "{}", "{\"latency_us\":3}", "{\"latency_us\":{\"p99\":\"x\"}}", "{\"a\""] {
            assert!(Figures::of_report(wrong).is_err(), "{wrong:?}");
        }
    }
}
