//! Fused plans against plans as written: random plans of the real tasks give the same rows, the same errors at the same node
//! and place, and the same rows through each node, on every way of running them.

mod rig;

use rankd_column::{Key, RowSet, Value};
use rankd_engine::place::{Policy, Way};
use rankd_engine::trace::{End, Where};
use rankd_engine::{Linked, Scheduler};
use rankd_plan::Registry;
use rankd_plan::registry::Absent;
use rig::*;
use std::fmt::Write;
use std::sync::Arc;

/// A source of numbers that gives the same ones every time, and whether what is drawn may fail.
struct Dice(u64, bool);

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

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const FLOATS: &[&str] = &["score", "quality", "age_hours", "final_score"];
const INTS: &[&str] = &["likes", "views"];

/// A number: mostly harmless, now and then something that overflows or divides by zero on some rows.
fn number(dice: &mut Dice, depth: usize) -> String {
    let source = dice.below(40);
    match dice.below(if depth == 0 { 3 } else { 12 }) {
        0 => format!(r#"{{"op":"key_ref","key":"{}","source":{source}}}"#, dice.of(FLOATS)),
        1 => format!(r#"{{"op":"key_ref","key":"{}"}}"#, dice.of(FLOATS)),
        2 => format!(r#"{{"op":"const_number","value":{}}}"#, dice.below(5) as f64 - 1.5),
        3 => format!(
            r#"{{"op":"coalesce","a":{},"b":{},"source":{source}}}"#,
            number(dice, depth - 1),
            number(dice, depth - 1)
        ),
        4 => format!(r#"{{"op":"sigmoid","x":{}}}"#, number(dice, depth - 1)),
        5 | 6 if dice.1 => {
            format!(
                r#"{{"op":"div","a":{},"b":{},"source":{source}}}"#,
                number(dice, depth - 1),
                number(dice, depth - 1)
            )
        }
        _ => {
            let op = dice.of(&["add", "sub", "mul", "min", "max", "add", "mul"]);
            let (a, b) = (number(dice, depth - 1), number(dice, depth - 1));
            format!(r#"{{"op":"{op}","a":{a},"b":{b},"source":{source}}}"#)
        }
    }
}

/// An int: `likes` is large enough to overflow when it is multiplied.
fn int(dice: &mut Dice) -> String {
    let (a, b, source) = (dice.of(INTS), dice.of(INTS), dice.below(40));
    let op = dice.of(if dice.1 { &["add", "mul", "mul", "sub", "max"] } else { &["min", "max"] });
    let key = |key: &str| format!(r#"{{"op":"key_ref","key":"{key}"}}"#);
    format!(r#"{{"op":"{op}","a":{},"b":{},"source":{source}}}"#, key(a), key(b))
}

fn predicate(dice: &mut Dice) -> String {
    let compare = dice.of(&["<", "<=", ">", ">=", "!="]);
    match dice.below(5) {
        0 => format!(r#"{{"op":"regex","key":"country","pattern":{{"literal":"{}"}}}}"#, dice.of(&["U", "^D", "."])),
        1 => format!(r#"{{"op":"not_null","x":{}}}"#, number(dice, 0)),
        2 => format!(r#"{{"op":"in","lhs":{{"op":"key_ref","key":"topic"}},"list":["{}"]}}"#, dice.of(&["a", "b"])),
        _ => format!(r#"{{"op":"cmp","cmp":"{compare}","a":{},"b":{}}}"#, number(dice, 1), number(dice, 1)),
    }
}

/// Expressions and predicates by their names.
#[derive(Default)]
struct Tables {
    exprs: Vec<String>,
    preds: Vec<String>,
}

impl Tables {
    fn expr(&mut self, expr: String) -> String {
        self.exprs.push(format!(r#""e{}":{expr}"#, self.exprs.len()));
        format!(r#""e{}""#, self.exprs.len() - 1)
    }

    fn pred(&mut self, pred: String) -> String {
        self.preds.push(format!(r#""p{}":{pred}"#, self.preds.len()));
        format!(r#""p{}""#, self.preds.len() - 1)
    }
}

/// A node and the expression or predicate that it names.
fn node(dice: &mut Dice, ix: usize, table: &mut Tables) -> String {
    // Mostly a line, so that there is something to fuse. Of two branches that fail either may be first, so there a line only.
    let input = if dice.one_in(5) && !dice.1 { dice.below(ix) } else { ix - 1 };
    let (op, params) = match dice.below(12) {
        0..5 => match dice.below(4) {
            0 | 1 if dice.1 => ("vm", format!(r#""out_key":"{}","expr":{}"#, dice.of(INTS), table.expr(int(dice)))),
            0 => ("vm", format!(r#""out_key":"{}","expr":{}"#, dice.of(INTS), table.expr(int(dice)))),
            1 if dice.one_in(2) => {
                let text =
                    r#"{"op":"coalesce","a":{"op":"key_ref","key":"country"},"b":{"op":"const_string","value":"?"}}"#;
                ("vm", format!(r#""out_key":"{}","expr":{}"#, dice.of(&["topic", "country"]), table.expr(text.into())))
            }
            _ => ("vm", format!(r#""out_key":"{}","expr":{}"#, dice.of(FLOATS), table.expr(number(dice, 2)))),
        },
        5..8 => ("filter", format!(r#""pred":{}"#, table.pred(predicate(dice)))),
        8..10 => {
            let key = dice.of(&["score", "quality", "likes", "country", "id", "final_score"]);
            ("sort", format!(r#""key":"{key}","order":"{}""#, dice.of(&["asc", "desc"])))
        }
        10 => ("take", format!(r#""count":{}"#, [1, 7, 50, 900, 5000][dice.below(5)])),
        _ if dice.one_in(3) && !dice.1 => ("concat", format!(r#""rhs":"n{}""#, dice.below(ix))),
        _ => ("take", format!(r#""count":{}"#, 1 + dice.below(60))),
    };
    let hints = match dice.below(14) {
        0 => r#","scheduling":{"inline":false}"#,
        1 => r#","scheduling":{"cost_estimate_us":3}"#,
        2 => r#","timeout_ms":600000"#,
        _ => "",
    };
    let source = dice.below(40);
    format!(r#"{{"node_id":"n{ix}","op":"{op}","inputs":["n{input}"],"params":{{{params}}},"source":{source}{hints}}}"#)
}

fn plan(dice: &mut Dice) -> String {
    let rows = [0, 1, 40, 700, 1024, 3000][dice.below(6)];
    let wild = if dice.1 { 1i64 << 52 } else { 1000 };
    let mut nodes = format!(
        r#"{{"node_id":"n0","op":"fixed_source","inputs":[],"params":{{"row_count":{rows},"columns":{{
            "score":{{"hash":{{"seed":1}}}}, "quality":{{"hash":{{"seed":2}}}}, "likes":{{"hash":{{"seed":3,"modulus":{wild}}}}},
            "views":{{"sequence":{{"start":-20,"step":3}}}}, "age_hours":{{"cycle":[1.5,null,0,-3,8]}},
            "final_score":{{"cycle":[0.25,0.25,null]}}, "country":{{"cycle":["US","DE",null]}}, "topic":{{"cycle":["a","b","c"]}}}}}}}}"#
    );
    let count = 3 + dice.below(9);
    let mut tables = Tables::default();
    for ix in 1..count {
        write!(nodes, ",{}", node(dice, ix, &mut tables)).expect("writing to a string");
    }
    let other = if dice.one_in(4) { format!(r#","n{}""#, dice.below(count - 1)) } else { String::new() };
    let spans: Vec<String> = (0..40).map(|at| format!("[0,{},1,{},9]", at + 1, at + 1)).collect();
    let file = format!(r#"{{"path":"random.plan.ts","sha256":"{}"}}"#, "0".repeat(64));
    format!(
        r#"{{"schema_version":1,"plan_name":"random","nodes":[{nodes}],"outputs":["n{}"{other}],"expr_table":{{{}}},"pred_table":{{{}}},
            "sources":{{"files":[{file}],"spans":[{}]}}}}"#,
        count - 1,
        tables.exprs.join(","),
        tables.preds.join(","),
        spans.join(",")
    )
}

/// Everything that a caller can see of rows.
fn cells(rows: &RowSet) -> Vec<Vec<Value>> {
    let keys: Vec<Key> = [Key::ID].into_iter().chain(rows.batch().columns().iter().map(|(key, _)| *key)).collect();
    (0..rows.len()).map(|at| keys.iter().map(|key| rows.value(*key, at)).collect()).collect()
}

fn result(seen: &Seen) -> Result<Vec<Vec<Vec<Value>>>, String> {
    match &seen.result {
        Ok(outputs) => Ok(outputs.iter().map(cells).collect()),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// Whether some step of the plan looks at fewer rows than its nodes would by themselves.
fn takes_early(plan: &Linked) -> bool {
    let steps = plan.steps(Way::Fused);
    steps.order.iter().any(|ix| steps.step(*ix).pass.as_ref().is_some_and(|pass| pass.takes_early()))
}

/// The rows and keys through each node are those of the reference, and fused nodes name the one that they went into and follow each other.
fn check_trace(seen: &Seen, reference: &Seen) {
    let early = takes_early(&seen.plan);
    assert_eq!(seen.trace.nodes.len(), reference.trace.nodes.len());
    for wanted in &reference.trace.nodes {
        let found = seen.trace.nodes.iter().find(|record| record.node == wanted.node).expect("each node has a record");
        assert_eq!(found.end, End::Done);
        assert!(early || (found.rows_in, found.rows_out) == (wanted.rows_in, wanted.rows_out), "{found:?} {wanted:?}");
        assert_eq!((&found.keys_in, &found.keys_out), (&wanted.keys_in, &wanted.keys_out));
        if let Some(last) = found.fused_into {
            let last = seen.trace.nodes.iter().find(|record| record.node == last).expect("it is there");
            assert!(found.end_ns <= last.start_ns && found.on == last.on, "{found:?} {last:?}");
        }
        if let Some(before) = found.fused_after {
            let before = seen.trace.nodes.iter().find(|record| record.node == before).expect("it is there");
            assert_eq!((found.ready_ns, found.start_ns, found.queue_ns()), (before.end_ns, before.end_ns, None));
        }
    }
}

/// Runs a plan on every way of running it, each of which must give what the reference gives; that is given back.
fn agreed(linked: &Arc<Linked>, reference: &Rig, rigs: &[Rig], what: &str) -> Seen {
    let wanted = reference.run(linked, without_limits());
    for rig in rigs {
        let seen = rig.run(linked, without_limits());
        let (policy, rows) = (rig.engine.settings().policy, (&seen.result, &wanted.result));
        assert!(result(&seen) == result(&wanted), "{what}, {policy:?}\n{rows:?}");
        assert_eq!(seen.trace.failures, wanted.trace.failures, "{what}, {policy:?}");
        if wanted.result.is_ok() {
            check_trace(&seen, &wanted);
        }
    }
    wanted
}

fn rigs() -> (Rig, [Rig; 3]) {
    let policies = [(true, true), (false, true), (true, false)];
    let rigs = policies.map(|(inline, chaining)| Rig::with(Policy { inline, chaining, ..Policy::default() }));
    (Rig::start(Scheduler::Sequential, 1, Vec::new()), rigs)
}

#[test]
fn random_plans_give_the_same_with_nodes_fused_and_without() {
    let (reference, rigs) = rigs();
    let (mut fused, mut errors, mut early) = (0, 0, 0);
    for seed in 0..800 {
        let text = plan(&mut Dice(seed, seed % 2 == 0));
        let linked = reference.link(&text);
        fused += usize::from(linked.fused.is_some());
        early += usize::from(takes_early(&linked));
        let wanted = agreed(&linked, &reference, &rigs, &format!("seed {seed}\n{text}"));
        errors += usize::from(wanted.result.is_err());
    }
    assert!(fused > 500 && errors > 60 && early > 10, "{fused} fused, {errors} errors, {early} early");
}

/// The plan with other outputs, and the same plan with nodes that log their rows in their place.
fn with_logs(text: &str, nodes: &[usize]) -> (String, String) {
    let list: Vec<String> = nodes.iter().map(|ix| format!(r#""n{ix}""#)).collect();
    let (before, after) = text.split_once(r#""outputs":["#).expect("a plan has outputs");
    let shown = format!(r#"{before}"outputs":[{}{}"#, list.join(","), &after[after.find(']').expect("a list ends")..]);
    let logging = nodes.iter().fold(text.to_owned(), |text, ix| {
        text.replacen(&format!(r#""node_id":"n{ix}","#), &format!(r#""node_id":"n{ix}","log":["score","country"],"#), 1)
    });
    (shown, logging)
}

#[test]
fn what_random_plans_log_is_the_rows_of_each_node_and_changes_no_answer() {
    let (reference, rigs) = rigs();
    let (mut fused, mut rows) = (0, 0);
    for seed in (0..600).step_by(2) {
        // A line, so that every node is needed.
        let text = plan(&mut Dice(seed, true));
        let plain = reference.link(&text);
        let dice = &mut Dice(seed, false);
        let nodes: Vec<usize> = (0..plain.nodes.len()).filter(|_| dice.one_in(3)).collect();
        let (shown, logging) = with_logs(&text, &nodes);
        let (wanted, logging) = (reference.run(&plain, without_limits()), reference.link(&logging));
        fused += usize::from(logging.fused.is_some());
        let shown = (!nodes.is_empty()).then(|| reference.run(&reference.link(&shown), without_limits()));
        for rig in rigs.iter().chain([&reference]) {
            let seen = rig.run(&logging, without_limits());
            assert_eq!(result(&seen), result(&wanted), "seed {seed}");
            let of: Vec<usize> = seen.logged.iter().map(|(node, _)| *node as usize).collect();
            let outputs = match (&seen.result, &shown) {
                (Ok(_), Some(shown)) => {
                    assert_eq!(of, nodes, "seed {seed}");
                    shown.result.as_ref().expect("the nodes of a run that ended well end well")
                }
                (Ok(_), None) | (Err(_), _) => {
                    assert_eq!(of, [0; 0], "seed {seed}");
                    continue;
                }
            };
            for ((_, logged), output) in seen.logged.iter().zip(outputs) {
                rows += logged.len();
                let keys = [Key::ID].into_iter().chain(
                    ["score", "country"]
                        .map(|name| Key(reference.registry.keys.named(name).expect("the registry has the key"))),
                );
                for key in keys {
                    let of = |rows: &RowSet| (0..rows.len()).map(|at| rows.value(key, at)).collect::<Vec<_>>();
                    assert!(of(logged) == of(output), "seed {seed}, {key:?}\n{text}");
                }
            }
        }
    }
    assert!(fused > 100 && rows > 100_000, "{fused} fused, {rows} rows");
}

#[test]
fn rows_that_stand_in_for_those_of_a_node_are_not_logged() {
    let log = |node: String, more: &str| node.replacen(r#""op""#, &format!(r#""log":[]{more},"op""#), 1);
    Rig::on(EVERY, 2, |rig| {
        let struck = log(sleep("late", "s", 3_600_000), r#","timeout_ms":1,"fallback":"input""#);
        let plan = rig.plan(&[log(source("s", 3), ""), struck, log(vm("score", "late"), ""), vm("last", "score")]);
        let seen = rig.run(&plan, without_limits());
        let logged: Vec<(&str, usize)> =
            seen.logged.iter().map(|(node, rows)| (&*plan.node(*node).id, rows.len())).collect();
        assert_eq!(logged, [("s", 3), ("score", 3)]);
        // The same buffers, after a run that left something in them.
        let plain = rig.plan(&[log(source("s", 2), ""), log(vm("score", "s"), ""), vm("last", "score")]);
        assert_eq!(rig.run(&plain, without_limits()).logged.len(), 2);
        assert_eq!(rig.run(&rig.plan(&[source("s", 2), vm("last", "s")]), without_limits()).logged.len(), 0);
        let failed = rig.plan(&[log(source("s", 2), ""), failing_sleep("f", "s", 1)]);
        assert_eq!(rig.run(&failed, without_limits()).logged.len(), 0, "a run without an answer logs nothing");
        assert_eq!(rig.run(&plain, without_limits()).logged.len(), 2);
    });
}

/// The repository's registry with defaults for some keys; for all that may be null, unless others are to have no null and fail.
fn registry_with_rules(required: &[&str]) -> Registry {
    registry_with(|mut keys| {
        let mut rule = |name: &str, rule: &str| {
            let entry = keys.find(&format!("name = \"{name}\"\n")).expect("the registry has the key");
            let at = entry + keys[entry..].find("nullable = true").expect("it is nullable");
            keys.replace_range(at..at + "nullable = true".len(), rule);
        };
        if required.is_empty() {
            rule("age_hours", "nullable = true\ndefault = -1.0");
            rule("final_score", "nullable = false\ndefault = 0.5");
        }
        rule("country", "nullable = true\ndefault = \"??\"");
        rule("views", "nullable = false\ndefault = 7");
        required.iter().for_each(|name| rule(name, "nullable = false"));
        keys
    })
}

#[test]
fn random_plans_leave_no_null_where_a_default_or_a_value_has_to_be() {
    let (reference, rigs) = rigs();
    let defaults = registry_with_rules(&[]);
    let both = registry_with_rules(&["score", "quality", "likes", "topic"]);
    let (mut fused, mut rows, mut filled, mut refused) = (0, 0, 0, 0);
    for seed in 0..400 {
        // Where two branches may fail, either may be first; so only lines have keys that can make them fail.
        let line = seed % 2 == 0;
        let registry = if line { &both } else { &defaults };
        let text = plan(&mut Dice(seed, line));
        let linked = link(&text, registry);
        fused += usize::from(linked.fused.is_some());
        let seen = agreed(&linked, &reference, &rigs, &format!("seed {seed}\n{text}"));
        match &seen.result {
            Err(error) => refused += usize::from(error.code.id == "E506"),
            Ok(outputs) => {
                rows += usize::from(outputs.iter().any(|rows| !rows.is_empty()));
                for (key, rows) in
                    outputs.iter().flat_map(|rows| rows.batch().columns().iter().map(move |c| (c.0, rows)))
                {
                    let has_rule = registry.key(key).absent() != Absent::Null;
                    let nulls = (0..rows.len()).filter(|at| rows.value(key, *at) == Value::Null).count();
                    assert!(
                        !has_rule || nulls == 0,
                        "seed {seed}: {} has {nulls} nulls\n{text}",
                        registry.key(key).name
                    );
                    filled += usize::from(has_rule);
                }
            }
        }
    }
    assert!(fused > 250 && rows > 150 && filled > 500 && refused > 20, "{fused} {rows} {filled} {refused}");
}

fn ranking(rig: &Rig) -> Arc<Linked> {
    rig.plan(&[
        source("s", 100),
        vm("score", "s"),
        r#"{"node_id":"good","op":"filter","inputs":["score"],"params":{"pred":"ten_or_more"}}"#.into(),
        r#"{"node_id":"best","op":"sort","inputs":["good"],"params":{"key":"score","order":"desc"}}"#.into(),
        r#"{"node_id":"few","op":"take","inputs":["best"],"params":{"count":3}}"#.into(),
    ])
}

#[test]
fn a_ranking_is_one_step_and_its_trace_still_speaks_of_each_node() {
    let rig = Rig::with(Policy::default());
    let plan = ranking(&rig);
    let steps = plan.steps(Way::Fused);
    assert_eq!(steps.order.len(), 2, "the source and the rest");
    let seen = rig.run(&plan, without_limits());
    assert_eq!(seen.ids(), [100, 99, 98]);
    let rows: Vec<(u64, u64)> = seen.trace.nodes.iter().map(|record| (record.rows_in, record.rows_out)).collect();
    assert_eq!(rows, [(0, 100), (100, 100), (100, 81), (81, 81), (81, 3)]);
    let into: Vec<Option<u32>> = seen.trace.nodes.iter().map(|record| record.fused_into).collect();
    assert_eq!(into, [None, Some(4), Some(4), Some(4), None]);
    assert!(seen.trace.nodes.iter().all(|record| record.on == Where::Loop && record.critical));
    let after: Vec<Option<u32>> = seen.trace.nodes.iter().map(|record| record.fused_after).collect();
    assert_eq!(after, [None, None, Some(1), Some(2), Some(3)]);
}

#[test]
fn each_node_of_a_pass_has_the_time_that_went_into_it() {
    let rig = Rig::with(Policy::default());
    let plan = ranking(&rig);
    let seen = rig.run(&plan, without_limits());
    let fused = &seen.trace.nodes[1..];
    let took: Vec<u64> = fused.iter().map(|record| record.end_ns - record.start_ns).collect();
    // What is computed takes longer than the clock's resolution, and all of it together is the time of the step.
    assert!(took[0] > 0 && took[1] > 0, "{took:?}");
    assert_eq!(took.iter().sum::<u64>(), fused[3].end_ns - fused[0].start_ns);
}

#[test]
fn where_each_node_has_a_limit_each_runs_by_itself() {
    let rig = Rig::with(Policy::default());
    let seen = rig.run(&ranking(&rig), node_timeout(60_000));
    assert_eq!(seen.ids(), [100, 99, 98]);
    assert!(seen.trace.nodes.iter().all(|record| record.fused_into.is_none()));
}

#[test]
fn promises_about_one_node_are_borders() {
    let rig = Rig::with(Policy::default());
    let take = |id: &str, input: &str, hint: &str| {
        format!(r#"{{"node_id":"{id}","op":"take","inputs":["{input}"],"params":{{"count":5}}{hint}}}"#)
    };
    for hint in [r#","scheduling":{"inline":false}"#, r#","timeout_ms":5000"#] {
        let plan = rig.plan(&[source("s", 9), vm("v", "s"), take("t", "v", hint), vm("w", "t")]);
        assert!(plan.fused.is_none(), "{hint}");
    }
    // Two readers; and then a reader that is one of two.
    let plan = rig.plan(&[source("s", 9), vm("v", "s"), take("a", "v", ""), take("b", "v", ""), concat("c", "a", "b")]);
    assert!(plan.fused.is_none());
    let plan = rig.plan(&[source("s", 9), vm("v", "s"), vm("w", "v"), take("t", "w", "")]);
    assert_eq!(plan.steps(Way::Fused).order, [0, 3]);
    assert_eq!(plan.steps(Way::Fused).step(3).nodes, [1, 2, 3]);
}
