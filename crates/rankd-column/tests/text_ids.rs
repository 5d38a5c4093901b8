//! Ids that are texts: equal text, equal code, whichever threads ask; and rows whose ids are texts act as if the id were a string
//! column.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

use proptest::prelude::*;
use rankd_column::expr::{Compare, Op, Pattern, Program, RunValues, Schema, Scratch, Stop, Tree, Want, select};
use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Column, DictionaryBuilder, IdDictionary, IdTexts, Key, RowSet, Type, Value};
use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

/// Few enough that threads meet at the same texts, many enough for several segments.
fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0..600u32).prop_map(|number| format!("tt{number:07}")), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_text_has_an_equal_code_on_every_thread(
        known in prop::collection::hash_set("tt0000[0-5][0-9]{2}", 0..50),
        asked in prop::collection::vec(texts(), 2..6),
        many in any::<bool>(),
    ) {
        let mut base = IdDictionary::default();
        let known: Vec<String> = known.into_iter().collect();
        known.iter().for_each(|text| { base.add(text).unwrap(); });
        let ids = IdTexts::new(Arc::new(base));
        // What others have got so far, to be read while they go on.
        let published: Mutex<Vec<(String, i64)>> = Mutex::default();
        let begin = Barrier::new(asked.len());
        let given: Vec<Vec<i64>> = thread::scope(|scope| {
            let thread = |texts: &Vec<String>| {
                begin.wait();
                let mut coder = many.then(|| ids.coder());
                let mut codes = Vec::new();
                for (at, text) in texts.iter().enumerate() {
                    let code = match &mut coder {
                        Some(coder) => coder.code(text).unwrap(),
                        None => ids.code(text).unwrap(),
                    };
                    assert_eq!(ids.text(code), text);
                    codes.push(code);
                    // Others wait while a coder is held.
                    if at % 16 == 0 {
                        coder = coder.map(|_| ids.coder());
                        let mut published = published.lock().unwrap();
                        published.push((text.clone(), code));
                        let seen = published.clone();
                        drop(published);
                        seen.iter().for_each(|(text, code)| assert_eq!(ids.text(*code), text));
                    }
                }
                codes
            };
            let threads: Vec<_> = asked.iter().map(|texts| scope.spawn(move || thread(texts))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut codes: HashMap<&str, i64> = known.iter().zip(0..).map(|(text, code)| (&**text, code)).collect();
        for (text, code) in asked.iter().flatten().zip(given.iter().flatten()) {
            prop_assert_eq!(*codes.entry(text).or_insert(*code), *code, "{}", text);
            prop_assert_eq!(ids.code(text), Ok(*code));
        }
        let mut all: Vec<i64> = codes.values().copied().collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..codes.len() as i64).collect::<Vec<_>>(), "a code for each text, and no other");
    }

    #[test]
    fn rows_act_as_if_the_id_were_a_string_column(
        left in prop::collection::vec("[abä]{1,3}", 0..40),
        right in prop::collection::vec("[abä]{1,3}", 0..40),
        pick in prop::collection::vec(0..40usize, 0..40),
        bound in "[abä]{1,2}",
        count in 0..50usize,
    ) {
        let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
        let (left, right) = (rows(&left, &texts, &pick), rows(&right, &texts, &pick));
        let concat = |left: &RowSet, right: &RowSet| left.concat(right, Stop::default()).unwrap();
        let none = RowSet::empty();
        for rows in [concat(&left, &right), concat(&left, &none), concat(&none, &right), left, right] {
            let same = |a: RowSet, b: RowSet| {
                let values = |rows: &RowSet, key| (0..rows.len()).map(|at| rows.value(key, at)).collect::<Vec<_>>();
                assert_eq!(values(&a, Key::ID), values(&b, TEXT));
                assert_eq!(values(&b, Key::ID), values(&a, TEXT));
            };
            same(rows.clone(), rows.clone());
            for order in [Order::Asc, Order::Desc] {
                same(rows.sort(Key::ID, order, Stop::default()).unwrap(), rows.sort(TEXT, order, Stop::default()).unwrap());
                same(rows.top(Key::ID, order, count, Stop::default()).unwrap(), rows.top(TEXT, order, count, Stop::default()).unwrap());
            }
            for test in tests(&bound) {
                same(kept(&rows, Key::ID, test.clone()), kept(&rows, TEXT, test));
            }
        }
    }
}

const TEXT: Key = Key(1);

struct Strings;

impl Schema for Strings {
    fn key_type(&self, _: Key) -> Type {
        Type::Str
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Str
    }
}

/// Rows with these ids, and the same as a column, seen through some of them.
fn rows(ids: &[String], texts: &Arc<IdTexts>, pick: &[usize]) -> RowSet {
    let codes = ids.iter().map(|text| texts.code(text).unwrap()).collect();
    let mut builder = DictionaryBuilder::default();
    let cells = ids.iter().map(|text| Some(builder.code(text))).collect();
    let column = Column::Str(cells, Arc::new(builder.finish()));
    let all = RowSet::new(Batch::with_ids(codes, Some(texts.clone())).with(TEXT, Arc::new(column)));
    let picked: Vec<u32> = pick.iter().filter(|at| **at < ids.len()).map(|at| *at as u32).collect();
    if picked.is_empty() { all } else { all.looking_at(picked) }
}

/// Predicates on a key, as what follows the key in a tree.
fn tests(bound: &str) -> Vec<Test> {
    let compares = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];
    let mut tests: Vec<Test> = compares.map(|compare| Test::Compare(compare, bound.into())).to_vec();
    tests.extend([Test::In(bound.into()), Test::Matches(format!("^{bound}"))]);
    tests
}

#[derive(Clone)]
enum Test {
    Compare(Compare, String),
    In(String),
    Matches(String),
}

fn kept(rows: &RowSet, key: Key, test: Test) -> RowSet {
    let mut tree = Tree::new();
    match test {
        Test::Compare(compare, bound) => {
            let x = tree.push(Op::Key(key), None);
            let bound = tree.push(Op::Const(Value::str(&bound)), None);
            tree.push(Op::Compare(compare, x, bound), None);
        }
        Test::In(item) => {
            let x = tree.push(Op::Key(key), None);
            tree.push(Op::In(x, vec![Value::str(&item), Value::str("no id")]), None);
        }
        Test::Matches(pattern) => {
            tree.push(Op::Match { key, pattern: Pattern::Literal(pattern.as_str().into()), ignore_case: false }, None);
        }
    }
    let program = Program::compile(&tree, &Strings, Want::Predicate).unwrap();
    rows.looking_at(select(&program, rows, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap())
}
