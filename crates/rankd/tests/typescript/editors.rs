//! What editors see: `tsc --strict` with our declarations accepts what the compiler accepts.
//!
//! TypeScript's own compiler comes from npm. Where there is no npm, or no network, the test says so and checks nothing.

use crate::downloads;
use crate::workspace::{Workspace, read, repository};

const TYPESCRIPT: &str = "5.9.3";

/// The complaints of `tsc` about a folder with a tsconfig.json; `None` where there is no `tsc`.
fn complaints(workspace: &Workspace, folder: &str) -> Option<String> {
    let mut tsc = match downloads::tsc(TYPESCRIPT) {
        Ok(tsc) => tsc,
        Err(why) => {
            downloads::skipped("tsc does not check our declarations", &why);
            return None;
        }
    };
    let output = tsc.args(["--project", folder]).current_dir(&workspace.folder).output();
    let output = output.expect("node was there a moment ago");
    let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(wrong.is_empty(), "tsc itself failed: {wrong}");
    Some(told.into_owned())
}

#[test]
fn tsc_accepts_every_example() {
    let workspace = Workspace::new();
    let plans = repository().join("plans");
    for folder in [plans.clone(), plans.join("fragments")] {
        for entry in std::fs::read_dir(&folder).expect("there are plans") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(&plans).expect("it is inside").display().to_string();
            if name.ends_with(".ts") || name.ends_with("tsconfig.json") {
                workspace.write(&format!("plans/{name}"), &read(&path));
            }
        }
    }
    if let Some(complaints) = complaints(&workspace, "plans") {
        assert_eq!(complaints, "");
    }
}

#[test]
fn tsc_and_the_compiler_agree() {
    let workspace = Workspace::new();
    let good = [
        "Key.id * 2",
        "Key.score - P.weight",
        "-Key.score",
        "Key.likes % 10 ** 2",
        "coalesce(P.weight, 0.5)",
        "P.weight ?? 0.5",
        "Key.country == \"US\" ? 1 : 0",
        "Key.country === P.boost_country ? Key.score : Key.quality",
        "Key.score >= 0.5 && Key.country != null ? 1 : 2",
        "!Key.verified ? 1 : 2",
        "E.if(Key.age > 3, E.const(1), Key.score)",
        "max(Key.likes, Key.views, 3)",
        "Math.log1p(Key.likes)",
        "E.coalesce(Key.score, 0)",
        "clamp(Key.score, 0, 1)",
        "regex(Key.title, P.blocked_titles) ? 0 : 1",
        "Pred.in(Key.country, [\"US\", \"DE\"]) ? 1 : 0",
        "Key.verified == true ? 1 : 0",
        "Pred.cmp(\"<\", Key.age, E.param(P.weight)) ? 1 : 0",
        "null",
        "(() => { let s = Key.score; s += 1; return s; })()",
        "(() => { const o = { s: Key.score }; o.s += 1; return o.s; })()",
        "E.if(Key.verified, Key.score, 0)",
        "E.if(Key.verified, Key.score, null)",
        "[Key.likes, Key.views].reduce((a, b) => a + b)",
        "((x = Key.score) => x * 2)() + ((x = Key.score) => x * 2)(3)",
        "[\"US\", \"DE\"].includes(Key.country) ? 1 : 0",
        "Key.id == 1790012345678901235 ? 1 : 0",
        "Key.id == E.const(5n) || Pred.in(Key.id, [1, 2n]) ? 1 : 0",
        "regex(Key.title, /^a/u) ? 1 : 0",
        "1, fallback: \"input\"",
        "1, fallback: ctx.candidates({ fallback: \"none\" }), failOpen: \"it is a demo\"",
        "1, when: P.weight > 1 && U.id > 3 && nowMs() > 0, otherwise: \"input\"",
        "1, when: P.allow_nsfw, otherwise: ctx.candidates()",
        "1 }).take({ count: dial(10, { min: 2 })",
        "1, log: [Key.score]",
        "1, log: []",
    ];
    let bad = [
        "Key.country * 2",
        "Key.nothing",
        "P.nothing",
        "E.key(3)",
        "regex(Key.age, \"x\") ? 1 : 0",
        "Key.country == 3 ? 1 : 0",
        "E.add(Key.country, 1)",
        "EP.redis.redis_default",
        "Key.country",
        "Key.score > 1",
        "Key.email",
        "regex(\"text\", \"x\") ? 1 : 0",
        "1 }).vm({ outKey: Key.id, expr: 1",
        "1 }).vm({ outKey: Key.country, expr: Key.age",
        "1 }).sort({ key: Key.score * 2",
        "1 }).sort({ key: 3",
        "1 }).hydrate({ endpoint: EP.redis.redis_default, prefix: \"user\", keys: [Key.id]",
        "1 }).filter({ pred: Key.age",
        "1, fallback: \"nothing\"",
        "1, fallback: { node: \"n0\" }",
        "1, otherwise: 3, when: P.allow_nsfw",
        "1, fallback: \"input\", failOpen: true",
        "1, when: P.weight",
        "1, log: Key.score",
        "1, log: [P.weight > 1, {}]",
        "1 }).take({ count: dial(10)",
        "1 }).take({ count: dial(10, { min: \"2\" })",
        "1 }).sleep({ durationMs: dial(5, { min: 1 })",
    ];
    let plan = |at: usize, expr: &str| {
        format!(
            "import {{ definePlan }} from \"@ranking-dsl/runtime\";\nexport default definePlan({{ name: \"p{at}\", build: (ctx) => ctx.candidates().vm({{ outKey: Key.score, expr: {expr} }}) }});\n"
        )
    };
    for (at, expr) in good.iter().enumerate() {
        workspace.write(&format!("good/p{at}.plan.ts"), &plan(at, expr));
    }
    for (at, expr) in bad.iter().enumerate() {
        workspace.write(&format!("bad/p{at}.plan.ts"), &plan(at, expr));
    }
    let compiled = workspace.dslc(&["check", "good"]);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for (at, expr) in bad.iter().enumerate() {
        let refused = workspace.dslc(&["check", &format!("bad/p{at}.plan.ts")]);
        assert_eq!(refused.status.code(), Some(2), "dslc refuses {expr}");
    }
    for folder in ["good", "bad"] {
        assert!(workspace.dslc(&["types", "--out", folder]).status.success());
    }
    let (Some(good_complaints), Some(bad_complaints)) = (complaints(&workspace, "good"), complaints(&workspace, "bad"))
    else {
        return;
    };
    assert_eq!(good_complaints, "");
    for (at, expr) in bad.iter().enumerate() {
        assert!(bad_complaints.contains(&format!("/p{at}.plan.ts")), "tsc accepts {expr}");
    }
}

#[test]
fn a_list_is_no_array_to_tsc() {
    let workspace = Workspace::new();
    let entry = |table: &str, id: usize, name: &str, type_of: &str| {
        format!(
            "\n[[{table}]]\n{table}_id = {id}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\ndoc = \"\"\n"
        )
    };
    let keys =
        [("tags", "list<string>"), ("visits", "list<int>"), ("weights", "list<float>"), ("embedding", "vector<8>")];
    let mut text = read(repository().join("registry/keys.toml"));
    keys.iter().zip(1000..).for_each(|((name, type_of), id)| text += &entry("key", id, name, type_of));
    workspace.write("registry/keys.toml", &text);
    let mut text = read(repository().join("registry/params.toml"));
    text += &(entry("param", 1000, "topics", "list<string>") + &entry("param", 1001, "query", "vector<8>"));
    workspace.write("registry/params.toml", &text);
    let good = [
        "filter({ pred: Key.tags != null && Pred.notNull(Key.embedding) })",
        "filter({ pred: Pred.isNull(P.topics) || P.query == null })",
        "hydrate({ endpoint: EP.redis.redis_default, prefix: \"item\", keys: [Key.tags, Key.visits, Key.embedding, Key.title] })",
        "concat({ rhs: ctx.fixedSource({ rowCount: 2, columns: { tags: [[\"a\"], null], embedding: { cycle: [[1, 2, 3, 4, 5, 6, 7, 8]] } } }) })",
    ];
    let bad = [
        "filter({ pred: Key.tags.includes(\"a\") })",
        "filter({ pred: Key.tags.length > 0 })",
        "filter({ pred: P.topics[0] == \"a\" })",
        "filter({ pred: Key.tags == \"a\" })",
        "filter({ pred: Key.visits > 3 })",
        "filter({ pred: Key.tags })",
        "sort({ key: Key.tags })",
        "sort({ key: Key.embedding })",
        "vm({ outKey: Key.score, expr: Key.weights })",
        "vm({ outKey: Key.score, expr: Key.embedding * 2 })",
        "vm({ outKey: Key.tags, expr: \"a\" })",
        "vm({ outKey: Key.score, expr: log1p(Key.visits) })",
    ];
    // To TypeScript, two objects can be compared.
    let only_for_tsc = ["filter({ pred: Key.tags == P.topics })"];
    for (folder, calls) in [("good", &good[..]), ("bad", &bad[..]), ("only_for_tsc", &only_for_tsc[..])] {
        for (at, call) in calls.iter().enumerate() {
            let plan = format!(
                "import {{ definePlan }} from \"@ranking-dsl/runtime\";\nexport default definePlan({{ name: \"p{at}\", build: (ctx) => ctx.candidates().{call} }});\n"
            );
            workspace.write(&format!("{folder}/p{at}.plan.ts"), &plan);
        }
    }
    let compiled = workspace.dslc(&["check", "good"]);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for (at, call) in bad.iter().enumerate() {
        let refused = workspace.dslc(&["check", &format!("bad/p{at}.plan.ts")]);
        assert_eq!(refused.status.code(), Some(2), "dslc refuses {call}");
    }
    assert_eq!(workspace.dslc(&["check", "only_for_tsc"]).status.code(), Some(2));
    for folder in ["good", "bad"] {
        assert!(workspace.dslc(&["types", "--out", folder]).status.success());
    }
    let declared = read(workspace.path("good/ranking-dsl.d.ts"));
    for line in
        ["tags: ListKey<string>;", "visits: ListKey<number>;", "embedding: VectorKey<8>;", "query: ParamOf<Vector<8>>;"]
    {
        assert!(declared.contains(&format!("readonly {line}")), "{line}");
    }
    let (Some(good_complaints), Some(bad_complaints)) = (complaints(&workspace, "good"), complaints(&workspace, "bad"))
    else {
        return;
    };
    assert_eq!(good_complaints, "");
    for (at, call) in bad.iter().enumerate() {
        assert!(bad_complaints.contains(&format!("/p{at}.plan.ts")), "tsc accepts {call}");
    }
}
