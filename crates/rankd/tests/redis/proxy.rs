//! Stands between rankd and a server and counts: connections, and round trips as bytes from the client after bytes from the
//! server. A connection's greeting is no round trip. It can lose packets, as far as that can be seen from above TCP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Of a thousand packets.
    lost: Arc<AtomicU64>,
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
        let lost = Arc::new(AtomicU64::new(0));
        let proxy = Proxy { port, lost: lost.clone(), counts: counts.clone() };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                counts.connections.lock().expect("no thread panicked").push(Instant::now());
                // Without a server the client sees its connection closed.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    forward(client, server, &counts, &lost);
                }
            }
        });
        proxy
    }

    /// From now on loses so many of a thousand packets, either way: then nothing comes through on that connection until TCP
    /// has sent it again, after 200 ms, and twice as long each time that it is lost once more. What real TCP does better, when
    /// more packets follow, it does not do.
    pub(crate) fn loses(&self, per_mille: u64) {
        self.lost.store(per_mille, Ordering::Relaxed);
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

fn forward(client: TcpStream, server: TcpStream, counts: &Arc<Counts>, lost: &Arc<AtomicU64>) {
    let server_spoke = Arc::new(AtomicBool::new(false));
    let sockets = client.try_clone().and_then(|client| Ok((client, server.try_clone()?)));
    let (client_out, server_out) = sockets.expect("a socket has two ends");
    let (counts, spoke) = (counts.clone(), server_spoke.clone());
    let (lost_there, lost_back) = (lost.clone(), lost.clone());
    thread::spawn(move || {
        copy(client, server_out, &lost_there, || {
            if spoke.swap(false, Ordering::SeqCst) {
                counts.trips.fetch_add(1, Ordering::SeqCst);
            }
        });
    });
    thread::spawn(move || copy(server, client_out, &lost_back, || server_spoke.store(true, Ordering::SeqCst)));
}

/// Copies until one side closes, then closes both.
fn copy(mut from: TcpStream, mut to: TcpStream, lost: &AtomicU64, mut seen: impl FnMut()) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let is_lost = || {
        // Evenly spread and without a pattern: a multiplier and the upper bits.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 32) % 1000 < lost.load(Ordering::Relaxed)
    };
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        seen();
        let mut pause = Duration::from_millis(200);
        while is_lost() {
            thread::sleep(pause);
            pause *= 2;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
