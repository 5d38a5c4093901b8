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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_numbers_follow_each_other() {
        // Five times 3; then eight numbers of three bits, 0 to 7; as the format's documents have them.
        let bytes = [10, 3, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(runs(&bytes, 3, 13).unwrap(), [3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(runs(&bytes, 3, 2).unwrap(), [3, 3]);
        assert_eq!(runs(&bytes, 3, 14), None, "no more are there");
        assert_eq!(runs(&[], 0, 0).unwrap(), [0; 0]);
        assert_eq!(runs(&[2], 3, 1), None, "a run without its value");
        assert_eq!(runs(&bytes, 33, 1), None);
    }

    #[test]
    fn packed_numbers_of_every_width_are_read() {
        for width in 0..=64_u32 {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let numbers: Vec<u64> = (0..40_u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask).collect();
            let mut bytes = vec![0_u8; (numbers.len() * width as usize).div_ceil(8)];
            for (at, number) in numbers.iter().enumerate() {
                for bit in 0..width as usize {
                    let to = at * width as usize + bit;
                    bytes[to / 8] |= ((number >> bit & 1) as u8) << (to % 8);
                }
            }
            let mut read = Vec::new();
            unpack(&bytes, width, numbers.len(), |number| read.push(number)).unwrap();
            assert_eq!(read, numbers, "{width}");
            assert!(width == 0 || unpack(&bytes, width, numbers.len() + 8, |_| {}).is_none());
        }
    }

    #[test]
    fn differences_add_up() {
        // 7, 5, 3, 1, 2, 3, 4, 5, as the format's documents have them: the least difference is -2, two bits each.
        let bytes = [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let (values, used) = deltas(&bytes, 8).unwrap();
        assert_eq!((values, used), (vec![7, 5, 3, 1, 2, 3, 4, 5], bytes.len()));
        assert_eq!(deltas(&bytes, 7), None, "more than there are values");
        assert_eq!(deltas(&bytes[..9], 8), None);
        assert_eq!(deltas(&[0, 0, 8, 14], 8), None);
    }
}
