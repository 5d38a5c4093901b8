//! `rankd explain --svg` and `--html`: pictures that are well-formed, the same each time, and made of text only, whatever a plan's author typed.

use crate::json::Json;
use crate::program::{Folder, node, read, repository, run};
use rankd_engine::clock;
use std::path::Path;
use std::time::Duration;

/// What somebody might type to see what happens.
const HOSTILE: &str = r#"<img src=x onerror=alert(1)> ]]> --> </script><script>alert(2)</script> & \" ' \u0007 \u202e"#;

fn picture(args: &[&str]) -> String {
    let ran = run(&[&["explain"], args].concat(), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

/// Checks that a text is one XML element: tags that match, attributes in quotes, known entities, no characters that XML cannot have. The names of all
/// elements are returned.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut names): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    let is_plain = |text: &str| {
        let entity = |rest: &str| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| rest.starts_with(known));
        !text.contains("]]>")
            && text.chars().all(|char| char >= ' ' || char == '\n')
            && text.split('&').skip(1).all(entity)
    };
    let mut rest = xml.trim_end();
    while let Some((text, after)) = rest.split_once('<') {
        assert!(is_plain(text) && (!open.is_empty() || text.is_empty()), "text {text:?}");
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "tags match");
            continue;
        }
        assert!(!open.is_empty() || names.is_empty(), "there is one outermost element");
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric()), "{tag}");
        let mut parts = attributes.split('"');
        while let Some(key) = parts.next().filter(|key| !key.is_empty()) {
            let key = key.trim().strip_suffix('=').expect("an attribute has a value");
            assert!(key.chars().all(|char| char.is_ascii_alphabetic() || char == '-'), "{tag}");
            assert!(!key.starts_with("on") && key != "href" && key != "style", "{tag}");
            assert!(parts.next().is_some_and(is_plain), "{tag}");
        }
        names.push(name.to_owned());
        if !is_empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest:?}");
    names
}

/// Pictures need these elements and no others: none of them loads or runs anything.
fn check_svg(svg: &str) {
    for name in elements(svg) {
        assert!(["svg", "title", "style", "g", "rect", "path", "text", "tspan"].contains(&&*name), "{name}");
    }
    assert!(!svg.contains("url(") && !svg.contains("@import"), "nothing is loaded");
}

/// The JSON inside a page, and what is around it.
fn parts_of(page: &str) -> (Json, String) {
    let (before, after) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("it has data");
    let (data, after) = after.split_once("</script>").expect("the data ends");
    assert!(!data.contains(['<', '>', '&']), "the data cannot end its element");
    (Json::read(data), format!("{before}{after}"))
}

#[test]
fn every_plan_of_the_repository_has_a_picture() {
    for name in ["complex_dag", "for_you", "ab_test", "related_items"] {
        let svg = picture(&[name, "--svg"]);
        check_svg(&svg);
        assert_eq!(svg, picture(&[name, "--svg"]), "the same each time");
        let ran = picture(&[name, "--svg", "--analyze"]);
        check_svg(&ran);
        assert!(
            ran.contains("rows after") && ran.contains("class=\"share\"") && ran.contains("critical heat"),
            "{ran}"
        );
    }
    let svg = picture(&["for_you", "--svg"]);
    for part in [
        "one pass",
        "score = ",
        "class=\"node reads lazy\"",
        "runs when it is needed",
        "class=\"line reserve\"",
        "is-output",
        "fallback none",
        ">trending<",
        "fanout 10 to 30",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert_eq!(svg.matches("data-node=").count(), 38);
}

#[test]
fn fallbacks_and_conditions_are_drawn() {
    let folder = Folder::new();
    let text = r#"{"schema_version":1,"plan_name":"spared","nodes":[
        {"node_id":"s","op":"fixed_source","params":{"row_count":3},"fallback":{"node":"spare"}},
        {"node_id":"spare","op":"fixed_source","params":{"row_count":2}},
        {"node_id":"idle","op":"take","inputs":["s"],"params":{"count":1}},
        {"node_id":"z","op":"sleep","inputs":["s"],"params":{"duration_ms":1},"fallback":"input","when":"p0"}],
        "outputs":["z"],"expr_table":{},"pred_table":{"p0":{"op":"not_null","x":{"op":"param_ref","param":"weight"}}}}"#;
    let plan = folder.write("spared.plan.json", text);
    let svg = picture(&[&plan, "--svg"]);
    check_svg(&svg);
    for part in ["class=\"line stand-in\"", "when P.weight != null", "conditional", "fallback node spare", "never runs"]
    {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    // The condition does not hold, so the node is skipped; what stands in is not needed.
    let svg = picture(&[&plan, "--svg", "--analyze"]);
    check_svg(&svg);
    assert!(svg.contains(">skipped<") && svg.contains(">did not start<"), "{svg}");
    let ran = run(&["explain", &plan, "--html", "--analyze"], b"{\"user_id\":1,\"params\":{\"weight\":1}}\n");
    let (data, _) = parts_of(&ran.stdout);
    let z = &data.list("nodes")[3];
    assert_eq!((z.text("id"), z.text("op")), ("z", "sleep"));
    let facts = format!("{z:?}");
    for part in ["duration_ms", "share of the critical path", "3 → 3", "runs when"] {
        assert!(facts.contains(part), "{part}: {facts}");
    }
}

#[test]
fn what_an_author_typed_is_never_markup() {
    let folder = Folder::new();
    let source = node("s", "fixed_source", &[], &format!(r#""row_count":3,"trace":"{HOSTILE}""#));
    let plan = folder.plan("odd", &[source, node("<b>&t</b>", "take", &["s"], r#""count":1"#)], &["<b>&t</b>"]);
    let svg = picture(&[&plan, "--svg", "--analyze"]);
    check_svg(&svg);
    assert!(svg.contains("&lt;img src=x onerror=alert(1)&gt; ]]&gt;"), "{svg}");
    let page = picture(&[&plan, "--html", "--analyze"]);
    let (data, around) = parts_of(&page);
    assert!(format!("{data:?}").contains("<img src=x onerror=alert(1)> ]]>"), "the data has the label as it is");
    assert_eq!(data.list("nodes")[1].text("id"), "<b>&t</b>");
    assert!(!around.contains("<img") && !around.contains("<b>") && !around.contains("alert(2)</script>"), "{around}");
    assert_eq!(page.matches("<script").count(), 2, "the data and the page's own");
    let drawing = &page[page.find("<svg xmlns").expect("a picture")..page.find("</svg>\n<div").expect("its end") + 6];
    elements(drawing);
}

#[test]
fn a_page_may_run_its_own_script_and_load_nothing() {
    let page = picture(&["for_you", "--html"]);
    let policy = "content=\"default-src 'none'; script-src 'sha256-";
    assert!(page.contains(policy) && page.contains("style-src 'sha256-") && !page.contains("unsafe"), "{page}");
    let (_, around) = parts_of(&page);
    let (_, code) = around.split_once("<script>").expect("a script");
    for word in [
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
        "document.write",
        "localStorage",
    ] {
        assert!(!code.contains(word), "{word}");
    }
    for word in [" src=", " href=", "url(", "@import", " style=", " onclick="] {
        assert!(!around.contains(word), "{word}");
    }
    // Addresses are names of formats.
    assert_eq!(page.matches("://").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(page.contains("prefers-color-scheme:dark"));
    let (data, _) = parts_of(&page);
    let n37 = &data.list("nodes")[37];
    let facts = format!("{n37:?}");
    assert!(
        facts.contains("for_you.plan.ts:48:8") && facts.contains("cursor") && facts.contains("P.cursor"),
        "{facts}"
    );
}

#[test]
fn one_form_at_a_time() {
    for forms in [["--svg", "--html"], ["--svg", "--json"], ["--html", "--dot"], ["--dot", "--mermaid"]] {
        let ran = run(&["explain", "complex_dag", forms[0], forms[1]], b"");
        assert_eq!(ran.code, 2, "{forms:?}");
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
    let ran = run(&["explain", "mixed_pipelin", "--svg"], b"");
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
}

/// In one line, and side by side. What it takes is dominated by loading the plan; the layout's own bounds are tested with it.
#[test]
fn plans_of_ten_thousand_nodes_have_pictures() {
    let folder = Folder::new();
    let mut deep = vec![node("n0", "fixed_source", &[], "")];
    deep.extend((1..10_000).map(|at| node(&format!("n{at}"), "concat", &["n0"], &format!(r#""rhs":"n{}""#, at - 1))));
    let deep = folder.plan("deep", &deep, &["n9999"]);
    let mut wide: Vec<String> = (0..9_844).map(|at| node(&format!("n{at}"), "fixed_source", &[], "")).collect();
    let merge = |at: usize, inputs: Vec<String>| {
        let names: Vec<&str> = inputs.iter().map(String::as_str).collect();
        node(&format!("m{at}"), "merge", &names, r#""how":"round_robin""#)
    };
    wide.extend((0..154).map(|at| merge(at, (at * 63..(at + 1) * 63).map(|input| format!("n{input}")).collect())));
    wide.push(merge(154, (0..64).map(|at| format!("m{at}")).collect()));
    let wide = folder.plan("wide", &wide, &["m154"]);
    for plan in [deep, wide] {
        let start = clock::now();
        let svg = picture(&[&plan, "--svg"]);
        assert!(clock::now().saturating_duration_since(start) < Duration::from_secs(60));
        check_svg(&svg);
        assert!(svg.len() < 20_000_000, "{} bytes", svg.len());
    }
}

/// The picture in the README. `UPDATE=1` writes it anew.
#[test]
fn the_picture_in_the_readme_is_fresh() {
    let path = repository().join("docs/complex_dag.svg");
    let svg = picture(&["complex_dag", "--svg"]);
    if std::env::var_os("UPDATE").is_some() {
        write(&path, &svg);
    }
    assert!(read(&repository().join("README.md")).contains("docs/complex_dag.svg"));
    assert_eq!(read(&path), svg, "docs/complex_dag.svg is stale: UPDATE=1 cargo test -p rankd --test run pictures");
}

#[expect(clippy::disallowed_methods, reason = "a test renews a file of the repository when it is asked to")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the file can be written");
}
