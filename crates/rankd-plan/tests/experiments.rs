//! Who is in which arm: evenly, independently of other layers, and as before when experiments grow or end.

use rankd_plan::registry::{AsWritten, BUCKETS, Experiments, Text};
use rankd_plan::{Diagnostics, Registry};
use std::ops::Range;

/// How many users are looked at. What they give is the same in every run.
const USERS: u32 = 1_000_000;

fn registry() -> Registry {
    let params = "[[param]]\nname = \"weight\"\ntype = \"float\"\nnullable = true\n";
    let texts = ["", params, "", ""].map(|text| Text { file: "", text });
    Registry::parse_files(&AsWritten, texts).0
}

fn parse(text: &str) -> (Experiments, Vec<String>) {
    let mut found = Diagnostics::default();
    let experiments = Experiments::parse(text, &registry(), &mut found);
    (experiments, found.list().iter().map(|found| format!("{} {}", found.code.id(), found.message)).collect())
}

fn good(text: &str) -> Experiments {
    let (experiments, found) = parse(text);
    assert_eq!(found, [""; 0]);
    experiments
}

const LAYERS: &str = "[[layer]]\nname = \"home\"\n[[layer]]\nname = \"search\"\n";

fn experiment(name: &str, layer: &str, from: u32, to: u32, weights: &[u32]) -> String {
    let arms = weights.iter().enumerate().map(|(at, weight)| format!("{{ name = \"arm{at}\", weight = {weight} }}"));
    let arms = arms.collect::<Vec<_>>().join(", ");
    format!("[[experiment]]\nname = \"{name}\"\nlayer = \"{layer}\"\nfrom = {from}\nto = {to}\narm = [{arms}]\n")
}

/// What one count adds to a chi-square.
fn excess(count: u32, expected: f64) -> f64 {
    let distance = f64::from(count) - expected;
    distance * distance / expected
}

/// How far counts are from the expected ones.
fn chi_square(counts: &[u32], shares: &[f64]) -> f64 {
    let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let one = |(count, share): (&u32, &f64)| excess(*count, total * share);
    counts.iter().zip(shares).map(one).sum()
}

/// The same for a table, against independence of its rows and columns.
fn dependence<const ROWS: usize, const COLUMNS: usize>(table: &[[u32; COLUMNS]; ROWS]) -> f64 {
    let total: f64 = table.iter().flatten().map(|count| f64::from(*count)).sum();
    let row = |at: usize| table[at].iter().map(|count| f64::from(*count)).sum::<f64>();
    let column = |at: usize| table.iter().map(|row| f64::from(row[at])).sum::<f64>();
    let mut sum = 0.0;
    for (r, counts) in table.iter().enumerate() {
        for (c, count) in counts.iter().enumerate() {
            let expected = row(r) * column(c) / total;
            sum += excess(*count, expected);
        }
    }
    sum
}

#[test]
fn users_are_spread_evenly_over_buckets_and_arms() {
    let experiments = good(&(LAYERS.to_owned() + &experiment("e", "home", 0, BUCKETS, &[1, 1, 2])));
    let (home, one) = (experiments.layer(0), experiments.get(0));
    let (mut hundredths, mut arms) = ([0; 100], [0; 3]);
    for user in 1..=USERS {
        let user = user.to_string();
        hundredths[home.bucket(&user) as usize / 100] += 1;
        arms[one.arm_of(&user) as usize] += 1;
    }
    // One in a thousand such values is larger than this, with 99 and with 2 degrees of freedom.
    assert!(chi_square(&hundredths, &[0.01; 100]) < 148.2, "{hundredths:?}");
    assert!(chi_square(&arms, &[0.25, 0.25, 0.5]) < 13.8, "{arms:?}");
}

#[test]
fn layers_and_arms_know_nothing_of_each_other() {
    let text = LAYERS.to_owned()
        + &experiment("e", "home", 0, BUCKETS, &[1, 1])
        + &experiment("f", "search", 0, BUCKETS, &[1, 1]);
    let experiments = good(&text);
    let (mut layers, mut arm_and_bucket, mut arms) = ([[0; 10]; 10], [[0; 10]; 2], [[0; 2]; 2]);
    for user in 1..=USERS {
        let user = user.to_string();
        let [home, search] = [0, 1].map(|at| experiments.layer(at).bucket(&user) as usize / 1_000);
        let [e, f] = [0, 1].map(|at| experiments.get(at).arm_of(&user) as usize);
        layers[home][search] += 1;
        arm_and_bucket[e][home] += 1;
        arms[e][f] += 1;
    }
    // With 81, 9 and 1 degrees of freedom.
    assert!(dependence(&layers) < 126.1, "{layers:?}");
    assert!(dependence(&arm_and_bucket) < 27.9, "{arm_and_bucket:?}");
    assert!(dependence(&arms) < 10.9, "{arms:?}");
}

/// By user: the experiment and the arm.
fn assigned(experiments: &Experiments) -> Vec<Option<(String, u32)>> {
    let owners = experiments.owners(0);
    let of = |user: u32| {
        let user = user.to_string();
        let rankd_plan::registry::BucketOwner::Experiment(at) = owners[experiments.layer(0).bucket(&user) as usize]
        else {
            return None;
        };
        Some((experiments.get(at).name.clone(), experiments.get(at).arm_of(&user)))
    };
    (1..=20_000).map(of).collect()
}

#[test]
fn ramping_up_moves_nobody_who_was_in() {
    let at = |to| assigned(&good(&(LAYERS.to_owned() + &experiment("e", "home", 1_000, to, &[1, 1]))));
    let (small, large) = (at(2_000), at(6_000));
    let (was, is) = [&small, &large].map(|all| all.iter().flatten().count()).into();
    assert!((1_800..2_200).contains(&was) && (9_500..10_500).contains(&is), "{was} {is}");
    assert!(small.iter().zip(&large).all(|(was, is)| was.is_none() || was == is));
}

#[test]
fn a_neighbour_that_ends_moves_nobody() {
    let (e, f) = (experiment("e", "home", 0, 3_000, &[1, 1]), experiment("f", "home", 3_000, 9_000, &[1, 2]));
    let both = assigned(&good(&(LAYERS.to_owned() + &e + &f)));
    let alone = assigned(&good(&(LAYERS.to_owned() + &f)));
    for (both, alone) in both.iter().zip(&alone) {
        assert_eq!(both.as_ref().filter(|(name, _)| name == "f"), alone.as_ref());
    }
}

/// These are in docs/experiments.md, for those who compute them elsewhere.
#[test]
fn assignments_are_those_that_are_published() {
    let experiments = good(&(LAYERS.to_owned() + &experiment("ranking_weight", "home", 0, BUCKETS, &[1, 1])));
    let docs = include_str!("../../../docs/experiments.md");
    for (unit, bucket, arm) in [
        ("1", 6_330, 1),
        ("2", 4_986, 0),
        ("3", 2_785, 1),
        ("7", 7_715, 1),
        ("42", 4_249, 0),
        ("1000", 8_979, 1),
        ("tt0000001", 6_408, 0),
    ] {
        assert_eq!((experiments.layer(0).bucket(unit), experiments.get(0).arm_of(unit)), (bucket, arm), "{unit}");
        let row = format!("| `{unit}` | {bucket} | {} |", ["a", "b"][arm as usize]);
        assert!(docs.contains(&row), "docs/experiments.md lacks {row}");
    }
}

#[test]
fn an_arm_without_weight_gets_nobody_and_the_last_gets_the_rest() {
    let experiments = good(&(LAYERS.to_owned() + &experiment("e", "home", 0, BUCKETS, &[0, 3, 0])));
    assert!((1..2_000).all(|user: u32| experiments.get(0).arm_of(&user.to_string()) == 1));
}

#[test]
fn what_is_free_is_what_nobody_owns() {
    let held = "[[holdout]]\nlayer = \"home\"\nfrom = 9500\nto = 10000\n";
    let text =
        LAYERS.to_owned() + held + &experiment("e", "home", 100, 200, &[1]) + &experiment("n", "home", 5, 5, &[1]);
    let experiments = good(&text);
    assert_eq!(experiments.free(0), [0..100, 200..9_500]);
    assert_eq!(experiments.free(1), vec![Range { start: 0, end: BUCKETS }]);
}

#[test]
fn a_file_full_of_experiments_is_read_up_to_the_limits() {
    let many: String = (0..5_001).map(|at| experiment(&format!("e{at}"), "home", 0, 0, &[1])).collect();
    let (experiments, found) = parse(&(LAYERS.to_owned() + &many));
    assert_eq!(
        (experiments.list().len(), found),
        (5_000, vec!["R039 there are more than 5000 experiments".to_owned()])
    );
    let layers: String = (0..40).map(|at| format!("[[layer]]\nname = \"l{at}\"\n")).collect();
    let (experiments, found) = parse(&layers);
    assert_eq!((experiments.layers().len(), found.len()), (32, 8));
}

#[test]
fn what_is_no_experiment_file_is_refused_and_never_panics() {
    for text in [
        "experiment = 3",
        "[[experiment]]",
        "[[experiment]]\narm = 1",
        "[[experiment]]\narm = [1]",
        "[[layer]]\nname = 1",
        "[[layer]]\nname = \"l\"\nunit = \"P.\"",
        "[[holdout]]\nlayer = \"l\"\nfrom = -1\nto = 10001",
        "[[layer]]\nname=\"l\"\n[[experiment]]\nname=\"e\"\nlayer=\"l\"\nfrom=0\nto=1\narm=[{name=\"a\",set=3}]",
        "[[layer]]\nname=\"l\"\n[[experiment]]\nname=\"e\"\nlayer=\"l\"\nfrom=0\nto=1\narm=[{name=\"a\",weight=-1}]",
        "[[layer]]\nname=\"l\"\n[[experiment]]\nname=\"e\"\nlayer=\"l\"\nfrom=0\nto=1\narm=[]",
        "[[",
    ] {
        assert!(!parse(text).1.is_empty(), "{text}");
    }
}
