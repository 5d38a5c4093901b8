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
