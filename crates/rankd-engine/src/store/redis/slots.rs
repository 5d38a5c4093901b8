//! Which of a cluster's 16,384 slots a key is in, and which node has each slot. Sends nothing.

use crate::store::redis::flat::{Cursor, ReplyPart};

pub(super) const SLOTS: usize = 16_384;
/// No node has the slot.
const UNSERVED: u16 = u16::MAX;

/// The slot of `{prefix}:{id}` for one prefix and many ids.
pub(super) struct Slotter {
    /// What the hash is after the prefix and the colon; `None` where a hash tag in the prefix decides alone.
    after_prefix: Option<u16>,
    tagged: u16,
}

impl Slotter {
    pub(super) fn new(prefix: &str) -> Slotter {
        // An id has no braces, so a tag is in the prefix or nowhere.
        match tag(prefix.as_bytes()) {
            Some(tag) => Slotter { after_prefix: None, tagged: crc16(0, tag) },
            None => Slotter { after_prefix: Some(crc16(crc16(0, prefix.as_bytes()), b":")), tagged: 0 },
        }
    }

    pub(super) fn slot(&self, id: i64) -> usize {
        let hash = match self.after_prefix {
            Some(begun) => crc16(begun, itoa::Buffer::new().format(id).as_bytes()),
            None => self.tagged,
        };
        usize::from(hash) % SLOTS
    }
}

/// The slot of any key.
pub(super) fn slot_of(key: &[u8]) -> usize {
    usize::from(crc16(0, tag(key).unwrap_or(key))) % SLOTS
}

/// What stands between the first `{` and the next `}`, if it is something: then it alone decides.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let (_, rest) = key.split_at_checked(key.iter().position(|byte| *byte == b'{')? + 1)?;
    rest.get(..rest.iter().position(|byte| *byte == b'}')?).filter(|tag| !tag.is_empty())
}

/// CRC16 as XMODEM has it: polynomial 1021.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut value, mut bit) = ((at as u16) << 8, 0);
        while bit < 8 {
            value = if value & 0x8000 != 0 { (value << 1) ^ 0x1021 } else { value << 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

fn crc16(begun: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(begun, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// A node as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeName {
    pub(super) host: String,
    pub(super) port: u16,
}

impl NodeName {
    /// `host:port`, as in a redirection. Without a host it is where the redirection came from.
    pub(super) fn parse(text: &str, sender: &str) -> Option<NodeName> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { sender } else { host.trim_matches(['[', ']']) };
        Some(NodeName { host: host.to_owned(), port: port.parse().ok()? })
    }
}

/// Which node has which slot.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) masters: Vec<NodeName>,
    owners: Vec<u16>,
}

impl Layout {
    /// Reads the answer to CLUSTER SLOTS; `sender` is the host that sent it.
    pub(super) fn read(bytes: &[u8], parts: &[ReplyPart], sender: &str) -> Option<Layout> {
        let mut layout = Layout { masters: Vec::new(), owners: vec![UNSERVED; SLOTS] };
        let mut cursor = Cursor::new(bytes, parts);
        for _ in 0..cursor.list()? {
            let fields = cursor.list()?;
            let (first, last) = (usize::try_from(cursor.int()?).ok()?, usize::try_from(cursor.int()?).ok()?);
            let about = cursor.list()?;
            // A node that does not know its own address leaves it out: it is the one that was asked.
            let host = cursor.text()?.filter(|host| !host.is_empty() && *host != "?").unwrap_or(sender).to_owned();
            let port = u16::try_from(cursor.int()?).ok()?;
            cursor.pass(about.checked_sub(2)?)?;
            cursor.pass(fields.checked_sub(3)?)?;
            let owner = layout.number(NodeName { host, port })?;
            layout.owners.get_mut(first..=last)?.fill(owner);
        }
        (!layout.masters.is_empty()).then_some(layout)
    }

    /// The place of a node in the list, which may grow.
    fn number(&mut self, node: NodeName) -> Option<u16> {
        let at = self.masters.iter().position(|known| *known == node).unwrap_or_else(|| {
            self.masters.push(node);
            self.masters.len() - 1
        });
        u16::try_from(at).ok().filter(|at| *at != UNSERVED)
    }

    /// The place in `masters` of the node that has a slot.
    pub(super) fn owner(&self, slot: usize) -> Option<usize> {
        self.owners.get(slot).copied().filter(|owner| *owner != UNSERVED).map(usize::from)
    }

    /// The same layout, but for one slot.
    pub(super) fn moved(&self, slot: usize, to: &NodeName) -> Option<Layout> {
        let mut layout = self.clone();
        let owner = layout.number(to.clone())?;
        *layout.owners.get_mut(slot)? = owner;
        Some(layout)
    }

    /// How many slots no node has.
    pub(super) fn uncovered(&self) -> usize {
        self.owners.iter().filter(|owner| **owner == UNSERVED).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::flat;

    #[test]
    fn slots_are_what_the_cluster_says_they_are() {
        // From the cluster's specification, and from CLUSTER KEYSLOT of a server.
        for (key, slot) in [("123456789", 0x31C3), ("foo", 12182), ("{user1000}.following", 3443), ("foo{}{bar}", 8363)]
        {
            assert_eq!(slot_of(key.as_bytes()), slot % SLOTS, "{key}");
        }
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    }

    #[test]
    fn many_ids_of_a_prefix_give_the_same_slots() {
        for prefix in ["user", "{shop}media", "a{}b", "a{b", ""] {
            let slotter = Slotter::new(prefix);
            for id in [0, 7, -1, i64::MIN, i64::MAX] {
                assert_eq!(slotter.slot(id), slot_of(format!("{prefix}:{id}").as_bytes()), "{prefix}:{id}");
            }
        }
    }

    #[test]
    fn a_layout_is_read_and_a_slot_can_move() {
        let bytes = b"*2\r\n*4\r\n:0\r\n:100\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n\
                      *3\r\n$1\r\nx\r\n:1\r\n$1\r\ny\r\n*3\r\n:101\r\n:16383\r\n*3\r\n$-1\r\n:7001\r\n$2\r\nid\r\n";
        let (parts, _) = flat::read(bytes).unwrap().unwrap();
        let layout = Layout::read(bytes, &parts, "me").unwrap();
        assert_eq!((layout.owner(100), layout.owner(101), layout.uncovered()), (Some(0), Some(1), 0));
        assert_eq!(layout.masters[1], NodeName { host: "me".into(), port: 7001 });
        let moved = layout.moved(5, &NodeName::parse(":7002", "me").unwrap()).unwrap();
        assert_eq!((moved.owner(5), moved.owner(6), moved.masters.len()), (Some(2), Some(0), 3));
        assert!(layout.moved(SLOTS, &layout.masters[0]).is_none());
        let bad: [&[u8]; 3] = [b"*0\r\n", b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n+h\r\n:1\r\n", b"*1\r\n:1\r\n"];
        for bytes in bad {
            let (parts, _) = flat::read(bytes).unwrap().unwrap();
            assert!(Layout::read(bytes, &parts, "me").is_none());
        }
    }
}
