//! A cluster of the test's own: three masters on loopback, each with a third of the slots, put together by commands.

use crate::server::Server;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const SLOTS: usize = 16_384;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) masters: Vec<Server>,
    /// The ports for their talk with each other.
    pub(crate) bus_ports: Vec<String>,
}

impl Cluster {
    /// Starts three masters that answer for their own slots also when another is gone.
    pub(crate) fn start() -> Cluster {
        let (masters, bus_ports) = (0..3).map(|_| start_node()).unzip();
        let cluster = Cluster { masters, bus_ports };
        for (at, master) in cluster.masters.iter().enumerate() {
            let (first, last) = (at * SLOTS / 3, (at + 1) * SLOTS / 3 - 1);
            master.must(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            master.must(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        for (other, bus_port) in cluster.masters.iter().zip(&cluster.bus_ports).skip(1) {
            cluster.masters[0].must(&["CLUSTER", "MEET", "127.0.0.1", &other.port.to_string(), bus_port]);
        }
        cluster.wait_until("all know all", |info| {
            ["cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3"].iter().all(|line| info.contains(line))
        });
        cluster
    }

    /// Waits until every living master's CLUSTER INFO is as wanted.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !self.masters.iter().all(|master| master.text(&["CLUSTER", "INFO"]).is_ok_and(|info| wanted(&info))) {
            assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a node is started with.
pub(crate) fn settings(bus_port: &str) -> Vec<&str> {
    let mut settings = vec!["--cluster-enabled", "yes", "--cluster-port", bus_port];
    settings.extend(["--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"]);
    settings
}

/// A node that knows nobody, and the port for its talk with others.
fn start_node() -> (Server, String) {
    // By default the other port is the first plus 10,000, which need not exist.
    let bus = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let bus = bus.to_string();
    (Server::start(&settings(&bus)), bus)
}
