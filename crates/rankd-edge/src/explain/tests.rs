//! What an explanation says of fallbacks, conditions and lazy nodes. How plans run is explained to the tests of the program.

use crate::explain::{Explanation, Form};
use crate::test_plan::{checked, outcome, plan, registry};
use rankd_engine::{Linked, Outcome, Policy, Scheduler};

fn explain<T>(analyzed: Option<&Outcome>, told: impl Fn(&Explanation<'_>) -> T) -> T {
    let plan: Linked = plan(&registry());
    let (scheduler, policy) = (Scheduler::Async, &Policy::default());
    told(&Explanation { plan: &plan, scheduler, policy, limits_nodes: false, analyzed, experiments: None })
}

fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part}\n{text}"));
}

#[test]
fn programs_are_told_what_stands_in_for_a_node_and_when_it_runs() {
    let json = explain(None, |told| told.to_json());
    has(
        &json,
        &[
            r#"{"node":"n0","op":"source","label":"the \u0007 first","inputs":[],"fallback":"none"}"#,
            r#"{"node":"n1","op":"source","inputs":[],"fallback":{"node":"stand in"}}"#,
            r#"{"node":"stand in","op":"source","inputs":[],"lazy":true}"#,
            r#"{"node":"kept","op":"keep","inputs":["n0"],"fallback":"input","conditional":true}"#,
            r#"{"node":"other","op":"keep","inputs":["n1"]}"#,
        ],
    );
    assert!(!json.contains("degraded"));
    let json = explain(Some(&outcome()), |told| told.to_json());
    has(
        &json,
        &[
            r#""rows":3,"degraded":[{"node":"n1","#,
            r#""node":"n0","where":"loop","outcome":"failed","fallback":"none""#,
        ],
    );
}

#[test]
fn people_are_told_in_columns_and_lazy_nodes_are_trees_of_their_own() {
    let tree = explain(None, |told| told.to_tree());
    let written: Vec<Vec<&str>> = tree
        .lines()
        .skip_while(|line| *line != "as written")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let expected: [&[&str]; 6] = [
        &["node", "label", "fallback", "runs", "at"],
        &["kept keep", "input", "on a condition"],
        &["n0 source", "the \u{7} first", "none"],
        &["other keep"],
        &["n1 source", "node stand in"],
        &["stand in source", "lazily"],
    ];
    assert_eq!(written, expected);
    let tree = explain(Some(&outcome()), |told| told.to_tree());
    has(&tree, &["did not start  fallback taken", "warning[E302]: n0 source"]);
}

#[test]
fn outputs_are_told_by_their_names() {
    let mut plan: Linked = plan(&registry());
    plan.output_names = Some(["main", "ads"].map(str::to_owned).into());
    let (scheduler, policy) = (Scheduler::Async, &Policy::default());
    let told = Explanation { plan: &plan, scheduler, policy, limits_nodes: false, analyzed: None, experiments: None };
    has(&told.to_json(), &[r#""outputs":{"main":"kept","ads":"other"},"#]);
    has(&told.to_tree(), &["plan feed: 5 nodes, 2 outputs (main kept, ads other); scheduler"]);
    has(&told.to_dot(), &["output ads"]);
    has(&explain(None, |told| told.to_json()), &[r#""outputs":["kept","other"],"#]);
}

#[test]
fn graphs_have_dashed_edges_for_fallbacks() {
    let dot = explain(Some(&outcome()), |told| told.to_dot());
    has(
        &dot,
        &[
            "n0 -> n3;",
            "n2 -> n1 [style=dashed, label=\"fallback\"];",
            "fallback input\\nruns on a condition",
            "stand in source\\nruns lazily",
            "fallback taken",
        ],
    );
    assert_eq!(dot.matches("style=dashed").count(), 1, "{dot}");
    let mermaid = explain(None, |told| told.to_mermaid());
    has(&mermaid, &["n0 --> n3", "n2 -.->|fallback| n1", "fallback none"]);
    assert_eq!(mermaid.matches("-.->").count(), 1, "{mermaid}");
}

#[test]
fn pictures_mark_what_went_wrong() {
    let registry = registry();
    let checked = checked(&registry);
    let svg = explain(None, |told| told.to_svg(&checked, &registry));
    has(
        &svg,
        &[
            "class=\"line stand-in\" data-from=\"2\" data-to=\"1\"",
            "the \u{fffd} first",
            "fallback none",
            "fallback node stand in",
            "runs when it is needed",
        ],
    );
    assert_eq!(svg.matches("is-output").count() - svg.matches(".is-output").count(), 2, "{svg}");
    let outcome = outcome();
    let svg = explain(Some(&outcome), |told| told.to_svg(&checked, &registry));
    has(&svg, &["node computes failed degraded", "fallback taken", "did not start", "3 rows after 50.0 µs"]);
    let html = explain(Some(&outcome), |told| told.to_html(&checked, &registry));
    has(&html, &[r#"["degraded","fallback taken"]"#, r#"["ran on","loop"]"#, r#"["label","the \u0007 first"]"#]);
}

#[test]
fn a_scene_has_every_node_with_its_texts_and_lines() {
    let registry = registry();
    let checked = checked(&registry);
    for form in [Form::Written, Form::Running] {
        let scene = explain(None, |told| told.to_scene(&checked, &registry, form));
        has(
            &scene,
            &[
                r#"{"id":"stand in","op":"source","box":["#,
                r#""is":["computes","lazy"],"text":[["remark","runs when it is needed"]],"inputs":[]"#,
                r#"["label","the \u0007 first"]"#,
                r#"[1,2,1,0,"#,
                r#""frames":[]"#,
                r#""direct":[]"#,
            ],
        );
        assert_eq!(scene.matches(r#""box":["#).count(), 5, "{scene}");
    }
}
