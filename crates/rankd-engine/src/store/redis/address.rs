//! Where a Redis server is, and how to greet it: `redis://[user:password@]host[:port][/db]`, the same with
//! `rediss://` for TLS, or `unix:/path[?db=N]`.

use std::fmt;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub place: ServerPlace,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// Whether the server is to prove its name and all is to be encrypted.
    pub tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPlace {
    Tcp { host: String, port: u16 },
    Unix { path: String },
}

/// Why a URL is not the address of a server. It never has a part of the URL, which may be part of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadAddress {
    Scheme,
    NoHost,
    Port,
    Database,
    Query,
}

impl std::error::Error for BadAddress {}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAddress::Scheme => f.write_str("an address starts with redis://, rediss:// or unix:"),
            BadAddress::NoHost => f.write_str("an address must name a host"),
            BadAddress::Port => f.write_str("the port is not a number from 0 to 65535"),
            BadAddress::Database => f.write_str("what follows the last / is not a database number"),
            BadAddress::Query => f.write_str("a unix: address takes ?db=N and nothing else"),
        }
    }
}

impl Address {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Address, BadAddress> {
        let database_of = |number: &str| number.parse().map_err(|_| BadAddress::Database);
        if let Some(rest) = url.strip_prefix("unix:") {
            let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
            let database = match query.map(|query| query.strip_prefix("db=")) {
                None => 0,
                Some(Some(number)) => database_of(number)?,
                Some(None) => return Err(BadAddress::Query),
            };
            let path = path.strip_prefix("//").unwrap_or(path).to_owned();
            return Ok(Address { place: ServerPlace::Unix { path }, user: None, password: None, database, tls: false });
        }
        let (tls, rest) = match (url.strip_prefix("redis://"), url.strip_prefix("rediss://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(BadAddress::Scheme),
        };
        let (rest, database) = match rest.split_once('/') {
            None | Some((_, "")) => (rest.trim_end_matches('/'), 0),
            Some((rest, number)) => (rest, database_of(number)?),
        };
        let (login, server) = rest.rsplit_once('@').map_or((None, rest), |(login, server)| (Some(login), server));
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
            None => (None, None),
            Some((user, password)) => ((!user.is_empty()).then(|| decoded(user)), Some(decoded(password))),
        };
        // An IPv6 address has colons of its own and stands in brackets.
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| BadAddress::Port)?),
            _ => (server, 6379),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(BadAddress::NoHost);
        }
        Ok(Address { place: ServerPlace::Tcp { host, port }, user, password, database, tls })
    }

    /// Another server that is reached the same way.
    pub(super) fn at(&self, host: &str, port: u16) -> Address {
        Address { place: ServerPlace::Tcp { host: host.to_owned(), port }, ..self.clone() }
    }

    pub(super) fn host(&self) -> &str {
        match &self.place {
            ServerPlace::Tcp { host, .. } => host,
            ServerPlace::Unix { .. } => "127.0.0.1",
        }
    }

    /// The address without its secrets.
    pub fn shown(&self) -> String {
        match &self.place {
            ServerPlace::Tcp { host, port } => format!("{host}:{port}"),
            ServerPlace::Unix { path } => format!("unix:{path}"),
        }
    }
}

/// Text with its %XX turned into bytes, as far as they make text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let tcp = |url: &str| {
            let address = Address::parse(url).unwrap();
            (address.shown(), address.user, address.password, address.database)
        };
        assert_eq!(tcp("redis://localhost"), ("localhost:6379".into(), None, None, 0));
        assert_eq!(tcp("redis://:p%40ss@h:7/3"), ("h:7".into(), None, Some("p@ss".into()), 3));
        assert_eq!(tcp("redis://u:p@[::1]:9/"), ("::1:9".into(), Some("u".into()), Some("p".into()), 0));
        assert_eq!(tcp("unix:/tmp/r.sock?db=2"), ("unix:/tmp/r.sock".into(), None, None, 2));
        assert!(Address::parse("rediss://h").unwrap().tls && !Address::parse("redis://h").unwrap().tls);
        for bad in ["redis://", "redis://h:x", "redis://h/x", "http://h", "unix:/a?b=1", "rediss://"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
