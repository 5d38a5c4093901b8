//! The ids of a file's entries: all of them have one, or the file is new and none has. Then each gets its position.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::registry::table::Table;
use std::ops::Range;

/// Which entries of a file have an id.
pub(super) struct Ids {
    field: &'static str,
    given: usize,
    /// The entries without one.
    missing: Vec<Range<usize>>,
}

impl Ids {
    pub(super) fn new(field: &'static str) -> Ids {
        Ids { field, given: 0, missing: Vec::new() }
    }

    pub(super) fn note(&mut self, table: &Table<'_, '_>) {
        match table.has(self.field) {
            true => self.given += 1,
            false => self.missing.push(table.span()),
        }
    }

    /// Whether positions are the ids. In a file where only some entries have one, the others are reported.
    pub(super) fn are_new(self, found: &mut Diagnostics) -> bool {
        if self.given == 0 {
            return true;
        }
        for entry in self.missing {
            let message = format!("the field {:?} is missing, which other entries have", self.field);
            let missing = Diagnostic::new(Code::MissingRegistryField, "", message).bytes(entry);
            found.push(missing.help("`rankd registry fix` assigns and writes the ids that are missing"));
        }
        false
    }
}
