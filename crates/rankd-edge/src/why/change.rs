//! The number whose change brings an item into the answer, in words and as JSON.

use super::text::shown;
use super::{WhyAnswer, write_node, write_value};
use crate::answer::shown_text;
use rankd_engine::why::{Change, ChangePlace, NoChange};
use rankd_plan::json::Writer;

impl WhyAnswer<'_> {
    /// Without a full stop.
    pub(super) fn change(&self, change: &Result<Change, NoChange>) -> String {
        match change {
            Ok(Change { place, from, to }) => {
                let what = match place {
                    ChangePlace::Arg { node, param } => format!("{param} of {}", self.node_at(*node)),
                    ChangePlace::Constant { node, at, .. } => {
                        let at = at.as_ref().map(|at| format!(" at {}", shown_text(at))).unwrap_or_default();
                        format!("the constant {} of {}{at}", shown(from), self.node(*node))
                    }
                    ChangePlace::Param(param) => {
                        format!("the parameter {} of the request", shown_text(&self.registry.params.get(*param).name))
                    }
                };
                format!("{what}: {} → {} brings it into the answer", shown(from), shown(to))
            }
            Err(NoChange::TwoDrops) => "no one number: past the node that dropped it, another drops it".to_owned(),
            Err(NoChange::NotFound) => "no one number was found that brings it into the answer".to_owned(),
            Err(NoChange::OutOfTime) => "no number was found in the time that there is for it".to_owned(),
            Err(NoChange::NotRead) => "not known: it takes what the run has not read".to_owned(),
        }
    }

    pub(super) fn write_change(&self, change: &Result<Change, NoChange>, w: &mut Writer) {
        match change {
            Ok(Change { place, from, to }) => {
                w.field("change").object(|w| {
                    match place {
                        ChangePlace::Arg { node, param } => {
                            w.field("what").string(param);
                            write_node(self.plan, *node, w);
                        }
                        ChangePlace::Constant { node, at, .. } => {
                            w.field("what").string("constant");
                            write_node(self.plan, *node, w);
                            if let Some(at) = at {
                                w.field("constant_at").string(at);
                            }
                        }
                        ChangePlace::Param(param) => {
                            w.field("what").string("param");
                            w.field("param").string(&self.registry.params.get(*param).name);
                        }
                    }
                    write_value(from, w.field("from"));
                    write_value(to, w.field("to"));
                });
            }
            Err(reason) => {
                w.field("change").null();
                w.field("no_change").string(reason.name());
            }
        }
    }
}
