//! The steps of a program: each is one pass over a chunk of rows.

use crate::expr::operations::{Binary, IntBinary, IntUnary, Unary};
use crate::expr::tree::{Compare, Ix};
use crate::value::{Element, Type};
use hashbrown::HashSet;
use std::sync::Arc;

/// Where a step finds an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(u32),
    Column(u32),
    /// The value of this node is the same on all rows.
    Uniform(Ix),
}

/// One pass over a chunk. Operands are of the type that the step's name says.
#[derive(Debug)]
pub(super) enum Step {
    Widen(Operand),
    IntUnary(IntUnary, Operand),
    IntBinary(IntBinary, Operand, Operand),
    FloatUnary(Unary, Operand),
    FloatBinary(Binary, Operand, Operand),
    /// `a * b + c * d`, or `a * b + c`, each operation rounded: most scores are such sums, and need no pass for each product.
    FloatProducts(Operand, Operand, Operand, Option<Operand>),
    /// `a * b + coalesce(x, default) * by`, or with `a` alone, where the last two are the same on all rows.
    FloatBlend {
        a: Operand,
        b: Option<Operand>,
        x: Operand,
        default: Operand,
        by: Operand,
    },
    Coalesce(Type, Operand, Operand),
    If(Type, Operand, Operand, Operand),
    /// A function of values of any type; the node says which.
    Call {
        gives: Type,
        node: Ix,
        of: CallOf,
    },
    /// Its result is true or false.
    Test(Test),
}

impl Step {
    /// Whether it can take long for a single row.
    pub(super) fn may_take_long(&self) -> bool {
        matches!(
            self,
            Step::Test(Test::Match { .. } | Test::Member { .. }) | Step::Call { of: CallOf::Lists { .. }, .. }
        )
    }
}

/// What a call reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallOf {
    Ints(Operand),
    Floats(Operand),
    /// One text, or two; once per distinct text where only one differs by row.
    Texts {
        a: Operand,
        b: Option<Operand>,
        memo: u32,
    },
    /// A list, and another or an int.
    Lists {
        a: Operand,
        b: Option<Operand>,
    },
    Vectors {
        a: Operand,
        b: Operand,
    },
}

/// One pass over a chunk that gives true or false. There is no null among the results.
#[derive(Debug)]
pub(super) enum Test {
    And(Operand, Operand),
    Or(Operand, Operand),
    Not(Operand),
    CompareInts(Compare, Operand, Operand),
    CompareFloats(Compare, Operand, Operand),
    /// An int on the left, a float on the right, ordered exactly.
    CompareIntFloat(Compare, Operand, Operand),
    CompareBools(Compare, Operand, Operand),
    CompareStrings(Compare, Operand, Operand),
    /// A string against one that is the same on all rows: once per distinct string.
    CompareText {
        compare: Compare,
        x: Operand,
        text: Ix,
        memo: u32,
    },
    InInts(Operand, HashSet<i64>),
    InFloats(Operand, HashSet<u64>),
    InBools(Operand, [bool; 2]),
    InStrings {
        x: Operand,
        set: HashSet<Arc<str>>,
        memo: u32,
    },
    /// A test of two texts, which the node names: once per distinct text where only one differs by row.
    Texts {
        node: Ix,
        a: Operand,
        b: Operand,
        memo: u32,
    },
    /// Whether a value is in a list of such elements.
    Member {
        list: Operand,
        element: Element,
        x: Operand,
        of: Type,
    },
    IsNull(Type, Operand, bool),
    Match {
        x: Operand,
        node: Ix,
        memo: u32,
    },
}

#[derive(Debug)]
pub(super) struct Placed {
    pub(super) step: Step,
    pub(super) register: u32,
}

/// How many tables of what is known of symbols a program needs: for tests, and for functions of texts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memos {
    pub(super) tests: u32,
    pub(super) texts: u32,
}

impl Memos {
    /// Where those of the next program begin, when these begin here.
    pub(super) fn after(self, used: Memos) -> Memos {
        Memos { tests: self.tests + used.tests, texts: self.texts + used.texts }
    }
}

/// How many registers of each type a program needs at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registers {
    pub(super) ints: u32,
    pub(super) floats: u32,
    pub(super) bools: u32,
    pub(super) symbols: u32,
    pub(super) lists: u32,
    pub(super) vectors: u32,
    pub(super) masks: u32,
}
