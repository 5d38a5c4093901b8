//! Small numbers as Parquet packs them: runs of one value in turn with values side by side, a few bits each; and ints as differences.

use super::thrift::Compact;

/// Reads exactly `count` numbers of `width` bits, 32 at most, from runs. Some bytes may be left.
pub(super) fn runs(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    if width > 32 {
        return None;
    }
    let mut numbers = Vec::new();
    let size = width.div_ceil(8) as usize;
    let mut at = 0;
    while numbers.len() < count {
        let mut head = Compact::new(bytes.get(at..)?);
        let header = usize::try_from(head.varint()?).ok()?;
        at += head.at();
        let left = count - numbers.len();
        if header & 1 == 0 {
            let value = bytes.get(at..at + size)?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            at += size;
            numbers.resize(numbers.len() + left.min(header >> 1), value);
        } else {
            let len = (header >> 1).checked_mul(width as usize)?;
            // The last group may be cut off where its numbers end.
            let end = at.checked_add(len)?.min(bytes.len());
            let wanted = left.min((header >> 1).checked_mul(8)?);
            unpack(bytes.get(at..end)?, width, wanted, |number| numbers.push(number as u32))?;
            at = end;
        }
    }
    Some(numbers)
}

/// Reads `count` numbers of `width` bits, 64 at most, that stand side by side.
fn unpack(bytes: &[u8], width: u32, count: usize, mut each: impl FnMut(u64)) -> Option<()> {
    if (count.checked_mul(width as usize)?).div_ceil(8) > bytes.len() {
        return None;
    }
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    for number in 0..count {
        let bit = number * width as usize;
        let (at, shift) = (bit / 8, bit % 8);
        let low = match bytes[at.min(bytes.len())..].first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => tail(&bytes[at.min(bytes.len())..]),
        };
        let mut value = low >> shift;
        if shift + width as usize > 64 {
            value |= u64::from(bytes[at + 8]) << (64 - shift);
        }
        each(value & mask);
    }
    Some(())
}

fn tail(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Ints as differences in blocks. Gives them and how many bytes they took.
pub(super) fn deltas(bytes: &[u8], count_max: usize) -> Option<(Vec<i64>, usize)> {
    let mut reader = Compact::new(bytes);
    let block = usize::try_from(reader.varint()?).ok()?;
    let minis = usize::try_from(reader.varint()?).ok()?;
    let count = usize::try_from(reader.varint()?).ok()?;
    let first = reader.int()?;
    let per_mini = block.checked_div(minis)?;
    if count > count_max || per_mini == 0 || !per_mini.is_multiple_of(8) {
        return None;
    }
    let mut values = Vec::new();
    if count == 0 {
        return Some((values, reader.at()));
    }
    values.push(first);
    let (mut at, mut last) = (reader.at(), first);
    while values.len() < count {
        let mut head = Compact::new(bytes.get(at..)?);
        let least = head.int()?;
        at += head.at();
        let widths = bytes.get(at..at.checked_add(minis)?)?;
        at += minis;
        for width in widths {
            if values.len() == count {
                // What is behind the last value is not there.
                break;
            }
            let width = u32::from(*width);
            if width > 64 {
                return None;
            }
            let len = (per_mini / 8).checked_mul(width as usize)?;
            let packed = bytes.get(at..at.checked_add(len)?.min(bytes.len()))?;
            let wanted = per_mini.min(count - values.len());
            unpack(packed, width, wanted, |delta| {
                last = last.wrapping_add(least).wrapping_add(delta as i64);
                values.push(last);
            })?;
            at += packed.len();
        }
    }
    Some((values, at))
}
