//! Just enough of Thrift's compact protocol to read Parquet's metadata. Nothing is read outside of the bytes, nothing recurses, and no
//! length makes room before what it announces is there; what cannot be read is `None`.

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    True,
    False,
    Byte,
    /// An int of 16, 32 or 64 bits.
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Wire {
    fn new(code: u8) -> Option<Wire> {
        Some(match code {
            1 => Wire::True,
            2 => Wire::False,
            3 => Wire::Byte,
            4..=6 => Wire::Int,
            7 => Wire::Double,
            8 => Wire::Binary,
            9 | 10 => Wire::List,
            11 => Wire::Map,
            12 => Wire::Struct,
            _ => return None,
        })
    }
}

/// What is left of an open container.
enum Open {
    Struct,
    Items {
        wire: Wire,
        left: usize,
    },
    /// Keys and values in turn.
    Pairs {
        key: Wire,
        value: Wire,
        left: usize,
    },
}

/// More open containers than this are no metadata.
const DEPTH_MAX: usize = 64;

pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Compact<'a> {
        Compact { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Reads a struct: `field` reads the value of a field, or answers false for it to be skipped.
    pub(super) fn fields(&mut self, mut field: impl FnMut(&mut Compact<'a>, i16, Wire) -> Option<bool>) -> Option<()> {
        let mut last = 0;
        while let Some((id, wire)) = self.field(&mut last)? {
            if !field(self, id, wire)? {
                self.skip(wire)?;
            }
        }
        Some(())
    }

    /// The next field of a struct; nothing at its end.
    fn field(&mut self, last: &mut i16) -> Option<Option<(i16, Wire)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *last = match byte >> 4 {
            0 => i16::try_from(self.int()?).ok()?,
            delta => last.checked_add(delta.into())?,
        };
        Some(Some((*last, Wire::new(byte & 15)?)))
    }

    /// The items of a list, each read by `item`. They take `least` bytes each, or are not what they should be: nothing that is kept
    /// of them is then much larger than they are.
    pub(super) fn list<T>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Compact<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (_, count) = self.list_head()?;
        if count > (self.bytes.len() - self.at) / least {
            return None;
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }

    fn list_head(&mut self) -> Option<(Wire, usize)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            few => few.into(),
        };
        // An item takes a byte at least, but for structs in a list that have no fields, which still end.
        (count <= self.bytes.len() - self.at).then_some((Wire::new(byte & 15)?, count))
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn int32(&mut self) -> Option<i32> {
        i32::try_from(self.int()?).ok()
    }

    /// An int that counts something.
    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.int()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.binary()?).ok()
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        let bytes = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(bytes)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Passes over a value.
    fn skip(&mut self, wire: Wire) -> Option<()> {
        let mut open = Vec::new();
        self.enter(wire, &mut open, true)?;
        while let Some(last) = open.last_mut() {
            let next = match last {
                Open::Struct => match self.field(&mut 0)? {
                    // In a struct, the field's head says which bool it is.
                    Some((_, Wire::True | Wire::False)) => continue,
                    Some((_, wire)) => wire,
                    None => {
                        open.pop();
                        continue;
                    }
                },
                Open::Items { left: 0, .. } | Open::Pairs { left: 0, .. } => {
                    open.pop();
                    continue;
                }
                Open::Items { wire, left } => {
                    *left -= 1;
                    *wire
                }
                Open::Pairs { key, value, left } => {
                    *left -= 1;
                    if *left % 2 == 1 { *key } else { *value }
                }
            };
            self.enter(next, &mut open, false)?;
        }
        Some(())
    }

    /// Passes over a value, or opens it where it is a container.
    fn enter(&mut self, wire: Wire, open: &mut Vec<Open>, is_field: bool) -> Option<()> {
        match wire {
            Wire::True | Wire::False if is_field => {}
            Wire::True | Wire::False | Wire::Byte => drop(self.byte()?),
            Wire::Int => drop(self.varint()?),
            Wire::Double => self.at = self.at.checked_add(8).filter(|at| *at <= self.bytes.len())?,
            Wire::Binary => drop(self.binary()?),
            Wire::List => {
                let (wire, left) = self.list_head()?;
                open.push(Open::Items { wire, left });
            }
            Wire::Map => {
                let count = usize::try_from(self.varint()?).ok().filter(|count| *count <= self.bytes.len())?;
                if count > 0 {
                    let wires = self.byte()?;
                    let (key, value) = (Wire::new(wires >> 4)?, Wire::new(wires & 15)?);
                    open.push(Open::Pairs { key, value, left: 2 * count });
                }
            }
            Wire::Struct => open.push(Open::Struct),
        }
        (open.len() <= DEPTH_MAX).then_some(())
    }
}
