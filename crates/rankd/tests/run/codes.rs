//! `rankd code`: the page of a code, the list of all, and what a wrong one gets.

use crate::json::Json;
use crate::program::{command, run};

#[test]
fn a_code_is_explained_however_it_is_spelled() {
    for (id, words) in [
        ("E401", ["upstream · HTTP 502 · weather", "`rankd check --connect`", "\"retry\":true"]),
        ("p701", ["nothing upstream can have written", "plans/case.plan.json", "P701 /nodes/1/params/key"]),
        ("d011", ["known only in a run", "plans/case.plan.ts", "D011 plans/case.plan.ts:1:36"]),
        ("R001", ["is not TOML", "registry/keys.toml", "R001 "]),
    ] {
        let ran = run(&["code", id], b"");
        assert_eq!((ran.code, &*ran.stdout), (0, ""), "{id}");
        assert!(ran.stderr.starts_with(&id.to_uppercase()), "{}", ran.stderr);
        words.iter().for_each(|words| assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr));
    }
}

#[test]
fn all_codes_are_listed_and_each_is_an_object_for_programs() {
    // The list has the code of panics, so it may name them.
    let text = |bytes| String::from_utf8(bytes).expect("it is UTF-8");
    let listed = text(command(&["code"]).output().expect("rankd runs").stderr);
    let json = text(command(&["code", "--json"]).output().expect("rankd runs").stdout);
    let Json::List(all) = Json::read(json.trim()) else { unreachable!("a list") };
    assert_eq!(all.len(), rankd_engine::codes::ALL.len() + rankd_plan::Code::ALL.len());
    for code in &all {
        assert!(listed.contains(&format!("\n{} ", code.text("code"))), "{listed}");
        assert!(!code.text("meaning").is_empty() && !code.text("help").is_empty() && !code.list("example").is_empty());
        assert_ne!(code.has("kind"), code.has("severity"));
    }
}

#[test]
fn a_code_that_does_not_exist_gets_the_nearest_one() {
    for (id, says) in [("E4O1", "did you mean E401?"), ("nothing", "rankd code lists them")] {
        let ran = run(&["code", id], b"");
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{id}");
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}
