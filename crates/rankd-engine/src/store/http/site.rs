//! Where a service is, what every request to it has, and how it may be used. Sends nothing.

use crate::store::calls::{Call, CallMethod, PATH_BYTES_MAX};
use crate::store::tls::{Trust, server_name};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, InvalidUri, PathAndQuery, Scheme};
use hyper::{Method, Request, Uri, Version};
use rankd_plan::registry::HttpPolicy;
use std::fmt;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A service.
pub struct Site {
    scheme: Scheme,
    /// Host and port as they were written.
    authority: Authority,
    /// What stands before the path of a call; no `/` at its end.
    base: String,
    pub(super) host: String,
    pub(super) port: u16,
    headers: HeaderMap,
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(super) policy: HttpPolicy,
}

/// Why an endpoint's entry cannot be used.
#[derive(Debug)]
pub enum BadSite {
    NotAUrl(InvalidUri),
    NoHost,
    Port,
    /// It has a user or a password.
    Login,
    /// It has a query or a fragment.
    Query,
    /// The host cannot be the name in a certificate.
    HostName(String),
    /// TLS without authorities to trust.
    NoTrust,
    /// The name of the header whose value is none.
    Header(String),
}

impl std::error::Error for BadSite {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BadSite::NotAUrl(error) => Some(error),
            BadSite::NoHost
            | BadSite::Port
            | BadSite::Login
            | BadSite::Query
            | BadSite::HostName(_)
            | BadSite::NoTrust
            | BadSite::Header(_) => None,
        }
    }
}

impl fmt::Display for BadSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSite::NotAUrl(error) => write!(f, "this is not a url: {error}"),
            BadSite::NoHost => f.write_str("a url starts with http:// or https:// and a host"),
            BadSite::Port => f.write_str("the port is not a number from 0 to 65535"),
            BadSite::Login => f.write_str("a url has no user and no password: set the header authorization instead"),
            BadSite::Query => f.write_str("a url has no query and no fragment: they belong in the path of the task"),
            BadSite::HostName(host) => write!(f, "{host:?} is not a valid name for a certificate"),
            BadSite::NoTrust => f.write_str("there is no trusted CA certificate"),
            BadSite::Header(name) => write!(f, "the value of the header {name} cannot be sent"),
        }
    }
}

impl Site {
    /// A service at a url, with headers for every request. `trust` is needed where the url asks for TLS.
    pub fn new(
        url: &str,
        headers: &[(String, String)],
        policy: HttpPolicy,
        trust: Option<&Trust>,
    ) -> Result<Site, BadSite> {
        if url.contains(['?', '#']) {
            return Err(BadSite::Query);
        }
        let parts = url.parse::<Uri>().map_err(BadSite::NotAUrl)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else { return Err(BadSite::NoHost) };
        let is_encrypted = scheme == Scheme::HTTPS;
        if authority.as_str().contains('@') {
            return Err(BadSite::Login);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || !(is_encrypted || scheme == Scheme::HTTP) {
            return Err(BadSite::NoHost);
        }
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            None | Some("") if is_encrypted => 443,
            None | Some("") => 80,
            Some(port) => port.parse().map_err(|_| BadSite::Port)?,
        };
        let tls = match (is_encrypted, trust) {
            (false, _) => None,
            (true, None) => return Err(BadSite::NoTrust),
            (true, Some(trust)) => {
                let protocols: &[&[u8]] = match policy.http2 {
                    None => &[b"h2", b"http/1.1"],
                    Some(true) => &[b"h2"],
                    Some(false) => &[b"http/1.1"],
                };
                let name = server_name(&host).ok_or_else(|| BadSite::HostName(host.clone()))?;
                Some((trust.connector_for(protocols), name))
            }
        };
        let base = parts.path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/').to_owned();
        Ok(Site { scheme, authority, base, host, port, headers: header_map(headers)?, tls, policy })
    }

    /// Host and port, without anything secret.
    pub(super) fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.policy.connect_timeout_ms.into())
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.policy.request_timeout_ms.into())
    }

    /// The request of a call; `None` where its path is too long or has characters that paths do not have.
    pub(super) fn request(&self, call: &Call, version: Version) -> Option<Request<Full<Bytes>>> {
        if self.base.len() + call.path.len() > PATH_BYTES_MAX || !call.path.starts_with('/') {
            return None;
        }
        let path = PathAndQuery::try_from(format!("{}{}", self.base, call.path)).ok()?;
        let mut request = Request::new(Full::new(call.body.clone().unwrap_or_default()));
        *request.method_mut() = match call.method {
            CallMethod::Get => Method::GET,
            CallMethod::Post => Method::POST,
        };
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        if call.body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let uri = if version == Version::HTTP_2 {
            let whole = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
            whole.path_and_query(path).build().ok()?
        } else {
            headers.insert(header::HOST, HeaderValue::from_str(self.authority.as_str()).ok()?);
            Uri::from(path)
        };
        *request.uri_mut() = uri;
        *request.version_mut() = version;
        Some(request)
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, BadSite> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let bad = || BadSite::Header(name.clone());
        let mut sent = HeaderValue::from_str(value).map_err(|_| bad())?;
        // HTTP/2 does not keep it in its table of headers, and Debug does not show it.
        sent.set_sensitive(true);
        map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, sent);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(url: &str) -> Result<Site, BadSite> {
        let headers = [("authorization".to_owned(), "Bearer secret".to_owned())];
        Site::new(url, &headers, HttpPolicy::default(), None)
    }

    fn get(path: &str) -> Call {
        Call { method: CallMethod::Get, path: path.to_owned(), body: None }
    }

    #[test]
    fn a_url_is_read_as_it_is_written() {
        for (url, shown, path) in [
            ("http://h", "h:80", "/a?b=1"),
            ("http://h:8080/v1/", "h:8080", "/v1/a?b=1"),
            ("http://[::1]:7/v1/x", "::1:7", "/v1/x/a?b=1"),
        ] {
            let site = site(url).unwrap();
            let request = site.request(&get("/a?b=1"), Version::HTTP_11).unwrap();
            assert_eq!((site.shown().as_str(), request.uri().to_string().as_str()), (shown, path), "{url}");
        }
        for bad in [
            "http://",
            "h",
            "ftp://h",
            "http://u:p@h",
            "http://h?x=1",
            "http://h#x",
            "https://h",
            "http://h:x",
            "http://h:65536",
        ] {
            assert!(site(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn http_2_names_the_host_in_the_uri_and_http_1_in_a_header() {
        let site = site("http://h:81/v1").unwrap();
        let second = site.request(&get("/a"), Version::HTTP_2).unwrap();
        assert!(second.uri() == "http://h:81/v1/a" && !second.headers().contains_key("host"));
        let first = site.request(&get("/a"), Version::HTTP_11).unwrap();
        assert!(first.uri() == "/v1/a" && first.headers()["host"] == "h:81");
    }

    #[test]
    fn a_secret_is_sent_and_not_shown() {
        let request = site("http://h").unwrap().request(&get("/a"), Version::HTTP_11).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        assert!(!format!("{request:?}").contains("secret"));
    }

    #[test]
    fn a_path_that_cannot_be_sent_is_refused() {
        let site = site("http://h").unwrap();
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        for bad in ["a", "", "/a b", "/a\r\nx: y", &long] {
            assert!(site.request(&get(bad), Version::HTTP_11).is_none(), "{bad:?}");
        }
    }
}
