//! Fills servers with data and asks whether they are there. For set-up, never on the way of a request.

use crate::store::memory::{Data, Held};
use crate::store::redis::cluster::ask_for_layout;
use crate::store::redis::greeting::{self, Heard, Peer, Refusal, Socket};
use crate::store::redis::resp::push_command;
use crate::store::redis::slots::{Layout, NodeName, SLOTS, slot_of};
use crate::store::redis::{RedisEndpoint, Servers};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// For a batch of keys to be taken.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that are sent before their replies are read.
const BATCH: usize = 500;

impl RedisEndpoint {
    /// Puts every key of `data` where it belongs, in place of what was there. `progress` is told how many keys are done.
    pub fn load(&self, data: &Data, progress: impl FnMut(usize)) -> Result<usize, String> {
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
        runtime.map_err(|error| error.to_string())?.block_on(async {
            let mut targets = self.targets().await?;
            targets.fill(data, progress).await
        })
    }

    /// Whether all servers answer, by the endpoint's own policy; what is wrong is said in words.
    pub fn probe(&self) -> Result<(), String> {
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(async { self.targets().await.map(drop) })
    }

    /// A connection to each server that has keys.
    async fn targets(&self) -> Result<Targets, String> {
        let (layout, peers) = match &self.servers {
            Servers::One(peer) => (None, vec![peer.clone()]),
            Servers::Cluster(seeds) => {
                let layout = find_layout(seeds).await?;
                let uncovered = layout.uncovered();
                if uncovered > 0 {
                    return Err(format!("{uncovered} of {SLOTS} slots of the cluster are served by no node"));
                }
                let seed = &seeds[0];
                let peer = |name: &NodeName| Peer { address: seed.address.at(&name.host, name.port), ..seed.clone() };
                let peers = layout.masters.iter().map(peer).collect();
                (Some(layout), peers)
            }
        };
        let mut targets = Targets { layout, servers: Vec::new() };
        for peer in peers {
            let shown = peer.address.shown();
            let socket = peer.greet().await.map_err(|why| format!("{shown}: {}", why.into_words()))?;
            targets.servers.push(Target { shown, socket, out: Vec::new(), expected: 0, heard: Heard::default() });
        }
        Ok(targets)
    }
}

/// Asks one node after the other; tells what each said if none knows.
async fn find_layout(seeds: &[Peer]) -> Result<Layout, String> {
    let mut said = Vec::new();
    for seed in seeds {
        match ask_for_layout(seed).await {
            Ok(layout) => return Ok(layout),
            Err(why) => said.push(format!("{}: {}", seed.address.shown(), why.into_words())),
        }
    }
    Err(said.join("; "))
}

struct Targets {
    /// Who has which slot, in a cluster.
    layout: Option<Layout>,
    servers: Vec<Target>,
}

struct Target {
    shown: String,
    socket: Socket,
    out: Vec<u8>,
    /// Replies to what is in `out`.
    expected: usize,
    heard: Heard,
}

impl Targets {
    async fn fill(&mut self, data: &Data, mut progress: impl FnMut(usize)) -> Result<usize, String> {
        let mut keys = 0;
        for (key, held) in data.iter() {
            let owner = self.layout.as_ref().and_then(|layout| layout.owner(slot_of(key.as_bytes()))).unwrap_or(0);
            self.servers[owner].put(key, held);
            keys += 1;
            if keys % BATCH == 0 {
                self.flush().await?;
                progress(keys);
            }
        }
        self.flush().await?;
        progress(keys);
        Ok(keys)
    }

    async fn flush(&mut self) -> Result<(), String> {
        for server in &mut self.servers {
            let late = |_| Refusal::Words(format!("no answer within {} s", TIMEOUT.as_secs()));
            let flushed = match timeout(TIMEOUT, server.flush()).await.map_err(late) {
                Ok(flushed) => flushed,
                Err(late) => Err(late),
            };
            flushed.map_err(|why| format!("{}: {}", server.shown, why.into_words()))?;
        }
        Ok(())
    }
}

impl Target {
    fn put(&mut self, key: &str, held: &Held) {
        let mut command: Vec<&[u8]> = Vec::new();
        match held {
            Held::Hash(fields) => {
                command.extend([b"HSET", key.as_bytes()]);
                command.extend(fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
            }
            Held::List(elements) => {
                command.extend([b"RPUSH", key.as_bytes()]);
                command.extend(elements.iter().map(|element| element.as_bytes()));
            }
        }
        push_command(&mut self.out, [b"DEL", key.as_bytes()]);
        self.expected += 1;
        // An empty hash or list is a key that is not there.
        if command.len() > 2 {
            push_command(&mut self.out, command);
            self.expected += 1;
        }
    }

    async fn flush(&mut self) -> Result<(), Refusal> {
        greeting::send(&mut self.socket, &self.out).await?;
        self.out.clear();
        for _ in 0..std::mem::take(&mut self.expected) {
            self.heard.reply(&mut self.socket).await?.map_err(Refusal::Line)?;
        }
        Ok(())
    }
}
