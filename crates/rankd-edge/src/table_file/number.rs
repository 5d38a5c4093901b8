//! Numbers and truths in text: the usual ones by hand, the rest by the standard library, which agrees on what it is given.

/// Powers of ten that are floats without rounding.
const POWERS: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// So many digits fit 64 bits, whatever they are.
const DIGITS: usize = 18;

/// An int as the standard library reads it.
#[inline]
pub(super) fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || digits.len() > DIGITS {
        return parse(text);
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            // Such as a plus, which the fast path does not know.
            return parse(text);
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// A finite float as the standard library reads it.
#[inline]
pub(super) fn float(text: &[u8]) -> Option<f64> {
    let (negative, digits) = sign(text);
    if digits.len() <= DIGITS {
        let (mut value, mut count, mut point) = (0_u64, 0, None);
        for (at, byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                value = value * 10 + u64::from(digit);
                count += 1;
            } else if *byte == b'.' && point.is_none() {
                point = Some(at);
            } else {
                return slow_float(text);
            }
        }
        let behind = point.map_or(0, |at| digits.len() - at - 1);
        // Both are floats without rounding, so the quotient is rounded once, as it should be.
        if count > 0 && value <= 1 << 53 {
            let value = value as f64 / POWERS[behind];
            return Some(if negative { -value } else { value });
        }
    }
    slow_float(text)
}

/// A truth: `true` or `false` as programs write them, or a digit.
pub(super) fn bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"True" | b"TRUE" | b"1" => Some(true),
        b"false" | b"False" | b"FALSE" | b"0" => Some(false),
        _ => None,
    }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    }
}

#[cold]
fn slow_float(text: &[u8]) -> Option<f64> {
    parse(text).filter(|value: &f64| value.is_finite())
}

#[cold]
fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them() {
        let mut texts: Vec<String> = [
            "",
            "-",
            "+",
            ".",
            "-.",
            "0",
            "-0",
            "+7",
            "--1",
            "1-",
            "1.",
            ".5",
            "-.5",
            "1..2",
            "1.2.3",
            "1e5",
            "1E-7",
            "1e",
            "e1",
            "0x1",
            "1_000",
            " 1",
            "1 ",
            "inf",
            "-inf",
            "NaN",
            "nan",
            "infinity",
            "1e999",
            "-1e999",
            "1e-999",
            "٣",
            "1,5",
            "9007199254740992",
            "9007199254740993",
            "90071992547409.93",
            "0.1",
            "0.30000000000000004",
            "123456789012345678",
            "1234567890123456789",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "000000000000000000000001",
            "0.000000000000000001",
            "5e-324",
            "1.7976931348623157e308",
            "00.5",
            "-00",
            "100000000000000000000",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = f64::from_bits(state);
            texts.push((state as i64 >> (state % 64)).to_string());
            texts.push(format!("{value}"));
            texts.push(format!("{:.*}", (state % 12) as usize, (state >> 20) as f64 / 1e6));
        }
        for text in texts {
            assert_eq!(int(text.as_bytes()), text.parse().ok(), "{text:?}");
            let expected = text.parse().ok().filter(|value: &f64| value.is_finite());
            assert_eq!(float(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits), "{text:?}");
        }
        assert_eq!(float(b"\xff"), None);
    }
}
