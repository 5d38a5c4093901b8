//! Table files as others write them, read back; and the same files with damage.

#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]
#![expect(unsafe_code, reason = "counting what is allocated needs a global allocator")]

mod allocator;
mod damage;
#[path = "../../../rankd/tests/downloads/mod.rs"]
mod downloads;
mod rows;
mod written_by_others;
mod written_here;
