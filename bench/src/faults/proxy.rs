//! A Redis server behind a proxy that spoils its answers: late, piecemeal, lost on the way, or errors in their place.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What becomes of answers.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Pass,
    /// All come so much later.
    Slow(Duration),
    /// A byte every 10 ms.
    Dribble,
    /// Three of ten are errors, after 300 ms.
    Grey,
    /// So many of a thousand are lost and sent again, as TCP does.
    Lose(u64),
    /// Nothing gets through in either direction.
    Cut,
}

/// The least time after which TCP sends again what was lost.
const SENT_AGAIN: Duration = Duration::from_millis(200);
const GREY_DELAY: Duration = Duration::from_millis(300);
const GREY_PER_MILLE: u64 = 300;
const GREY_ERROR: &[u8] = b"-LOADING Redis is loading the dataset in memory\r\n";

/// Forwards to a port of this machine. Its threads end with the process.
pub struct Proxy {
    pub port: u16,
    mode: Arc<Mutex<Mode>>,
}

impl Proxy {
    pub fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let mode = Arc::new(Mutex::new(Mode::Pass));
        let shared = mode.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let sockets = client.try_clone().and_then(|client| Ok((client, server.try_clone()?)));
                let (client_out, server_out) = sockets.expect("a socket has two ends");
                let (there, back) = (shared.clone(), shared.clone());
                thread::spawn(move || forward(client, server_out, |bytes, to| send_request(&there, bytes, to)));
                thread::spawn(move || {
                    let mut random = u64::from(port);
                    forward(server, client_out, |bytes, to| send_answer(&back, &mut random, bytes, to));
                });
            }
        });
        Proxy { port, mode }
    }

    pub fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, mut send: impl FnMut(&[u8], &mut TcpStream) -> std::io::Result<()>) {
    let _ = to.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if send(&buffer[..count], &mut to).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

fn now(mode: &Mutex<Mode>) -> Mode {
    *mode.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_request(mode: &Mutex<Mode>, bytes: &[u8], to: &mut TcpStream) -> std::io::Result<()> {
    match now(mode) {
        Mode::Cut => Ok(()),
        Mode::Pass | Mode::Slow(_) | Mode::Dribble | Mode::Grey | Mode::Lose(_) => to.write_all(bytes),
    }
}

fn send_answer(mode: &Mutex<Mode>, random: &mut u64, bytes: &[u8], to: &mut TcpStream) -> std::io::Result<()> {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let of_a_thousand = (*random >> 33) % 1000;
    match now(mode) {
        Mode::Pass => to.write_all(bytes),
        Mode::Slow(delay) => {
            thread::sleep(delay);
            to.write_all(bytes)
        }
        Mode::Dribble => {
            for byte in bytes {
                if now(mode) == Mode::Dribble {
                    thread::sleep(Duration::from_millis(10));
                }
                to.write_all(&[*byte])?;
            }
            Ok(())
        }
        Mode::Grey => match answers(bytes) {
            Some(count) if of_a_thousand < GREY_PER_MILLE => {
                thread::sleep(GREY_DELAY);
                to.write_all(&GREY_ERROR.repeat(count))
            }
            _ => to.write_all(bytes),
        },
        Mode::Lose(per_mille) => {
            if of_a_thousand < per_mille {
                thread::sleep(SENT_AGAIN);
            }
            to.write_all(bytes)
        }
        Mode::Cut => Ok(()),
    }
}

/// How many whole answers these bytes are; `None` where they end within one.
fn answers(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        let mut left = 1;
        while left > 0 {
            let line = &bytes[at..];
            let end = line.windows(2).position(|two| two == b"\r\n")?;
            let number = || std::str::from_utf8(&line[1..end]).ok()?.parse::<i64>().ok();
            at += end + 2;
            match line[0] {
                b'*' => left += usize::try_from(number()?).unwrap_or(0),
                b'$' => at += usize::try_from(number()?).map_or(0, |length| length + 2),
                _ => {}
            }
            left -= 1;
        }
        count += 1;
    }
    (at == bytes.len()).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_where_they_are_whole() {
        assert_eq!(answers(b"+OK\r\n:1\r\n$-1\r\n"), Some(3));
        assert_eq!(answers(b"*2\r\n$1\r\na\r\n*1\r\n:3\r\n+x\r\n"), Some(2));
        assert_eq!(answers(b"*2\r\n$1\r\na\r\n"), None);
        assert_eq!(answers(b"$5\r\nab"), None);
        assert_eq!(answers(b""), Some(0));
    }
}
