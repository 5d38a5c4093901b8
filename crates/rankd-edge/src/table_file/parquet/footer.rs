//! What the end of a Parquet file says about it: the schema, and where the columns of each group of rows are.

use super::thrift::{Compact, Wire};
use crate::table_file::columnar::{Holds, Plain};

/// The least bytes that a node of the schema, a group of rows and a chunk take in the metadata.
const ELEMENT_BYTES: usize = 5;
const GROUP_BYTES: usize = 8;
const CHUNK_BYTES: usize = 20;
/// The most nodes of a schema.
const NODES_MAX: usize = 100_000;

/// The metadata of a file.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) columns: Vec<ParquetColumn>,
    pub(super) groups: Vec<RowGroup>,
}

/// Rows whose columns are stored together.
#[derive(Default)]
pub(super) struct RowGroup {
    pub(super) rows: usize,
    /// By leaf of the schema.
    pub(super) chunks: Vec<Chunk>,
}

/// Where the values of one leaf are.
#[derive(Clone, Copy, Default)]
pub(super) struct Chunk {
    pub(super) codec: i32,
    pub(super) values: usize,
    pub(super) bytes: usize,
    data: usize,
    dictionary: Option<usize>,
    /// Whether they are in another file.
    pub(super) is_elsewhere: bool,
}

impl Chunk {
    /// Where its first page is.
    pub(super) fn start(&self) -> usize {
        // Some writers say 0 where there is no dictionary.
        self.dictionary.filter(|start| *start > 0).map_or(self.data, |start| start.min(self.data))
    }
}

/// A column of the table.
pub(super) struct ParquetColumn {
    pub(super) name: String,
    /// What it holds, where a key can have that.
    pub(super) holds: Option<Holds>,
    /// For people.
    pub(super) type_name: String,
    /// Its position among the leaves of the schema, and how it is stored there; of no use where it cannot be read.
    pub(super) leaf: usize,
    pub(super) stored: Stored,
}

/// How the values of a leaf are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) physical: Physical,
    pub(super) meaning: Meaning,
    /// Whether the column may be null, whether it is a list, whether the elements of that may be null.
    pub(super) is_optional: bool,
    pub(super) is_list: bool,
    pub(super) has_optional_elements: bool,
}

impl Stored {
    /// The level of a value that is there.
    pub(super) fn level_max(self) -> u32 {
        u32::from(self.is_optional) + u32::from(self.is_list) + u32::from(self.has_optional_elements)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Bool,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    /// So many bytes each.
    Fixed(usize),
}

/// What stored values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Signed,
    Unsigned,
    /// The factor that makes it milliseconds, or by which it is too fine.
    Timestamp {
        by: i64,
    },
    Float,
    HalfFloat,
    Bool,
    Text,
}

impl Meaning {
    fn plain(self) -> Plain {
        match self {
            Meaning::Signed | Meaning::Unsigned | Meaning::Timestamp { .. } => Plain::Int,
            Meaning::Float | Meaning::HalfFloat => Plain::Float,
            Meaning::Bool => Plain::Bool,
            Meaning::Text => Plain::Text,
        }
    }
}

impl Footer {
    /// Reads the metadata; `None` where it is damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Footer> {
        let (mut elements, mut footer, mut rows) = (Vec::new(), Footer::default(), None);
        Compact::new(bytes).fields(|reader, id, wire| {
            match (id, wire) {
                (2, Wire::List) => elements = reader.list(ELEMENT_BYTES, element)?,
                (3, Wire::Int) => rows = Some(reader.count()?),
                (4, Wire::List) => footer.groups = reader.list(GROUP_BYTES, group)?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        if elements.len() > NODES_MAX {
            return None;
        }
        footer.columns = columns(&elements)?;
        let sum = footer.groups.iter().try_fold(0, |sum: usize, group| sum.checked_add(group.rows))?;
        (Some(sum) == rows).then_some(footer)
    }
}

fn group(reader: &mut Compact<'_>) -> Option<RowGroup> {
    let mut group = RowGroup::default();
    reader.fields(|reader, id, wire| {
        match (id, wire) {
            (1, Wire::List) => group.chunks = reader.list(CHUNK_BYTES, chunk)?,
            (3, Wire::Int) => group.rows = reader.count()?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(group)
}

fn chunk(reader: &mut Compact<'_>) -> Option<Chunk> {
    let mut chunk = Chunk::default();
    reader.fields(|reader, id, wire| {
        match (id, wire) {
            (1, Wire::Binary) => chunk.is_elsewhere = !reader.text()?.is_empty(),
            (3, Wire::Struct) => reader.fields(|reader, id, wire| {
                match (id, wire) {
                    (4, Wire::Int) => chunk.codec = reader.int32()?,
                    (5, Wire::Int) => chunk.values = reader.count()?,
                    (7, Wire::Int) => chunk.bytes = reader.count()?,
                    (9, Wire::Int) => chunk.data = reader.count()?,
                    (11, Wire::Int) => chunk.dictionary = Some(reader.count()?),
                    _ => return Some(false),
                }
                Some(true)
            })?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(chunk)
}

/// A node of the schema's tree, which is stored with each before its children.
#[derive(Default)]
struct Node {
    name: String,
    /// Of leaves only.
    physical: Option<i32>,
    length: Option<usize>,
    repetition: i32,
    children: usize,
    converted: Option<i32>,
    logical: Option<Logical>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logical {
    Text,
    List,
    Timestamp { by: i64 },
    Int { is_signed: bool },
    HalfFloat,
    Other(&'static str),
}

const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

fn element(reader: &mut Compact<'_>) -> Option<Node> {
    let mut node = Node::default();
    reader.fields(|reader, id, wire| {
        match (id, wire) {
            (1, Wire::Int) => node.physical = Some(reader.int32()?),
            (2, Wire::Int) => node.length = Some(reader.count()?),
            (3, Wire::Int) => node.repetition = reader.int32()?,
            (4, Wire::Binary) => node.name = reader.text()?.to_owned(),
            (5, Wire::Int) => node.children = reader.count()?,
            (6, Wire::Int) => node.converted = Some(reader.int32()?),
            (10, Wire::Struct) => node.logical = logical(reader)?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(node)
}

/// A union: a struct with one field, which says what it is.
fn logical(reader: &mut Compact<'_>) -> Option<Option<Logical>> {
    let mut logical = None;
    reader.fields(|reader, id, wire| {
        logical = Some(match id {
            1 | 4 | 12 => Logical::Text,
            2 => Logical::Other("map"),
            3 => Logical::List,
            5 => Logical::Other("decimal"),
            6 => Logical::Other("date"),
            7 => Logical::Other("time"),
            8 => Logical::Timestamp { by: 0 },
            10 => Logical::Int { is_signed: true },
            11 => Logical::Other("null"),
            13 => Logical::Other("bson"),
            14 => Logical::Other("uuid"),
            15 => Logical::HalfFloat,
            _ => Logical::Other("a type that is not known"),
        });
        if wire != Wire::Struct || !matches!(id, 8 | 10) {
            return Some(false);
        }
        reader.fields(|reader, inside, wire| {
            match (id, inside, wire) {
                (10, 2, Wire::True | Wire::False) => {
                    logical = Some(Logical::Int { is_signed: wire == Wire::True });
                }
                (8, 2, Wire::Struct) => reader.fields(|_, unit, _| {
                    let by = match unit {
                        1 => 1,
                        2 => 1_000,
                        3 => 1_000_000,
                        _ => return None,
                    };
                    logical = Some(Logical::Timestamp { by });
                    Some(false)
                })?,
                // What a bool is, its head has said.
                (_, _, Wire::True | Wire::False) => {}
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some(true)
    })?;
    Some(logical)
}

/// The columns of the table: the children of the root.
fn columns(nodes: &[Node]) -> Option<Vec<ParquetColumn>> {
    let (root, mut rest) = nodes.split_first()?;
    let (mut columns, mut leaf) = (Vec::new(), 0);
    for _ in 0..root.children {
        let len = subtree(rest)?;
        let (tree, after) = rest.split_at(len);
        columns.push(column(tree, leaf));
        leaf += tree.iter().filter(|node| node.children == 0).count();
        rest = after;
    }
    rest.is_empty().then_some(columns)
}

/// How many nodes the first one and all below it are.
fn subtree(nodes: &[Node]) -> Option<usize> {
    let (mut len, mut left) = (0, 1_usize);
    while left > 0 {
        left = (left - 1).checked_add(nodes.get(len)?.children)?;
        len += 1;
    }
    Some(len)
}

fn column(tree: &[Node], leaf: usize) -> ParquetColumn {
    let (name, outer) = (tree[0].name.clone(), &tree[0]);
    let is_list_group = outer.logical == Some(Logical::List) || outer.converted == Some(3);
    let shape = match tree {
        [value] if value.repetition != REPEATED => Some((value, false, false)),
        // A field that is repeated is a list by itself.
        [value] => Some((value, true, false)),
        [list, value] if is_list_group && value.repetition == REPEATED && list.repetition != REPEATED => {
            Some((value, true, false))
        }
        [list, middle, value]
            if is_list_group
                && list.repetition != REPEATED
                && middle.repetition == REPEATED
                && value.repetition != REPEATED
                && middle.children == 1 =>
        {
            Some((value, true, value.repetition == OPTIONAL))
        }
        _ => None,
    };
    let other = |type_name: String| ParquetColumn { name: name.clone(), holds: None, type_name, leaf, stored: NOTHING };
    let Some((value, is_list, has_optional_elements)) = shape else {
        return other(if is_list_group { "list of other things" } else { "group" }.to_owned());
    };
    let (physical, meaning) = match meaning(value) {
        Ok(found) => found,
        Err(type_name) => return other(type_name.to_owned()),
    };
    let holds = if is_list { Holds::Lists(meaning.plain(), None) } else { Holds::One(meaning.plain()) };
    let one = match meaning.plain() {
        Plain::Int => "int",
        Plain::Float => "float",
        Plain::Bool => "bool",
        Plain::Text => "string",
    };
    let type_name = if is_list { format!("list of {one}") } else { one.to_owned() };
    let is_optional = outer.repetition == OPTIONAL;
    let stored = Stored { physical, meaning, is_optional, is_list, has_optional_elements };
    ParquetColumn { name, holds: holds.proposed().map(|_| holds), type_name, leaf, stored }
}

/// For columns that are not read.
const NOTHING: Stored = Stored {
    physical: Physical::Bool,
    meaning: Meaning::Bool,
    is_optional: false,
    is_list: false,
    has_optional_elements: false,
};

/// What a leaf means, or the name of what cannot be read.
fn meaning(node: &Node) -> Result<(Physical, Meaning), &'static str> {
    if !(REQUIRED..=REPEATED).contains(&node.repetition) {
        return Err("a repetition that is not known");
    }
    let physical = match node.physical {
        Some(0) => Physical::Bool,
        Some(1) => Physical::Int32,
        Some(2) => Physical::Int64,
        Some(3) => Physical::Int96,
        Some(4) => Physical::Float,
        Some(5) => Physical::Double,
        Some(6) => Physical::Bytes,
        Some(7) => Physical::Fixed(node.length.unwrap_or(0)),
        _ => return Err("a type that is not known"),
    };
    let logical = node.logical.or(match node.converted {
        None => None,
        Some(0 | 4 | 19) => Some(Logical::Text),
        Some(9) => Some(Logical::Timestamp { by: 1 }),
        Some(10) => Some(Logical::Timestamp { by: 1_000 }),
        Some(11..=14) => Some(Logical::Int { is_signed: false }),
        Some(15..=18) => Some(Logical::Int { is_signed: true }),
        Some(5) => Some(Logical::Other("decimal")),
        Some(6) => Some(Logical::Other("date")),
        Some(7 | 8) => Some(Logical::Other("time")),
        Some(20) => Some(Logical::Other("bson")),
        Some(21) => Some(Logical::Other("interval")),
        Some(_) => Some(Logical::Other("a type that is not known")),
    });
    let meaning = match (physical, logical) {
        (Physical::Bool, None) => Meaning::Bool,
        (Physical::Int32 | Physical::Int64, None | Some(Logical::Int { is_signed: true })) => Meaning::Signed,
        (Physical::Int32 | Physical::Int64, Some(Logical::Int { is_signed: false })) => Meaning::Unsigned,
        (Physical::Int64, Some(Logical::Timestamp { by: by @ 1.. })) => Meaning::Timestamp { by },
        // Days and nanoseconds, which some programs still write; read as milliseconds.
        (Physical::Int96, None) => Meaning::Timestamp { by: 1 },
        (Physical::Float | Physical::Double, None) => Meaning::Float,
        (Physical::Fixed(2), Some(Logical::HalfFloat)) => Meaning::HalfFloat,
        (Physical::Bytes, Some(Logical::Text)) => Meaning::Text,
        (Physical::Bytes | Physical::Fixed(_), None) => return Err("binary"),
        (_, Some(Logical::Other(name))) => return Err(name),
        _ => return Err("a type that is not known"),
    };
    Ok((physical, meaning))
}
