//! Lists the files of `src/tasks`, so that adding a task is adding one file.
//!
//! A task's op is its file's name and its summary is the first line of its header.

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
    let (mut modules, mut list) = (String::new(), String::new());
    for path in files {
        let op = path.file_stem().and_then(|stem| stem.to_str()).expect("a task's file name is its op");
        let text = fs::read_to_string(&path).expect("a task file can be read");
        let header = text.lines().next().and_then(|line| line.strip_prefix("//! "));
        let summary = header.expect("a task file opens with `//! ` and one imperative sentence that says what it does");
        writeln!(modules, "#[path = {path:?}]\nmod {op};").expect("writing to a string");
        writeln!(list, "    Signature {{ op: {op:?}, summary: {summary:?}, contract: &{op}::CONTRACT }},")
            .expect("writing to a string");
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets this")).join("tasks.rs");
    let code = format!("{modules}\n/// Every task, by name.\npub static SIGNATURES: &[Signature] = &[\n{list}];\n");
    fs::write(out, code).expect("OUT_DIR can be written");
}
