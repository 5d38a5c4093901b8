//! The values of a page, by their encoding. Every length is checked against the bytes that bear it out; what cannot be read is `None`.

use super::footer::{Meaning, Physical, Stored};
use super::levels;
use crate::table_file::columnar::half_float;
use std::ops::Range;

/// Encodings.
const PLAIN: i32 = 0;
const PLAIN_DICTIONARY: i32 = 2;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const DELTA_BYTE_ARRAY: i32 = 7;
const RLE_DICTIONARY: i32 = 8;
const BYTE_STREAM_SPLIT: i32 = 9;

/// Values that are there, one after the other.
pub(super) enum Decoded<'b> {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    /// Nothing for those that are not UTF-8.
    Text(Vec<Option<&'b str>>),
    /// Numbers of entries of the dictionary, not checked.
    Codes(Vec<u32>),
}

/// Reads `count` values. `texts` is for those that do not stand in the bytes as they are.
pub(super) fn decode<'b>(
    stored: Stored,
    encoding: i32,
    bytes: &'b [u8],
    count: usize,
    texts: &'b mut Vec<u8>,
) -> Option<Decoded<'b>> {
    match encoding {
        PLAIN => plain(stored, bytes, count),
        PLAIN_DICTIONARY | RLE_DICTIONARY => {
            if count == 0 {
                return Some(Decoded::Codes(Vec::new()));
            }
            let (width, codes) = bytes.split_first()?;
            levels::runs(codes, u32::from(*width), count).map(Decoded::Codes)
        }
        RLE if stored.physical == Physical::Bool => {
            let bits = levels::runs(bytes.get(4..)?, 1, count)?;
            Some(Decoded::Bool(bits.into_iter().map(|bit| bit == 1).collect()))
        }
        DELTA_BINARY_PACKED if matches!(stored.physical, Physical::Int32 | Physical::Int64) => {
            let (mut values, _) = levels::deltas(bytes, count)?;
            if stored.physical == Physical::Int32 {
                // Differences of 32-bit ints wrap around in 32 bits.
                values.iter_mut().for_each(|value| *value = i64::from(*value as i32));
            }
            (values.len() == count).then_some(Decoded::Int(meant(stored, values)))
        }
        DELTA_LENGTH_BYTE_ARRAY if stored.physical == Physical::Bytes => {
            let (bytes, ranges) = delta_lengths(bytes, count)?;
            Some(Decoded::Text(cut(bytes, &ranges)))
        }
        DELTA_BYTE_ARRAY if stored.physical == Physical::Bytes => {
            let ranges = delta_texts(bytes, count, texts)?;
            Some(Decoded::Text(cut(texts, &ranges)))
        }
        BYTE_STREAM_SPLIT => {
            let size = size(stored.physical)?;
            let len = count.checked_mul(size)?;
            let bytes = bytes.get(..len)?;
            let joined: Vec<u8> = (0..len).map(|at| bytes[at % size * count + at / size]).collect();
            fixed(stored, &joined)
        }
        _ => None,
    }
}

/// How many bytes a value takes, if all take the same.
fn size(physical: Physical) -> Option<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Some(4),
        Physical::Int64 | Physical::Double => Some(8),
        Physical::Int96 => Some(12),
        Physical::Fixed(size) => Some(size),
        Physical::Bool | Physical::Bytes => None,
    }
}

/// Reads `count` values that stand one after the other.
pub(super) fn plain(stored: Stored, bytes: &[u8], count: usize) -> Option<Decoded<'_>> {
    match stored.physical {
        Physical::Bool => {
            let bits = bytes.get(..count.div_ceil(8))?;
            Some(Decoded::Bool((0..count).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect()))
        }
        Physical::Bytes => {
            let (mut ranges, mut at) = (Vec::new(), 0);
            // Each has four bytes at least.
            ranges.reserve_exact(count.min(bytes.len() / 4));
            for _ in 0..count {
                let len = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize;
                let end = (at + 4).checked_add(len).filter(|end| *end <= bytes.len())?;
                ranges.push(at + 4..end);
                at = end;
            }
            Some(Decoded::Text(cut(bytes, &ranges)))
        }
        Physical::Int32
        | Physical::Int64
        | Physical::Int96
        | Physical::Float
        | Physical::Double
        | Physical::Fixed(_) => fixed(stored, bytes.get(..count.checked_mul(size(stored.physical)?)?)?),
    }
}

/// Values that all take the same number of bytes.
fn fixed<'b>(stored: Stored, bytes: &[u8]) -> Option<Decoded<'b>> {
    Some(match stored.physical {
        Physical::Int32 => {
            let values = bytes.as_chunks().0.iter().map(|value| i64::from(i32::from_le_bytes(*value))).collect();
            Decoded::Int(meant(stored, values))
        }
        Physical::Int64 => {
            Decoded::Int(meant(stored, bytes.as_chunks().0.iter().map(|value| i64::from_le_bytes(*value)).collect()))
        }
        Physical::Int96 => Decoded::Int(bytes.as_chunks().0.iter().map(days_and_nanoseconds).collect()),
        Physical::Float => {
            Decoded::Float(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value).into()).collect())
        }
        Physical::Double => {
            Decoded::Float(bytes.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value)).collect())
        }
        Physical::Fixed(2) => {
            Decoded::Float(bytes.as_chunks().0.iter().map(|value| half_float(u16::from_le_bytes(*value))).collect())
        }
        Physical::Bool | Physical::Bytes | Physical::Fixed(_) => return None,
    })
}

/// What stored ints mean. Unsigned ints of 64 bits that do not fit are negative, and found by that.
fn meant(stored: Stored, mut values: Vec<i64>) -> Vec<i64> {
    match (stored.meaning, stored.physical) {
        (Meaning::Unsigned, Physical::Int32) => values.iter_mut().for_each(|value| *value = i64::from(*value as u32)),
        (Meaning::Timestamp { by }, _) if by > 1 => values.iter_mut().for_each(|value| *value = value.div_euclid(by)),
        _ => {}
    }
    values
}

/// A timestamp of nanoseconds in a day and a Julian day, in milliseconds.
fn days_and_nanoseconds(bytes: &[u8; 12]) -> i64 {
    const EPOCH: i64 = 2_440_588;
    const DAY_MS: i64 = 86_400_000;
    let (nanoseconds, day) = bytes.split_at(8);
    let nanoseconds = nanoseconds.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    let day = day.first_chunk().map_or(0, |bytes| i64::from(i32::from_le_bytes(*bytes)));
    (day - EPOCH) * DAY_MS + nanoseconds.div_euclid(1_000_000)
}

/// The texts at these places, which are inside of the bytes.
fn cut<'b>(bytes: &'b [u8], ranges: &[Range<usize>]) -> Vec<Option<&'b str>> {
    ranges.iter().map(|range| std::str::from_utf8(&bytes[range.clone()]).ok()).collect()
}

/// Texts behind the list of their lengths, and where each is.
fn delta_lengths(bytes: &[u8], count: usize) -> Option<(&[u8], Vec<Range<usize>>)> {
    let (lengths, used) = levels::deltas(bytes, count)?;
    let bytes = bytes.get(used..)?;
    let mut at = 0;
    let mut range = |length: i64| {
        let end = usize::try_from(length).ok()?.checked_add(at).filter(|end| *end <= bytes.len())?;
        Some(std::mem::replace(&mut at, end)..end)
    };
    let ranges = lengths.into_iter().map(&mut range).collect::<Option<Vec<_>>>()?;
    (ranges.len() == count).then_some((bytes, ranges))
}

/// Texts that begin as the one before them does, put together in `joined`. Gives where each is.
fn delta_texts(bytes: &[u8], count: usize, joined: &mut Vec<u8>) -> Option<Vec<Range<usize>>> {
    let (prefixes, used) = levels::deltas(bytes, count)?;
    let (suffixes, places) = delta_lengths(bytes.get(used..)?, count)?;
    let mut ranges = Vec::<Range<usize>>::new();
    joined.clear();
    // A short page could otherwise stand for very long texts.
    let len_max = bytes.len().saturating_mul(EXPANSION_MAX);
    for (prefix, place) in prefixes.into_iter().zip(places) {
        let last = ranges.last().cloned().unwrap_or(0..0);
        let shared = usize::try_from(prefix).ok().filter(|shared| *shared <= last.len())?;
        let start = joined.len();
        joined.extend_from_within(last.start..last.start + shared);
        joined.extend_from_slice(&suffixes[place]);
        ranges.push(start..joined.len());
        if joined.len() > len_max {
            return None;
        }
    }
    (ranges.len() == count).then_some(ranges)
}

/// How many times longer than their page texts may be.
const EXPANSION_MAX: usize = 256;
