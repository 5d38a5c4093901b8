//! The columns of an Arrow schema: what each holds, and how many buffers it takes in a batch.

use super::damaged;
use super::metadata::FlatTable;
use crate::table_file::columnar::{Holds, Plain};
use crate::table_file::problem::TableProblem;

/// The most fields, with those inside of others. Many may point at the same bytes, so that a small schema could stand for a large one.
const FIELDS_MAX: usize = 100_000;
/// The longest name.
const NAME_BYTES_MAX: usize = 4_096;

pub(super) struct Schema {
    pub(super) columns: Vec<ArrowColumn>,
}

/// A column as the schema has it.
pub(super) struct ArrowColumn {
    pub(super) name: String,
    /// Its type, and those of what is inside it, each before its children.
    pub(super) types: Vec<ArrowType>,
    /// What it holds, where a key can have that.
    pub(super) holds: Option<Holds>,
    /// For people.
    pub(super) type_name: String,
    /// The number of the dictionary of its texts, if it has one.
    pub(super) dictionary: Option<i64>,
    /// The type of its values, in the dictionary or in itself.
    value: ArrowType,
}

/// How the values of a field are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrowType {
    Null,
    Int {
        bytes: usize,
        is_signed: bool,
    },
    Float {
        bytes: usize,
    },
    Bool,
    Utf8 {
        is_large: bool,
    },
    Utf8View,
    /// The factor that makes it milliseconds, or by which it is too fine.
    Timestamp {
        times: i64,
        by: i64,
    },
    List {
        is_large: bool,
    },
    FixedSizeList {
        length: usize,
    },
    /// Something that cannot be read, with so many buffers.
    Other {
        buffers: usize,
        name: &'static str,
    },
    /// The same, with as many buffers more as the batch says.
    OtherView,
}

impl ArrowType {
    /// How many buffers it has, without those whose number the batch says.
    pub(super) fn buffers(self) -> usize {
        match self {
            ArrowType::Null => 0,
            ArrowType::Int { .. } | ArrowType::Float { .. } | ArrowType::Bool | ArrowType::Timestamp { .. } => 2,
            ArrowType::Utf8 { .. } => 3,
            ArrowType::Utf8View | ArrowType::OtherView => 2,
            ArrowType::List { .. } => 2,
            ArrowType::FixedSizeList { .. } => 1,
            ArrowType::Other { buffers, .. } => buffers,
        }
    }

    /// Whether it has more buffers, the number of which the batch says.
    pub(super) fn has_variadic(self) -> bool {
        matches!(self, ArrowType::Utf8View | ArrowType::OtherView)
    }

    fn plain(self) -> Option<Plain> {
        Some(match self {
            ArrowType::Int { .. } | ArrowType::Timestamp { .. } => Plain::Int,
            ArrowType::Float { .. } => Plain::Float,
            ArrowType::Bool => Plain::Bool,
            ArrowType::Utf8 { .. } | ArrowType::Utf8View => Plain::Text,
            ArrowType::Null
            | ArrowType::List { .. }
            | ArrowType::FixedSizeList { .. }
            | ArrowType::Other { .. }
            | ArrowType::OtherView => return None,
        })
    }

    pub(super) fn name(self) -> String {
        match self {
            ArrowType::Null => "null".to_owned(),
            ArrowType::Int { bytes, is_signed } => format!("{}int{}", if is_signed { "" } else { "u" }, bytes * 8),
            ArrowType::Float { bytes } => format!("float{}", bytes * 8),
            ArrowType::Bool => "bool".to_owned(),
            ArrowType::Utf8 { .. } | ArrowType::Utf8View => "utf8".to_owned(),
            ArrowType::Timestamp { .. } => "timestamp".to_owned(),
            ArrowType::List { .. } => "list".to_owned(),
            ArrowType::FixedSizeList { length } => format!("fixed_size_list[{length}]"),
            ArrowType::Other { name, .. } => name.to_owned(),
            ArrowType::OtherView => "binary_view".to_owned(),
        }
    }
}

impl Schema {
    /// Reads a schema; `None` where its metadata is damaged, an error where it is of a kind that is not read.
    pub(super) fn read(schema: FlatTable<'_>) -> Option<Result<Schema, TableProblem>> {
        if schema.short(0).unwrap_or(0) != 0 {
            return Some(Err(damaged("its numbers are big endian")));
        }
        let mut fields = 0;
        let columns = schema.tables(1)?;
        let columns = columns.into_iter().map(|field| column(field, &mut fields)).collect::<Option<Vec<_>>>()?;
        Some(Ok(Schema { columns }))
    }

    /// How the texts of the dictionary with this number are laid out; nothing where no column that is read has it.
    pub(super) fn dictionary_type(&self, number: i64) -> Option<ArrowType> {
        let column = self.columns.iter().find(|column| column.holds.is_some() && column.dictionary == Some(number))?;
        Some(column.value)
    }
}

/// A column; `None` where it is damaged. `fields` counts those of the schema.
fn column(field: FlatTable<'_>, fields: &mut usize) -> Option<ArrowColumn> {
    let name = field.text(0).unwrap_or_default();
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_owned();
    *fields += 1;
    let value = arrow_type(&field)?;
    if let Some(encoding) = field.table(4) {
        let index = index_type(&encoding)?;
        let holds = value.plain().filter(|plain| *plain == Plain::Text).map(Holds::One);
        let type_name = format!("dictionary of {}", value.name());
        // Other readers give the dictionary without a number the number 0.
        let dictionary = Some(encoding.long(0).unwrap_or(0));
        return Some(ArrowColumn { name, types: vec![index], holds, type_name, dictionary, value });
    }
    // A list of what is left to look at instead of recursion: the schema may nest as deep as it likes.
    let mut types = Vec::new();
    let (mut stack, mut has_dictionary) = (vec![field], false);
    while let Some(field) = stack.pop() {
        *fields += 1;
        if *fields > FIELDS_MAX {
            return None;
        }
        let encoding = field.table(4);
        has_dictionary |= encoding.is_some();
        match encoding {
            // Only its indexes are in a batch; what the dictionary holds is in another.
            Some(encoding) => types.push(index_type(&encoding)?),
            None => {
                types.push(arrow_type(&field)?);
                stack.extend(field.tables(5)?.into_iter().rev());
                if stack.len() > FIELDS_MAX {
                    return None;
                }
            }
        }
    }
    let (holds, type_name) = match (value, &types[1..]) {
        (ArrowType::List { .. }, [element]) if !has_dictionary => {
            (element.plain().map(|plain| Holds::Lists(plain, None)), format!("list of {}", element.name()))
        }
        (ArrowType::FixedSizeList { length }, [element]) if !has_dictionary => (
            element.plain().map(|plain| Holds::Lists(plain, Some(length))),
            format!("{} of {}", value.name(), element.name()),
        ),
        (_, []) => (value.plain().map(Holds::One), value.name()),
        _ => (None, format!("{} of other things", value.name())),
    };
    let holds = holds.filter(|holds| holds.proposed().is_some());
    Some(ArrowColumn { name, types, holds, type_name, dictionary: None, value })
}

/// The type of the numbers of a dictionary's entries: 32-bit ints, unless it says otherwise.
fn index_type(encoding: &FlatTable<'_>) -> Option<ArrowType> {
    encoding.table(1).map_or(Some(ArrowType::Int { bytes: 4, is_signed: true }), |index| int(&index))
}

fn int(details: &FlatTable<'_>) -> Option<ArrowType> {
    let bytes = match details.int(0)? {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(ArrowType::Int { bytes, is_signed: details.byte(1).unwrap_or(0) != 0 })
}

/// The type of a field by itself. `None` for what the format does not have.
fn arrow_type(field: &FlatTable<'_>) -> Option<ArrowType> {
    let other = |buffers, name| ArrowType::Other { buffers, name };
    let details = field.table(3)?;
    Some(match field.byte(2)? {
        1 => ArrowType::Null,
        2 => int(&details)?,
        3 => ArrowType::Float {
            bytes: match details.short(0).unwrap_or(0) {
                0 => 2,
                1 => 4,
                2 => 8,
                _ => return None,
            },
        },
        4 => other(3, "binary"),
        5 => ArrowType::Utf8 { is_large: false },
        6 => ArrowType::Bool,
        7 => other(2, "decimal"),
        8 => other(2, "date"),
        9 => other(2, "time"),
        10 => {
            let (times, by) = match details.short(0).unwrap_or(0) {
                0 => (1_000, 1),
                1 => (1, 1),
                2 => (1, 1_000),
                3 => (1, 1_000_000),
                _ => return None,
            };
            ArrowType::Timestamp { times, by }
        }
        11 => other(2, "interval"),
        12 => ArrowType::List { is_large: false },
        13 => other(1, "struct"),
        14 => other(if details.short(0).unwrap_or(0) == 0 { 1 } else { 2 }, "union"),
        15 => other(2, "fixed_size_binary"),
        16 => ArrowType::FixedSizeList { length: usize::try_from(details.int(0)?).ok()? },
        17 => other(2, "map"),
        18 => other(2, "duration"),
        19 => other(3, "large_binary"),
        20 => ArrowType::Utf8 { is_large: true },
        21 => ArrowType::List { is_large: true },
        22 => other(0, "run_end_encoded"),
        23 => ArrowType::OtherView,
        24 => ArrowType::Utf8View,
        25 | 26 => other(3, "list_view"),
        _ => return None,
    })
}
