//! Values about persons: a key that the registry marks with `pii` is in answers, and in nothing that is written down or shown to operators.

use crate::program::{Folder, Ran, node, read, repository, run};
use std::path::{Path, PathBuf};

/// The repository's registry, in which `country` is personal, and a plan that has it.
fn project() -> (Folder, String, String) {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("registry")).expect("a folder can be made");
    for name in ["keys.toml", "params.toml"] {
        let text = read(&repository().join("registry").join(name));
        let text = text.replace("name = \"country\"\n", "name = \"country\"\npii = true\n");
        folder.write(&format!("registry/{name}"), &text);
    }
    folder.write("registry/endpoints.local.toml", "");
    let filter = r#"{"node_id":"german","op":"filter","inputs":["scored"],"params":{"pred":"p"}}"#;
    let nodes = [
        node(
            "source",
            "fixed_source",
            &[],
            r#""row_count":2,"columns":{"country":["Germany","Utopia"],"likes":[3,4]}"#,
        ),
        node("scored", "vm", &["source"], r#""out_key":"score","expr":"e""#),
        filter.to_owned(),
    ];
    let e = r#""e":{"op":"key_ref","key":"likes"}"#;
    let plan = folder.plan_with("personal", &nodes, &["german"], e);
    let is_german = r#""p":{"op":"cmp","cmp":"==","a":{"op":"key_ref","key":"country"},"b":{"op":"const_string","value":"Germany"}}"#;
    let text = read(Path::new(&plan)).replace(r#""pred_table":{}"#, &format!(r#""pred_table":{{{is_german}}}"#));
    let plan = folder.write("personal.plan.json", &text);
    let registry = folder.path("registry").display().to_string();
    (folder, plan, registry)
}

fn rankd(command: &str, plan: &str, registry: &str, more: &[&str]) -> Ran {
    let args = [&[command, "--plan", plan, "--registry", registry], more].concat();
    run(&args, b"{\"user_id\":1}\n")
}

#[test]
fn why_tells_no_personal_value_but_whether_the_condition_held() {
    let (_folder, plan, registry) = project();
    for more in [&["--item", "2"][..], &["--item", "2", "--json"]] {
        let args = [&["why", &plan, "--registry", &registry, "--user", "1"], more].concat();
        let ran = run(&args, b"");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stdout.contains("Utopia"), "{}", ran.stdout);
        // The plan's own text, and other values, are told.
        assert!(ran.stdout.contains("country") && ran.stdout.contains("Germany"), "{}", ran.stdout);
        assert!(ran.stdout.contains("likes") && ran.stdout.contains("false"), "{}", ran.stdout);
    }
}

#[test]
fn the_feature_log_has_no_personal_value_or_a_hash_and_answers_have_it() {
    let (folder, plan, registry) = project();
    let log = |name: &str, more: &[&str]| {
        let features = folder.path(name);
        let flags = [&["--feature_log", features.to_str().expect("it is text")], more].concat();
        let ran = rankd("run", &plan, &registry, &flags);
        assert!(ran.stdout.contains(r#""country":"Germany""#), "{}{}", ran.stdout, ran.stderr);
        written(&features)
    };
    let omitted = log("omitted", &[]);
    assert!(!omitted.contains("Germany") && !omitted.contains("country") && omitted.contains("likes"));
    let hashed = log("hashed", &["--pii", "hash", "--pii_salt", "pepper"]);
    // printf 'pepper:Germany' | sha256sum | head -c 32
    assert!(
        hashed.contains("country.hash")
            && hashed.contains("c0684cbbd6d09ce94b921c88895d2f31")
            && !hashed.contains("Germany")
    );
    let unsalted = rankd("run", &plan, &registry, &["--feature_log", "/nowhere", "--pii", "hash"]);
    assert!(unsalted.code == 2 && unsalted.stderr.contains("RANKD_PII_SALT"), "{}", unsalted.stderr);
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what the program wrote")]
fn written(features: &Path) -> String {
    let entries = std::fs::read_dir(features).expect("the folder is there");
    let paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    let bytes: Vec<u8> = paths.iter().flat_map(|path| std::fs::read(path).expect("it can be read")).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn rows_are_not_compared_by_a_personal_key_and_no_setting_shows_the_salt() {
    let (_folder, plan, registry) = project();
    let ran = run(&["diff", &plan, &plan, "--registry", &registry, "--users", "1..3", "--by", "country"], b"");
    assert!(ran.code == 2 && ran.stderr.contains("the registry marks it with pii"), "{}", ran.stderr);
    let mut config = crate::program::command(&["config", "pii_salt"]);
    let output = config.env("RANKD_PII_SALT", "pepper").output().expect("rankd can be started");
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("RANKD_PII_SALT") && !told.contains("pepper"), "{told}");
}
