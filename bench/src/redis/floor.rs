//! The floor: one blocking socket, everything that is ready in one write, replies parsed in place and trusted. No timeouts, no
//! errors, no columns: what the reads cost when nothing else is asked for.

use crate::redis::{FANOUT, Reader};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;

pub struct Floor {
    socket: TcpStream,
    hydrated: bool,
    out: Vec<u8>,
    incoming: Vec<u8>,
    /// The ids of media, of the request that ended last: to compare with others.
    pub last: Vec<i64>,
}

/// What a reply is for.
#[derive(Clone, Copy)]
enum Reply {
    Viewer,
    Follow,
    Recommendation,
    Media,
    Fields,
}

#[derive(Default)]
struct Request {
    user: i64,
    /// Replies that are still to come in this step.
    left: usize,
    near: Vec<i64>,
    media: Vec<i64>,
}

impl Floor {
    pub fn connect(port: u16, hydrated: bool) -> Floor {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("the server is there");
        socket.set_nodelay(true).expect("it is a socket");
        Floor { socket, hydrated, out: Vec::new(), incoming: Vec::new(), last: Vec::new() }
    }

    fn ask(&mut self, command: &str, key: &str, id: i64, rest: &str) {
        let mut digits = itoa::Buffer::new();
        let id = digits.format(id);
        self.out.extend_from_slice(command.as_bytes());
        self.out.extend_from_slice(itoa::Buffer::new().format(key.len() + id.len()).as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(id.as_bytes());
        self.out.extend_from_slice(rest.as_bytes());
    }

    fn ask_list(&mut self, key: &str, id: i64) {
        debug_assert_eq!(FANOUT, 10);
        self.ask("*4\r\n$6\r\nLRANGE\r\n$", key, id, "\r\n$1\r\n0\r\n$1\r\n9\r\n");
    }
}

impl Reader for Floor {
    fn read(&mut self, users: &[i64], in_flight: usize) -> usize {
        let mut waiting = users.iter();
        let mut requests: Vec<Request> = Vec::new();
        let mut expected: VecDeque<(usize, Reply)> = VecDeque::new();
        let (mut rows, mut at) = (0, 0);
        for user in waiting.by_ref().take(in_flight) {
            expected.push_back((requests.len(), Reply::Viewer));
            requests.push(Request { user: *user, left: 1, ..Request::default() });
            self.ask("*2\r\n$7\r\nHGETALL\r\n$", "user:", *user, "\r\n");
        }
        while !expected.is_empty() {
            if !self.out.is_empty() {
                self.socket.write_all(&self.out).expect("the server reads");
                self.out.clear();
            }
            let old = self.incoming.len();
            self.incoming.resize(old + (64 << 10), 0);
            let count = self.socket.read(&mut self.incoming[old..]).expect("the server writes");
            self.incoming.truncate(old + count);
            while let Some(&(number, reply)) = expected.front() {
                let request = &mut requests[number];
                let ids = match reply {
                    Reply::Follow | Reply::Recommendation => Some(&mut request.near),
                    Reply::Media => Some(&mut request.media),
                    Reply::Viewer | Reply::Fields => None,
                };
                let Some(end) = parse(&self.incoming, at, ids) else { break };
                at = end;
                expected.pop_front();
                request.left -= 1;
                if request.left > 0 {
                    continue;
                }
                match reply {
                    Reply::Viewer => {
                        request.left = 2;
                        let user = request.user;
                        expected.extend([(number, Reply::Follow), (number, Reply::Recommendation)]);
                        self.ask_list("follow:", user);
                        self.ask_list("recommendation:", user);
                    }
                    Reply::Follow | Reply::Recommendation => {
                        let near = std::mem::take(&mut request.near);
                        request.left = near.len() * if self.hydrated { 2 } else { 1 };
                        for id in &near {
                            if self.hydrated {
                                expected.push_back((number, Reply::Fields));
                                self.ask("*4\r\n$5\r\nHMGET\r\n$", "user:", *id, "\r\n$7\r\ncountry\r\n$3\r\nage\r\n");
                            }
                            expected.push_back((number, Reply::Media));
                            self.ask_list("media:", *id);
                        }
                        requests[number].near = near;
                        requests[number].near.clear();
                    }
                    Reply::Media | Reply::Fields => {
                        rows += request.media.len();
                        self.last.clone_from(&request.media);
                        request.media.clear();
                        if let Some(user) = waiting.next() {
                            (request.user, request.left) = (*user, 1);
                            expected.push_back((number, Reply::Viewer));
                            self.ask("*2\r\n$7\r\nHGETALL\r\n$", "user:", *user, "\r\n");
                        }
                    }
                }
            }
            self.incoming.drain(..at);
            at = 0;
        }
        rows
    }
}

/// Reads a list of strings, as ids where they are wanted; the end of the reply, or `None` and no ids when it is not all there.
fn parse(bytes: &[u8], at: usize, mut ids: Option<&mut Vec<i64>>) -> Option<usize> {
    let before = ids.as_ref().map_or(0, |ids| ids.len());
    let end = (|| {
        let (count, mut at) = number(bytes, at + 1)?;
        for _ in 0..count {
            let (length, start) = number(bytes, at + 1)?;
            let item = bytes.get(start..start + length as usize)?;
            if let Some(ids) = &mut ids {
                ids.push(item.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')));
            }
            at = start + length as usize + 2;
        }
        (at <= bytes.len()).then_some(at)
    })();
    if end.is_none()
        && let Some(ids) = ids
    {
        ids.truncate(before);
    }
    end
}

/// The number that starts here, and what comes after its line.
fn number(bytes: &[u8], mut at: usize) -> Option<(i64, usize)> {
    let mut value = 0;
    loop {
        match *bytes.get(at)? {
            b'\r' => return Some((value, at + 2)),
            digit => value = value * 10 + i64::from(digit - b'0'),
        }
        at += 1;
    }
}
