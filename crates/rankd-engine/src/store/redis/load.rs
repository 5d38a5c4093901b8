//! Fills a server with data and asks whether it is there. For set-up, never on the way of a request.

use crate::store::memory::{Data, Held};
use crate::store::redis::RedisEndpoint;
use crate::store::redis::address::{Address, Place};
use crate::store::redis::connection::{Connection, Refusal};
use crate::store::redis::resp::push_command;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that are sent before their replies are read.
const BATCH: usize = 500;

/// Puts every key of `data` on the server, in place of what it held. `progress` is told how many keys are done.
pub fn load(address: &Address, data: &Data, mut progress: impl FnMut(usize)) -> Result<usize, String> {
    let shown = address.shown();
    let words = |error: std::io::Error| format!("{shown}: {error}");
    let (mut writer, reader) = open(address).map_err(words)?;
    let mut reader = BufReader::new(reader);
    let mut out = Vec::new();
    let mut expected = 0;
    if let Some(password) = &address.password {
        let user = address.user.as_deref().unwrap_or("default");
        push_command(&mut out, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
        expected += 1;
    }
    push_command(&mut out, &[b"SELECT", address.database.to_string().as_bytes()]);
    expected += 1;
    let mut keys = 0;
    let mut entries = data.iter().peekable();
    while let Some((key, held)) = entries.next() {
        let mut command: Vec<&[u8]> = Vec::new();
        match &held {
            Held::Hash(fields) => {
                command.extend([b"HSET", key.as_bytes()]);
                command.extend(fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
            }
            Held::List(elements) => {
                command.extend([b"RPUSH", key.as_bytes()]);
                command.extend(elements.iter().map(|element| element.as_bytes()));
            }
        }
        push_command(&mut out, &[b"DEL", key.as_bytes()]);
        expected += 1;
        // An empty hash or list is a key that is not there.
        if command.len() > 2 {
            push_command(&mut out, &command);
            expected += 1;
        }
        keys += 1;
        if keys % BATCH == 0 || entries.peek().is_none() {
            writer.write_all(&out).map_err(words)?;
            out.clear();
            for _ in 0..std::mem::take(&mut expected) {
                let mut line = String::new();
                reader.by_ref().take(4096).read_line(&mut line).map_err(words)?;
                if line.is_empty() {
                    return Err(format!("{shown}: the server closed the connection"));
                }
                if !line.starts_with(['+', ':']) {
                    return Err(format!("{shown}: {}", line.trim_start_matches('-').trim_end()));
                }
            }
            progress(keys);
        }
    }
    Ok(keys)
}

type Halves = (Box<dyn Write>, Box<dyn Read>);

fn open(address: &Address) -> std::io::Result<Halves> {
    Ok(match &address.place {
        Place::Tcp { host, port } => {
            let mut found = (host.as_str(), *port).to_socket_addrs()?;
            let place = found.next().ok_or_else(|| std::io::Error::other("the host has no address"))?;
            let socket = TcpStream::connect_timeout(&place, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            (Box::new(socket.try_clone()?), Box::new(socket))
        }
        Place::Unix { path } => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            (Box::new(socket.try_clone()?), Box::new(socket))
        }
    })
}

impl RedisEndpoint {
    /// Whether the server answers, by the endpoint's own policy; what is wrong is said in words.
    pub fn probe(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
        let runtime = runtime.map_err(|error| error.to_string())?;
        let connection = Connection::new(self.address.clone(), self.policy);
        runtime.block_on(connection.greet()).map(drop).map_err(|why| match why {
            Refusal::Words(words) | Refusal::Line(words) => words,
        })
    }
}
