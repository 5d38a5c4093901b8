//! Pages: their headers, and their bytes taken apart into levels and values.

use super::codec::Codec;
use super::footer::Stored;
use super::levels;
use super::thrift::{Compact, Wire};

/// The only encoding of levels that is read; the other one was given up long ago.
const RLE: i32 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    pub(super) compressed: usize,
    pub(super) uncompressed: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PageKind {
    Data { values: usize, encoding: i32 },
    DataV2 { values: usize, encoding: i32, def_bytes: usize, rep_bytes: usize, is_compressed: bool },
    Dictionary { values: usize },
    Index,
}

impl PageHeader {
    /// Reads a header; gives how many bytes it has, too.
    pub(super) fn read(bytes: &[u8]) -> Option<(PageHeader, usize)> {
        let mut reader = Compact::new(bytes);
        let (mut number, mut compressed, mut uncompressed, mut kind) = (None, None, None, None);
        reader.fields(|reader, id, wire| {
            match (id, wire) {
                (1, Wire::Int) => number = Some(reader.int()?),
                (2, Wire::Int) => uncompressed = Some(reader.count()?),
                (3, Wire::Int) => compressed = Some(reader.count()?),
                (5 | 7 | 8, Wire::Struct) => kind = Some(details(reader, id)?),
                _ => return Some(false),
            }
            Some(true)
        })?;
        let kind = match (number?, kind) {
            (0, Some(kind @ PageKind::Data { .. })) => kind,
            (1, _) => PageKind::Index,
            (2, Some(kind @ PageKind::Dictionary { .. })) => kind,
            (3, Some(kind @ PageKind::DataV2 { .. })) => kind,
            _ => return None,
        };
        Some((PageHeader { kind, compressed: compressed?, uncompressed: uncompressed? }, reader.at()))
    }
}

/// The part of a header that depends on the kind of the page.
fn details(reader: &mut Compact<'_>, field: i16) -> Option<PageKind> {
    let (mut values, mut encoding, mut numbers, mut is_compressed) = (None, None, [RLE; 7], true);
    reader.fields(|reader, id, wire| {
        match (field, id, wire) {
            (_, 1, Wire::Int) => values = Some(reader.count()?),
            (5, 2, Wire::Int) | (8, 4, Wire::Int) => encoding = Some(reader.int32()?),
            (5, 3 | 4, Wire::Int) | (8, 5 | 6, Wire::Int) => numbers[id as usize] = reader.int32()?,
            (8, 7, Wire::True | Wire::False) => is_compressed = wire == Wire::True,
            // What a bool is, its head has said.
            (_, _, Wire::True | Wire::False) => {}
            _ => return Some(false),
        }
        Some(true)
    })?;
    let values = values?;
    match field {
        5 if numbers[3] == RLE && numbers[4] == RLE => Some(PageKind::Data { values, encoding: encoding? }),
        8 => {
            let [def_bytes, rep_bytes] = [numbers[5], numbers[6]].map(usize::try_from);
            let (def_bytes, rep_bytes) = (def_bytes.ok()?, rep_bytes.ok()?);
            Some(PageKind::DataV2 { values, encoding: encoding?, def_bytes, rep_bytes, is_compressed })
        }
        7 => Some(PageKind::Dictionary { values }),
        _ => None,
    }
}

/// A page of values.
pub(super) struct DataPage<'p> {
    /// How many values it has, with nulls.
    pub(super) values: usize,
    pub(super) encoding: i32,
    /// How much of each value is there; nothing where all are.
    pub(super) levels: Option<Vec<u32>>,
    /// 0 for each value that begins a row; nothing where all do.
    pub(super) repetitions: Option<Vec<u32>>,
    /// The values that are there.
    pub(super) bytes: &'p [u8],
}

impl<'p> DataPage<'p> {
    /// Takes a page apart; `out` gets its bytes.
    pub(super) fn read(
        header: &PageHeader,
        bytes: &[u8],
        codec: Codec,
        stored: Stored,
        out: &'p mut Vec<u8>,
    ) -> Option<DataPage<'p>> {
        let level_bits = 32 - stored.level_max().leading_zeros();
        match header.kind {
            PageKind::Data { values, encoding } => {
                codec.decompress(bytes, header.uncompressed, out)?;
                let mut rest = &**out;
                let repetitions = if stored.is_list { Some(with_length(&mut rest, 1, values)?) } else { None };
                let levels = if level_bits > 0 { Some(with_length(&mut rest, level_bits, values)?) } else { None };
                Some(DataPage { values, encoding, levels, repetitions, bytes: rest })
            }
            PageKind::DataV2 { values, encoding, def_bytes, rep_bytes, is_compressed } => {
                let (repetitions, rest) = bytes.split_at_checked(rep_bytes)?;
                let (levels, rest) = rest.split_at_checked(def_bytes)?;
                let uncompressed = header.uncompressed.checked_sub(rep_bytes)?.checked_sub(def_bytes)?;
                let codec = if is_compressed { codec } else { Codec::None };
                // Some writers leave out what stands for nothing.
                if !rest.is_empty() || uncompressed > 0 {
                    codec.decompress(rest, uncompressed, out)?;
                }
                let repetitions = if stored.is_list { Some(levels::runs(repetitions, 1, values)?) } else { None };
                let levels = if level_bits > 0 { Some(levels::runs(levels, level_bits, values)?) } else { None };
                Some(DataPage { values, encoding, levels, repetitions, bytes: out })
            }
            PageKind::Dictionary { .. } | PageKind::Index => None,
        }
    }
}

/// Levels with their length in bytes before them.
fn with_length(rest: &mut &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    let (length, bytes) = rest.split_first_chunk::<4>()?;
    let (levels, after) = bytes.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    levels::runs(levels, width, count)
}
