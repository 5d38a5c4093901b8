//! Random plans, each as JSON for the engine and as the model has it.

use crate::model::{self, Act, Node, Row};
use std::fmt::Write;

const COUNTRIES: [&str; 3] = ["DE", "US", "FR"];

pub(crate) struct Dice(pub(crate) u64);

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
pub(crate) struct Drawn {
    pub(crate) json: String,
    pub(crate) nodes: Vec<Node>,
    /// By node: whether the output can need it.
    pub(crate) needed: Vec<bool>,
    /// By node: whether it runs only where another cannot do without it.
    pub(crate) lazy: Vec<bool>,
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

pub(crate) fn draw(dice: &mut Dice) -> Drawn {
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
