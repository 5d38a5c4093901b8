//! A stream taken apart byte by byte, by a reader that knows no more than the format's documents say. Where pyarrow is to be
//! had, the tests of the server also ask that.

use super::*;
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Cells, Column, DictionaryBuilder, List};
use std::sync::Arc;

/// A position in a FlatBuffers buffer.
#[derive(Clone, Copy)]
struct At<'a>(&'a [u8], usize);

impl<'a> At<'a> {
    fn bytes<const N: usize>(self) -> [u8; N] {
        assert_eq!(self.1 % N, 0, "a value of {N} bytes that is not aligned");
        self.0[self.1..self.1 + N].try_into().unwrap()
    }

    fn u16(self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    fn i32(self) -> i32 {
        i32::from_le_bytes(self.bytes())
    }

    fn i64(self) -> i64 {
        i64::from_le_bytes(self.bytes())
    }

    /// What the offset here leads to.
    fn follow(self) -> At<'a> {
        At(self.0, self.1 + self.i32() as usize)
    }

    /// A field of the table here.
    fn field(self, slot: usize) -> Option<At<'a>> {
        let list = At(self.0, self.1 - self.i32() as usize);
        let place = At(self.0, list.1 + 4 + 2 * slot);
        let inside = 4 + 2 * slot < usize::from(list.u16());
        let place = if inside { usize::from(place.u16()) } else { 0 };
        (place > 0).then_some(At(self.0, self.1 + place))
    }

    /// The items of the list here, so many bytes each.
    fn items(self, size: usize) -> Vec<At<'a>> {
        (0..self.i32() as usize).map(|item| At(self.0, self.1 + 4 + item * size)).collect()
    }

    fn text(self) -> &'a str {
        let (start, len) = (self.1 + 4, self.i32() as usize);
        assert_eq!(self.0[start + len], 0, "text ends with a zero");
        std::str::from_utf8(&self.0[start..start + len]).unwrap()
    }
}

/// The next message: its kind, its header and its body.
fn next<'a>(stream: &mut &'a [u8]) -> Option<(u8, At<'a>, &'a [u8])> {
    assert_eq!(stream[..4], [0xff; 4]);
    let length = i32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize;
    *stream = &stream[8..];
    if length == 0 {
        return None;
    }
    assert_eq!(length % 8, 0);
    let (metadata, rest) = stream.split_at(length);
    let message = At(metadata, 0).follow();
    assert_eq!(message.field(0).unwrap().u16(), 4, "version 5");
    let kind = message.field(1).unwrap().bytes::<1>()[0];
    let (body, rest) = rest.split_at(message.field(3).unwrap().i64() as usize);
    *stream = rest;
    Some((kind, message.field(2).unwrap().follow(), body))
}

/// Name, type, whether it may have nulls.
fn fields(schema: At<'_>) -> Vec<(String, u8, bool)> {
    let fields = schema.field(1).unwrap().follow().items(4);
    let read = |field: At<'_>| {
        let name = field.field(0).unwrap().follow().text().to_owned();
        assert!(field.field(3).is_some() && field.field(5).unwrap().follow().items(4).is_empty());
        (name, field.field(2).unwrap().bytes::<1>()[0], field.field(1).is_some())
    };
    fields.into_iter().map(|at| read(at.follow())).collect()
}

fn fields_of_test() -> [ArrowField<'static>; 4] {
    let field = |key, name, type_of| ArrowField { key: Key(key), name, type_of };
    [
        field(1, "count", Type::Int),
        field(2, "score", Type::Float),
        field(3, "seen", Type::Bool),
        field(4, "título", Type::Str),
    ]
}

fn rows() -> RowSet {
    let mut dictionary = DictionaryBuilder::default();
    let words = [Some("é"), None, Some(""), Some("hidden")].map(|word| word.map(|word| dictionary.code(word)));
    let batch = Batch::new(vec![30, 10, 20, 40])
        .with(Key(1), Arc::new(Column::Int([Some(i64::MAX), Some(i64::MIN), None, None].into_iter().collect())))
        .with(Key(2), Arc::new(Column::Float(Cells::full(vec![0.5, -0.0, 1e300, 7.0]))))
        .with(Key(3), Arc::new(Column::Bool([Some(true), None, Some(false), Some(true)].into_iter().collect())))
        .with(Key(4), Arc::new(Column::Str(words.into_iter().collect(), Arc::new(dictionary.finish()))));
    // The view: in another order, and without the last one.
    RowSet::new(batch).looking_at(vec![1, 2, 0])
}

#[test]
fn every_byte_is_where_the_format_has_it() {
    // The second output has none of the columns.
    let outputs = [rows(), RowSet::new(Batch::new(vec![-1]))];
    let about = [("response", "{}"), ("degraded", "[]")];
    let bytes = stream(Type::Int, None, &fields_of_test(), &outputs, &about).unwrap();
    let mut rest = &*bytes;
    let (kind, schema, body) = next(&mut rest).unwrap();
    assert_eq!((kind, body.len()), (1, 0));
    let told: Vec<_> = fields(schema);
    let expected = [("id", 2, false), ("count", 2, true), ("score", 3, true), ("seen", 6, true), ("título", 5, true)];
    assert_eq!(told, expected.map(|(name, kind, null)| (name.to_owned(), kind, null)));
    let metadata = schema.field(2).unwrap().follow().items(4).into_iter().map(|item| {
        let [name, value] = [0, 1].map(|slot| item.follow().field(slot).unwrap().follow().text());
        (name, value)
    });
    assert_eq!(metadata.collect::<Vec<_>>(), about);

    let (kind, batch, body) = next(&mut rest).unwrap();
    assert_eq!((kind, batch.field(0).unwrap().i64()), (3, 4));
    let pairs = |slot: usize| -> Vec<[i64; 2]> {
        let items = batch.field(slot).unwrap().follow().items(16);
        items.into_iter().map(|At(bytes, at)| [At(bytes, at).i64(), At(bytes, at + 8).i64()]).collect()
    };
    assert_eq!(pairs(1), [[4, 0], [4, 2], [4, 1], [4, 2], [4, 2]]);
    let buffers: Vec<&[u8]> = pairs(2)
        .into_iter()
        .map(|[at, len]| {
            assert_eq!(at % 8, 0);
            &body[at as usize..(at + len) as usize]
        })
        .collect();
    let longs = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let ends: Vec<u8> = [0_i32, 0, 0, 2, 2].iter().flat_map(|end| end.to_le_bytes()).collect();
    let expected: [&[u8]; 11] = [
        &[],
        &longs(&[10, 20, 30, -1]),
        &[0b0101],
        &longs(&[i64::MIN, 0, i64::MAX, 0]),
        &[0b0111],
        &floats(&[-0.0, 1e300, 0.5, 0.0]),
        &[0b0110],
        &[0b0100],
        &[0b0110],
        &ends,
        "é".as_bytes(),
    ];
    assert_eq!(buffers, expected);
    assert!(next(&mut rest).is_none() && rest.is_empty(), "the end, and nothing after it");
}

#[test]
fn no_rows_are_a_batch_without_rows() {
    let bytes = stream(Type::Int, None, &fields_of_test(), &[RowSet::empty()], &[("response", "")]).unwrap();
    let mut rest = &*bytes;
    assert_eq!(fields(next(&mut rest).unwrap().1).len(), 5);
    let (_, batch, body) = next(&mut rest).unwrap();
    // One offset, that of the end of no text.
    assert_eq!((batch.field(0).unwrap().i64(), body), (0, &[0; 8][..]));
    assert!(next(&mut rest).is_none());
}

/// A field with its kind, and those below it.
fn nested(field: At<'_>) -> (String, u8, Vec<(String, u8)>) {
    let of =
        |field: At<'_>| (field.field(0).unwrap().follow().text().to_owned(), field.field(2).unwrap().bytes::<1>()[0]);
    let children = field.field(5).unwrap().follow().items(4);
    let (name, kind) = of(field);
    (name, kind, children.into_iter().map(|child| of(child.follow())).collect())
}

#[test]
fn lists_and_vectors_have_their_elements_below_them() {
    let mut lists = ColumnBuilder::new(Type::List(Element::Str), 3);
    let list = |texts: &[&str]| List::Str(texts.iter().map(|text| (*text).into()).collect());
    assert!(lists.push_list(&list(&["é", "b"])) && lists.push_list(&list(&[])));
    lists.push_null();
    let mut vectors = ColumnBuilder::new(Type::Vector(2), 3);
    assert!(vectors.push_vector(&[1.5, -0.0]));
    vectors.push_null();
    assert!(vectors.push_vector(&[3.0, 4.0]));
    let batch =
        Batch::new(vec![1, 2, 3]).with(Key(1), Arc::new(lists.finish())).with(Key(2), Arc::new(vectors.finish()));
    let outputs = [RowSet::new(batch).looking_at(vec![2, 0, 1]), RowSet::new(Batch::new(vec![4]))];
    let fields = [
        ArrowField { key: Key(1), name: "tags", type_of: Type::List(Element::Str) },
        ArrowField { key: Key(2), name: "embedding", type_of: Type::Vector(2) },
    ];
    let bytes = stream(Type::Int, None, &fields, &outputs, &[("response", "{}")]).unwrap();
    let mut rest = &*bytes;
    let schema = next(&mut rest).unwrap().1.field(1).unwrap().follow().items(4);
    let [tags, embedding] = [1, 2].map(|at: usize| schema[at].follow());
    assert_eq!(nested(tags), ("tags".into(), 12, vec![("item".into(), 5)]));
    assert_eq!(nested(embedding), ("embedding".into(), 16, vec![("item".into(), 3)]));
    assert_eq!(embedding.field(3).unwrap().follow().field(0).unwrap().i32(), 2, "the dimension");

    let (_, batch, body) = next(&mut rest).unwrap();
    let pairs = |slot: usize| -> Vec<[i64; 2]> {
        let items = batch.field(slot).unwrap().follow().items(16);
        items.into_iter().map(|At(bytes, at)| [At(bytes, at).i64(), At(bytes, at + 8).i64()]).collect()
    };
    // Ids; lists and their elements; vectors and their numbers, also those of nulls.
    assert_eq!(pairs(1), [[4, 0], [4, 2], [2, 0], [4, 2], [8, 0]]);
    let buffers: Vec<&[u8]> =
        pairs(2).into_iter().skip(2).map(|[at, len]| &body[at as usize..(at + len) as usize]).collect();
    let ends = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let numbers: Vec<u8> =
        [3.0_f32, 4.0, 1.5, -0.0, 0.0, 0.0, 0.0, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let expected: [&[u8]; 8] =
        [&[0b0110], &ends(&[0, 0, 2, 2, 2]), &[], &ends(&[0, 2, 3]), "éb".as_bytes(), &[0b0011], &[], &numbers];
    assert_eq!(buffers, expected);
}
