//! Text with places that a run fills in: the keys of a store, and paths. `{{` and `}}` stand for braces.
//!
//! Only what a template is made of is known here. What the names in it mean is found by the checks.

use rankd_column::Key;
use std::fmt;

/// A checked template: names are positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// As it is written.
    Text(Box<str>),
    /// The row's id.
    Id,
    /// The id of the user who asks.
    UserId,
    /// A parameter of the request, by its position in the registry: an int or a string.
    Param(u32),
    /// A key of the row: an int or a string.
    Key(Key),
}

impl Template {
    pub(crate) fn new(parts: Vec<TemplatePart>) -> Template {
        Template { parts }
    }

    pub fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// Whether it may be something else for each row.
    pub fn differs_by_row(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Id | TemplatePart::Key(_)))
    }

    /// The keys of the row that it reads, besides the id.
    pub fn keys(&self) -> Vec<Key> {
        self.parts.iter().filter_map(|part| if let TemplatePart::Key(key) = part { Some(*key) } else { None }).collect()
    }

    /// The parameters that it reads.
    pub fn params(&self) -> Vec<u32> {
        self.parts.iter().filter_map(|part| if let TemplatePart::Param(at) = part { Some(*at) } else { None }).collect()
    }
}

/// A part as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WrittenPart<'a> {
    Text(String),
    /// What stands between two braces.
    Name(&'a str),
}

/// Why a text is no template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadTemplate {
    /// There is no end to a place that begins at this byte.
    Open(usize),
    /// A brace ends nothing at this byte.
    Stray(usize),
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadTemplate::Open(at) => write!(f, "the {{ at byte {at} is not closed; a {{ for itself is written {{{{"),
            BadTemplate::Stray(at) => write!(f, "the }} at byte {at} closes nothing; a }} for itself is written }}}}"),
        }
    }
}

/// The parts of a text, from left to right.
pub(crate) fn parse(text: &str) -> Result<Vec<WrittenPart<'_>>, BadTemplate> {
    let (mut parts, mut plain, mut at) = (Vec::new(), String::new(), 0);
    while let Some(brace) = text[at..].find(['{', '}']).map(|offset| at + offset) {
        plain.push_str(&text[at..brace]);
        let doubled = text.as_bytes().get(brace + 1) == text.as_bytes().get(brace);
        if doubled {
            plain.push_str(&text[brace..=brace]);
            at = brace + 2;
            continue;
        }
        if text[brace..].starts_with('}') {
            return Err(BadTemplate::Stray(brace));
        }
        let end = text[brace..].find('}').ok_or(BadTemplate::Open(brace))?;
        if !plain.is_empty() {
            parts.push(WrittenPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(WrittenPart::Name(&text[brace + 1..brace + end]));
        at = brace + end + 1;
    }
    plain.push_str(&text[at..]);
    if !plain.is_empty() {
        parts.push(WrittenPart::Text(plain));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_doubled_and_everything_is_read_from_left_to_right() {
        let shown = |text: &str| {
            let parts = parse(text).unwrap();
            let show = |part: &WrittenPart<'_>| match part {
                WrittenPart::Text(text) => format!("{text:?}"),
                WrittenPart::Name(name) => format!("<{name}>"),
            };
            parts.iter().map(show).collect::<Vec<_>>().join(" ")
        };
        for (text, parts) in [
            ("movie:{id}", "\"movie:\" <id>"),
            ("{{{user_id}}}:history", "\"{\" <user_id> \"}:history\""),
            ("{a}{b}", "<a> <b>"),
            ("{{id}}", "\"{id}\""),
            ("{}", "<>"),
            ("", ""),
            ("ü{ü}ü", "\"ü\" <ü> \"ü\""),
            ("{a{b}", "<a{b>"),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
        assert_eq!(parse("a{b"), Err(BadTemplate::Open(1)));
        assert_eq!(parse("{"), Err(BadTemplate::Open(0)));
        assert_eq!(parse("a}b"), Err(BadTemplate::Stray(1)));
        assert_eq!(parse("{{a}"), Err(BadTemplate::Stray(3)));
    }
}
