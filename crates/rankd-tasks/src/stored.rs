//! What `hydrate` and `expand` have in common in how they read what is stored: ids, orders and scores.

use rankd_column::column::ColumnBuilder;
use rankd_column::id_texts::IdCoder;
use rankd_column::{IdFault, IdTexts, Type};
use rankd_engine::error::TaskError;
use rankd_engine::store::parse_id;
use rankd_plan::choices;
use rankd_plan::json::{Kind, Number, Reader};

choices! {
    /// From which end of the scores a sorted set is read: whether from the highest.
    pub(crate) enum ScoreOrder -> bool { "asc" => false, "desc" => true }
}

/// Reads ids as rows hold them: ints, or codes of the run where ids are texts.
pub(crate) enum IdReader<'a> {
    Ints,
    Texts(IdCoder<'a>),
}

impl<'a> IdReader<'a> {
    pub(crate) fn new(texts: Option<&'a IdTexts>) -> IdReader<'a> {
        texts.map_or(IdReader::Ints, |texts| IdReader::Texts(texts.coder()))
    }

    /// The id that some bytes are; `None` where they are none.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Option<i64>, TaskError> {
        match self {
            IdReader::Ints => Ok(parse_id(bytes)),
            IdReader::Texts(coder) => match coder.code_of_bytes(bytes) {
                Ok(id) => Ok(Some(id)),
                Err(fault @ IdFault::TooMany) => Err(TaskError::id(fault)),
                Err(_) => Ok(None),
            },
        }
    }

    /// The same for JSON: a string, or an int, which is the id that its digits are.
    pub(crate) fn read_json(&mut self, text: &str) -> Result<Option<i64>, TaskError> {
        let mut reader = Reader::new(text, 1);
        match reader.peek() {
            Ok(Kind::Number) => match reader.number() {
                Ok(Number::Int(id)) => self.read(id.to_string().as_bytes()),
                Ok(Number::Float(_) | Number::OutOfRange) | Err(_) => Ok(None),
            },
            Ok(Kind::String) => match reader.string() {
                Ok(id) => self.read(id.as_bytes()),
                Err(_) => Ok(None),
            },
            Ok(Kind::Null | Kind::Bool | Kind::Array | Kind::Object) | Err(_) => Ok(None),
        }
    }

    /// Puts elements in the order of their ids: ints as numbers, texts by their bytes, and those of the same id by their bytes.
    pub(crate) fn sort<T>(&self, elements: &mut [T], of: impl Fn(&T) -> (i64, &[u8])) {
        match self {
            IdReader::Ints => elements.sort_unstable_by(|a, b| of(a).cmp(&of(b))),
            IdReader::Texts(_) => elements.sort_unstable_by(|a, b| of(a).1.cmp(of(b).1)),
        }
    }
}

/// Adds the score of a member. One that is not finite, or no int where the column has ints, becomes null, and the answer is false.
pub(crate) fn push_score(column: &mut ColumnBuilder, type_of: Type, text: &[u8]) -> bool {
    let score = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    let whole = |score: &f64| score.fract() == 0.0 && (-9.2e18..9.2e18).contains(score);
    let added = match (type_of, score) {
        (Type::Int, Some(score)) if whole(&score) => column.push_int(score as i64),
        (Type::Float, Some(score)) => column.push_float(score),
        _ => false,
    };
    if !added {
        column.push_null();
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::Value;

    #[test]
    fn a_score_is_finite_and_fits_its_key() {
        for (type_of, text, value) in [
            (Type::Float, "1.5", Value::Float(1.5)),
            (Type::Float, "0.10000000000000001", Value::Float(0.1)),
            (Type::Float, "-inf", Value::Null),
            (Type::Float, "nan", Value::Null),
            (Type::Float, "x", Value::Null),
            (Type::Int, "3", Value::Int(3)),
            (Type::Int, "1e+17", Value::Int(100_000_000_000_000_000)),
            (Type::Int, "1.5", Value::Null),
            (Type::Int, "1e19", Value::Null),
        ] {
            let mut column = ColumnBuilder::new(type_of, 1);
            assert_eq!(push_score(&mut column, type_of, text.as_bytes()), value != Value::Null, "{text}");
            assert_eq!(column.finish().value(0), value, "{text}");
        }
    }
}
