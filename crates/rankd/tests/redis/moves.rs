//! What may happen to a cluster: a key is written, a slot goes from one master to another.

use crate::nodes::{Cluster, SLOTS};
use crate::server::Server;

impl Cluster {
    /// The urls of all masters, as the tests' endpoints have them.
    pub(crate) fn urls(&self) -> String {
        let urls: Vec<String> = self.masters.iter().map(Server::url).collect();
        urls.join(" ")
    }

    fn id(&self, master: usize) -> String {
        self.masters[master].text(&["CLUSTER", "MYID"]).expect("it has one")
    }

    /// The number of the master that has a slot by the way they were dealt.
    pub(crate) fn first_owner(slot: usize) -> usize {
        (0..3).rev().find(|at| slot >= at * SLOTS / 3).unwrap_or(0)
    }

    /// The slot of a key, as a master says.
    pub(crate) fn slot_of(&self, key: &str) -> usize {
        let answer = self.masters[0].command(&["CLUSTER", "KEYSLOT", key]).expect("an answer");
        answer.trim_start_matches(':').parse().expect("a slot")
    }

    /// Sends a command that writes a key to the master that has it.
    pub(crate) fn write(&self, key: &str, words: &[&str]) {
        self.masters[Cluster::first_owner(self.slot_of(key))].must(words);
    }

    /// Declares a slot to be on its way; commands for keys that are gone are then sent on with ASK.
    pub(crate) fn begin_move(&self, slot: usize, from: usize, to: usize) {
        let slot = slot.to_string();
        self.masters[to].must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.masters[from].must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    pub(crate) fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.masters[to].port.to_string();
        self.masters[from].must(&["MIGRATE", "127.0.0.1", &port, key, "0", "10000"]);
    }

    /// The slot has arrived: from now on its old master sends commands on with MOVED.
    pub(crate) fn end_move(&self, slot: usize, from: usize, to: usize) {
        for at in [to, from] {
            self.masters[at].must(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &self.id(to)]);
        }
    }
}
