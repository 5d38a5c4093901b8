//! What becomes of values about persons where something is written down: they are left out, or a salted hash takes their place.

use rankd_column::Value;
use rankd_column::value::List;
use rankd_plan::json::Writer;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// So many hexadecimal digits of a hash are written.
const DIGITS: usize = 32;

/// What is written in place of a value about a person.
#[derive(Clone, Debug, Default)]
pub enum Pii {
    /// Nothing.
    #[default]
    Omit,
    /// A hash, with this salt.
    Hash(Salt),
}

/// What goes before values that are hashed. It is shown nowhere.
#[derive(Clone)]
pub struct Salt(Arc<str>);

impl Salt {
    /// Of a text; nothing where that is empty.
    pub fn new(text: &str) -> Option<Salt> {
        (!text.is_empty()).then(|| Salt(text.into()))
    }

    /// The hash of a text.
    pub fn hash(&self, text: &str) -> String {
        let hash = Sha256::new_with_prefix(&*self.0).chain_update(b":").chain_update(text).finalize();
        hash.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The hash of a value; nothing where there is none.
    pub(crate) fn hash_value(&self, value: &Value) -> Option<String> {
        text_of(value).map(|text| self.hash(&text))
    }
}

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt(…)")
    }
}

/// A value as the text that is hashed: a number as JSON has it, lists and vectors as JSON arrays.
fn text_of(value: &Value) -> Option<String> {
    let numbers = |numbers: &mut dyn Iterator<Item = f64>| {
        let mut writer = Writer::new();
        writer.array(|w| {
            for number in numbers {
                w.float(number);
            }
        });
        writer.finish()
    };
    Some(match value {
        Value::Null => return None,
        Value::Int(value) => value.to_string(),
        Value::Float(value) => {
            let mut writer = Writer::new();
            writer.float(*value);
            writer.finish()
        }
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => text.to_string(),
        Value::Vector(vector) => numbers(&mut vector.iter().map(|value| f64::from(*value))),
        Value::List(list) => match &**list {
            List::Float(list) => numbers(&mut list.iter().copied()),
            List::Int(list) => {
                let mut writer = Writer::new();
                writer.array(|w| {
                    for value in list {
                        w.int(*value);
                    }
                });
                writer.finish()
            }
            List::Str(list) => {
                let mut writer = Writer::new();
                writer.array(|w| {
                    for text in list {
                        w.string(text);
                    }
                });
                writer.finish()
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_others_compute_and_no_salt_is_shown() {
        let salt = Salt::new("pepper").unwrap();
        // printf 'pepper:anna@example.org' | sha256sum
        assert_eq!(salt.hash("anna@example.org"), "5b6892c14c3ac800fd165a2a169691d3");
        assert_eq!(salt.hash_value(&Value::Int(7)), Some(salt.hash("7")));
        assert_eq!(salt.hash_value(&Value::Float(0.5)), Some(salt.hash("0.5")));
        assert_eq!(salt.hash_value(&Value::Null), None);
        assert_ne!(salt.hash("a"), Salt::new("salt").unwrap().hash("a"));
        assert_eq!(format!("{salt:?}"), "Salt(…)");
        assert!(Salt::new("").is_none());
    }
}
