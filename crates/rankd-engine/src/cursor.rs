//! The cursor of a page: which rows a user was served, so that the next page has others.
//!
//! It is base64url of a format version, the name of the plan, a hash of the user, the hashes of the last rows that were served, and of these
//! the values that nodes go by which look at earlier pages. It is not signed: with a cursor of their own making, users can only hide rows from
//! themselves. A new version of a plan takes it: what it does not need is passed over, and what it lacks counts as not served.

use crate::base64;
use crate::codes;
use crate::error::RunError;
use crate::request::Request;
use rankd_column::kernel::draws::hash_of_text;
use rankd_column::kernel::page::{id_hashes, value_hash};
use rankd_column::{Id, Key, RowSet, Stop, Value};
use rankd_plan::Registry;
use rankd_plan::diagnostic::quoted;
use rankd_plan::plan::{Arg, Node, NodeIx, Plan};
use rankd_plan::signature::ParamKind;
use std::sync::Arc;

const VERSION: u8 = 1;
/// So many rows are remembered; the oldest are forgotten.
pub const SERVED_MAX: usize = 1_000;
/// What a cursor has at most: its bytes are bounded before they are decoded.
const TEXT_MAX: usize = 64 << 10;

/// How a plan pages.
pub(crate) struct Paging {
    /// The node whose rows are a page.
    node: NodeIx,
    /// The parameter with the cursor, and its name.
    param: u32,
    param_name: String,
    keys: Vec<PagedKey>,
}

/// A key by which nodes look at earlier pages.
struct PagedKey {
    key: Key,
    /// Of its name, so that a cursor outlives a change of the registry.
    name_hash: u64,
    /// How many of the last rows matter.
    rows: usize,
}

/// What a user was served.
#[derive(Debug, Default)]
pub struct Served {
    /// The hashes of ids, the latest last.
    served: Vec<u64>,
    sorted: Vec<u64>,
    /// By key: the hashes of the values of the last rows, 0 for null, the latest last.
    values: Vec<(Key, Vec<u32>)>,
}

/// Why a text is not a cursor for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorFault {
    Broken,
    OtherVersion,
    OtherPlan,
    OtherUser,
}

/// What follows a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCursor {
    pub text: String,
    /// How many of the rows that were served are not in it any more.
    pub forgotten: usize,
}

impl Served {
    /// Whether a row with this hash was served.
    pub fn has(&self, hash: u64) -> bool {
        self.sorted.binary_search(&hash).is_ok()
    }

    /// The values of a key in the rows that were served last, as hashes, the latest last.
    pub fn values(&self, key: Key) -> &[u32] {
        self.values.iter().find(|(of, _)| *of == key).map_or(&[], |(_, values)| values)
    }
}

impl Paging {
    /// How a plan pages, if it does. The checks have seen to it that one node at most pages, and is an output.
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> Option<Paging> {
        let cursors = (0..).zip(&plan.nodes).filter_map(|(at, node)| Some((at, node, cursor_of(node)?)));
        let (node, _, (_, param)) = cursors.clone().find(|(_, _, (pages, _))| *pages)?;
        let mut keys: Vec<PagedKey> = Vec::new();
        for (_, node, _) in cursors.filter(|(_, _, (pages, _))| !pages) {
            let rules = node.args.iter().filter_map(|arg| if let Arg::Rules(rules) = arg { Some(rules) } else { None });
            for rule in rules.flatten() {
                let rows = if rule.window == 0 { SERVED_MAX } else { rule.window.min(SERVED_MAX) };
                match keys.iter_mut().find(|paged| paged.key == rule.by) {
                    Some(paged) => paged.rows = paged.rows.max(rows),
                    None => {
                        let name_hash = hash_of_text(&registry.key(rule.by).name);
                        keys.push(PagedKey { key: rule.by, name_hash, rows });
                    }
                }
            }
        }
        Some(Paging { node, param, param_name: registry.params.get(param).name.clone(), keys })
    }

    /// What the user of a request was served, by the cursor that it has.
    pub(crate) fn read(&self, plan: &str, request: &Request) -> Result<Arc<Served>, CursorFault> {
        match request.params.get(self.param as usize) {
            Some(Value::Str(text)) => self.decode(text, plan, user_hash(&request.user_id)).map(Arc::new),
            _ => Ok(Arc::default()),
        }
    }

    pub(crate) fn error(&self, fault: CursorFault) -> RunError {
        let what = match fault {
            CursorFault::Broken => "no cursor",
            CursorFault::OtherVersion => "a cursor of another version of the engine",
            CursorFault::OtherPlan => "the cursor of another plan",
            CursorFault::OtherUser => "the cursor of another user",
        };
        RunError::new(codes::WRONG_CURSOR, format!("the parameter {} is {what}", quoted(&self.param_name)))
    }

    /// The cursor after a page, if there is something left to serve.
    pub(crate) fn next(
        &self,
        plan: &str,
        outputs: &[NodeIx],
        request: &Request,
        rows: &[RowSet],
    ) -> Option<NextCursor> {
        let page = outputs.iter().position(|output| *output == self.node).and_then(|at| rows.get(at))?;
        let before = request.cursor.as_ref()?.as_ref().ok()?;
        // Nothing stops it: a page is small.
        let mut served = before.served.clone();
        served.extend(id_hashes(page, Stop::default()).ok()?);
        let forgotten = served.len().saturating_sub(SERVED_MAX);
        let mut bytes = vec![VERSION, plan.len() as u8];
        bytes.extend(plan.as_bytes());
        bytes.extend(user_hash(&request.user_id).to_le_bytes());
        bytes.extend(((served.len() - forgotten) as u16).to_le_bytes());
        served[forgotten..].iter().for_each(|hash| bytes.extend(hash.to_le_bytes()));
        bytes.push(self.keys.len() as u8);
        for PagedKey { key, name_hash, rows } in &self.keys {
            let mut values = before.values(*key).to_vec();
            values.extend((0..page.len()).map(|at| value_hash(&page.value(*key, at)).unwrap_or(0)));
            let last = &values[values.len().saturating_sub(*rows)..];
            bytes.extend(name_hash.to_le_bytes());
            bytes.extend((last.len() as u16).to_le_bytes());
            last.iter().for_each(|hash| bytes.extend(hash.to_le_bytes()));
        }
        Some(NextCursor { text: base64::encode_url(&bytes), forgotten })
    }

    fn decode(&self, text: &str, plan: &str, user: u64) -> Result<Served, CursorFault> {
        if text.len() > TEXT_MAX {
            return Err(CursorFault::Broken);
        }
        let bytes = base64::decode_url(text).ok_or(CursorFault::Broken)?;
        let mut bytes = Bytes(&bytes);
        if bytes.take::<1>()? != [VERSION] {
            return Err(CursorFault::OtherVersion);
        }
        let [length] = bytes.take::<1>()?;
        if bytes.split(length.into())? != plan.as_bytes() {
            return Err(CursorFault::OtherPlan);
        }
        if u64::from_le_bytes(bytes.take()?) != user {
            return Err(CursorFault::OtherUser);
        }
        let count = usize::from(u16::from_le_bytes(bytes.take()?));
        if count > SERVED_MAX {
            return Err(CursorFault::Broken);
        }
        let served = bytes.split(count * 8)?.as_chunks().0.iter().map(|hash| u64::from_le_bytes(*hash));
        let served: Vec<u64> = served.collect();
        let mut sorted = served.clone();
        sorted.sort_unstable();
        let mut values = Vec::new();
        let [keys] = bytes.take::<1>()?;
        for _ in 0..keys {
            let name_hash = u64::from_le_bytes(bytes.take()?);
            let count = usize::from(u16::from_le_bytes(bytes.take()?));
            let hashes = bytes.split(count * 4)?.as_chunks().0.iter().map(|hash| u32::from_le_bytes(*hash));
            let paged = self.keys.iter().find(|paged| paged.name_hash == name_hash);
            values.extend(paged.map(|paged| (paged.key, hashes.collect())));
        }
        match bytes.0 {
            [] => Ok(Served { served, sorted, values }),
            [..] => Err(CursorFault::Broken),
        }
    }
}

/// The cursor parameter of a node, and whether the node pages by it.
fn cursor_of(node: &Node) -> Option<(bool, u32)> {
    let params = node.signature.contract.params.iter().zip(&node.args);
    params.filter(|_| node.needed).find_map(|(param, arg)| match (param.kind, arg) {
        (ParamKind::Cursor { pages }, Arg::Param(at)) => Some((pages, *at)),
        _ => None,
    })
}

fn user_hash(user: &Id) -> u64 {
    match user {
        Id::Int(id) => hash_of_text(&format!("user:{id}")),
        Id::Text(text) => hash_of_text(&format!("user:{text}")),
    }
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn split(&mut self, count: usize) -> Result<&'a [u8], CursorFault> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(CursorFault::Broken)?;
        self.0 = rest;
        Ok(head)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], CursorFault> {
        self.split(N)?.try_into().map_err(|_| CursorFault::Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::{Batch, Cells, Column};

    const TOPIC: Key = Key(1);

    fn paging() -> Paging {
        let keys = vec![PagedKey { key: TOPIC, name_hash: hash_of_text("topic"), rows: 3 }];
        Paging { node: 0, param: 0, param_name: "cursor".into(), keys }
    }

    fn request(user: i64, cursor: Option<&str>) -> Request {
        let params = vec![cursor.map_or(Value::Null, Value::str)];
        let request = Request { user_id: user.into(), params, ..Request::default() };
        Request { cursor: Some(paging().read("feed", &request)), ..request }
    }

    fn rows(ids: std::ops::Range<i64>) -> RowSet {
        let topics = Column::Int(Cells::full(ids.clone().map(|id| id % 3).collect()));
        RowSet::new(Batch::new(ids.collect())).with(TOPIC, Arc::new(topics))
    }

    fn next(request: &Request, ids: std::ops::Range<i64>) -> NextCursor {
        paging().next("feed", &[0], request, &[rows(ids)]).unwrap()
    }

    #[test]
    fn a_cursor_remembers_the_last_rows_and_their_values() {
        let first = next(&request(7, None), 0..4);
        let request = request(7, Some(&first.text));
        let cursor = request.cursor.clone().unwrap().unwrap();
        let hashes = id_hashes(&rows(0..5), Stop::default()).unwrap();
        assert_eq!(hashes.iter().map(|hash| cursor.has(*hash)).collect::<Vec<_>>(), [true, true, true, true, false]);
        let hash = |topic| value_hash(&Value::Int(topic)).unwrap();
        assert_eq!(cursor.values(TOPIC), [hash(1), hash(2), hash(0)]);
        assert_eq!(next(&request, 4..1_003), NextCursor { forgotten: 3, ..next(&request, 4..1_003) });
        assert!(next(&request, 4..1_004).text.len() < 11_500, "about 11 KB at most");
    }

    #[test]
    fn a_cursor_of_another_user_or_plan_and_a_broken_one_are_refused() {
        let text = next(&request(7, None), 0..4).text;
        assert_eq!(request(8, Some(&text)).cursor.unwrap().unwrap_err(), CursorFault::OtherUser);
        let other = paging().next("other", &[0], &request(7, None), &[rows(0..4)]).unwrap().text;
        assert_eq!(request(7, Some(&other)).cursor.unwrap().unwrap_err(), CursorFault::OtherPlan);
        let cut = (0..text.len()).map(|length| text[..length].to_owned());
        let long = [text.clone() + "AAAA", "A".repeat(TEXT_MAX + 1), "*".to_owned(), "\u{1F600}".to_owned()];
        for broken in cut.chain(long) {
            assert!(request(7, Some(&broken)).cursor.unwrap().is_err(), "{broken}");
        }
        // Any byte may be another one: it is refused or is a cursor, and never more than that.
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            drop(request(7, std::str::from_utf8(&changed).ok()));
        }
    }
}
