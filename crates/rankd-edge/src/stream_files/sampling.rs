//! Which requests are written: a share of them, by a hash of their ids, so that one id is always in or always out.

use rankd_column::expr::salted_unit_hash;

/// A share of all requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// From 0 to 1.
    pub(crate) share: f64,
    /// Goes before the request's id, so that what is written to different places is not always of the same requests.
    pub(crate) salt: &'static str,
}

impl Sampling {
    /// Whether the request with this id is one of the share.
    #[inline]
    pub(crate) fn takes(&self, request_id: &str) -> bool {
        self.share >= 1.0 || salted_unit_hash(self.salt, request_id) < self.share
    }
}
