//! Searches for the nearest rows of random tables, against a search that compares every row by itself and sorts: on every scheduler, with ids
//! that are ints and texts, by all measures, with conditions, for one vector and for several. Without a copy the rows, their order and
//! the bits of their scores are the same. With one, the scores are, and the rows that are missing are counted.
//!
//! To run one seed again: `RANKD_SEED=<seed> cargo test -p rankd-tasks --test nearest`.
#![expect(clippy::panic, clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::column::ColumnBuilder;
use rankd_column::kernel::similarity::Similarity;
use rankd_column::kernel::vector_copy::CopyKind;
use rankd_column::{Column, DictionaryBuilder, Id, Key, RowSet, Type, Value};
use rankd_engine::store::table::{OpenTable, TableData, TableIds};
use rankd_engine::store::{Open, TableEndpoint, TableVersions, Tables};
use rankd_engine::why::{AskedPlan, Verdict};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::registry::{AsWritten, Endpoint, Text};
use rankd_plan::{Plan, Registry, check};
use rankd_tasks::tasks;
use std::sync::Arc;

const SEEDS: u64 = 1_500;
/// Each table twice, once for each kind of copy, and once without.
const TABLES: [&str; 3] = ["plain", "half", "byte"];
const DIMENSIONS: [usize; 4] = [1, 3, 8, 21];
const MEASURES: [(&str, Similarity); 3] =
    [("dot", Similarity::Dot), ("cosine", Similarity::Cosine), ("l2", Similarity::L2)];
const LABELS: [&str; 3] = ["a", "b", "c"];

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// Small whole numbers, of which many are equally near, or any numbers.
    fn vector(&mut self, dimension: usize, whole: bool) -> Vec<f32> {
        let number = |dice: &mut Dice| match whole {
            true => dice.below(5) as f32 - 2.0,
            false => dice.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0,
        };
        (0..dimension).map(|_| number(self)).collect()
    }
}

/// A registry, its tables and an engine for each scheduler.
struct World {
    registry: Registry,
    tables: Arc<Tables>,
    engines: Vec<Engine>,
    dimension: usize,
    has_text_ids: bool,
}

impl World {
    fn new(dimension: usize, has_text_ids: bool) -> World {
        let id = if has_text_ids { "string" } else { "int" };
        let vector = format!("vector<{dimension}>");
        let mut keys = format!("[[key]]\nname = \"id\"\ntype = \"{id}\"\nnullable = false\nallow_write = false\n");
        for (name, type_of) in
            [("parent_id", id), ("n", "int"), ("label", "string"), ("emb", &vector), ("score", "float")]
        {
            keys += &format!("[[key]]\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\n");
        }
        let params = format!(
            "[[param]]\nname = \"query\"\ntype = \"{vector}\"\nnullable = true\n[[param]]\nname = \"least\"\ntype = \"int\"\nnullable = true\n"
        );
        let copies = ["", "vectors = { emb = \"f16\" }\n", "vectors = { emb = \"i8\" }\n", ""];
        let endpoint = |(name, copies): (&str, &str)| {
            format!("[[endpoint]]\nname = \"{name}\"\nkind = \"table\"\nurl = \"file:x.csv\"\n{copies}")
        };
        let endpoints: String = TABLES.into_iter().chain(["seeds"]).zip(copies).map(endpoint).collect();
        let texts = [keys.as_str(), &params, &endpoints, ""].map(|text| Text { file: "", text });
        let (registry, problems) = Registry::parse_files(&AsWritten, texts);
        let found: Vec<_> = problems.iter().flat_map(|file| file.diagnostics.list()).collect();
        assert!(found.is_empty(), "{found:?}");
        let tables = Arc::<Tables>::default();
        let engine = |scheduler| {
            let open =
                |endpoint: &Endpoint| -> Arc<dyn Open> { Arc::new(OpenTable::new(&endpoint.name, tables.clone())) };
            let settings = Settings { scheduler, loops: 1, cpu_threads: 2, ..Settings::default() };
            Engine::start(settings, registry.endpoints.list().iter().map(open).collect()).unwrap()
        };
        let engines = [Scheduler::Async, Scheduler::Pools, Scheduler::Sequential].map(engine).into();
        World { registry, tables, engines, dimension, has_text_ids }
    }

    fn key(&self, name: &str) -> Key {
        Key(self.registry.keys.named(name).unwrap())
    }

    fn endpoint(&self, name: &str) -> TableEndpoint {
        TableEndpoint(self.registry.endpoints.named(name).unwrap())
    }

    fn id(&self, id: usize) -> Value {
        if self.has_text_ids { Value::str(&format!("tt{id}")) } else { Value::Int(id as i64) }
    }

    fn load(&self, name: &str, rows: &[Row]) {
        let ids = match self.has_text_ids {
            true => {
                let mut ids = DictionaryBuilder::default();
                for row in rows {
                    ids.code(&format!("tt{}", row.id));
                }
                TableIds::Texts(ids.finish())
            }
            false => TableIds::Ints(rows.iter().map(|row| row.id as i64).collect()),
        };
        let column = |name: &str, value: &dyn Fn(&Row) -> Value| {
            let key = self.key(name);
            let mut column = ColumnBuilder::new(self.registry.key(key).type_of, rows.len());
            rows.iter().for_each(|row| assert!(column.push(&value(row))));
            (key, Arc::new(column.finish()))
        };
        let columns = vec![
            column("n", &|row| row.n.map_or(Value::Null, Value::Int)),
            column("label", &|row| row.label.map_or(Value::Null, Value::str)),
            column("emb", &|row| row.vector.as_ref().map_or(Value::Null, |of| Value::Vector(of.as_slice().into()))),
        ];
        self.tables.swap(self.endpoint(name), TableData { ids, columns, sha256: None }).unwrap();
    }

    fn plan(&self, nodes: &str, pred: &str) -> Plan {
        let preds = if pred.is_empty() { String::new() } else { format!(r#","pred_table":{{"p":{pred}}}"#) };
        let text = format!(r#"{{"schema_version":1,"plan_name":"t","nodes":[{nodes}],"outputs":["found"]{preds}}}"#);
        let checked = check(text.as_bytes(), &self.registry, tasks().signatures());
        checked.plan.unwrap_or_else(|| panic!("{text}\n{:?}", checked.diagnostics.list()))
    }

    fn link(&self, plan: &Plan) -> Arc<Linked> {
        let linked = Arc::new(Linked::link(plan, &tasks(), &self.registry).unwrap());
        self.tables.prepare(&linked);
        linked
    }

    fn request(&self, query: &Option<Vec<f32>>, least: i64) -> Request {
        let query = query.as_ref().map_or(Value::Null, |query| Value::Vector(query.as_slice().into()));
        Request { user_id: 1.into(), params: vec![query, Value::Int(least)], ..Request::new(&self.registry) }
    }
}

/// A row of a table.
struct Row {
    id: usize,
    n: Option<i64>,
    label: Option<&'static str>,
    vector: Option<Vec<f32>>,
}

fn rows(dice: &mut Dice, world: &World, most: usize, whole: bool) -> Vec<Row> {
    let count = dice.below(most + 1);
    // Ids are distinct, and not in order.
    let row = |(at, dice): (usize, &mut Dice)| Row {
        id: at * 7919 % 10_007,
        n: (!dice.one_in(5)).then(|| dice.below(100) as i64),
        label: (!dice.one_in(5)).then(|| LABELS[dice.below(3)]),
        vector: (!dice.one_in(5)).then(|| dice.vector(world.dimension, whole)),
    };
    (1..=count).map(|at| row((at, &mut *dice))).collect()
}

/// Whether a condition holds of a row.
type Holds = Box<dyn Fn(&Row) -> bool>;

/// A condition on rows: in a plan, and as a function of a row.
fn condition(dice: &mut Dice, least: i64) -> (&'static str, Holds) {
    match dice.below(4) {
        0 => ("", Box::new(|_| true)),
        1 => (
            r#"{"op":"cmp","cmp":">=","a":{"op":"key_ref","key":"n"},"b":{"op":"param_ref","param":"least"}}"#,
            Box::new(move |row| row.n.is_some_and(|n| n >= least)),
        ),
        2 => (
            r#"{"op":"cmp","cmp":"==","a":{"op":"key_ref","key":"label"},"b":{"op":"const_string","value":"b"}}"#,
            Box::new(|row| row.label == Some("b")),
        ),
        _ => (
            r#"{"op":"cmp","cmp":"<","a":{"op":"key_ref","key":"n"},"b":{"op":"const_number","value":0}}"#,
            Box::new(|_| false),
        ),
    }
}

/// The rows that a search finds, by their positions in the table, and how near they are.
fn naive(table: &[Row], holds: &dyn Fn(&Row) -> bool, asked: &[f32], by: Similarity, k: usize) -> Vec<(usize, f64)> {
    let scored = table.iter().enumerate().filter(|(_, row)| holds(row));
    let mut all: Vec<(usize, f64)> =
        scored.filter_map(|(at, row)| Some((at, by.of(row.vector.as_ref()?, asked)))).collect();
    all.sort_by(|(_, a), (_, b)| if by == Similarity::L2 { a.total_cmp(b) } else { b.total_cmp(a) });
    all.truncate(k);
    all
}

/// How many of the nearest rows were to be found, and how many were.
#[derive(Default)]
struct Recall {
    wanted: usize,
    found: usize,
}

/// Compares the rows of a run with what each search should find. A copy may miss some.
fn compare(
    world: &World,
    (table, by): (&[Row], Similarity),
    given: &RowSet,
    expected: &[(Value, Vec<(usize, f64)>)],
    recall: Option<&mut Recall>,
    about: &str,
) {
    let [n, label, score, parent] = ["n", "label", "score", "parent_id"].map(|name| world.key(name));
    let rows: Vec<(usize, f64, Value)> = (0..given.len())
        .map(|position| {
            let id = given.value(Key::ID, position);
            let at = table.iter().position(|row| world.id(row.id) == id).unwrap_or_else(|| panic!("{about}: {id}"));
            let row = &table[at];
            assert_eq!(given.value(n, position), row.n.map_or(Value::Null, Value::Int), "{about}");
            assert_eq!(given.value(label, position), row.label.map_or(Value::Null, Value::str), "{about}");
            let Value::Float(score) = given.value(score, position) else { panic!("{about}: no score") };
            (at, score, given.value(parent, position))
        })
        .collect();
    let mut rows = rows.as_slice();
    let mut recall = recall;
    for (parent, wanted) in expected {
        let (of_search, rest) = rows.split_at_checked(wanted.len()).unwrap_or_else(|| panic!("{about}: too few rows"));
        rows = rest;
        assert!(of_search.iter().all(|(.., of)| of == parent), "{about}: {parent}");
        match &mut recall {
            None => {
                let found = of_search.iter().map(|(at, score, _)| (*at, score.to_bits()));
                assert!(
                    found.eq(wanted.iter().map(|(at, score)| (*at, score.to_bits()))),
                    "{about}: {of_search:?} {wanted:?}"
                );
            }
            Some(recall) => {
                // A row that is as near as the last that is wanted is as good.
                let is_near = |score: f64, last: f64| if by == Similarity::L2 { score <= last } else { score >= last };
                let last = wanted.last().map(|(_, score)| *score);
                recall.wanted += wanted.len();
                recall.found +=
                    of_search.iter().filter(|(_, score, _)| last.is_some_and(|last| is_near(*score, last))).count();
            }
        }
    }
    assert!(rows.is_empty(), "{about}: {} rows too many", rows.len());
}

/// The rows that were found are in order, each with the score that it has and only once.
fn compare_scores(
    world: &World,
    table: &[Row],
    given: &RowSet,
    asked: &[(Value, Vec<f32>)],
    by: Similarity,
    about: &str,
) {
    let [score, parent] = ["score", "parent_id"].map(|name| world.key(name));
    let mut before: Option<(Value, f64, usize)> = None;
    for position in 0..given.len() {
        let (id, of) = (given.value(Key::ID, position), given.value(parent, position));
        let at = table.iter().position(|row| world.id(row.id) == id).unwrap();
        let (_, vector) = asked.iter().find(|(parent, _)| *parent == of).unwrap();
        let exact = by.of(table[at].vector.as_ref().unwrap(), vector);
        let Value::Float(score) = given.value(score, position) else { panic!("{about}: no score") };
        assert_eq!(score.to_bits(), exact.to_bits(), "{about}: row {id}");
        if let Some((_, last, last_at)) = before.filter(|(last, ..)| *last == of) {
            let is_nearer = if by == Similarity::L2 { last < score } else { last > score };
            assert!(is_nearer || (last == score && last_at < at), "{about}: row {id}");
        }
        before = Some((of, score, at));
    }
}

fn seeds() -> Vec<u64> {
    let asked = std::env::var_os("RANKD_SEED").map(|seed| vec![seed.to_string_lossy().parse().unwrap()]);
    asked.unwrap_or_else(|| (0..SEEDS).collect())
}

#[test]
fn a_search_finds_what_comparing_every_row_finds() {
    let worlds: Vec<World> =
        DIMENSIONS.iter().flat_map(|dimension| [false, true].map(|texts| World::new(*dimension, texts))).collect();
    let mut recalls = [Recall::default(), Recall::default(), Recall::default()];
    for seed in seeds() {
        let dice = &mut Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let world = &worlds[dice.below(worlds.len())];
        let whole = dice.one_in(2);
        let most = if dice.one_in(4) { 700 } else { 60 };
        let table = rows(dice, world, most, whole);
        let (word, by) = MEASURES[dice.below(3)];
        let k_most = if dice.one_in(4) { 100 } else { 12 };
        let (k, least) = (1 + dice.below(k_most), dice.below(100) as i64);
        let (pred, holds) = condition(dice, least);
        let with_where = if pred.is_empty() { "" } else { r#","where":"p""# };
        let query = (!dice.one_in(8)).then(|| dice.vector(world.dimension, whole));
        let searched = dice.one_in(2).then(|| rows(dice, world, 16, whole));
        // Each vector, with the id of the row that it is of.
        let asked: Vec<(Value, Vec<f32>)> = match &searched {
            Some(rows) => rows.iter().filter_map(|row| Some((world.id(row.id), row.vector.clone()?))).collect(),
            None => query.iter().map(|query| (Value::Null, query.clone())).collect(),
        };
        let expected: Vec<(Value, Vec<(usize, f64)>)> =
            asked.iter().map(|(id, vector)| (id.clone(), naive(&table, &*holds, vector, by, k))).collect();
        if let Some(rows) = &searched {
            world.load("seeds", rows);
        }
        for (copy, recall) in TABLES.into_iter().zip(&mut recalls) {
            world.load(copy, &table);
            let (input, vector, seeds) = match searched {
                Some(_) => {
                    (r#""seeds""#, r#""emb""#, r#"{"node_id":"seeds","op":"scan","params":{"endpoint":"seeds"}},"#)
                }
                None => ("", r#"{"param":"query"}"#, ""),
            };
            let params = format!(
                r#""endpoint":"{copy}","key":"emb","vector":{vector},"k":{k},"by":"{word}","score_key":"score"{with_where}"#
            );
            let nodes =
                format!(r#"{seeds}{{"node_id":"found","op":"nearest","inputs":[{input}],"params":{{{params}}}}}"#);
            let linked = world.link(&world.plan(&nodes, pred));
            for engine in &world.engines {
                let about = format!("seed {seed}, {copy}");
                let given = engine.run(&linked, world.request(&query, least)).result;
                let given = given.unwrap_or_else(|error| panic!("{about}: {error}")).remove(0);
                // With one number, all cosines differ by their rounding alone.
                let unmeasured = &mut Recall::default();
                let recall = if world.dimension > 1 { &mut *recall } else { unmeasured };
                let may_miss = (copy != "plain").then_some(recall);
                compare(world, (&table, by), &given, &expected, may_miss, &about);
                compare_scores(world, &table, &given, &asked, by, &about);
            }
        }
    }
    for (copy, Recall { wanted, found }) in TABLES.into_iter().zip(recalls).skip(1) {
        let recall = found as f64 / wanted.max(1) as f64;
        println!("{copy}: {found} of {wanted} rows found, {recall:.5}");
        assert!(recall >= if copy == "half" { 0.999 } else { 0.99 }, "{copy}: {recall}");
    }
}

#[test]
fn whole_numbers_are_compared_exactly() {
    let world = World::new(21, false);
    let dice = &mut Dice(5);
    let table = rows(dice, &world, 200, true);
    let query = dice.vector(21, true);
    world.load("plain", &table);
    let plan = r#"{"node_id":"found","op":"nearest","params":{"endpoint":"plain","key":"emb","vector":{"param":"query"},"k":10000,"by":"dot","score_key":"score"}}"#;
    let linked = world.link(&world.plan(plan, ""));
    let given = world.engines[0].run(&linked, world.request(&Some(query.clone()), 0)).result.unwrap().remove(0);
    assert_eq!(given.len(), table.iter().filter(|row| row.vector.is_some()).count());
    for position in 0..given.len() {
        let row = table.iter().find(|row| world.id(row.id) == given.value(Key::ID, position)).unwrap();
        let terms = row.vector.as_ref().unwrap().iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b));
        assert_eq!(given.value(world.key("score"), position), Value::Float(terms.sum()));
    }
}

#[test]
fn a_copy_is_made_once_counts_as_the_tables_and_follows_a_reload() {
    let world = World::new(8, true);
    let dice = &mut Dice(11);
    let some = |dice: &mut Dice| loop {
        let rows = rows(dice, &world, 700, false);
        if rows.len() > 500 {
            break rows;
        }
    };
    let bytes = || world.tables.versions().get(world.endpoint("byte")).unwrap().bytes();
    world.load("byte", &some(dice));
    let before = bytes();
    let plan = r#"{"node_id":"found","op":"nearest","params":{"endpoint":"byte","key":"emb","vector":{"param":"query"},"k":1,"by":"l2","score_key":"score"}}"#;
    let linked = world.link(&world.plan(plan, ""));
    let with_copy = bytes();
    assert!(with_copy >= before + 400 * 8, "{before} {with_copy}");
    world.tables.prepare(&linked);
    assert_eq!(bytes(), with_copy);
    let table = some(dice);
    world.load("byte", &table);
    let copied = world.tables.versions().get(world.endpoint("byte")).unwrap().bytes();
    assert!(copied > table.len() * 8 * 5, "{copied}");
    let query = table.iter().rev().find_map(|row| row.vector.clone()).unwrap();
    let given = world.engines[0].run(&linked, world.request(&Some(query.clone()), 0)).result.unwrap().remove(0);
    let (at, score) = naive(&table, &|_| true, &query, Similarity::L2, 1)[0];
    assert_eq!(given.value(Key::ID, 0), world.id(table[at].id));
    assert_eq!(given.value(world.key("score"), 0), Value::Float(score));
}

#[test]
fn a_copy_stays_when_the_texts_of_ids_get_new_codes() {
    let world = World::new(3, true);
    let dice = &mut Dice(4);
    let table = rows(dice, &world, 300, false);
    world.load("byte", &table);
    let plan = r#"{"node_id":"found","op":"nearest","params":{"endpoint":"byte","key":"emb","vector":{"param":"query"},"k":5,"by":"dot","score_key":"score"}}"#;
    let linked = world.link(&world.plan(plan, ""));
    let versions = || world.tables.versions();
    let before = versions();
    let many: Vec<Row> = (0..10_000).map(|at| Row { id: 20_000 + at, n: None, label: None, vector: None }).collect();
    world.load("plain", &many);
    world.load("plain", &many[..10]);
    let after = versions();
    assert!(after.ids().len() < 1_000, "{} texts are known", after.ids().len());
    let copy = |of: &TableVersions| {
        let table = of.get(world.endpoint("byte")).unwrap();
        std::ptr::from_ref(table.vector_copy(world.key("emb"), CopyKind::I8).unwrap())
    };
    assert_eq!(copy(&before), copy(&after));
    let query = dice.vector(3, false);
    let given = world.engines[0].run(&linked, world.request(&Some(query.clone()), 0)).result.unwrap().remove(0);
    let (at, score) = naive(&table, &|_| true, &query, Similarity::Dot, 1)[0];
    assert_eq!(given.value(Key::ID, 0), world.id(table[at].id));
    assert_eq!(given.value(world.key("score"), 0), Value::Float(score));
}

#[test]
fn an_item_that_was_found_came_from_the_search() {
    let world = World::new(3, false);
    let dice = &mut Dice(3);
    let table = rows(dice, &world, 60, false);
    let query = dice.vector(3, false);
    world.load("plain", &table);
    world.load("seeds", &[Row { id: 9_999, n: None, label: None, vector: Some(query.clone()) }]);
    let (at, _) = naive(&table, &|_| true, &query, Similarity::Dot, 1)[0];
    for (seeds, input, vector, source) in [
        ("", "", r#"{"param":"query"}"#, 0),
        (r#"{"node_id":"seeds","op":"scan","params":{"endpoint":"seeds"}},"#, r#""seeds""#, r#""emb""#, 1),
    ] {
        let nodes = format!(
            r#"{seeds}{{"node_id":"found","op":"nearest","inputs":[{input}],"params":{{"endpoint":"plain","key":"emb","vector":{vector},"k":3,"by":"dot","score_key":"score"}}}}"#
        );
        let plan = world.plan(&nodes, "");
        let asked = AskedPlan::link(&plan, &tasks(), &world.registry).unwrap();
        let request = asked.request(world.request(&Some(query.clone()), 0));
        let outcome = world.engines[0].run(asked.linked(), request.clone());
        let ids = [Id::Int(table[at].id as i64), Id::Int(9_999), Id::Int(-1)];
        let (items, _) = asked.items(&plan, &world.registry, &request, &outcome, &ids);
        assert_eq!((items[0].verdict, items[0].rows[0].source.node), (Verdict::Answered, source), "{items:?}");
        let parent = (source == 1).then_some(Value::Int(9_999));
        assert_eq!(items[0].rows[0].source.parent, parent, "{items:?}");
        assert_eq!(items[1].verdict, if source == 1 { Verdict::Expanded } else { Verdict::Never });
        assert_eq!(items[2].verdict, Verdict::Never);
    }
}

#[test]
fn a_table_without_the_column_has_no_near_rows() {
    let world = World::new(3, false);
    let ids = TableIds::Ints(vec![1, 2]);
    world.tables.swap(world.endpoint("half"), TableData { ids, columns: Vec::new(), sha256: None }).unwrap();
    let plan = r#"{"node_id":"found","op":"nearest","params":{"endpoint":"half","key":"emb","vector":{"param":"query"},"k":1,"by":"l2","score_key":"score"}}"#;
    let linked = world.link(&world.plan(plan, ""));
    for engine in &world.engines {
        let given = engine.run(&linked, world.request(&Some(vec![1.0; 3]), 0)).result.unwrap().remove(0);
        assert_eq!(given.len(), 0);
        let score = given.batch().column(world.key("score")).map(|column| column.type_of());
        assert_eq!(score, Some(Type::Float));
    }
}

#[test]
fn what_is_no_vector_column_is_not_looked_at() {
    // Only a program of one's own can hold such a table: the loader goes by the types of keys.
    let world = World::new(3, false);
    let column = Arc::new(Column::Int(rankd_column::Cells::full(vec![1])));
    let data = TableData { ids: TableIds::Ints(vec![1]), columns: vec![(world.key("emb"), column)], sha256: None };
    world.tables.swap(world.endpoint("byte"), data).unwrap();
    let plan = r#"{"node_id":"found","op":"nearest","params":{"endpoint":"byte","key":"emb","vector":{"param":"query"},"k":1,"by":"l2"}}"#;
    let linked = world.link(&world.plan(plan, ""));
    let given = world.engines[2].run(&linked, world.request(&Some(vec![1.0; 3]), 0)).result.unwrap();
    assert_eq!(given[0].len(), 0);
}
