//! Changes that are told, against trying them all.

use crate::asker::Asker;
use crate::draw::Drawn;
use crate::model::{self, Act, End, Node, Why};
use crate::reasons::seen;
use rankd_column::Value;
use rankd_engine::why::{AskedItem, Change, ChangePlace, NoChange};
use rankd_engine::{Linked, Request};
use rankd_tasks::tasks;
use std::sync::Arc;

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
            in_table(&mut json, &format!(r#""p{node}":{{"#), &at_least.to_string(), &to.to_string());
            *at_least = *to;
        }
        (Act::Score { factor }, "constant") => {
            let to = match to {
                Value::Int(to) => *to as f64,
                Value::Float(to) => *to,
                _ => return None,
            };
            in_table(&mut json, &format!(r#""e{node}":{{"#), &factor.to_string(), &to.to_string());
            *factor = to;
        }
        _ => return None,
    }
    Some((json, nodes))
}

/// Changes the number of the expression or predicate that begins like this. Each is that of the node with its number.
fn in_table(json: &mut String, begin: &str, from: &str, to: &str) {
    let start = json.find(begin).expect("it is in its table");
    let from = format!(r#""value":{from}}}"#);
    let at = start + json[start..].find(&from).expect("its number is there");
    json.replace_range(at..at + from.len(), &format!(r#""value":{to}}}"#));
}

/// Whether an item is in the answer of a plan.
fn answers(asker: &Asker, drawn: &Drawn, nodes: &[Node], id: i64) -> bool {
    let all = model::run(nodes, &asker.follows, (&drawn.needed, &drawn.lazy));
    all.last().and_then(Option::as_ref).is_some_and(|rows| rows.iter().any(|row| row.id == id))
}

/// Of the numbers of the node that dropped the best row, the one that is nearest to what it is now and brings the item in, by trying them all: every count
/// and every constant that can matter, and of what lets only so many rows pass, the steps that are tried.
fn nearest(asker: &Asker, drawn: &Drawn, end: &End, id: i64) -> Option<f64> {
    let End::Dropped { by, position, why } = end else { return None };
    let (by, position) = (*by, *position);
    let arg = |param| ChangePlace::Arg { node: by as u32, param };
    let more = |now: usize, steps: &[usize]| steps.iter().map(|step| (now + step) as i64).collect::<Vec<i64>>();
    let (place, from, tried): (ChangePlace, i64, Vec<i64>) = match (&drawn.nodes[by].act, why) {
        (Act::Take { count, .. }, Why::Cut { from, .. }) if position >= *from => {
            (arg("count"), *count as i64, (1..80).collect())
        }
        // Where it stands before the first row that is passed on, the first one is moved to it.
        (Act::Take { offset, .. }, Why::Cut { .. }) => (arg("offset"), *offset as i64, vec![position as i64]),
        (Act::Likes { at_least, .. }, _) => {
            let place = ChangePlace::Constant { node: by as u32, param: "pred", of: None, ix: 0, at: None };
            (place, *at_least, (-1..25).collect())
        }
        (Act::Cap { max, .. }, _) => (arg("max"), *max as i64, more(*max, &[1, 2, 4, 8])),
        (Act::Ensure { count }, Why::Enough(_)) => (arg("count"), *count as i64, more(*count, &[1, 2, 4, 8, 16])),
        _ => return None,
    };
    let relative = |to: &i64| (to - from).abs() as f64 / if from == 0 { 1.0 } else { from.abs() as f64 };
    let brings = |to: &&i64| {
        let changed = with_change(drawn, &place, &Value::Int(**to));
        **to != from && changed.is_some_and(|(_, nodes)| answers(asker, drawn, &nodes, id))
    };
    tried.iter().filter(brings).map(relative).min_by(f64::total_cmp)
}

/// What is told of a change holds: it works, in the real plan and in the model, and none of those that could be told of the same node is smaller.
pub(crate) fn check_change(asker: &Asker, drawn: &Drawn, (item, id): (&AskedItem, i64), told: &str) -> &'static str {
    // What is said of it was compared with the model before.
    let end = seen(&asker.registry, &item.rows.first().expect("it was dropped").end);
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
            if let Some(nearest) = nearest(asker, drawn, &end, id) {
                assert!(change.relative() <= nearest + 1e-9, "{change:?}, but {nearest} is nearer\n{told}");
            }
            "changed"
        }
        Err(NoChange::TwoDrops | NoChange::NotFound) => {
            assert_eq!(nearest(asker, drawn, &end, id), None, "there is a number\n{told}");
            "unchanged"
        }
        // On a busy machine there may be too little time.
        Err(NoChange::OutOfTime | NoChange::NotRead) => "not tried",
    }
}
