//! SHA-256 in hexadecimal: what names a version of a plan, of a registry, or of any other text or file.

use sha2::{Digest, Sha256};

/// The SHA-256 of a text.
pub fn sha256(text: &str) -> String {
    in_hexadecimal(&Sha256::digest(text.as_bytes()))
}

/// A digest that was computed elsewhere.
pub fn in_hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
