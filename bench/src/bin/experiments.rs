//! What it takes to put a request into its arms: 1,000 experiments in 8 layers, beside the bare hashes, and a plan that reads
//! nothing of them. Then how evenly a million users are spread.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::harness::{part, race};
use rankd_column::expr::salted_unit_hash;
use rankd_edge::experiments::PlanExperiments;
use rankd_engine::Request;
use rankd_plan::registry::{AsWritten, Experiments, Text};
use rankd_plan::{Diagnostics, Registry};
use std::fmt::Write;
use std::sync::Arc;

const LAYERS: u32 = 8;
const EXPERIMENTS: u32 = 1_000;
const USERS: u32 = 1_000_000;

fn registry() -> Registry {
    let key = "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n";
    let params: String =
        (0..LAYERS).map(|at| format!("[[param]]\nname = \"p{at}\"\ntype = \"float\"\nnullable = true\n")).collect();
    let texts = [key, &params, "", ""].map(|text| Text { file: "", text });
    Registry::parse_files(&AsWritten, texts).0
}

/// Every bucket of every layer belongs to an experiment, so that no request is spared a hash.
fn experiments(registry: &Registry) -> Arc<Experiments> {
    let each = EXPERIMENTS / LAYERS;
    let mut text = String::new();
    for layer in 0..LAYERS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[[layer]]\nname = \"layer{layer}\"");
        for at in 0..each {
            let (from, to) = (at * 10_000 / each, (at + 1) * 10_000 / each);
            let _ = write!(
                text,
                "[[experiment]]\nname = \"e{layer}_{at}\"\nlayer = \"layer{layer}\"\nfrom = {from}\nto = {to}\n\
                 arm = [{{ name = \"a\" }}, {{ name = \"b\", set = {{ p{layer} = 0.5 }} }}]\n"
            );
        }
    }
    let mut found = Diagnostics::default();
    let experiments = Experiments::parse(&text, registry, &mut found);
    assert!(found.list().is_empty() && experiments.list().len() == EXPERIMENTS as usize);
    Arc::new(experiments)
}

fn main() {
    let registry = registry();
    let all = experiments(&registry);
    let reads: Vec<u32> = (0..LAYERS).collect();
    let bound = PlanExperiments::bind(&all, "feed", |_| Some(&reads), &mut Vec::new()).expect("they matter");
    let unread = PlanExperiments::bind(&all, "other", |_| Some(&[]), &mut Vec::new());
    assert!(unread.is_none(), "a plan that reads nothing of them has nothing to do");
    let users = || (1_000_000_i64..).step_by(7);
    let mut requests = (users(), Request::new(&registry));
    let mut hashed = users();
    let times = race(&mut [
        (
            "assign",
            part(|| {
                let (users, request) = &mut requests;
                request.user_id = users.next().unwrap_or_default().into();
                bound.assign(request, &[], &[]);
                request.arms.as_ref().map_or(0, |arms| arms.numbers().count())
            }),
        ),
        (
            "bare hashes",
            part(|| {
                let user = hashed.next().unwrap_or_default().to_string();
                (0..2).flat_map(|_| all.layers()).map(|layer| salted_unit_hash(&layer.salt, &user)).sum::<f64>()
            }),
        ),
    ]);
    for (name, time) in times {
        println!("{name:12} {:6.3} µs a request (median {:.3})", time.min, time.median);
    }
    let mut counts = [0_u32; 100];
    for user in 1..=USERS {
        counts[all.layer(0).bucket(&user.to_string()) as usize / 100] += 1;
    }
    let expected = f64::from(USERS) / 100.0;
    let square = |distance: f64| distance * distance;
    let chi_square: f64 = counts.iter().map(|count| square(f64::from(*count) - expected) / expected).sum();
    println!(
        "{USERS} users in hundredths of a layer: chi-square {chi_square:.1} with 99 degrees of freedom (p = 0.001 at 148.2)"
    );
}
