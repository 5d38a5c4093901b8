//! `hydrate` of 1,000 rows with ten columns of a table, beside a loop that picks the same cells by row number.
//!
//! The rows are the request's. What a plan without the `hydrate` takes is measured apart, so that the difference is the node's own.
//! With other ids each time the cells are in no cache, as in a server; with the same ids they are.

use crate::data::Random;
use crate::engine::{Engine, ITEMS, inline};
use crate::faults::stage::met;
use crate::harness::{Contender, Time, part, race};
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Type};
use rankd_engine::Request;
use rankd_engine::store::table::{TableData, TableIds};
use rankd_engine::store::{TableEndpoint, Tables};
use rankd_plan::Registry;
use rankd_plan::registry::Text;
use std::cell::Cell;
use std::sync::Arc;

const ROWS: usize = 1000;
/// As many requests with other ids as no cache holds the cells of.
const REQUESTS: usize = 64;
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const GOAL_US: f64 = 30.0;

const COLUMNS: [(&str, Type); 10] = [
    ("int0", Type::Int),
    ("int1", Type::Int),
    ("int2", Type::Int),
    ("float0", Type::Float),
    ("float1", Type::Float),
    ("float2", Type::Float),
    ("bool0", Type::Bool),
    ("topic0", Type::Str),
    ("topic1", Type::Str),
    ("title", Type::Str),
];

const FLOOR: &str = "floor";
const WITHOUT: &str = "without";
const WITH: &str = "with";

pub fn run() {
    println!(
        "\n## Hydrate from a table\n\n{ROWS} rows, {} columns, one in twenty cells null, one thread. Microseconds, min / median. The floor \
         knows the numbers of the table's rows and looks no id up.\n",
        COLUMNS.len()
    );
    println!(
        "| rows of the table | ids | floor | plan without `hydrate` | with | `hydrate` itself, min | ÷ floor | goal | met |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for size in SIZES {
        let bench = Bench::new(size);
        for (ids, requests) in [("the same", 1), ("others each time", REQUESTS)] {
            let [floor, without, with] = bench.race(requests);
            let own = with.min - without.min;
            let shown = |time: Time| format!("{:.1} / {:.1}", time.min, time.median);
            println!(
                "| {size} | {ids} | {} | {} | {} | {own:.1} | {:.2} | ≤ {GOAL_US} | {} |",
                shown(floor),
                shown(without),
                shown(with),
                own / floor.min,
                met(own <= GOAL_US)
            );
        }
    }
}

struct Bench {
    columns: Vec<Arc<Column>>,
    without: Engine,
    with: Engine,
    /// The table's rows that each request asks for.
    asked: Vec<Vec<u32>>,
}

impl Bench {
    fn new(size: usize) -> Bench {
        let (registry, tables) = (registry(), Arc::new(Tables::default()));
        let mut random = Random(0x5EED_0F0B_E9C4_0002);
        let columns: Vec<Arc<Column>> =
            COLUMNS.iter().map(|(name, type_of)| Arc::new(column(name, *type_of, size, &mut random))).collect();
        let named = (1..).map(Key).zip(columns.iter().cloned()).collect();
        let items = TableEndpoint(registry.endpoints.named("items").expect("the registry has it"));
        let data = TableData { ids: TableIds::Ints((0..size).map(id).collect()), columns: named, sha256: None };
        tables.swap(items, data).expect("ids are numbers");
        let asked: Vec<Vec<u32>> = (0..REQUESTS).map(|_| distinct(size, &mut random)).collect();
        let fields: Vec<String> = COLUMNS.iter().map(|(name, _)| format!("\"{name}\":\"{name}\"")).collect();
        let source = r#"{"node_id":"n0","op":"candidates"}"#.to_owned();
        let hydrate = format!(
            r#"{{"node_id":"n1","op":"hydrate","inputs":["n0"],"params":{{"endpoint":"items","fields":{{{}}}}}}}"#,
            fields.join(",")
        );
        let engine = |nodes: &[String]| {
            let text = format!(
                r#"{{"schema_version":1,"plan_name":"hydrate","nodes":[{}],"outputs":["n{}"]}}"#,
                nodes.join(","),
                nodes.len() - 1
            );
            let request = Request { user_id: 1.into(), ..Request::new(&registry) };
            Engine::on(&text, &registry, request, &tables, inline(true))
        };
        let (without, with) = (engine(std::slice::from_ref(&source)), engine(&[source, hydrate]));
        Bench { columns, without, with, asked }
    }

    /// The floor, the plan without the node and the plan with it, with so many different requests in turn.
    fn race(&self, requests: usize) -> [Time; 3] {
        let asked = &self.asked[..requests];
        let ready = |engine: &Engine| -> Vec<Arc<Request>> {
            asked.iter().map(|rows| engine.request(candidates(rows))).collect()
        };
        let (without, with) = (ready(&self.without), ready(&self.with));
        self.check(&asked[0], &with[0]);
        let turns = [Cell::new(0), Cell::new(0), Cell::new(0)];
        let next = |at: usize| (turns[at].replace(turns[at].get() + 1)) % requests;
        let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![
            (FLOOR, part(|| self.columns.iter().map(|column| pick(column, &asked[next(0)])).collect::<Vec<Column>>())),
            (WITHOUT, part(|| self.without.answer(&without[next(1)]))),
            (WITH, part(|| self.with.answer(&with[next(2)]))),
        ];
        let times = race(&mut contenders);
        [times[0].1, times[1].1, times[2].1]
    }

    /// Both pick the same cells.
    fn check(&self, asked: &[u32], request: &Arc<Request>) {
        let rows = self.with.answer(request);
        for (key, column) in (1..).map(Key).zip(&self.columns) {
            let floor = pick(column, asked);
            (0..ROWS).for_each(|row| assert_eq!(rows.value(key, row), floor.value(row)));
        }
    }
}

/// The cells of these rows, one after the other.
fn pick(column: &Column, rows: &[u32]) -> Column {
    fn cells<T: Copy + Default>(cells: &Cells<T>, rows: &[u32]) -> Cells<T> {
        let values = rows.iter().map(|row| cells.values()[*row as usize]).collect();
        let valid = cells.valid().map(|valid| rows.iter().map(|row| valid[*row as usize]).collect());
        Cells::new(values, valid)
    }
    match column {
        Column::Int(of) => Column::Int(cells(of, rows)),
        Column::Float(of) => Column::Float(cells(of, rows)),
        Column::Bool(of) => Column::Bool(cells(of, rows)),
        Column::Str(of, texts) => Column::Str(cells(of, rows), texts.clone()),
        Column::List(..) | Column::Vector(..) => unreachable!("the table has none"),
    }
}

fn candidates(rows: &[u32]) -> RowSet {
    RowSet::new(Batch::new(rows.iter().map(|row| id(*row as usize)).collect()))
}

fn id(row: usize) -> i64 {
    row as i64 * 7 + 1
}

fn column(name: &str, type_of: Type, rows: usize, random: &mut Random) -> Column {
    let mut column = ColumnBuilder::new(type_of, rows);
    for _ in 0..rows {
        let value = random.next();
        let fits = match type_of {
            _ if value.is_multiple_of(20) => {
                column.push_null();
                true
            }
            Type::Int => column.push_int((value % 100_000) as i64),
            Type::Float => column.push_float(value as f64 / 9e15),
            Type::Bool => column.push_bool(value.is_multiple_of(3)),
            _ if name == "title" => column.push_str(&format!("The title of {}", value % 10_000_000)),
            _ => column.push_str(&format!("topic {}", value % 500)),
        };
        assert!(fits, "a value of the column's type");
    }
    column.finish()
}

/// So many different rows of a table, in no order.
fn distinct(size: usize, random: &mut Random) -> Vec<u32> {
    let mut rows = std::collections::BTreeSet::new();
    let mut order = Vec::with_capacity(ROWS);
    while order.len() < ROWS {
        let row = (random.next() % size as u64) as u32;
        if rows.insert(row) {
            order.push(row);
        }
    }
    order
}

fn registry() -> Registry {
    let mut keys =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n".to_owned();
    for (number, (name, type_of)) in (2..).zip(COLUMNS) {
        let type_of = match type_of {
            Type::Int => "int",
            Type::Float => "float",
            Type::Bool => "bool",
            _ => "string",
        };
        keys += &format!("[[key]]\nkey_id = {number}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\n");
    }
    let text = |file, text| Text { file, text };
    let (registry, problems) = Registry::parse(text("keys", &keys), text("params", ""), text("endpoints", ITEMS));
    assert!(problems.is_empty(), "{:?}", problems[0].diagnostics);
    registry
}
