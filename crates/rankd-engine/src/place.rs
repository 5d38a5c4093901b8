//! Where a node runs: decided here and nowhere else.

use crate::link::LinkedNode;
use crate::task::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its future, on the event loop.
    Loop,
    /// A job of its own, on the CPU pool.
    Pool,
}

pub(crate) fn place(node: &LinkedNode) -> Place {
    match node.task {
        Task::Fetch(_) => Place::Loop,
        Task::Compute(_) => Place::Pool,
    }
}
