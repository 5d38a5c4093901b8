//! Some fields of a JSON document, found in one walk without a tree: by the name of a member, or by a JSON pointer.

use rankd_column::column::ColumnBuilder;
use rankd_engine::decode;
use rankd_plan::json::{Fault, Kind, Number, Reader};

/// Documents that nest deeper are not read.
const DEPTH_MAX: usize = 64;

/// Where the fields are, as a tree of names.
#[derive(Debug, Default)]
pub(crate) struct JsonFields {
    /// The first one is the document itself.
    nodes: Vec<PathNode>,
    count: usize,
}

#[derive(Debug, Default)]
struct PathNode {
    /// The fields that are here.
    fields: Vec<usize>,
    below: Vec<(Box<str>, usize)>,
}

impl JsonFields {
    /// A text that is empty or begins with a slash is a JSON pointer; any other one is the name of a member.
    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p str>) -> JsonFields {
        let mut tree = JsonFields { nodes: vec![PathNode::default()], count: 0 };
        for path in paths {
            let mut at = 0;
            match path.strip_prefix('/') {
                Some(segments) => {
                    for segment in segments.split('/') {
                        at = tree.below(at, &segment.replace("~1", "/").replace("~0", "~"));
                    }
                }
                None if path.is_empty() => {}
                None => at = tree.below(at, path),
            }
            let field = tree.count;
            tree.nodes[at].fields.push(field);
            tree.count += 1;
        }
        tree
    }

    /// The node of a name below another, which is added where it is new.
    fn below(&mut self, at: usize, name: &str) -> usize {
        if let Some(known) = self.find(at, name) {
            return known;
        }
        let next = self.nodes.len();
        self.nodes.push(PathNode::default());
        self.nodes[at].below.push((name.into(), next));
        next
    }

    fn find(&self, at: usize, name: &str) -> Option<usize> {
        self.nodes[at].below.iter().find(|(known, _)| **known == *name).map(|(_, next)| *next)
    }

    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The JSON text of each field, in the order in which they were given, or nothing where the document does not have it. Of members
    /// with the same name the last one counts.
    pub(crate) fn read<'a>(&self, text: &'a str, found: &mut [Option<&'a str>]) -> Result<(), Fault> {
        found.fill(None);
        // What is to be looked into: each text with its node. A queue and not a recursion, although paths are short.
        let (mut open, mut next) = (vec![(text, 0)], 0);
        while let Some(&(text, node)) = open.get(next) {
            next += 1;
            self.nodes[node].fields.iter().for_each(|field| found[*field] = Some(text.trim_ascii()));
            if self.nodes[node].below.is_empty() && next > 1 {
                continue;
            }
            let mut reader = Reader::new(text, DEPTH_MAX);
            match reader.peek()? {
                Kind::Object => {
                    let mut fields = reader.open_object()?;
                    while let Some(name) = reader.field_name(&mut fields)? {
                        match self.find(node, &name) {
                            Some(below) => open.push((reader.raw()?, below)),
                            None => reader.skip()?,
                        }
                    }
                }
                Kind::Array => {
                    let (mut items, mut at) = (reader.open_array()?, 0usize);
                    while reader.item(&mut items)? {
                        match self.find(node, &at.to_string()) {
                            Some(below) => open.push((reader.raw()?, below)),
                            None => reader.skip()?,
                        }
                        at += 1;
                    }
                }
                Kind::Null | Kind::Bool | Kind::Number | Kind::String => reader.skip()?,
            }
            reader.end()?;
        }
        Ok(())
    }
}

/// The elements of a JSON array, at most so many, as JSON texts; `None` where the text is not an array.
pub(crate) fn elements(text: &str, most: usize) -> Result<Option<Vec<&str>>, Fault> {
    let mut reader = Reader::new(text, DEPTH_MAX);
    if reader.peek()? != Kind::Array {
        return Ok(None);
    }
    let (mut items, mut elements) = (reader.open_array()?, Vec::new());
    while elements.len() < most && reader.item(&mut items)? {
        elements.push(reader.raw()?);
    }
    Ok(Some(elements))
}

/// Adds a cell from its JSON text. A value of another type than the column's becomes null, and the answer is false.
pub(crate) fn push_json(column: &mut ColumnBuilder, text: &str) -> bool {
    let mut reader = Reader::new(text, DEPTH_MAX);
    let added = match reader.peek() {
        Ok(Kind::Null) => {
            column.push_null();
            return true;
        }
        Ok(Kind::Bool) => reader.bool().is_ok_and(|value| column.push_bool(value)),
        Ok(Kind::Number) => match reader.number() {
            Ok(Number::Int(value)) => column.push_int(value),
            Ok(Number::Float(value)) => column.push_float(value),
            Ok(Number::OutOfRange) | Err(_) => false,
        },
        Ok(Kind::String) => reader.string().is_ok_and(|value| column.push_str(&value)),
        // A string column would take the text of the array for its value.
        Ok(Kind::Array) if column.open().is_some() => return decode::push_text(column, text.as_bytes()),
        Ok(Kind::Array | Kind::Object) | Err(_) => false,
    };
    if !added {
        column.push_null();
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::{Type, Value};

    fn read<'a>(paths: &[&str], text: &'a str) -> Option<Vec<&'a str>> {
        let fields = JsonFields::new(paths.iter().copied());
        let mut found = vec![None; fields.len()];
        fields.read(text, &mut found).ok()?;
        Some(found.into_iter().map(|field| field.unwrap_or("-")).collect())
    }

    #[test]
    fn fields_are_members_or_pointers() {
        let text = r#" {"title": "a", "/x": 1, "meta": {"year": 1999, "a/b": {"~": [10, 20]}}, "title": "b"} "#;
        let paths =
            ["title", "/title", "/meta/year", "/meta/a~1b/~0/1", "/meta", "year", "/meta/year/0", "//x", "/~1x"];
        let found = [r#""b""#, r#""b""#, "1999", "20", r#"{"year": 1999, "a/b": {"~": [10, 20]}}"#, "-", "-", "-", "1"];
        assert_eq!(read(&paths, text).unwrap(), found);
        assert_eq!(read(&["", "/0"], "[1]").unwrap(), ["[1]", "1"]);
        assert_eq!(read(&["a"], "5").unwrap(), ["-"]);
        assert_eq!(read(&[], "{}").unwrap(), [""; 0]);
    }

    #[test]
    fn a_text_that_is_not_json_or_nests_too_deeply_is_refused_whole() {
        let deep = format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(100), "]".repeat(100));
        for bad in ["", "{", r#"{"a":1"#, r#"{"a":1} x"#, r#"{"a":1,"b":tru}"#, &deep] {
            assert_eq!(read(&["a"], bad), None, "{bad}");
        }
        let hostile = "[".repeat(1_000_000);
        assert_eq!(read(&["/0/0/0"], &hostile), None);
    }

    #[test]
    fn a_value_of_another_type_is_null_and_said_so() {
        for (type_of, good, bad) in [
            (Type::Int, "-5", "5.0"),
            (Type::Int, "7", "\"7\""),
            (Type::Float, "5", "1e999"),
            (Type::Bool, "true", "1"),
            (Type::Str, "\"[1]\"", "[1]"),
            (Type::Str, "\"a\\n\"", "5"),
            (Type::Str, "\"\"", "{}"),
        ] {
            let mut column = ColumnBuilder::new(type_of, 3);
            assert!(push_json(&mut column, good) && push_json(&mut column, "null") && !push_json(&mut column, bad));
            let column = column.finish();
            assert_ne!(column.value(0), Value::Null, "{good}");
            assert_eq!((column.value(1), column.value(2), column.len()), (Value::Null, Value::Null, 3), "{bad}");
        }
    }
}
