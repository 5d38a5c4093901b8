//! Passes, compared with their parts one after the other: the same rows, cells and row counts, or the same error of the same
//! part. Parts that are siblings see the rows before the first of them.

use crate::generate::{Dice, Level, look, many, params, recipe};
use crate::oracle::Term;
use crate::table::{FIRST_ARRAY, KEY_TYPES, Registry, values};
use proptest::prelude::*;
use proptest::sample::select;
use rankd_column::expr::pass::{PARTS_MAX, Part, Pass, PassError};
use rankd_column::expr::{Binary, Compare, Fault, Pattern, Program, Scratch, Stop, Want, compute};
use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Key, RowSet, Type, Value};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

thread_local! {
    /// Kept over all cases of a test, so that what one pass leaves behind is there for the next.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_pass_over_a_few_rows_is_its_parts_one_after_the_other(
        parts in parts(2), recipe in recipe(0..60usize), look in look(), params in params(),
    ) {
        check(&parts, &look.at(&RowSet::new(recipe.table().batch())), &params);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_pass_over_several_chunks_is_its_parts_one_after_the_other(
        parts in parts(2), recipe in recipe(many()), look in look(), params in params(),
    ) {
        check(&parts, &look.at(&RowSet::new(recipe.table().batch())), &params);
    }
}

/// Computed columns and filters in any order, and then perhaps a sort and a take.
fn parts(depth: usize) -> impl Strategy<Value = Vec<Part>> {
    let level = Level::deep(depth);
    let number = prop_oneof![level.number, level.int];
    let evaluated = prop_oneof![
        4 => number.prop_map(|term| computed(&term)),
        1 => prop_oneof![level.str, level.bool].prop_map(|term| computed(&term)),
        4 => level.predicate.prop_map(|term| Part::Filter { program: program(&term, Want::Predicate) }),
    ];
    let key = (0..FIRST_ARRAY).prop_map(Key);
    let sort = (key, select(vec![Order::Asc, Order::Desc])).prop_map(|(key, order)| Part::Sort { key, order });
    let take = select(vec![1, 2, 5, 20, 64, 300, usize::MAX]).prop_map(|count| Part::Take { count });
    let together = any::<u8>();
    (prop::collection::vec(evaluated, 0..5), prop::option::of(sort), prop::option::weighted(0.7, take), together)
        .prop_map(|(mut parts, sort, take, together)| {
            for at in (1..parts.len()).filter(|at| together >> at & 1 == 1) {
                let before = if let Part::Compute { siblings, .. } = &parts[at - 1] { Some(*siblings) } else { None };
                if let (Part::Compute { siblings, .. }, Some(before)) = (&mut parts[at], before) {
                    *siblings = before + 1;
                }
            }
            parts.extend(sort);
            parts.extend(take);
            parts
        })
}

/// Written to a key of the term's type, so that later parts read it: one that the table has, or one that it has not.
fn computed(term: &Term) -> Part {
    let type_of = term.type_of().unwrap_or(Type::Float);
    let keys: Vec<u32> = (1..).zip(&KEY_TYPES[1..]).filter(|(_, key)| **key == type_of).map(|(at, _)| at).collect();
    let key = keys[Dice::new(format!("{term:?}").len() as u64).below(keys.len())];
    Part::Compute { key: Key(key), program: program(term, Want::Column(type_of)), siblings: 0 }
}

fn program(term: &Term, want: Want) -> Arc<Program> {
    Arc::new(Program::compile(&term.flatten().0, &Registry, want).unwrap())
}

fn run(pass: &Pass, rows: &RowSet, params: &[Value], out: &mut Vec<usize>) -> Result<RowSet, PassError> {
    SCRATCH.with_borrow_mut(|scratch| {
        let result = pass.run(rows, values(params), scratch, Stop::default());
        out.clear();
        out.extend_from_slice(scratch.rows_out());
        result
    })
}

/// One part by the functions that the crate has for it alone. It sees `seen`, which are the same rows, perhaps with fewer columns.
fn alone(part: &Part, seen: &RowSet, rows: &RowSet, params: &[Value]) -> Result<RowSet, rankd_column::expr::EvalError> {
    use rankd_column::expr::select;
    SCRATCH.with_borrow_mut(|scratch| match part {
        Part::Compute { key, program, .. } => compute(program, seen, values(params), scratch, Stop::default())
            .map(|column| rows.with(*key, Arc::new(column))),
        Part::Filter { program } => {
            select(program, rows, values(params), scratch, Stop::default()).map(|kept| rows.looking_at(kept))
        }
        Part::Sort { key, order } => Ok(rows.sort(*key, *order, Stop::default())?),
        Part::Take { count } => Ok(rows.take(*count)),
    })
}

/// As many passes as the parts need, against the parts alone.
fn check(parts: &[Part], rows: &RowSet, params: &[Value]) {
    let (mut wanted, mut seen) = (Ok(rows.clone()), rows.clone());
    let mut counts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if let (true, Ok(rows)) = (part.begins(), &wanted) {
            seen = rows.clone();
        }
        wanted =
            wanted.and_then(|rows| alone(part, &seen, &rows, params).map_err(|error| PassError { part: at, error }));
        counts.extend(wanted.as_ref().map(RowSet::len));
    }
    let (mut found, mut found_counts, mut early) = (Ok(rows.clone()), Vec::new(), false);
    let mut done = 0;
    while let (true, Ok(rows)) = (done < parts.len(), &found) {
        let reach = Pass::reach(&parts[done..]);
        assert!((1..=PARTS_MAX).contains(&reach));
        let pass = Pass::new(parts[done..done + reach].to_vec()).unwrap();
        assert_eq!(pass.parts().len(), reach);
        early |= pass.takes_early();
        let mut out = Vec::new();
        found = run(&pass, rows, params, &mut out)
            .map_err(|PassError { part, error }| PassError { part: done + part, error });
        found_counts.append(&mut out);
        done += reach;
    }
    match (&found, &wanted) {
        (Ok(found), Ok(wanted)) => {
            assert_eq!(cells(found), cells(wanted));
            // A take that ends a pass early spares the parts before it some rows.
            assert!(early || found_counts == counts, "{found_counts:?} {counts:?}");
        }
        (found, wanted) => {
            let error = |result: &Result<RowSet, PassError>| format!("{:?}", result.as_ref().err());
            assert_eq!(error(found), error(wanted));
            assert!(early || found_counts == counts, "{found_counts:?} {counts:?}");
        }
    }
}

/// Everything that can be seen of rows, floats by their bits.
fn cells(rows: &RowSet) -> Vec<Vec<(Value, bool)>> {
    let keys: Vec<Key> = [Key::ID].into_iter().chain(rows.batch().columns().iter().map(|(key, _)| *key)).collect();
    let cell = |key, at| {
        let value = rows.value(key, at);
        let negative = matches!(value, Value::Float(v) if v.is_sign_negative());
        (value, negative)
    };
    (0..rows.len()).map(|at| keys.iter().map(|key| cell(*key, at)).collect()).collect()
}

fn key(key: u32) -> Term {
    Term::Key(key)
}

fn int(value: i64) -> Term {
    Term::Const(Value::Int(value))
}

fn binary(op: Binary, a: Term, b: Term) -> Term {
    Term::Binary(op, Box::new((a, b)))
}

fn filter(op: Compare, a: Term, b: Term) -> Part {
    Part::Filter { program: program(&Term::Compare(op, Box::new((a, b))), Want::Predicate) }
}

/// Key 1 from the id by a term, in a batch of so many rows with ids from 0 on.
fn ids(count: i64) -> RowSet {
    RowSet::new(Batch::new((0..count).collect()))
}

fn into(at: u32, term: &Term) -> Part {
    Part::Compute { key: Key(at), program: program(term, Want::Column(KEY_TYPES[at as usize])), siblings: 0 }
}

/// Overflows from this id on.
fn overflows_from(id: i64) -> Term {
    binary(Binary::Add, key(0), int(i64::MAX - id + 1))
}

#[test]
fn the_first_part_that_fails_is_blamed_wherever_its_row_is() {
    let rows = ids(5000);
    let late = into(1, &overflows_from(4900));
    let soon = into(2, &overflows_from(10));
    let fails = |parts: Vec<Part>| run(&Pass::new(parts).unwrap(), &rows, &[], &mut Vec::new()).unwrap_err();
    let blamed = |error: PassError| (error.part, error.error.id);
    assert_eq!(blamed(fails(vec![late.clone(), soon.clone()])), (0, Some(4900.into())));
    assert_eq!(blamed(fails(vec![soon.clone(), late.clone()])), (0, Some(10.into())));
    // Row 10 is filtered out, so the second fails nowhere before the first's row.
    let keeps = filter(Compare::Gt, key(0), int(4950));
    assert_eq!(blamed(fails(vec![keeps.clone(), late.clone(), soon.clone()])), (1, Some(4951.into())));
    let spares = filter(Compare::Lt, key(0), int(4900));
    assert_eq!(blamed(fails(vec![spares.clone(), late.clone(), soon])), (2, Some(10.into())));
    let good = Pass::new(vec![spares, late, Part::Sort { key: Key(1), order: Order::Desc }, Part::Take { count: 2 }]);
    let best = run(&good.unwrap(), &rows, &[], &mut Vec::new()).unwrap();
    assert_eq!(best.ids().collect::<Vec<_>>(), [4899, 4898]);
}

#[test]
fn a_pattern_that_cannot_be_used_is_the_fault_of_its_part_after_those_before_it() {
    let matched = Term::Match { key: 7, pattern: Pattern::Param(6), ignore_case: false };
    let matched = Part::Filter { program: program(&matched, Want::Predicate) };
    let mut params = vec![Value::Null; 7];
    params[6] = Value::str("a(");
    for (rows, before, part) in [(0, 20, 1), (10, 20, 1), (30, 20, 0)] {
        let pass = Pass::new(vec![into(1, &overflows_from(before)), matched.clone()]).unwrap();
        let error = run(&pass, &ids(rows), &params, &mut Vec::new()).unwrap_err();
        assert_eq!(error.part, part, "{rows} rows");
        assert_eq!(part == 1, matches!(error.error.fault, Fault::BadRegex { .. }));
    }
}

#[test]
fn a_take_ends_a_pass_early_only_where_nothing_before_it_can_fail() {
    let rows = ids(5000);
    let take = Part::Take { count: 3 };
    let mut out = Vec::new();
    let tame = into(3, &binary(Binary::Min, key(0), int(7)));
    let pass = Pass::new(vec![tame.clone(), take.clone()]).unwrap();
    assert!(pass.takes_early());
    assert_eq!(run(&pass, &rows, &[], &mut out).unwrap().len(), 3);
    assert_eq!(out, [3, 3], "nothing is computed for a row that is not taken");
    let pass = Pass::new(vec![filter(Compare::Gt, key(0), int(2000)), tame, take.clone()]).unwrap();
    assert_eq!(run(&pass, &rows, &[], &mut out).unwrap().ids().collect::<Vec<_>>(), [2001, 2002, 2003]);
    assert!(out[0] < 2000, "the rest was not looked at: {out:?}");
    let wild = Pass::new(vec![into(1, &overflows_from(4900)), take]).unwrap();
    assert!(!wild.takes_early());
    assert_eq!(run(&wild, &rows, &[], &mut out).unwrap_err().error.id, Some(4900.into()));
}

/// Three parts: a column for all rows so far, a filter, and a take that is content after the first chunk.
#[test]
fn a_column_is_as_long_as_its_batch_where_a_take_ends_the_pass_early() {
    let rows = ids(5000);
    for make in [into(1, &key(0)), into(1, &key(2)), into(7, &Term::Const(Value::str("x")))] {
        let parts = vec![make, filter(Compare::Gt, key(0), int(1)), Part::Take { count: 2 }];
        let pass = Pass::new(parts).unwrap();
        assert!(pass.takes_early());
        let found = run(&pass, &rows, &[], &mut Vec::new()).unwrap();
        assert_eq!(found.ids().collect::<Vec<_>>(), [2, 3]);
        assert!(found.batch().columns().iter().all(|(_, column)| column.len() == 5000));
    }
}

#[test]
fn a_string_column_is_not_read_in_the_pass_that_makes_it() {
    let make = into(7, &Term::Coalesce(Box::new((key(8), Term::Const(Value::str("x"))))));
    let read = filter(Compare::Ne, key(7), Term::Const(Value::str("y")));
    let sort = Part::Sort { key: Key(7), order: Order::Asc };
    let other = filter(Compare::Gt, key(0), int(0));
    assert_eq!(Pass::reach(&[make.clone(), other.clone(), read]), 2);
    assert_eq!(Pass::reach(&[make.clone(), other.clone(), sort]), 2);
    assert_eq!(Pass::reach(&[make, other.clone()]), 2);
    assert_eq!(Pass::reach(&vec![other; 100]), PARTS_MAX);
    assert!(Pass::new(vec![]).is_none());
    assert!(Pass::new(vec![Part::Take { count: 1 }, Part::Sort { key: Key::ID, order: Order::Asc }]).is_none());
}

/// So many rows are filtered before columns are made of those that are left.
const MANY: i64 = 40_000;

#[test]
fn a_few_of_many_rows_are_gathered_on_the_way_and_give_the_same() {
    let rows = ids(MANY);
    let few = || filter(Compare::Gt, key(0), int(MANY - 100));
    let tame = || into(3, &binary(Binary::Min, key(0), int(MANY - 7)));
    let sort = |at| Part::Sort { key: Key(at), order: Order::Desc };
    let take = Part::Take { count: 5 };
    let lists = [
        vec![few(), tame()],
        vec![few(), tame(), sort(3)],
        vec![few(), tame(), sort(3), take.clone()],
        vec![few(), tame(), take.clone()],
        vec![tame(), few(), into(1, &key(0)), filter(Compare::Lt, key(0), int(MANY - 3)), into(2, &key(0)), sort(1)],
        vec![few(), tame(), filter(Compare::Lt, key(3), int(MANY - 20)), take.clone()],
        vec![filter(Compare::Gt, key(0), int(10)), tame(), sort(3), take],
        vec![filter(Compare::Lt, key(0), int(0)), tame(), sort(3)],
        vec![few(), into(1, &overflows_from(MANY - 50)), sort(1)],
        vec![into(1, &overflows_from(MANY - 50)), few(), tame()],
        vec![few(), tame(), filter(Compare::Gt, key(0), int(3)), into(1, &overflows_from(MANY - 5))],
    ];
    for parts in &lists {
        check(parts, &rows, &[]);
        check(parts, &rows.sort(Key::ID, Order::Desc, Stop::default()).unwrap(), &[]);
        check(parts, &rows.take(200), &[]);
    }
    for parts in &lists[..4] {
        let found = run(&Pass::new(parts.clone()).unwrap(), &rows, &[], &mut Vec::new()).unwrap();
        assert!(found.batch().len() < 100, "a batch of their own");
    }
}

#[test]
fn what_is_gathered_has_the_columns_that_are_needed() {
    let rows = ids(MANY);
    let rows = [1, 2].into_iter().fold(rows, |rows, at| alone(&into(at, &key(0)), &rows, &rows, &[]).unwrap());
    let parts = vec![filter(Compare::Lt, key(0), int(10)), into(3, &key(1))];
    for (live, wanted) in [(None, vec![Key(1), Key(2), Key(3)]), (Some([Key(1)].into()), vec![Key(1), Key(3)])] {
        let pass = Pass::with_live(parts.clone(), live).unwrap();
        let found = run(&pass, &rows, &[], &mut Vec::new()).unwrap();
        let keys: Vec<Key> = found.batch().columns().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, wanted);
    }
}

#[test]
fn a_set_flag_stops_a_pass() {
    let pass = Pass::new(vec![into(1, &key(0)), filter(Compare::Gt, key(1), int(0))]).unwrap();
    let flag = AtomicBool::new(true);
    let stopped = pass.run(&ids(10), values(&[]), &mut Scratch::default(), Stop::when(&flag)).unwrap_err();
    assert_eq!(stopped.error.fault, Fault::Stopped);
}
