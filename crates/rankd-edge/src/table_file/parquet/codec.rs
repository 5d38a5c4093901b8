//! The ways in which pages are compressed. What comes out is never more than the page's header says it is.

use super::thrift::Compact;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// A page that is larger than this is no more than so many times larger than what it is made from.
const PAGE_BYTES_MAX: usize = 64 << 20;
const EXPANSION_MAX: usize = 256;

/// How the pages of a column are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
    Lz4,
    Zstd,
}

impl Codec {
    /// The codec with this number, or the name of one that is not read.
    pub(super) fn new(number: i32) -> Result<Codec, &'static str> {
        Ok(match number {
            0 => Codec::None,
            1 => Codec::Snappy,
            2 => Codec::Gzip,
            6 => Codec::Zstd,
            7 => Codec::Lz4,
            3 => return Err("LZO"),
            4 => return Err("Brotli"),
            5 => return Err("the old LZ4"),
            _ => return Err("a codec that is not known"),
        })
    }

    /// Adds what the bytes stand for to `out`: exactly `len` bytes of it.
    pub(super) fn decompress(self, bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
        if len > PAGE_BYTES_MAX.max(bytes.len().saturating_mul(EXPANSION_MAX)) {
            return None;
        }
        let start = out.len();
        match self {
            Codec::None => out.extend_from_slice(bytes),
            Codec::Snappy => snappy(bytes, len, out)?,
            Codec::Gzip => gzip(bytes, len, out)?,
            Codec::Lz4 => lz4(bytes, len, out)?,
            Codec::Zstd => zstd(bytes, len, out)?,
        }
        (out.len() - start == len).then_some(())
    }
}

/// Room for what is announced, as far as the bytes can bear it out: a byte of Snappy or LZ4 stands for no more than 255, one of zstd rarely does.
fn reserve(bytes: &[u8], len: usize, out: &mut Vec<u8>) {
    out.reserve_exact(len.min(bytes.len().saturating_mul(255)));
}

fn snappy(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut head = Compact::new(bytes);
    if usize::try_from(head.varint()?) != Ok(len) {
        return None;
    }
    let (mut at, start) = (head.at(), out.len());
    reserve(bytes, len, out);
    while let Some(tag) = bytes.get(at).map(|tag| usize::from(*tag)) {
        at += 1;
        // So many little-endian bytes of a number.
        let number = |at: usize, size: usize| {
            Some(bytes.get(at..at + size)?.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
        };
        let (offset, length, size) = match tag & 3 {
            0 => {
                let (length, size) = match tag >> 2 {
                    more @ 60.. => (number(at, more - 59)?, more - 59),
                    length => (length, 0),
                };
                at += size;
                let literal = bytes.get(at..at.checked_add(length + 1)?)?;
                at += literal.len();
                out.extend_from_slice(literal);
                if out.len() - start > len {
                    return None;
                }
                continue;
            }
            1 => ((tag >> 5) << 8 | number(at, 1)?, (tag >> 2 & 7) + 4, 1),
            2 => (number(at, 2)?, (tag >> 2) + 1, 2),
            _ => (number(at, 4)?, (tag >> 2) + 1, 4),
        };
        at += size;
        copy(out, start, offset, length, len)?;
    }
    Some(())
}

fn lz4(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let (mut at, start) = (0, out.len());
    reserve(bytes, len, out);
    // A length that fills its half of the tag goes on behind it.
    let length = |at: &mut usize, half: usize| {
        let mut length = half;
        let mut more = if half == 15 { 255 } else { 0 };
        while more == 255 {
            more = usize::from(*bytes.get(*at)?);
            *at += 1;
            length = length.checked_add(more)?;
        }
        Some(length)
    };
    while let Some(tag) = bytes.get(at).map(|tag| usize::from(*tag)) {
        at += 1;
        let literals = length(&mut at, tag >> 4)?;
        let literal = bytes.get(at..at.checked_add(literals)?)?;
        at += literals;
        out.extend_from_slice(literal);
        if out.len() - start > len {
            return None;
        }
        // The last ones have no copy behind them.
        if at == bytes.len() {
            break;
        }
        let offset = usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        at += 2;
        let length = length(&mut at, tag & 15)?.checked_add(4)?;
        copy(out, start, offset, length, len)?;
    }
    Some(())
}

fn zstd(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let decoder = StreamingDecoder::new(bytes).ok()?;
    reserve(bytes, len, out);
    // One more than there should be, to notice that there is more.
    decoder.take(len as u64 + 1).read_to_end(out).ok().map(drop)
}

fn gzip(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let (head, mut rest) = bytes.split_first_chunk::<10>()?;
    let [0x1f, 0x8b, 8, flags, ..] = *head else { return None };
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for _ in [NAME, COMMENT].iter().filter(|flag| flags & **flag != 0) {
        let end = rest.iter().position(|byte| *byte == 0)?;
        rest = &rest[end + 1..];
    }
    if flags & CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    out.extend_from_slice(&decompress_to_vec_with_limit(rest, len).ok()?);
    Some(())
}

/// Repeats what stands `offset` bytes before the end; it may repeat itself.
fn copy(out: &mut Vec<u8>, start: usize, offset: usize, length: usize, len: usize) -> Option<()> {
    let from = out.len().checked_sub(offset).filter(|from| offset > 0 && *from >= start)?;
    if out.len() - start + length > len {
        return None;
    }
    if offset >= length {
        out.extend_from_within(from..from + length);
    } else {
        for at in from..from + length {
            out.push(out[at]);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(codec: Codec, bytes: &[u8], len: usize) -> Option<String> {
        // What is there already must not be reached.
        let mut out = b"before".to_vec();
        codec.decompress(bytes, len, &mut out)?;
        Some(String::from_utf8(out[6..].to_vec()).unwrap())
    }

    #[test]
    fn copies_may_repeat_themselves_and_reach_no_further_than_the_start() {
        let snappy = [10, 2 << 2, b'a', b'b', b'c', 3 << 2 | 1, 3];
        assert_eq!(text(Codec::Snappy, &snappy, 10).as_deref(), Some("abcabcabca"));
        let lz4 = [3 << 4 | 3, b'a', b'b', b'c', 3, 0];
        assert_eq!(text(Codec::Lz4, &lz4, 10).as_deref(), Some("abcabcabca"));
        for (codec, bytes) in [
            (Codec::Snappy, &[10, 2 << 2, b'a', b'b', b'c', 3 << 2 | 1, 4][..]),
            (Codec::Snappy, &[10, 2 << 2, b'a', b'b', b'c', 3 << 2 | 1, 0]),
            (Codec::Snappy, &[10, 2 << 2, b'a', b'b']),
            (Codec::Snappy, &[9, 2 << 2, b'a', b'b', b'c', 3 << 2 | 1, 3]),
            (Codec::Lz4, &[3 << 4 | 3, b'a', b'b', b'c', 4, 0]),
            (Codec::Lz4, &[3 << 4 | 3, b'a', b'b', b'c', 0, 0]),
            (Codec::Lz4, &[3 << 4 | 15, b'a', b'b', b'c', 3, 0, 255]),
            (Codec::Lz4, &[15 << 4]),
            (Codec::Gzip, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 7]),
            (Codec::Zstd, &[0x28, 0xb5, 0x2f, 0xfd, 0]),
        ] {
            assert_eq!(text(codec, bytes, 10), None, "{codec:?} {bytes:?}");
        }
    }

    #[test]
    fn a_page_is_not_made_larger_than_its_bytes_can_bear_out() {
        let mut out = Vec::new();
        for codec in [Codec::None, Codec::Snappy, Codec::Gzip, Codec::Lz4, Codec::Zstd] {
            assert_eq!(codec.decompress(&[0xff; 64], 1 << 40, &mut out), None, "{codec:?}");
            assert!(out.capacity() < 1 << 20, "{codec:?}");
        }
    }
}
