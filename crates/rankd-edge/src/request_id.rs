//! Ids for requests that bring none: UUIDs of version 7, from random bytes that are fetched for many at a time.
//!
//! They are told apart, not kept secret.

use crate::date;
use rustix::rand::{GetRandomFlags, getrandom};
use std::cell::RefCell;
use uuid::{Builder, Uuid};

/// Random bytes of one id.
const EACH: usize = 10;
const AT_A_TIME: usize = 100;

/// Random bytes of this thread, and how many of them are not used yet.
struct Supply {
    bytes: [[u8; EACH]; AT_A_TIME],
    left: usize,
}

thread_local! {
    static SUPPLY: RefCell<Supply> = const { RefCell::new(Supply { bytes: [[0; EACH]; AT_A_TIME], left: 0 }) };
}

/// A new id.
pub fn make() -> String {
    let random = SUPPLY.with_borrow_mut(Supply::take);
    let id = match random {
        Some(random) => Builder::from_unix_timestamp_millis(date::millis(), &random).into_uuid(),
        // The system gave none, or was interrupted: the slow way asks again.
        None => Uuid::now_v7(),
    };
    id.hyphenated().encode_lower(&mut Uuid::encode_buffer()).to_owned()
}

impl Supply {
    fn take(&mut self) -> Option<[u8; EACH]> {
        if self.left == 0 {
            let whole = self.bytes.as_flattened_mut();
            if getrandom(&mut *whole, GetRandomFlags::empty()) != Ok(EACH * AT_A_TIME) {
                return None;
            }
            self.left = AT_A_TIME;
        }
        self.left -= 1;
        self.bytes.get(self.left).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_of_version_7_and_never_the_same() {
        let ids: HashSet<String> = (0..3 * AT_A_TIME).map(|_| make()).collect();
        assert_eq!(ids.len(), 3 * AT_A_TIME);
        for id in &ids {
            let id = Uuid::parse_str(id).unwrap();
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        }
    }
}
