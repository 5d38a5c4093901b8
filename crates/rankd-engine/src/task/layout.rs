//! What a task reads of a store, for those who look at some of it without a run: which keys, how, and which values it cannot use.

use crate::store::{KeyedRead, Replies};
use rankd_column::Type;
use rankd_plan::Registry;
use rankd_plan::template::{Template, TemplatePart};

/// What a task reads of an endpoint.
pub struct StoredLayout<'t> {
    /// The endpoint's position in the registry.
    pub endpoint: u32,
    pub keys: KeyPattern,
    pub read: KeyedRead<'t>,
    /// Names the values that it cannot use of the reply at a position.
    pub inspect: Inspect<'t>,
}

/// Calls back for each value that a task cannot use.
pub type Inspect<'t> = Box<dyn Fn(&Replies, usize, &mut dyn FnMut(Misread<'_>)) + 't>;

/// A value that is not of its key's type.
#[derive(Clone, Copy, Debug)]
pub struct Misread<'a> {
    /// What the registry calls the key.
    pub key: &'a str,
    pub type_of: Type,
    pub value: &'a [u8],
}

/// Keys that a template can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern(Vec<KeyPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyPart {
    Text(Box<str>),
    Int,
    /// Text without a colon: what is behind one mostly belongs to another layout.
    Name,
}

/// The longest key that a pattern is compared with; no task reads a longer one.
const KEY_BYTES_MAX: usize = 1024;

impl KeyPattern {
    /// The keys that a template gives.
    pub fn of(template: &Template, registry: &Registry) -> KeyPattern {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => KeyPart::Text(text.clone()),
            TemplatePart::Id | TemplatePart::UserId => id(registry),
            TemplatePart::Param(at) => filled_with(registry.params.get(*at).type_of),
            TemplatePart::Key(key) => filled_with(registry.key(*key).type_of),
        };
        KeyPattern(template.parts().iter().map(part).collect())
    }

    /// The keys `{prefix}:{id}`.
    pub fn of_prefix(prefix: &str, registry: &Registry) -> KeyPattern {
        KeyPattern(vec![KeyPart::Text(format!("{prefix}:").into()), id(registry)])
    }

    /// The same as a pattern of Redis, which some keys fit that are none of them.
    pub fn glob(&self) -> Vec<u8> {
        let mut glob = Vec::new();
        for part in &self.0 {
            match part {
                KeyPart::Text(text) => text.bytes().for_each(|byte| {
                    if b"*?[]\\".contains(&byte) {
                        glob.push(b'\\');
                    }
                    glob.push(byte);
                }),
                KeyPart::Int | KeyPart::Name => glob.push(b'*'),
            }
        }
        glob
    }

    /// Whether a key is one of them.
    pub fn matches(&self, key: &[u8]) -> bool {
        if key.len() > KEY_BYTES_MAX {
            return false;
        }
        // Where what is left of the key may begin.
        let mut starts = vec![0];
        for part in &self.0 {
            let mut next: Vec<usize> = Vec::new();
            for start in starts {
                let rest = &key[start..];
                match part {
                    KeyPart::Text(text) => next.extend(rest.starts_with(text.as_bytes()).then_some(start + text.len())),
                    KeyPart::Int => {
                        let sign = usize::from(rest.first() == Some(&b'-'));
                        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                        next.extend((1..=digits).map(|digits| start + sign + digits));
                    }
                    KeyPart::Name => {
                        let length = rest.iter().take_while(|byte| **byte != b':').count();
                        next.extend((1..=length).map(|length| start + length));
                    }
                }
            }
            next.sort_unstable();
            next.dedup();
            starts = next;
        }
        starts.contains(&key.len())
    }
}

fn id(registry: &Registry) -> KeyPart {
    if registry.has_text_ids() { KeyPart::Name } else { KeyPart::Int }
}

fn filled_with(type_of: Type) -> KeyPart {
    if type_of == Type::Int { KeyPart::Int } else { KeyPart::Name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_keys_that_a_template_gives() {
        let text = |text: &str| KeyPart::Text(text.into());
        let history = KeyPattern(vec![text("user:"), KeyPart::Int, text(":history")]);
        let named = KeyPattern(vec![text("{"), KeyPart::Name, text("}:a*"), KeyPart::Name]);
        let any = KeyPattern(vec![KeyPart::Int, KeyPart::Int]);
        for (pattern, good, bad) in [
            (
                &history,
                &["user:7:history", "user:-12:history"][..],
                &["user:x:history", "user::history", "user:7", "user:7:history:1"][..],
            ),
            (&named, &["{tt1}:a*b", "{é}:a*é"], &["{tt1}:ab", "{tt1}:a*", "{a:b}:a*c"]),
            (&any, &["12", "1-2"], &["1", "1x", ""]),
        ] {
            good.iter().for_each(|key| assert!(pattern.matches(key.as_bytes()), "{key}"));
            bad.iter().for_each(|key| assert!(!pattern.matches(key.as_bytes()), "{key}"));
        }
        assert_eq!(history.glob(), b"user:*:history");
        assert_eq!(named.glob(), b"{*}:a\\**");
        assert!(!KeyPattern(vec![KeyPart::Name; 20]).matches("a".repeat(2_000_000).as_bytes()));
    }
}
