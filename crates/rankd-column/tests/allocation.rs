//! What the operations on rows allocate, counted: views cost bytes by the row and nothing by the column, and a computed
//! column costs its own buffers, not one a chunk.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]
#![expect(
    unsafe_code,
    reason = "a global allocator that counts cannot be written without; it hands every call on as it is"
)]

use rankd_column::column::ColumnBuilder;
use rankd_column::expr::{
    Binary, Compare, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Unary, Want, compute, select,
};
use rankd_column::kernel::gather::gather_column;
use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Column, Element, Key, List, RowSet, Type, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

struct Counting;

thread_local! {
    /// Calls and bytes of this thread; each test has its own.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    BYTES.set(BYTES.get() + bytes);
}

// Safety: every call goes on to the system's allocator unchanged; counting touches only plain thread-local numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    calls: usize,
    bytes: usize,
}

fn cost<R>(act: impl FnOnce() -> R) -> Cost {
    let before = Cost { calls: CALLS.get(), bytes: BYTES.get() };
    drop(black_box(act()));
    Cost { calls: CALLS.get() - before.calls, bytes: BYTES.get() - before.bytes }
}

struct Floats;

impl Schema for Floats {
    fn key_type(&self, key: Key) -> Type {
        if key == Key::ID { Type::Int } else { Type::Float }
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Float
    }
}

/// Rows in no order, with so many float columns.
fn rows(n: usize, columns: u32) -> RowSet {
    let cells: Vec<Option<f64>> = (0..n).map(|row| (row % 50 > 0).then_some((row * 7919 % n) as f64)).collect();
    let column = Column::Float(cells.into_iter().collect());
    let batch = (1..=columns)
        .fold(Batch::new((0..n as i64).collect()), |batch, key| batch.with(Key(key), Arc::new(column.clone())));
    RowSet::new(batch)
}

fn half() -> Program {
    let mut tree = Tree::new();
    let key = tree.push(Op::Key(Key(1)), None);
    let limit = tree.push(Op::Const(Value::Float(5000.0)), None);
    tree.push(Op::Compare(Compare::Lt, key, limit), None);
    Program::compile(&tree, &Floats, Want::Predicate).unwrap()
}

fn filter(program: &Program, rows: &RowSet, scratch: &mut Scratch) -> RowSet {
    rows.looking_at(select(program, rows, RunValues::default(), scratch, Stop::default()).unwrap())
}

#[test]
fn a_view_costs_the_same_however_many_columns_there_are() {
    let (narrow, wide) = (rows(10_000, 1), rows(10_000, 40));
    let (program, mut scratch) = (half(), Scratch::default());
    filter(&program, &narrow, &mut scratch);
    let costs = [narrow, wide].map(|rows| {
        let filtered = cost(|| filter(&program, &rows, &mut scratch));
        let sorted = cost(|| rows.sort(Key(1), Order::Desc, Stop::default()).unwrap());
        let best = cost(|| rows.top(Key(1), Order::Desc, 100, Stop::default()).unwrap());
        let taken = cost(|| rows.take(100));
        [filtered, sorted, best, taken]
    });
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn a_view_costs_bytes_by_the_row_that_is_looked_at() {
    let (program, mut scratch) = (half(), Scratch::default());
    let all = rows(100_000, 1);
    filter(&program, &all, &mut scratch);
    for n in [1_000, 10_000, 100_000] {
        let view = all.take(n);
        let filtered = cost(|| filter(&program, &view, &mut scratch));
        assert!(filtered.bytes <= 4 * n + 1024, "filter of {n}: {filtered:?}");
        let sorted = cost(|| view.sort(Key(1), Order::Asc, Stop::default()).unwrap());
        assert!(sorted.bytes <= 64 * n + 32 * 1024, "sort of {n}: {sorted:?}");
        let best = cost(|| view.top(Key(1), Order::Asc, 10, Stop::default()).unwrap());
        assert!(best.bytes <= 8 * 1024, "top of {n}: {best:?}");
    }
}

#[test]
fn taking_costs_nothing() {
    let all = rows(10_000, 3);
    let sorted = all.sort(Key(1), Order::Asc, Stop::default()).unwrap();
    for rows in [all, sorted] {
        assert_eq!(cost(|| rows.take(5_000)), Cost { calls: 0, bytes: 0 });
    }
}

#[test]
fn a_column_of_a_million_rows_is_made_with_as_many_allocations_as_one_of_ten_thousand() {
    let mut tree = Tree::new();
    let (a, b) = (tree.push(Op::Key(Key(1)), None), tree.push(Op::Key(Key(2)), None));
    let id = tree.push(Op::Key(Key::ID), None);
    let product = tree.push(Op::Binary(Binary::Mul, a, b), None);
    let sum = tree.push(Op::Binary(Binary::Add, product, id), None);
    let one = tree.push(Op::Const(Value::Float(1.0)), None);
    tree.push(Op::Coalesce(sum, one), None);
    let program = Program::compile(&tree, &Floats, Want::Column(Type::Float)).unwrap();
    let mut scratch = Scratch::default();
    let few = rows(10_000, 2);
    let many = rows(1_000_000, 2);
    let mut run =
        |rows: &RowSet| cost(|| compute(&program, rows, RunValues::default(), &mut scratch, Stop::default()).unwrap());
    run(&few);
    let (small, large) = (run(&few), run(&many));
    assert_eq!(small.calls, large.calls);
    assert!(small.calls <= 8, "{small:?}");
    assert!(large.bytes <= 9 * 1_000_000 + 4096, "{large:?}");
    let listed = many.sort(Key::ID, Order::Desc, Stop::default()).unwrap();
    run(&listed);
    assert!(run(&listed).calls <= small.calls + 2);
}

#[test]
fn a_tree_needs_few_buffers_whichever_way_it_leans() {
    // -a + (-a + (-a + …)): computed as it is written, five thousand values would wait for the innermost sum.
    let mut tree = Tree::new();
    let key = tree.push(Op::Key(Key(1)), None);
    let lefts: Vec<_> = (0..5_000).map(|_| tree.push(Op::Unary(Unary::Neg, key), None)).collect();
    let sum = lefts.into_iter().rev().reduce(|sum, left| tree.push(Op::Binary(Binary::Add, left, sum), None));
    assert_eq!(sum, Some(tree.nodes().len() as u32 - 1));
    let program = Program::compile(&tree, &Floats, Want::Column(Type::Float)).unwrap();
    let rows = rows(2_048, 1);
    let run =
        cost(|| compute(&program, &rows, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap());
    // Sixteen bytes a node for what is the same on all rows; the rest is the column and a handful of chunks.
    assert!(run.bytes <= 16 * tree.nodes().len() + 128 * 1024, "{run:?}");
}

/// Rows with a list of so many elements and a vector of so many numbers each.
fn rows_with_arrays(n: usize, size: u16) -> RowSet {
    let mut lists = ColumnBuilder::new(Type::List(Element::Int), n);
    let mut vectors = ColumnBuilder::new(Type::Vector(size), n);
    let (list, vector) = (List::Int(vec![7; size.into()]), vec![0.5; size.into()]);
    (0..n).for_each(|_| assert!(lists.push_list(&list) && vectors.push_vector(&vector)));
    let batch = rows(n, 1).batch().with(Key(2), Arc::new(lists.finish())).with(Key(3), Arc::new(vectors.finish()));
    RowSet::new(batch)
}

#[test]
fn moving_lists_and_vectors_costs_the_same_however_long_they_are() {
    let (program, mut scratch) = (half(), Scratch::default());
    let mut costs = [1, 64].map(|size| {
        let rows = rows_with_arrays(10_000, size);
        filter(&program, &rows, &mut scratch);
        let filtered = cost(|| filter(&program, &rows, &mut scratch));
        let sorted = cost(|| rows.sort(Key(1), Order::Desc, Stop::default()).unwrap());
        let kept = filter(&program, &rows, &mut scratch);
        let gathered = [2, 3]
            .map(|key| cost(|| gather_column(rows.batch().column(Key(key)).unwrap(), kept.rows(), Stop::default())));
        // Both sides have the same elements.
        let joined = cost(|| kept.concat(&rows, Stop::default()).unwrap());
        [filtered, sorted, gathered[0], gathered[1], joined]
    });
    assert_eq!(costs[0], costs[1]);
    let [_, _, lists, vectors, joined] = &mut costs[0];
    // Eight bytes a list, four a vector.
    assert_eq!((lists.calls, vectors.calls), (1, 1));
    assert!(lists.bytes <= 8 * 5_000 && vectors.bytes <= 4 * 5_000, "{lists:?} {vectors:?}");
    assert!(joined.bytes <= 15_000 * (8 + 9 + 8 + 4) + 1024, "{joined:?}");
}

#[test]
fn joining_rows_copies_the_elements_of_those_that_are_looked_at_only() {
    let (few, many) = (rows_with_arrays(10, 64), rows_with_arrays(10_000, 64));
    let joined = cost(|| few.concat(&many.take(10), Stop::default()).unwrap());
    // Up to four times as much is asked for, because what is copied to grows as it is filled.
    assert!(joined.bytes <= 4 * 20 * 64 * (8 + 4) + 20 * (8 + 9 + 16 + 8) + 1024, "{joined:?}");
}
