//! What a caller asks for, already typed and checked.

use rankd_column::{RowSet, Value};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub user_id: i64,
    pub request_id: String,
    /// By position in the parameter registry: what the request set, else the default, else null.
    pub params: Vec<Value>,
    /// Rows that the caller brought along.
    pub candidates: Option<RowSet>,
    pub deadline: Option<Duration>,
    pub node_timeout: Option<Duration>,
    /// Whether the answer should tell how it came about.
    pub trace: bool,
}
