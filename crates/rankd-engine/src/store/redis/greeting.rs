//! Opens a socket to a server and greets it: TLS, protocol, password, database. It is good when it has answered a PING.
//!
//! The whole greeting is sent at once. With a server that does not know HELLO, the older protocol is used.

use crate::store::redis::Trouble;
use crate::store::redis::address::{Address, ServerPlace};
use crate::store::redis::flat::{self, ReplyPart};
use crate::store::redis::resp::{Malformed, push_command};
use crate::store::tls::{self, Trust};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

pub(super) type Socket = Box<dyn Duplex>;

/// A server, and what is needed to be let in.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: Address,
    /// Needed where the address asks for TLS.
    pub(super) trust: Option<Trust>,
    pub(super) connect_timeout: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Words(String),
    /// The server's own error line in answer to the greeting.
    Line(String),
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Words(words) | Refusal::Line(words) => f.write_str(words),
        }
    }
}

/// The error line of a server in answer to a command.
#[derive(Debug)]
pub(super) struct ErrorLine(pub(super) String);

fn words(error: io::Error) -> Refusal {
    Refusal::Words(error.to_string())
}

impl Peer {
    /// Connects once, within the time that the endpoint allows.
    pub(super) async fn greet(&self) -> Result<Socket, Refusal> {
        let late = |_| Refusal::Words(format!("no connection within {} ms", self.connect_timeout.as_millis()));
        timeout(self.connect_timeout, self.connect()).await.map_err(late)?
    }

    async fn connect(&self) -> Result<Socket, Refusal> {
        let mut socket = self.open().await?;
        let Address { user, password, database, .. } = &self.address;
        let (mut hello, mut login) = (vec!["HELLO", "3"], Vec::new());
        if let Some(password) = password {
            hello.extend(["AUTH", user.as_deref().unwrap_or("default"), password]);
            login.push("AUTH");
            login.extend(user.as_deref());
            login.push(password);
        }
        let database = database.to_string();
        let mut rest: Vec<&[&str]> = Vec::new();
        let select = ["SELECT", &database];
        if self.address.database != 0 {
            rest.push(&select);
        }
        rest.push(&["PING"]);
        say(&mut socket, &[&[&hello[..]], &rest[..]].concat()).await?;
        let mut heard = Heard::default();
        match heard.reply(&mut socket).await? {
            Ok(()) => {}
            Err(ErrorLine(line)) if !is_too_new(&line) => return Err(Refusal::Line(line)),
            Err(_) if login.is_empty() => {}
            Err(_) => {
                for _ in &rest {
                    // Without the login these were refused or had no effect. They are sent again, in the older protocol.
                    let _ = heard.reply(&mut socket).await?;
                }
                rest.insert(0, &login);
                say(&mut socket, &rest).await?;
            }
        }
        for command in &rest {
            match heard.reply(&mut socket).await? {
                Ok(()) => {}
                // A server that refuses PING to this user has answered all the same, which is all that PING is for.
                Err(ErrorLine(line))
                    if command.first() == Some(&"PING") && Trouble::of(&line) == Trouble::Forbidden => {}
                Err(ErrorLine(line)) => return Err(Refusal::Line(line)),
            }
        }
        match heard.bytes.is_empty() {
            true => Ok(socket),
            false => Err(Refusal::Words("this is not a Redis server: it sent more than was requested".into())),
        }
    }

    async fn open(&self) -> Result<Socket, Refusal> {
        let (host, port) = match &self.address.place {
            ServerPlace::Unix { path } => return Ok(Box::new(UnixStream::connect(path).await.map_err(words)?)),
            ServerPlace::Tcp { host, port } => (host.as_str(), *port),
        };
        let socket = TcpStream::connect((host, port)).await.map_err(words)?;
        socket.set_nodelay(true).map_err(words)?;
        if !self.address.tls {
            return Ok(Box::new(socket));
        }
        let Some(trust) = &self.trust else {
            return Err(Refusal::Words("there is no trusted CA certificate".into()));
        };
        let bad_name = || Refusal::Words(format!("{host:?} is not a valid name for a certificate"));
        let name = tls::server_name(host).ok_or_else(bad_name)?;
        Ok(Box::new(trust.connector().connect(name, socket).await.map_err(words)?))
    }

    /// Sends one command on a greeted socket and gives its reply: the parts, and the bytes that they are of.
    pub(super) async fn ask(socket: &mut Socket, command: &[&str]) -> Result<(Vec<ReplyPart>, Vec<u8>), Refusal> {
        say(socket, &[command]).await?;
        let mut heard = Heard::default();
        let parts = heard.parts(socket).await?;
        match parts.first() {
            Some(ReplyPart::Error(line)) => Err(Refusal::Line(heard.text(line.clone()))),
            _ => Ok((parts, heard.bytes)),
        }
    }
}

async fn say(socket: &mut Socket, commands: &[&[&str]]) -> Result<(), Refusal> {
    let mut out = Vec::new();
    for command in commands {
        push_command(&mut out, command.iter().map(|word| word.as_bytes()));
    }
    send(socket, &out).await
}

/// Writes all bytes, through TLS where there is some.
pub(super) async fn send(socket: &mut Socket, bytes: &[u8]) -> Result<(), Refusal> {
    socket.write_all(bytes).await.map_err(words)?;
    socket.flush().await.map_err(words)
}

/// A server from before HELLO, or one that does not speak its version 3.
fn is_too_new(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.starts_with("noproto") || line.contains("unknown command") || line.contains("unsupported command")
}

/// What a server says before any step is asked.
#[derive(Default)]
pub(super) struct Heard {
    bytes: Vec<u8>,
}

impl Heard {
    /// The next reply: good, or an error line.
    pub(super) async fn reply(&mut self, socket: &mut Socket) -> Result<Result<(), ErrorLine>, Refusal> {
        let parts = self.parts(socket).await?;
        let result = match parts.first() {
            Some(ReplyPart::Error(line)) => Err(ErrorLine(self.text(line.clone()))),
            _ => Ok(()),
        };
        self.pass();
        Ok(result)
    }

    /// The values of the next reply, one after the other, or its error line.
    pub(super) async fn values(&mut self, socket: &mut Socket) -> Result<Result<Vec<Vec<u8>>, ErrorLine>, Refusal> {
        let parts = self.parts(socket).await?;
        if let Some(ReplyPart::Error(line)) = parts.first() {
            let line = self.text(line.clone());
            self.pass();
            return Ok(Err(ErrorLine(line)));
        }
        let values = parts.into_iter().filter_map(|part| match part {
            ReplyPart::Text(range) => Some(self.bytes.get(range).unwrap_or_default().to_vec()),
            ReplyPart::Int(number) => Some(number.to_string().into_bytes()),
            ReplyPart::Null | ReplyPart::List(_) | ReplyPart::Error(_) => None,
        });
        let values = values.collect();
        self.pass();
        Ok(Ok(values))
    }

    /// Passes over the next reply, which was found whole.
    fn pass(&mut self) {
        let end = flat::skip(&self.bytes).ok().flatten().unwrap_or(self.bytes.len());
        self.bytes.drain(..end);
    }

    /// The parts of the next reply, which stays in `bytes`.
    async fn parts(&mut self, socket: &mut Socket) -> Result<Vec<ReplyPart>, Refusal> {
        loop {
            match flat::read(&self.bytes) {
                Ok(Some((parts, _))) => return Ok(parts),
                Ok(None) => {
                    if socket.read_buf(&mut self.bytes).await.map_err(words)? == 0 {
                        return Err(Refusal::Words("the server closed the connection".into()));
                    }
                }
                Err(Malformed(what)) => return Err(Refusal::Words(format!("this is not a Redis server: {what}"))),
            }
        }
    }

    fn text(&self, range: std::ops::Range<usize>) -> String {
        String::from_utf8_lossy(self.bytes.get(range).unwrap_or_default()).into_owned()
    }
}
