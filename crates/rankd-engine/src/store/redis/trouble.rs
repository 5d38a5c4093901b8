//! What the error lines of a Redis server mean.

use crate::codes::{self, ErrorCode};

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
    /// It knows the user and does not allow it this command, or this key. Others may be allowed.
    Forbidden,
    /// It has no room for another client.
    MaxClients,
    /// It does not know a command: an older version, or one without a module.
    UnknownCommand,
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
            _ if line.starts_with("ERR unknown command") => Trouble::UnknownCommand,
            _ => Trouble::Other,
        }
    }

    /// Whether it is about the state that the server is in, rather than about what was asked.
    pub(crate) fn is_the_servers(self) -> bool {
        use Trouble::*;
        match self {
            Loading | Busy | MasterDown | ClusterDown | Access | MaxClients => true,
            ReadOnly | Moved | TryAgain | Forbidden | UnknownCommand | Other => false,
        }
    }

    pub(crate) fn code(self) -> &'static ErrorCode {
        match self {
            Trouble::Loading => codes::STORE_LOADING,
            Trouble::Busy => codes::STORE_BUSY,
            Trouble::ReadOnly => codes::STORE_READ_ONLY,
            Trouble::MasterDown => codes::MASTER_DOWN,
            Trouble::ClusterDown => codes::CLUSTER_DOWN,
            Trouble::Moved => codes::KEY_MOVED,
            Trouble::Access | Trouble::Forbidden => codes::ACCESS_DENIED,
            Trouble::MaxClients => codes::TOO_MANY_CLIENTS,
            Trouble::UnknownCommand => codes::UNKNOWN_COMMAND,
            Trouble::Other => codes::STORE_ERROR,
            Trouble::TryAgain => codes::KEY_MOVING,
        }
    }

    /// What the endpoint does, for callers: nothing that the server said itself.
    pub(crate) fn words(self) -> &'static str {
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
            Trouble::UnknownCommand => "does not know the command that this read needs",
            Trouble::Other => "answered with an error",
            Trouble::TryAgain => "is moving this key; try again",
        }
    }
}
