//! HTTP/2 by hand, frame by frame, for what no good client does.

use crate::server::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW_SIZE: u8 = 4;

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The status in a head, where it is one of those that HPACK has a number or three digits for.
    pub(crate) fn status(&self) -> u16 {
        match self.payload.first() {
            Some(0x88) => 200,
            Some(0x8c) => 400,
            Some(0x8d) => 404,
            Some(0x8e) => 500,
            // A literal whose name is that of an entry of the table, and whose value is text, mostly in Huffman's code.
            Some(0x48) if self.payload[1] & 0x80 == 0 => {
                String::from_utf8_lossy(&self.payload[2..5]).parse().unwrap_or(0)
            }
            Some(0x48) => digits(&self.payload[2..2 + usize::from(self.payload[1] & 0x7f)]),
            other => panic!("no status in {other:?}"),
        }
    }
}

/// Three digits in Huffman's code: those up to 2 have five bits, the others six.
fn digits(bytes: &[u8]) -> u16 {
    let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)) << (64 - 8 * bytes.len());
    let mut at = 0;
    (0..3).fold(0, |number, _| {
        let rest = bits << at;
        let (digit, length) = match rest >> 59 {
            short @ 0..=2 => (short, 5),
            _ => ((rest >> 58) - 0x19 + 3, 6),
        };
        at += length;
        number * 10 + digit as u16
    })
}

pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) authority: String,
    next: u32,
}

impl Client {
    /// Connects, and lets the server send so many bytes of each answer before it is allowed more.
    pub(crate) fn connect(address: &str, window: u32) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client { stream, authority: address.to_owned(), next: 1 };
        client.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut setting = vec![0, INITIAL_WINDOW_SIZE];
        setting.extend(window.to_be_bytes());
        client.send(SETTINGS, 0, 0, &setting).unwrap();
        client
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame)
    }

    /// Sends the head of a request, on a stream of its own; fields of HPACK's table by their numbers, nothing by Huffman's code.
    pub(crate) fn head(&mut self, method: &str, path: &str, more: &[(&str, &str)], ends: bool) -> std::io::Result<u32> {
        let text = |block: &mut Vec<u8>, text: &str| {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        };
        let mut block = vec![0x86];
        for (name, value) in [(2, method), (4, path), (1, &*self.authority)] {
            block.push(name);
            text(&mut block, value);
        }
        for (name, value) in more {
            block.push(0);
            text(&mut block, name);
            text(&mut block, value);
        }
        let stream = self.next;
        self.next += 2;
        self.send(HEADERS, END_HEADERS | u8::from(ends), stream, &block)?;
        Ok(stream)
    }

    pub(crate) fn get(&mut self, path: &str) -> std::io::Result<u32> {
        self.head("GET", path, &[], true)
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<u32> {
        let stream = self.head("POST", path, &[("content-type", "application/json")], false)?;
        self.send(DATA, END_STREAM, stream, body.as_bytes())?;
        Ok(stream)
    }

    /// The next frame; an error where the connection was closed.
    pub(crate) fn frame(&mut self) -> std::io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Ok(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Whether the server closes the connection, after whatever it still has to say.
    pub(crate) fn is_closed(&mut self) -> bool {
        loop {
            match self.frame() {
                Ok(_) => {}
                // Nothing comes and it stays open.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
                Err(_) => return true,
            }
        }
    }

    /// The next frame of a stream that has to do with its answer.
    pub(crate) fn frame_of(&mut self, stream: u32) -> std::io::Result<Frame> {
        loop {
            let frame = self.frame()?;
            if frame.stream == stream && matches!(frame.kind, DATA | HEADERS | RST_STREAM) {
                return Ok(frame);
            }
        }
    }
}
