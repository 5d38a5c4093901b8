//! The tables of codes are complete, and `docs/errors.md` is made of them.

#![expect(clippy::disallowed_methods, reason = "a test reads the repository, and writes a generated file of it")]

use super::*;
use rankd_engine::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every Rust and JavaScript file in the crates, without the tables themselves.
fn sources() -> String {
    let (mut folders, mut text) = (vec![repository().join("crates")], String::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_source = path.components().any(|part| part.as_os_str() == "src")
                && path.extension().is_some_and(|extension| extension == "rs" || extension == "js");
            if path.is_dir() {
                folders.push(path);
            } else if is_source && !path.ends_with("src/codes.rs") {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    text
}

/// Whether a name is used, and not only one that begins like it.
fn uses(text: &str, path: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(path).any(|(at, _)| !text[at + path.len()..].starts_with(is_word))
}

#[test]
fn every_code_is_raised_somewhere() {
    let text = sources();
    let unused = entries().into_iter().filter(|entry| match entry {
        Entry::Error(code) => !uses(&text, &format!("codes::{}", code.name)),
        // The JavaScript runtime reports by number.
        Entry::Diagnostic(code) => !uses(&text, &format!("Code::{code:?}")) && !uses(&text, &format!("(\"{code}\"")),
    });
    let unused: Vec<&str> = unused.map(Entry::id).collect();
    assert!(unused.is_empty(), "codes that nothing raises: {unused:?}");
}

#[test]
fn every_code_has_an_example() {
    for entry in entries() {
        let example = entry.example();
        assert!(example.iter().any(|block| block.text.contains(entry.id())), "{} has no example", entry.id());
    }
}

#[test]
fn docs_errors_md_is_fresh() {
    let (path, fresh) = (repository().join("docs/errors.md"), document());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &fresh).unwrap();
    }
    let stale = "docs/errors.md is stale: UPDATE=1 cargo test --workspace --lib -- docs_errors_md writes it";
    assert!(fs::read_to_string(&path).is_ok_and(|text| text == fresh), "{stale}");
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n| kind | HTTP status | |\n|---|---|---|\n");
    for kind in ErrorKind::ALL {
        let (name, status) = (kind.name(), status::of_kind(*kind).as_u16());
        text.push_str(&format!("| `{name}` | {status} | {} |\n", in_words(*kind)));
    }
    text.push_str(FIELDS);
    let (errors, diagnostics): (Vec<Entry>, Vec<Entry>) =
        entries().into_iter().partition(|entry| matches!(entry, Entry::Error(_)));
    text.push_str(
        "\n## Failed requests\n\n| code | kind | status | cause | retry | meaning |\n|---|---|---|---|---|---|\n",
    );
    for entry in &errors {
        let Entry::Error(code) = entry else { continue };
        let (id, kind, status, cause) = (code.id, code.kind.name(), status::of(code).as_u16(), code.cause.name());
        let retry = if code.retry { "yes" } else { "no" };
        let (link, about) = (id.to_lowercase(), code.about);
        text.push_str(&format!("| [{id}](#{link}) | `{kind}` | {status} | {cause} | {retry} | {about} |\n"));
    }
    errors.iter().for_each(|entry| section(*entry, &mut text));
    text.push_str("\n## Diagnostics\n\n| code | severity | meaning |\n|---|---|---|\n");
    for entry in &diagnostics {
        let (id, kind, about) = (entry.id(), entry.kind(), entry.about());
        text.push_str(&format!("| [{id}](#{}) | {kind} | {about} |\n", id.to_lowercase()));
    }
    diagnostics.iter().for_each(|entry| section(*entry, &mut text));
    text
}

const HEAD: &str = "# Errors

Generated from the tables of codes in `rankd-engine` and `rankd-plan`; do not edit. `rankd code E401` prints one page of it, `rankd code`
lists all codes. A number is never used again.

A failed request is answered with an error object: `code`, `kind`, `retry` and `message`, and where a node failed its `node`, `op` and, if
the artifact knows it, the author's place `at`. A kind has one HTTP status, except where HTTP has a more
specific one for a code.
";

const FIELDS: &str = "
The cause is **weather** if the same plan and request may succeed a moment later, and a **mistake** if they will not until something is
changed. `retry` says whether callers should send the same request again; requests only read, so it is always safe to do so. A 503 comes
with `retry-after`, in seconds.

A diagnostic (P: plans, D: plans in TypeScript, R: registries) is a problem that `rankd check` reports before anything runs. With a
warning, the plan still runs.
";

/// Who is at fault.
fn in_words(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::BadRequest => "the request is wrong",
        ErrorKind::UnknownPlan => "there is no such plan",
        ErrorKind::InvalidPlan => "the plan has no good version",
        ErrorKind::Timeout => "a time limit was exceeded",
        ErrorKind::Upstream => "a store failed",
        ErrorKind::Task => "a task failed on this data",
        ErrorKind::Overloaded => "the server cannot take this request now",
        ErrorKind::Cancelled => "the caller disconnected, or the process stopped",
        ErrorKind::Bug => "rankd, or a task, is at fault",
    }
}

fn section(entry: Entry, text: &mut String) {
    let (id, facts, help) = (entry.id(), entry.facts(), entry.help());
    let mut about = entry.about().chars();
    let about: String = about.next().into_iter().flat_map(char::to_uppercase).chain(about).collect();
    text.push_str(&format!("\n### {id}\n\n{about}.\n\n*{facts}*\n\n{help}\n"));
    for Block { title, text: block } in entry.example() {
        let language = match (Path::new(&title).extension().and_then(|ext| ext.to_str()), entry) {
            (Some(extension), _) => extension,
            (None, Entry::Error(_)) => "json",
            (None, Entry::Diagnostic(_)) => "text",
        };
        let title = if title.is_empty() { String::new() } else { format!("`{title}`:\n\n") };
        text.push_str(&format!("\n{title}```{language}\n{block}\n```\n"));
    }
}

#[test]
fn a_page_says_what_to_do_and_shows_it() {
    let page_of = |id: &str| page(*entries().iter().find(|entry| entry.id() == id).unwrap());
    let text = page_of("E401");
    assert!(text.starts_with("E401: an endpoint cannot be reached"), "{text}");
    assert!(text.contains("upstream · HTTP 502 · weather") && text.contains("rankd check --connect"), "{text}");
    assert!(text.contains(r#"{"error":{"code":"E401","kind":"upstream","retry":true,"message":"#), "{text}");
    let text = page_of("P701");
    assert!(text.contains("plans/case.plan.json\n  {") && text.contains("\n  P701 /nodes/"), "{text}");
    let text = page_of("D011");
    assert!(text.contains("plans/case.plan.ts\n") && text.contains("\n  D011 plans/case.plan.ts:"), "{text}");
}
