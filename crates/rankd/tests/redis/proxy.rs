//! Stands between rankd and a server and counts: connections, and round trips as bytes from the client after bytes from the
//! server. A connection's greeting is no round trip.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    trips: AtomicU32,
    /// When each connection was asked for.
    connections: Mutex<Vec<Instant>>,
}

impl Proxy {
    /// Forwards to a port of this machine. Its threads end with the process.
    pub(crate) fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let counts = Arc::new(Counts::default());
        let proxy = Proxy { port, counts: counts.clone() };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                counts.connections.lock().expect("no thread panicked").push(Instant::now());
                // Without a server the client sees its connection closed.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    forward(client, server, &counts);
                }
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn trips(&self) -> u32 {
        self.counts.trips.load(Ordering::SeqCst)
    }

    /// The most connections that were asked for within any second.
    pub(crate) fn most_connections_a_second(&self) -> usize {
        let at = self.counts.connections.lock().expect("no thread panicked");
        let within =
            |first: &Instant| at.iter().filter(|at| *at >= first && at.duration_since(*first).as_secs() < 1).count();
        at.iter().map(within).max().unwrap_or(0)
    }
}

fn forward(client: TcpStream, server: TcpStream, counts: &Arc<Counts>) {
    let server_spoke = Arc::new(AtomicBool::new(false));
    let sockets = client.try_clone().and_then(|client| Ok((client, server.try_clone()?)));
    let (client_out, server_out) = sockets.expect("a socket has two ends");
    let (counts, spoke) = (counts.clone(), server_spoke.clone());
    thread::spawn(move || {
        copy(client, server_out, || {
            if spoke.swap(false, Ordering::SeqCst) {
                counts.trips.fetch_add(1, Ordering::SeqCst);
            }
        });
    });
    thread::spawn(move || copy(server, client_out, || server_spoke.store(true, Ordering::SeqCst)));
}

/// Copies until one side closes, then closes both.
fn copy(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut()) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        seen();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
