//! Questions about items, on random plans of the real tasks: the verdict, every end of every row, the node that dropped it and the reason are those of a
//! model that goes row by row and remembers everything; and a change that is told does what it says, in the real plan and in the model, and none of those that
//! could have been told is smaller. To run one seed again: `RANKD_SEED=<seed> cargo test -p rankd-tasks --test why`.
//!
//! Reading order: `why/model.rs`, `why/draw.rs` (random plans), `why/asker.rs` (the engine), `why/reasons.rs` (what it says, in the model's words), `why/changes.rs`,
//! this file.

#[path = "why/asker.rs"]
mod asker;
#[path = "why/changes.rs"]
mod changes;
#[path = "why/draw.rs"]
mod draw;
#[path = "why/model.rs"]
mod model;
#[path = "why/reasons.rs"]
mod reasons;
mod rig;

use asker::Asker;
use changes::check_change;
use draw::{Dice, draw};
use model::End;
use rankd_column::Value;
use rankd_engine::why::{AskedItem, AskedPlan, Verdict};
use rankd_engine::{Request, Scheduler};
use rankd_tasks::tasks;
use reasons::seen;
use std::collections::HashMap;

const PLANS: u64 = 2_000;

fn verdict(ends: &[End]) -> Verdict {
    match ends.first() {
        Some(End::Answered { .. }) => Verdict::Answered,
        Some(End::Dropped { .. }) => Verdict::Dropped,
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
            if item.row_count == item.rows.len() {
                let mut found: Vec<End> = item.rows.iter().map(|row| seen(&asker.registry, &row.end)).collect();
                found.sort_unstable();
                assert_eq!(found, expected, "{told}");
                for reason in item.rows.iter().filter_map(|row| reasons::name(&row.end)) {
                    *counts.entry(reason).or_default() += 1;
                }
            }
            if item.verdict == Verdict::Dropped && plans % 4 == 0 {
                // By itself, because a question has only so many tries.
                let item = asker.ask(&plan, &[*id]).expect("it ran before").remove(0);
                *counts.entry(check_change(asker, &drawn, (&item, *id), &told)).or_default() += 1;
            }
        }
    }
    // Agreeing on nothing would be easy.
    assert!(seeds.len() == 1 || plans > PLANS, "{plans} plans");
    let verdicts = ["answered", "dropped", "expanded", "grouped", "never", "changed", "unchanged"];
    let reasons =
        ["predicate", "cut", "same", "full", "named", "not_named", "no_match", "enough", "fallback", "not_asked"];
    for (names, least) in [(&verdicts[..], 100), (&reasons[..], 20)] {
        for what in names {
            assert!(seeds.len() == 1 || counts.get(what).is_some_and(|count| *count > least), "{what}: {counts:?}");
        }
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
