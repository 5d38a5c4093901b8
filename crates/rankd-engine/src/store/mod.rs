//! Where a task's reads go. A seam: the embedded store here, others behind the same trait, a scripted one in the simulation.
//!
//! A task reads in batches: one verb for many ids, answered in one go. So there is no way to write a task that makes a round trip
//! a row.

pub mod closing;
pub mod health;
pub mod memory;
pub mod redis;
mod replies;

pub use replies::Replies;

use crate::codes::{self, ErrorCode};
use health::Health;
use rankd_plan::plan::Arg;
use rankd_plan::signature::ParamKind;
use rankd_plan::signature::typed::ParamType;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Reads that are sent and answered together: one verb for many ids.
#[derive(Clone, Debug)]
pub struct ReadBatch<'a> {
    pub verb: Verb<'a>,
    /// What stands before `:{id}` in the keys.
    pub prefix: &'a str,
    pub ids: &'a [i64],
}

/// An endpoint that answers such reads: a parameter of a task, and its position in the registry.
#[derive(Clone, Copy, Debug)]
pub struct KeyedEndpoint(pub u32);

impl ParamType for KeyedEndpoint {
    type Value = KeyedEndpoint;
    const KIND: ParamKind = ParamKind::Endpoint("redis");

    fn read(arg: &Arg) -> Option<KeyedEndpoint> {
        match arg {
            Arg::Endpoint(at) => Some(KeyedEndpoint(*at)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Verb<'a> {
    /// Every field of a hash with its value: `HGETALL`.
    HashAll,
    /// Some fields of a hash: `HMGET`.
    HashFields(&'a [Arc<str>]),
    /// The ids at the head of a list: `LRANGE 0 count-1`.
    ListHead(usize),
}

impl Verb<'_> {
    /// The command as the store's protocol calls it.
    pub fn command(self) -> &'static str {
        match self {
            Verb::HashAll => "HGETALL",
            Verb::HashFields(_) => "HMGET",
            Verb::ListHead(_) => "LRANGE",
        }
    }
}

/// Why a batch was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The store does not answer.
    Unavailable(String),
    /// A key holds another type than the read wants.
    WrongType { key: String },
    /// The embedded store was told to fail here.
    Injected { command: &'static str },
    /// The server did not answer in the time that the endpoint allows.
    TimedOut { address: String, ms: u64 },
    /// The server answered with an error line.
    Server { trouble: Trouble, line: String },
    /// What is stored under a key is more than is read.
    TooLarge { key: String, what: TooLarge },
}

/// What a reply has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// A hash that is read whole has too many fields.
    Hash,
    /// One value has too many bytes.
    Value,
    /// All replies to a batch together have too many bytes.
    Batch,
}

/// What a server's error line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is reading its data from disk.
    Loading,
    /// A script keeps it from answering.
    Busy,
    ReadOnly,
    /// A replica without its master.
    MasterDown,
    ClusterDown,
    /// The key lives on another node.
    Moved,
    /// Its slot is between two nodes.
    TryAgain,
    /// It wants a password, or another one.
    Access,
    /// It knows who asks and does not allow this command, or this key. Others may be allowed.
    Forbidden,
    /// It has no room for another client.
    MaxClients,
    Other,
}

impl Trouble {
    pub(crate) fn of(line: &str) -> Trouble {
        match line.split(' ').next().unwrap_or_default() {
            "LOADING" => Trouble::Loading,
            "BUSY" => Trouble::Busy,
            "READONLY" => Trouble::ReadOnly,
            "MASTERDOWN" => Trouble::MasterDown,
            "CLUSTERDOWN" => Trouble::ClusterDown,
            "MOVED" | "ASK" => Trouble::Moved,
            "TRYAGAIN" => Trouble::TryAgain,
            "NOAUTH" | "WRONGPASS" => Trouble::Access,
            "NOPERM" => Trouble::Forbidden,
            _ if line.contains("max number of clients") => Trouble::MaxClients,
            _ => Trouble::Other,
        }
    }

    /// Whether it is about the state that the server is in, rather than about what was asked.
    pub(crate) fn is_the_servers(self) -> bool {
        use Trouble::*;
        match self {
            Loading | Busy | MasterDown | ClusterDown | Access | MaxClients => true,
            ReadOnly | Moved | TryAgain | Forbidden | Other => false,
        }
    }

    fn code(self) -> &'static ErrorCode {
        match self {
            Trouble::Loading => codes::STORE_LOADING,
            Trouble::Busy => codes::STORE_BUSY,
            Trouble::ReadOnly => codes::STORE_READ_ONLY,
            Trouble::MasterDown => codes::MASTER_DOWN,
            Trouble::ClusterDown => codes::CLUSTER_DOWN,
            Trouble::Moved => codes::KEY_MOVED,
            Trouble::Access | Trouble::Forbidden => codes::ACCESS_DENIED,
            Trouble::MaxClients => codes::TOO_MANY_CLIENTS,
            Trouble::Other => codes::STORE_ERROR,
            Trouble::TryAgain => codes::KEY_MOVING,
        }
    }

    /// What the endpoint does, for callers: nothing that the server said itself.
    fn words(self) -> &'static str {
        match self {
            Trouble::Loading => "is still loading its data",
            Trouble::Busy => "is busy running a script",
            Trouble::ReadOnly => "is read-only",
            Trouble::MasterDown => "has lost its master",
            Trouble::ClusterDown => "is a cluster that is down",
            Trouble::Moved => "keeps this key on a node that was not found",
            Trouble::Access => "denies access: the password is missing or wrong",
            Trouble::Forbidden => "does not allow this read",
            Trouble::MaxClients => "has no room for another client",
            Trouble::Other => "answered with an error",
            Trouble::TryAgain => "is moving this key; try again",
        }
    }
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
        }
    }

    /// What a caller may know: the endpoint by its name in the registry, and neither an address nor what the server said.
    pub fn for_callers(&self, endpoint: &str) -> String {
        match self {
            StoreError::Unavailable(_) => format!("the endpoint {endpoint:?} cannot be reached"),
            StoreError::TimedOut { ms, .. } => format!("the endpoint {endpoint:?} did not answer within {ms} ms"),
            StoreError::Server { trouble, .. } => format!("the endpoint {endpoint:?} {}", trouble.words()),
            StoreError::WrongType { .. } | StoreError::Injected { .. } | StoreError::TooLarge { .. } => {
                self.to_string()
            }
        }
    }

    /// What is for the log and the trace alone, where there is more to say.
    pub fn detail(&self) -> Option<String> {
        match self {
            StoreError::Unavailable(_) | StoreError::TimedOut { .. } | StoreError::Server { .. } => {
                Some(self.to_string())
            }
            StoreError::WrongType { .. } | StoreError::Injected { .. } | StoreError::TooLarge { .. } => None,
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
            StoreError::TooLarge { key, what } => match what {
                TooLarge::Hash => {
                    write!(f, "the hash {key} has more than {} fields: read only some", limits::HASH_FIELDS)
                }
                TooLarge::Value => write!(f, "the key {key} holds a value of more than {} bytes", limits::VALUE_BYTES),
                TooLarge::Batch => {
                    let most = limits::BATCH_BYTES;
                    write!(f, "the replies up to the key {key} are more than {most} bytes: read fewer rows or fields")
                }
            },
        }
    }
}

/// The most that is read.
pub(crate) mod limits {
    /// Fields of a hash that is read whole.
    pub(crate) const HASH_FIELDS: usize = 10_000;
    /// Bytes of one value: it is held in one piece until all of it is there.
    pub(crate) const VALUE_BYTES: usize = 1 << 20;
    /// Bytes of all replies to a batch.
    pub(crate) const BATCH_BYTES: usize = 12 << 20;
}

/// An answer that is on its way, on the thread that asked.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Replies, StoreError>> + 'a>>;

/// One endpoint as seen by one event loop.
pub trait Store {
    fn read<'a>(&'a self, step: ReadBatch<'a>) -> Answer<'a>;
}

/// Opens an endpoint's store on the thread that will use it.
pub trait Open: Send + Sync {
    fn open(&self) -> Box<dyn Store>;

    /// The endpoint's name in the registry, for errors.
    fn name(&self) -> &str {
        "store"
    }

    /// The counters of what was opened here, where there is something to count.
    fn health(&self) -> Option<Arc<Health>> {
        None
    }
}

/// The stores of all endpoints, by registry position, on one thread.
pub struct Stores {
    stores: Vec<(Box<str>, Box<dyn Store>)>,
}

impl Stores {
    pub fn open(endpoints: &[Arc<dyn Open>]) -> Stores {
        Stores { stores: endpoints.iter().map(|endpoint| (endpoint.name().into(), endpoint.open())).collect() }
    }

    /// An endpoint's name and its store.
    pub fn get(&self, endpoint: u32) -> Option<(&str, &dyn Store)> {
        self.stores.get(endpoint as usize).map(|(name, store)| (&**name, &**store))
    }
}
