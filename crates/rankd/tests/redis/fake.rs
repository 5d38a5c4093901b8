//! A server that says what a test wants it to say, byte by byte, and remembers what each connection asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What to do after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Wait for the next command.
    Listen,
    /// Keep the connection open and say no more.
    Stall,
    Close,
    /// Send the bytes one a millisecond, then listen.
    Dribble,
    /// Send the bytes again and again until the client goes.
    Repeat,
}

pub(crate) struct Fake {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) commands: usize,
    pub(crate) closed: bool,
}

impl Fake {
    /// `answer` gives what to say to a command (`PING` or another) on the connection of this number, the first being 0.
    /// It is an old server: it does not know HELLO. Its threads end with the process.
    pub(crate) fn start(answer: impl Fn(&str, usize) -> (Vec<u8>, Then) + Send + Sync + 'static) -> Fake {
        Fake::knowing_hello(move |command, number| match command {
            "HELLO" => (b"-ERR unknown command 'HELLO'\r\n".to_vec(), Then::Listen),
            _ => answer(command, number),
        })
    }

    /// The same, where `answer` is also told of HELLO.
    pub(crate) fn knowing_hello(answer: impl Fn(&str, usize) -> (Vec<u8>, Then) + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (answer, seen) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let fake = Fake { port, seen: seen.clone() };
        thread::spawn(move || {
            for (number, socket) in listener.incoming().map_while(Result::ok).enumerate() {
                let (answer, seen) = (answer.clone(), seen.clone());
                seen.lock().expect("no thread panicked").push(Seen::default());
                thread::spawn(move || {
                    let note = |change: fn(&mut Seen)| change(&mut seen.lock().expect("no thread panicked")[number]);
                    // A client that goes away ends the connection, as does the end of the script.
                    let _ = serve(socket, |command| {
                        if !["HELLO", "AUTH", "SELECT", "PING"].contains(&command) {
                            note(|seen| seen.commands += 1);
                        }
                        answer(command, number)
                    });
                    note(|seen| seen.closed = true);
                });
            }
        });
        fake
    }

    /// One that greets well and answers every read with the same bytes.
    pub(crate) fn saying(bytes: &[u8], then: Then) -> Fake {
        let bytes = bytes.to_vec();
        Fake::start(move |command, _| match command {
            "PING" => (b"+PONG\r\n".to_vec(), Then::Listen),
            _ => (bytes.clone(), then),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no thread panicked").clone()
    }
}

fn serve(socket: TcpStream, mut answer: impl FnMut(&str) -> (Vec<u8>, Then)) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut out = socket.try_clone()?;
    let mut commands = BufReader::new(socket);
    while let Some(command) = next_command(&mut commands)? {
        let (bytes, then) = answer(&command);
        match then {
            Then::Dribble => {
                for byte in bytes {
                    out.write_all(&[byte])?;
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Then::Repeat => loop {
                out.write_all(&bytes)?;
            },
            _ => out.write_all(&bytes)?,
        }
        match then {
            Then::Close => return Ok(()),
            Then::Stall => return std::io::copy(&mut commands, &mut std::io::sink()).map(drop),
            _ => {}
        }
    }
    Ok(())
}

/// The first word of the next command; `None` at the end.
fn next_command(from: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut header = String::new();
    if from.read_line(&mut header)? == 0 {
        return Ok(None);
    }
    let number = |line: &str| line[1..].trim_end().parse::<usize>().expect("rankd sends lengths");
    let mut first = None;
    for _ in 0..number(&header) {
        let mut length = String::new();
        from.read_line(&mut length)?;
        let mut word = vec![0; number(&length) + 2];
        from.read_exact(&mut word)?;
        first = first.or_else(|| Some(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned()));
    }
    Ok(first)
}
