//! The floor: one thread, epoll, HTTP/1.1 and JSON written by hand. It reads a request's head and length, writes the rows of
//! the plan in its path anew for every request, and knows nothing else: no limits, no time, no errors.

use crate::http::shape::{FIFTY, Rows, TINY, rows};
use rustix::event::epoll;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Serves until it is killed; says where on stdout.
pub fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let mut clients: Vec<Option<Client>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let (fifty, tiny) = (rows(FIFTY), rows(TINY));
    let (mut body, mut out) = (Vec::new(), Vec::new());
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let at = event.data.u64();
            if at == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    epoll::add(&poll, &stream, epoll::EventData::new_u64(clients.len() as u64), epoll::EventFlags::IN)?;
                    clients.push(Some(Client { stream, buffer: Vec::with_capacity(4096) }));
                }
            } else if let Some(Some(client)) = clients.get_mut(at as usize)
                && !client.serve(&fifty, &tiny, &mut body, &mut out)
            {
                clients[at as usize] = None;
            }
        }
    }
}

impl Client {
    /// Answers what has come; false once the client has gone. Answers are small, so a socket that does not take one whole
    /// belongs to somebody who does not read.
    fn serve(&mut self, fifty: &Rows, tiny: &Rows, body: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
        out.clear();
        while let Some(end) = whole(&self.buffer) {
            body.clear();
            let is_fifty = self.buffer.starts_with(b"POST /rank/fifty ");
            if is_fifty {
                fifty.push_answer(FIFTY, body)
            } else {
                tiny.push_answer(TINY, body)
            }
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            out.extend_from_slice(b"\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n");
            out.extend_from_slice(body);
            self.buffer.drain(..end);
        }
        self.stream.write_all(out).is_ok()
    }
}

/// Where a request or an answer ends, if all of it is here.
pub fn whole(buffer: &[u8]) -> Option<usize> {
    const LENGTH: &[u8] = b"content-length: ";
    let head = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let name = buffer[..head].windows(LENGTH.len()).position(|name| name.eq_ignore_ascii_case(LENGTH))? + LENGTH.len();
    let digits = buffer[name..head].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
    (buffer.len() >= head + length).then_some(head + length)
}
