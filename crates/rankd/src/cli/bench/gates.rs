//! Figures that a bench is judged by: against limits on the command line (`--fail_if`) and against an earlier bench (`--baseline`).

use crate::cli::bench::load::micros;
use crate::cli::command_error::{BadArgument, CommandError};
use rankd_edge::files;
use rankd_edge::listing::Listing;
use rankd_plan::diagnostic::nearest;
use rankd_plan::json::{Fault, Kind, Number, Reader};
use std::fmt;
use std::path::Path;

/// The largest report of an earlier bench.
const BASELINE_BYTES_MAX: usize = 1 << 20;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Micros,
    PerSecond,
    /// Of all requests, 0 to 1.
    Share,
}

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
            listing.row(vec![(*name).to_owned(), shown(now, *unit), shown(before, *unit), ratio]);
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

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Micros if value >= 1e6 => format!("{:.2} s", value / 1e6),
        Unit::Micros if value >= 1e3 => format!("{:.2} ms", value / 1e3),
        Unit::Micros => format!("{value:.1} µs"),
        Unit::PerSecond => format!("{value:.0} a second"),
        Unit::Share => format!("{:.2} %", 100.0 * value),
    }
}

/// A condition that fails a bench: `p99 > 5ms`, `throughput < 1000`, `errors > 1%`, `degraded > 5%`, `p50 > 1.2x` (of the baseline's).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    text: String,
    /// Position in the list of figures.
    figure: usize,
    compare: Compare,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Value(f64),
    /// So many times what the baseline has.
    Times(f64),
}

impl Gate {
    pub(crate) fn parse(text: &str) -> Result<Gate, BadArgument> {
        let at = text.find(['<', '>']).ok_or_else(|| {
            format!("{text:?} is not a condition: write a figure, < or >, and a limit, such as 'p99 > 5ms'")
        })?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (compare, limit) = if let Some(limit) = rest.strip_prefix(">=") {
            (Compare::GreaterOrEqual, limit)
        } else if let Some(limit) = rest.strip_prefix("<=") {
            (Compare::LessOrEqual, limit)
        } else if let Some(limit) = rest.strip_prefix('>') {
            (Compare::Greater, limit)
        } else {
            (Compare::Less, &rest[1..])
        };
        let names = FIGURES.iter().map(|(name, ..)| *name);
        let Some(figure) = names.clone().position(|known| known == name) else {
            let hint = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known: {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("there is no figure {name:?}; {hint}").into());
        };
        let limit = Limit::parse(limit.trim(), FIGURES[figure].1).ok_or_else(|| {
            let takes = match FIGURES[figure].1 {
                Unit::Micros => "a time with its unit, such as 500us, 5ms or 1s",
                Unit::PerSecond => "a number of requests a second, such as 1000",
                Unit::Share => "a share of the requests, such as 1% or 0.01",
            };
            format!("{name} is compared with {takes}, or with a baseline, such as 1.2x; not with {:?}", limit.trim())
        })?;
        Ok(Gate { text: text.trim().to_owned(), figure, compare, limit })
    }

    pub(crate) fn needs_baseline(&self) -> bool {
        matches!(self.limit, Limit::Times(_))
    }

    /// Why a bench fails, if it does.
    pub(crate) fn failure(&self, now: &Figures, before: Option<&Figures>) -> Option<String> {
        let (name, unit, _) = FIGURES[self.figure];
        let Some(value) = now.0[self.figure] else {
            return Some(format!("failed: {}: this bench has no {name}", self.text));
        };
        let limit = match self.limit {
            Limit::Value(limit) => limit,
            Limit::Times(times) => match before.and_then(|before| before.0[self.figure]) {
                Some(before) => before * times,
                None => return Some(format!("failed: {}: the baseline has no {name}", self.text)),
            },
        };
        let holds = match self.compare {
            Compare::Greater => value > limit,
            Compare::GreaterOrEqual => value >= limit,
            Compare::Less => value < limit,
            Compare::LessOrEqual => value <= limit,
        };
        holds.then(|| format!("failed: {}: {name} is {}", self.text, shown(value, unit)))
    }
}

impl Limit {
    fn parse(text: &str, unit: Unit) -> Option<Limit> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        if let Some(times) = text.strip_suffix('x') {
            return number(times).map(Limit::Times);
        }
        let value = match unit {
            Unit::Micros => micros(text),
            Unit::PerSecond => number(text.strip_suffix("/s").unwrap_or(text)),
            Unit::Share => match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(text).filter(|share| *share <= 1.0),
            },
        };
        value.map(Limit::Value)
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
            ("errors > 5", "a share of the requests"),
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
