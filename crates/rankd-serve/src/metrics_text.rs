//! Metrics as text: families, their samples and histograms, as Prometheus reads them. Which there are is not known here.

use crate::metrics::{BOUNDS, Times};
use std::fmt::{Display, Write};
use std::sync::LazyLock;

/// The bounds of the buckets of times, as they are written; the last one is for what is longer.
static BOUND_TEXTS: LazyLock<Vec<String>> =
    LazyLock::new(|| BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]).collect());

/// Text under construction.
pub(crate) struct MetricsText {
    pub(crate) out: String,
}

impl MetricsText {
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) -> &mut MetricsText {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) -> &mut MetricsText {
        self.sample_of(name, "", labels, &[], value)
    }

    /// A sample of one of the series that belong to a histogram.
    pub(crate) fn sample_of(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&str, &str)],
        more: &[(&str, &str)],
        value: impl Display,
    ) -> &mut MetricsText {
        self.out.push_str(name);
        self.out.push_str(suffix);
        let mut before = '{';
        for (label, value) in labels.iter().chain(more) {
            self.out.push(before);
            self.out.push_str(label);
            self.out.push_str("=\"");
            self.push_escaped(value);
            self.out.push('"');
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
        self
    }

    fn push_escaped(&mut self, value: &str) {
        if !value.contains(['\\', '"', '\n']) {
            return self.out.push_str(value);
        }
        for letter in value.chars() {
            match letter {
                '\\' => self.out.push_str("\\\\"),
                '"' => self.out.push_str("\\\""),
                '\n' => self.out.push_str("\\n"),
                other => self.out.push(other),
            }
        }
    }

    pub(crate) fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(name, &[], value);
    }

    /// The times of all loops as one histogram.
    pub(crate) fn times<'t>(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        parts: impl Iterator<Item = &'t Times> + Clone,
    ) {
        let mut total = 0;
        for (at, bound) in BOUND_TEXTS.iter().enumerate() {
            total += parts.clone().map(|times| times.buckets[at].get()).sum::<u64>();
            self.sample_of(name, "_bucket", labels, &[("le", bound)], total);
        }
        let sum = parts.map(|times| times.sum_ns.get()).sum::<u64>();
        self.sample_of(name, "_sum", labels, &[], seconds(sum)).sample_of(name, "_count", labels, &[], total);
    }
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
