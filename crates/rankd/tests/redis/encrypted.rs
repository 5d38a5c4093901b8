//! `rediss://` against a real server: who is trusted, who is not, and that data come through whole.

use crate::asker::{Asker, FOLLOWED, USERS, load_users};
use crate::program::Workspace;
use crate::server::Server;
use rankd_engine::Scheduler;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

const CHECK: &[&str] = &["check", "complex_dag", "--connect"];

/// A server with a port for TLS, and the file of the authority that vouches for it.
struct Encrypted {
    server: Server,
    tls_port: u16,
    ca_file: PathBuf,
}

impl Encrypted {
    /// Its certificate is for these names.
    fn start(names: &[&str]) -> Encrypted {
        let folder = std::env::temp_dir().join(format!("rankd-tls-{}-{}", std::process::id(), names.join("-")));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        let authority = CertifiedIssuer::self_signed(params, key).expect("it can be signed");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("there is randomness");
        let certificate = CertificateParams::new(names).expect("they are names").signed_by(&key, &authority);
        let files = [
            ("ca.pem", authority.pem()),
            ("server.pem", certificate.expect("it can be signed").pem()),
            ("server.key", key.serialize_pem()),
        ];
        let [ca_file, certificate, key] = files.map(|(name, text)| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a temporary file can be written");
            path
        });
        let tls_port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let tls_port = tls_port.expect("a free port").port();
        let [ca, certificate, key] = [&ca_file, &certificate, &key].map(|path| path.to_str().expect("it is UTF-8"));
        let files = ["--tls-ca-cert-file", ca, "--tls-cert-file", certificate, "--tls-key-file", key];
        let port = tls_port.to_string();
        let server = Server::start(&[&["--tls-port", &port, "--tls-auth-clients", "no"], &files[..]].concat());
        Encrypted { server, tls_port, ca_file }
    }

    fn url(&self, host: &str) -> String {
        format!("rediss://{host}:{}", self.tls_port)
    }

    fn policy(&self) -> String {
        format!("ca_file = {:?}\nconnect_timeout_ms = 5000", self.ca_file)
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(self.ca_file.parent().expect("it is in a folder"));
    }
}

#[test]
fn a_server_with_a_good_certificate_is_read_like_any_other() {
    let encrypted = Encrypted::start(&["localhost", "127.0.0.1"]);
    for host in ["localhost", "127.0.0.1"] {
        let workspace = Workspace::with_policy(&encrypted.url(host), &encrypted.policy());
        for command in [&["seed"], CHECK] {
            let ran = workspace.rankd(command, "");
            assert_eq!(ran.code, Some(0), "{host}: {}", ran.stderr);
        }
        let ran = workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
        assert!(ran.code == Some(0) && ran.stdout.contains("\"parent_id\""), "{} {}", ran.stdout, ran.stderr);
    }
    encrypted.server.must(&["FLUSHALL"]);
    load_users(&encrypted.server);
    let asker = Asker::patient(Scheduler::Async, &encrypted.url("127.0.0.1"), &encrypted.policy());
    let users: Vec<i64> = (1..=USERS).collect();
    for _ in 0..20 {
        let answer = asker.ask(&users);
        assert_eq!(answer.result, Ok((USERS * FOLLOWED) as usize), "{}", answer.message);
    }
    // Far more than fits into one record or one write.
    let many: Vec<i64> = (1..=25_000).collect();
    assert_eq!(asker.ask(&many).result, Ok((USERS * FOLLOWED) as usize));
}

#[test]
fn a_server_that_cannot_prove_its_name_is_not_spoken_to() {
    let named = Encrypted::start(&["redis.example"]);
    let other = Encrypted::start(&["127.0.0.1"]);
    let url = other.url("127.0.0.1");
    let plain = Server::start(&[]);
    let plain_url = plain.url().replace("redis://", "rediss://");
    for (what, url, policy, says) in [
        ("a certificate for another name", named.url("127.0.0.1"), named.policy(), "not valid for name"),
        ("an authority that is not trusted", url.clone(), named.policy(), "invalid peer certificate"),
        ("the system does not know the authority", url, "connect_timeout_ms = 5000".into(), "certificate"),
        // It waits for the end of a line.
        ("a server without TLS", plain_url, other.policy().replace("5000", "500"), "no connection within 500 ms"),
    ] {
        let workspace = Workspace::with_policy(&url, &policy);
        for command in [&["seed"], CHECK] {
            let ran = workspace.rankd(command, "");
            assert!(ran.code == Some(2) && ran.stderr.contains(says), "{what}: {}", ran.stderr);
        }
        if policy.contains("ca_file") {
            let answer = Asker::patient(Scheduler::Async, &url, &policy).ask(&[1]);
            assert_eq!(answer.result, Err(("upstream", "E401")), "{what}: {}", answer.message);
            assert!(answer.took < Duration::from_secs(10), "{what}: {:?}", answer.took);
        }
    }
    assert_eq!(other.server.command(&["DBSIZE"]).expect("an answer"), ":0", "nothing was written");
}

#[test]
fn a_file_of_authorities_must_be_one() {
    let workspace = Workspace::with_policy("rediss://127.0.0.1:1", "ca_file = \"authority.pem\"");
    let run = || workspace.rankd(&["--plan_name", "complex_dag"], "{\"user_id\": 1}\n");
    let ran = run();
    assert!(ran.code == Some(2) && ran.stderr.contains("authority.pem"), "{}", ran.stderr);
    for text in
        ["", "-----BEGIN CERTIFICATE-----\nAAAA", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    {
        workspace.write("authority.pem", text);
        let ran = run();
        assert!(ran.code == Some(2) && ran.stderr.contains("authority.pem: "), "{text:?}: {}", ran.stderr);
    }
}
