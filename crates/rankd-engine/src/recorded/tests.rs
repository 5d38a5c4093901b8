//! What is served from recorded reads is what the store would have given; anything else is missing.

use super::*;
use crate::codes;
use crate::store::memory::{Data, MemoryEndpoint};
use crate::store::{
    Call, CallMethod, KeyBuffer, KeyedRead, Keys, MemberOf, Open, PositionIn, ReadBatch, Replies, StoreError, parse_id,
};
use bytes::Bytes;
use futures_util::FutureExt;

const DATA: &str = r#"{"key":"h","hash":{"a":"1","b":"2","c":"x"}}
{"key":"l","list":[5,4,3,2,1]}
{"key":"odd","list":[5,"x",3,"y",1]}
{"key":"s","set":["1","2","3"]}
{"key":"z","zset":[["m",1],["n",2],["o",3]]}
{"key":"t","string":"text"}"#;

fn keys(names: &[&str]) -> KeyBuffer {
    let mut keys = KeyBuffer::default();
    names.iter().for_each(|name| keys.push(|out| out.extend_from_slice(name.as_bytes())));
    keys
}

/// What the store gives.
fn ask(read: KeyedRead<'_>, keys: Keys<'_>) -> Result<Replies, StoreError> {
    let opened = MemoryEndpoint::new("e", Arc::new(Data::parse(DATA).unwrap()), Vec::new()).open();
    let store = opened.keyed.unwrap();
    store.read(ReadBatch { read, keys }).now_or_never().unwrap()
}

fn record(reads: &[(KeyedRead<'_>, &[&str])]) -> Replay {
    let recorder = RunRecorder::default();
    for (read, names) in reads {
        let keys = keys(names);
        recorder.keep_keys("e", read, &keys.keys(), &ask(*read, keys.keys()));
    }
    Replay::new(recorder.take())
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn what_is_served_is_what_the_store_would_have_given() {
    let names = ["h", "l", "odd", "s", "z", "t", "gone"];
    let fields: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Arc::from).to_vec();
    let members = keys(&["1", "3", "m", "o", "q"]);
    let mut rng = Rng(1);
    let (mut served, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut any_read = || {
            let (count, from) = (1 + rng.below(7), rng.below(4));
            let to = from + 1 + rng.below(fields.len() - from);
            let read = match rng.below(9) {
                0 => KeyedRead::HashAll,
                1 => KeyedRead::HashFields(&fields[from..to]),
                2 => KeyedRead::ListHead(count),
                3 => KeyedRead::List(count),
                4 => KeyedRead::Set,
                5 => KeyedRead::SortedSet { count, descending: from < 2 },
                6 => KeyedRead::Text,
                7 => {
                    let sorted = |descending| PositionIn::SortedSet { descending };
                    let of = [PositionIn::List, sorted(false), sorted(true)][from % 3];
                    let element: &[u8] = [&b"3"[..], b"x", b"n", b"q", b"1", b"y", b"o"][count - 1];
                    KeyedRead::Position { of, element }
                }
                _ => {
                    let of = [MemberOf::Set, MemberOf::SortedSet][from % 2];
                    let Keys::Written(members) = members.keys().part(from..members.len().min(to + 1)) else {
                        unreachable!("they were written")
                    };
                    KeyedRead::Members { of, members }
                }
            };
            let first = rng.below(names.len());
            (read, &names[first..first + 1 + rng.below(names.len() - first)])
        };
        let reads: Vec<_> = (0..6).map(|_| any_read()).collect();
        let replay = record(&reads);
        assert_eq!(replay.conflicts(), 0, "{reads:?}");
        for (read, names) in reads.iter().copied().chain((0..6).map(|_| any_read())) {
            let keys = keys(names);
            let (wanted, shown) = (ask(read, keys.keys()), format!("{read:?} of {names:?} after {reads:?}"));
            match (replay.read("e", &read, &keys.keys()), wanted) {
                (Ok(found), Ok(wanted)) => {
                    (0..names.len()).for_each(|at| assert!(found.is_same(at, &wanted, at), "{shown}"));
                    served += 1;
                }
                (Err(Unrecorded::Missing { missing, .. }), _) => {
                    assert!(!missing.is_empty(), "{shown}");
                    refused += 1;
                }
                (Err(Unrecorded::Failed(fault)), Err(error)) => assert_eq!(fault.code, error.code(), "{shown}"),
                (found, wanted) => unreachable!("{found:?} in place of {wanted:?}: {shown}"),
            }
        }
        for (read, names) in &reads {
            assert!(!matches!(replay.read("e", read, &keys(names).keys()), Err(Unrecorded::Missing { .. })));
        }
    }
    assert!(served > 10_000 && refused > 10_000, "{served} {refused}");
}

#[test]
fn a_smaller_limit_and_fewer_fields_are_served_and_more_is_missing() {
    let of = |names: &[&str]| -> Vec<Arc<str>> { names.iter().map(|name| Arc::from(*name)).collect() };
    let (ab, b, bc, d) = (of(&["a", "b"]), of(&["b"]), of(&["b", "c"]), of(&["d"]));
    let replay = record(&[
        (KeyedRead::HashFields(&ab), &["h"]),
        (KeyedRead::ListHead(3), &["l", "odd"]),
        (KeyedRead::SortedSet { count: 9, descending: true }, &["z"]),
    ]);
    let is_served = |read: KeyedRead<'_>, name: &str| replay.read("e", &read, &keys(&[name]).keys()).is_ok();
    assert!(is_served(KeyedRead::HashFields(&b), "h"));
    assert!(!is_served(KeyedRead::HashFields(&bc), "h") && !is_served(KeyedRead::HashAll, "h"));
    assert!(is_served(KeyedRead::ListHead(2), "l") && !is_served(KeyedRead::ListHead(4), "l"));
    // It is not known where the element stood that is no id.
    assert!(is_served(KeyedRead::ListHead(3), "odd") && !is_served(KeyedRead::ListHead(2), "odd"));
    assert!(is_served(KeyedRead::SortedSet { count: 100, descending: true }, "z"), "all of it was read");
    assert!(!is_served(KeyedRead::SortedSet { count: 1, descending: false }, "z"));
    assert!(replay.read("other", &KeyedRead::ListHead(3), &keys(&["l"]).keys()).is_err());
    assert_eq!(replay.missing(), 6);
    // Each read by itself: what is left out is counted over all keys of a read.
    let lists = record(&[
        (KeyedRead::ListHead(3), &["l"]),
        (KeyedRead::ListHead(3), &["odd"]),
        (KeyedRead::SortedSet { count: 9, descending: true }, &["z"]),
    ]);
    let place = |of: PositionIn, element: &str, name: &str| {
        let read = KeyedRead::Position { of, element: element.as_bytes() };
        let found = lists.read("e", &read, &keys(&[name]).keys()).ok()?;
        Some(found.items(0).next().flatten().map(<[u8]>::to_vec))
    };
    assert_eq!(place(PositionIn::List, "3", "l"), Some(Some(b"2".to_vec())));
    assert_eq!(place(PositionIn::List, "1", "l"), None, "it may stand behind what was read");
    assert_eq!(place(PositionIn::List, "5", "odd"), None, "an element was left out");
    assert_eq!(place(PositionIn::SortedSet { descending: true }, "n", "z"), Some(Some(b"1".to_vec())));
    assert_eq!(place(PositionIn::SortedSet { descending: true }, "q", "z"), Some(None), "all of it was read");
    assert_eq!(place(PositionIn::SortedSet { descending: false }, "n", "z"), None);
    let whole = record(&[(KeyedRead::HashAll, &["h", "gone"])]);
    assert!(whole.read("e", &KeyedRead::HashFields(&bc), &keys(&["h", "gone"]).keys()).is_ok());
    let found = whole.read("e", &KeyedRead::HashFields(&d), &keys(&["h"]).keys()).unwrap();
    assert_eq!(found.items(0).collect::<Vec<_>>(), [None]);
}

#[test]
fn a_key_that_changed_while_it_was_read_is_a_conflict() {
    let list = |elements: &[&str]| {
        let mut replies = Replies::default();
        elements.iter().for_each(|element| match parse_id(element.as_bytes()) {
            Some(id) => replies.push_id(id),
            None => replies.skip_element(),
        });
        replies.end_reply();
        let read = RecordedRead::ListHead(2);
        RecordedKeys { endpoint: "e".into(), read, keys: keys(&["l"]), given: Ok(replies) }
    };
    assert_eq!(Replay::of(vec![list(&["1"]), list(&["1"])], Vec::new()).conflicts(), 0);
    assert_eq!(Replay::of(vec![list(&["1"]), list(&["2"])], Vec::new()).conflicts(), 1);
    let fault = RecordedFault { code: codes::UNREACHABLE, message: "gone".into() };
    let failed = RecordedKeys { given: Err(fault.clone()), ..list(&[]) };
    let replay = Replay::of(vec![failed.clone(), list(&["1"])], Vec::new());
    assert_eq!(replay.conflicts(), 0);
    let (read, l) = (KeyedRead::ListHead(2), keys(&["l"]));
    assert_eq!(replay.read("e", &read, &l.keys()).unwrap().ids(0), [1], "what was read at last is served");
    let found = Replay::of(vec![failed], Vec::new()).read("e", &read, &l.keys());
    assert!(matches!(found, Err(Unrecorded::Failed(found)) if found == fault));
}

#[test]
fn a_call_is_found_by_all_that_was_sent() {
    let call = |path: &str, body: Option<&'static str>| Call {
        method: if body.is_some() { CallMethod::Post } else { CallMethod::Get },
        path: path.to_owned(),
        body: body.map(Bytes::from),
    };
    let recorder = RunRecorder::default();
    recorder.keep_call("e", call("/a", None), &Ok(Some(Bytes::from("1"))));
    recorder.keep_call("e", call("/a", Some("{}")), &Err(StoreError::Unavailable("10.0.0.1".into())));
    recorder.keep_call("e", call("/b", None), &Ok(None));
    let replay = Replay::new(recorder.take());
    assert_eq!(replay.call("e", &call("/a", None)), Some(Ok(Some(Bytes::from("1")))));
    assert_eq!(replay.call("e", &call("/b", None)), Some(Ok(None)));
    let failed = replay.call("e", &call("/a", Some("{}"))).unwrap().unwrap_err();
    assert_eq!((failed.code, &*failed.message), (codes::UNREACHABLE, "the endpoint \"e\" cannot be reached"));
    assert_eq!((replay.call("e", &call("/a", Some("[]"))), replay.call("f", &call("/a", None))), (None, None));
    assert_eq!(replay.missing(), 2);
}

#[test]
fn a_run_that_reads_too_much_has_no_record() {
    let recorder = RunRecorder::default();
    let body = Bytes::from(vec![0; RECORD_BYTES_MAX / 2]);
    for path in ["/a", "/b", "/c"] {
        let call = Call { method: CallMethod::Get, path: path.to_owned(), body: None };
        recorder.keep_call("e", call, &Ok(Some(body.clone())));
    }
    let record = recorder.take();
    assert!(record.is_cut && record.calls.is_empty());
}
