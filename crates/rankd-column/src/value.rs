//! The value types and one value of any of them.
//!
//! `Value` is for the edges (constants, parameters, printing, tests). Nothing that runs once a row uses it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The most elements that one list has.
pub const ELEMENTS_MAX: usize = 10_000;

/// The most numbers that one vector has.
pub const DIMENSION_MAX: u16 = 4_096;

/// The type of a column, a parameter or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Int,
    Float,
    Bool,
    Str,
    /// Any number of values of one type, none of them null.
    List(Element),
    /// So many finite numbers.
    Vector(u16),
}

/// The type of a list's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    Int,
    Float,
    Str,
}

impl Element {
    /// The type of one element by itself.
    pub fn type_of(self) -> Type {
        match self {
            Element::Int => Type::Int,
            Element::Float => Type::Float,
            Element::Str => Type::Str,
        }
    }
}

impl Type {
    /// How registries write the types; `N` stands for a number.
    pub const NAMES: [&str; 8] =
        ["int", "float", "bool", "string", "list<int>", "list<float>", "list<string>", "vector<N>"];

    pub fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Float)
    }

    /// Whether a value is a single one: it can be sorted by and compared with others.
    pub fn is_scalar(self) -> bool {
        match self {
            Type::Int | Type::Float | Type::Bool | Type::Str => true,
            Type::List(_) | Type::Vector(_) => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int => f.write_str("int"),
            Type::Float => f.write_str("float"),
            Type::Bool => f.write_str("bool"),
            Type::Str => f.write_str("string"),
            Type::List(element) => write!(f, "list<{}>", element.type_of()),
            Type::Vector(dimension) => write!(f, "vector<{dimension}>"),
        }
    }
}

/// Why a text names no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAType {
    Unknown,
    /// A vector without numbers, or with too many, or whose number is not written in plain digits.
    BadDimension,
    /// A list of something that lists do not hold.
    BadElement,
}

impl std::error::Error for NotAType {}

impl fmt::Display for NotAType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAType::Unknown => f.write_str("there is no such type"),
            NotAType::BadDimension => write!(f, "a vector has 1 to {DIMENSION_MAX} numbers, as in vector<64>"),
            NotAType::BadElement => f.write_str("a list holds int, float or string"),
        }
    }
}

impl FromStr for Type {
    type Err = NotAType;

    fn from_str(name: &str) -> Result<Type, NotAType> {
        let inside = |outside: &str| name.strip_prefix(outside)?.strip_prefix('<')?.strip_suffix('>');
        if let Some(dimension) = inside("vector") {
            let plain = dimension.bytes().all(|byte| byte.is_ascii_digit()) && !dimension.starts_with('0');
            let dimension = dimension.parse().ok().filter(|n| plain && (1..=DIMENSION_MAX).contains(n));
            return dimension.map(Type::Vector).ok_or(NotAType::BadDimension);
        }
        if let Some(element) = inside("list") {
            return match element {
                "int" => Ok(Type::List(Element::Int)),
                "float" => Ok(Type::List(Element::Float)),
                "string" => Ok(Type::List(Element::Str)),
                _ => Err(NotAType::BadElement),
            };
        }
        match name {
            "int" => Ok(Type::Int),
            "float" => Ok(Type::Float),
            "bool" => Ok(Type::Bool),
            "string" => Ok(Type::Str),
            "vector" => Err(NotAType::BadDimension),
            "list" => Err(NotAType::BadElement),
            _ => Err(NotAType::Unknown),
        }
    }
}

/// One cell: null or a value of one of the types.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    List(Arc<List>),
    Vector(Arc<[f32]>),
}

/// The elements of one list.
#[derive(Clone, Debug, PartialEq)]
pub enum List {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Str(Vec<Arc<str>>),
}

impl List {
    pub fn element(&self) -> Element {
        match self {
            List::Int(_) => Element::Int,
            List::Float(_) => Element::Float,
            List::Str(_) => Element::Str,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            List::Int(list) => list.len(),
            List::Float(list) => list.len(),
            List::Str(list) => list.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value {
    /// The type, or `None` for null.
    pub fn type_of(&self) -> Option<Type> {
        match self {
            Value::Null => None,
            Value::Int(_) => Some(Type::Int),
            Value::Float(_) => Some(Type::Float),
            Value::Bool(_) => Some(Type::Bool),
            Value::Str(_) => Some(Type::Str),
            Value::List(list) => Some(Type::List(list.element())),
            Value::Vector(vector) => Some(Type::Vector(u16::try_from(vector.len()).unwrap_or(u16::MAX))),
        }
    }

    pub fn str(text: &str) -> Value {
        Value::Str(text.into())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Str(v) => write!(f, "{v:?}"),
            Value::List(list) => match &**list {
                List::Int(list) => write!(f, "{list:?}"),
                List::Float(list) => write!(f, "{list:?}"),
                List::Str(list) => write!(f, "{list:?}"),
            },
            Value::Vector(vector) => write!(f, "{vector:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_as_it_is_written() {
        let lists = [Element::Int, Element::Float, Element::Str].map(Type::List);
        let vectors = [1, 64, 999, DIMENSION_MAX].map(Type::Vector);
        for type_of in [Type::Int, Type::Float, Type::Bool, Type::Str].into_iter().chain(lists).chain(vectors) {
            assert_eq!(type_of.to_string().parse(), Ok(type_of));
        }
        for name in Type::NAMES {
            assert!(name.replace('N', "8").parse::<Type>().is_ok(), "{name}");
        }
    }

    #[test]
    fn lists_and_vectors_make_no_value_larger() {
        assert_eq!((size_of::<Type>(), size_of::<Value>()), (4, 24));
    }

    #[test]
    fn a_text_that_is_almost_a_type_is_told_what_it_lacks() {
        for name in ["vector", "vector<>", "vector<0>", "vector<064>", "vector<+4>", "vector<4097>", "vector<99999999>"]
        {
            assert_eq!(name.parse::<Type>(), Err(NotAType::BadDimension), "{name}");
        }
        for name in ["list", "list<>", "list<bool>", "list<list<int>>", "list<vector<3>>", "list< int>"] {
            assert_eq!(name.parse::<Type>(), Err(NotAType::BadElement), "{name}");
        }
        for name in ["", "str", "Int", "list<int", "vector64", "vector<64> ", "list <int>"] {
            assert_eq!(name.parse::<Type>(), Err(NotAType::Unknown), "{name}");
        }
    }
}
