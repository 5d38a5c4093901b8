//! An expression in the words of its author: every part of a tree as a short text, such as `likes * 0.5 > P.least`.

use crate::request::Request;
use rankd_column::expr::operation::{Field, Holds};
use rankd_column::expr::{Op, Pattern, Program, Tree};
use rankd_column::{Key, RowSet, Value};
use rankd_plan::Registry;
use rankd_plan::template::{Template, TemplatePart};

/// The longest text of a part, in characters.
const TEXT_MAX: usize = 100;

/// The texts of all parts, in the order of the tree.
pub(super) fn words(tree: &Tree, registry: &Registry) -> Vec<String> {
    words_up_to(TEXT_MAX, tree, registry).into_iter().map(|word| word.text).collect()
}

/// A whole expression as plans write it, of so many characters at most. The registry is the one that it was checked with.
pub fn expression_text(program: &Program, registry: &Registry, text_max: usize) -> String {
    words_up_to(text_max, program.tree(), registry).pop().map_or_else(String::new, |word| word.text)
}

fn words_up_to(text_max: usize, tree: &Tree, registry: &Registry) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        let Word { text, is_whole } = word(&node.op, &words, registry);
        words.push(Word { text: shortened(text, text_max), is_whole });
    }
    words
}

/// What people call a key.
pub(super) fn key_name(key: Key, registry: &Registry) -> &str {
    &registry.key(key).name
}

struct Word {
    text: String,
    /// Whether it needs no brackets beside an operator.
    is_whole: bool,
}

fn word(op: &Op, before: &[Word], registry: &Registry) -> Word {
    let whole = |text: String| Word { text, is_whole: true };
    let joined = |text: String| Word { text, is_whole: false };
    let text = |ix: &u32| before.get(*ix as usize).map_or("", |word| word.text.as_str());
    let operand = |ix: &u32| match before.get(*ix as usize) {
        Some(Word { text, is_whole: true }) => text.clone(),
        Some(Word { text, is_whole: false }) => format!("({text})"),
        None => String::new(),
    };
    match op {
        Op::Const(value) => whole(literal(value)),
        Op::Truth(value) => whole(value.to_string()),
        Op::Key(key) => whole(key_name(*key, registry).to_owned()),
        Op::Param(param) => whole(format!("P.{}", registry.params.get(*param).name)),
        Op::NowMs => whole("now_ms".to_owned()),
        Op::UserId => whole("user_id".to_owned()),
        Op::Unary(_, x) => spelt(op, &[operand(x)], &[text(x)]),
        Op::Binary(_, a, b) => spelt(op, &[operand(a), operand(b)], &[text(a), text(b)]),
        Op::Clamp { x, lo, hi } => whole(format!("clamp({}, {}, {})", text(x), text(lo), text(hi))),
        Op::Coalesce(a, b) => joined(format!("{} ?? {}", operand(a), operand(b))),
        Op::If { cond, then, other } => joined(format!("{} ? {} : {}", operand(cond), operand(then), operand(other))),
        Op::Call { a, b, .. } => {
            let others = b.iter().map(|b| format!(", {}", text(b))).collect::<String>();
            whole(format!("{}({}{others})", op.operation().name, text(a)))
        }
        Op::And(a, b) => joined(format!("{} && {}", operand(a), operand(b))),
        Op::Or(a, b) => joined(format!("{} || {}", operand(a), operand(b))),
        Op::Not(x) => whole(format!("!{}", operand(x))),
        Op::Compare(compare, a, b) => joined(format!("{} {} {}", operand(a), compare.symbol(), operand(b))),
        Op::In(x, list) => {
            let some: Vec<String> = list.iter().take(8).map(literal).collect();
            let more = if list.len() > some.len() { ", …" } else { "" };
            joined(format!("{} in [{}{more}]", operand(x), some.join(", ")))
        }
        Op::Null { x, negated } => joined(format!("{} {} null", operand(x), if *negated { "!=" } else { "==" })),
        Op::Match { key, pattern, ignore_case } => {
            let flags = if *ignore_case { "i" } else { "" };
            let pattern = match pattern {
                Pattern::Literal(pattern) => format!("/{pattern}/{flags}"),
                Pattern::Param(param) => format!("P.{} {flags}", registry.params.get(*param).name),
            };
            joined(format!("{} matches {}", key_name(*key, registry), pattern.trim_end()))
        }
    }
}

/// An operation as plans write it: with its operator, or as a function.
fn spelt(op: &Op, operands: &[String], texts: &[&str]) -> Word {
    let operation = op.operation();
    let names = operation.fields.iter().filter(|field: &&Field| field.holds == Holds::Value).map(|field| field.name);
    let syntax = operation.script.syntax;
    if syntax.is_empty() {
        return Word { text: format!("{}({})", operation.name, texts.join(", ")), is_whole: true };
    }
    let mut written = String::new();
    let names: Vec<&str> = names.collect();
    for symbol in syntax.chars() {
        let name = symbol.to_string();
        match names.iter().position(|known| **known == *name).and_then(|at| operands.get(at)) {
            Some(operand) => written.push_str(operand),
            None => written.push(symbol),
        }
    }
    Word { text: written, is_whole: operands.len() == 1 }
}

/// A value as plans write it.
pub(super) fn literal(value: &Value) -> String {
    shortened(value.to_string(), TEXT_MAX)
}

/// A template as it is filled in for a row, or for none; nothing where a part of it is null, because then nothing is read.
pub(super) fn filled(template: &Template, row: Option<(&RowSet, usize)>, request: &Request) -> Option<String> {
    let of_row = |key: Key| row.map_or(Value::Null, |(rows, position)| rows.value(key, position));
    let part = |part: &TemplatePart| {
        let value = match part {
            TemplatePart::Text(text) => return Some(text.to_string()),
            TemplatePart::Id => of_row(Key::ID),
            TemplatePart::UserId => Value::from(&request.user_id),
            TemplatePart::Param(param) => request.params.get(*param as usize).cloned().unwrap_or(Value::Null),
            TemplatePart::Key(key) => of_row(*key),
        };
        plain(&value)
    };
    template.parts().iter().map(part).collect()
}

/// A value as it is written into a key; nothing for null.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Str(text) => Some(text.to_string()),
        other => Some(other.to_string()),
    }
}

/// A text of which so much is left that a line has room for it.
fn shortened(text: String, text_max: usize) -> String {
    match text.char_indices().nth(text_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
