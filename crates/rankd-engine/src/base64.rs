//! Bytes as text, as RFC 4648 has it: base64 with padding, and the alphabet for URLs without.

/// The bytes that a text in base64 stands for, padding included.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (at, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|letter| **letter == b'=').count();
        if padding > 2 || (padding > 0 && at + 1 < groups.len()) {
            return None;
        }
        let mut bits = 0u32;
        for letter in &group[..4 - padding] {
            bits = bits << 6 | u32::from(value(*letter)?);
        }
        bits <<= 6 * padding;
        // What the padding leaves over is nothing.
        if bits & ((1 << (8 * padding)) - 1) != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bytes as base64 with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = encode_url(bytes).replace('-', "+").replace('_', "/");
    text.extend(std::iter::repeat_n('=', (3 - bytes.len() % 3) % 3));
    text
}

/// Bytes as base64url without padding.
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        let letters = (0..=group.len()).map(|at| char::from(URL[(bits >> (18 - 6 * at)) as usize & 63]));
        text.extend(letters);
    }
    text
}

/// The bytes that such a text stands for.
pub(crate) fn decode_url(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/', '=']) || text.len() % 4 == 1 {
        return None;
    }
    let mut standard = text.replace('-', "+").replace('_', "/");
    standard.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
    decode(&standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_and_written_as_the_standard_says() {
        for (text, bytes) in
            [("", &b""[..]), ("Zg==", b"f"), ("Zm8=", b"fo"), ("Zm9v", b"foo"), ("+/8A", &[251, 255, 0])]
        {
            assert_eq!((decode(text).as_deref(), encode(bytes)), (Some(bytes), text.to_owned()));
        }
    }

    #[test]
    fn base64url_has_no_padding_and_comes_back() {
        for (text, bytes) in [("", &b""[..]), ("Zg", b"f"), ("Zm8", b"fo"), ("Zm9v", b"foo"), ("-_8A", &[251, 255, 0])]
        {
            assert_eq!((encode_url(bytes), decode_url(text).as_deref()), (text.to_owned(), Some(bytes)));
        }
        for wrong in ["Z", "Zg==", "+/8A", "Zh", "Z*8A"] {
            assert_eq!(decode_url(wrong), None, "{wrong}");
        }
    }
}
