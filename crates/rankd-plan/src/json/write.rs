//! Writes JSON straight into a buffer.

use super::plain::plain;
use super::put::{NUMBER_ROOM, put_float, put_int, put_single};

/// Builds one JSON value; it writes the commas itself.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
    comma: bool,
}

impl Writer {
    pub fn new() -> Writer {
        Writer::default()
    }

    /// With room for this number of bytes.
    pub fn with_capacity(bytes: usize) -> Writer {
        Writer { out: Vec::with_capacity(bytes), comma: false }
    }

    /// How many bytes it has so far.
    pub fn byte_count(&self) -> usize {
        self.out.len()
    }

    pub fn object(&mut self, fields: impl FnOnce(&mut Writer)) -> &mut Writer {
        self.nested(b'{', fields, b'}')
    }

    pub fn array(&mut self, items: impl FnOnce(&mut Writer)) -> &mut Writer {
        self.nested(b'[', items, b']')
    }

    /// A field's name; its value must follow.
    pub fn field(&mut self, name: &str) -> &mut Writer {
        self.separate();
        push_string(&mut self.out, name);
        self.out.push(b':');
        self.comma = false;
        self
    }

    pub fn string(&mut self, value: &str) -> &mut Writer {
        self.separate();
        push_string(&mut self.out, value);
        self
    }

    pub fn int(&mut self, value: i64) -> &mut Writer {
        self.separate();
        push_int(&mut self.out, value);
        self
    }

    /// A finite number.
    pub fn float(&mut self, value: f64) -> &mut Writer {
        self.separate();
        push_float(&mut self.out, value);
        self
    }

    pub fn bool(&mut self, value: bool) -> &mut Writer {
        self.raw(if value { "true" } else { "false" })
    }

    pub fn null(&mut self) -> &mut Writer {
        self.raw("null")
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, json: &str) -> &mut Writer {
        self.separate();
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    /// A value that is pushed as JSON, right where it belongs.
    pub fn pushed(&mut self, push: impl FnOnce(&mut Vec<u8>)) -> &mut Writer {
        self.separate();
        push(&mut self.out);
        self
    }

    pub fn finish(self) -> String {
        // Only UTF-8 is written; if something else were, it should be seen and not lost.
        String::from_utf8(self.out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// The text as bytes, for callers that send it on unchanged.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn nested(&mut self, open: u8, inside: impl FnOnce(&mut Writer), close: u8) -> &mut Writer {
        self.separate();
        self.out.push(open);
        self.comma = false;
        inside(self);
        self.out.push(close);
        self.comma = true;
        self
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.comma, true) {
            self.out.push(b',');
        }
    }
}

pub fn push_int(out: &mut Vec<u8>, value: i64) {
    push_number(out, |room, at| put_int(room, at, value));
}

/// The shortest digits that read back as the same number, with a point or an exponent, so that a float looks like one.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    push_number(out, |room, at| put_float(room, at, value));
}

/// The same for a number of 32 bits.
pub fn push_single(out: &mut Vec<u8>, value: f32) {
    push_number(out, |room, at| put_single(room, at, value));
}

fn push_number(out: &mut Vec<u8>, put: impl FnOnce(&mut [u8], usize) -> usize) {
    let at = out.len();
    out.extend_from_slice(&[0; NUMBER_ROOM]);
    let end = put(out, at);
    out.truncate(end);
}

pub fn push_string(out: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    loop {
        let (copied, other) = rest.split_at(plain(rest));
        out.extend_from_slice(copied);
        let Some((&byte, behind)) = other.split_first() else { break };
        push_escaped(out, byte);
        rest = behind;
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_nest_and_commas_fall_into_place() {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("a").array(|w| {
                w.int(1).float(0.5).null();
            });
            w.field("b").object(|_| {});
            w.field("c").string("x\"\n\r\t\\\u{1}\u{1f}é");
        });
        assert_eq!(writer.finish(), r#"{"a":[1,0.5,null],"b":{},"c":"x\"\n\r\t\\\u0001\u001fé"}"#);
    }

    #[test]
    fn floats_read_back_as_themselves() {
        for value in [0.1, 20.3, 1e300, -2.5e-8, 3.0, -0.0, 123456789012345680.0, f64::MIN_POSITIVE] {
            let mut out = Vec::new();
            push_float(&mut out, value);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{out}");
        }
    }
}
