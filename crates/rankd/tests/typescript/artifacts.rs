//! Artifacts and their sources: what is up to date is not compiled, what is stale is told, and a plan has the name of its file.

use crate::workspace::{Workspace, read};
use crate::{IMPORT, rankd};
use sha2::{Digest, Sha256};

fn taking(name: &str, count: u32) -> String {
    format!(
        "{IMPORT}export default definePlan({{ name: \"{name}\", build: (ctx) => ctx.fixedSource({{ rowCount: 5 }}).take({{ count: {count} }}) }});\n"
    )
}

fn build(workspace: &Workspace, args: &[&str]) -> String {
    let output = workspace.dslc(&[&["build", "plans"], args].concat());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    words
}

#[test]
fn what_is_up_to_date_is_not_compiled_again() {
    let workspace = Workspace::new();
    let artifact = || read(workspace.path("plans/case.plan.json"));
    workspace.write("plans/fragments/count.ts", "export const count = 3;\n");
    let plan = taking("case", 9)
        .replace("9", "count")
        .replace(IMPORT, &format!("{IMPORT}import {{ count }} from \"./fragments/count.ts\";\n"));
    workspace.write("plans/case.plan.ts", &plan);
    assert!(build(&workspace, &[]).contains("case.plan.json: written"));
    let made = artifact();

    // An artifact that says of itself that it is what the sources give is believed: so nothing was compiled.
    let (above, below) = made.split_once("\"built_by\":").expect("it says how it was built");
    let digest =
        |text: &str| Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let other = above.replace("\"count\":3", "\"count\":4");
    let forged = format!("{other}\"built_by\":{}", below.replace(&digest(above), &digest(&other)));
    assert!(forged != made && below.contains(&digest(above)));
    workspace.write("plans/case.plan.json", &forged);
    assert!(build(&workspace, &[]).contains("case.plan.json: up to date"));
    assert_eq!(artifact(), forged);
    assert!(build(&workspace, &["--force"]).contains("written"));
    assert_eq!(artifact(), made);

    // Whatever it is made of, a change of it is seen.
    workspace.write("plans/case.plan.json", &made.replace("\"count\":3", "\"count\":4"));
    assert!(build(&workspace, &[]).contains("written"), "the artifact itself");
    workspace.write("plans/fragments/count.ts", "export const count = 2;\n");
    assert!(build(&workspace, &[]).contains("written"), "an imported file");
    assert!(artifact().contains("\"count\":2"));
    let keys = read(workspace.path("registry/keys.toml"));
    workspace.write("registry/keys.toml", &keys.replacen("nullable = true", "nullable = true\ndefault = 7", 1));
    assert!(build(&workspace, &[]).contains("written"), "the registry");
    assert!(build(&workspace, &[]).contains("up to date"));
}

#[test]
fn a_stale_artifact_is_told_and_a_run_takes_its_source() {
    let workspace = Workspace::new();
    workspace.write("plans/case.plan.ts", &taking("case", 1));
    build(&workspace, &[]);
    let rows = |answer: &str| answer.matches("\"id\":").count();
    let (answer, words, _) = rankd(&workspace.folder, &["--plan_name", "case"]);
    assert_eq!((rows(&answer), words.as_str()), (1, ""));

    workspace.write("plans/case.plan.ts", &taking("case", 3));
    let (answer, words, code) = rankd(&workspace.folder, &["--plan_name", "case"]);
    assert_eq!((rows(&answer), code), (3, Some(0)), "{words}");
    assert!(words.contains("note: plans/case.plan.json is stale; running plans/case.plan.ts"), "{words}");
    let (answer, words, _) = rankd(&workspace.folder, &["--plan", "plans/case.plan.json"]);
    assert!(rows(&answer) == 1 && words.contains("warning[P111]"), "who asks for the artifact gets it: {words}");
    let (_, words, code) = rankd(&workspace.folder, &["check"]);
    assert!(
        code == Some(0) && words.contains("warning[P111]") && words.contains("dslc build plans/case.plan.ts"),
        "{words}"
    );
    let (answer, ..) = rankd(&workspace.folder, &["plans", "--json"]);
    assert!(answer.contains("\"stale\":true"), "{answer}");

    // An artifact that was delivered alone is what it is.
    std::fs::remove_file(workspace.path("plans/case.plan.ts")).expect("it was there");
    let (_, words, code) = rankd(&workspace.folder, &["check"]);
    assert!(code == Some(0) && !words.contains("P111"), "{words}");
}

#[test]
fn a_plan_has_the_name_of_its_file_everywhere() {
    let workspace = Workspace::new();
    workspace.write("plans/case.plan.ts", &taking("other", 1));
    for command in ["check", "build"] {
        let output = workspace.dslc(&[command, "plans"]);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && words.contains("error[P110]"), "{command}: {words}");
        assert!(words.contains("--> plans/case.plan.ts:2:35"), "the path is the one that was given: {words}");
    }
    let (_, words, code) = rankd(&workspace.folder, &["--plan_name", "case"]);
    assert!(code == Some(2) && words.contains("error[P110]"), "{words}");
}

#[test]
fn the_limit_of_nodes_can_be_reached() {
    let workspace = Workspace::new();
    let plan = |nodes: u32| {
        format!(
            "{IMPORT}export default definePlan({{\n  name: \"case\",\n  build: (ctx) => {{\n    let rows = ctx.candidates();\n    for (let i = 1; i < {nodes}; i++) rows = rows.vm({{ outKey: Key.score, expr: Key.score * i }});\n    return rows;\n  }},\n}});\n"
        )
    };
    workspace.write("plans/case.plan.ts", &plan(10_000));
    let output = workspace.dslc(&["check", "plans"]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("ok, case with 10000 nodes"), "{words}");
    workspace.write("plans/case.plan.ts", &plan(10_001));
    let output = workspace.dslc(&["check", "plans"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[P201]"), "and not exceeded");
}

#[test]
fn what_stands_in_is_written_in_one_order_and_its_reasons_are_listed() {
    let workspace = Workspace::new();
    let artifact = workspace.build(&format!(
        "{IMPORT}export default definePlan({{ name: \"case\", build: (ctx) => ctx\n  .viewer({{ otherwise: ctx.fixedSource(), when: P.weight > 1, endpoint: EP.redis.redis_default, fallback: \"none\" }})\n  .filter({{ failOpen: \"all may see it\", fallback: \"input\", pred: Key.id > 1 }})\n  .take({{ count: dial(9, {{ min: 3 }}) }}) }});\n"
    ));
    let nodes: Vec<&str> = artifact.lines().filter(|line| line.starts_with("{\"node_id\"")).collect();
    let expected = [
        r#""params":{},"#,
        r#""params":{"endpoint":"redis_default"},"fallback":"none","when":"p0","otherwise":{"node":"n0"},"#,
        r#""params":{"pred":"p1"},"fallback":"input","fail_open":"all may see it","#,
        r#""params":{"count":{"dial":9,"min":3}},"#,
    ];
    assert_eq!(nodes.len(), expected.len());
    for (node, expected) in nodes.iter().zip(expected) {
        assert!(node.contains(expected), "{node} has {expected}");
    }
    let (listed, words) = (rankd(&workspace.folder, &["check", "--json"]).0, rankd(&workspace.folder, &["check"]).1);
    let reason = "\"fail_open\":[{\"plan\":\"case\",\"node\":\"n2\",\"op\":\"filter\",\"reason\":\"all may see it\",\"at\":\"case.plan.ts:4:4\"}]";
    assert!(listed.contains(reason), "{listed}");
    assert!(words.contains("filter \"n2\" at case.plan.ts:4:4 fails open: \"all may see it\""), "{words}");
}
