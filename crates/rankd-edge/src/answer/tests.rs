//! Rows against a writer that goes value by value and knows no short cut.

use super::rows::{bytes_about, push_rows, weight};
use crate::input::{self, REQUEST_BYTES_MAX};
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Column, Element, Key, List, RowSet, Type, Value};
use rankd_plan::Registry;
use rankd_plan::registry::Text;
use std::fmt::Write;
use std::sync::Arc;

const TYPES: [Type; 8] = [
    Type::Int,
    Type::Float,
    Type::Bool,
    Type::Str,
    Type::List(Element::Int),
    Type::List(Element::Float),
    Type::List(Element::Str),
    Type::Vector(3),
];

/// Two keys of each type, one of which has a name that is too long to be copied in one move.
fn registry() -> Registry {
    let mut keys = String::new();
    let long = "a_name_that_is_longer_than_thirty_two_bytes_".to_owned();
    for at in 0..=2 * TYPES.len() {
        let (name, type_of, more) = match at {
            0 => ("id".to_owned(), Type::Int, "nullable = false\nallow_write = false"),
            at if at % 2 == 0 => (format!("{long}{at}"), TYPES[at / 2 - 1], "nullable = true"),
            at => (format!("key_{at}"), TYPES[at / 2], "nullable = true"),
        };
        writeln!(keys, "[[key]]\nkey_id = {}\nname = \"{name}\"\ntype = \"{type_of}\"\n{more}\ndoc = \"\"", at + 1)
            .unwrap();
    }
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(&keys), text(""), text(""));
    assert!(problems.is_empty());
    registry
}

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 20) as usize % limit
    }

    fn int(&mut self) -> i64 {
        let edges = [0, -1, 1, i64::MIN, i64::MAX, 9, 10, 99_999_999, 100_000_000, 10_i64.pow(16) - 1, 10_i64.pow(16)];
        match self.below(3) {
            0 => edges[self.below(edges.len())],
            1 => self.next() as i64 >> self.below(64),
            _ => self.below(100_000) as i64,
        }
    }

    fn float(&mut self) -> f64 {
        let two53 = (1_i64 << 53) as f64;
        let mut edges = vec![0.0, -0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 0.1, 1e-5, 1e-7, 1e300];
        edges.extend([two53 - 1.0, two53, two53 + 2.0, -two53, 1e15, 1e16, 1e17, 12_345_678_901_234_567.0]);
        let value = match self.below(4) {
            0 => edges[self.below(edges.len())],
            1 => f64::from_bits(self.next()),
            2 => self.int() as f64,
            _ => self.below(1 << 20) as f64 / (1 << self.below(20)) as f64,
        };
        if value.is_finite() { value } else { 0.5 }
    }

    fn text(&mut self) -> String {
        let pieces =
            ["", "a", "US", "é", "😀", "\"", "\\", "\n", "\r", "\t", "\u{0}", "\u{1f}", "\u{7f}", "/", "plain text"];
        let count = [0, 1, 2, 3, 40][self.below(5)];
        (0..count).map(|_| pieces[self.below(pieces.len())]).collect()
    }

    fn value(&mut self, type_of: Type, strings: &[String], nulls: usize) -> Value {
        if self.below(100) < nulls {
            return Value::Null;
        }
        match type_of {
            Type::Int => Value::Int(self.int()),
            Type::Float => Value::Float(self.float()),
            Type::Bool => Value::Bool(self.below(2) == 0),
            Type::Str => Value::str(&strings[self.below(strings.len())]),
            Type::List(element) => {
                let count = [0, 1, 2, 50][self.below(4)];
                let text = |random: &mut Random| strings[random.below(strings.len())].as_str().into();
                Value::List(Arc::new(match element {
                    Element::Int => List::Int((0..count).map(|_| self.int()).collect()),
                    Element::Float => List::Float((0..count).map(|_| self.float()).collect()),
                    Element::Str => List::Str((0..count).map(|_| text(self)).collect()),
                }))
            }
            Type::Vector(dimension) => Value::Vector((0..dimension).map(|_| self.single()).collect()),
        }
    }

    fn single(&mut self) -> f32 {
        let edges = [0.0, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.1, 16_777_216.0, 1e10, 3.0];
        let value = match self.below(2) {
            0 => edges[self.below(edges.len())],
            _ => f32::from_bits(self.next() as u32),
        };
        if value.is_finite() { value } else { 0.5 }
    }

    /// Rows of some of the keys, seen whole, in part, or in another order.
    fn rows(&mut self, registry: &Registry) -> RowSet {
        let count = [0, 1, 2, 7, 100][self.below(5)];
        let mut batch = Batch::new((0..count).map(|_| self.int()).collect());
        // Rows without lists are written another way.
        let arrays = self.below(2) == 0;
        for at in 1..registry.keys.list().len() as u32 {
            let (type_of, nulls) = (registry.key(Key(at)).type_of, [0, 30, 100][self.below(3)]);
            if self.below(3) == 0 || !(arrays || type_of.is_scalar()) {
                continue;
            }
            let strings: Vec<String> = (0..=[0, 3, 150][self.below(3)]).map(|_| self.text()).collect();
            let mut column = ColumnBuilder::new(type_of, count);
            (0..count).for_each(|_| assert!(column.push(&self.value(type_of, &strings, nulls))));
            batch = batch.with(Key(at), Arc::new(column.finish()));
        }
        let rows = RowSet::new(batch);
        match self.below(3) {
            0 => rows,
            1 => rows.take(self.below(count + 1)),
            _ => {
                let picked = (0..count).filter(|_| self.below(2) == 0).map(|row| (count - 1 - row) as u32).collect();
                rows.looking_at(picked)
            }
        }
    }
}

fn plainly(rows: &RowSet, registry: &Registry, wanted: Option<&[Key]>) -> String {
    let mut items = Vec::new();
    for position in 0..rows.len() {
        let mut item = format!("{{\"id\":{}", rows.value(Key::ID, position));
        for at in 1..registry.keys.list().len() as u32 {
            let value = rows.value(Key(at), position);
            if value == Value::Null || wanted.is_some_and(|keys| !keys.contains(&Key(at))) {
                continue;
            }
            let shown = match value {
                Value::Null => continue,
                Value::Int(value) => value.to_string(),
                Value::Float(value) => zmij::Buffer::new().format_finite(value).to_owned(),
                Value::Bool(value) => value.to_string(),
                Value::Str(text) => escaped(&text),
                Value::List(list) => match &*list {
                    List::Int(list) => array(list, |value| value.to_string()),
                    List::Float(list) => array(list, |value| zmij::Buffer::new().format_finite(*value).to_owned()),
                    List::Str(list) => array(list, |text| escaped(text)),
                },
                Value::Vector(vector) => array(&vector, |value| zmij::Buffer::new().format_finite(*value).to_owned()),
            };
            write!(item, ",{}:{shown}", escaped(&registry.key(Key(at)).name)).unwrap();
        }
        items.push(item + "}");
    }
    items.join(",")
}

fn array<T>(items: &[T], shown: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => write!(out, "\\u{:04x}", u32::from(char)).unwrap(),
            other => out.push(other),
        }
    }
    out + "\""
}

#[test]
fn rows_have_the_bytes_that_a_plain_writer_gives_them() {
    let (registry, mut random) = (registry(), Random(7));
    for round in 0..400 {
        let outputs: Vec<RowSet> = (0..=random.below(2)).map(|_| random.rows(&registry)).collect();
        let keys: Vec<Key> = (0..registry.keys.list().len() as u32).filter(|_| random.below(2) == 0).map(Key).collect();
        let wanted = (random.below(2) == 0).then_some(&keys[..]);
        let mut out = Vec::with_capacity(bytes_about(&outputs));
        out.push(b'[');
        outputs.iter().for_each(|rows| push_rows(&mut out, rows, &registry, wanted));
        let parts: Vec<String> = outputs.iter().map(|rows| plainly(rows, &registry, wanted)).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        assert_eq!(String::from_utf8(out).unwrap(), format!("[{}", parts.join(",")), "round {round}");
    }
}

#[test]
fn long_strings_weigh_as_much_as_the_cells_that_take_as_long() {
    let of = |text: &str, rows: usize| {
        let mut column = ColumnBuilder::new(Type::Str, rows);
        (0..rows).for_each(|_| assert!(column.push_str(text)));
        let column: Column = column.finish();
        weight(&[RowSet::new(Batch::new((0..rows as i64).collect()).with(Key(1), Arc::new(column)))])
    };
    assert_eq!((of("a", 0), of("a", 100), of(&"a".repeat(600), 100)), (0, 200, 200));
    assert_eq!(of(&"a".repeat(6400), 100), 200 + 10_000);
}

#[test]
fn elements_weigh_as_much_as_cells() {
    let mut column = ColumnBuilder::new(Type::List(Element::Str), 2);
    assert!(column.push_list(&List::Str(vec!["a".into(); 50])) && column.push_list(&List::Str(vec![])));
    let rows = RowSet::new(Batch::new(vec![1, 2]).with(Key(1), Arc::new(column.finish())));
    assert_eq!(weight(std::slice::from_ref(&rows)), 4 + 50);
    assert_eq!(weight(&[rows.looking_at(vec![1])]), 2);
    let mut column = ColumnBuilder::new(Type::Vector(64), 1);
    assert!(column.push_vector(&[0.5; 64]));
    assert_eq!(weight(&[RowSet::new(Batch::new(vec![1]).with(Key(1), Arc::new(column.finish())))]), 2 + 64);
}

#[test]
fn rows_of_an_answer_are_the_same_rows_as_candidates_of_a_request() {
    let (registry, mut random, mut compared) = (registry(), Random(11), 0);
    for _ in 0..300 {
        let rows = random.rows(&registry);
        let columns = rows.batch().columns().iter();
        let ids = Batch::new((0..rows.batch().len() as i64).collect());
        let rows = RowSet::new(columns.fold(ids, |batch, (key, column)| batch.with(*key, column.clone())));
        let mut text = br#"{"user_id":1,"candidates":["#.to_vec();
        push_rows(&mut text, &rows, &registry, None);
        text.extend(b"]}");
        if text.len() > REQUEST_BYTES_MAX {
            continue;
        }
        let read = input::read(&text, &registry).unwrap().request.candidates.unwrap();
        let read = read.rows().unwrap();
        assert_eq!(read.len(), rows.len());
        for position in 0..rows.len() {
            for key in (0..registry.keys.list().len() as u32).map(Key) {
                // As text, so that 0.0 is not -0.0.
                let [a, b] = [&rows, read].map(|rows| format!("{:?}", rows.value(key, position)));
                assert_eq!(a, b);
                compared += usize::from(!registry.key(key).type_of.is_scalar() && a != "Null");
            }
        }
    }
    assert!(compared > 1_000, "{compared} lists and vectors");
}
