//! What the random choices of a run follow from.
//!
//! A choice is a hash of the seed, the node and the row ([`rankd_column::kernel::draws`]), so that the same seed chooses the same rows. A
//! request may bring one. Otherwise it is a hash of the request's id: requests differ, and yet each can be run again.

use rankd_column::kernel::draws::hash_of_text;
use std::borrow::Cow;
use std::sync::Arc;

/// A number or a text; a number is the same seed as its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seed {
    Int(i64),
    Text(Arc<str>),
}

impl Seed {
    /// Of a request that brings none. A text, because not every reader of JSON can tell numbers of 64 bits apart.
    pub fn of_request(request_id: &str) -> Seed {
        Seed::Text(format!("{:016x}", hash_of_text(request_id)).into())
    }

    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Seed::Int(number) => number.to_string().into(),
            Seed::Text(text) => Cow::Borrowed(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_seed_has_that_of_its_id() {
        assert_eq!(Seed::of_request(""), Seed::Text("ef46db3751d8e999".into()));
        assert_ne!(Seed::of_request("a"), Seed::of_request("b"));
        assert_eq!(Seed::Int(-7).text(), Seed::Text("-7".into()).text());
    }
}
