//! Fills servers with data, says beforehand what that would change, and asks whether they are there. For set-up, never while serving
//! a request.

use crate::store::memory::{Data, Held};
use crate::store::redis::cluster::ask_for_layout;
use crate::store::redis::greeting::{self, ErrorLine, Heard, Peer, Refusal, Socket};
use crate::store::redis::resp::push_command;
use crate::store::redis::slots::{Layout, NodeName, SLOTS, slot_of};
use crate::store::redis::{RedisEndpoint, Servers};
use crate::task::KeyPattern;
use hashbrown::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// How long a server may take to answer a batch of keys.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that are sent before their replies are read.
const BATCH: usize = 500;

/// Pages of keys that are looked through for some that fit a pattern.
const PAGES_MAX: usize = 100;

/// A key of a data file, and what it holds there.
pub type Entry<'a> = (&'a str, &'a Held);

/// Why servers cannot be filled, compared or reached.
#[derive(Debug)]
pub enum SetUpError {
    /// A runtime could not be started.
    Runtime(io::Error),
    /// A server does not let us in, does not answer, or refuses a command.
    Server { address: String, why: String },
    /// What each node of a cluster said; none knows the cluster.
    NoLayout(Vec<(String, String)>),
    /// How many slots of a cluster are served by no node.
    Uncovered(usize),
    /// The server answered a question about a key with an error line.
    Key { key: String, line: String },
}

impl std::error::Error for SetUpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SetUpError::Runtime(error) => Some(error),
            SetUpError::Server { .. } | SetUpError::NoLayout(_) | SetUpError::Uncovered(_) | SetUpError::Key { .. } => {
                None
            }
        }
    }
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetUpError::Runtime(error) => write!(f, "cannot start a runtime: {error}"),
            SetUpError::Server { address, why } => write!(f, "{address}: {why}"),
            SetUpError::NoLayout(said) => {
                let said: Vec<String> = said.iter().map(|(address, why)| format!("{address}: {why}")).collect();
                f.write_str(&said.join("; "))
            }
            SetUpError::Uncovered(count) => {
                write!(f, "{count} of {SLOTS} slots of the cluster are served by no node")
            }
            SetUpError::Key { key, line } => write!(f, "{key}: {line}"),
        }
    }
}

/// What loading data would do to what servers hold.
#[derive(Default)]
pub struct Preview<'a> {
    /// Keys that are not there yet.
    pub new: Vec<Entry<'a>>,
    /// Keys that hold something else.
    pub other: Vec<Entry<'a>>,
    /// How many are there already and are equal.
    pub same: usize,
}

impl RedisEndpoint {
    /// Compares every key of `data` with what the servers hold. `progress` is called with how many keys are done.
    pub fn preview<'a>(&self, data: &'a Data, progress: impl FnMut(usize)) -> Result<Preview<'a>, SetUpError> {
        block_on(async {
            let mut targets = self.targets().await?;
            targets.compare(data, progress).await
        })
    }

    /// Puts keys where they belong, in place of what was there. `progress` is called with how many are done.
    pub fn load(&self, entries: &[Entry<'_>], progress: impl FnMut(usize)) -> Result<(), SetUpError> {
        block_on(async {
            let mut targets = self.targets().await?;
            targets.fill(entries, progress).await
        })
    }

    /// Whether all servers answer, by the endpoint's own policy.
    pub fn probe(&self) -> Result<(), SetUpError> {
        block_on(async { self.targets().await.map(drop) })
    }

    /// Some of the keys that the servers hold and that fit, about as many of each server. Not all keys of a large server are looked at.
    pub fn find_keys(&self, pattern: &KeyPattern, count: usize) -> Result<Vec<Vec<u8>>, SetUpError> {
        block_on(async {
            let mut targets = self.targets().await?;
            let (each, mut found) = (count.div_ceil(targets.servers.len().max(1)), Vec::new());
            for server in &mut targets.servers {
                let late = |_| Refusal::Words(format!("no answer within {} s", TIMEOUT.as_secs()));
                let keys = timeout(TIMEOUT, server.find_keys(pattern, each)).await.map_err(late).flatten();
                found.extend(keys.map_err(|why| from(&server.shown, &why))?);
            }
            found.truncate(count);
            Ok(found)
        })
    }

    /// A connection to each server that has keys.
    async fn targets(&self) -> Result<Targets, SetUpError> {
        let (layout, peers) = match &self.servers {
            Servers::One(peer) => (None, vec![peer.clone()]),
            Servers::Cluster(seeds) => {
                let layout = find_layout(seeds).await?;
                let uncovered = layout.uncovered();
                if uncovered > 0 {
                    return Err(SetUpError::Uncovered(uncovered));
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
            let socket = peer.greet().await.map_err(|why| from(&shown, &why))?;
            targets.servers.push(Target { shown, socket, out: Vec::new(), expected: 0, heard: Heard::default() });
        }
        Ok(targets)
    }
}

fn from(address: &str, why: &Refusal) -> SetUpError {
    SetUpError::Server { address: address.to_owned(), why: why.to_string() }
}

fn block_on<T>(work: impl Future<Output = Result<T, SetUpError>>) -> Result<T, SetUpError> {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.map_err(SetUpError::Runtime)?.block_on(work)
}

/// Asks one node after the other; the error has what each said if none knows.
async fn find_layout(seeds: &[Peer]) -> Result<Layout, SetUpError> {
    let mut said = Vec::new();
    for seed in seeds {
        match ask_for_layout(seed).await {
            Ok(layout) => return Ok(layout),
            Err(why) => said.push((seed.address.shown(), why.to_string())),
        }
    }
    Err(SetUpError::NoLayout(said))
}

struct Targets {
    /// Which node has which slot, in a cluster.
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

/// A command about one key, as its words.
type Words<'a> = Vec<&'a [u8]>;
/// The values of a reply, or an error line.
type Values = Result<Vec<Vec<u8>>, ErrorLine>;

impl Targets {
    fn owner(&self, key: &str) -> usize {
        self.layout.as_ref().and_then(|layout| layout.owner(slot_of(key.as_bytes()))).unwrap_or(0)
    }

    async fn fill(&mut self, entries: &[Entry<'_>], mut progress: impl FnMut(usize)) -> Result<(), SetUpError> {
        for (number, batch) in entries.chunks(BATCH).enumerate() {
            for (key, held) in batch {
                let owner = self.owner(key);
                self.servers[owner].put(key, held);
            }
            self.flush().await?;
            progress(number * BATCH + batch.len());
        }
        Ok(())
    }

    /// Compares lengths first: what is not there, or holds more or less, need not be read.
    async fn compare<'a>(
        &mut self,
        data: &'a Data,
        mut progress: impl FnMut(usize),
    ) -> Result<Preview<'a>, SetUpError> {
        let entries: Vec<Entry<'a>> = data.iter().collect();
        let mut preview = Preview::default();
        for (number, batch) in entries.chunks(BATCH).enumerate() {
            let mut alike = Vec::new();
            for (&(key, held), reply) in batch.iter().zip(self.ask(batch, length_of).await?) {
                let there = match reply {
                    Ok(values) => values.first().and_then(|text| String::from_utf8_lossy(text).parse().ok()),
                    Err(ErrorLine(line)) if line.starts_with("WRONGTYPE") => None,
                    Err(ErrorLine(line)) => return Err(SetUpError::Key { key: key.to_owned(), line }),
                };
                match (there, length(held)) {
                    // A string without bytes is something else than none, and which of them is there is not known.
                    (Some(0), 0) if matches!(held, Held::Text(_)) => preview.new.push((key, held)),
                    (Some(0), 0) => preview.same += 1,
                    (Some(0), _) => preview.new.push((key, held)),
                    (Some(there), here) if there == here => alike.push((key, held)),
                    _ => preview.other.push((key, held)),
                }
            }
            for (&(key, held), values) in alike.iter().zip(self.ask(&alike, all_of).await?) {
                let refused = |ErrorLine(line)| SetUpError::Key { key: key.to_owned(), line };
                match is_the_same(held, &values.map_err(refused)?) {
                    true => preview.same += 1,
                    false => preview.other.push((key, held)),
                }
            }
            progress(number * BATCH + batch.len());
        }
        Ok(preview)
    }

    /// Asks one command about each key; the replies are in the order of the keys.
    async fn ask<'a>(
        &mut self,
        entries: &[Entry<'a>],
        command: impl Fn(Entry<'a>) -> Words<'a>,
    ) -> Result<Vec<Values>, SetUpError> {
        let mut asked: Vec<Vec<usize>> = self.servers.iter().map(|_| Vec::new()).collect();
        for (at, entry) in entries.iter().enumerate() {
            let owner = self.owner(entry.0);
            push_command(&mut self.servers[owner].out, command(*entry));
            asked[owner].push(at);
        }
        let mut replies: Vec<Values> = entries.iter().map(|_| Ok(Vec::new())).collect();
        for (server, places) in self.servers.iter_mut().zip(asked) {
            let late = |_| Refusal::Words(format!("no answer within {} s", TIMEOUT.as_secs()));
            let answers = match timeout(TIMEOUT, server.answers(places.len())).await.map_err(late) {
                Ok(answers) => answers,
                Err(late) => Err(late),
            };
            let answers = answers.map_err(|why| from(&server.shown, &why))?;
            places.into_iter().zip(answers).for_each(|(place, values)| replies[place] = values);
        }
        Ok(replies)
    }

    async fn flush(&mut self) -> Result<(), SetUpError> {
        for server in &mut self.servers {
            let late = |_| Refusal::Words(format!("no answer within {} s", TIMEOUT.as_secs()));
            let flushed = match timeout(TIMEOUT, server.flush()).await.map_err(late) {
                Ok(flushed) => flushed,
                Err(late) => Err(late),
            };
            flushed.map_err(|why| from(&server.shown, &why))?;
        }
        Ok(())
    }
}

impl Target {
    fn put(&mut self, key: &str, held: &Held) {
        let (mut command, mut scores): (Vec<&[u8]>, Vec<String>) = Default::default();
        match held {
            Held::Hash(fields) => {
                command.extend([b"HSET", key.as_bytes()]);
                command.extend(fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
            }
            Held::List(elements) => {
                command.extend([b"RPUSH", key.as_bytes()]);
                command.extend(elements.iter().map(|element| element.as_bytes()));
            }
            Held::Set(members) => {
                command.extend([b"SADD", key.as_bytes()]);
                command.extend(members.iter().map(|member| member.as_bytes()));
            }
            Held::SortedSet(members) => {
                scores.extend(members.iter().map(|(_, score)| score.to_string()));
                command.extend([b"ZADD", key.as_bytes()]);
                let pairs = members.iter().zip(&scores);
                command.extend(pairs.flat_map(|((member, _), score)| [score.as_bytes(), member.as_bytes()]));
            }
            Held::Text(bytes) => command.extend([b"SET", key.as_bytes(), bytes]),
        }
        push_command(&mut self.out, [b"DEL", key.as_bytes()]);
        self.expected += 1;
        // An empty collection is a key that is not there.
        if command.len() > 2 {
            push_command(&mut self.out, command);
            self.expected += 1;
        }
    }

    /// Sends what is in `out`, and reads `count` replies.
    async fn answers(&mut self, count: usize) -> Result<Vec<Values>, Refusal> {
        greeting::send(&mut self.socket, &self.out).await?;
        self.out.clear();
        let mut replies = Vec::with_capacity(count);
        for _ in 0..count {
            replies.push(self.heard.values(&mut self.socket).await?);
        }
        Ok(replies)
    }

    /// The first keys that the server names and that fit.
    async fn find_keys(&mut self, pattern: &KeyPattern, count: usize) -> Result<Vec<Vec<u8>>, Refusal> {
        let (glob, mut found, mut cursor) = (pattern.glob(), Vec::new(), b"0".to_vec());
        for _ in 0..PAGES_MAX {
            push_command(&mut self.out, [b"SCAN", &cursor[..], b"MATCH", &glob, b"COUNT", b"1000"]);
            let page = self.answers(1).await?.pop().unwrap_or_else(|| Ok(Vec::new()));
            let mut page = page.map_err(|ErrorLine(line)| Refusal::Line(line))?.into_iter();
            cursor = page.next().unwrap_or_else(|| b"0".to_vec());
            found.extend(page.filter(|key| pattern.matches(key)));
            if found.len() >= count || cursor == b"0" {
                break;
            }
        }
        // While a server moves its keys around it may name one twice.
        found.sort_unstable();
        found.dedup();
        found.truncate(count);
        Ok(found)
    }

    async fn flush(&mut self) -> Result<(), Refusal> {
        greeting::send(&mut self.socket, &self.out).await?;
        self.out.clear();
        for _ in 0..std::mem::take(&mut self.expected) {
            self.heard.reply(&mut self.socket).await?.map_err(|ErrorLine(line)| Refusal::Line(line))?;
        }
        Ok(())
    }
}

/// Fields, elements or bytes; a field that is named twice is one.
fn length(held: &Held) -> usize {
    match held {
        Held::Hash(fields) => as_map(fields).len(),
        Held::List(elements) => elements.len(),
        Held::Set(members) => members.len(),
        Held::SortedSet(members) => members.len(),
        Held::Text(bytes) => bytes.len(),
    }
}

fn as_map(fields: &[(String, String)]) -> HashMap<&[u8], &[u8]> {
    fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

fn length_of<'a>((key, held): Entry<'a>) -> Words<'a> {
    match held {
        Held::Hash(_) => vec![b"HLEN", key.as_bytes()],
        Held::List(_) => vec![b"LLEN", key.as_bytes()],
        Held::Set(_) => vec![b"SCARD", key.as_bytes()],
        Held::SortedSet(_) => vec![b"ZCARD", key.as_bytes()],
        Held::Text(_) => vec![b"STRLEN", key.as_bytes()],
    }
}

fn all_of<'a>((key, held): Entry<'a>) -> Words<'a> {
    match held {
        Held::Hash(_) => vec![b"HGETALL", key.as_bytes()],
        Held::List(_) => vec![b"LRANGE", key.as_bytes(), b"0", b"-1"],
        Held::Set(_) => vec![b"SMEMBERS", key.as_bytes()],
        Held::SortedSet(_) => vec![b"ZRANGE", key.as_bytes(), b"0", b"-1", b"WITHSCORES"],
        Held::Text(_) => vec![b"GET", key.as_bytes()],
    }
}

fn is_the_same(held: &Held, values: &[Vec<u8>]) -> bool {
    match held {
        Held::Hash(fields) => {
            let there: HashMap<&[u8], &[u8]> = values.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
            there == as_map(fields)
        }
        Held::List(elements) => {
            elements.iter().map(|element| element.as_bytes()).eq(values.iter().map(|value| &**value))
        }
        Held::Set(members) => {
            let mut there: Vec<&[u8]> = values.iter().map(|value| &**value).collect();
            there.sort_unstable();
            members.iter().map(|member| member.as_bytes()).eq(there)
        }
        Held::SortedSet(members) => {
            let pairs = values.chunks_exact(2).map(|pair| {
                let score = std::str::from_utf8(&pair[1]).ok().and_then(|score| score.parse::<f64>().ok());
                (&*pair[0], score)
            });
            members.iter().map(|(member, score)| (member.as_bytes(), Some(*score))).eq(pairs)
        }
        Held::Text(bytes) => values.iter().map(|value| &**value).eq([&**bytes]),
    }
}
