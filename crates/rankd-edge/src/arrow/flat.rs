//! Just enough of the FlatBuffers format to write Arrow's metadata: a tree of tables, strings and lists as bytes.
//!
//! Written front to back: a table comes before what it points at, so every offset is forward, as the format wants it.
//! The buffer must start at a multiple of eight for what is in it to be aligned.

/// What a table's field holds.
pub(crate) enum Slot<'a> {
    /// The field has its default, or is not used.
    Absent,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    Text(&'a str),
    Table(Table<'a>),
    Tables(Vec<Table<'a>>),
    /// A list of structs of two longs each.
    Pairs(Vec<[i64; 2]>),
}

/// The fields of a table, in the order of its schema.
pub(crate) struct Table<'a>(pub(crate) Vec<Slot<'a>>);

impl Slot<'_> {
    /// Bytes that it takes inside its table; what does not fit there is pointed at.
    fn size(&self) -> usize {
        match self {
            Slot::Absent => 0,
            Slot::Byte(_) => 1,
            Slot::Short(_) => 2,
            Slot::Long(_) => 8,
            Slot::Int(_) | Slot::Text(_) | Slot::Table(_) | Slot::Tables(_) | Slot::Pairs(_) => 4,
        }
    }
}

/// The buffer with this table as its root.
pub(crate) fn buffer(root: &Table<'_>) -> Vec<u8> {
    let mut out = Out { bytes: vec![0; 4] };
    let at = out.table(root);
    out.point(0, at);
    out.bytes
}

struct Out {
    bytes: Vec<u8>,
}

impl Out {
    /// Writes a table and everything under it. Gives its position.
    fn table(&mut self, table: &Table<'_>) -> usize {
        let mut size: usize = 4;
        let mut places = Vec::with_capacity(table.0.len());
        for slot in &table.0 {
            let place = size.next_multiple_of(slot.size().max(1));
            places.push(place);
            size = place + slot.size();
        }
        // The list of places stands before the table, which starts at a multiple of eight.
        let list = 4 + 2 * table.0.len();
        self.pad(8, list);
        self.bytes.extend((list as u16).to_le_bytes());
        self.bytes.extend((size as u16).to_le_bytes());
        for (slot, place) in table.0.iter().zip(&places) {
            let place = if slot.size() == 0 { 0 } else { *place as u16 };
            self.bytes.extend(place.to_le_bytes());
        }
        let start = self.bytes.len();
        self.bytes.extend((list as i32).to_le_bytes());
        self.bytes.resize(start + size, 0);
        for (slot, place) in table.0.iter().zip(places) {
            self.slot(slot, start + place);
        }
        start
    }

    /// Fills a field of a table that has been laid out.
    fn slot(&mut self, slot: &Slot<'_>, at: usize) {
        let target = match slot {
            Slot::Absent => return,
            Slot::Byte(value) => return self.put(at, &value.to_le_bytes()),
            Slot::Short(value) => return self.put(at, &value.to_le_bytes()),
            Slot::Int(value) => return self.put(at, &value.to_le_bytes()),
            Slot::Long(value) => return self.put(at, &value.to_le_bytes()),
            Slot::Text(text) => self.text(text),
            Slot::Table(table) => self.table(table),
            Slot::Tables(tables) => self.tables(tables),
            Slot::Pairs(pairs) => self.pairs(pairs),
        };
        self.point(at, target);
    }

    fn text(&mut self, text: &str) -> usize {
        let start = self.count(text.len(), 4);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        start
    }

    fn tables(&mut self, tables: &[Table<'_>]) -> usize {
        let start = self.count(tables.len(), 4);
        self.bytes.resize(start + 4 + 4 * tables.len(), 0);
        for (number, table) in tables.iter().enumerate() {
            let target = self.table(table);
            self.point(start + 4 + 4 * number, target);
        }
        start
    }

    fn pairs(&mut self, pairs: &[[i64; 2]]) -> usize {
        let start = self.count(pairs.len(), 8);
        for value in pairs.iter().flatten() {
            self.bytes.extend(value.to_le_bytes());
        }
        start
    }

    /// Begins a list whose first item is to be aligned. Gives the list's position.
    fn count(&mut self, items: usize, align: usize) -> usize {
        self.pad(align, 4);
        let start = self.bytes.len();
        self.bytes.extend((items as u32).to_le_bytes());
        start
    }

    /// Zeros until what comes `ahead` bytes later is aligned.
    fn pad(&mut self, align: usize, ahead: usize) {
        let end = (self.bytes.len() + ahead).next_multiple_of(align) - ahead;
        self.bytes.resize(end, 0);
    }

    /// Offsets count from where they stand.
    fn point(&mut self, at: usize, target: usize) {
        self.put(at, &((target - at) as u32).to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
