//! A balancer in front of two servers, no more than a restart needs: it asks them whether they are ready, gives each request to
//! one that is, and tries the other only where the first did not take the connection.
//!
//! It gives up on a connection that is not made soon, as balancers do. A server that closes its listener drops the packets that ask for a
//! connection for a millisecond; whoever asks just then would hear nothing for a second.

use crate::http::floor::whole;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a server is asked whether it is ready.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_millis(50);
/// How long a connection is kept that nothing is sent on: less than a server keeps it.
const IDLE: Duration = Duration::from_secs(2);

/// A connection to a server: where to, and when it was last used.
struct Line {
    address: String,
    stream: TcpStream,
    used: Instant,
}

#[derive(Default)]
struct Backend {
    address: Mutex<String>,
    ready: AtomicBool,
}

pub struct Balancer {
    pub address: String,
    inner: Arc<Inner>,
}

struct Inner {
    backends: [Backend; 2],
    next: AtomicUsize,
    over: AtomicBool,
}

impl Balancer {
    pub fn start(addresses: [&str; 2]) -> Balancer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has one").to_string();
        let (backends, next) = (Default::default(), AtomicUsize::new(0));
        let inner = Arc::new(Inner { backends, next, over: AtomicBool::new(false) });
        let balancer = Balancer { address, inner: inner.clone() };
        (0..2).for_each(|at| balancer.replace(at, addresses[at]));
        for at in 0..2 {
            let looks = inner.clone();
            std::thread::spawn(move || {
                while !looks.over.load(Ordering::Relaxed) {
                    looks.backends[at].look();
                    std::thread::sleep(LOOK);
                }
            });
        }
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if inner.over.load(Ordering::Relaxed) {
                    return;
                }
                let inner = inner.clone();
                std::thread::spawn(move || inner.serve(client));
            }
        });
        balancer
    }

    /// Another server in the place of one that has gone.
    pub fn replace(&self, at: usize, address: &str) {
        let backend = &self.inner.backends[at];
        *backend.address.lock().expect("nobody panics") = address.to_owned();
        backend.look();
    }

    pub fn is_ready(&self, at: usize) -> bool {
        self.inner.backends[at].ready.load(Ordering::Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.inner.over.store(true, Ordering::Relaxed);
        // Wakes up the one who accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Backend {
    /// What was found out about the server at an address. If it has been replaced meanwhile, that does not count.
    fn found(&self, address: &str, ready: bool) {
        if *self.address.lock().expect("nobody panics") == address {
            self.ready.store(ready, Ordering::Relaxed);
        }
    }

    fn look(&self) {
        let address = self.address.lock().expect("nobody panics").clone();
        let request = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let answer = connect(&address).and_then(|mut stream| exchange(&mut stream, request));
        self.found(&address, answer.is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200")));
    }
}

impl Inner {
    /// One client's requests, one after the other. One that fails closes the connection, as an error of a balancer would be.
    fn serve(&self, mut client: TcpStream) {
        let _ = client.set_nodelay(true);
        let mut lines = [None, None];
        let mut buffer = Vec::new();
        while receive(&mut client, &mut buffer).is_ok() {
            let Ok(answer) = self.forward(&mut lines, &buffer) else { return };
            if client.write_all(&answer).is_err() {
                return;
            }
            buffer.clear();
        }
    }

    fn forward(&self, lines: &mut [Option<Line>; 2], request: &[u8]) -> std::io::Result<Vec<u8>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for at in [first % 2, (first + 1) % 2] {
            let backend = &self.backends[at];
            if !backend.ready.load(Ordering::Relaxed) {
                continue;
            }
            let address = backend.address.lock().expect("nobody panics").clone();
            if lines[at].as_ref().is_none_or(|line| line.address != address || line.used.elapsed() > IDLE) {
                // Nothing was sent where nobody took the connection: the other one may have the request.
                let Ok(stream) = connect(&address) else {
                    backend.found(&address, false);
                    continue;
                };
                lines[at] = Some(Line { address, stream, used: Instant::now() });
            }
            let Some(line) = &mut lines[at] else { continue };
            line.used = Instant::now();
            let answer = exchange(&mut line.stream, request);
            let closes = answer.as_ref().is_ok_and(|answer| {
                let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
                String::from_utf8_lossy(&answer[..head]).contains("connection: close")
            });
            if closes || answer.is_err() {
                lines[at] = None;
            }
            return answer;
        }
        Err(std::io::ErrorKind::NotConnected.into())
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address = address.parse().map_err(|_| std::io::ErrorKind::InvalidInput)?;
    let stream = TcpStream::connect_timeout(&address, CONNECT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream, request: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(request)?;
    let mut answer = Vec::new();
    receive(stream, &mut answer)?;
    Ok(answer)
}

/// A whole request or answer.
fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    while whole(buffer).is_none() {
        match stream.read(&mut bytes)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => buffer.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(())
}
