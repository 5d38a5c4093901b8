//! Why a source did not give an item, in words and as JSON.

use super::text::shown;
use super::{WhyAnswer, write_node, write_value};
use crate::answer::{shown_text, write_degraded};
use rankd_engine::why::{AbsentReason, NotGiven, StoredAbsence, StoredFinding};
use rankd_plan::json::Writer;

impl WhyAnswer<'_> {
    /// Without a full stop.
    pub(super) fn absence(&self, why: &AbsentReason) -> String {
        match why {
            AbsentReason::Unsaid => {
                "its rows do not have it, and its task does not say where they come from".to_owned()
            }
            AbsentReason::NotRun => {
                "it did not run, because its condition does not hold or nothing needed it".to_owned()
            }
            AbsentReason::Fallback(degraded) => {
                let code = degraded.code.map(|code| format!(", {}", code.id)).unwrap_or_default();
                format!("it was degraded ({}{code})", degraded.reason.name())
            }
            AbsentReason::NoInput => "it had no input rows to read for".to_owned(),
            AbsentReason::Request => "not among the candidates of the request".to_owned(),
            AbsentReason::Plan => "not among the rows that the plan has".to_owned(),
            AbsentReason::User => "not the user of the request".to_owned(),
            AbsentReason::Service { endpoint } => {
                format!("{} was asked, and its answer does not have it", shown_text(endpoint))
            }
            AbsentReason::NoRow { table } => format!("the table {} has no such row", shown_text(table)),
            AbsentReason::NoMatch { table, left, right, value } => {
                let (left, right) = (shown_text(self.key(*left)), shown_text(self.key(*right)));
                let table = shown_text(table);
                format!("its row of {table} has {right} {}, and no input row has that as {left}", shown(value))
            }
            AbsentReason::RowsCut { table, right, value, fanout } => {
                let (table, right) = (shown_text(table), shown_text(self.key(*right)));
                format!("its row of {table} is behind the first {fanout} with {right} {}, the fanout", shown(value))
            }
            AbsentReason::Stored(stored) => self.stored(stored),
        }
    }

    fn stored(&self, stored: &StoredAbsence) -> String {
        let StoredAbsence { endpoint, keys, asked, read, fanout, found, .. } = stored;
        let endpoint = shown_text(endpoint);
        let first = keys.first().map(|key| shown_text(key)).unwrap_or_default();
        let keys = match *read {
            1 => first,
            read => format!("any of {read} keys such as {first}"),
        };
        let element = |position: &Option<usize>| match position {
            Some(position) => format!("element {position}"),
            None => "an element".to_owned(),
        };
        match found {
            StoredFinding::NotAsked => format!("{endpoint} was read, and cannot be asked for one element"),
            StoredFinding::Failed(error) => format!("{endpoint} could not be asked: {}", shown_text(error)),
            StoredFinding::Absent if asked < read => {
                format!("not in {keys} of {endpoint}, of which {asked} were asked")
            }
            StoredFinding::Absent => format!("not in {keys} of {endpoint}"),
            StoredFinding::Cut { key, position } => {
                format!("{} of {} in {endpoint}, which is cut at fanout {fanout}", element(position), shown_text(key))
            }
            StoredFinding::There { key, position } => {
                let (element, key) = (element(position), shown_text(key));
                format!("{element} of {key} in {endpoint} by now, and was not when the run read it")
            }
        }
    }

    pub(super) fn not_given(&self, never: &NotGiven, w: &mut Writer) {
        w.object(|w| {
            write_node(self.plan, never.node, w);
            w.field("why").string(never.why.name());
            match &never.why {
                AbsentReason::Unsaid
                | AbsentReason::NotRun
                | AbsentReason::NoInput
                | AbsentReason::Request
                | AbsentReason::Plan
                | AbsentReason::User => {}
                AbsentReason::Fallback(degraded) => {
                    write_degraded(self.plan, std::slice::from_ref(degraded), w.field("degraded"));
                }
                AbsentReason::Service { endpoint } | AbsentReason::NoRow { table: endpoint } => {
                    w.field("endpoint").string(endpoint);
                }
                AbsentReason::NoMatch { table, left, right, value } => {
                    w.field("endpoint").string(table);
                    w.field("on").object(|w| {
                        w.field("left").string(self.key(*left)).field("right").string(self.key(*right));
                        write_value(value, w.field("value"));
                    });
                }
                AbsentReason::RowsCut { table, right, value, fanout } => {
                    w.field("endpoint").string(table);
                    w.field("on").object(|w| {
                        w.field("right").string(self.key(*right));
                        write_value(value, w.field("value"));
                    });
                    w.field("fanout").int(*fanout as i64);
                }
                AbsentReason::Stored(StoredAbsence { endpoint, keys, asked, read, fanout, found, .. }) => {
                    w.field("endpoint").string(endpoint);
                    w.field("keys").array(|w| {
                        keys.iter().for_each(|key| {
                            w.string(key);
                        });
                    });
                    w.field("read").int(*read as i64).field("asked").int(*asked as i64);
                    w.field("fanout").int(*fanout as i64);
                    match found {
                        StoredFinding::NotAsked | StoredFinding::Absent => {}
                        StoredFinding::Failed(error) => {
                            w.field("message").string(error);
                        }
                        StoredFinding::Cut { key, position } | StoredFinding::There { key, position } => {
                            w.field("key").string(key);
                            match position {
                                Some(position) => w.field("position").int(*position as i64),
                                None => w.field("position").null(),
                            };
                        }
                    }
                }
            }
        });
    }
}
