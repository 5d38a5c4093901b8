//! Numbers as JSON, into space that is there already: a caller that writes many checks once whether there is enough for all of them.
//!
//! Bytes are copied in fixed lengths, longer than what is written, because that is faster than copying just what is needed.
//! What stands behind the end that a function gives means nothing.

/// The room that a number needs, whatever it is.
pub const NUMBER_ROOM: usize = 32;

/// Puts bytes at a position. Too little room is a bug in the caller and panics.
#[inline]
pub fn put<const N: usize>(room: &mut [u8], at: usize, bytes: &[u8; N]) {
    room[at..at + N].copy_from_slice(bytes);
}

/// Puts an int at a position and gives the position behind it.
#[inline]
pub fn put_int(room: &mut [u8], at: usize, value: i64) -> usize {
    match u32::try_from(value) {
        Ok(value @ 0..10_000) => put_small(room, at, value),
        _ => put_any(room, at, value),
    }
}

fn put_any(room: &mut [u8], mut at: usize, value: i64) -> usize {
    const GROUP: u64 = 100_000_000;
    if value < 0 {
        put(room, at, b"-");
        at += 1;
    }
    let value = value.unsigned_abs();
    if value < GROUP {
        return put_first(room, at, value);
    }
    let (high, low) = (value / GROUP, value % GROUP);
    at = match high < GROUP {
        true => put_first(room, at, high),
        false => {
            at = put_first(room, at, high / GROUP);
            put_eight(room, at, high % GROUP)
        }
    };
    put_eight(room, at, low)
}

/// Puts a finite number: the shortest digits that read back as the same, with a point or an exponent, so that a float looks
/// like one.
#[inline]
pub fn put_float(room: &mut [u8], at: usize, value: f64) -> usize {
    debug_assert!(value.is_finite());
    let bits = value.to_bits();
    // Only these can be whole: 0.0, which is not -0.0, and what lies between 1 and 2^53, where every int is a float, so that its
    // digits are the shortest.
    if bits == 0 || (1023..1023 + 53).contains(&(bits >> 52 & 0x7ff)) {
        let whole = value as i64;
        if whole as f64 == value {
            let at = put_int(room, at, whole);
            put(room, at, b".0");
            return at + 2;
        }
    }
    let mut buffer = zmij::Buffer::new();
    put_digits(room, at, buffer.format_finite(value).as_bytes())
}

/// Puts a finite number of 32 bits: the shortest digits that read back as the same of these.
#[inline]
pub fn put_single(room: &mut [u8], at: usize, value: f32) -> usize {
    debug_assert!(value.is_finite());
    let mut buffer = zmij::Buffer::new();
    put_digits(room, at, buffer.format_finite(value).as_bytes())
}

#[inline]
fn put_digits(room: &mut [u8], at: usize, text: &[u8]) -> usize {
    let end = at + text.len();
    match (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        // Their middle parts are the same bytes.
        (Some(first), Some(last)) => {
            put(room, at, first);
            put(room, end - 16, last);
        }
        _ => room[at..end].copy_from_slice(text),
    }
    end
}

/// A number of at most four digits, without zeros before it. The digits are made as in [`eight_digits`].
#[inline]
fn put_small(room: &mut [u8], at: usize, value: u32) -> usize {
    let hundreds = (value * 5_243) >> 19;
    let twos = hundreds | (value - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f;
    let digits = tens | (twos - 10 * tens) << 8;
    let zeros = (digits | 1 << 24).trailing_zeros() / 8;
    put(room, at, &((digits | ZEROS as u32) >> (8 * zeros)).to_le_bytes());
    at + 4 - zeros as usize
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// A number of at most eight digits, without zeros before it.
fn put_first(room: &mut [u8], at: usize, value: u64) -> usize {
    let digits = eight_digits(value);
    // The last digit stays, also when it is a zero.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    put(room, at, &((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
    at + 8 - zeros as usize
}

fn put_eight(room: &mut [u8], at: usize, value: u64) -> usize {
    put(room, at, &(eight_digits(value) | ZEROS).to_le_bytes());
    at + 8
}

/// The decimal digits of a number of at most eight, a byte each, the first one lowest. Halved three times, all parts at once:
/// the factors are 1/100 and 1/10 as fractions of a power of two, exact for numbers this small.
fn eight_digits(value: u64) -> u64 {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> String {
        let mut room = [b'x'; NUMBER_ROOM];
        let end = put_int(&mut room, 0, value);
        String::from_utf8(room[..end].to_vec()).unwrap()
    }

    fn float(value: f64) -> String {
        let mut room = [b'x'; NUMBER_ROOM];
        let end = put_float(&mut room, 0, value);
        String::from_utf8(room[..end].to_vec()).unwrap()
    }

    #[test]
    fn ints_are_written_as_everybody_writes_them() {
        let near = |value: i64| (-2..=2).map(move |by| value.saturating_add(by));
        let powers = (0..19).map(|n| 10_i64.pow(n)).flat_map(|power| [power, -power, 7 * (power / 7)]);
        for value in powers.chain([0, i64::MIN, i64::MAX, 1 << 53]).flat_map(near).chain(-20_000..20_000) {
            assert_eq!(int(value), value.to_string());
        }
    }

    #[test]
    fn floats_have_the_same_bytes_whether_they_are_whole_or_not() {
        let two53 = (1_i64 << 53) as f64;
        let mut values = vec![0.0, -0.0, 1e15, 1e16, 1e17, 5e-324, f64::MIN_POSITIVE, f64::MAX, 0.1, 20.3, 1e-5, 1e-7];
        values.extend([two53 - 1.0, two53, two53 + 2.0, 9.3e18, 123_456_789_012_345_680.0, 999_999_999_999_999.9]);
        values.extend((0..=400).map(|at| 1e15 * rankd_column::math::pow(10.0, f64::from(at) / 200.0)));
        values.extend((0..=10_000).map(|at| f64::from(at) / 8.0));
        for value in values.iter().flat_map(|value| [*value, -value, value.next_up(), value.next_down(), value.trunc()])
        {
            if value.is_finite() {
                assert_eq!(float(value), zmij::Buffer::new().format_finite(value), "{value:e}");
            }
        }
    }
}
