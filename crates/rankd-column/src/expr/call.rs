//! What there is to know of a function of values of any type, as data: which operands it takes, what it gives, what it means.
//!
//! The rows are in [`crate::expr::operations`]. How operands reach a function is in `calls` and [`crate::expr::arrays`].

use crate::expr::operation::Nulls;
use crate::kernel::similarity::Similarity;
use crate::value::{Element, Type};

/// Which types an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Int,
    Text,
    IntOrText,
    NumberOrText,
    List,
    NumberList,
    /// A list like the one before it.
    SameList,
    TextOrList,
    /// After a list something that can be in it, after a text a text.
    Member,
    Vector,
    /// A vector of the dimension of the one before it.
    SameVector,
}

impl Takes {
    /// How messages and the documentation call it.
    pub fn name(self) -> &'static str {
        match self {
            Takes::Int => "an int",
            Takes::Text => "a string",
            Takes::IntOrText => "an int or a string",
            Takes::NumberOrText => "a number or a string",
            Takes::List => "a list",
            Takes::NumberList => "a list of numbers",
            Takes::SameList => "a list of the same type",
            Takes::TextOrList => "a string or a list",
            Takes::Member => "a string or an element",
            Takes::Vector => "a vector",
            Takes::SameVector => "a vector of the same dimension",
        }
    }

    pub fn fits(self, type_of: Type) -> bool {
        match self {
            Takes::Int => type_of == Type::Int,
            Takes::Text => type_of == Type::Str,
            Takes::IntOrText => matches!(type_of, Type::Int | Type::Str),
            Takes::NumberOrText | Takes::Member => matches!(type_of, Type::Int | Type::Float | Type::Str),
            Takes::List | Takes::SameList => matches!(type_of, Type::List(_)),
            Takes::NumberList => matches!(type_of, Type::List(Element::Int | Element::Float)),
            Takes::TextOrList => matches!(type_of, Type::Str | Type::List(_)),
            Takes::Vector | Takes::SameVector => matches!(type_of, Type::Vector(_)),
        }
    }

    /// Whether a type that is taken goes with that of the operand before it.
    pub fn agrees(self, before: Type, type_of: Type) -> bool {
        match self {
            Takes::SameList | Takes::SameVector => before == type_of,
            Takes::Member => {
                let element = match before {
                    Type::List(element) => element.type_of(),
                    other => other,
                };
                element == type_of || element.is_number() && type_of.is_number()
            }
            Takes::Int | Takes::Text | Takes::IntOrText | Takes::NumberOrText | Takes::List => true,
            Takes::NumberList | Takes::TextOrList | Takes::Vector => true,
        }
    }
}

/// What a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Int,
    Float,
    Text,
    /// What its first operand has as elements.
    Element,
    /// True or false: it is a predicate.
    Truth,
}

impl Gives {
    pub fn name(self) -> &'static str {
        match self {
            Gives::Int => "int",
            Gives::Float => "float",
            Gives::Text => "string",
            Gives::Element => "as an element",
            Gives::Truth => "true or false",
        }
    }

    pub(super) const fn nulls(self) -> Nulls {
        match self {
            Gives::Int | Gives::Float | Gives::Text | Gives::Element => Nulls::Pass,
            Gives::Truth => Nulls::False,
        }
    }
}

/// What a call means for one row.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Of one text.
    Text(fn(&str) -> CallResult),
    /// Of one number or text.
    Scalar { int: fn(i64) -> CallResult, float: fn(f64) -> CallResult, text: fn(&str) -> CallResult },
    /// A text and one after it.
    Append,
    /// Of two texts.
    Test(fn(&str, &str) -> bool),
    /// Of the text `salt:x`.
    Salted(fn(&[u8]) -> CallResult),
    /// Of two texts; or whether a list has an element.
    Contains(fn(&str, &str) -> bool),
    /// How many elements a list has.
    Size,
    /// Of a list of numbers.
    Numbers { ints: fn(&[i64]) -> CallResult, floats: fn(&[f64]) -> CallResult },
    /// The element at a position of a list.
    At,
    /// How many distinct elements of a list are in another.
    Overlap,
    /// Of two vectors.
    Vectors(Similarity),
}

/// What a call makes of its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum CallResult {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    /// An int that does not fit 64 bits.
    Overflow,
}
