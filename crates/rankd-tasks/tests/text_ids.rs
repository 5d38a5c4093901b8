//! Ids that are texts against ids that are ints: random plans of the real tasks give the same rows and the same errors when each int
//! is written as a text of 19 digits, on every scheduler. Texts of one length are ordered as the numbers are, so plans may sort and
//! compare by ids; they do not calculate with them.
//!
//! To run one seed again: `RANKD_SEED=<seed> cargo test -p rankd-tasks --test text_ids`.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

mod rig;

use rankd_column::{Batch, Cells, Column, Id, IdDictionary, IdTexts, Key, RowSet, Value};
use rankd_engine::request::Candidates;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::{Engine, Outcome, Request, Scheduler, Settings};
use rankd_plan::Registry;
use rankd_plan::registry::Endpoint;
use rig::{link, registry_with};
use std::fmt::Write;
use std::sync::Arc;

const PLANS: u64 = 10_000;
/// Ids of users and of media are below these.
const USERS: usize = 40;
const MEDIA: usize = 300;

/// The id that stands for an int where ids are texts.
fn text_of(id: i64) -> String {
    format!("{id:019}")
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// One of the two worlds, which differ in nothing but their ids.
#[derive(Clone, Copy, PartialEq)]
enum World {
    Ints,
    Texts,
}

impl World {
    /// An id as it stands in JSON.
    fn json(self, id: usize) -> String {
        match self {
            World::Ints => id.to_string(),
            World::Texts => format!("\"{}\"", text_of(id as i64)),
        }
    }

    /// An id in an expression.
    fn constant(self, id: usize) -> String {
        let op = if self == World::Ints { "const_number" } else { "const_string" };
        format!(r#"{{"op":"{op}","value":{}}}"#, self.json(id))
    }

    /// An id in a key.
    fn key(self, prefix: &str, id: usize) -> String {
        format!("{prefix}:{}", self.json(id).trim_matches('"'))
    }

    fn registry(self) -> Registry {
        registry_with(|keys| match self {
            World::Ints => keys,
            World::Texts => {
                let is_id = |key: &str| key.contains("name = \"id\"\n") || key.contains("name = \"parent_id\"\n");
                let keys = keys.split("[[key]]").map(|key| match is_id(key) {
                    true => key.replace("type = \"int\"", "type = \"string\""),
                    false => key.to_owned(),
                });
                keys.collect::<Vec<_>>().join("[[key]]")
            }
        })
    }

    /// Lists with an element here and there that is no id, and hashes with holes.
    fn data(self) -> Data {
        let (mut text, dice) = (String::new(), &mut Dice(7));
        let mut list = |name: &str, of: usize, most: usize, dice: &mut Dice| {
            for id in 0..if name == "media" { MEDIA } else { USERS } {
                let elements: Vec<String> = (0..dice.below(most))
                    .map(|_| match dice.below(12) {
                        0 => "\"no\\tid\"".to_owned(),
                        _ => self.json(dice.below(of)),
                    })
                    .collect();
                if dice.below(8) > 0 {
                    writeln!(text, r#"{{"key":"{}","list":[{}]}}"#, self.key(name, id), elements.join(",")).unwrap();
                }
            }
        };
        list("follow", USERS, 12, dice);
        list("recommendation", USERS, 6, dice);
        list("media", MEDIA, 9, dice);
        for (prefix, count) in [("user", USERS), ("media_info", MEDIA)] {
            for id in (0..count).filter(|id| id % 7 != 3) {
                let likes = if dice.below(9) == 0 { "\"many\"".to_owned() } else { dice.below(50).to_string() };
                let fields = format!(
                    r#""country":"{}","title":"t{}","likes":{likes},"parent_id":{}"#,
                    dice.of(&["DE", "US", "é"]),
                    dice.below(5),
                    self.json(dice.below(MEDIA))
                );
                writeln!(text, r#"{{"key":"{}","hash":{{{fields}}}}}"#, self.key(prefix, id)).unwrap();
            }
        }
        Data::parse(&text).unwrap()
    }

    fn request(self, seed: u64, registry: &Registry) -> Request {
        let dice = &mut Dice(seed ^ 0xABCD);
        let user = dice.below(USERS) as i64;
        let mut ids: Vec<i64> = (0..dice.below(12)).map(|_| dice.below(MEDIA) as i64).collect();
        // One request in so many has an id twice.
        if dice.below(10) > 0 {
            ids.sort_unstable();
            ids.dedup();
            ids.reverse();
        }
        let likes = ids.iter().map(|id| (id % 3 > 0).then_some(id % 17)).collect();
        let batch = match self {
            World::Ints => Batch::new(ids),
            World::Texts => {
                let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
                let codes = ids.iter().map(|id| texts.code(&text_of(*id)).unwrap()).collect();
                Batch::with_ids(codes, Some(texts))
            }
        };
        let batch = batch.with(Key(registry.keys.named("likes").unwrap()), Arc::new(Column::Int(likes)));
        let user_id = if self == World::Ints { Id::Int(user) } else { Id::from(&*text_of(user)) };
        Request { user_id, candidates: Some(Candidates::new(RowSet::new(batch))), ..Request::new(registry) }
    }

    fn engine(self, scheduler: Scheduler, registry: &Registry) -> Engine {
        let data = Arc::new(self.data());
        let open = |endpoint: &Endpoint| {
            Arc::new(MemoryEndpoint::new(&endpoint.name, data.clone(), Vec::new())) as Arc<dyn Open>
        };
        let endpoints = registry.endpoints.list().iter().map(open).collect();
        Engine::start(Settings { scheduler, loops: 2, cpu_threads: 2, ..Settings::default() }, endpoints).unwrap()
    }
}

/// A plan in the making: the same for both worlds, but for the ids that it names.
struct Draft {
    world: World,
    dice: Dice,
    nodes: Vec<String>,
    /// By node: the keys that its rows can have.
    keys: Vec<Vec<&'static str>>,
    exprs: Vec<String>,
    preds: Vec<String>,
    fails: bool,
}

const ALL: [&str; 7] = ["id", "parent_id", "likes", "country", "title", "score", "views"];

impl Draft {
    fn plan(seed: u64, world: World) -> String {
        let (nodes, keys, exprs, preds) = Default::default();
        let mut draft = Draft { world, dice: Dice(seed), nodes, keys, exprs, preds, fails: false };
        let count = 1 + draft.dice.below(9);
        (0..count).for_each(|at| draft.add(at));
        let mut outputs = vec![format!("\"n{}\"", count - 1)];
        if count > 2 && draft.dice.below(4) == 0 {
            outputs.push(format!("\"n{}\"", draft.dice.below(count - 1)));
        }
        format!(
            r#"{{"schema_version":1,"plan_name":"random","nodes":[{}],"outputs":[{}],"expr_table":{{{}}},"pred_table":{{{}}}}}"#,
            draft.nodes.join(","),
            outputs.join(","),
            draft.exprs.join(","),
            draft.preds.join(",")
        )
    }

    fn push(&mut self, op: &str, input: Option<usize>, params: &str, keys: Vec<&'static str>) {
        let (at, input) = (self.nodes.len(), input.map(|input| format!("\"n{input}\"")).unwrap_or_default());
        let node = format!(r#"{{"node_id":"n{at}","op":"{op}","inputs":[{input}],"params":{{{params}}}}}"#);
        self.nodes.push(node);
        self.keys.push(keys);
    }

    fn add(&mut self, at: usize) {
        if at == 0 || self.dice.below(6) == 0 {
            return self.add_source();
        }
        let input = at - 1 - self.dice.below(at.min(3));
        let mut keys = self.keys[input].clone();
        let endpoint = r#""endpoint":"redis_default""#;
        match self.dice.below(18) {
            0..4 => {
                let op = self.dice.of(&["follow", "media", "recommendation"]);
                let mut params = format!(r#"{endpoint},"fanout":{}"#, 1 + self.dice.below(8));
                let carried: Vec<&str> =
                    keys.into_iter().filter(|key| ["likes", "views", "title"].contains(key)).collect();
                let mut keys = vec!["id", "parent_id"];
                if !carried.is_empty() && self.dice.below(2) == 0 {
                    let carried = self.dice.of(&carried);
                    write!(params, r#","carry":["{carried}"]"#).unwrap();
                    keys.push(carried);
                }
                self.push(op, Some(input), &params, keys);
            }
            16..18 => {
                let right = self.dice.below(at);
                let on = match self.dice.below(3) {
                    0 if keys.contains(&"parent_id") => r#""parent_id""#,
                    1 if self.keys[right].contains(&"parent_id") => r#"{"left":"id","right":"parent_id"}"#,
                    _ => r#"{"left":"id","right":"id"}"#,
                };
                let from = if self.keys[right].contains(&"parent_id") { "parent_id" } else { "id" };
                let how = self.dice.of(&["left", "inner"]);
                let params = format!(r#""rhs":"n{right}","keys":{{"{from}":"parent_id"}},"on":{on},"how":"{how}""#);
                keys.push("parent_id");
                self.push("join", Some(input), &params, keys);
            }
            4..7 => {
                let prefix = self.dice.of(&["user", "media_info"]);
                let wanted: Vec<&str> = ALL[1..5].iter().copied().filter(|_| self.dice.below(2) == 0).collect();
                let wanted = if wanted.is_empty() { vec!["likes"] } else { wanted };
                let names: Vec<String> = wanted.iter().map(|name| format!("\"{name}\"")).collect();
                let params = format!(r#"{endpoint},"prefix":"{prefix}","keys":[{}]"#, names.join(","));
                keys.extend(wanted);
                self.push("hydrate", Some(input), &params, keys);
            }
            7..9 => {
                let pred = self.predicate(&keys);
                self.push("filter", Some(input), &format!(r#""pred":{pred}"#), keys);
            }
            9..12 => {
                let (key, order) = (self.dice.of(&keys), self.dice.of(&["asc", "desc"]));
                self.push("sort", Some(input), &format!(r#""key":"{key}","order":"{order}""#), keys);
            }
            12 => {
                let count = 1 + self.dice.below(19);
                self.push("take", Some(input), &format!(r#""count":{count}"#), keys);
            }
            13 => {
                let right = self.dice.below(at);
                keys.retain(|key| self.keys[right].contains(key));
                self.push("concat", Some(input), &format!(r#""rhs":"n{right}""#), keys);
            }
            _ => self.add_vm(input, keys),
        }
    }

    fn add_source(&mut self) {
        match self.dice.below(4) {
            0 => self.push("viewer", None, r#""endpoint":"redis_default""#, ALL.to_vec()),
            1 => self.push("candidates", None, "", ALL.to_vec()),
            _ => {
                let count = self.dice.below(25);
                let ids: Vec<usize> = match self.dice.below(2) {
                    0 => (1..=count).collect(),
                    _ => (0..count).map(|_| self.dice.below(USERS)).collect(),
                };
                let list = |ids: &[usize]| ids.iter().map(|id| self.world.json(*id)).collect::<Vec<_>>().join(",");
                let parents = ids.iter().map(|id| id * 31 % MEDIA).collect::<Vec<_>>();
                let params = format!(
                    r#""ids":[{}],"columns":{{"parent_id":[{}],"views":{{"sequence":{{"start":3,"step":2}}}}}}"#,
                    list(&ids),
                    list(&parents)
                );
                self.push("fixed_source", None, &params, vec!["id", "parent_id", "views"]);
            }
        }
    }

    /// A column: a number, or an id put elsewhere. One in a plan may overflow.
    fn add_vm(&mut self, input: usize, mut keys: Vec<&'static str>) {
        let key = |name: &str| format!(r#"{{"op":"key_ref","key":"{name}"}}"#);
        let number = if keys.contains(&"likes") { "likes" } else { "views" };
        let (out, expr) = match self.dice.below(5) {
            0 if keys.contains(&"parent_id") => {
                ("parent_id", format!(r#"{{"op":"coalesce","a":{},"b":{}}}"#, key("parent_id"), key("id")))
            }
            1 => ("parent_id", key("id")),
            2 | 3 if !self.fails && keys.contains(&number) => {
                self.fails = true;
                let huge = r#"{"op":"const_number","value":500000000000000000}"#;
                ("views", format!(r#"{{"op":"mul","a":{},"b":{huge}}}"#, key(number)))
            }
            _ if keys.contains(&number) => {
                ("score", format!(r#"{{"op":"div","a":{},"b":{{"op":"const_number","value":4}}}}"#, key(number)))
            }
            _ => ("parent_id", self.world.constant(5)),
        };
        let at = self.exprs.len();
        self.exprs.push(format!(r#""e{at}":{expr}"#));
        keys.push(out);
        self.push("vm", Some(input), &format!(r#""out_key":"{out}","expr":"e{at}""#), keys);
    }

    /// Something that some rows have; ids are compared with ids.
    fn predicate(&mut self, keys: &[&'static str]) -> String {
        let ids: Vec<&str> = keys.iter().copied().filter(|key| ["id", "parent_id"].contains(key)).collect();
        let (a, b) = (self.dice.of(&ids), self.dice.of(&ids));
        let compare = self.dice.of(&["<", "<=", ">", ">=", "==", "!="]);
        let key = |name: &str| format!(r#"{{"op":"key_ref","key":"{name}"}}"#);
        let pred = match self.dice.below(4) {
            0 => {
                let constant = self.world.constant(self.dice.below(MEDIA));
                format!(r#"{{"op":"cmp","cmp":"{compare}","a":{},"b":{constant}}}"#, key(a))
            }
            1 => {
                let list: Vec<String> = (0..20).map(|_| self.world.json(self.dice.below(USERS))).collect();
                format!(r#"{{"op":"in","lhs":{},"list":[{}]}}"#, key(a), list.join(","))
            }
            2 => format!(r#"{{"op":"not_null","x":{}}}"#, key(a)),
            _ => format!(r#"{{"op":"cmp","cmp":"{compare}","a":{},"b":{}}}"#, key(a), key(b)),
        };
        let at = self.preds.len();
        self.preds.push(format!(r#""p{at}":{pred}"#));
        format!("\"p{at}\"")
    }
}

/// All that an answer says, with ids as the other world writes them where they are ints.
fn shown(outcome: &Outcome, registry: &Registry, world: World) -> String {
    let mut shown = String::new();
    match &outcome.result {
        Err(error) => {
            let message = match (world, error.message.split_once(" id ")) {
                (World::Ints, Some((before, rest))) => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    let id = rest[..end].parse().map_or(String::new(), text_of);
                    format!("{before} id {id:?}{}", &rest[end..])
                }
                _ => error.message.clone(),
            };
            let node = error.node.as_ref().map(|node| &node.id);
            write!(shown, "{} {message} {node:?}", error.code).unwrap();
        }
        Ok(outputs) => {
            let parent = Key(registry.keys.named("parent_id").unwrap());
            for rows in outputs {
                let keys = rows.batch().columns().iter().map(|(key, _)| *key);
                let keys: Vec<Key> = [Key::ID].into_iter().chain(keys).collect();
                writeln!(shown, "{} rows of {keys:?}", rows.len()).unwrap();
                for at in 0..rows.len() {
                    for key in &keys {
                        let value = match rows.value(*key, at) {
                            Value::Int(id) if *key == Key::ID || *key == parent => Value::str(&text_of(id)),
                            value => value,
                        };
                        write!(shown, "{value} ").unwrap();
                    }
                    shown.push('\n');
                }
            }
        }
    }
    shown
}

#[test]
fn ten_thousand_random_plans_give_the_same_with_texts_for_ids() {
    let worlds = [World::Ints, World::Texts].map(|world| (world, world.registry()));
    let [(ints, int_registry), (texts, text_registry)] = &worlds;
    let with_ints = ints.engine(Scheduler::Sequential, int_registry);
    let with_texts = rig::EVERY.iter().map(|scheduler| texts.engine(*scheduler, text_registry));
    let with_texts: Vec<Engine> = with_texts.collect();
    let asked = std::env::var_os("RANKD_SEED").map(|seed| vec![seed.to_string_lossy().parse().unwrap()]);
    let seeds: Vec<u64> = asked.unwrap_or_else(|| (0..PLANS).collect());
    let (mut rows, mut failures) = (0, 0);
    for &seed in &seeds {
        let plan = link(&Draft::plan(seed, *ints), int_registry);
        let outcome = with_ints.run(&plan, ints.request(seed, int_registry));
        match &outcome.result {
            Ok(outputs) => rows += outputs.iter().map(RowSet::len).sum::<usize>(),
            Err(_) => failures += 1,
        }
        let expected = shown(&outcome, int_registry, *ints);
        let text = Draft::plan(seed, *texts);
        let plan = link(&text, text_registry);
        let engine = &with_texts[seed as usize % with_texts.len()];
        let found = engine.run(&plan, texts.request(seed, text_registry));
        let found = shown(&found, text_registry, *texts);
        assert_eq!(found, expected, "seed {seed} on {}: {text}", engine.settings().scheduler.name());
    }
    // Agreeing on nothing would be easy.
    assert!(seeds.len() == 1 || (rows > 50_000 && failures > 200), "{rows} rows and {failures} failures");
}

#[test]
fn a_run_meets_only_so_many_texts() {
    let registry = World::Texts.registry();
    let engine = World::Texts.engine(Scheduler::Async, &registry);
    let plan = |count: usize| {
        let node = format!(r#"{{"node_id":"n","op":"fixed_source","inputs":[],"params":{{"row_count":{count}}}}}"#);
        link(&format!(r#"{{"schema_version":1,"plan_name":"many","nodes":[{node}],"outputs":["n"]}}"#), &registry)
    };
    let run = |count| engine.run(&plan(count), World::Texts.request(1, &registry)).result;
    assert_eq!(run(100_000).unwrap()[0].value(Key::ID, 99_999), Value::str("100000"));
    assert_eq!(run(1_500_000).unwrap_err().code.id, "E507");
    // What one run has met is not kept for the next.
    assert_eq!(run(900_000).unwrap()[0].len(), 900_000);
    assert_eq!(run(900_000).unwrap()[0].len(), 900_000);
}

#[test]
fn the_ids_of_a_run_are_ints_only_where_the_registry_says_so() {
    let (int_registry, text_registry) = (World::Ints.registry(), World::Texts.registry());
    let text = r#"{"schema_version":1,"plan_name":"c","nodes":[{"node_id":"n","op":"candidates","inputs":[]}],"outputs":["n"]}"#;
    let rows = |registry| {
        let engine = World::Ints.engine(Scheduler::Async, registry);
        let rows = RowSet::new(Batch::new(vec![7, -3]).with(Key(9), Arc::new(Column::Int(Cells::full(vec![1, 2])))));
        let candidates = Some(Candidates::new(rows));
        engine.run(&link(text, registry), Request { candidates, ..Request::new(registry) }).result.unwrap().remove(0)
    };
    let (ints, texts) = (rows(&int_registry), rows(&text_registry));
    assert_eq!((ints.value(Key::ID, 0), ints.batch().id_texts().is_some()), (Value::Int(7), false));
    // An int is the id that its digits are.
    assert_eq!([0, 1].map(|at| texts.value(Key::ID, at)), ["7", "-3"].map(Value::str));
    assert_eq!(texts.value(Key(9), 1), Value::Int(2), "columns stay with their rows");
}
