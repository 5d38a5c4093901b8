//! What a task says of where its rows come from, so that somebody can ask why an item is not among them: see [`crate::why`]. It is data; the
//! engine asks.

use crate::store::TableEndpoint;
use rankd_plan::plan::{Dial, KeyPair};
use rankd_plan::template::Template;

/// Where the rows come from that a task brings in.
#[derive(Clone, Debug)]
pub enum RowSource<'t> {
    /// The task does not say.
    Unsaid,
    /// The request brought them along.
    Request,
    /// The plan has them.
    Plan,
    /// The one row of the user whom the request is for.
    User,
    /// A service answered them: the endpoint's position in the registry.
    Service(u32),
    /// All rows of a table.
    Table(TableEndpoint),
    /// The rows of a table that match an input row, at most so many for each.
    TableRows { endpoint: TableEndpoint, on: KeyPair, fanout: Dial },
    /// Elements of what a store has.
    Stored(StoredElements<'t>),
}

/// Elements that become rows: of what is stored under one key, or under one for each input row.
#[derive(Clone, Debug)]
pub struct StoredElements<'t> {
    /// The endpoint's position in the registry.
    pub endpoint: u32,
    pub key: ElementKey<'t>,
    pub elements: Elements,
    /// How many are read of each key.
    pub fanout: Dial,
}

/// A key as it is filled in for an input row.
#[derive(Clone, Copy, Debug)]
pub enum ElementKey<'t> {
    /// `{prefix}:{id}`.
    Prefix(&'t str),
    Template(&'t Template),
}

/// What is stored under a key, and which of its parts are ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// The elements of a list, from its head on.
    List,
    /// The members of a set, in the order of the ids.
    Set,
    /// The members of a sorted set, from the lowest score on, or from the highest.
    SortedSet { descending: bool },
    /// The fields of a hash, in the order of the ids.
    HashFields,
    /// Somewhere in a document.
    Document,
}
