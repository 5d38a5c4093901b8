//! Which HTTP status a failure has: one table, for the server and for the documents that describe it.

use hyper::StatusCode;
use rankd_engine::codes::{self, ErrorCode, ErrorKind};

/// The caller closed the connection, or the process stops: a status that others use, too, and no standard has.
pub const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Where HTTP has a more specific status than the one of the kind.
const MORE_SPECIFIC: &[(&ErrorCode, StatusCode)] = &[
    (codes::REQUEST_TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE),
    (codes::UNKNOWN_PATH, StatusCode::NOT_FOUND),
    (codes::WRONG_METHOD, StatusCode::METHOD_NOT_ALLOWED),
    (codes::NOT_JSON, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    (codes::BODY_TOO_SLOW, StatusCode::REQUEST_TIMEOUT),
    (codes::OTHER_HOST, StatusCode::MISDIRECTED_REQUEST),
    (codes::ENCODED_BODY, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    (codes::ROLLBACK_NOT_ALLOWED, StatusCode::FORBIDDEN),
    (codes::UNKNOWN_VERSION, StatusCode::NOT_FOUND),
    (codes::NO_EARLIER_VERSION, StatusCode::CONFLICT),
    (codes::PLAN_PINNED, StatusCode::CONFLICT),
    (codes::NO_CONSOLE_TOKEN, StatusCode::UNAUTHORIZED),
    (codes::FOREIGN_PAGE, StatusCode::FORBIDDEN),
    (codes::ROWS_HIDDEN, StatusCode::FORBIDDEN),
];

/// The status of an answer with this code.
pub fn of(code: &ErrorCode) -> StatusCode {
    let specific = MORE_SPECIFIC.iter().find(|(known, _)| *known == code);
    specific.map_or_else(|| of_kind(code.kind), |(_, status)| *status)
}

/// The status of a kind.
pub fn of_kind(kind: ErrorKind) -> StatusCode {
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
        let table: Vec<(&str, u16)> =
            ErrorKind::ALL.iter().map(|kind| (kind.name(), of_kind(*kind).as_u16())).collect();
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

    #[test]
    fn a_more_specific_status_is_one_of_a_bad_request() {
        for (code, status) in MORE_SPECIFIC {
            assert!(code.kind == ErrorKind::BadRequest && status.is_client_error(), "{code}");
            assert_eq!(of(code), *status);
        }
        assert_eq!(of(codes::UNREACHABLE), StatusCode::BAD_GATEWAY);
    }
}
