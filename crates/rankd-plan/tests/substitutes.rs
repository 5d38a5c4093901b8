//! What stands in for the rows of nodes: what a checked plan has of it, and that no accepted plan opens a filter.
//!
//! The second is tried on random plans by a model that goes through every set of nodes that fail: it knows which columns there are,
//! which cells are missing because of a failure, and whether rows are.

use rankd_plan::plan::{Plan, PlanDial, Substitute};
use rankd_plan::registry::Text;
use rankd_plan::signature::typed::{Dial, ParamType};
use rankd_plan::signature::*;
use rankd_plan::{Registry, Signatures, check};
use std::collections::BTreeSet;

const fn required(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, need: Need::Required, doc: "", uses: &[] }
}

const fn contract(
    inputs: Inputs,
    rows: RowEffect,
    reads: &'static [ParamRef],
    writes: Writes,
    params: &'static [Param],
) -> Contract {
    Contract { inputs, rows, reads, writes, params, cost: Cost::Unknown }
}

const KEY: ParamRef = ParamRef::named("key");
const OUT: ParamRef = ParamRef::named("out");
const ON: ParamRef = ParamRef::named("on");
const OUT_PARAM: Param = required("out", ParamKind::Key(KeyTypes::Any));
const KEY_PARAM: Param = required("key", ParamKind::Key(KeyTypes::Any));
const RHS: Param = required("rhs", ParamKind::Node);

static SOURCE: Contract = contract(Inputs::None, RowEffect::Source, &[], Writes::Params(&[OUT]), &[OUT_PARAM]);
/// Looks up a key for each row.
static LOOK_UP: Contract = contract(Inputs::One, RowEffect::Same, &[], Writes::Params(&[OUT]), &[OUT_PARAM]);
/// Computes a key from another.
static COMPUTE: Contract =
    contract(Inputs::One, RowEffect::Same, &[KEY], Writes::Params(&[OUT]), &[KEY_PARAM, OUT_PARAM]);
/// Drops rows by a key.
static FILTER: Contract = contract(Inputs::One, RowEffect::Fewer, &[KEY], Writes::Nothing, &[KEY_PARAM]);
/// Drops rows by the rows of another node.
static ONLY: Contract =
    contract(Inputs::One, RowEffect::Fewer, &[ON], Writes::Nothing, &[RHS, required("on", ParamKind::On)]);
static APPEND: Contract = contract(Inputs::One, RowEffect::Appended, &[], Writes::Nothing, &[RHS]);
static FAN_OUT: Contract =
    contract(Inputs::One, RowEffect::FanOut, &[KEY], Writes::Params(&[OUT]), &[KEY_PARAM, OUT_PARAM]);
static TURN: Contract = contract(
    Inputs::One,
    RowEffect::Same,
    &[],
    Writes::Nothing,
    &[required("count", ParamKind::Dial { min: 1, max: 100 })],
);

static TASKS: &[Signature] = &[
    Signature { op: "source", summary: "", contract: &SOURCE },
    Signature { op: "look_up", summary: "", contract: &LOOK_UP },
    Signature { op: "compute", summary: "", contract: &COMPUTE },
    Signature { op: "filter", summary: "", contract: &FILTER },
    Signature { op: "only", summary: "", contract: &ONLY },
    Signature { op: "append", summary: "", contract: &APPEND },
    Signature { op: "fan_out", summary: "", contract: &FAN_OUT },
    Signature { op: "turn", summary: "", contract: &TURN },
];

/// The keys besides the id; the last has a default.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

fn registry() -> Registry {
    let mut keys =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n"
            .to_owned();
    for (at, name) in KEYS.iter().enumerate() {
        let default = if *name == "d" { "default = 0\n" } else { "" };
        keys += &format!(
            "[[key]]\nkey_id = {}\nname = \"{name}\"\ntype = \"int\"\nnullable = true\ndoc = \"\"\n{default}",
            at + 2
        );
    }
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(&keys), text(""), text(""));
    assert!(problems.is_empty());
    registry
}

fn checked(nodes: &[String], outputs: &str) -> (Option<Plan>, Vec<&'static str>) {
    let text = format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{}],"outputs":[{outputs}]}}"#, nodes.join(","));
    let tasks = Signatures::new(TASKS.iter().copied()).expect("each op is there once");
    let checked = check(text.as_bytes(), &registry(), &tasks);
    let codes = checked.diagnostics.list().iter().map(|found| found.code.id()).collect();
    (checked.plan, codes)
}

fn node(id: &str, op: &str, inputs: &str, params: &str, more: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":[{inputs}],"params":{{{params}}}{more}}}"#)
}

#[test]
fn what_only_stands_in_is_lazy_and_comes_first() {
    let out = r#""out":"a""#;
    let nodes = [
        node("eager", "source", "", out, r#","fallback":{"node":"lazy"}"#),
        node("lazy", "look_up", r#""deep""#, out, ""),
        node("deep", "source", "", out, r#","fallback":{"node":"deeper"}"#),
        node("deeper", "source", "", out, r#","fallback":"none""#),
        node("both", "source", "", out, ""),
        node("end", "append", r#""eager""#, r#""rhs":"both""#, ""),
        node("other", "source", "", out, r#","fallback":{"node":"both"}"#),
        node("unread", "source", "", out, r#","fallback":{"node":"both"}"#),
    ];
    let (plan, codes) = checked(&nodes, r#""end","other""#);
    let plan = plan.expect("it is right");
    assert_eq!(codes, ["P602"]);
    let those = |is: fn(&rankd_plan::plan::Node) -> bool| -> Vec<&str> {
        plan.nodes.iter().filter(|node| is(node)).map(|node| &*node.id).collect()
    };
    assert_eq!(those(|node| node.lazy), ["lazy", "deep", "deeper"]);
    assert_eq!(those(|node| !node.needed), ["unread"]);
    assert_eq!(plan.nodes[0].fallback, Some(Substitute::Node(1)));
    let place = |id: &str| plan.order.iter().position(|at| &*plan.nodes[*at as usize].id == id).expect("it is there");
    for [first, later] in [["lazy", "eager"], ["deep", "lazy"], ["deeper", "deep"], ["both", "other"], ["eager", "end"]]
    {
        assert!(place(first) < place(later), "{first} comes before {later}");
    }
}

#[test]
fn dials_are_numbered_and_turn_by_their_numbers() {
    let nodes = [
        node("n0", "source", "", r#""out":"a""#, ""),
        node("n1", "turn", r#""n0""#, r#""count":{"dial":100,"min":20}"#, ""),
        node("n2", "turn", r#""n1""#, r#""count":7"#, ""),
        node("n3", "turn", r#""n2""#, r#""count":{"min":3,"dial":3}"#, ""),
    ];
    let plan = checked(&nodes, r#""n3""#).0.expect("it is right");
    let dial = |node, first, min| PlanDial { node, param: "count", first, min };
    assert_eq!(plan.dials, [dial(1, 100, 20), dial(3, 3, 3)]);
    let values = |dials: &[i64]| -> Vec<i64> {
        plan.nodes[1..].iter().map(|node| Dial::read(&node.args[0]).expect("it is a dial").at(dials)).collect()
    };
    assert_eq!(values(&[]), [100, 7, 3]);
    assert_eq!(values(&[60, 3]), [60, 7, 3]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a coarse guard of time")]
fn ten_thousand_nodes_that_stand_in_are_checked_in_time() {
    let started = std::time::Instant::now();
    let mut nodes = vec![node("n0", "source", "", r#""out":"a""#, "")];
    for at in (1..9_999).step_by(2) {
        let fallback = format!(r#","fallback":{{"node":"n{}"}}"#, at / 3 * 2);
        nodes.push(node(&format!("n{at}"), "source", "", r#""out":"a""#, &fallback));
        nodes.push(node(
            &format!("n{}", at + 1),
            "append",
            &format!(r#""n{}""#, at - 1),
            &format!(r#""rhs":"n{at}""#),
            "",
        ));
    }
    let (plan, codes) = checked(&nodes, r#""n9998""#);
    assert!(plan.is_some(), "{:?}", codes.first());
    assert!(started.elapsed().as_secs() < 60, "it took {:?}", started.elapsed());
}

/// A random node of the model. Inputs, rhs and substitutes are earlier nodes.
struct Made {
    op: &'static str,
    input: usize,
    rhs: usize,
    key: &'static str,
    out: &'static str,
    fallback: Fallback,
    fail_open: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Fallback {
    Never,
    NoRows,
    FirstInput,
    Node(usize),
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// The first ones more often, so that reads find what they need.
fn a_key(random: &mut Random) -> &'static str {
    KEYS[random.below(KEYS.len()).min(random.below(KEYS.len()))]
}

fn made(random: &mut Random) -> Vec<Made> {
    let mut nodes: Vec<Made> = Vec::new();
    for at in 0..3 + random.below(6) {
        let ops = ["source", "look_up", "look_up", "compute", "filter", "filter", "only", "append", "fan_out"];
        let op = if at == 0 { "source" } else { ops[random.below(ops.len())] };
        let fallback = match (random.below(3), op) {
            (0, "source" | "fan_out") => Fallback::NoRows,
            (0, "look_up" | "compute" | "append") => Fallback::FirstInput,
            (1, _) if at > 0 && random.below(3) == 0 => Fallback::Node(random.below(at)),
            _ => Fallback::Never,
        };
        let earlier = |random: &mut Random| if at == 0 { 0 } else { random.below(at) };
        nodes.push(Made {
            op,
            input: earlier(random),
            rhs: earlier(random),
            key: a_key(random),
            out: a_key(random),
            fallback,
            fail_open: random.below(8) == 0,
        });
    }
    nodes
}

impl Made {
    fn json(&self, at: usize) -> String {
        let (key, out, rhs) = (self.key, self.out, self.rhs);
        let params = match self.op {
            "source" | "look_up" => format!(r#""out":"{out}""#),
            "compute" | "fan_out" => format!(r#""key":"{key}","out":"{out}""#),
            "filter" => format!(r#""key":"{key}""#),
            "only" => format!(r#""rhs":"n{rhs}","on":{{"left":"{key}","right":"{out}"}}"#),
            _ => format!(r#""rhs":"n{rhs}""#),
        };
        let inputs = if self.op == "source" { String::new() } else { format!(r#""n{}""#, self.input) };
        let fallback = match self.fallback {
            Fallback::Never => return node(&format!("n{at}"), self.op, &inputs, &params, ""),
            Fallback::NoRows => r#""none""#.to_owned(),
            Fallback::FirstInput => r#""input""#.to_owned(),
            Fallback::Node(other) => format!(r#"{{"node":"n{other}"}}"#),
        };
        let reason = if self.fail_open { r#","fail_open":"why""# } else { "" };
        node(&format!("n{at}"), self.op, &inputs, &params, &format!(r#","fallback":{fallback}{reason}"#))
    }
}

/// The rows of a node in one run.
#[derive(Clone, Default)]
struct Rows {
    columns: BTreeSet<&'static str>,
    /// Keys of which cells are missing because of a failure.
    lost: BTreeSet<&'static str>,
    /// Whether rows are missing because of one.
    fewer: bool,
}

/// Runs a plan in which these nodes fail; whether some node drops rows by what is missing because of that.
fn opens_a_filter(nodes: &[Made], fails: impl Fn(usize) -> bool) -> bool {
    let mut given: Vec<Rows> = Vec::new();
    let mut opened = false;
    for (at, made) in nodes.iter().enumerate() {
        let input = if made.op == "source" { Rows::default() } else { given[made.input].clone() };
        let mut rows = input.clone();
        let fails = fails(at) && made.fallback != Fallback::Never;
        let write = |rows: &mut Rows, lost: bool| {
            rows.columns.insert(made.out);
            match lost && made.out != "d" {
                true => rows.lost.insert(made.out),
                false => rows.lost.remove(made.out),
            };
        };
        match made.op {
            _ if fails => {
                match made.fallback {
                    Fallback::Never | Fallback::FirstInput => {}
                    // Its columns are there.
                    Fallback::NoRows => {
                        rows = Rows { fewer: !made.fail_open, ..Rows::default() };
                        write(&mut rows, false);
                    }
                    Fallback::Node(other) => rows = given[other].clone(),
                }
                if made.fallback == Fallback::FirstInput && made.op == "append" {
                    rows.fewer |= !made.fail_open;
                } else if made.fallback == Fallback::FirstInput && !rows.columns.contains(made.out) {
                    let kept = rows.columns.clone();
                    write(&mut rows, !made.fail_open);
                    // The column is there for readers, but a later fallback to these rows finds no value, either.
                    rows.columns = kept;
                }
            }
            "source" | "look_up" => write(&mut rows, false),
            "compute" => {
                let lost = rows.lost.contains(made.key);
                write(&mut rows, lost);
            }
            "fan_out" => {
                let lost = input.lost.contains(made.key);
                rows = Rows { fewer: input.fewer || lost, ..Rows::default() };
                write(&mut rows, lost);
            }
            "filter" => opened |= input.lost.contains(made.key),
            "only" => {
                let right = &given[made.rhs];
                opened |= input.lost.contains(made.key) || right.fewer || right.lost.contains(made.out);
            }
            _ => {
                let right = &given[made.rhs];
                // Those that every row has.
                rows.columns.retain(|key| right.columns.contains(key));
                rows.lost.extend(&right.lost);
                rows.fewer |= right.fewer;
            }
        }
        given.push(rows);
    }
    opened
}

#[test]
fn no_accepted_plan_opens_a_filter_and_a_refused_one_would() {
    let mut random = Random(7);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..20_000 {
        let nodes = made(&mut random);
        let json: Vec<String> = nodes.iter().enumerate().map(|(at, made)| made.json(at)).collect();
        // All are outputs, so that nothing is unreachable.
        let outputs: Vec<String> = (0..nodes.len()).map(|at| format!(r#""n{at}""#)).collect();
        let (plan, codes) = checked(&json, &outputs.join(","));
        // Reads that nothing can satisfy, and nodes that stand in without the keys that are read, are other tests' business.
        if codes.iter().any(|code| !matches!(*code, "P810" | "P811" | "P702")) {
            continue;
        }
        let opens = (0..1_u32 << nodes.len()).any(|failing| opens_a_filter(&nodes, |at| failing >> at & 1 == 1));
        assert_eq!(plan.is_none(), opens, "round {round}: {codes:?}\n{}", json.join(",\n"));
        *(if opens { &mut refused } else { &mut accepted }) += 1;
    }
    assert!(accepted > 500 && refused > 100, "{accepted} plans are accepted and {refused} refused");
}
