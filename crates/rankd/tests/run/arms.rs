//! Arms of experiments where a plan is asked about, explained and benched: the same as requests get.

use crate::json::Json;
use crate::program::{Folder, Ran, read, repository, run};

/// Every user is in one of two arms. The plan does not read what the other experiment sets.
const EXPERIMENTS: &str = "[[layer]]\nname = \"home\"\n\n[[experiment]]\nname = \"w\"\nlayer = \"home\"\nfrom = 0\nto = 10000\n\
                           arm = [{ name = \"low\", set = { weight = 0.25 } }, { name = \"high\", set = { weight = 4 } }]\n\n\
                           [[layer]]\nname = \"other\"\n\n[[experiment]]\nname = \"unread\"\nlayer = \"other\"\nfrom = 0\nto = 10000\n\
                           arm = [{ name = \"on\", set = { unread_hours = 1 } }]\n";

/// A registry without endpoints, and a plan whose one row has the parameter `weight` as its score.
struct Home {
    folder: Folder,
    registry: String,
    plan: String,
}

fn home() -> Home {
    let folder = Folder::new();
    for name in ["keys.toml", "params.toml"] {
        folder.write(name, &read(&repository().join("registry").join(name)));
    }
    let params = read(&repository().join("registry/params.toml"));
    let unread = "\n[[param]]\nparam_id = 998\nname = \"unread_hours\"\ntype = \"int\"\nnullable = true\n";
    folder.write("params.toml", &(params + unread));
    folder.write("endpoints.local.toml", "");
    folder.write("experiments.toml", EXPERIMENTS);
    let plan = r#"{"schema_version":1,"plan_name":"feed","nodes":[{"node_id":"n0","op":"fixed_source","params":{"row_count":1}},
        {"node_id":"n1","op":"vm","inputs":["n0"],"params":{"out_key":"score","expr":"e0"}}],"outputs":["n1"],
        "expr_table":{"e0":{"op":"param_ref","param":"weight"}}}"#;
    let plan = folder.write("feed.plan.json", plan);
    let registry = folder.path("").display().to_string();
    Home { folder, registry, plan }
}

impl Home {
    fn run(&self, command: &str, args: &[&str], input: &str) -> Ran {
        let ran = run(&[&[command, &self.plan, "--registry", &self.registry], args].concat(), input.as_bytes());
        assert_eq!((ran.code, self.folder.path("").is_dir()), (0, true), "{}", ran.stderr);
        ran
    }

    /// The arm that a user is in, and the score that the user gets.
    fn arm_of(&self, user: usize) -> (String, f64) {
        let request = format!("{{\"user_id\":{user}}}\n");
        let ran = run(&["run", "--plan", &self.plan, "--registry", &self.registry], request.as_bytes());
        let answer = &ran.answers()[0];
        assert!(!answer.has("arms.unread"), "the plan does not read its parameter");
        (answer.text("arms.w").to_owned(), answer.list("candidates")[0].number("score"))
    }
}

#[test]
fn a_question_is_about_the_arms_that_a_request_would_be_in_and_may_choose_others() {
    let home = home();
    for user in 1..=4 {
        let (arm, score) = home.arm_of(user);
        let request = format!("{{\"user_id\":{user}}}\n");
        let told = Json::read(home.run("why", &["--item", "1", "--json"], &request).stdout.trim());
        assert_eq!(told.text("arms.w"), arm);
        let row = &told.list("items")[0].list("rows")[0];
        assert_eq!(row.list("path")[0].number("written.score"), score, "{row:?}");
        assert!(!told.has("forced"));
        let text = home.run("why", &["--item", "1"], &request).stdout;
        assert!(text.starts_with(&format!("in the arms of experiments: w {arm}\n\n1: answered")), "{text}");
        let other = if arm == "low" { "high" } else { "low" };
        let forced = format!("{{\"user_id\":{user},\"arms\":{{\"w\":\"{other}\"}}}}\n");
        let told = Json::read(home.run("why", &["--item", "1", "--json"], &forced).stdout.trim());
        assert_eq!((told.text("arms.w"), told.at("forced")), (other, &Json::Bool(true)));
    }
}

#[test]
fn an_explanation_lists_the_parameters_that_experiments_override() {
    let home = home();
    let told = Json::read(home.run("explain", &["--json"], "").stdout.trim());
    let [experiment] = told.list("experiments") else { unreachable!("one of the two matters: {told:?}") };
    assert_eq!((experiment.text("experiment"), experiment.text("layer")), ("w", "home"));
    assert_eq!((experiment.texts("overrides"), experiment.number("to")), (vec!["weight"], 10_000.0));
    assert_eq!(experiment.list("arms")[1].number("set.weight"), 4.0);
    let text = home.run("explain", &[], "").stderr;
    let lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in ["experiments", "w home 0 to 10000 low weight = 0.25", "high weight = 4"] {
        assert!(lines.iter().any(|of| of == line), "{line}: {text}");
    }
}

#[test]
fn requests_of_a_bench_are_in_the_arms_of_their_users() {
    let home = home();
    let mut expected = [0.0; 2];
    let arms: Vec<String> = (1..=8).map(|user| home.arm_of(user).0).collect();
    // 24 requests for 8 users.
    arms.iter().for_each(|arm| expected[usize::from(arm == "high")] += 3.0);
    for scheduler in ["async", "sequential"] {
        let args = ["-n", "24", "-c", "2", "--users", "1..8", "--json", "--scheduler", scheduler];
        let report = Json::read(home.run("bench", &args, "").stdout.trim());
        let count = |arm: &str| {
            let counted = report.list("arms").iter().find(|of| of.text("experiment") == "w" && of.text("arm") == arm);
            counted.map_or(0.0, |of| of.number("requests"))
        };
        assert_eq!(["low", "high"].map(count), expected, "{scheduler}: {arms:?}");
    }
    let requests = home.folder.write("requests.ndjson", "{\"user_id\":1}\n{\"user_id\":1,\"params\":{\"weight\":1}}\n");
    let report = home.run("bench", &["-n", "4", "-c", "1", "--request", &requests, "--json"], "");
    let report = Json::read(report.stdout.trim());
    let [counted] = report.list("arms") else { unreachable!("{report:?}") };
    assert_eq!(counted.number("requests"), 2.0, "a request that sets the parameter is in no arm");
}
