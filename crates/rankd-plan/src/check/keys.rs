//! Sets of keys, as the passes over the graph use them: small, and quick to unite.

use crate::registry::Registry;
use rankd_column::Key;

/// A set of keys, a bit each.
#[derive(Clone)]
pub(super) struct Keys(Vec<u64>);

impl Keys {
    pub(super) fn none(registry: &Registry) -> Keys {
        let mut keys = Keys(vec![0; registry.keys.list().len().div_ceil(64).max(1)]);
        keys.add(Key::ID);
        keys
    }

    pub(super) fn add(&mut self, key: Key) {
        self.0[key.0 as usize / 64] |= 1 << (key.0 % 64);
    }

    pub(super) fn add_all(&mut self, other: &Keys) {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Keeps those that the other set has, too.
    pub(super) fn keep(&mut self, other: &Keys) {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours &= theirs);
    }

    /// Removes those that the other set has, but for the id, which every row has.
    pub(super) fn remove(&mut self, other: &Keys) {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours &= !theirs);
        self.add(Key::ID);
    }

    pub(super) fn everything(&mut self) {
        self.0.fill(u64::MAX);
    }

    /// The keys of the registry that are in the set.
    pub(super) fn list(&self, registry: &Registry) -> impl Iterator<Item = Key> {
        (0..registry.keys.list().len() as u32).map(Key).filter(|key| self.has(*key))
    }

    /// The names of the keys, as help.
    pub(super) fn listed(&self, registry: &Registry) -> String {
        let names: Vec<&str> = self.list(registry).map(|key| registry.key(key).name.as_str()).collect();
        format!("available here: {}", names.join(", "))
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.0[key.0 as usize / 64] >> (key.0 % 64) & 1 == 1
    }
}
