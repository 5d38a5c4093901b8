//! The numbers that a change is judged by: each with its name, and its value for the comparison or for each of the plans.

use super::PlanDiff;
use super::labels::QUALITIES;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// A part of the whole, 0 to 1.
    Share,
    /// Microseconds.
    Micros,
    /// Anything else.
    Number,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What people and conditions call it.
    pub name: String,
    /// What it is counted in.
    pub unit: FigureUnit,
    /// One sentence.
    pub about: &'static str,
    /// Of the comparison, or of the second plan; nothing where no request has one.
    pub value: Option<f64>,
    /// Of the first plan, where each plan has its own.
    pub of_first: Option<f64>,
}

impl PlanDiff {
    /// All figures. Those of lists are over all outputs.
    pub fn figures(&self) -> Vec<Figure> {
        let k = self.asked.k;
        let lists: u64 = self.outputs.iter().map(|output| output.requests).sum();
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let sum = |of: fn(&super::OutputDiff) -> f64| self.outputs.iter().map(of).sum::<f64>();
        let with_kept: u64 = self.outputs.iter().map(|output| output.with_kept).sum();
        let drifted: u64 = self.outputs.iter().map(|output| output.drift.rows).sum();
        let requests = self.requests;
        let mut figures = vec![
            Figure::of(
                "differ".to_owned(),
                FigureUnit::Share,
                "answers whose ids or order differ, or that only one plan failed",
                mean(self.differing as f64, requests),
            ),
            Figure::of(
                format!("overlap@{k}"),
                FigureUnit::Share,
                "rows among the first of both lists, of the longer one",
                mean(sum(|of| of.overlap), lists),
            ),
            Figure::of(
                "rbo".to_owned(),
                FigureUnit::Share,
                "rank-biased overlap, p = 0.9, extrapolated",
                mean(sum(|of| of.rbo), lists),
            ),
            Figure::of(
                "displacement".to_owned(),
                FigureUnit::Number,
                "places that a row of both lists moved",
                mean(sum(|of| of.displacement), with_kept),
            ),
            Figure::of(
                "entered".to_owned(),
                FigureUnit::Number,
                "rows a list that only the second plan has",
                mean(sum(|of| of.entered as f64), lists),
            ),
            Figure::of(
                "left".to_owned(),
                FigureUnit::Number,
                "rows a list that only the first plan has",
                mean(sum(|of| of.left as f64), lists),
            ),
            Figure::of(
                "drift".to_owned(),
                FigureUnit::Number,
                "difference of the score of a row of both lists",
                mean(sum(|of| of.drift.sum), drifted),
            ),
        ];
        let [first, second] = &self.sides;
        let mut both = |name: &str, unit, about, of: &dyn Fn(&super::SideCounts) -> Option<f64>| {
            figures.push(Figure { name: name.to_owned(), unit, about, value: of(second), of_first: of(first) });
        };
        both("rows", FigureUnit::Number, "rows an answer", &|side| mean(side.rows as f64, requests - side.failed()));
        both("errors", FigureUnit::Share, "requests that failed", &|side| mean(side.failed() as f64, requests));
        both("degraded", FigureUnit::Share, "answers with a fallback", &|side| mean(side.degraded as f64, requests));
        both("cpu", FigureUnit::Micros, "processor time a request", &|side| {
            mean(side.cost.cpu_seconds * 1e6, side.cost.requests)
        });
        both("commands", FigureUnit::Number, "commands to stores a request", &|side| {
            mean(side.cost.commands as f64, side.cost.requests)
        });
        if self.asked.captures.is_some() {
            let (missing, all) = (self.left_out.missing, requests + self.left_out.missing_any);
            figures.push(Figure {
                name: "missing".to_owned(),
                unit: FigureUnit::Share,
                about: "requests that read what was not captured; they are left out",
                value: mean(missing[1] as f64, all),
                of_first: mean(missing[0] as f64, all),
            });
        }
        for (name, of) in QUALITIES {
            if let Some(diff) = self.qualities.diff(of) {
                let about = "by the labels, over users";
                let name = format!("{name}@{k}");
                figures.push(Figure {
                    name,
                    unit: FigureUnit::Share,
                    about,
                    value: Some(diff.b),
                    of_first: Some(diff.a),
                });
            }
        }
        figures
    }
}

impl Figure {
    fn of(name: String, unit: FigureUnit, about: &'static str, value: Option<f64>) -> Figure {
        Figure { name, unit, about, value, of_first: None }
    }

    /// As people read it.
    pub fn shown(&self, value: Option<f64>) -> String {
        match (value, self.unit) {
            (None, _) => "-".to_owned(),
            (Some(value), FigureUnit::Share) => format!("{:.2} %", 100.0 * value),
            (Some(value), FigureUnit::Micros) => format!("{value:.1} µs"),
            (Some(value), FigureUnit::Number) => format!("{value:.3}"),
        }
    }
}
