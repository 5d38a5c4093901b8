//! What a task says of a row that came in and did not come out. It is asked only where somebody wants to know: see [`crate::why`].

use crate::cursor::Served;
use rankd_column::expr::Program;
use rankd_column::{Key, RowSet, Value};
use rankd_plan::template::Template;
use std::ops::Range;
use std::sync::Arc;

/// A row that came in and did not come out.
pub struct LostRow<'a> {
    /// The inputs of the task, as it saw them.
    pub inputs: &'a [RowSet],
    /// The input that has the row, and its position there.
    pub input: usize,
    pub position: usize,
    /// The rows that came out.
    pub given: &'a RowSet,
    /// Where the plan's dials stood.
    pub dials: &'a [i64],
    /// The parameters of the request.
    pub params: &'a [Value],
    /// What the user was served on earlier pages, where the plan pages.
    pub served: Option<&'a Served>,
}

impl LostRow<'_> {
    /// Its value of a key.
    pub fn value(&self, key: Key) -> Value {
        self.inputs[self.input].value(key, self.position)
    }

    /// Whether a row that came out has its id.
    pub fn has_twin(&self) -> bool {
        let id = self.value(Key::ID);
        (0..self.given.len()).any(|at| self.given.value(Key::ID, at) == id)
    }
}

/// Why a row did not come out. Keys are those of the row, unless it says otherwise.
#[derive(Clone, Debug)]
pub enum Lost {
    /// The task does not say.
    Unsaid,
    /// This does not hold of it.
    Predicate(Arc<Program>),
    /// It does not stand at one of these positions of its input.
    Cut(Range<usize>),
    /// A row that came out has the same values of these keys.
    Same(Vec<Key>),
    /// So many rows that came out before it have the same value of this key: among the last `window - 1`, or all of them where that is 0.
    Full { by: Key, max: usize, window: usize },
    /// One of these keys has an id that is named there.
    Named { by: Vec<Key>, among: Among },
    /// None of these keys has an id that is named there.
    NotNamed { by: Vec<Key>, among: Among },
    /// No row of this input has its value of `left` as `right`, or that input has no row at all where there are no keys.
    NoMatch { on: Option<(Key, Key)>, input: usize },
    /// It was served on an earlier page.
    Served,
    /// There were so many rows before it.
    Enough(usize),
    /// Chance took so many others.
    Chance(usize),
    /// No place was left for it.
    NoPlace,
}

/// Where ids are named.
#[derive(Clone, Debug)]
pub enum Among {
    /// The ids of an input's rows.
    Input(usize),
    /// A list of the request, by the position of the parameter in the registry.
    Param(u32),
    /// What an endpoint has under a key.
    Stored { endpoint: u32, key: Arc<Template> },
}
