//! `rankd explain`: what a plan is and how it will run, without running it; and what one run was like.

use crate::json::Json;
use crate::program::{Folder, node, run};

fn told(args: &[&str], request: &[u8]) -> Json {
    let args: Vec<&str> = ["explain"].iter().chain(args).chain(&["--json"]).copied().collect();
    let ran = run(&args, request);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    Json::read(ran.stdout.trim())
}

/// The nodes of each step.
fn steps(told: &Json) -> Vec<String> {
    told.list("steps").iter().map(|step| step.texts("nodes").join(" ")).collect()
}

#[test]
fn a_plan_is_told_as_written_and_as_each_setting_runs_it() {
    let fused = told(&["mixed_pipeline"], b"");
    assert_eq!(fused.list("written").len(), 6);
    assert_eq!(steps(&fused), ["n0", "n1", "n2 n3 n4 n5"]);
    let last = &fused.list("steps")[2];
    assert_eq!(last.texts("ways"), ["one pass", "keeps only the best rows"]);
    assert!(last.text("expected").starts_with("loop, inline up to "), "{}", last.text("expected"));
    assert!(last.number("cost.fixed_ns") > 0.0);
    assert!(!fused.has("analyzed"), "nothing ran");
    for (flags, place) in [
        (["--chaining", "off"], "loop, inline"),
        (["--node_timeout_ms", "50"], "loop, inline"),
        (["--scheduler", "pools"], "cpu pool"),
        (["--scheduler", "sequential"], "caller"),
    ] {
        let written = told(&["mixed_pipeline", flags[0], flags[1]], b"");
        assert_eq!(steps(&written), ["n0", "n1", "n2", "n3", "n4", "n5"], "{flags:?}");
        assert_eq!(written.list("steps")[5].text("expected"), place, "{flags:?}");
    }
    let pooled = told(&["mixed_pipeline", "--inline", "off"], b"");
    assert_eq!(pooled.list("steps")[2].text("expected"), "cpu pool");
}

#[test]
fn a_run_is_told_with_rows_times_places_and_what_the_answer_waited_for() {
    let told = told(&["mixed_pipeline", "--analyze"], b"{\"user_id\":2}\n");
    let nodes = told.list("analyzed.nodes");
    assert_eq!(nodes.iter().map(|node| node.text("node")).collect::<Vec<_>>(), ["n0", "n1", "n2", "n3", "n4", "n5"]);
    assert_eq!(nodes[2].text("fused_into"), "n5");
    assert_eq!(nodes[5].number("rows_out"), told.number("analyzed.rows"));
    assert!(nodes.iter().all(|node| node.text("where") == "loop" && node.number("took_us") >= 0.0));
    assert_eq!(told.texts("analyzed.critical_path").len(), 6);
}

#[test]
fn nodes_that_nobody_needs_and_labels_with_any_signs_are_shown() {
    let folder = Folder::new();
    let plan = folder.plan(
        "odd",
        &[
            node("s", "fixed_source", &[], r#""row_count":3,"trace":"a \"<b>\" \\ c""#),
            node("idle", "take", &["s"], r#""count":1"#),
            node("twice", "concat", &["s"], r#""rhs":"s""#),
        ],
        &["twice"],
    );
    assert_eq!(told(&[&plan], b"").texts("not_run"), ["idle"]);
    let tree = run(&["explain", &plan, "--analyze"], b"");
    assert_eq!((tree.code, &*tree.stdout), (0, ""), "what is for people is not on stdout");
    for words in ["idle take never runs", "├─ s fixed_source", "(as above)", "6 rows after", "6 → 6"] {
        assert!(tree.stderr.contains(words), "{words}: {}", tree.stderr);
    }
    let dot = run(&["explain", &plan, "--dot"], b"").stdout;
    assert!(
        dot.starts_with("digraph plan {") && dot.contains("style=dashed") && dot.contains(r#"a \"<b>\" \\ c"#),
        "{dot}"
    );
    let mermaid = run(&["explain", &plan, "--mermaid"], b"").stdout;
    assert!(mermaid.starts_with("flowchart TB") && mermaid.contains("a #34;#60;b#62;#34; #92; c"), "{mermaid}");
    assert!(mermaid.contains(":::never"));
}

#[test]
fn fallbacks_conditions_and_lazy_nodes_are_shown() {
    let folder = Folder::new();
    let text = r#"{"schema_version":1,"plan_name":"spared","nodes":[
        {"node_id":"s","op":"fixed_source","params":{"row_count":3},"fallback":{"node":"spare"}},
        {"node_id":"spare","op":"fixed_source","params":{"row_count":2}},
        {"node_id":"z","op":"sleep","inputs":["s"],"params":{"duration_ms":1},"fallback":"input","when":"p0"}],
        "outputs":["z"],"expr_table":{},"pred_table":{"p0":{"op":"not_null","x":{"op":"param_ref","param":"weight"}}}}"#;
    let plan = folder.write("spared.plan.json", text);
    let told = told(&[&plan], b"");
    let [s, spare, z] = told.list("written") else { unreachable!("{told:?}") };
    assert_eq!((s.text("fallback.node"), s.has("lazy"), s.has("conditional")), ("spare", false, false));
    assert_eq!((spare.at("lazy"), spare.has("fallback")), (&Json::Bool(true), false));
    assert_eq!((z.text("fallback"), z.at("conditional")), ("input", &Json::Bool(true)));
    assert!(told.texts("not_run").is_empty(), "what stands in may run");
    let tree = run(&["explain", &plan], b"").stderr;
    for words in ["node spare", "on a condition", "lazily"] {
        assert!(tree.contains(words), "{words}: {tree}");
    }
    let dot = run(&["explain", &plan, "--dot"], b"").stdout;
    assert!(dot.contains("n1 -> n0 [style=dashed, label=\"fallback\"];"), "{dot}");
    let mermaid = run(&["explain", &plan, "--mermaid"], b"").stdout;
    assert!(mermaid.contains("n1 -.->|fallback| n0"), "{mermaid}");
}

#[test]
fn what_cannot_be_explained_or_fails_says_so() {
    let ran = run(&["explain", "mixed_pipelin"], b"");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean \"mixed_pipeline\"?"), "{}", ran.stderr);
    let ran = run(&["explain", "mixed_pipeline", "--analyze"], b"{\"user\":1}\n");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("user"), "{}", ran.stderr);
    let folder = Folder::new();
    let nodes =
        [node("s", "fixed_source", &[], ""), node("z", "sleep", &["s"], r#""duration_ms":1,"fail_after_sleep":true"#)];
    let plan = folder.plan("fails", &nodes, &["z"]);
    let ran = run(&["explain", &plan, "--analyze", "--json"], b"");
    assert_eq!(ran.code, 1);
    let told = Json::read(ran.stdout.trim());
    assert!(told.text("analyzed.error").contains("E504"));
    assert_eq!(told.list("analyzed.nodes")[1].text("outcome"), "failed");
}

/// Neither the walk nor what it writes grows with the square of the depth.
#[test]
fn a_plan_of_ten_thousand_nodes_is_explained() {
    let folder = Folder::new();
    let mut nodes = vec![node("n0", "fixed_source", &[], "")];
    nodes.extend((1..10_000).map(|at| node(&format!("n{at}"), "concat", &["n0"], &format!(r#""rhs":"n{}""#, at - 1))));
    let plan = folder.plan("deep", &nodes, &["n9999"]);
    let ran = run(&["explain", &plan], b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.len() < 10_000_000, "{} bytes", ran.stderr.len());
}

#[test]
fn a_search_by_a_copy_is_called_approximate() {
    let folder = Folder::new();
    let data = folder.write("movies.ndjson", "{\"id\": 1, \"emb\": [1, 0]}\n");
    folder.write(
        "keys.toml",
        "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n\
         [[key]]\nname = \"emb\"\ntype = \"vector<2>\"\nnullable = true\n",
    );
    folder.write("params.toml", "[[param]]\nname = \"taste\"\ntype = \"vector<2>\"\nnullable = true\n");
    let table = |name: &str, more: &str| {
        format!("[[endpoint]]\nname = \"{name}\"\nkind = \"table\"\nurl = \"file:{data}\"\n{more}")
    };
    let tables = table("exact", "") + &table("copied", "vectors = { emb = \"f16\" }\n");
    folder.write("endpoints.local.toml", &tables);
    let search = |name: &str| {
        let params = format!(r#""endpoint":"{name}","key":"emb","vector":{{"param":"taste"}},"k":1,"by":"dot""#);
        node(name, "nearest", &[], &params)
    };
    let plan = folder.plan("near", &[search("exact"), search("copied")], &["exact", "copied"]);
    let registry = folder.path("").display().to_string();
    let told = told(&[&plan, "--registry", &registry], b"");
    let ways: Vec<Vec<&str>> = told.list("steps").iter().map(|step| step.texts("ways")).collect();
    assert_eq!(steps(&told), ["exact", "copied"]);
    assert_eq!(ways, [vec![], vec!["approximate"]]);
    let tree = run(&["explain", &plan, "--registry", &registry], b"").stderr;
    assert!(tree.lines().any(|line| line.contains("copied nearest") && line.contains("approximate")), "{tree}");
}

#[test]
fn what_a_node_logs_is_told_and_nothing_is_fused_across_it() {
    let folder = Folder::new();
    let source = node("s", "fixed_source", &[], r#""row_count":3"#);
    let vm = |id: &str, from: &str, key: &str| node(id, "vm", &[from], &format!(r#""out_key":"{key}","expr":"e0""#));
    let logs = vm("b", "a", "quality").replacen(r#""op""#, r#""log":["quality","score"],"op""#, 1);
    let plain = [source, vm("a", "s", "score"), vm("b", "a", "quality"), vm("c", "b", "final_score")];
    let mut logging = plain.clone();
    logging[2] = logs;
    let exprs = r#""e0":{"op":"key_ref","key":"id"}"#;
    let told_of = |name: &str, nodes: &[String]| {
        let plan = folder.plan_with(name, nodes, &["c"], exprs);
        told(&["--plan", &plan], b"")
    };
    let (plain, logging) = (told_of("plain", &plain), told_of("logging", &logging));
    assert_eq!(steps(&plain), ["s", "a b c"]);
    assert_eq!(steps(&logging), ["s", "a b", "c"], "a pass may end with it, and none goes on across it");
    assert_eq!(logging.list("written")[2].texts("log"), ["quality", "score"]);
    assert!(!plain.list("written")[2].has("log"));
}
