//! Which bytes of a string stand in JSON as they are. Eight of them are looked at together.

/// How many bytes come before the first one that JSON escapes: a quote, a backslash or a control character.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk() {
        let found = to_escape(u64::from_le_bytes(*eight));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')).unwrap_or(rest.len())
}

/// Whether a text stands in JSON as it is, between quotes.
pub fn is_plain(text: &str) -> bool {
    plain(text.as_bytes()) == text.len()
}

/// The top bit of each byte that is escaped. What stands above the lowest one may be wrong: subtracting borrows from there.
fn to_escape(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & TOPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_judged_alike_wherever_it_stands() {
        for byte in 0..=255 {
            let escaped = matches!(byte, 0..=0x1f | b'"' | b'\\');
            for len in 1..20 {
                for at in 0..len {
                    for around in [b'a', 0x7f, 0x80, 0xff, b' ', b'!', b'#', b'[', b']'] {
                        let mut bytes = vec![around; len];
                        bytes[at] = byte;
                        assert_eq!(plain(&bytes), if escaped { at } else { len }, "{byte} at {at} of {len}");
                    }
                }
            }
        }
        assert_eq!(plain(b"01234567\"\"\"\"\"\"\"\""), 8);
        assert_eq!(plain(b""), 0);
    }
}
