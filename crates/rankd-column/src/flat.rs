//! The elements of all lists of a column, and the numbers of all its vectors, side by side.
//!
//! A cell of such a column is a few bytes that say where its elements are, so that moving cells moves no elements, and columns
//! made of one another share them. Elements that no cell points at any more mean nothing.

use crate::dictionary::Dictionary;
use crate::value::{Element, List};
use hashbrown::HashSet;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

/// Where the elements of one list are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    /// A list of `len` elements from `start` on. Panics beyond what 32 bits can say: builders refuse such a list.
    pub fn new(start: usize, len: usize) -> Span {
        assert!(u32::try_from(start + len).is_ok(), "more elements than a span can number");
        Span { start: start as u32, len: len as u32 }
    }

    pub fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }
}

/// The elements of many lists.
#[derive(Clone, Debug)]
pub enum Elements {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Str(Vec<u32>, Arc<Dictionary>),
}

impl Elements {
    /// Those of lists that are not there.
    pub(crate) fn none(element: Element) -> Elements {
        match element {
            Element::Int => Elements::Int(Vec::new()),
            Element::Float => Elements::Float(Vec::new()),
            Element::Str => Elements::Str(Vec::new(), Arc::default()),
        }
    }

    pub fn element(&self) -> Element {
        match self {
            Elements::Int(_) => Element::Int,
            Elements::Float(_) => Element::Float,
            Elements::Str(..) => Element::Str,
        }
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        match self {
            Elements::Int(values) => size_of_val(&**values),
            Elements::Float(values) => size_of_val(&**values),
            Elements::Str(codes, dictionary) => size_of_val(&**codes) + dictionary.bytes(),
        }
    }

    /// How many there are, of all lists.
    pub fn len(&self) -> usize {
        match self {
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
            Elements::Str(codes, _) => codes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a list with the elements of these lists, each once, in the order in which they come.
    pub(crate) fn push_union(&mut self, lists: &[Span]) -> Span {
        let start = self.len();
        match self {
            Elements::Int(values) => extend_once(values, lists, |value| *value),
            Elements::Float(values) => extend_once(values, lists, |value| (value + 0.0).to_bits()),
            Elements::Str(codes, _) => extend_once(codes, lists, |code| *code),
        }
        Span::new(start, self.len() - start)
    }

    /// One list, copied out.
    pub fn list(&self, span: Span) -> List {
        match self {
            Elements::Int(values) => List::Int(values[span.range()].to_vec()),
            Elements::Float(values) => List::Float(values[span.range()].to_vec()),
            Elements::Str(codes, dictionary) => {
                List::Str(codes[span.range()].iter().map(|&code| dictionary.get(code).into()).collect())
            }
        }
    }
}

/// Appends those elements of some lists whose key was not there before.
fn extend_once<T: Copy, K: Eq + Hash>(values: &mut Vec<T>, lists: &[Span], key: impl Fn(&T) -> K) {
    let mut seen = HashSet::new();
    for at in lists.iter().flat_map(|list| list.range()) {
        let value = values[at];
        if seen.insert(key(&value)) {
            values.push(value);
        }
    }
}

/// Vectors of one dimension, numbered from 0.
#[derive(Clone, Debug)]
pub struct Vectors {
    dimension: u16,
    values: Vec<f32>,
}

impl Vectors {
    /// Vectors one after the other. Panics where the last one is not whole: that is a bug in the caller.
    pub fn new(dimension: u16, values: Vec<f32>) -> Vectors {
        assert!(dimension > 0 && values.len().is_multiple_of(usize::from(dimension)), "a vector that is not whole");
        Vectors { dimension, values }
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }

    pub fn dimension(&self) -> u16 {
        self.dimension
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.values.len() / usize::from(self.dimension)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The numbers of the vector with this number.
    #[inline]
    pub fn get(&self, at: u32) -> &[f32] {
        let dimension = usize::from(self.dimension);
        &self.values[at as usize * dimension..][..dimension]
    }

    /// The numbers of all vectors.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}
