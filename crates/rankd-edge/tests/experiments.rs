//! What requests get of experiments: the arm that is theirs, the values that it sets, the plan that it names.

use rankd_column::{Id, Value};
use rankd_edge::experiment_list::{Moved, movement};
use rankd_edge::experiments::{Arming, PlanExperiments, UnappliedExperiment};
use rankd_edge::input;
use rankd_engine::RunError;
use rankd_plan::registry::{AsWritten, Experiments, Text};
use rankd_plan::{Diagnostics, Registry};
use std::sync::Arc;

const KEYS: &str = "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n";
/// By position: weight, depth, device.
const PARAMS: &str = "[[param]]\nname = \"weight\"\ntype = \"float\"\nnullable = false\ndefault = 1.0\n\
                      [[param]]\nname = \"depth\"\ntype = \"int\"\nnullable = true\n\
                      [[param]]\nname = \"device\"\ntype = \"string\"\nnullable = true\n";
const WEIGHT: &[u32] = &[0];
const BOTH: &[u32] = &[0, 1];

/// User 7 has bucket 7715 of layer home, and 0.62 of the experiment ranking_weight.
const FILE: &str = r#"
[[layer]]
name = "home"
[[layer]]
name = "devices"
unit = "P.device"
[[layer]]
name = "plans"
[[experiment]]
name = "ranking_weight"
layer = "home"
from = 0
to = 10000
arm = [{ name = "a" }, { name = "b", set = { weight = 0.5 } }]
[[experiment]]
name = "depth_of_device"
layer = "devices"
from = 0
to = 10000
arm = [{ name = "deep", set = { depth = 9 } }]
[[experiment]]
name = "next"
layer = "plans"
from = 0
to = 10000
plans = ["feed"]
arm = [{ name = "new", plan = "feed_next" }]
"#;

fn registry() -> Registry {
    let texts = [KEYS, PARAMS, "", ""].map(|text| Text { file: "", text });
    Registry::parse_files(&AsWritten, texts).0
}

fn experiments(text: &str) -> Arc<Experiments> {
    let mut found = Diagnostics::default();
    let experiments = Experiments::parse(text, &registry(), &mut found);
    assert!(found.list().is_empty(), "{:?}", found.list());
    Arc::new(experiments)
}

type Answered = (Vec<String>, Option<String>, Vec<Value>);

/// Which arms a request is in, which other plan answers, and its parameters.
fn ask(file: &str, plan: &str, plans: &[(&str, &'static [u32])], request: &str) -> Result<Answered, RunError> {
    let all = experiments(file);
    let reads = |name: &str| plans.iter().find(|(known, _)| *known == name).map(|(_, reads)| *reads);
    let of_plan = PlanExperiments::bind(&all, plan, reads, &mut Vec::new());
    let arming = Arming { experiments: Some(&all), of_plan: of_plan.as_ref(), may_force: true };
    let mut input = input::read(request.as_bytes(), &registry()).expect("a request");
    let other = arming.assign_input(&mut input)?.map(str::to_owned);
    let arms = input.request.arms.as_ref();
    let mut names: Vec<String> =
        arms.map(|arms| arms.names().map(|(one, arm)| format!("{one}={arm}")).collect()).unwrap_or_default();
    names.extend(arms.filter(|arms| arms.is_forced).map(|_| "forced".to_owned()));
    Ok((names, other, input.request.params))
}

fn good(plan: &str, plans: &[(&str, &'static [u32])], request: &str) -> Answered {
    ask(FILE, plan, plans, request).expect("a request that is not refused")
}

#[test]
fn an_arm_sets_what_the_request_does_not_set_itself() {
    let plans = [("home", WEIGHT)];
    let (arms, other, params) = good("home", &plans, r#"{"user_id":7}"#);
    assert_eq!((arms.as_slice(), other), (&["ranking_weight=b".to_owned()][..], None));
    assert_eq!(params[0], Value::Float(0.5));
    // The control arm changes nothing, and is reported all the same.
    let (arms, _, params) = good("home", &plans, r#"{"user_id":2}"#);
    assert_eq!((arms, &params[0]), (vec!["ranking_weight=a".to_owned()], &Value::Float(1.0)));
    // Its own value, even the default, takes the request out of the experiment.
    for weight in ["1.0", "3"] {
        let (arms, _, params) = good("home", &plans, &format!(r#"{{"user_id":7,"params":{{"weight":{weight}}}}}"#));
        assert_eq!(arms, [""; 0]);
        assert_ne!(params[0], Value::Float(0.5));
    }
}

#[test]
fn experiments_that_a_plan_does_not_read_do_not_exist_for_it() {
    let all = experiments(FILE);
    let reads = |_: &str| Some(&[2u32][..]);
    assert!(PlanExperiments::bind(&all, "home", reads, &mut Vec::new()).is_none());
    assert!(PlanExperiments::bind(&all, "home", |_| None, &mut Vec::new()).is_none());
    assert!(PlanExperiments::bind(&Arc::default(), "home", reads, &mut Vec::new()).is_none());
}

#[test]
fn a_unit_that_is_null_is_in_no_experiment() {
    let plans = [("deep", &[1][..])];
    assert_eq!(good("deep", &plans, r#"{"user_id":7}"#).0, [""; 0]);
    let (arms, _, params) = good("deep", &plans, r#"{"user_id":7,"params":{"device":"phone"}}"#);
    assert_eq!((arms, &params[1]), (vec!["depth_of_device=deep".to_owned()], &Value::Int(9)));
}

#[test]
fn another_plan_answers_with_the_experiments_that_it_reads() {
    let plans = [("feed", &[][..]), ("feed_next", WEIGHT)];
    let (arms, other, params) = good("feed", &plans, r#"{"user_id":7}"#);
    assert_eq!(arms, ["ranking_weight=b", "next=new"]);
    assert_eq!((other.as_deref(), &params[0]), (Some("feed_next"), &Value::Float(0.5)));
    // Whoever asks for it directly is in no experiment about plans.
    assert_eq!(good("feed_next", &plans, r#"{"user_id":7}"#).1, None);
}

#[test]
fn an_experiment_whose_plan_is_not_there_is_left_out() {
    let (all, mut left_out) = (experiments(FILE), Vec::new());
    let reads = |name: &str| (name == "feed").then_some(WEIGHT);
    let bound = PlanExperiments::bind(&all, "feed", reads, &mut left_out);
    assert!(bound.is_some());
    assert_eq!(left_out, [UnappliedExperiment { experiment: "next".to_owned(), plan: "feed_next".to_owned() }]);
}

#[test]
fn a_request_may_choose_arms_that_go_together() {
    let plans = [("home", BOTH)];
    let (arms, _, params) = good("home", &plans, r#"{"user_id":7,"arms":{"ranking_weight":"a"}}"#);
    assert_eq!((arms, &params[0]), (vec!["ranking_weight=a".to_owned(), "forced".to_owned()], &Value::Float(1.0)));
    for (request, code) in [
        (r#"{"user_id":7,"arms":{"ranking_wieght":"a"}}"#, "E120"),
        (r#"{"user_id":7,"arms":{"ranking_weight":"c"}}"#, "E120"),
        (r#"{"user_id":7,"params":{"weight":1},"arms":{"ranking_weight":"a"}}"#, "E130"),
    ] {
        assert_eq!(ask(FILE, "home", &plans, request).unwrap_err().code.id, code, "{request}");
    }
    let two = FILE
        .replace("layer = \"devices\"", "layer = \"home\"")
        .replace("to = 10000\narm = [{ name = \"a\"", "to = 0\narm = [{ name = \"a\"");
    let request = r#"{"user_id":7,"arms":{"ranking_weight":"a","depth_of_device":"deep"}}"#;
    assert_eq!(ask(&two, "home", &plans, request).unwrap_err().code.id, "E130");
    // One that has no buckets yet can be tried, and displaces the one that has them all.
    let (arms, ..) = ask(&two, "home", &plans, r#"{"user_id":7,"arms":{"ranking_weight":"b"}}"#).unwrap();
    assert_eq!(arms, ["ranking_weight=b", "forced"]);
    assert_eq!(ask(&two, "home", &plans, r#"{"user_id":7}"#).unwrap().0, ["depth_of_device=deep"]);
}

#[test]
fn without_leave_a_request_chooses_nothing() {
    let mut input = input::read(br#"{"user_id":7,"arms":{"ranking_weight":"a"}}"#, &registry()).unwrap();
    assert_eq!(Arming::default().assign_input(&mut input).unwrap_err().code.id, "E119");
    let many: Vec<String> = (0..65).map(|at| format!("\"e{at}\":\"a\"")).collect();
    let many = format!(r#"{{"user_id":7,"arms":{{{}}}}}"#, many.join(","));
    assert_eq!(input::read(many.as_bytes(), &registry()).unwrap_err().error.code.id, "E130");
    for wrong in ["3", "[]", "{\"e\":1}", "\"e\""] {
        let request = format!(r#"{{"user_id":7,"arms":{wrong}}}"#);
        assert_eq!(input::read(request.as_bytes(), &registry()).unwrap_err().error.code.id, "E105", "{wrong}");
    }
}

#[test]
fn a_request_gets_what_the_file_says_of_its_bucket() {
    let text =
        |to: u32| FILE.replace("to = 10000\narm = [{ name = \"a\"", &format!("to = {to}\narm = [{{ name = \"a\""));
    let all = experiments(&text(5_000));
    let bound = PlanExperiments::bind(&all, "home", |_| Some(WEIGHT), &mut Vec::new()).unwrap();
    let mut inside = 0;
    for user in 1..=2_000 {
        let mut request = rankd_engine::Request { user_id: Id::Int(user), ..rankd_engine::Request::new(&registry()) };
        bound.assign(&mut request, &[], &[]);
        let bucket = all.layer(0).bucket(&user.to_string());
        let arm = all.get(0).arm_of(&user.to_string());
        let expected = (bucket < 5_000).then(|| ["a", "b"][arm as usize]);
        let is = request.arms.as_ref().and_then(|arms| arms.names().next().map(|(_, arm)| arm.to_owned()));
        assert_eq!(is.as_deref(), expected, "{user}");
        assert_eq!(request.params[0], Value::Float(if expected == Some("b") { 0.5 } else { 1.0 }));
        inside += usize::from(expected.is_some());
    }
    assert!((900..1_100).contains(&inside), "{inside}");
}

#[test]
fn a_change_says_whom_it_moves() {
    let before = experiments(FILE);
    let same = movement(&before, &experiments(FILE));
    assert_eq!((same.units.1, same.experiments.len(), same.buckets.values().sum::<u32>()), (0, 0, 0));
    let smaller = experiments(&FILE.replacen("to = 10000", "to = 9000", 1));
    let moved = movement(&before, &smaller);
    assert_eq!(moved.buckets["home"], 1_000);
    let Moved { joined, left, changed } = moved.experiments["ranking_weight"];
    assert_eq!((joined, changed, left), (0, 0, moved.units.1));
    assert!((900..1_100).contains(&left), "{left}");
    // Another salt deals the arms anew: half of all users change.
    let salted = experiments(&FILE.replacen("layer = \"home\"\nfrom", "salt = \"again\"\nlayer = \"home\"\nfrom", 1));
    let moved = movement(&before, &salted);
    assert_eq!(moved.buckets["home"], 0);
    assert!((4_800..5_200).contains(&moved.experiments["ranking_weight"].changed));
}
