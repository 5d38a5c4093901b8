//! Lists the files of `src/tasks`, so that adding a task is adding one file. For build scripts; knows nothing of what tasks do.
//!
//! A task's op is its file's name, its summary is the first line of its header, `CONTRACT` is what it declares and `Task` is its
//! code. The build script of a crate with tasks calls [`list_tasks`], and its `lib.rs` has the modules and `definitions()` by
//! this line:
//!
//! ```text
//! include!(concat!(env!("OUT_DIR"), "/tasks.rs"));
//! ```

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Writes the list of the task files of the crate whose build script this is. A file that is not a task fails the build.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script reads the sources, writes what it makes of them, and talks to cargo"
)]
pub fn list_tasks() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets this")).join("src/tasks");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("src/tasks is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    let mut list = List::default();
    for path in files {
        let op = path.file_stem().and_then(|stem| stem.to_str()).expect("a task's file name is its op");
        let text = fs::read_to_string(&path).expect("a task file can be read");
        list.add(op, &format!("{path:?}"), &text);
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets this")).join("tasks.rs");
    fs::write(out, list.code()).expect("OUT_DIR can be written");
}

#[derive(Default)]
struct List {
    modules: String,
    definitions: String,
}

impl List {
    /// Adds a task. `path` is that of its file, as a literal.
    fn add(&mut self, op: &str, path: &str, text: &str) {
        let summary = text.lines().next().and_then(|line| line.strip_prefix("//! "));
        let summary =
            summary.unwrap_or_else(|| unreachable!("{op}.rs must open with `//! ` and one imperative sentence"));
        let definition =
            format!("::rankd_engine::task::Definition::of::<{op}::Task, _>({op:?}, {summary:?}, &{op}::CONTRACT)");
        writeln!(self.modules, "#[path = {path}]\nmod {op};").expect("writing to a string");
        writeln!(self.definitions, "    {definition},").expect("writing to a string");
    }

    fn code(self) -> String {
        let List { modules, definitions } = self;
        format!(
            "{modules}\nstatic DEFINITIONS: &[::rankd_engine::task::Definition] = &[\n{definitions}];\n\n\
             /// Every task of this crate, for a program's `main` to put together with others.\n\
             pub fn definitions() -> Vec<::rankd_engine::task::Definition> {{\n    DEFINITIONS.to_vec()\n}}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_its_file_s_name_its_first_line_its_contract_and_its_code() {
        let mut list = List::default();
        list.add("take", "\"tasks/take.rs\"", "//! Keep the \"first\" rows.\n//!\n//! More.\n");
        let code = list.code();
        assert!(code.contains("#[path = \"tasks/take.rs\"]\nmod take;"), "{code}");
        assert!(
            code.contains("of::<take::Task, _>(\"take\", \"Keep the \\\"first\\\" rows.\", &take::CONTRACT)"),
            "{code}"
        );
    }

    #[test]
    #[should_panic(expected = "take.rs must open with `//! `")]
    fn a_file_without_a_header_is_not_a_task() {
        List::default().add("take", "\"\"", "use std::fmt;\n");
    }
}
