//! Which HTTP status a failure has: one table, for the server and for the document that describes it.

use hyper::StatusCode;
use rankd_engine::ErrorKind;

/// The caller closed the connection, or the process stops: a status that others use, too, and no standard has.
pub const CLIENT_CLOSED_REQUEST: u16 = 499;

pub fn of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BadRequest => StatusCode::BAD_REQUEST,
        ErrorKind::UnknownPlan => StatusCode::NOT_FOUND,
        ErrorKind::InvalidPlan => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Upstream => StatusCode::BAD_GATEWAY,
        ErrorKind::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        // Every number from 100 to 999 is a status.
        ErrorKind::Cancelled => StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
        ErrorKind::Task | ErrorKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_status_that_the_contract_gives_it() {
        let table: Vec<(&str, u16)> = ErrorKind::ALL.iter().map(|kind| (kind.name(), of(*kind).as_u16())).collect();
        let expected = [
            ("bad_request", 400),
            ("unknown_plan", 404),
            ("invalid_plan", 422),
            ("timeout", 504),
            ("upstream", 502),
            ("task", 500),
            ("overloaded", 503),
            ("cancelled", 499),
            ("bug", 500),
        ];
        assert_eq!(table, expected);
    }
}
