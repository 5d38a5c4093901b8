//! A server that is far away: forwards bytes and holds the answers back for a while, without limiting how many are under way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Forwards to a port of this machine; gives the port to connect to. Its threads end with the process.
pub fn far_away(server: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
            let sockets = client.try_clone().and_then(|client| Ok((client, server.try_clone()?)));
            let (client_out, server_out) = sockets.expect("a socket has two ends");
            thread::spawn(move || forward(client, server_out, Duration::ZERO));
            thread::spawn(move || forward(server, client_out, delay));
        }
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let _ = to.set_nodelay(true);
    let (sender, held) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, bytes) in held {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
    });
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
            break;
        }
    }
}
