//! The four value types and one value of any of them.
//!
//! `Value` is for the edges (constants, parameters, printing, tests). Nothing that runs once a row uses it.

use std::fmt;
use std::sync::Arc;

/// The type of a column, a parameter or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Int,
    Float,
    Bool,
    Str,
}

impl Type {
    /// The word used for this type in registries and messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Float => "float",
            Type::Bool => "bool",
            Type::Str => "string",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Float)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One cell: null or a value of one of the four types.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
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
        }
    }
}
