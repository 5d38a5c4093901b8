//! Which host a request is for: the header `host`, or HTTP/2's authority. A page in a browser can make its own name lead to this
//! machine and then ask what listens on loopback; so a listener on loopback answers only to names that mean loopback.

use hyper::Version;
use hyper::header::HOST;
use hyper::http::request::Parts;
use rankd_engine::{RunError, codes};
use rankd_plan::diagnostic::quoted;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The hosts that requests to one listener may be for.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// Any host.
    All,
    /// Names and addresses of loopback, and the address that is listened on.
    Loopback(IpAddr),
    /// In lower case, without ports.
    Listed(Vec<String>),
    /// What means loopback, the address that is listened on, and those that are listed: what the console answers to.
    LoopbackOr(IpAddr, Vec<String>),
}

impl Hosts {
    /// What a listener on this address answers to by default.
    pub fn of(address: SocketAddr) -> Hosts {
        if address.ip().is_loopback() { Hosts::Loopback(address.ip()) } else { Hosts::All }
    }

    fn allow(&self, name: &str) -> bool {
        match self {
            Hosts::All => true,
            Hosts::Listed(names) => is_listed(names, name),
            Hosts::LoopbackOr(own, names) => is_listed(names, name) || Hosts::Loopback(*own).allow(name),
            Hosts::Loopback(own) => {
                let local = name.eq_ignore_ascii_case("localhost")
                    || name.len() > ".localhost".len()
                        && name
                            .get(name.len() - ".localhost".len()..)
                            .is_some_and(|end| end.eq_ignore_ascii_case(".localhost"));
                local || address(name).is_some_and(|address| address.is_loopback() || address == *own)
            }
        }
    }

    /// Whether a request is for one host, and for one of these; the error where it is not. Where `any` is set, any
    /// one host will do.
    pub(crate) fn check(&self, head: &Parts, any: bool) -> Result<(), Box<RunError>> {
        let refused = |code, message: String| Box::new(RunError::new(code, message));
        let bad = |message: String| refused(codes::BAD_HOST, message);
        let mut given = head.headers.get_all(HOST).iter();
        let (host, second) = (given.next(), given.next());
        if second.is_some() {
            return Err(bad("the header host appears more than once".to_owned()));
        }
        let host = host.map(|host| host.to_str().map_err(|_| bad("the header host is not text".to_owned())));
        let host = host.transpose()?;
        let given = match (head.uri.authority(), host) {
            (Some(target), Some(host)) if !target.as_str().eq_ignore_ascii_case(host) => {
                return Err(bad("the request is for one host, but its header host names another".to_owned()));
            }
            (Some(target), _) => target.as_str(),
            (None, Some(host)) => host,
            // Before HTTP/1.1 there was no such header.
            (None, None) if head.version < Version::HTTP_11 => return Ok(()),
            (None, None) => return Err(bad("the header host is missing".to_owned())),
        };
        let Some(name) = name(given) else {
            return Err(bad(format!("{} is not a host", quoted(given))));
        };
        if any || self.allow(name) {
            return Ok(());
        }
        let flag = if matches!(self, Hosts::LoopbackOr(..)) { "--console_host" } else { "--hosts" };
        let message =
            format!("this server does not answer for the host {}; {flag} sets which it answers for", quoted(name));
        Err(refused(codes::OTHER_HOST, message))
    }
}

fn is_listed(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The name in `name`, `name:port`, `[address]` or `[address]:port`, without a dot at its end.
fn name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (inside, port) = rest.split_once(']')?;
            inside.parse::<Ipv6Addr>().ok()?;
            (&host[..inside.len() + 2], port)
        }
        None => {
            let (name, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            (Some(name).filter(|name| name.bytes().all(known))?, port)
        }
    };
    let port = port.strip_prefix(':').or(port.is_empty().then_some(""))?;
    let known = port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let name = name.strip_suffix('.').unwrap_or(name);
    (known && !name.is_empty()).then_some(name)
}

fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(|address| address.to_canonical()),
        None => name.parse().ok(),
    }
}

/// Why a text is not a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAHost {
    /// It has a port; the host without it.
    HasPort(String),
    /// It is not a host name.
    Malformed,
}

impl std::error::Error for NotAHost {}

impl fmt::Display for NotAHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAHost::HasPort(name) => write!(f, "a host has no port here: write {name}"),
            NotAHost::Malformed => f.write_str("write a name such as rank.example.com, or an address"),
        }
    }
}

/// A host as `--hosts` takes it: a name or an address, without a port.
pub fn listed(text: &str) -> Result<String, NotAHost> {
    let bare = text.parse::<Ipv6Addr>().map_or_else(|_| text.to_owned(), |address| format!("[{address}]"));
    match name(&bare) {
        Some(name) if name.len() == bare.trim_end_matches('.').len() => Ok(name.to_ascii_lowercase()),
        Some(name) => Err(NotAHost::HasPort(name.to_owned())),
        None => Err(NotAHost::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn status(hosts: &Hosts, target: &str, version: Version, given: &[&str]) -> u16 {
        let mut request = Request::builder().uri(target).version(version);
        for host in given {
            request = request.header(HOST, *host);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        hosts.check(&head, false).map_or_else(|error| crate::status::of(error.code).as_u16(), |()| 200)
    }

    #[test]
    fn a_request_is_for_exactly_one_host() {
        for (version, target, given, expected) in [
            (Version::HTTP_11, "/", &["a.example"][..], 200),
            (Version::HTTP_11, "/", &["a.example:80"], 200),
            (Version::HTTP_11, "/", &["[2001:db8::1]:80"], 200),
            (Version::HTTP_11, "/", &[], 400),
            (Version::HTTP_11, "/", &["a.example", "a.example"], 400),
            (Version::HTTP_11, "http://a.example/", &["a.example"], 200),
            (Version::HTTP_11, "http://a.example/", &["b.example"], 400),
            (Version::HTTP_10, "/", &[], 200),
            (Version::HTTP_10, "/", &["a", "b"], 400),
            (Version::HTTP_2, "http://a.example/", &[], 200),
            (Version::HTTP_2, "http://a.example/", &["A.Example"], 200),
            (Version::HTTP_2, "http://a.example/", &["b.example"], 400),
            (Version::HTTP_2, "/", &[], 400),
        ] {
            assert_eq!(status(&Hosts::All, target, version, given), expected, "{version:?} {target} {given:?}");
        }
        for bad in [
            "", ".", ":80", "a b", "a,b", "a/b", "a@b", "a:b", "a:99999", "a:1:2", "[::1", "[x]", "[::1]x", "::1",
            "a\tb",
        ] {
            assert_eq!(status(&Hosts::All, "/", Version::HTTP_11, &[bad]), 400, "{bad:?}");
        }
    }

    #[test]
    fn a_listener_on_loopback_answers_for_loopback_and_itself() {
        let hosts = Hosts::of("127.0.0.1:8080".parse().unwrap());
        for good in [
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "a.localhost",
            "127.0.0.1",
            "127.8.9.1:8080",
            "[::1]:99",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(status(&hosts, "/", Version::HTTP_11, &[good]), 200, "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "10.0.0.1:8080",
            "[2001:db8::1]",
            "127.0.0.1.evil.example",
        ] {
            assert_eq!(status(&hosts, "/", Version::HTTP_11, &[bad]), 421, "{bad}");
        }
        let all = Hosts::of("0.0.0.0:8080".parse().unwrap());
        assert_eq!(status(&all, "/", Version::HTTP_11, &["anything.example"]), 200);
    }

    #[test]
    fn with_a_list_only_those_in_it_are_answered_for() {
        let hosts = Hosts::Listed(vec![listed("Rank.Example.com.").unwrap(), listed("2001:db8::1").unwrap()]);
        for (given, expected) in
            [("rank.example.COM:8080", 200), ("rank.example.com.", 200), ("[2001:db8::1]:80", 200), ("localhost", 421)]
        {
            assert_eq!(status(&hosts, "/", Version::HTTP_11, &[given]), expected, "{given}");
        }
        let console = Hosts::LoopbackOr("10.1.2.3".parse().unwrap(), vec![listed("console.example.com").unwrap()]);
        for (given, expected) in [
            ("console.example.com:8081", 200),
            ("localhost:8081", 200),
            ("10.1.2.3:8081", 200),
            ("10.1.2.4:8081", 421),
            ("evil.example", 421),
        ] {
            assert_eq!(status(&console, "/", Version::HTTP_11, &[given]), expected, "{given}");
        }
        for bad in ["", "a:80", "a b", "http://a", "[::1]:80"] {
            assert!(listed(bad).is_err(), "{bad}");
        }
    }
}
