//! Writes JSON straight into a string.

/// Builds one JSON value; commas are its own business.
#[derive(Default)]
pub struct Writer {
    out: String,
    comma: bool,
}

impl Writer {
    pub fn new() -> Writer {
        Writer::default()
    }

    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Writer {
        Writer { out: String::with_capacity(bytes), comma: false }
    }

    pub fn object(&mut self, fields: impl FnOnce(&mut Writer)) -> &mut Writer {
        self.nested('{', fields, '}')
    }

    pub fn array(&mut self, items: impl FnOnce(&mut Writer)) -> &mut Writer {
        self.nested('[', items, ']')
    }

    /// A field's name; its value must follow.
    pub fn field(&mut self, name: &str) -> &mut Writer {
        self.separate();
        push_string(&mut self.out, name);
        self.out.push(':');
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
        self.out.push_str(json);
        self
    }

    /// A value that is pushed as JSON, right where it belongs.
    pub fn pushed(&mut self, push: impl FnOnce(&mut String)) -> &mut Writer {
        self.separate();
        push(&mut self.out);
        self
    }

    pub fn finish(self) -> String {
        self.out
    }

    fn nested(&mut self, open: char, inside: impl FnOnce(&mut Writer), close: char) -> &mut Writer {
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
            self.out.push(',');
        }
    }
}

pub fn push_int(out: &mut String, value: i64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// The shortest digits that read back as the same number, with a point or an exponent, so that a float looks like one.
pub fn push_float(out: &mut String, value: f64) {
    debug_assert!(value.is_finite());
    out.push_str(zmij::Buffer::new().format_finite(value));
}

pub fn push_string(out: &mut String, value: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in value.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&value[written..at]);
        if escape.is_empty() {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)].into());
            out.push(HEX[usize::from(byte & 15)].into());
        } else {
            out.push_str(escape);
        }
        written = at + 1;
    }
    out.push_str(&value[written..]);
    out.push('"');
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
            w.field("c").string("x\"\n\u{1}é");
        });
        assert_eq!(writer.finish(), r#"{"a":[1,0.5,null],"b":{},"c":"x\"\n\u0001é"}"#);
    }

    #[test]
    fn floats_read_back_as_themselves() {
        for value in [0.1, 20.3, 1e300, -2.5e-8, 3.0, -0.0, 123456789012345680.0, f64::MIN_POSITIVE] {
            let mut out = String::new();
            push_float(&mut out, value);
            assert_eq!(out.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{out}");
        }
    }
}
