//! Plans in TypeScript through the real programs: the same meaning however it is written, the same bytes wherever it is built,
//! and files in the repository that are what the compiler makes of their sources.

#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test reads and writes files, says what is wrong, and what it could not look at"
)]

mod artifacts;
#[path = "../downloads/mod.rs"]
mod downloads;
mod editors;
mod hostile;
mod once;
mod workspace;

use std::io::Write;
use std::process::{Command, Stdio};
use workspace::{Workspace, read, repository};

pub(crate) const IMPORT: &str = "import { definePlan } from \"@ranking-dsl/runtime\";\n";

/// The tables of an artifact without the places in it.
fn tables(artifact: &str) -> String {
    let from = artifact.find("\"expr_table\"").expect("it has tables");
    let to = artifact.find("\"sources\"").expect("it has sources");
    let mut text = artifact[from..to].to_owned();
    while let Some(at) = text.find(",\"source\":") {
        let digits = text[at + 10..].chars().take_while(char::is_ascii_digit).count();
        text.replace_range(at..at + 10 + digits, "");
    }
    text
}

fn plan_with(before: &str, expr: &str) -> String {
    format!(
        "{IMPORT}{before}\nexport default definePlan({{\n  name: \"case\",\n  build: (ctx) => ctx.candidates().vm({{ outKey: Key.score, expr: {expr} }}),\n}});\n"
    )
}

#[test]
fn an_expression_means_the_same_wherever_it_is_built() {
    let workspace = Workspace::new();
    workspace.write("plans/fragments/sum.ts", "export const sum = Key.likes * 2 + Key.views * 2;\n");
    let expected = tables(&workspace.build(&plan_with("", "Key.likes * 2 + Key.views * 2")));
    assert_eq!(
        expected,
        "\"expr_table\":{\n\"e0\":{\"op\":\"add\",\"a\":{\"op\":\"mul\",\"a\":{\"op\":\"key_ref\",\"key\":\"likes\"},\"b\":{\"op\":\"const_number\",\"value\":2}},\
         \"b\":{\"op\":\"mul\",\"a\":{\"op\":\"key_ref\",\"key\":\"views\"},\"b\":{\"op\":\"const_number\",\"value\":2}}}\n},\n\"pred_table\":{},\n"
    );
    let spellings = [
        ("const e = Key.likes * 2 + Key.views * 2;", "e"),
        ("function twice(x: number): number { return x * 2; }", "twice(Key.likes) + twice(Key.views)"),
        (
            "let e: number | undefined;\nfor (const k of [Key.likes, Key.views]) e = e === undefined ? k * 2 : e + k * 2;",
            "e!",
        ),
        ("const e = [Key.likes, Key.views].map((k) => k * 2).reduce((a, b) => a + b);", "e"),
        ("let e = Key.likes * 2;\ne += Key.views * 2;", "e"),
        ("import { sum } from \"./fragments/sum.ts\";", "sum"),
        ("import * as shared from \"./fragments/sum\";", "shared.sum"),
        ("", "E.add(E.mul(E.key(Key.likes), E.const(2)), E.mul(Key.views, 2))"),
        ("const o = { total: Key.likes * 2 };\no.total += Key.views * 2;", "o.total"),
        ("const o = { all: [Key.likes * 2] };\no.all[0] += Key.views * 2;", "o.all[0]!"),
        ("const m = new Map([[\"a\", Key.likes * 2]]);\nm.set(\"a\", m.get(\"a\")! + Key.views * 2);", "m.get(\"a\")!"),
        (
            "const l: number[] = [];\nl.push(Key.likes);\nl.unshift(...[].concat(Key.views as any));",
            "l[1] * 2 + l.at(0)! * 2",
        ),
        ("const e = [Key.likes, Key.views].values().map((k) => k * 2).reduce((a, b) => a + b);", "e"),
        ("const e = Object.values({ a: Key.likes, b: Key.views }).map((k) => k * 2);", "e[0] + e[1]"),
        (
            "class Sum { constructor(public a: number) {} plus(b: number) { return this.a + b; } }",
            "new Sum(Key.likes * 2).plus(Key.views * 2)",
        ),
    ];
    for (before, expr) in spellings {
        assert_eq!(tables(&workspace.build(&plan_with(before, expr))), expected, "{before}\n{expr}");
    }
}

#[test]
fn predicates_follow_the_operators() {
    let workspace = Workspace::new();
    let pred = |pred: &str| {
        let plan = format!(
            "{IMPORT}export default definePlan({{ name: \"case\", build: (ctx) => ctx.candidates().filter({{ pred: {pred} }}) }});\n"
        );
        tables(&workspace.build(&plan))
    };
    for (natural, spelt) in [
        (
            "Key.age >= 18 && Key.country != null",
            "Pred.and(Pred.cmp(\">=\", E.key(Key.age), E.const(18)), Pred.notNull(Key.country))",
        ),
        (
            "Key.country == \"US\" || Key.country === null",
            "Pred.or(Pred.cmp(\"==\", Key.country, \"US\"), Pred.isNull(Key.country))",
        ),
        ("!(Key.age < 3)", "Pred.not(Pred.cmp(\"<\", Key.age, 3))"),
        ("Key.verified && true", "Pred.and(Pred.cmp(\"==\", Key.verified, true), Pred.const(true))"),
        ("true && Key.age > 3", "Pred.cmp(\">\", Key.age, 3)"),
        ("regex(Key.title, /a+b/i)", "Pred.regex(Key.title, \"a+b\", \"i\")"),
        ("Math.max(Key.age, 3) > 3", "Pred.cmp(\">\", E.max(Key.age, 3), 3)"),
        ("[\"US\", \"DE\"].includes(Key.country)", "Pred.in(Key.country, [\"US\", \"DE\"])"),
        ("Key.id == 1790012345678901235n", "Pred.cmp(\"==\", Key.id, 1_790_012_345_678_901_235)"),
        ("Key.id > -9223372036854775808", "Pred.cmp(\">\", Key.id, -0x8000000000000000)"),
        ("regex(Key.title, /^[a&&b]\\d$/u)", "regex(Key.title, \"^[a\\\\&\\\\&b][0-9]$\")"),
    ] {
        assert_eq!(pred(natural), pred(spelt), "{natural}");
    }
}

#[test]
fn operators_on_plain_values_are_those_of_javascript() {
    let workspace = Workspace::new();
    let checks = [
        "1 + 2 === 3",
        "\"a\" + 1 === \"a1\"",
        "7 % 4 == 3",
        "2 ** 3 === 8",
        "-(-3) === 3",
        "!0 === true",
        "(null ?? 4) === 4",
        "(0 || 5) === 5",
        "(0 && boom()) === 0",
        "(1 || boom()) === 1",
        "(true ? 1 : boom()) === 1",
        "(5 & 3 | 8) === 9",
        "`${1 + 1}` === \"2\"",
        "[1, 2, 3].filter((x) => x > 1).length === 2",
        "\"x\" in { x: 1 }",
        "undefined == null",
        "NaN !== NaN",
        "max(1, 2) === 2",
        "round(-2.5) === -3 && round(2.5) === 3 && round(0.49999999999999994) === 0",
        "pow(2, 3) === 8 && pow(1, NaN) === 1",
        "max(null as any, 2) === null && abs(null as any) === null",
        "coalesce(null, null as any, 4) === 4",
        "9007199254740993 > 9007199254740992 && 9007199254740993n === 9007199254740993 as any",
        "clamp(9, 0, 5) === 5",
        "coalesce(null, 3) === 3",
        "Math.min(3, 4) === 3",
        "typeof +\"3\" === \"number\"",
        "[..._gen()].join() === \"1,2\"",
        "Color.Blue === 5",
    ];
    let checks: String = checks.iter().map(|check| format!("if (!({check})) throw new Error({check:?});\n")).collect();
    let before = format!(
        "declare function boom(): never;\nfunction* _gen() {{ yield 1; yield 1 + 1; }}\nenum Color {{ Red = 1 << 1, Blue = 5 }}\n{checks}"
    );
    workspace.build(&plan_with(&before, "1"));
}

#[test]
fn the_bytes_depend_on_nothing_but_the_sources() {
    let plan = read(repository().join("plans/for_you.plan.ts"));
    let fragment = read(repository().join("plans/fragments/scoring.ts"));
    let build = |sub: &str, arg: &str| {
        let workspace = Workspace::new();
        workspace.write(&format!("{sub}/for_you.plan.ts"), &plan);
        workspace.write(&format!("{sub}/fragments/scoring.ts"), &fragment);
        let arg = if arg.is_empty() { workspace.path(sub).display().to_string() } else { arg.to_owned() };
        for _ in 0..2 {
            let output = workspace.dslc(&["build", &arg, "--out", "."]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        read(workspace.path("for_you.plan.json"))
    };
    let here = build("plans", "plans");
    assert_eq!(here, build("somewhere/else/entirely", ""));
    assert_eq!(
        here,
        read(repository().join("plans/for_you.plan.json")),
        "the artifact in the repository is stale: dslc build"
    );
}

#[test]
fn the_artifacts_in_the_repository_are_fresh() {
    let workspace = Workspace::new();
    let plans = repository().join("plans");
    let output = workspace.dslc(&["build", &plans.display().to_string(), "--out", "."]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut sources = 0;
    for entry in std::fs::read_dir(&plans).expect("there are plans") {
        let name = entry.expect("it can be read").file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".plan.ts") {
            sources += 1;
            let artifact = format!("{stem}.plan.json");
            assert!(
                read(plans.join(&artifact)) == read(workspace.path(&artifact)),
                "plans/{artifact} is stale: run dslc build"
            );
        } else if let Some(stem) = name.strip_suffix(".plan.json") {
            assert!(plans.join(format!("{stem}.plan.ts")).is_file(), "plans/{name} has no source");
        }
    }
    assert!(sources >= 10);
}

#[test]
fn the_declarations_in_the_repository_are_fresh() {
    let workspace = Workspace::new();
    assert!(workspace.dslc(&["types", "--out", "."]).status.success());
    for name in ["ranking-dsl.d.ts", "tsconfig.json"] {
        let fresh = read(workspace.path(name));
        assert!(read(repository().join("plans").join(name)) == fresh, "plans/{name} is stale: run dslc types");
    }
    let fresh = read(workspace.path("ranking-dsl.d.ts"));
    assert!(
        read(repository().join("dsl/ranking-dsl.d.ts")) == fresh,
        "dsl/ranking-dsl.d.ts is stale: run dslc types --out dsl, and remove the tsconfig.json that it writes"
    );
}

#[test]
fn every_example_plan_answers_from_its_source() {
    let plans = repository().join("plans");
    for entry in std::fs::read_dir(&plans).expect("there are plans") {
        let path = entry.expect("it can be read").path();
        if !path.to_string_lossy().ends_with(".plan.ts") {
            continue;
        }
        let (answer, errors, code) = rankd(&repository(), &["--plan", &path.display().to_string()]);
        assert!(code == Some(0) && answer.contains("\"candidates\":["), "{}: {answer}{errors}", path.display());
        let name = path.file_name().map(|name| name.to_string_lossy().replace(".plan.ts", "")).unwrap_or_default();
        assert!(name == "viewer_filter" || answer.contains("\"id\":"), "{name} gives rows: {answer}");
    }
}

pub(crate) fn rankd(folder: &std::path::Path, args: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
    command.current_dir(folder).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("rankd can be started");
    // A program that refuses its plan does not read; then the pipe is closed already.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(b"{\"user_id\": 1}\n");
    let output = child.wait_with_output().expect("rankd ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn an_error_of_a_run_shows_the_part_that_failed() {
    let workspace = Workspace::new();
    let plan = format!(
        "{IMPORT}\nexport default definePlan({{\n  name: \"case\",\n  build: (ctx) =>\n    ctx\n      .viewer({{ endpoint: EP.redis.redis_default }})\n      .vm({{ outKey: Key.score, expr: 1 + Key.age / (Key.id - 1) * 2 }}),\n}});\n"
    );
    workspace.write("plans/case.plan.ts", &plan);
    let (answer, errors, code) = rankd(&workspace.folder, &["--plan_name", "case"]);
    assert_eq!(code, Some(1));
    assert!(answer.contains("\"at\":\"case.plan.ts:8:"), "{answer}");
    assert!(errors.contains("--> case.plan.ts:8:") && errors.contains("^^^"), "{errors}");
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out_of_the_folder() {
    let workspace = Workspace::new();
    workspace.write("secret.ts", "export const secret = 1;\n");
    workspace.write("plans/case.plan.ts", "import { secret } from \"./link.ts\";\nexport default secret;\n");
    std::os::unix::fs::symlink(workspace.path("secret.ts"), workspace.path("plans/link.ts"))
        .expect("a link can be made");
    let output = workspace.dslc(&["check", "plans"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("D004") && errors.contains("a link leads out of the plan's folder"), "{errors}");
}
