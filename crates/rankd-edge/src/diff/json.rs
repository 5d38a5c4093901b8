//! The report for programs.

use super::labels::QUALITIES;
use super::{BARS, PlanDiff, RowGroups};
use rankd_column::Id;
use rankd_plan::json::Writer;

impl PlanDiff {
    /// All of it, as one JSON object.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("plans").array(|w| self.asked.plans.iter().for_each(|plan| _ = w.string(plan)));
            w.field("requests").int(self.requests as i64);
            w.field("k").int(self.asked.k as i64);
            w.field("figures").object(|w| {
                for figure in self.figures() {
                    match figure.of_first {
                        None => number(figure.value, w.field(&figure.name)),
                        Some(_) => {
                            _ = w.field(&figure.name).array(|w| {
                                number(figure.of_first, w);
                                number(figure.value, w);
                            })
                        }
                    }
                }
            });
            w.field("errors").array(|w| {
                for side in &self.sides {
                    w.object(|w| side.errors.iter().for_each(|(code, count)| _ = w.field(code).int(*count as i64)));
                }
            });
            if self.asked.captures.is_some() {
                let counts = &self.left_out;
                w.field("left_out").object(|w| {
                    w.field("missing").array(|w| counts.missing.iter().for_each(|count| _ = w.int(*count as i64)));
                    w.field("not_comparable").object(|w| {
                        counts.not_comparable.iter().for_each(|(why, count)| _ = w.field(why).int(*count as i64));
                    });
                    w.field("other_plan").int(counts.other_plan as i64);
                });
            }
            w.field("outputs").array(|w| (0..self.outputs.len()).for_each(|at| self.output(at, w)));
            if self.asked.labels.is_some() {
                w.field("labels").object(|w| self.labels(w));
            }
            w.field("most_different").array(|w| self.shown.iter().for_each(|shown| self.shown(shown, w)));
        });
        writer.finish()
    }

    fn output(&self, at: usize, w: &mut Writer) {
        let output = &self.outputs[at];
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        w.object(|w| {
            w.field("name").string(&self.asked.outputs[at]);
            w.field("requests").int(output.requests as i64);
            number(mean(output.overlap, output.requests), w.field("overlap"));
            number(mean(output.rbo, output.requests), w.field("rbo"));
            number(mean(output.displacement, output.with_kept), w.field("displacement"));
            w.field("entered").int(output.entered as i64).field("left").int(output.left as i64);
            if let Some(score) = self.asked.score.as_ref().filter(|_| output.drift.rows > 0) {
                w.field("drift").object(|w| {
                    w.field("key").string(score).field("rows").int(output.drift.rows as i64);
                    number(mean(output.drift.sum, output.drift.rows), w.field("mean"));
                    number(Some(output.drift.most), w.field("most"));
                });
            }
            w.field("overlaps").array(|w| {
                for (bar, count) in output.bars.iter().enumerate().filter(|(_, count)| **count > 0) {
                    w.object(|w| {
                        w.field("from").float(bar as f64 / BARS as f64).field("requests").int(*count as i64);
                    });
                }
            });
            grouped(&output.sources, w.field("sources"));
            if let Some(group) = &self.asked.group {
                w.field("by").string(group);
                grouped(&output.groups, w.field("groups"));
            }
        });
    }

    fn labels(&self, w: &mut Writer) {
        w.field("users").int(self.qualities.users() as i64);
        w.field("requests_left_out").int(self.qualities.unlabelled as i64);
        for (name, of) in QUALITIES {
            if let Some(diff) = self.qualities.diff(of) {
                w.field(name).object(|w| {
                    number(Some(diff.a), w.field("first"));
                    number(Some(diff.b), w.field("second"));
                    w.field("interval").array(|w| {
                        number(Some(diff.interval.0), w);
                        number(Some(diff.interval.1), w);
                    });
                });
            }
        }
    }

    fn shown(&self, shown: &super::Shown, w: &mut Writer) {
        w.object(|w| {
            w.field("number").int(shown.number as i64);
            w.field("request").string(&shown.request);
            if let Some(id) = &shown.captured_id {
                w.field("request_id").string(id);
            }
            match shown.failed {
                Some((code, is_second)) => {
                    w.field("failed").string(&self.asked.plans[usize::from(is_second)]).field("code").string(code);
                }
                None => {
                    w.field("overlap").float(shown.overlap).field("rbo").float(shown.rbo);
                }
            }
            for (name, ids) in [("left", &shown.left), ("entered", &shown.entered)] {
                w.field(name).array(|w| {
                    for id in ids {
                        match id {
                            Id::Int(id) => w.int(*id),
                            Id::Text(text) => w.string(text),
                        };
                    }
                });
            }
            if let Some(why) = shown.why(&self.asked) {
                w.field("why").string(&why);
            }
        });
    }
}

/// Rows that entered and left.
fn grouped(groups: &RowGroups, w: &mut Writer) {
    w.object(|w| {
        for (group, [entered, left]) in groups {
            w.field(group).object(|w| {
                w.field("entered").int(*entered as i64).field("left").int(*left as i64);
            });
        }
    });
}

/// A number, or null where there is none or JSON has no such number.
fn number(value: Option<f64>, w: &mut Writer) {
    match value.filter(|value| value.is_finite()) {
        Some(value) => w.float(value),
        None => w.null(),
    };
}
