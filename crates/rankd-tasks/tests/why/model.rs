//! Plans and what they do to rows, in the plainest way there is: row by row, and every row with its whole way so far.
//!
//! Knows no part of the engine. A node is a line of JSON for the engine and an [`Act`] for the model.

use std::collections::HashMap;

/// A row: its values, and where it has been, from the node that made it on.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) likes: Option<i64>,
    pub(crate) score: Option<f64>,
    pub(crate) country: Option<&'static str>,
    /// Node by node: which input it came in by, and its position among the rows that came out.
    pub(crate) way: Vec<(usize, usize, usize)>,
    /// The input that it comes in by, while a node is at work.
    pub(crate) via: usize,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Source(Vec<Row>),
    Likes {
        at_least: i64,
        and_country: Option<&'static str>,
        negated: bool,
    },
    Score {
        factor: f64,
    },
    Sort {
        by_score: bool,
        descending: bool,
    },
    Take {
        count: usize,
        offset: usize,
    },
    Cap {
        max: usize,
        window: usize,
    },
    Dedup {
        by_country: bool,
        best: bool,
    },
    Merge {
        quota: Vec<usize>,
        in_turn: bool,
    },
    Named {
        kept: bool,
    },
    Join,
    Group,
    Follow {
        fanout: usize,
    },
    Ensure {
        count: usize,
    },
    /// Weather strikes it: its input stands in for it, or its second one.
    Struck {
        by_input: bool,
    },
    /// Its condition does not hold, and its input stands in for it, or else does.
    Skipped,
    /// It passes its rows on.
    Same,
}

pub(crate) struct Node {
    pub(crate) inputs: Vec<usize>,
    pub(crate) act: Act,
}

/// How a row ended, and the node that ended it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Answered { position: usize },
    Dropped { by: usize, position: usize, why: Why },
    Expanded(usize, usize),
    Grouped(usize),
    Aside,
}

/// Why a node did not pass a row on. Values are texts, null among them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The parts of a predicate, each with its depth and its value, and whether it makes the predicate false.
    Predicate(Vec<(usize, &'static str, String, bool)>),
    /// The positions that are passed on; by what rows are ordered, with its value and that of the last row that was passed on.
    Cut {
        from: usize,
        to: usize,
        score: Option<(&'static str, String, String)>,
    },
    /// The key and its value, and the row that was passed on with that: its id and its position.
    Same {
        by: &'static str,
        value: String,
        kept: (i64, usize),
    },
    /// The same of a rule that lets so many pass, and the rows that did.
    Full {
        value: String,
        max: usize,
        window: usize,
        kept: Vec<(i64, usize)>,
    },
    Named {
        id: i64,
        among: usize,
    },
    NotNamed {
        id: i64,
        among: usize,
    },
    NoMatch {
        id: i64,
        among: usize,
    },
    Enough(usize),
    Fallback,
    NotAsked,
}

/// A value as a text.
pub(crate) fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// What came out of each node; nothing for one that did not run.
pub(crate) type Rows = Vec<Option<Vec<Row>>>;

/// Which nodes the output, the last one, can need, and which of them only as a reserve or to step in for another. `spare` are those that
/// may be such.
pub(crate) fn needed(nodes: &[Node], spare: &[bool]) -> (Vec<bool>, Vec<bool>) {
    let mut needed = vec![false; nodes.len()];
    let mut lazy = spare.to_vec();
    needed[nodes.len() - 1] = true;
    lazy[nodes.len() - 1] = false;
    for at in (0..nodes.len()).rev() {
        let is_needed = needed[at];
        for (input, node) in nodes[at].inputs.iter().enumerate().filter(|_| is_needed) {
            needed[*node] = true;
            lazy[*node] &= input == 1 && matches!(nodes[at].act, Act::Ensure { .. } | Act::Struck { by_input: false });
        }
    }
    (needed, lazy)
}

pub(crate) fn run(nodes: &[Node], follows: &HashMap<i64, Vec<i64>>, (needed, lazy): (&[bool], &[bool])) -> Rows {
    let mut all: Rows = vec![None; nodes.len()];
    for at in 0..nodes.len() {
        if lazy[at] || !needed[at] {
            continue;
        }
        // What a reserve or a stand-in gives is needed only now.
        let mut wanted: Vec<usize> = match nodes[at].act {
            Act::Ensure { count } if all[nodes[at].inputs[0]].as_ref().is_some_and(|rows| rows.len() < count) => {
                vec![nodes[at].inputs[1]]
            }
            Act::Struck { by_input: false } => vec![nodes[at].inputs[1]],
            _ => Vec::new(),
        };
        wanted.retain(|node| all[*node].is_none());
        for node in wanted {
            all[node] = Some(came_out(node, nodes, &all, follows));
        }
        all[at] = Some(came_out(at, nodes, &all, follows));
    }
    all
}

fn came_out(at: usize, nodes: &[Node], all: &Rows, follows: &HashMap<i64, Vec<i64>>) -> Vec<Row> {
    let node = &nodes[at];
    let input = |input: usize| {
        let mut rows = all[node.inputs[input]].clone().unwrap_or_default();
        rows.iter_mut().for_each(|row| row.via = input);
        rows
    };
    let mut rows: Vec<Row> = match &node.act {
        Act::Source(rows) => rows.clone(),
        Act::Same | Act::Skipped | Act::Struck { by_input: true } => input(0),
        Act::Struck { by_input: false } => input(1),
        Act::Likes { at_least, and_country, negated } => input(0)
            .into_iter()
            .filter(|row| {
                let likes = row.likes.is_some_and(|likes| likes >= *at_least);
                let country = and_country.is_none_or(|country| row.country == Some(country));
                (likes && country) != *negated
            })
            .collect(),
        Act::Score { factor } => {
            let scored = |row: Row| Row { score: row.likes.map(|likes| likes as f64 * factor), ..row };
            input(0).into_iter().map(scored).collect()
        }
        Act::Sort { by_score, descending } => {
            let mut rows = input(0);
            let key = |row: &Row| if *by_score { row.score } else { row.likes.map(|likes| likes as f64) };
            rows.sort_by(|a, b| match (key(a), key(b)) {
                (Some(a), Some(b)) if *descending => b.total_cmp(&a),
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            rows
        }
        Act::Take { count, offset } => input(0).into_iter().skip(*offset).take(*count).collect(),
        Act::Cap { max, window } => {
            let mut kept: Vec<Row> = Vec::new();
            for row in input(0) {
                let from = if *window == 0 { 0 } else { kept.len().saturating_sub(window - 1) };
                let alike = |other: &&Row| row.country.is_some() && other.country == row.country;
                if kept[from..].iter().filter(alike).count() < *max {
                    kept.push(row);
                }
            }
            kept
        }
        Act::Dedup { by_country, best } => {
            let mut kept: Vec<Row> = Vec::new();
            for row in input(0) {
                let alike = |other: &&mut Row| match by_country {
                    true => row.country.is_some() && other.country == row.country,
                    false => other.id == row.id,
                };
                match kept.iter_mut().find(alike) {
                    None => kept.push(row),
                    Some(other) if *best && row.score > other.score => *other = row,
                    Some(_) => {}
                }
            }
            kept
        }
        Act::Merge { quota, in_turn } => {
            let lists: Vec<Vec<Row>> = (0..node.inputs.len())
                .map(|at| input(at).into_iter().take(quota.get(at).copied().unwrap_or(usize::MAX)).collect())
                .collect();
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            match in_turn {
                true => {
                    (0..longest).flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn).cloned())).collect()
                }
                false => lists.concat(),
            }
        }
        Act::Named { kept } => {
            let others = input(1);
            input(0).into_iter().filter(|row| others.iter().any(|other| other.id == row.id) == *kept).collect()
        }
        Act::Join => {
            let others = input(1);
            let matched = |row: Row| {
                let other = others.iter().find(|other| other.id == row.id)?;
                Some(Row { country: other.country, ..row })
            };
            input(0).into_iter().filter_map(matched).collect()
        }
        Act::Group => {
            let mut groups: Vec<Row> = Vec::new();
            for row in input(0) {
                match groups.iter_mut().find(|group| group.country == row.country) {
                    Some(group) => group.likes = group.likes.map(|count| count + 1),
                    None => groups.push(Row { likes: Some(1), score: None, way: Vec::new(), ..row }),
                }
            }
            groups
        }
        Act::Follow { fanout } => {
            let none = Vec::new();
            let children =
                |row: &Row| follows.get(&row.id).unwrap_or(&none).iter().take(*fanout).copied().collect::<Vec<i64>>();
            let child = |id| Row { id, likes: None, score: None, country: None, way: Vec::new(), via: 0 };
            input(0).iter().flat_map(children).map(child).collect()
        }
        Act::Ensure { count } => {
            let mut rows = input(0);
            if rows.len() < *count {
                for row in input(1) {
                    if rows.len() < *count && rows.iter().all(|other| other.id != row.id) {
                        rows.push(row);
                    }
                }
            }
            rows
        }
    };
    rows.iter_mut().enumerate().for_each(|(position, row)| row.way.push((at, row.via, position)));
    rows
}

/// Every end of every row with an id. The last node is the output.
pub(crate) fn ends(nodes: &[Node], all: &Rows, id: i64, follows: &HashMap<i64, Vec<i64>>) -> Vec<End> {
    let mut ends = Vec::new();
    let output = nodes.len() - 1;
    let live = live(nodes, all);
    for (at, rows) in all.iter().enumerate() {
        for row in rows.iter().flatten().filter(|row| row.id == id) {
            let own = ends.len();
            if at == output {
                ends.push(End::Answered { position: row.way[row.way.len() - 1].2 });
            }
            let mut went_on = false;
            for (reader, node) in nodes.iter().enumerate().filter(|(reader, _)| live[*reader]) {
                for input in (0..node.inputs.len()).filter(|input| node.inputs[*input] == at) {
                    let came_out = all[reader].iter().flatten();
                    let goes_on = came_out.clone().any(|later| {
                        later.way.len() == row.way.len() + 1
                            && later.way.starts_with(&row.way)
                            && later.way[row.way.len()].1 == input
                    });
                    let is_aside = matches!(node.act, Act::Named { .. } | Act::Join) && input == 1;
                    match &node.act {
                        _ if is_aside => ends.push(End::Aside),
                        // It stands there to step in, and is no input.
                        Act::Struck { by_input: true } | Act::Struck { by_input: false } if input == 1 => {
                            went_on |= goes_on
                        }
                        Act::Follow { fanout } => {
                            let children = follows.get(&row.id).map_or(0, |list| list.len().min(*fanout));
                            ends.push(End::Expanded(reader, children));
                        }
                        Act::Group => ends.push(End::Grouped(reader)),
                        _ if goes_on => went_on = true,
                        _ => {
                            let position = row.way[row.way.len() - 1].2;
                            let why = why(nodes, all, (reader, input), row);
                            ends.push(End::Dropped { by: reader, position, why });
                        }
                    }
                }
            }
            if ends.len() == own && !went_on {
                ends.push(End::Aside);
            }
        }
    }
    ends.sort_unstable();
    ends
}

/// Why a node did not pass on a row of one of its inputs.
fn why(nodes: &[Node], all: &Rows, (reader, input): (usize, usize), row: &Row) -> Why {
    let node = &nodes[reader];
    let position = row.way[row.way.len() - 1].2;
    let came_in = all[node.inputs[input]].as_ref().expect("the row is there");
    let came_out = all[reader].as_ref().expect("the node is live");
    // Rows that came out of this node, with their places.
    let out = |is_meant: &dyn Fn(&Row) -> bool| -> Vec<(i64, usize)> {
        came_out.iter().enumerate().filter(|(_, row)| is_meant(row)).map(|(at, row)| (row.id, at)).collect()
    };
    let twin = || out(&|other| other.id == row.id).first().copied();
    let cut = |from: usize, to: usize| {
        let sorted = row.way.iter().rev().find_map(|(node, ..)| match nodes[*node].act {
            Act::Sort { by_score, .. } => Some(by_score),
            _ => None,
        });
        let last = to.checked_sub(1).and_then(|last| came_in.get(last));
        let score = sorted.zip(last).map(|(by_score, last)| match by_score {
            true => ("score", shown(row.score), shown(last.score)),
            false => ("likes", shown(row.likes), shown(last.likes)),
        });
        Why::Cut { from, to, score }
    };
    match &node.act {
        Act::Likes { at_least, and_country, negated } => {
            Why::Predicate(predicate(row, *at_least, *and_country, *negated))
        }
        Act::Take { count, offset } => cut(*offset, offset + count),
        Act::Merge { quota, .. } => cut(0, quota[input]),
        Act::Cap { max, window } => {
            // Those that had come out when it was this row's turn.
            let earlier = out(&|other| {
                let way = &other.way[..other.way.len() - 1];
                other.country == row.country && way.last().is_some_and(|at| at.2 < position)
            });
            let kept = earlier[earlier.len() - max..].to_vec();
            Why::Full { value: shown(row.country), max: *max, window: *window, kept }
        }
        Act::Dedup { by_country: true, .. } => {
            Why::Same { by: "country", value: shown(row.country), kept: out(&|other| other.country == row.country)[0] }
        }
        Act::Dedup { by_country: false, .. } => {
            Why::Same { by: "id", value: row.id.to_string(), kept: twin().expect("it was kept") }
        }
        Act::Named { kept: false } => Why::Named { id: row.id, among: node.inputs[1] },
        Act::Named { kept: true } => Why::NotNamed { id: row.id, among: node.inputs[1] },
        Act::Join => Why::NoMatch { id: row.id, among: node.inputs[1] },
        Act::Ensure { count } => {
            match (all[node.inputs[0]].as_ref().is_some_and(|rows| rows.len() >= *count), twin()) {
                (true, _) => Why::NotAsked,
                (false, Some(kept)) => Why::Same { by: "id", value: row.id.to_string(), kept },
                (false, None) => Why::Enough(*count),
            }
        }
        Act::Struck { .. } => Why::Fallback,
        Act::Source(_)
        | Act::Score { .. }
        | Act::Sort { .. }
        | Act::Group
        | Act::Follow { .. }
        | Act::Skipped
        | Act::Same => {
            unreachable!("node {reader} drops no row")
        }
    }
}

/// The parts of a predicate, from the top down and from left to right.
fn predicate(
    row: &Row,
    at_least: i64,
    and_country: Option<&'static str>,
    negated: bool,
) -> Vec<(usize, &'static str, String, bool)> {
    let (likes, country) =
        (row.likes.is_some_and(|likes| likes >= at_least), and_country.map(|country| row.country == Some(country)));
    let whole = likes && country.unwrap_or(true);
    let mut parts = Vec::new();
    if negated {
        parts.push((0, "not", (!whole).to_string(), false));
    }
    let mut depth = usize::from(negated);
    if country.is_some() {
        parts.push((depth, "and", whole.to_string(), false));
        depth += 1;
    }
    // What is to blame is what would have to be the other way round.
    parts.push((depth, "cmp", likes.to_string(), likes == negated));
    parts.push((depth + 1, "likes", shown(row.likes), false));
    parts.push((depth + 1, "literal", at_least.to_string(), false));
    if let Some((country, holds)) = and_country.zip(country) {
        parts.push((depth, "cmp", holds.to_string(), holds == negated));
        parts.push((depth + 1, "country", shown(row.country), false));
        parts.push((depth + 1, "literal", country.to_owned(), false));
    }
    parts
}

/// The nodes that the answer is made of.
fn live(nodes: &[Node], all: &Rows) -> Vec<bool> {
    let mut live = vec![false; nodes.len()];
    live[nodes.len() - 1] = true;
    for at in (0..nodes.len()).rev().filter(|at| all[*at].is_some()) {
        if live[at] {
            let inputs = match nodes[at].act {
                Act::Ensure { count } if all[nodes[at].inputs[0]].as_ref().is_some_and(|rows| rows.len() >= count) => 1,
                Act::Struck { by_input: true } => 1,
                _ => nodes[at].inputs.len(),
            };
            nodes[at].inputs[..inputs].iter().for_each(|input| live[*input] = true);
        }
    }
    live
}
