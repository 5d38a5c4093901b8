//! Why a store did not answer.

use crate::codes::{self, ErrorCode};
use crate::recorded::RecordedFault;
use crate::store::http::is_the_services;
use crate::store::keyed::limits;
use crate::store::redis::Trouble;
use std::fmt;

/// Why a batch was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The store does not answer.
    Unavailable(String),
    /// A key holds another type than the read wants.
    WrongType { key: String },
    /// The embedded store was configured to fail here.
    Injected { command: &'static str },
    /// The server did not answer in the time that the endpoint allows.
    TimedOut { address: String, ms: u64 },
    /// The server answered with an error line.
    Server { trouble: Trouble, line: String },
    /// What is stored under a key is more than is read.
    TooLarge { key: String, what: TooLarge },
    /// A service answered with a status that is not one of success; the beginning of what it said besides.
    Status { address: String, status: u16, said: String },
    /// The answer of a service has more bytes than its endpoint allows.
    AnswerTooLarge { bytes_max: usize },
    /// The answer of a service is compressed.
    Encoded { encoding: String },
    /// The path of a call is too long, or has characters that paths do not have.
    BadPath { bytes_max: usize },
    /// A replayed read that failed when it was recorded.
    Recorded(RecordedFault),
    /// A replayed read that was not recorded: so many keys or calls, and the first of them.
    NotRecorded { what: String, count: usize },
}

/// What a reply has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// A hash that is read whole has too many fields.
    Hash,
    /// A set that is read whole has too many members.
    Set,
    /// One value has too many bytes.
    Value,
    /// All replies to a batch together have too many bytes.
    Batch,
}

impl StoreError {
    /// A server's error line in answer to the read of a key.
    pub(crate) fn from_server(key: String, line: String) -> StoreError {
        match line.starts_with("WRONGTYPE") {
            true => StoreError::WrongType { key },
            false => StoreError::Server { trouble: Trouble::of(&line), line },
        }
    }

    pub fn code(&self) -> &'static ErrorCode {
        match self {
            StoreError::Unavailable(_) => codes::UNREACHABLE,
            StoreError::WrongType { .. } => codes::WRONG_STORED_TYPE,
            StoreError::Injected { .. } => codes::INJECTED_READ,
            StoreError::TimedOut { .. } => codes::NO_ANSWER,
            StoreError::Server { trouble, .. } => trouble.code(),
            StoreError::TooLarge { .. } => codes::STORED_TOO_LARGE,
            StoreError::Status { status, .. } if is_the_services(*status) => codes::SERVICE_FAILED,
            StoreError::Status { .. } => codes::SERVICE_REFUSED,
            StoreError::AnswerTooLarge { .. } => codes::ANSWER_TOO_LARGE,
            StoreError::Encoded { .. } => codes::ANSWER_NOT_JSON,
            StoreError::BadPath { .. } => codes::BAD_CALL_PATH,
            StoreError::Recorded(fault) => fault.code,
            StoreError::NotRecorded { .. } => codes::NOT_RECORDED,
        }
    }

    /// What a caller may know: the endpoint by its name in the registry, and neither an address nor what the server said.
    pub fn for_callers(&self, endpoint: &str) -> String {
        match self {
            StoreError::Unavailable(_) => format!("the endpoint {endpoint:?} cannot be reached"),
            StoreError::TimedOut { ms, .. } => format!("the endpoint {endpoint:?} did not answer within {ms} ms"),
            StoreError::Server { trouble, .. } => format!("the endpoint {endpoint:?} {}", trouble.words()),
            StoreError::Status { status, .. } => format!("the endpoint {endpoint:?} answered with status {status}"),
            StoreError::AnswerTooLarge { bytes_max } => {
                format!("the endpoint {endpoint:?} answered with more than {bytes_max} bytes")
            }
            StoreError::Encoded { .. } => format!("the endpoint {endpoint:?} answered with compressed content"),
            StoreError::BadPath { .. } | StoreError::NotRecorded { .. } => format!("the endpoint {endpoint:?}: {self}"),
            StoreError::Recorded(fault) => fault.message.clone(),
            StoreError::WrongType { .. } | StoreError::Injected { .. } | StoreError::TooLarge { .. } => {
                self.to_string()
            }
        }
    }

    /// What is for the log and the trace alone, where there is more to say.
    pub fn detail(&self) -> Option<String> {
        match self {
            StoreError::Unavailable(_)
            | StoreError::TimedOut { .. }
            | StoreError::Server { .. }
            | StoreError::Status { .. }
            | StoreError::Encoded { .. } => Some(self.to_string()),
            StoreError::WrongType { .. }
            | StoreError::Injected { .. }
            | StoreError::TooLarge { .. }
            | StoreError::AnswerTooLarge { .. }
            | StoreError::BadPath { .. }
            | StoreError::Recorded(_)
            | StoreError::NotRecorded { .. } => None,
        }
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(why) => write!(f, "the store cannot be reached: {why}"),
            StoreError::WrongType { key } => write!(f, "the key {key} holds a different type than expected"),
            StoreError::TimedOut { address, ms } => write!(f, "{address} did not answer within {ms} ms"),
            StoreError::Server { line, .. } => write!(f, "the store answered: {line}"),
            StoreError::Injected { command } => write!(f, "{command} failed, as configured for the endpoint"),
            StoreError::Status { address, status, said } => {
                write!(f, "{address} answered with status {status}: {said:?}")
            }
            StoreError::AnswerTooLarge { bytes_max } => write!(f, "the answer has more than {bytes_max} bytes"),
            StoreError::Encoded { encoding } => {
                write!(f, "the answer has the content-encoding {encoding:?}, which was not asked for")
            }
            StoreError::BadPath { bytes_max } => {
                write!(f, "the path of a call has more than {bytes_max} bytes, or characters that paths do not have")
            }
            StoreError::Recorded(fault) => f.write_str(&fault.message),
            StoreError::NotRecorded { what, count: 1 } => write!(f, "{what} was not recorded"),
            StoreError::NotRecorded { what, count } => write!(f, "{what} and {} more were not recorded", count - 1),
            StoreError::TooLarge { key, what } => match what {
                TooLarge::Hash => {
                    write!(f, "the hash {key} has more than {} fields: read only some", limits::ELEMENTS)
                }
                TooLarge::Set => write!(f, "the set {key} has more than {} members", limits::ELEMENTS),
                TooLarge::Value => write!(f, "the key {key} holds a value of more than {} bytes", limits::VALUE_BYTES),
                TooLarge::Batch => {
                    let most = limits::BATCH_BYTES;
                    write!(f, "the replies up to the key {key} are more than {most} bytes: read fewer rows or fields")
                }
            },
        }
    }
}
