//! A condition that fails a command, such as `p99 > 5ms` of a bench or `overlap@20 < 0.9` of a diff: a figure, a comparison and a limit.
//!
//! Which figures there are, and what each is, is for the command to say.

use crate::cli::command_error::BadArgument;
use rankd_plan::diagnostic::nearest;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Micros,
    PerSecond,
    /// Of the whole, 0 to 1.
    Share,
    Number,
}

impl Unit {
    /// As people read it.
    pub(crate) fn shown(self, value: f64) -> String {
        match self {
            Unit::Micros if value >= 1e6 => format!("{:.2} s", value / 1e6),
            Unit::Micros if value >= 1e3 => format!("{:.2} ms", value / 1e3),
            Unit::Micros => format!("{value:.1} µs"),
            Unit::PerSecond => format!("{value:.0} a second"),
            Unit::Share => format!("{:.2} %", 100.0 * value),
            Unit::Number => format!("{value:.3}"),
        }
    }
}

/// A condition that fails a command: `p99 > 5ms`, `throughput < 1000`, `errors > 1%`, `p50 > 1.2x` (of what it is compared with).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    text: String,
    /// The name of the figure.
    pub(crate) figure: String,
    unit: Unit,
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
    /// So many times what it is compared with.
    Times(f64),
}

/// A figure of this command, and of what it is compared with, and what to call the two.
pub(crate) struct FigureSeen<'a> {
    pub(crate) now: Option<f64>,
    pub(crate) before: Option<f64>,
    pub(crate) called: [&'a str; 2],
}

impl Condition {
    /// Reads a condition on one of these figures.
    pub(crate) fn parse<'n>(
        text: &str,
        example: &str,
        figures: impl Iterator<Item = (&'n str, Unit)> + Clone,
    ) -> Result<Condition, BadArgument> {
        let at = text.find(['<', '>']).ok_or_else(|| {
            format!("{text:?} is not a condition: write a figure, < or >, and a limit, such as '{example}'")
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
        let names = figures.clone().map(|(name, _)| name);
        let Some((_, unit)) = figures.clone().find(|(known, _)| *known == name) else {
            let hint = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known: {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("there is no figure {name:?}; {hint}").into());
        };
        let limit = Limit::parse(limit.trim(), unit).ok_or_else(|| {
            let takes = match unit {
                Unit::Micros => "a time with its unit, such as 500us, 5ms or 1s",
                Unit::PerSecond => "a number of requests a second, such as 1000",
                Unit::Share => "a share, such as 1% or 0.01",
                Unit::Number => "a number, such as 2.5",
            };
            format!("{name} is compared with {takes}, or with a multiple, such as 1.2x; not with {:?}", limit.trim())
        })?;
        Ok(Condition { text: text.trim().to_owned(), figure: name.to_owned(), unit, compare, limit })
    }

    /// Whether its limit is a multiple of something.
    pub(crate) fn is_relative(&self) -> bool {
        matches!(self.limit, Limit::Times(_))
    }

    /// Why a command fails, if it does.
    pub(crate) fn failure(&self, seen: &FigureSeen<'_>) -> Option<String> {
        let (name, [this, other]) = (&self.figure, seen.called);
        let Some(value) = seen.now else { return Some(format!("failed: {}: {this} has no {name}", self.text)) };
        let limit = match self.limit {
            Limit::Value(limit) => limit,
            Limit::Times(times) => match seen.before {
                Some(before) => before * times,
                None => return Some(format!("failed: {}: {other} has no {name}", self.text)),
            },
        };
        let holds = match self.compare {
            Compare::Greater => value > limit,
            Compare::GreaterOrEqual => value >= limit,
            Compare::Less => value < limit,
            Compare::LessOrEqual => value <= limit,
        };
        holds.then(|| format!("failed: {}: {name} is {}", self.text, self.unit.shown(value)))
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
            Unit::Number => number(text),
        };
        value.map(Limit::Value)
    }
}

/// The microseconds of a time with its unit.
pub(crate) fn micros(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(at);
    let factor = match unit.trim() {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}
