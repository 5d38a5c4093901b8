//! Whatever is a row of the table of operations is everywhere: in TypeScript, in the JSON that is checked, in the declarations.
//!
//! The loops of the engine and the documentation are held by the tests of `rankd-column`.

use dslc::{Dslc, types};
use rankd_column::Type;
use rankd_column::expr::operation::{Field, Function, Gives, Holds, Home, Rule, Takes, names_in};
use rankd_column::expr::{Form, OPERATIONS, Operation};
use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::source::{Compiled, Compiler, Folder, Unreadable};
use rankd_plan::{Registry, Signatures};

struct One(String);

impl Folder for One {
    fn read(&self, _: &str) -> Result<String, Unreadable> {
        Ok(self.0.clone())
    }
}

const PLAIN: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: &[],
    cost: Cost::Trivial,
};
const OUT_KEY: ParamRef = ParamRef::named("out_key");
const COMPUTE: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    writes: Writes::Params(&[OUT_KEY]),
    params: &[
        Param {
            name: "out_key",
            kind: ParamKind::Key(KeyTypes::Any),
            need: Need::Required,
            doc: "Where to",
            uses: &[],
        },
        Param {
            name: "expr",
            kind: ParamKind::Expr { into: Some(OUT_KEY) },
            need: Need::Required,
            doc: "What",
            uses: &[],
        },
    ],
    ..PLAIN
};
const KEEP: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    writes: Writes::Nothing,
    params: &[Param { name: "pred", kind: ParamKind::Pred, need: Need::Required, doc: "Which", uses: &[] }],
    ..PLAIN
};
const TASKS: &[Signature] = &[
    Signature { op: "begin", summary: "Make rows.", contract: &PLAIN },
    Signature { op: "compute", summary: "Compute a column.", contract: &COMPUTE },
    Signature { op: "keep", summary: "Keep some rows.", contract: &KEEP },
];

fn registry() -> Registry {
    // The repository's keys have neither lists nor vectors.
    const ARRAYS: &str = "
[[key]]
key_id = 9001
name = \"tags\"
type = \"list<int>\"
nullable = true
doc = \"Numbers\"

[[key]]
key_id = 9002
name = \"place\"
type = \"vector<3>\"
nullable = true
doc = \"A point\"
";
    let keys = format!("{}{ARRAYS}", include_str!("../../../registry/keys.toml"));
    let keys = Text { file: "keys.toml", text: &keys };
    let params = Text { file: "params.toml", text: include_str!("../../../registry/params.toml") };
    let endpoints = Text { file: "endpoints.toml", text: include_str!("../../../registry/endpoints.local.toml") };
    Registry::parse(keys, params, endpoints).0
}

fn compiled(code: &str) -> Compiled {
    let tasks = Signatures::new(TASKS.iter().copied()).expect("each op is there once");
    Dslc.compile("case.plan.ts", &One(code.to_owned()), &registry(), &tasks)
}

/// What plan code says by throwing it.
fn said(code: &str) -> String {
    let compiled = compiled(&format!("throw new Error({code});"));
    let said = compiled.checked.diagnostics.list().iter().map(|found| found.message.clone());
    said.collect::<Vec<_>>().join("\n")
}

/// A plan with one expression or predicate.
fn plan(operation: &Operation, expression: &str) -> String {
    let takes_truths = operation.fields.iter().any(|field| field.holds == Holds::Predicate && field.name != "cond");
    let operand = if takes_truths { "Key.verified" } else { "Key.age" };
    let task = match (operation.rule, operation.name) {
        _ if operation.is_truth() => "keep({ pred: it })",
        (Rule::Call { gives: Gives::Text, .. }, _) => "compute({ outKey: Key.title, expr: it })",
        (_, "const_string") => "compute({ outKey: Key.title, expr: it })",
        (_, "const_bool") => "keep({ pred: it })",
        _ => "compute({ outKey: Key.score, expr: it })",
    };
    format!(
        "import {{ definePlan }} from \"@ranking-dsl/runtime\";\n\
         const [a, b, x, cond] = [{operand}, {operand}, {operand}, Key.verified];\n\
         const it: any = {expression};\n\
         void [a, b, x, cond];\n\
         export default definePlan({{ name: \"case\", build: (ctx: any) => ctx.begin().{task} }});\n"
    )
}

/// A key of a type that is taken for each operand, and a text for a salt.
fn arguments(operation: &Operation) -> Vec<&'static str> {
    let Rule::Call { takes, .. } = operation.rule else { return Vec::new() };
    let key = |takes: &Takes| match takes {
        _ if takes.fits(Type::Str) => "Key.title",
        _ if takes.fits(Type::Int) => "Key.age",
        Takes::Vector | Takes::SameVector => "Key.place",
        _ => "Key.tags",
    };
    let mut operands = takes.iter().map(key);
    let argument = |field: &Field| match field.holds {
        Holds::Salt => Some("\"salt\""),
        _ => operands.next(),
    };
    operation.fields.iter().filter_map(argument).collect()
}

#[test]
fn every_operation_is_written_as_its_row_says_and_accepted() {
    for operation in OPERATIONS {
        let call =
            |home: &str, count: usize| format!("{home}{}({})", operation.name, vec!["Key.age"; count].join(", "));
        let count = operation.fields.len();
        let mut ways = match operation.script.function {
            Function::Exact(_) | Function::Computed => vec![call("", count), call("E.", count)],
            Function::Folded(_) => vec![call("", count), call("E.", count + 1)],
            Function::SpeltOut => vec![call("E.", count)],
            Function::Built(built) => {
                let home = if operation.is_truth() { "Pred." } else { "E." };
                let args = arguments(operation).join(", ");
                ["", home].iter().map(|home| format!("{home}{}({args})", built.name)).collect()
            }
            Function::ByHand(_) => vec![],
        };
        if !operation.script.syntax.is_empty() {
            ways.push(operation.script.syntax.to_owned());
        }
        assert!(!ways.is_empty(), "{} cannot be written", operation.name);
        for way in ways {
            let compiled = compiled(&plan(operation, &way));
            let artifact = compiled.artifact.unwrap_or_else(|| panic!("{way}: {:#?}", compiled.checked.diagnostics));
            assert!(artifact.contains(&format!("{{\"op\":\"{}\"", operation.name)), "{way} is written as {artifact}");
            assert!(compiled.checked.plan.is_some(), "{way}: {:#?}", compiled.checked.diagnostics);
        }
    }
}

#[test]
fn plans_find_the_names_of_the_table_and_no_others() {
    for (home, object) in [(Home::E, "E"), (Home::Pred, "Pred")] {
        let mut names = names_in(home);
        names.sort_unstable();
        let said = said(&format!("\"names: \" + Object.keys({object}).sort().join()"));
        assert!(said.ends_with(&format!("names: {}", names.join(","))), "{said}");
    }
    let mut names = names_in(Home::Global);
    names.extend(["definePlan", "Key", "P", "U", "EP", "M", "E", "Pred", "dial"]);
    names.sort_unstable();
    let said = said("\"names: \" + Object.keys((globalThis as any).$rankd.exports).sort().join()");
    assert!(said.ends_with(&format!("names: {}", names.join(","))), "{said}");
    for name in names.iter().filter(|name| **name != "definePlan") {
        let imported = compiled(&format!("import {{ {name} }} from \"@ranking-dsl/runtime\";\nvoid {name};\n"));
        let messages: Vec<&str> = imported.checked.diagnostics.list().iter().map(|found| &*found.message).collect();
        assert_eq!(messages, ["the file has no default export"], "{name}");
    }
}

#[test]
fn every_name_of_the_table_is_declared_with_its_documentation() {
    let declarations = types::declarations(TASKS, &registry());
    let block =
        |from: &str| declarations.split(from).nth(1).and_then(|rest| rest.split("\n  };\n").next()).unwrap_or("");
    let (e, pred) = (block("  export const E: {\n"), block("  export const Pred: {\n"));
    for operation in OPERATIONS {
        let doc = &operation.doc[1..];
        assert!(declarations.contains(doc), "{doc}");
        for (home, name) in operation.names() {
            let declared = match home {
                Home::Global => {
                    declarations.contains(&format!("  export function {name}"))
                        && declarations.contains(&format!("declare const {name}: "))
                }
                Home::E => e.contains(&format!("\n    {name}(")) || e.contains(&format!("\n    {name}<")),
                Home::Pred => pred.contains(&format!("\n    {name}(")) || pred.contains(&format!("\n    {name}<")),
            };
            assert!(declared, "{name} is not declared in {home:?}");
        }
    }
    assert!(!declarations.contains("// ("), "a part of the declarations was not filled in");
}

/// JavaScript leaves these to the C library of the machine, whose bits are its own: the artifact must have those of a run.
#[test]
fn functions_of_plain_numbers_have_the_bits_of_a_run() {
    let (mut tests, mut in_math) = (Vec::new(), 0);
    let mut add = |call: String, expected: f64| tests.push(format!("[\"{call}\", {call}, {expected:?}]"));
    for operation in OPERATIONS.iter().filter(|operation| matches!(operation.script.function, Function::Computed)) {
        let name = operation.name;
        let of_math = if ["sigmoid", "decay"].contains(&name) { "" } else { "Math." };
        in_math += usize::from(!of_math.is_empty());
        for turn in 0..120 {
            let (a, b) = (0.013 + f64::from(turn) * 0.37, 3.3 - f64::from(turn) * 0.071);
            let (operands, expected) = match operation.form {
                Form::Unary(op) => (format!("{a:?}"), op.float(a)),
                Form::Binary(op) => (format!("{a:?}, {b:?}"), op.float(a, b)),
                Form::Call(_) | Form::Special(_) => panic!("{name} is no function of numbers"),
            };
            for home in ["", of_math] {
                add(format!("{home}{name}({operands})"), expected);
            }
            if name == "pow" {
                add(format!("{a:?} ** ({b:?})"), expected);
            }
        }
    }
    // Where JavaScript differs from IEEE 754, its own ways to write a power keep its rules.
    for call in ["1 ** NaN", "Math.pow(-1, Infinity)", "(-1) ** -Infinity"] {
        tests.push(format!("[\"{call}\", {call}, NaN]"));
    }
    tests.push("[\"a string\", (\"2\" as any) ** 3, 8], [\"a BigInt\", Number(2n ** 3n), 8]".to_owned());
    assert_eq!(in_math, 9);
    let wrong = "filter(([, a, b]: any) => !Object.is(a, b)).map(([call, a, b]: any) => `${call} is ${a}, not ${b}`).join(\"; \")";
    let said = said(&format!("\"wrong: (\" + ([{}] as any[]).{wrong} + \")\"", tests.join(",\n")));
    assert!(said.ends_with("wrong: ()"), "{said}");
}

/// Numbers that are known when a plan is compiled are computed at once, with the same results as in a run.
#[test]
fn functions_of_plain_numbers_give_what_the_examples_say() {
    let number =
        |x: f64| if x.is_infinite() { format!("{}Infinity", if x < 0.0 { "-" } else { "" }) } else { format!("{x:?}") };
    let mut tests = Vec::new();
    for operation in OPERATIONS {
        if !matches!(operation.script.function, Function::Exact(_) | Function::Computed | Function::Folded(_)) {
            continue;
        }
        assert!(!operation.examples.is_empty(), "{} has examples", operation.name);
        for (operands, result) in operation.examples {
            let operands: Vec<String> = operands.iter().map(|x| number(*x)).collect();
            let call = format!("{}({})", operation.name, operands.join(", "));
            tests.push(format!("[\"{call}\", {call}, {}]", number(*result)));
        }
        let nulls = vec!["null as any"; operation.fields.len()].join(", ");
        tests.push(format!("[\"{}(null)\", {}({nulls}), null]", operation.name, operation.name));
    }
    let wrong = "filter(([, a, b]: any) => !Object.is(a, b)).map(([call, a, b]: any) => `${call} is ${a}, not ${b}`).join(\"; \")";
    let said = said(&format!("\"wrong: (\" + ([{}] as any[]).{wrong} + \")\"", tests.join(",\n")));
    assert!(said.ends_with("wrong: ()"), "{said}");
}
