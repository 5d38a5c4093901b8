//! Pages while the data change under them: no row is served twice, and none is lost that was there all the time.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

mod rig;

use rankd_column::{Batch, Cells, Column, Key, RowSet, Value};
use rankd_engine::request::Candidates;
use rankd_engine::{Linked, Outcome, Request};
use rig::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const SIZE: usize = 20;

/// A number that is well mixed.
fn mix(seed: u64, at: u64) -> u64 {
    let mixed = (seed ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

struct Pages<'r> {
    rig: &'r Rig,
    plan: Arc<Linked>,
    cursor: u32,
}

impl Pages<'_> {
    /// The answer for these rows, given as ids with topics.
    fn ask(&self, user: i64, rows: &[(i64, i64)], cursor: Option<&str>) -> Outcome {
        let mut request = Request { user_id: user.into(), ..Request::new(&self.rig.registry) };
        let likes = Key(self.rig.registry.keys.named("likes").unwrap());
        let column = Column::Int(Cells::full(rows.iter().map(|(_, topic)| *topic).collect()));
        let rows = RowSet::new(Batch::new(rows.iter().map(|(id, _)| *id).collect())).with(likes, Arc::new(column));
        request.candidates = Some(Candidates::new(rows));
        request.params[self.cursor as usize] = cursor.map_or(Value::Null, Value::str);
        self.rig.engine.run(&self.plan, request)
    }
}

fn with_pages(params: &str, check: impl Fn(&Pages<'_>)) {
    Rig::on(EVERY, 2, |rig| {
        let plan = rig.plan(&[
            r#"{"node_id":"n0","op":"candidates","params":{}}"#.to_owned(),
            format!(r#"{{"node_id":"n1","op":"diversify","inputs":["n0"],"params":{{{params}}}}}"#),
            format!(r#"{{"node_id":"n2","op":"page","inputs":["n1"],"params":{{"size":{SIZE},"cursor":{{"param":"cursor"}}}}}}"#),
        ]);
        check(&Pages { rig, plan, cursor: rig.registry.params.named("cursor").unwrap() });
    });
}

#[test]
fn fifty_pages_of_changing_data_repeat_nothing_and_lose_nothing_that_stayed() {
    with_pages(r#""rules":[{"by":"likes","gap":1}]"#, |pages| {
        for seed in 0..4 {
            // Rows that stay have ids below 900; of the others, half are there at a time, and the order changes with every page.
            let (mut cursor, mut served, mut count) = (None, BTreeSet::<i64>::new(), 0);
            for page in 0..50 {
                let is_there = |id: &i64| *id < 900 || mix(seed + page, *id as u64).is_multiple_of(2);
                let mut ids: Vec<i64> = (0..1_000).filter(is_there).collect();
                ids.sort_unstable_by_key(|id| mix(seed * 1_000 + page, *id as u64));
                let rows: Vec<(i64, i64)> = ids.iter().map(|id| (*id, id % 7)).collect();
                let outcome = pages.ask(7, &rows, cursor.as_deref());
                let given: Vec<i64> = outcome.result.unwrap()[0].ids().collect();
                count += given.len();
                served.extend(&given);
                assert_eq!(served.len(), count, "page {page} repeats a row");
                cursor = outcome.cursor.map(|cursor| cursor.text);
                if cursor.is_none() {
                    break;
                }
                assert_eq!(given.len(), SIZE);
            }
            assert_eq!(cursor, None, "fewer than a thousand rows have a last page");
            assert!((0..900).all(|id| served.contains(&id)), "a row that stayed was never served");
        }
    });
}

#[test]
fn rows_of_earlier_pages_count_for_the_rules() {
    // Every page has other rows, of the same topics.
    let rows = |page: i64| -> Vec<(i64, i64)> { (0..400).map(|id| (1_000 * page + id, id / 40)).collect() };
    let rules = r#""rules":[{"by":"likes","max":7},{"by":"likes","max":2,"window":6}]"#;
    let topics = |params: &str, check: &dyn Fn(&[i64])| {
        with_pages(params, |pages| {
            let (mut cursor, mut list) = (None, Vec::new());
            for page in 0..3 {
                let outcome = pages.ask(7, &rows(page), cursor.as_deref());
                list.extend(outcome.result.unwrap()[0].ids().map(|id| id % 1_000 / 40));
                cursor = outcome.cursor.map(|cursor| cursor.text);
            }
            assert_eq!(list.len(), 3 * SIZE);
            check(&list);
        });
    };
    let most = |list: &[i64]| list.iter().map(|topic| list.iter().filter(|other| *other == topic).count()).max();
    topics(&format!(r#"{rules},"counts":{{"param":"cursor"}}"#), &|list| {
        assert!(most(list) <= Some(7), "{list:?}");
        assert!(list.windows(6).all(|some| most(some) <= Some(2)), "{list:?}");
    });
    // Without them, each page begins anew.
    topics(rules, &|list| assert!(most(list) > Some(7), "{list:?}"));
}

#[test]
fn another_users_cursor_is_refused() {
    let rows: Vec<(i64, i64)> = (0..50).map(|id| (id, 0)).collect();
    with_pages(r#""rules":[{"by":"likes","gap":1}]"#, |pages| {
        let cursor = pages.ask(7, &rows, None).cursor.unwrap().text;
        let error = pages.ask(8, &rows, Some(&cursor)).result.unwrap_err();
        assert_eq!(
            (error.code.id, &*error.message),
            ("E114", "the parameter \"cursor\" is the cursor of another user")
        );
        assert_eq!(pages.ask(8, &rows, Some("x")).result.unwrap_err().code.id, "E114");
    });
}
