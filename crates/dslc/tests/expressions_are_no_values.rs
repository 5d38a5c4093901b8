//! Nothing that is an expression passes for a plain value: every function of the language, in every position, refuses a key or does
//! with it what it says. The functions are found by reflection in the engine that plans run in.

use dslc::Dslc;
use rankd_plan::Registry;
use rankd_plan::Signatures;
use rankd_plan::registry::Text;
use rankd_plan::source::{Compiler, Folder, Unreadable};
use std::collections::HashMap;

struct Texts(HashMap<&'static str, String>);

impl Folder for Texts {
    fn read(&self, path: &str) -> Result<String, Unreadable> {
        self.0.get(path).cloned().ok_or_else(|| Unreadable::Because("it is not there".to_owned()))
    }
}

fn registry() -> Registry {
    let keys = Text { file: "keys.toml", text: include_str!("../../../registry/keys.toml") };
    let params = Text { file: "params.toml", text: include_str!("../../../registry/params.toml") };
    let endpoints = Text { file: "endpoints.toml", text: include_str!("../../../registry/endpoints.local.toml") };
    Registry::parse(keys, params, endpoints).0
}

/// What is wrong with a plan, a line each: `CODE line: message`.
fn problems(plan: &str) -> Vec<String> {
    let folder = Texts(HashMap::from([("case.plan.ts", plan.to_owned())]));
    let compiled = Dslc.compile("case.plan.ts", &folder, &registry(), &Signatures::default());
    let line = |found: &rankd_plan::Diagnostic| {
        let line = found.source.as_ref().map_or(0, |source| source.line);
        format!("{} {line}: {}", found.code.id(), found.message)
    };
    compiled.checked.diagnostics.list().iter().map(line).collect()
}

#[test]
fn no_built_in_takes_an_expression_for_a_value() {
    const PARTS: usize = 24;
    let plan = include_str!("built_ins.plan.ts");
    let mut tried = 0;
    for part in 0..PARTS {
        let found = problems(&plan.replace("= [0, 1];", &format!("= [{part}, {PARTS}];")));
        let last = found.iter().find(|line| line.contains(" tried, ")).unwrap_or_else(|| panic!("{found:#?}"));
        let count = last.split("failed: ").nth(1).and_then(|rest| rest.split(' ').next());
        tried += count.and_then(|count| count.parse::<usize>().ok()).expect("it says how many it tried");
        assert!(last.contains(", 0 went through"), "{last}");
    }
    assert!(tried > 5_000, "only {tried} were tried");
}

/// What is no function: operators, syntax and properties, each in a plan of its own, with the line that is named.
#[test]
fn no_syntax_takes_an_expression_for_a_value() {
    let uses = [
        "Key.title.length > 3",
        "(Key.title as any)[0]",
        "Key.title.toString()",
        "Key.title?.length",
        "typeof Key.title === \"string\"",
        "Key.title instanceof Object",
        "\"a\" in (Key.title as any)",
        "delete (Key.title as any).x",
        "[...(Key.title as any)]",
        "({ ...(Key.title as any) })",
        "`${Key.title}`",
        "String.raw`${Key.title}`",
        "({ [Key.title]: 1 })",
        "[1][Key.age]",
        "[3, 1].sort(() => Key.age)",
        "new Map([[Key.title, 1]])",
        "Object.fromEntries([[Key.title, 1]])",
        "Array.from({ length: Key.age })",
        "JSON.stringify({ a: [Key.title] })",
        "[Key.title].join()",
        "[Key.title].includes(\"US\")",
        "[1, 2].map(String as any).concat([Key.age].map(String as any))",
        "[Key.age].map(Number.isInteger)",
        "(() => { switch (true) { case Key.age > 1: return 1; } })()",
        "(() => { switch (Key.age) { case 1: return 1; } })()",
        "(() => { if (Key.age > 1) return 1; })()",
        "(() => { while (Key.age > 1) return 1; })()",
        "(() => { do { return 1; } while (Key.age > 1); })() + (() => { do { } while (Key.age > 1); })()",
        "(() => { for (; Key.age > 1; ) return 1; })()",
        "(() => { for (const x of Key.title as any) return x; })()",
        "(() => { for (const x in Key.title as any) return x; return 1; })()",
        "(() => { const { length } = Key.title; return length; })()",
        "(() => { const [first] = Key.title as any; return first; })()",
        "(() => { const { ...all } = Key.title as any; return all; })()",
        "(() => { let x: any = Key.age; x++; return x; })()",
        "(() => { let x: any = Key.age; x |= 1; return x; })()",
        "[...{ [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: Key.age > 1 }) }) }]",
        "Object.defineProperty({}, \"x\", { value: 1, enumerable: Key.verified })",
        "new (class { #x = 1; has(o: any) { return #x in o; } })().has(Key.title)",
        "(() => { throw Key.title; })()",
        "Object.assign({}, Key.title)",
        "new Boolean(Key.verified)",
    ];
    for (at, it) in uses.iter().enumerate() {
        let found = problems(&format!("const before = 1;\nconst it = {it};\nexport default [before, it];\n"));
        let refused = found.iter().any(|line| {
            (line.starts_with("D011 2") || line.starts_with("D012 2") || line.starts_with("D006 2"))
                && !line.contains("default export")
        });
        assert!(refused, "{at}: {it}: {found:#?}");
    }
}
