//! What may happen to a server: frozen, thawed, killed, started again in the same place.

use crate::server::{Server, spawn};
use std::process::Command;

impl Server {
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the server can be killed");
    }

    /// Starts it again on its port and in its folder, and does not wait for it.
    pub(crate) fn start_again(&mut self, extra: &[&str]) {
        self.child = spawn(self.port, &self.folder, extra);
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }
}
