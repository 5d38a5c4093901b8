//! The modules of each crate as `tidy` sees them: a type name is defined once in a crate, and modules do not import each other in a ring.
//!
//! This reads text, not syntax: items begin a line, and paths begin with `crate::` or `super::`. Test modules do not count.

use crate::tidy::{files, read};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that still have rings among their modules; no other may.
const RINGS: &[&str] = &["rankd-column", "rankd-engine", "rankd-plan"];
/// Every file in this folder is a task, and what it defines is its own business.
const TASKS: &str = "crates/rankd-tasks/src/tasks/";

/// The path of a module within its crate; empty for the root.
type Path = Vec<String>;

/// One file of a crate.
struct Module {
    file: String,
    path: Path,
    /// Without test modules and comments.
    code: String,
}

pub(crate) fn check(wrong: &mut Vec<String>) {
    let mut crates: BTreeMap<String, Vec<Module>> = BTreeMap::new();
    for file in files(&["crates/*/src/*.rs", "crates/*/src/**/*.rs"]) {
        let Some((name, inside)) = file.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        let module = Module { path: module_path(inside), code: code(&read(&file)), file: file.clone() };
        crates.entry(name.to_owned()).or_default().push(module);
    }
    for (name, mut modules) in crates {
        let tests = test_modules(&modules);
        modules.retain(|module| !tests.iter().any(|test| module.path.starts_with(test)));
        wrong.extend(repeated_types(&modules));
        let rings = rings(&modules);
        match (rings.is_empty(), RINGS.contains(&name.as_str())) {
            (true, true) => {
                wrong.push(format!("{name} has no ring any more: take it off the list in xtask/src/modules.rs"))
            }
            (false, false) => wrong.extend(rings),
            (true, false) | (false, true) => {}
        }
    }
}

fn module_path(inside: &str) -> Path {
    let mut path: Path = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        path.pop();
    }
    path
}

/// A file's code up to its tests, which come last, without lines that are comments.
fn code(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Modules in files of their own that only tests have.
fn test_modules(modules: &[Module]) -> Vec<Path> {
    let mut found = Vec::new();
    for module in modules {
        for rest in module.code.split("#[cfg(test)]\nmod ").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push([module.path.clone(), vec![name]].concat());
        }
    }
    found
}

/// Type names that are defined more than once.
fn repeated_types(modules: &[Module]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for module in modules.iter().filter(|module| !module.file.starts_with(TASKS)) {
        for name in module.code.lines().filter_map(defined_type) {
            places.entry(name).or_default().push(&module.file);
        }
    }
    let repeated = places.into_iter().filter(|(_, files)| files.len() > 1);
    repeated.map(|(name, files)| format!("the type {name} is defined more than once: {}", files.join(", "))).collect()
}

/// The type that a line defines, if it does: items of a module are not indented.
fn defined_type(line: &str) -> Option<&str> {
    let item = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (kind, rest) = item.split_once(' ')?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    ["struct", "enum", "trait", "type", "union"].contains(&kind).then(|| &rest[..end])
}

/// Modules that import each other, directly or through others: for each folder, its modules with all that is in them.
fn rings(modules: &[Module]) -> Vec<String> {
    let known: BTreeSet<&Path> = modules.iter().map(|module| &module.path).collect();
    let mut graphs: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for module in modules {
        for target in imports(module) {
            let Some(target) =
                (1..=target.len()).rev().map(|len| target[..len].to_vec()).find(|path| known.contains(path))
            else {
                continue;
            };
            let shared = module.path.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.path.get(shared), target.get(shared)) {
                let graph = graphs.entry(target[..shared].to_vec()).or_default();
                graph.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (folder, graph) in &graphs {
        let ring: Vec<&str> =
            graph.keys().filter(|module| reaches(graph, module, module)).map(String::as_str).collect();
        if !ring.is_empty() {
            let (file, names) = (modules.first().map_or("", |module| &module.file), ring.join(", "));
            let room = file.split("/src/").next().unwrap_or_default();
            let folder: String = folder.iter().map(|part| format!("{part}/")).collect();
            found.push(format!("{room}/src/{folder}: these modules import each other in a ring: {names}"));
        }
    }
    found
}

/// Whether a module can be reached from another by at least one import.
fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        for import in graph.get(module).into_iter().flatten() {
            if import == to {
                return true;
            }
            if seen.insert(import) {
                next.push(import);
            }
        }
    }
    false
}

/// The paths within the crate that a module names, from the crate's root.
fn imports(module: &Module) -> Vec<Path> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in module.code.match_indices(start) {
            let before = module.code[..at].chars().next_back();
            if before.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == ':')) {
                found.extend(paths(&module.code[at..]));
            }
        }
    }
    found.into_iter().map(|path| from_root(&path, &module.path)).collect()
}

/// A path as it is written, seen from the root.
fn from_root(path: &[String], module: &[String]) -> Path {
    let ups = path.iter().take_while(|part| *part == "super").count();
    if ups == 0 {
        return path[1..].to_vec();
    }
    let base = &module[..module.len().saturating_sub(ups)];
    [base, &path[ups..]].concat()
}

/// The paths that a text begins with: `a::{b, c::d}` is two.
fn paths(text: &str) -> Vec<Path> {
    // Open braces, each with what stands before it, and the path under way.
    let (mut outer, mut path, mut name) = (vec![], Path::new(), String::new());
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_alphanumeric() || c == '_' => name.push(c),
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                path.push(std::mem::take(&mut name));
            }
            '{' => outer.push(path.clone()),
            ',' | '}' if !outer.is_empty() => {
                if !name.is_empty() {
                    path.push(std::mem::take(&mut name));
                    found.push(path.clone());
                }
                if c == '}' {
                    outer.pop();
                }
                path = outer.last().cloned().unwrap_or_default();
                if outer.is_empty() {
                    return found;
                }
            }
            c if c.is_whitespace() && !outer.is_empty() => {
                // After a name, only another one for it may follow.
                while !name.is_empty() && chars.next_if(|c| !matches!(c, ',' | '}')).is_some() {}
            }
            _ => break,
        }
    }
    if outer.is_empty() {
        path.push(name);
        found.push(path);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &[&str], code: &str) -> Module {
        let path: Path = path.iter().map(|part| part.to_string()).collect();
        Module { file: format!("crates/x/src/{}.rs", path.join("/")), path, code: code.to_owned() }
    }

    #[test]
    fn a_path_is_read_with_all_its_branches() {
        let read = |text| paths(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
        assert_eq!(read("crate::a::B;"), ["crate::a::B"]);
        assert_eq!(read("crate::a::b(1)"), ["crate::a::b"]);
        assert_eq!(
            read("crate::{a, b::{self, C},\n    d as e};"),
            ["crate::a", "crate::b::self", "crate::b::C", "crate::d"]
        );
    }

    #[test]
    fn a_ring_is_found_at_its_level_and_a_parent_is_no_ring() {
        let ring = [
            module(&["a"], "use crate::b::c::X;"),
            module(&["b"], "use crate::b::c::X;"),
            module(&["b", "c"], "use super::super::a;\nuse super::Y;"),
        ];
        let found = rings(&ring);
        assert_eq!(found, ["crates/x/src/: these modules import each other in a ring: a, b"]);
        assert_eq!(rings(&ring[1..]), Vec::<String>::new());
        let deep =
            [module(&["d", "a"], "fn f() { crate::d::b::g() }"), module(&["d", "b"], "use crate::{d::a::X, e};")];
        assert_eq!(rings(&deep), ["crates/x/src/d/: these modules import each other in a ring: a, b"]);
    }

    #[test]
    fn a_type_name_is_defined_once() {
        for (line, name) in [
            ("struct A;", Some("A")),
            ("pub(crate) enum B<T> {", Some("B")),
            ("pub(in crate::x) type C = u8;", Some("C")),
            ("    type Output = u8;", None),
            ("pub use a::B;", None),
            ("fn structure() {}", None),
        ] {
            assert_eq!(defined_type(line), name, "{line}");
        }
        let twice = [module(&["a"], "struct A;\nstruct B;"), module(&["b"], "pub enum A {}")];
        assert_eq!(
            repeated_types(&twice),
            ["the type A is defined more than once: crates/x/src/a.rs, crates/x/src/b.rs"]
        );
    }
}
