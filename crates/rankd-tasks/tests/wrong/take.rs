//! A header whose example gives something else than `take` does. Read by a test, never compiled.
//!
//! ```text
//! with {"count": 1}
//! given
//! | id |
//! | 7 |
//! | 5 |
//! gives
//! | id |
//! | 5 |
//! ```
