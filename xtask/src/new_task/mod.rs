//! `cargo xtask new-task NAME`: writes a task that runs as it is, its row in the README and its case, to be changed into what it
//! should be.
//!
//! The task is `template.rs`, which the tests of `rankd-tasks` compile and run.

use crate::{root, say};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("template.rs");

const TASKS: &str = "crates/rankd-tasks/src/tasks";
const README: &str = "README.md";
const CASES: &str = "cases/tasks.md";

/// How the table of tasks in the README begins.
const TABLE: &str = "| task | parameters | what it does |\n";

/// Names that Rust or JavaScript keeps for itself: an op is the name of a module and of a method.
const RESERVED: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "constructor",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "then",
    "to_json",
    "to_string",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "value_of",
    "virtual",
    "where",
    "while",
    "yield",
];

pub(crate) fn run(args: &[String]) -> bool {
    let [name] = args else {
        say("usage: cargo xtask new-task NAME, where NAME is the op, such as keep_some");
        return false;
    };
    match write(&root(), name) {
        Ok(()) => {
            say(&next_steps(name));
            true
        }
        Err(refused) => {
            say(&format!("new-task: {refused}"));
            false
        }
    }
}

/// Why no task was written. Then nothing was.
#[derive(Debug)]
enum Refused {
    BadName,
    Reserved,
    Taken(PathBuf),
    NoTable,
    File(PathBuf, io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::BadName => write!(
                f,
                "a task's name is 1 to 40 lowercase letters, digits and _, starts with a letter, and no _ follows another \
                 or ends it, such as keep_some"
            ),
            Refused::Reserved => write!(f, "the name is a word of Rust or JavaScript; choose another"),
            Refused::Taken(path) => write!(f, "there is such a task already: {}", path.display()),
            Refused::NoTable => write!(f, "{README} has no table that begins with {:?}", TABLE.trim_end()),
            Refused::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// Writes the task's file, its row and its case below a folder.
#[expect(clippy::disallowed_methods, reason = "a chore reads and writes the repository")]
fn write(root: &Path, name: &str) -> Result<(), Refused> {
    check_name(name)?;
    let read = |path: PathBuf| match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(Refused::File(path, error)),
    };
    let task = root.join(TASKS).join(format!("{name}.rs"));
    if task.exists() {
        return Err(Refused::Taken(task));
    }
    let (readme_path, readme) = read(root.join(README))?;
    let (cases_path, cases) = read(root.join(CASES))?;
    let readme = with_row(&readme, name).ok_or(Refused::NoTable)?;
    let cases = format!("{}\n{}", cases.trim_end_matches('\n').to_owned() + "\n", case(name));
    for (path, text) in [(task, TEMPLATE), (readme_path, readme.as_str()), (cases_path, cases.as_str())] {
        std::fs::write(&path, text).map_err(|error| Refused::File(path, error))?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Refused> {
    let is_good = name.len() <= 40
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
        && !name.ends_with('_');
    match is_good {
        true if RESERVED.contains(&name) => Err(Refused::Reserved),
        true => Ok(()),
        false => Err(Refused::BadName),
    }
}

/// The README with a row at the end of its table of tasks.
fn with_row(readme: &str, name: &str) -> Option<String> {
    let table = readme.find(TABLE)?;
    let rows = readme[table..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = table + rows.map(str::len).sum::<usize>();
    let row = format!("| `{name}` | `step` = 2 | keeps one row in `step` |\n");
    Some([&readme[..end], &row, &readme[end..]].concat())
}

fn case(name: &str) -> String {
    format!(
        r#"## {name} keeps one row in `step`, from the first on

```json plan
{{
  "schema_version": 1,
  "plan_name": "case",
  "nodes": [
    {{"node_id": "n0", "op": "candidates"}},
    {{"node_id": "n1", "op": "{name}", "inputs": ["n0"], "params": {{"step": 2}}}}
  ],
  "outputs": ["n1"]
}}
```

```json request
{{"user_id": 1, "candidates": [{{"id": 7}}, {{"id": 5}}, {{"id": 6}}]}}
```

```json gives
{{"id":7}}
{{"id":6}}
```
"#
    )
}

fn next_steps(name: &str) -> String {
    format!(
        "written, and it runs as it is:
  {TASKS}/{name}.rs   the task: header with its example, contract, parameters, code, tests
  {README}   its row in the table of tasks
  {CASES}   its case
next:
  1. change the task into what it should be, then its row and its case
  2. cargo run -q -p rankd -- tasks {name}
  3. cargo run -q -p rankd --bin dslc -- types --out plans
     cargo run -q -p rankd --bin dslc -- types --out dsl && rm dsl/tsconfig.json
  4. UPDATE=1 cargo test -p rankd --test cases, and read what it wrote
  5. cargo xtask ready"
    )
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests have a folder of their own")]
mod tests {
    use super::*;

    /// A folder with what a repository has of tasks; gone when it is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("rankd-new-task-{test}-{}", std::process::id()));
            std::fs::create_dir_all(path.join(TASKS)).unwrap();
            std::fs::create_dir_all(path.join("cases")).unwrap();
            let folder = Folder(path);
            folder.put(README, &format!("# rankd\n\n{TABLE}|---|---|---|\n| `take` | `count` | keeps |\n\nMore.\n"));
            folder.put(CASES, "# Cases\n\n## take\n");
            folder.put(&format!("{TASKS}/take.rs"), "//! Keep the first rows.\n");
            folder
        }

        fn put(&self, file: &str, text: &str) {
            std::fs::write(self.0.join(file), text).unwrap();
        }

        fn text(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // A folder that stays behind is the system's to clean.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_new_task_is_a_file_a_row_and_a_case() {
        let folder = Folder::new("writes");
        write(&folder.0, "keep_some").unwrap();
        assert_eq!(folder.text(&format!("{TASKS}/keep_some.rs")), TEMPLATE);
        let rows = "| `take` | `count` | keeps |\n| `keep_some` | `step` = 2 | keeps one row in `step` |\n\nMore.\n";
        assert!(folder.text(README).ends_with(rows), "{}", folder.text(README));
        let cases = folder.text(CASES);
        assert!(cases.starts_with("# Cases\n\n## take\n\n## keep_some keeps"), "{cases}");
        assert!(cases.contains(r#""op": "keep_some""#), "{cases}");
    }

    #[test]
    fn the_repository_has_what_is_written_to() {
        assert!(with_row(&std::fs::read_to_string(root().join(README)).unwrap(), "keep_some").is_some());
        assert!(root().join(CASES).is_file() && root().join(TASKS).is_dir());
    }

    #[test]
    fn a_bad_or_taken_name_is_refused_and_nothing_is_written() {
        let folder = Folder::new("refuses");
        let before = (folder.text(README), folder.text(CASES));
        for (name, why) in [
            ("", "a task's name is"),
            ("KeepSome", "a task's name is"),
            ("keep-some", "a task's name is"),
            ("keep__some", "a task's name is"),
            ("keep_", "a task's name is"),
            ("2nd", "a task's name is"),
            ("../keep", "a task's name is"),
            ("a123456789012345678901234567890123456789_", "a task's name is"),
            ("match", "a word of Rust or JavaScript"),
            ("to_string", "a word of Rust or JavaScript"),
            ("take", "there is such a task already"),
        ] {
            let refused = write(&folder.0, name).unwrap_err().to_string();
            assert!(refused.contains(why), "{name}: {refused}");
        }
        assert_eq!((folder.text(README), folder.text(CASES)), before);
        assert_eq!(std::fs::read_dir(folder.0.join(TASKS)).unwrap().count(), 1);
    }

    #[test]
    fn a_readme_without_the_table_is_said() {
        let folder = Folder::new("table");
        folder.put(README, "# rankd\n");
        assert!(write(&folder.0, "keep_some").unwrap_err().to_string().contains("has no table"));
        assert!(!folder.0.join(TASKS).join("keep_some.rs").exists());
    }
}
