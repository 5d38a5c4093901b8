//! A case with other ids: each int becomes a text of 19 digits, wherever it is an id, so that texts are ordered as the ints were.
//!
//! What is no id among ints becomes something that is no id among texts. A case with a registry of its own is left out: there, lists may
//! be values.

use crate::markdown::{Block, Case};
use rankd_plan::json::{Kind, Reader, push_string};

/// The case with text ids; nothing where it computes with ids, or says so in a plan that is not JSON.
pub(crate) fn mapped(case: &Case) -> Option<Case> {
    let mut case = case.clone();
    if case.block("registry/keys.toml").is_some() {
        return None;
    }
    let keys = std::fs::read_to_string(crate::repository().join("registry/keys.toml"));
    let keys = registry(&keys.expect("the registry can be read"));
    case.blocks.push(Block::new("toml", "registry/keys.toml", keys));
    if case.block("request").is_none() {
        case.blocks.push(Block::new("json", "request", "{\"user_id\": 1}\n".to_owned()));
    }
    for block in &mut case.blocks {
        let lines = |map: fn(&mut Json)| {
            let map = |line: &str| if line.starts_with('{') { Json::rewritten(line, map) } else { line.to_owned() };
            block.text.lines().map(|line| map(line) + "\n").collect::<String>()
        };
        block.text = match (block.language.as_str(), block.role.as_str()) {
            ("json", "plan") => {
                let mut plan = Json::read(&mut Reader::new(&block.text, 64));
                if computes_with_ids(&plan) {
                    return None;
                }
                map_plan(&mut plan);
                plan.text()
            }
            (_, "plan") => return None,
            (_, "request") => lines(map_request),
            (_, "gives") => lines(map_row),
            (_, "error") => map_error(&block.text),
            (_, "data/demo.ndjson") => lines(map_data),
            _ => continue,
        };
    }
    Some(case)
}

/// An int as the text that stands for it. Those below zero come first.
fn text_of(id: i64) -> String {
    if id >= 0 { format!("{id:019}") } else { format!("-{:019}", id.abs_diff(i64::MIN)) }
}

/// A text that is an id where ids are ints, as the other text that stands for it.
fn other_text(text: &str) -> Option<String> {
    let is_int = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    is_int.then(|| text.parse().ok()).flatten().map(text_of)
}

/// The type of `id` and `parent_id` in a registry.
fn registry(text: &str) -> String {
    let is_id = |entry: &str| ["id", "parent_id"].iter().any(|name| entry.contains(&format!("name = \"{name}\"\n")));
    let entries = text.split("[[key]]").map(|entry| match is_id(entry) {
        true => entry.replace("type = \"int\"", "type = \"string\""),
        false => entry.to_owned(),
    });
    entries.collect::<Vec<_>>().join("[[key]]")
}

const IDS: [&str; 2] = ["id", "parent_id"];

/// Whether an expression or a predicate of the plan reads an id.
fn computes_with_ids(plan: &Json) -> bool {
    let reads = |node: &Json| {
        let named = |field: &str| matches!(node.field(field), Some(Json::Text(name)) if IDS.contains(&name.as_str()));
        named("key") || named("name") || matches!(node.field("op"), Some(Json::Text(op)) if op == "user_id")
    };
    ["expr_table", "pred_table"].iter().filter_map(|table| plan.field(table)).any(|table| table.any(&reads))
}

fn map_plan(plan: &mut Json) {
    let Some(Json::Array(nodes)) = plan.field_mut("nodes") else { return };
    for node in nodes {
        if !matches!(node.field("op"), Some(Json::Text(op)) if op == "fixed_source") {
            continue;
        }
        if node.field("params").is_none()
            && let Json::Object(fields) = node
        {
            fields.push(("params".to_owned(), Json::Object(Vec::new())));
        }
        let Some(params) = node.field_mut("params") else { continue };
        for name in IDS {
            if let Some(values) = params.field_mut("columns").and_then(|columns| columns.field_mut(name)) {
                values.map_ids();
            }
        }
        match params.field_mut("ids") {
            Some(ids) => ids.map_ids(),
            None => {
                let count = match params.field("row_count") {
                    Some(Json::Other(count)) => count.parse().expect("a number of rows"),
                    _ => 1,
                };
                let ids = (1..=count).map(|id| Json::Text(text_of(id))).collect();
                let Json::Object(params) = params else { continue };
                params.push(("ids".to_owned(), Json::Array(ids)));
            }
        }
    }
}

fn map_request(request: &mut Json) {
    if let Some(user) = request.field_mut("user_id") {
        user.map_ids();
    }
    if let Some(Json::Array(rows)) = request.field_mut("candidates") {
        rows.iter_mut().for_each(map_row);
    }
}

fn map_row(row: &mut Json) {
    IDS.iter().for_each(|name| row.field_mut(name).into_iter().for_each(Json::map_ids));
}

/// A line of a store: ids are parts of keys, elements of collections, and the fields that are called so.
fn map_data(line: &mut Json) {
    let Json::Object(fields) = line else { return };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("key", Json::Text(key)) => {
                let parts = key.split_inclusive([':', '{', '}']).map(|part| {
                    let id = part.trim_end_matches([':', '{', '}']);
                    other_text(id).map_or(part.to_owned(), |text| text + &part[id.len()..])
                });
                *key = parts.collect();
            }
            ("string", Json::Text(text)) if text.starts_with(['[', '{']) => map_document(text),
            ("hash", hash) => {
                map_row(hash);
                let Json::Object(fields) = hash else { continue };
                // Where the fields of a hash are ids, some are ints.
                if fields.iter().any(|(name, _)| other_text(name).is_some()) {
                    fields.iter_mut().for_each(|(name, _)| *name = other_text(name).unwrap_or(format!("{name}\u{1}")));
                }
            }
            ("zset", Json::Array(pairs)) => {
                for pair in pairs {
                    let Json::Array(pair) = pair else { continue };
                    pair.iter_mut().take(1).for_each(Json::map_ids);
                }
            }
            (_, elements @ Json::Array(_)) => elements.map_ids(),
            _ => {}
        }
    }
}

/// A JSON document in a store: a list of ids, or objects that have them. What is not JSON stays as it is.
fn map_document(text: &mut String) {
    let mut reader = Reader::new(text, 64);
    if reader.skip().and_then(|()| reader.end()).is_err() {
        return;
    }
    *text = Json::rewritten(text, |document| match document {
        Json::Array(items) if items.iter().all(|item| matches!(item, Json::Other(_) | Json::Text(_))) => {
            document.map_ids();
        }
        document => document.each(&mut |object| map_row(object)),
    });
}

/// Messages name rows by their id.
fn map_error(text: &str) -> String {
    let mut parts = text.split(" id ");
    let mut mapped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(part.len());
        let (id, rest) = part.split_at(digits);
        let id = other_text(id).map_or(id.to_owned(), |text| format!("\\\"{text}\\\""));
        mapped.push_str(&format!(" id {id}{rest}"));
    }
    mapped
}

/// As much of JSON as has to be told apart.
enum Json {
    /// A number, a bool or null, as it was written.
    Other(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn read(reader: &mut Reader<'_>) -> Json {
        match reader.peek().expect("JSON") {
            Kind::String => Json::Text(reader.string().expect("JSON").into_owned()),
            Kind::Array => {
                let (mut all, mut items) = (Vec::new(), reader.open_array().expect("JSON"));
                while reader.item(&mut items).expect("JSON") {
                    all.push(Json::read(reader));
                }
                Json::Array(all)
            }
            Kind::Object => {
                let (mut all, mut fields) = (Vec::new(), reader.open_object().expect("JSON"));
                while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
                    all.push((name.into_owned(), Json::read(reader)));
                }
                Json::Object(all)
            }
            Kind::Null | Kind::Bool | Kind::Number => Json::Other(reader.raw().expect("JSON").to_owned()),
        }
    }

    fn rewritten(line: &str, map: fn(&mut Json)) -> String {
        let mut json = Json::read(&mut Reader::new(line, 64));
        map(&mut json);
        json.text()
    }

    fn text(&self) -> String {
        let quoted = |text: &str| {
            let mut quoted = Vec::new();
            push_string(&mut quoted, text);
            String::from_utf8(quoted).expect("JSON is UTF-8")
        };
        match self {
            Json::Other(text) => text.clone(),
            Json::Text(text) => quoted(text),
            Json::Array(items) => format!("[{}]", items.iter().map(Json::text).collect::<Vec<_>>().join(",")),
            Json::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.text()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }

    fn field(&self, name: &str) -> Option<&Json> {
        let Json::Object(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut Json> {
        let Json::Object(fields) = self else { return None };
        fields.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether this holds here or anywhere below.
    fn any(&self, holds: &impl Fn(&Json) -> bool) -> bool {
        holds(self)
            || match self {
                Json::Other(_) | Json::Text(_) => false,
                Json::Array(items) => items.iter().any(|item| item.any(holds)),
                Json::Object(fields) => fields.iter().any(|(_, value)| value.any(holds)),
            }
    }

    /// Visits this and everything below.
    fn each(&mut self, visit: &mut impl FnMut(&mut Json)) {
        visit(self);
        match self {
            Json::Other(_) | Json::Text(_) => {}
            Json::Array(items) => items.iter_mut().for_each(|item| item.each(visit)),
            Json::Object(fields) => fields.iter_mut().for_each(|(_, value)| value.each(visit)),
        }
    }

    /// Makes an id, or each of a list of ids, a text. What is no int gets a character that no id has.
    fn map_ids(&mut self) {
        match self {
            Json::Array(items) => items.iter_mut().for_each(Json::map_ids),
            Json::Other(text) if text == "null" => {}
            Json::Other(text) | Json::Text(text) => {
                *self = Json::Text(other_text(text).unwrap_or_else(|| format!("{text}\u{1}")));
            }
            Json::Object(_) => {}
        }
    }
}
