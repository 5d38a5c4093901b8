//! What a task declares about itself, as data: what it takes, reads, writes and does to rows.
//!
//! Checks, documentation, generated types and the scheduler all read the same declaration. The task's code is elsewhere, and
//! with it where it runs. `param` has the parameters as data, `kinds` a row for each kind, [`typed`] the same as a struct, `consistent` the rules that a
//! declaration keeps.

mod consistent;
mod kinds;
mod param;
pub mod typed;

pub(crate) use consistent::{TEXT_BYTES_MAX, is_plain};
pub use kinds::KindRow;
pub use param::{Gives, KeyTypes, Literal, Made, Need, Param, ParamKind, ParamRef, ParamUse, TRACE, When};

use crate::limits::INPUTS_MAX;
use std::ops::RangeInclusive;

/// A task as the rest of the program sees it.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub op: &'static str,
    /// One imperative sentence.
    pub summary: &'static str,
    pub contract: &'static Contract,
}

/// The declaration that stands in the task's file.
#[derive(Debug)]
pub struct Contract {
    pub inputs: Inputs,
    pub rows: RowEffect,
    /// Parameters whose keys are read. Keys inside expressions and predicates count by themselves.
    pub reads: &'static [ParamRef],
    pub writes: Writes,
    pub params: &'static [Param],
    pub cost: Cost,
}

impl Contract {
    /// The parameter that is referred to, and its position. A contract that was built refers to none that is not there.
    pub fn param(&self, param: ParamRef) -> Option<(usize, &'static Param)> {
        self.params.iter().enumerate().find(|(_, known)| known.name == param.name())
    }

    /// Whether the keys that a parameter names are written.
    pub fn writes_to(&self, param: &Param) -> bool {
        match self.writes {
            Writes::Params(params) | Writes::Named(_, params) => {
                params.iter().any(|written| written.name() == param.name)
            }
            Writes::Nothing | Writes::AnyKey | Writes::Table(_) => false,
        }
    }

    /// Whether the key of this name is written, whatever the parameters are.
    pub fn writes_named(&self, name: &str) -> bool {
        match self.writes {
            Writes::Named(names, _) => names.contains(&name),
            Writes::Nothing | Writes::AnyKey | Writes::Table(_) | Writes::Params(_) => false,
        }
    }

    /// What becomes of the rows of a node, given the words of its choices: never "where".
    pub fn rows_with<'w>(&self, word: impl Fn(ParamRef) -> Option<&'w str>) -> RowEffect {
        let holds = |when: &When| when.words.contains(&word(when.param).unwrap_or(""));
        match self.rows {
            RowEffect::FewerWhere(when) => {
                if holds(&when) {
                    RowEffect::Fewer
                } else {
                    RowEffect::Same
                }
            }
            RowEffect::GroupedWhere(when) => {
                if holds(&when) {
                    RowEffect::Grouped
                } else {
                    RowEffect::Same
                }
            }
            rows @ (RowEffect::Source
            | RowEffect::FanOut
            | RowEffect::Same
            | RowEffect::Fewer
            | RowEffect::Reordered
            | RowEffect::Appended
            | RowEffect::Grouped) => rows,
        }
    }

    /// What another parameter has to be, in words.
    pub(crate) fn in_words(&self, when: &When, words: &[&str]) -> String {
        if when.param == ParamRef::INPUT {
            return if words.contains(&"") { "there is no input" } else { "there is an input" }.to_owned();
        }
        let is_endpoint = self.param(when.param).is_some_and(|(_, param)| matches!(param.kind, ParamKind::Endpoint(_)));
        let has_words = self.param(when.param).is_some_and(|(_, param)| matches!(param.kind, ParamKind::Choice(_)));
        let words = words.iter().map(|word| match *word {
            "" => "not given".to_owned(),
            "given" if !has_words => "given".to_owned(),
            word if is_endpoint => format!("of kind {word}"),
            word => format!("{word:?}"),
        });
        format!("{} is {}", when.param.name(), words.collect::<Vec<_>>().join(" or "))
    }

    /// Where a parameter goes, in words: `from is "list" or "set"`. Nothing where no use of it is meant.
    pub fn uses_in_words(&self, param: &Param, is_meant: impl Fn(&ParamUse) -> bool) -> Option<String> {
        let uses = param.uses.iter().filter(|of| is_meant(of)).map(|of| {
            let when: Vec<String> = of.when.iter().map(|when| self.in_words(when, when.words)).collect();
            when.join(" and ")
        });
        let uses: Vec<String> = uses.collect();
        (!uses.is_empty()).then(|| uses.join(", or where "))
    }

    /// Whether the keys that a parameter names are read.
    pub fn reads_from(&self, param: &Param) -> bool {
        self.reads.iter().any(|read| read.name() == param.name)
    }
}

/// What a call costs before it was measured. The scheduler learns the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// Too little, whatever the rows, for another thread to be worth it.
    Trivial,
    /// About this much for a call, and for each row of its inputs.
    About { fixed_ns: f32, per_row_ns: f32 },
    /// It may be anything, or it is a wait.
    Unknown,
}

/// How many row sets flow in through `inputs`. Node-valued parameters come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    None,
    One,
    /// None, and then the task is a source; or one.
    Optional,
    /// One or more. All of them are written as `inputs`; in TypeScript such a task stands on `ctx`.
    Several,
}

impl Inputs {
    /// The fewest and the most.
    pub fn range(self) -> RangeInclusive<usize> {
        match self {
            Inputs::None => 0..=0,
            Inputs::One => 1..=1,
            Inputs::Optional => 0..=1,
            Inputs::Several => 1..=INPUTS_MAX,
        }
    }

    /// Whether a plan can start with the task.
    pub fn can_start(self) -> bool {
        *self.range().start() == 0
    }

    /// Whether the task can work on rows.
    pub fn can_follow(self) -> bool {
        *self.range().end() > 0
    }

    /// Whether the task stands on `ctx` in TypeScript.
    pub fn is_on_context(self) -> bool {
        self.can_start() || self == Inputs::Several
    }

    /// Whether the task stands on rows in TypeScript.
    pub fn is_on_rows(self) -> bool {
        self.can_follow() && self != Inputs::Several
    }
}

/// What becomes of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEffect {
    /// New rows out of nothing.
    Source,
    /// New rows for each input row; only the input columns that a parameter names come along.
    FanOut,
    /// The same rows in the same order.
    Same,
    /// Some of the rows, in order.
    Fewer,
    /// The same where this holds of the node's parameters; elsewhere all of the rows, in order.
    FewerWhere(When),
    /// All rows in another order.
    Reordered,
    /// The rows of the input, then those of the node-valued parameter.
    Appended,
    /// A new row for each group of rows, in the order of their first rows; of the input's columns only those that `reads` refers to come along.
    Grouped,
    /// The same where this holds of the node's parameters; elsewhere all of the rows, in order.
    GroupedWhere(When),
}

impl RowEffect {
    pub fn name(self) -> &'static str {
        match self {
            RowEffect::Source => "source",
            RowEffect::FanOut => "fan-out",
            RowEffect::Same => "same",
            RowEffect::Fewer | RowEffect::FewerWhere(_) => "fewer",
            RowEffect::Reordered => "reordered",
            RowEffect::Appended => "appended",
            RowEffect::Grouped | RowEffect::GroupedWhere(_) => "grouped",
        }
    }

    /// Whether the columns of the input are still there afterwards.
    pub fn keeps_columns(self) -> bool {
        !matches!(self, RowEffect::Source | RowEffect::FanOut | RowEffect::Grouped)
    }
}

/// Which keys have a column afterwards that may not have had one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Nothing,
    /// Any registered key: which ones is known only when they are read.
    AnyKey,
    /// The keys that these parameters name.
    Params(&'static [ParamRef]),
    /// The columns of the table that this parameter names.
    Table(ParamRef),
    /// These keys, by name, and those that these parameters name.
    Named(&'static [&'static str], &'static [ParamRef]),
}
