//! Questions about items, on random plans of the real tasks: the verdict, every end of every row and the node that dropped it are those of a
//! model that goes row by row and remembers everything; and a change that is told does what it says, in the real plan and in the model. To run one seed again: `RANKD_SEED=<seed> cargo test -p rankd-tasks --test why`.

#[path = "why/model.rs"]
mod model;
mod rig;

use model::{Act, End, Node, Row};
use rankd_column::{Id, Value};
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::why::{AskedItem, AskedPlan, Change, ChangePlace, NoChange, StoryEnd, Verdict};
use rankd_engine::{Engine, Linked, Request, Scheduler, Settings};
use rankd_plan::registry::Endpoint;
use rankd_plan::{Code, Plan, Registry, Severity, check};
use rankd_tasks::tasks;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

const PLANS: u64 = 2_000;
const COUNTRIES: [&str; 3] = ["DE", "US", "FR"];

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
}

/// A plan as JSON and as the model has it.
struct Drawn {
    json: String,
    nodes: Vec<Node>,
    /// By node: whether the output can need it.
    needed: Vec<bool>,
    /// By node: whether it runs only where another cannot do without it.
    lazy: Vec<bool>,
}

fn source(dice: &mut Dice) -> (String, Act) {
    let count = dice.below(12);
    let mut rows = Vec::new();
    for _ in 0..count {
        let likes = (!dice.one_in(6)).then(|| dice.below(20) as i64);
        let score = (!dice.one_in(6)).then(|| dice.below(8) as f64 / 4.0);
        let country = (!dice.one_in(6)).then(|| COUNTRIES[dice.below(3)]);
        rows.push(Row { id: 1 + dice.below(15) as i64, likes, score, country, way: Vec::new(), via: 0 });
    }
    let list = |of: &dyn Fn(&Row) -> String| rows.iter().map(of).collect::<Vec<_>>().join(",");
    let text = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
    let json = format!(
        r#""ids":[{}],"columns":{{"likes":[{}],"score":[{}],"country":[{}]}}"#,
        list(&|row| row.id.to_string()),
        list(&|row| text(row.likes.map(|likes| likes.to_string()))),
        list(&|row| text(row.score.map(|score| score.to_string()))),
        list(&|row| text(row.country.map(|country| format!("{country:?}")))),
    );
    (json, Act::Source(rows))
}

fn draw(dice: &mut Dice) -> Drawn {
    let (mut lines, mut nodes, mut lazy): (Vec<String>, Vec<Node>, Vec<bool>) = (Vec::new(), Vec::new(), Vec::new());
    let mut preds: Vec<String> = vec![
        r#""off":{"op":"cmp","cmp":">","a":{"op":"param_ref","param":"weight"},"b":{"op":"const_number","value":1}}"#
            .into(),
    ];
    let mut exprs: Vec<String> = Vec::new();
    let add = |lines: &mut Vec<String>,
               nodes: &mut Vec<Node>,
               lazy: &mut Vec<bool>,
               (op, inputs, params, more): (&str, &[usize], String, &str),
               (act, all_inputs): (Act, Vec<usize>)| {
        let at = nodes.len();
        let inputs: Vec<String> = inputs.iter().map(|input| format!("\"n{input}\"")).collect();
        lines.push(format!(
            r#"{{"node_id":"n{at}","op":"{op}","inputs":[{}],"params":{{{params}}}{more}}}"#,
            inputs.join(",")
        ));
        nodes.push(Node { inputs: all_inputs, act });
        lazy.push(false);
        at
    };
    for _ in 0..1 + dice.below(3) {
        let (params, act) = source(dice);
        add(&mut lines, &mut nodes, &mut lazy, ("fixed_source", &[], params, ""), (act, Vec::new()));
    }
    for _ in 0..1 + dice.below(12) {
        let at = nodes.len();
        let input = if dice.one_in(3) { dice.below(at) } else { at - 1 };
        let other = dice.below(at);
        let op = |lines: &mut Vec<String>,
                  nodes: &mut Vec<Node>,
                  lazy: &mut Vec<bool>,
                  op: &str,
                  params: String,
                  act: Act| {
            add(lines, nodes, lazy, (op, &[input], params, ""), (act, vec![input]));
        };
        match dice.below(17) {
            0 | 1 => {
                let at_least = dice.below(15) as i64;
                let (and_country, negated) = (dice.one_in(2).then(|| COUNTRIES[dice.below(3)]), dice.one_in(4));
                let mut pred = format!(
                    r#"{{"op":"cmp","cmp":">=","a":{{"op":"key_ref","key":"likes"}},"b":{{"op":"const_number","value":{at_least}}}}}"#
                );
                if let Some(country) = and_country {
                    pred = format!(
                        r#"{{"op":"and","a":{pred},"b":{{"op":"cmp","cmp":"==","a":{{"op":"key_ref","key":"country"}},"b":{{"op":"const_string","value":"{country}"}}}}}}"#
                    );
                }
                if negated {
                    pred = format!(r#"{{"op":"not","x":{pred}}}"#);
                }
                preds.push(format!(r#""p{at}":{pred}"#));
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "filter",
                    format!(r#""pred":"p{at}""#),
                    Act::Likes { at_least, and_country, negated },
                );
            }
            2 => {
                let factor = [0.5, 2.0, -1.0][dice.below(3)];
                exprs.push(format!(r#""e{at}":{{"op":"mul","a":{{"op":"key_ref","key":"likes"}},"b":{{"op":"const_number","value":{factor}}}}}"#));
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "vm",
                    format!(r#""out_key":"score","expr":"e{at}""#),
                    Act::Score { factor },
                );
            }
            3 | 4 => {
                let (by_score, descending) = (dice.one_in(2), dice.one_in(2));
                let (key, order) = (if by_score { "score" } else { "likes" }, if descending { "desc" } else { "asc" });
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "sort",
                    format!(r#""key":"{key}","order":"{order}""#),
                    Act::Sort { by_score, descending },
                );
            }
            5 | 6 => {
                let (count, offset) = (1 + dice.below(9), if dice.one_in(3) { dice.below(4) } else { 0 });
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "take",
                    format!(r#""count":{count},"offset":{offset}"#),
                    Act::Take { count, offset },
                );
            }
            7 => {
                let (max, window) = (1 + dice.below(2), [0, 2, 4][dice.below(3)]);
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "cap",
                    format!(r#""by":"country","max":{max},"window":{window}"#),
                    Act::Cap { max, window },
                );
            }
            8 | 9 => {
                let (by_country, best) = (dice.one_in(2), dice.one_in(2));
                let (by, keep) = (
                    if by_country { "country" } else { "id" },
                    if best { r#","keep":"best","score":"score""# } else { "" },
                );
                op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "dedup",
                    format!(r#""by":["{by}"]{keep}"#),
                    Act::Dedup { by_country, best },
                );
            }
            10 => {
                let in_turn = dice.one_in(2);
                let quota = if dice.one_in(2) { vec![dice.below(5), dice.below(5)] } else { Vec::new() };
                let how = if in_turn { "round_robin" } else { "append" };
                let quotas =
                    if quota.is_empty() { String::new() } else { format!(r#","quota":[{},{}]"#, quota[0], quota[1]) };
                add(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    ("merge", &[input, other], format!(r#""how":"{how}"{quotas}"#), ""),
                    (Act::Merge { quota, in_turn }, vec![input, other]),
                );
            }
            11 => {
                let params = format!(r#""rhs":"n{other}""#);
                let act = Act::Merge { quota: Vec::new(), in_turn: false };
                add(&mut lines, &mut nodes, &mut lazy, ("concat", &[input], params, ""), (act, vec![input, other]));
            }
            12 => {
                let kept = dice.one_in(2);
                let params = format!(r#""rows":"n{other}""#);
                add(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    (if kept { "only" } else { "exclude" }, &[input], params, ""),
                    (Act::Named { kept }, vec![input, other]),
                );
            }
            13 => {
                let rhs = add(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    ("dedup", &[other], r#""by":["id"]"#.into(), ""),
                    (Act::Dedup { by_country: false, best: false }, vec![other]),
                );
                let params = format!(r#""rhs":"n{rhs}","on":"id","keys":{{"country":"country"}},"how":"inner""#);
                add(&mut lines, &mut nodes, &mut lazy, ("join", &[input], params, ""), (Act::Join, vec![input, rhs]));
            }
            14 => match dice.one_in(2) {
                true => op(
                    &mut lines,
                    &mut nodes,
                    &mut lazy,
                    "group",
                    r#""by":["country"],"aggregate":{"likes":["count"]}"#.into(),
                    Act::Group,
                ),
                false => {
                    let fanout = 1 + dice.below(3);
                    op(
                        &mut lines,
                        &mut nodes,
                        &mut lazy,
                        "follow",
                        format!(r#""endpoint":"redis_default","fanout":{fanout}"#),
                        Act::Follow { fanout },
                    );
                }
            },
            15 => {
                let (params, act) = source(dice);
                let reserve =
                    add(&mut lines, &mut nodes, &mut lazy, ("fixed_source", &[], params, ""), (act, Vec::new()));
                lazy[reserve] = true;
                match dice.one_in(2) {
                    true => {
                        let count = 1 + dice.below(10);
                        let params = format!(r#""count":{count},"from":["n{reserve}"]"#);
                        add(
                            &mut lines,
                            &mut nodes,
                            &mut lazy,
                            ("ensure", &[input], params, ""),
                            (Act::Ensure { count }, vec![input, reserve]),
                        );
                    }
                    false => {
                        let more = format!(r#","timeout_ms":1,"fallback":{{"node":"n{reserve}"}}"#);
                        add(
                            &mut lines,
                            &mut nodes,
                            &mut lazy,
                            ("sleep", &[input], r#""duration_ms":3600000"#.into(), &more),
                            (Act::Struck { by_input: false }, vec![input, reserve]),
                        );
                    }
                }
            }
            _ => match dice.below(3) {
                0 => {
                    let more = r#","timeout_ms":1,"fallback":"input""#;
                    add(
                        &mut lines,
                        &mut nodes,
                        &mut lazy,
                        ("sleep", &[input], r#""duration_ms":3600000"#.into(), more),
                        (Act::Struck { by_input: true }, vec![input]),
                    );
                }
                1 => {
                    let more = r#","when":"off","otherwise":"input","fail_open":"as the test wants it""#;
                    add(
                        &mut lines,
                        &mut nodes,
                        &mut lazy,
                        ("take", &[input], r#""count":1"#.into(), more),
                        (Act::Skipped, vec![input]),
                    );
                }
                _ => op(&mut lines, &mut nodes, &mut lazy, "rank", r#""rank_key":"views""#.into(), Act::Same),
            },
        }
    }
    let output = nodes.len() - 1;
    let (needed, lazy) = model::needed(&nodes, &lazy);
    let mut json =
        format!(r#"{{"schema_version":1,"plan_name":"asked","nodes":[{}],"outputs":["n{output}"]"#, lines.join(","));
    let _ = write!(json, r#","expr_table":{{{}}},"pred_table":{{{}}}}}"#, exprs.join(","), preds.join(","));
    Drawn { json, nodes, needed, lazy }
}

struct Asker {
    engine: Engine,
    registry: Registry,
    follows: HashMap<i64, Vec<i64>>,
}

impl Asker {
    fn new(scheduler: Scheduler) -> Asker {
        let registry = rig::registry_with(|keys| keys);
        let follows: HashMap<i64, Vec<i64>> =
            (1..=15).step_by(2).map(|id| (id, (0..id % 4).map(|nth| 1 + (id * 7 + nth * 3) % 20).collect())).collect();
        let mut data = String::new();
        for (id, list) in &follows {
            let _ = writeln!(data, r#"{{"key":"follow:{id}","list":{list:?}}}"#);
        }
        let data = Arc::new(Data::parse(&data).expect("good data"));
        let open = |endpoint: &Endpoint| {
            Arc::new(MemoryEndpoint::new(&endpoint.name, data.clone(), Vec::new())) as Arc<dyn Open>
        };
        let endpoints = registry.endpoints.list().iter().map(open).collect();
        let settings = Settings { scheduler, loops: 1, cpu_threads: 1, ..Settings::default() };
        Asker { engine: Engine::start(settings, endpoints).expect("threads can be started"), registry, follows }
    }

    /// Nothing for a plan that must not be: it reads what groups and new rows do not have, or by rows that may be left out.
    fn check(&self, json: &str) -> Option<Plan> {
        let checked = check(json.as_bytes(), &self.registry, tasks().signatures());
        let errors = checked.diagnostics.list().iter().filter(|found| found.code.severity() == Severity::Error);
        let unforeseen =
            errors.filter(|found| !matches!(found.code, Code::OpensFilter | Code::NeverWritten)).collect::<Vec<_>>();
        assert!(unforeseen.is_empty(), "{json}\n{unforeseen:?}");
        checked.plan
    }

    /// Nothing where weather has left no row, which is a failure.
    fn ask(&self, plan: &Plan, ids: &[i64]) -> Option<Vec<AskedItem>> {
        let asked = AskedPlan::link(plan, &tasks(), &self.registry).expect("a checked plan can be linked");
        let request = asked.request(Request { user_id: 1.into(), ..Request::new(&self.registry) });
        let outcome = self.engine.run(asked.linked(), request.clone());
        if let Err(error) = &outcome.result {
            assert_eq!(error.code.id, "E302", "{error}");
        }
        let ids: Vec<Id> = ids.iter().copied().map(Id::Int).collect();
        let (items, _) = asked.items(plan, &self.registry, &request, &outcome, &ids);
        outcome.result.is_ok().then_some(items)
    }
}

/// The plan with one number changed, as the engine and as the model has it; nothing for numbers that the model does not know.
fn with_change(drawn: &Drawn, place: &ChangePlace, to: &Value) -> Option<(String, Vec<Node>)> {
    let mut nodes: Vec<Node> =
        drawn.nodes.iter().map(|node| Node { inputs: node.inputs.clone(), act: node.act.clone() }).collect();
    let whole = |value: &Value| if let Value::Int(value) = value { usize::try_from(*value).ok() } else { None };
    let (node, name) = match place {
        ChangePlace::Arg { node, param } => (*node as usize, *param),
        ChangePlace::Constant { node, .. } => (*node as usize, "constant"),
        ChangePlace::Param(_) => return None,
    };
    let mut json = drawn.json.clone();
    let mut in_node = |from: String, to: String| {
        let start = json.find(&format!(r#"{{"node_id":"n{node}","#)).expect("the node is there");
        let at = start + json[start..].find(&from).expect("its number is there");
        json.replace_range(at..at + from.len(), &to);
    };
    match (&mut nodes[node].act, name) {
        (Act::Take { count, .. } | Act::Ensure { count }, "count") => {
            let to = whole(to)?;
            in_node(format!(r#""count":{count}"#), format!(r#""count":{to}"#));
            *count = to;
        }
        (Act::Take { offset, .. }, "offset") => {
            let to = whole(to)?;
            in_node(format!(r#""offset":{offset}"#), format!(r#""offset":{to}"#));
            *offset = to;
        }
        (Act::Cap { max, .. }, "max") => {
            let to = whole(to)?;
            in_node(format!(r#""max":{max}"#), format!(r#""max":{to}"#));
            *max = to;
        }
        (Act::Likes { at_least, .. }, "constant") => {
            let Value::Int(to) = to else { return None };
            // Each predicate is that of the node with its number.
            let start = json.find(&format!(r#""p{node}":{{"#)).expect("the predicate is there");
            let from = format!(r#""value":{at_least}}}"#);
            let at = start + json[start..].find(&from).expect("its number is there");
            json.replace_range(at..at + from.len(), &format!(r#""value":{to}}}"#));
            *at_least = *to;
        }
        _ => return None,
    }
    Some((json, nodes))
}

/// Whether an item is in the answer of a plan.
fn answers(asker: &Asker, drawn: &Drawn, nodes: &[Node], id: i64) -> bool {
    let all = model::run(nodes, &asker.follows, (&drawn.needed, &drawn.lazy));
    all.last().and_then(Option::as_ref).is_some_and(|rows| rows.iter().any(|row| row.id == id))
}

/// Of all numbers of the node that dropped the best row, the one that is nearest to what it is now and brings the item in, by trying them all.
fn nearest(asker: &Asker, drawn: &Drawn, by: usize, id: i64) -> Option<f64> {
    let tried: Vec<(ChangePlace, i64, Vec<i64>)> = match &drawn.nodes[by].act {
        Act::Take { count, .. } => {
            vec![(ChangePlace::Arg { node: by as u32, param: "count" }, *count as i64, (1..80).collect())]
        }
        Act::Likes { at_least, .. } => {
            let place = ChangePlace::Constant { node: by as u32, param: "pred", of: None, ix: 0, at: None };
            vec![(place, *at_least, (-1..25).collect())]
        }
        _ => return None,
    };
    let relative = |from: i64, to: i64| (to - from).abs() as f64 / if from == 0 { 1.0 } else { from.abs() as f64 };
    let found = tried.into_iter().flat_map(|(place, from, values)| {
        let brings = move |to: &i64| {
            *to != from
                && with_change(drawn, &place, &Value::Int(*to))
                    .is_some_and(|(_, nodes)| answers(asker, drawn, &nodes, id))
        };
        values.into_iter().filter(brings).map(move |to| relative(from, to)).collect::<Vec<_>>()
    });
    found.min_by(f64::total_cmp)
}

/// What is told of a change holds: it works, in the real plan and in the model, and none of the same node's numbers works that is nearer.
fn check_change(asker: &Asker, drawn: &Drawn, (item, id): (&AskedItem, i64), told: &str) -> &'static str {
    let by = match item.rows.first().map(|row| &row.end) {
        Some(StoryEnd::Dropped(dropped)) => dropped.by as usize,
        _ => return "other",
    };
    match item.change.as_ref().expect("a number was looked for") {
        Ok(change @ Change { place, to, .. }) => {
            if let Some((json, nodes)) = with_change(drawn, place, to) {
                assert!(answers(asker, drawn, &nodes, id), "{change:?} does not work in the model\n{told}");
                let plan = asker.check(&json).unwrap_or_else(|| unreachable!("{change:?} gives no plan\n{told}"));
                let linked = Arc::new(Linked::link(&plan, &tasks(), &asker.registry).expect("it can be linked"));
                let request = Request { user_id: 1.into(), ..Request::new(&asker.registry) };
                let outputs =
                    asker.engine.run(&linked, request).result.unwrap_or_else(|error| unreachable!("{error}\n{told}"));
                assert!(outputs.iter().any(|rows| rows.ids().any(|row| row == id)), "{change:?} does not work\n{told}");
            }
            if let Some(nearest) = nearest(asker, drawn, by, id) {
                assert!(change.relative() <= nearest + 1e-9, "{change:?}, but {nearest} is nearer\n{told}");
            }
            "changed"
        }
        Err(NoChange::TwoDrops | NoChange::NotFound) => {
            assert_eq!(nearest(asker, drawn, by, id), None, "there is a number\n{told}");
            "unchanged"
        }
        // On a busy machine there may be too little time.
        Err(NoChange::OutOfTime | NoChange::NotRead) => "not tried",
    }
}

/// An end as the model has it.
fn seen(end: &StoryEnd) -> End {
    match end {
        StoryEnd::Answered { position, .. } => End::Answered { position: *position },
        StoryEnd::Dropped(dropped) => End::Dropped(dropped.by as usize),
        StoryEnd::Expanded { by, children } => End::Expanded(*by as usize, children.expect("the task says it")),
        StoryEnd::Grouped { by } => End::Grouped(*by as usize),
        StoryEnd::Aside { .. } => End::Aside,
        StoryEnd::Failed => unreachable!("the run did not fail"),
    }
}

fn verdict(ends: &[End]) -> Verdict {
    match ends.first() {
        Some(End::Answered { .. }) => Verdict::Answered,
        Some(End::Dropped(_)) => Verdict::Dropped,
        Some(End::Expanded(..)) => Verdict::Expanded,
        Some(End::Grouped(_)) => Verdict::Grouped,
        Some(End::Aside) | None => Verdict::Never,
    }
}

#[test]
fn two_thousand_random_plans_tell_of_every_row_what_a_model_remembers() {
    // Pools keep a thread for a wait that nobody waits for any more, and these wait for an hour.
    let askers = [Asker::new(Scheduler::Async), Asker::new(Scheduler::Sequential)];
    let asked = std::env::var_os("RANKD_SEED").map(|seed| vec![seed.to_string_lossy().parse().expect("a seed")]);
    let seeds: Vec<u64> = asked.unwrap_or_else(|| (0..2 * PLANS).collect());
    let mut plans = 0;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for seed in &seeds {
        let asker = &askers[*seed as usize % askers.len()];
        let drawn = draw(&mut Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1)));
        let all = model::run(&drawn.nodes, &asker.follows, (&drawn.needed, &drawn.lazy));
        let Some(plan) = asker.check(&drawn.json) else { continue };
        let ids: Vec<i64> = (1..=20).collect();
        let Some(items) = asker.ask(&plan, &ids) else {
            assert!(all.last().is_some_and(|rows| rows.as_ref().is_some_and(Vec::is_empty)), "seed {seed}");
            continue;
        };
        plans += 1;
        if plans > PLANS {
            break;
        }
        for (id, item) in ids.iter().zip(items) {
            let expected = model::ends(&drawn.nodes, &all, *id, &asker.follows);
            let told = format!("seed {seed}, item {id}: {item:?}\nexpected {expected:?}\n{}", drawn.json);
            assert_eq!(item.verdict, verdict(&expected), "{told}");
            assert_eq!(item.row_count, expected.len(), "{told}");
            *counts.entry(item.verdict.name()).or_default() += 1;
            if item.verdict == Verdict::Dropped && plans % 4 == 0 {
                *counts.entry(check_change(asker, &drawn, (&item, *id), &told)).or_default() += 1;
            }
            if item.row_count == item.rows.len() {
                let mut found: Vec<End> = item.rows.iter().map(|row| seen(&row.end)).collect();
                found.sort_unstable();
                assert_eq!(found, expected, "{told}");
            }
        }
    }
    // Agreeing on nothing would be easy.
    assert!(seeds.len() == 1 || plans > PLANS, "{plans} plans");
    for verdict in ["answered", "dropped", "expanded", "grouped", "never", "changed", "unchanged"] {
        assert!(seeds.len() == 1 || counts.get(verdict).is_some_and(|count| *count > 100), "{verdict}: {counts:?}");
    }
}

/// What the last of a plan's rows are, for a look at a story.
fn story(nodes: &str, tables: &str, id: i64) -> AskedItem {
    let asker = Asker::new(Scheduler::Sequential);
    let last = nodes.rsplit("\"node_id\":\"").next().and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let json = format!(r#"{{"schema_version":1,"plan_name":"asked","nodes":[{nodes}],"outputs":["{last}"]{tables}}}"#);
    let plan = asker.check(&json).expect("a good plan");
    asker.ask(&plan, &[id]).expect("rows").remove(0)
}

#[test]
fn a_run_that_is_asked_about_keeps_a_limited_number_of_rows_and_bytes() {
    let asker = Asker::new(Scheduler::Sequential);
    let error = |nodes: &[String], expr: &str| {
        let (output, nodes) = (nodes.len() - 1, nodes.join(","));
        let json =
            format!(r#"{{"schema_version":1,"plan_name":"asked","nodes":[{nodes}],"outputs":["n{output}"]{expr}}}"#);
        let plan = asker.check(&json).expect("a good plan");
        let asked = AskedPlan::link(&plan, &tasks(), &asker.registry).expect("a checked plan can be linked");
        let request = asked.request(Request { user_id: 1.into(), ..Request::new(&asker.registry) });
        let error = asker.engine.run(asked.linked(), request).result.err();
        error.map(|error| (error.code.id, error.message.clone()))
    };
    let source = |rows: usize| {
        format!(
            r#"{{"node_id":"n0","op":"fixed_source","inputs":[],"params":{{"row_count":{rows},"columns":{{"likes":{{"sequence":{{"start":0,"step":1}}}}}}}}}}"#
        )
    };
    let twice = r#"{"node_id":"n1","op":"concat","inputs":["n0"],"params":{"rhs":"n0"}}"#.to_owned();
    assert_eq!(error(&[source(50_000), twice.clone()], ""), None);
    let (code, message) = error(&[source(50_001), twice], "").expect("100,002 rows are too many");
    assert!(code == "E608" && message.contains("100002 rows"), "{code} {message}");
    // Each node makes a column of 720,000 bytes.
    let scores = (1..=110).map(|at| {
        let input = at - 1;
        format!(r#"{{"node_id":"n{at}","op":"vm","inputs":["n{input}"],"params":{{"out_key":"score","expr":"e"}}}}"#)
    });
    let nodes: Vec<String> = [source(90_000)].into_iter().chain(scores).collect();
    let expr =
        r#","expr_table":{"e":{"op":"mul","a":{"op":"key_ref","key":"likes"},"b":{"op":"const_number","value":0.5}}}"#;
    let (code, message) = error(&nodes, expr).expect("79 MB are too many");
    assert!(code == "E608" && message.contains("67108864 bytes"), "{code} {message}");
    assert_eq!(error(&nodes[..80], expr), None);
}

#[test]
fn a_source_tells_what_it_gave_and_a_path_what_was_written() {
    let item = story(
        r#"{"node_id":"a","op":"fixed_source","inputs":[],"params":{"ids":[7,8],"columns":{"likes":[3,4]}}},
           {"node_id":"b","op":"vm","inputs":["a"],"params":{"out_key":"score","expr":"e"}},
           {"node_id":"c","op":"sort","inputs":["b"],"params":{"key":"score","order":"desc"}}"#,
        r#","expr_table":{"e":{"op":"mul","a":{"op":"key_ref","key":"likes"},"b":{"op":"const_number","value":0.5}}}"#,
        7,
    );
    let row = &item.rows[0];
    assert_eq!((item.verdict, row.source.position), (Verdict::Answered, 0));
    assert_eq!(row.source.columns.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), [Value::Int(3)]);
    let steps: Vec<_> = row.path.iter().map(|step| (step.node, step.before, step.after, step.written.len())).collect();
    assert_eq!(steps, [(1, Some(0), Some(0), 1), (2, Some(0), Some(1), 0)]);
    let score: Vec<_> = row.score.iter().map(|part| (part.depth, part.text.as_str(), part.value.clone())).collect();
    assert_eq!(
        score,
        [
            (0, "score", Some(Value::Float(1.5))),
            (1, "likes * 0.5", Some(Value::Float(1.5))),
            (2, "likes", Some(Value::Int(3))),
            (2, "0.5", Some(Value::Float(0.5))),
        ]
    );
}
