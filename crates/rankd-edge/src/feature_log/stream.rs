//! Which rows go into which file: those of one node of one version of a plan, with the same keys. A plan that logs no node has the keys that its
//! outputs happen to have, so that weather may give it another file.

use super::{LoggedPlan, LoggedRun};
use crate::pii::{Pii, Salt};
use rankd_column::{Key, RowSet, Type};
use rankd_engine::link::LinkedNode;
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;
use rankd_plan::registry::{Entry, RegistryId};
use std::sync::Arc;

/// The columns that every file has, in this order, before those of keys.
pub(super) const COLUMNS: [&str; 9] =
    ["request_id", "user_id", "at_ms", "plan", "plan_sha256", "arms", "node", "position", "id"];

/// A node of a plan that is logged.
#[derive(Debug)]
pub(super) struct LoggedNode {
    pub(super) id: Arc<str>,
    /// The keys that it logs, if it does.
    pub(super) keys: Option<Vec<Key>>,
}

impl LoggedNode {
    pub(super) fn of(node: &LinkedNode) -> LoggedNode {
        let keys = node.log.as_ref().map(|keys| keys.iter().map(|(key, _)| *key).collect());
        LoggedNode { id: node.id.clone(), keys }
    }
}

/// What the rows of one file have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogStream {
    pub(super) plan: Arc<str>,
    pub(super) sha256: Arc<str>,
    node: NodeIx,
    /// Positions of keys mean something in one registry only.
    registry: RegistryId,
    pub(super) keys: Vec<Key>,
}

impl LogStream {
    /// Of the rows that a node gave in a run.
    pub(super) fn of(run: &LoggedRun, node: NodeIx, rows: &RowSet) -> LogStream {
        let LoggedPlan { name, sha256, nodes, keys: keys_of, .. } = &*run.plan;
        let named = nodes.get(node as usize).and_then(|node| node.keys.clone());
        let keys = named.unwrap_or_else(|| rows.batch().columns().iter().map(|(key, _)| *key).collect());
        LogStream { plan: name.clone(), sha256: sha256.clone(), node, registry: keys_of.registry, keys }
    }

    /// Whether another version of the same plan takes its place.
    pub(super) fn is_replaced_by(&self, other: &LogStream) -> bool {
        self.plan == other.plan && (self.sha256 != other.sha256 || self.registry != other.registry)
    }
}

/// What is known of the keys of a registry.
#[derive(Debug)]
pub(super) struct LogKeys {
    pub(super) registry: RegistryId,
    /// The type of ids.
    pub(super) ids: Type,
    /// By position: the column of each; nothing where it is left out.
    columns: Vec<Option<LogColumn>>,
}

#[derive(Debug)]
struct LogColumn {
    name: String,
    type_of: Type,
    /// What its values are hashed with, where they are.
    salt: Option<Salt>,
}

/// A column of a key.
pub(super) struct LogField<'k> {
    pub(super) key: Key,
    pub(super) name: &'k str,
    pub(super) type_of: Type,
    /// What values are hashed with, where they are.
    pub(super) salt: Option<&'k Salt>,
}

impl LogKeys {
    /// A key that is named like a column that every file has gets another name, which no key can have, and so does a hash.
    pub(super) fn of(registry: &Registry, pii: &Pii) -> LogKeys {
        let column = |entry: &Entry| match (entry.pii, pii) {
            (true, Pii::Omit) => None,
            (true, Pii::Hash(salt)) => {
                Some(LogColumn { name: format!("{}.hash", entry.name), type_of: Type::Str, salt: Some(salt.clone()) })
            }
            (false, _) => {
                let is_taken = COLUMNS.contains(&entry.name.as_str());
                let name = if is_taken { format!("key.{}", entry.name) } else { entry.name.clone() };
                Some(LogColumn { name, type_of: entry.type_of, salt: None })
            }
        };
        LogKeys {
            registry: registry.id(),
            ids: registry.key(Key::ID).type_of,
            columns: registry.keys.list().iter().map(column).collect(),
        }
    }

    /// The columns of these keys.
    pub(super) fn fields<'k>(&'k self, keys: &[Key]) -> Vec<LogField<'k>> {
        let shown = keys.iter().filter_map(|key| Some((key, self.columns.get(key.0 as usize)?.as_ref()?)));
        let field = |(key, column): (&Key, &'k LogColumn)| {
            let LogColumn { name, type_of, salt } = column;
            LogField { key: *key, name, type_of: *type_of, salt: salt.as_ref() }
        };
        shown.map(field).collect()
    }
}
