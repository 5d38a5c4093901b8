//! The two hashes of expressions, the first of which also draws random numbers ([`crate::kernel::draws`]): of the text `salt:x`, the same on every machine and in every version.
//!
//! XXH64 is fast and its values are ints. The other is made of the first 52 bits of SHA-256, because every warehouse can compute that.

use sha2::{Digest, Sha256};
use std::fmt::Write;

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// XXH64 with seed 0, without its top bit, so that it is an int of at least zero.
pub(super) fn int_hash(text: &[u8]) -> i64 {
    (xxh64(text) & (u64::MAX >> 1)) as i64
}

/// The first 52 bits of SHA-256 as a fraction: at least 0 and less than 1, and exact.
pub(super) fn unit_hash(text: &[u8]) -> f64 {
    fraction(Sha256::new_with_prefix(text))
}

/// The same of the text `salt:x`, for those who have one `x` and many salts. Nothing is allocated.
pub fn salted_unit_hash(salt: &str, x: &str) -> f64 {
    fraction(Sha256::new_with_prefix(salt).chain_update(b":").chain_update(x))
}

fn fraction(hash: Sha256) -> f64 {
    let head = hash.finalize().iter().take(8).fold(0u64, |head, byte| head << 8 | u64::from(*byte));
    (head >> 12) as f64 / (1u64 << 52) as f64
}

pub(crate) fn xxh64(text: &[u8]) -> u64 {
    let (blocks, rest) = text.as_chunks::<32>();
    let mut hash = match blocks {
        [] => P5,
        blocks => {
            let mut lanes = [P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)];
            for block in blocks {
                for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                    *lane = round(*lane, u64::from_le_bytes(*word));
                }
            }
            let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
            let hash = turned.fold(0u64, u64::wrapping_add);
            lanes.iter().fold(hash, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
        }
    };
    hash = hash.wrapping_add(text.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = (hash ^ round(0, u64::from_le_bytes(*word))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        let half = u64::from(u32::from_le_bytes(*half));
        hash = (hash ^ half.wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

/// The text `salt:x` for one `x` after another.
pub(crate) struct Salted {
    text: String,
    /// Bytes of `salt:`.
    salt: usize,
}

impl Salted {
    pub(crate) fn new(salt: &str) -> Salted {
        let mut text = String::with_capacity(salt.len() + 24);
        text.push_str(salt);
        text.push(':');
        Salted { salt: text.len(), text }
    }

    pub(crate) fn with_text(&mut self, x: &str) -> &[u8] {
        self.text.truncate(self.salt);
        self.text.push_str(x);
        self.text.as_bytes()
    }

    pub(crate) fn with_int(&mut self, x: i64) -> &[u8] {
        self.text.truncate(self.salt);
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{x}");
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints_and_their_decimal_text_have_the_values_that_are_published() {
        assert_eq!(int_hash(Salted::new("s").with_int(7)), 84_068_227_718_884_387);
        assert_eq!(int_hash(Salted::new("s").with_text("7")), 84_068_227_718_884_387);
        for (salt, x, value) in [
            ("ranking_weight", "7", 0.623_355_611_586_864_6),
            ("ranking_weight", "tt0000001", 0.331_158_463_501_634_47),
            ("home", "7", 0.771_538_933_093_599_3),
        ] {
            assert_eq!(unit_hash(Salted::new(salt).with_text(x)), value, "{salt} {x}");
            assert_eq!(salted_unit_hash(salt, x), value, "{salt} {x}");
        }
    }

    /// Values of the reference implementation: one for each way through the tail, and for several blocks.
    #[test]
    fn xxh64_is_the_published_function() {
        for (text, hash) in [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ] {
            assert_eq!(xxh64(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn one_x_leaves_nothing_behind_for_the_next() {
        let mut salted = Salted::new("s");
        salted.with_text("a long text that came before");
        assert_eq!(salted.with_int(-5), b"s:-5");
        assert_eq!(Salted::new("").with_text(""), b":");
    }
}
