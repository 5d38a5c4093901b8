//! The runtime: what plan code meets, in JavaScript. The files are modules that import one another by `rankd:NAME`.
//!
//! Plan code sees the DSL's names and `$rankd`, and can import no file of the runtime. Reading order: `problems` (what is wrong, and
//! where), `handles` (rows, endpoints, plans), `expressions`, `operands` (what may be part of one), `operators` (what operators were
//! rewritten to), `functions`, `names` (Key, P, EP), `spelled_out` (E and Pred), `options` and `tasks` (nodes), `plan` (definePlan),
//! `guards` (the language's own functions), `main` (all of it put together and frozen).

/// Evaluated first; it imports the others.
pub(crate) const MAIN: &str = "rankd:main";
/// What the compiler knows of the tasks, the registry and the limits: made for each plan.
pub(crate) const CONFIG: &str = "rankd:config";

/// The functions that compute with plain numbers: made from the table of operations.
pub(crate) const NATIVES: &str = "rankd:natives";

const FILES: &[(&str, &str)] = &[
    ("rankd:problems", include_str!("runtime/problems.js")),
    ("rankd:handles", include_str!("runtime/handles.js")),
    ("rankd:expressions", include_str!("runtime/expressions.js")),
    ("rankd:operands", include_str!("runtime/operands.js")),
    ("rankd:operators", include_str!("runtime/operators.js")),
    ("rankd:functions", include_str!("runtime/functions.js")),
    ("rankd:names", include_str!("runtime/names.js")),
    ("rankd:spelled_out", include_str!("runtime/spelled_out.js")),
    ("rankd:options", include_str!("runtime/options.js")),
    ("rankd:tasks", include_str!("runtime/tasks.js")),
    ("rankd:plan", include_str!("runtime/plan.js")),
    ("rankd:guards", include_str!("runtime/guards.js")),
    (MAIN, include_str!("runtime/main.js")),
    (CONFIG, ""),
    (NATIVES, ""),
];

/// The files of the runtime, and those that test it.
fn files() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    #[cfg(test)]
    return FILES.iter().chain(tests::FILES);
    #[cfg(not(test))]
    FILES.iter()
}

/// Whether a module is one of the runtime. Files of a plan end in `.ts`, so none of them has such a name.
pub(crate) fn is_part(name: &str) -> bool {
    files().any(|(known, _)| *known == name)
}

/// The code of a file of the runtime.
pub(crate) fn code(name: &str) -> &'static str {
    files().find(|(known, _)| *known == name).map_or("", |(_, code)| code)
}

#[cfg(test)]
mod tests {
    use crate::config::{NODE_OPTIONS, config};
    use crate::sandbox::{Modules, evaluate, start};
    use rankd_plan::Registry;
    use rankd_plan::registry::Text;
    use rankd_plan::signature::*;
    use rquickjs::{CatchResultExt, Function, Object};
    use std::collections::HashMap;

    pub(super) const FILES: &[(&str, &str)] = &[
        ("rankd:tests/checks", include_str!("runtime/tests/checks.js")),
        ("rankd:tests/expressions", include_str!("runtime/tests/expressions.js")),
        ("rankd:tests/operators", include_str!("runtime/tests/operators.js")),
        ("rankd:tests/tasks", include_str!("runtime/tests/tasks.js")),
        ("rankd:tests/main", include_str!("runtime/tests/main.js")),
    ];

    const COUNT: Param = Param {
        name: "count",
        kind: ParamKind::Int { min: 1, max: 100 },
        need: Need::Required,
        doc: "How many rows",
        uses: &[],
    };
    const BEGIN: Contract = Contract {
        inputs: Inputs::None,
        rows: RowEffect::Source,
        reads: &[],
        writes: Writes::Nothing,
        params: &[COUNT],
        cost: Cost::Trivial,
    };
    const KEEP: Contract = Contract { inputs: Inputs::One, rows: RowEffect::Fewer, ..BEGIN };
    const TASKS: &[Signature] = &[
        Signature { op: "begin", summary: "Make rows.", contract: &BEGIN },
        Signature { op: "keep_some", summary: "Keep the first rows.", contract: &KEEP },
    ];

    fn registry() -> Registry {
        let keys = Text { file: "keys.toml", text: include_str!("../../../registry/keys.toml") };
        let params = Text { file: "params.toml", text: include_str!("../../../registry/params.toml") };
        let endpoints = Text { file: "endpoints.toml", text: include_str!("../../../registry/endpoints.local.toml") };
        Registry::parse(keys, params, endpoints).0
    }

    /// Runs the tests of a file in the engine that plans run in, and gives those that fail.
    fn failures(name: &str, code: &str) -> Vec<String> {
        let modules = Modules { plan: HashMap::new(), config: config(TASKS, &registry()) };
        let context = start(modules, Default::default(), Default::default()).expect("an engine starts");
        context.with(|ctx| {
            let run = || -> rquickjs::Result<Vec<String>> {
                let tests: Object<'_> = evaluate(&ctx, name, code)?.get("tests")?;
                let mut failed = Vec::new();
                for entry in tests.props::<String, Function<'_>>() {
                    let (test, run) = entry?;
                    if let Err(error) = run.call::<_, ()>(()).catch(&ctx) {
                        failed.push(format!("{name}: {test}: {error}"));
                    }
                }
                assert!(!tests.is_empty(), "{name} has no tests");
                Ok(failed)
            };
            run().catch(&ctx).unwrap_or_else(|error| vec![format!("{name}: {error}")])
        })
    }

    #[test]
    fn every_part_of_the_runtime_does_what_its_tests_say() {
        let failed: Vec<String> = FILES[1..].iter().flat_map(|(name, code)| failures(name, code)).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    #[test]
    fn every_kind_of_option_has_a_reader() {
        let has =
            |reader: &str| format!("if (typeof readers.{reader} !== \"function\") throw new Error(\"{reader}\");");
        let kinds = ParamKind::EACH.iter().map(|kind| kind.row().reader);
        let looks: String = kinds.chain(NODE_OPTIONS.iter().map(|(_, reader)| *reader)).map(has).collect();
        let code =
            format!("import {{ readers }} from \"rankd:options\"; export const tests = {{ all() {{ {looks} }} }};");
        assert_eq!(failures("rankd:tests/main", &code), Vec::<String>::new());
    }

    #[test]
    fn a_failing_test_of_the_runtime_is_noticed() {
        let code = "import { equal } from \"rankd:tests/checks\"; export const tests = { wrong() { equal(1, 2); } };";
        let failed = failures("rankd:tests/main", code);
        assert!(failed.len() == 1 && failed[0].contains("1 instead of 2"), "{failed:?}");
    }
}
