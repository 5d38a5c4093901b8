//! Cases about what is wrong with a plan or registry: `rankd check --json`, a line for each diagnostic.

use crate::markdown::Case;
use crate::workspace::Workspace;
use rankd_plan::json::{Kind, Reader};

/// `CODE POINTER AT: message (help)` for each diagnostic, or `ok`.
pub(crate) fn run(case: &Case) -> String {
    let workspace = Workspace::of(case);
    let plan: &[&str] = if case.block("plan").is_some() { &["case"] } else { &[] };
    let output = workspace.rankd(&[&["check", "--json"], plan].concat());
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let lines = lines(&text);
    let ok = text.starts_with("{\"ok\":true");
    assert_eq!(output.status.code(), Some(if ok { 0 } else { 2 }), "{}: the exit code", case.place());
    if lines.is_empty() { "ok".to_owned() } else { lines.join("\n") }
}

fn lines(text: &str) -> Vec<String> {
    let mut reader = Reader::new(text, 8);
    let mut lines = Vec::new();
    let mut fields = reader.open_object().expect("an object");
    while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
        if name != "diagnostics" {
            reader.skip().expect("JSON");
            continue;
        }
        let mut items = reader.open_array().expect("an array");
        while reader.item(&mut items).expect("JSON") {
            let (mut code, mut pointer, mut at, mut message, mut help) = Default::default();
            let mut diagnostic = reader.open_object().expect("an object");
            while let Some((name, _)) = reader.field(&mut diagnostic).expect("JSON") {
                if reader.peek().expect("JSON") != Kind::String {
                    reader.skip().expect("JSON");
                    continue;
                }
                let value = reader.string().expect("JSON").into_owned();
                match &*name {
                    "code" => code = value,
                    "pointer" => pointer = value,
                    "at" => at = value,
                    "message" => message = value,
                    "help" => help = format!(" ({value})"),
                    _ => {}
                }
            }
            let pointer = if pointer.is_empty() { String::new() } else { format!("{pointer} ") };
            lines.push(format!("{code} {pointer}{at}: {message}{help}"));
        }
    }
    lines
}
