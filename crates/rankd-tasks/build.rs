//! Lists the files of `src/tasks`, so that adding a task is adding one file.
//!
//! A task's op is its file's name, its summary is the first line of its header, and the trait that its `Task` implements says
//! where it runs.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "a build script reads the sources and writes what it makes of them")]
fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets this")).join("src/tasks");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("src/tasks is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    let (mut modules, mut signatures, mut definitions) = (String::new(), String::new(), String::new());
    for path in files {
        let op = path.file_stem().and_then(|stem| stem.to_str()).expect("a task's file name is its op");
        let text = fs::read_to_string(&path).expect("a task file can be read");
        let header = text.lines().next().and_then(|line| line.strip_prefix("//! "));
        let summary = header.expect("a task file opens with `//! ` and one imperative sentence that says what it does");
        let kind = match (text.contains("impl Compute for Task"), text.contains("impl Fetch for Task")) {
            (true, false) => "Compute",
            (false, true) => "Fetch",
            _ => unreachable!("{op}.rs must have `impl Compute for Task` or `impl Fetch for Task`, one of the two"),
        };
        let signature = format!("Signature {{ op: {op:?}, summary: {summary:?}, contract: &{op}::CONTRACT }}");
        let make = format!("|args| Task::{kind}(Arc::new({op}::Task::make(args)))");
        writeln!(modules, "#[path = {path:?}]\nmod {op};").expect("writing to a string");
        writeln!(signatures, "    {signature},").expect("writing to a string");
        writeln!(definitions, "    Definition {{ signature: {signature}, make: {make} }},")
            .expect("writing to a string");
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets this")).join("tasks.rs");
    let code = format!(
        "{modules}\n/// What every task declares, by name.\npub static SIGNATURES: &[Signature] = &[\n{signatures}];\n\n\
         /// Every task, by name.\npub static DEFINITIONS: &[Definition] = &[\n{definitions}];\n"
    );
    fs::write(out, code).expect("OUT_DIR can be written");
}
