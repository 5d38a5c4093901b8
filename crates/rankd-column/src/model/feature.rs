//! What a model reads: names, and for some features the categories that they were trained on.

use crate::value::Type;
use hashbrown::HashMap;

#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Empty where the file has no names.
    pub name: String,
    pub kind: FeatureKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FeatureKind {
    /// A number; a category that the file does not list is the number that stands for it.
    Number,
    /// One of these values; what the trees see is its position.
    Category(Categories),
}

/// The values of a categorical feature, each with its position.
#[derive(Clone, Debug, PartialEq)]
pub enum Categories {
    Str(HashMap<Box<str>, u32>),
    Int(HashMap<i64, u32>),
    Bool([Option<u32>; 2]),
}

impl Feature {
    pub fn number(name: impl Into<String>) -> Feature {
        Feature { name: name.into(), kind: FeatureKind::Number }
    }

    /// Whether a column of this type can be read as this feature.
    pub fn takes(&self, type_of: Type) -> bool {
        match (&self.kind, type_of) {
            (FeatureKind::Number, Type::Int | Type::Float | Type::Bool) => true,
            (FeatureKind::Category(Categories::Str(_)), Type::Str) => true,
            (FeatureKind::Category(Categories::Int(_)), Type::Int) => true,
            (FeatureKind::Category(Categories::Bool(_)), Type::Bool) => true,
            (
                FeatureKind::Number | FeatureKind::Category(_),
                Type::Int | Type::Float | Type::Bool | Type::Str | Type::List(_) | Type::Vector(_),
            ) => false,
        }
    }

    /// The types that it takes, for a message.
    pub fn wants(&self) -> &'static str {
        match self.kind {
            FeatureKind::Number => "an int, a float or a bool",
            FeatureKind::Category(Categories::Str(_)) => "a string",
            FeatureKind::Category(Categories::Int(_)) => "an int",
            FeatureKind::Category(Categories::Bool(_)) => "a bool",
        }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let kind = match &self.kind {
            FeatureKind::Number | FeatureKind::Category(Categories::Bool(_)) => 0,
            FeatureKind::Category(Categories::Str(texts)) => texts.keys().map(|text| text.len() + 32).sum(),
            FeatureKind::Category(Categories::Int(ints)) => ints.len() * 24,
        };
        size_of::<Feature>() + self.name.len() + kind
    }
}

impl Categories {
    /// Of texts in their order. `None` where one comes twice.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Categories> {
        let mut found = HashMap::new();
        texts.into_iter().zip(0..).all(|(text, at)| found.insert(text.into(), at).is_none()).then_some(())?;
        Some(Categories::Str(found))
    }

    /// Of ints in their order. `None` where one comes twice.
    pub fn of_ints(ints: impl IntoIterator<Item = i64>) -> Option<Categories> {
        let mut found = HashMap::new();
        ints.into_iter().zip(0..).all(|(int, at)| found.insert(int, at).is_none()).then_some(())?;
        Some(Categories::Int(found))
    }

    /// Of bools in their order. `None` where one comes twice.
    pub fn of_bools(bools: impl IntoIterator<Item = bool>) -> Option<Categories> {
        let mut found = [None; 2];
        bools.into_iter().zip(0..).all(|(value, at)| found[usize::from(value)].replace(at).is_none()).then_some(())?;
        Some(Categories::Bool(found))
    }

    /// What the trees see of a text. A value that the list lacks is missing.
    pub(super) fn of_text(&self, text: &str) -> f64 {
        match self {
            Categories::Str(texts) => position(texts.get(text).copied()),
            Categories::Int(_) | Categories::Bool(_) => f64::NAN,
        }
    }

    pub(super) fn of_int(&self, int: i64) -> f64 {
        match self {
            Categories::Int(ints) => position(ints.get(&int).copied()),
            Categories::Str(_) | Categories::Bool(_) => f64::NAN,
        }
    }

    pub(super) fn of_bool(&self, value: bool) -> f64 {
        match self {
            Categories::Bool(bools) => position(bools[usize::from(value)]),
            Categories::Str(_) | Categories::Int(_) => f64::NAN,
        }
    }
}

fn position(at: Option<u32>) -> f64 {
    at.map_or(f64::NAN, f64::from)
}
