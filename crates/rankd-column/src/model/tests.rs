//! Random forests against models that go row by row, value by value.

use super::response::Link;
use super::*;
use crate::stop::{Picking, Stop, TimeLimit};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 33) % limit as u64) as usize
    }

    /// One of few values, so that rows meet thresholds exactly; sometimes NaN, zeros, or almost zero.
    fn value(&mut self) -> f64 {
        match self.below(10) {
            0 => f64::NAN,
            1 => [0.0, -0.0, 1e-36, -1e-36, 1e-34, 5e-324][self.below(6)],
            2 => [1e300, -1e300, 3e38, 16_777_217.0][self.below(4)],
            _ => self.below(40) as f64 / 4.0 - 5.0,
        }
    }
}

const FEATURES: usize = 5;

#[derive(Clone)]
struct NaiveSet {
    categories: Vec<u32>,
    inside_right: bool,
    missing_right: bool,
}

struct NaiveTree {
    output: usize,
    splits: Vec<Split>,
    leaves: Vec<f64>,
    covers: Vec<f64>,
    sets: Vec<(u32, NaiveSet)>,
    is_oblivious: bool,
}

struct Naive {
    outputs: usize,
    trees: Vec<NaiveTree>,
}

/// A random tree: splits in any shape, numbered in the order in which they were made.
fn tree(random: &mut Random, leaf_count: usize) -> (Vec<Split>, Vec<f64>) {
    let blank = |left, right| Split {
        feature: 0,
        test: SplitTest::Above { threshold: 0.0, missing: Missing::IsZero },
        left,
        right,
        cover: 0.0,
    };
    let mut splits: Vec<Split> = Vec::new();
    // Where a leaf hangs: its split and side.
    let mut hanging: Vec<Option<(usize, bool)>> = vec![None];
    while hanging.len() < leaf_count {
        // Mostly near the end, so that some trees are deep.
        let leaf = if random.below(3) == 0 { random.below(hanging.len()) } else { hanging.len() - 1 };
        let new = splits.len();
        match hanging[leaf] {
            Some((split, true)) => splits[split].right = Branch::Split(new as u32),
            Some((split, false)) => splits[split].left = Branch::Split(new as u32),
            None => {}
        }
        splits.push(blank(Branch::Leaf(leaf as u32), Branch::Leaf(hanging.len() as u32)));
        hanging[leaf] = Some((new, false));
        hanging.push(Some((new, true)));
    }
    let covers: Vec<f64> = (0..leaf_count).map(|_| 1.0 + random.below(20) as f64).collect();
    for at in (0..splits.len()).rev() {
        let cover = |branch: Branch| match branch {
            Branch::Split(split) => splits[split as usize].cover,
            Branch::Leaf(leaf) => covers[leaf as usize],
        };
        splits[at].cover = cover(splits[at].left) + cover(splits[at].right);
    }
    (splits, covers)
}

fn forest(random: &mut Random, dialect: Dialect) -> (Naive, Model) {
    let outputs = 1 + random.below(3);
    let features = (0..FEATURES).map(|at| Feature::number(format!("f{at}"))).collect();
    let mut builder = Builder::new(dialect, features, outputs);
    let mut naive = Naive { outputs, trees: Vec::new() };
    let rounds = 1 + random.below(6);
    for round in 0..rounds {
        for output in 0..outputs {
            let is_oblivious = dialect == Dialect::CatBoost && random.below(2) == 0;
            let (mut splits, mut covers) = match is_oblivious {
                true => tree(random, 1),
                false => {
                    let leaves = [1, 2, 3, 31, 256, 257, 300][random.below(7)];
                    tree(random, leaves)
                }
            };
            if is_oblivious {
                let depth = [0, 1, 6, 8, 9][random.below(5)];
                let (some, _) = tree(random, depth + 1);
                splits = some;
                covers = (0..1 << depth).map(|_| random.below(5) as f64).collect();
            }
            let mut sets = Vec::new();
            for split in &mut splits {
                split.feature = random.below(FEATURES) as u32;
                let right = random.below(2) == 0;
                let missing = match dialect {
                    Dialect::LightGbm => {
                        [Missing::IsZero, Missing::Goes { right }, Missing::GoesWithZero { right }][random.below(3)]
                    }
                    Dialect::XgBoost | Dialect::CatBoost => Missing::Goes { right },
                };
                split.test = match dialect {
                    Dialect::XgBoost => SplitTest::at_least(random.below(40) as f64 / 4.0 - 5.0, missing),
                    Dialect::LightGbm | Dialect::CatBoost => {
                        SplitTest::Above { threshold: random.below(40) as f64 / 4.0 - 5.0, missing }
                    }
                };
                if random.below(6) == 0 && dialect != Dialect::CatBoost {
                    let mut categories: Vec<u32> = (0..random.below(5)).map(|_| random.below(8) as u32).collect();
                    categories.sort_unstable();
                    categories.dedup();
                    let inside_right = dialect == Dialect::XgBoost;
                    let missing_right = right || dialect == Dialect::LightGbm;
                    split.test = builder.members(split.feature, &categories, inside_right, missing_right);
                    let SplitTest::Members(set) = split.test else { unreachable!() };
                    sets.push((set, NaiveSet { categories, inside_right, missing_right }));
                }
            }
            let leaves: Vec<f64> = covers.iter().map(|_| random.below(1 << 20) as f64 / 3e5 - 1.7).collect();
            let source = TreeSource {
                iteration: round as u32,
                output: output as u32,
                splits: &splits,
                leaves: &leaves,
                leaf_covers: &covers,
                linear: &[],
            };
            match is_oblivious {
                true => builder.oblivious_tree(source).unwrap(),
                false => builder.tree(source).unwrap(),
            }
            naive.trees.push(NaiveTree { output, splits, leaves, covers, sets, is_oblivious });
        }
    }
    let response = Response { link: Link::Identity, average: false, dialect: Dialect::LightGbm };
    (naive, builder.finish(String::new(), response))
}

impl NaiveTree {
    fn goes_right(&self, dialect: Dialect, split: &Split, row: &[f64]) -> bool {
        let mut value = row[split.feature as usize];
        match dialect {
            Dialect::LightGbm if value.abs() <= f64::from(1e-35_f32) => value = 0.0,
            Dialect::LightGbm => {}
            Dialect::XgBoost | Dialect::CatBoost => value = f64::from(value as f32),
        }
        match split.test {
            SplitTest::Above { threshold, missing } => match missing {
                Missing::Goes { right } if value.is_nan() => right,
                Missing::GoesWithZero { right } if value.is_nan() || value == 0.0 => right,
                Missing::IsZero if value.is_nan() => 0.0 > threshold,
                Missing::Goes { .. } | Missing::GoesWithZero { .. } | Missing::IsZero => value > threshold,
            },
            SplitTest::Members(set) => {
                let (_, set) = self.sets.iter().find(|(number, _)| *number == set).unwrap();
                let is_category = match dialect {
                    Dialect::XgBoost => (0.0..16_777_216.0).contains(&value),
                    Dialect::LightGbm | Dialect::CatBoost => value > -1.0 && value < 2_147_483_648.0,
                };
                let inside = is_category && set.categories.contains(&(value as u32));
                if value.is_nan() { set.missing_right } else { inside == set.inside_right }
            }
        }
    }

    fn leaf(&self, dialect: Dialect, row: &[f64]) -> usize {
        if self.is_oblivious {
            let bits = self.splits.iter().enumerate();
            return bits.map(|(bit, split)| usize::from(self.goes_right(dialect, split, row)) << bit).sum();
        }
        let mut at = if self.splits.is_empty() { Branch::Leaf(0) } else { Branch::Split(0) };
        loop {
            match at {
                Branch::Leaf(leaf) => return leaf as usize,
                Branch::Split(split) => {
                    let split = &self.splits[split as usize];
                    at = if self.goes_right(dialect, split, row) { split.right } else { split.left };
                }
            }
        }
    }

    /// What the tree gives on average where only some features of the row are known.
    fn expected(&self, dialect: Dialect, at: Branch, row: &[f64], known: usize) -> f64 {
        let split = match at {
            Branch::Leaf(leaf) => return self.leaves[leaf as usize],
            Branch::Split(split) => &self.splits[split as usize],
        };
        if known >> split.feature & 1 == 1 {
            let next = if self.goes_right(dialect, split, row) { split.right } else { split.left };
            return self.expected(dialect, next, row, known);
        }
        let cover = |branch: Branch| match branch {
            Branch::Split(split) => self.splits[split as usize].cover,
            Branch::Leaf(leaf) => self.covers[leaf as usize],
        };
        let (left, right) = (cover(split.left), cover(split.right));
        (left * self.expected(dialect, split.left, row, known)
            + right * self.expected(dialect, split.right, row, known))
            / (left + right)
    }
}

fn rows(random: &mut Random, count: usize) -> Vec<[f64; FEATURES]> {
    (0..count).map(|_| std::array::from_fn(|_| random.value())).collect()
}

fn inputs(rows: &[[f64; FEATURES]]) -> impl Inputs {
    move |feature: usize, from: usize, values: &mut [f64]| {
        values.iter_mut().zip(&rows[from..]).for_each(|(value, row)| *value = row[feature]);
    }
}

#[test]
fn blocks_of_rows_score_as_row_by_row() {
    let mut random = Random(11);
    let mut scratch = ScoreScratch::default();
    for case in 0..600 {
        let dialect = [Dialect::LightGbm, Dialect::XgBoost, Dialect::CatBoost][case % 3];
        let (naive, model) = forest(&mut random, dialect);
        let count = [0, 1, 63, 64, 65, 256, 257, 600][random.below(8)];
        let rows = rows(&mut random, count);
        let iterations = if random.below(2) == 0 { usize::MAX } else { random.below(7) };
        let mut out = vec![vec![0.0; count]; naive.outputs];
        let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        let scoring = Scoring { output: ModelOutput::Raw, iterations };
        let mut inputs = inputs(&rows);
        let done = model.score(&mut inputs, count, scoring, &mut slices, &mut scratch, Picking::default());
        assert_eq!(done, Ok(count));
        let trees = &naive.trees[..iterations.saturating_mul(naive.outputs).min(naive.trees.len())];
        for (at, row) in rows.iter().enumerate() {
            for (output, scores) in out.iter().enumerate() {
                let values = trees.iter().filter(|tree| tree.output == output);
                let values = values.map(|tree| tree.leaves[tree.leaf(dialect, row)]);
                let expected = match dialect {
                    Dialect::XgBoost => f64::from(values.fold(0.0_f32, |sum, value| sum + value as f32)),
                    Dialect::LightGbm | Dialect::CatBoost => values.fold(0.0, |sum, value| sum + value),
                };
                assert_eq!(scores[at].to_bits(), expected.to_bits(), "case {case}, row {at}: {row:?}");
            }
        }
    }
}

#[test]
fn contributions_are_those_of_all_subsets_of_features() {
    fn factorial(n: usize) -> f64 {
        (1..=n).map(|n| n as f64).product()
    }
    let mut random = Random(5);
    let mut scratch = ScoreScratch::default();
    for case in 0..60 {
        let dialect = [Dialect::LightGbm, Dialect::XgBoost][case % 2];
        let (mut naive, model) = forest(&mut random, dialect);
        if dialect == Dialect::XgBoost {
            naive.trees.iter_mut().flat_map(|tree| &mut tree.leaves).for_each(|leaf| *leaf = f64::from(*leaf as f32));
        }
        let rows = rows(&mut random, 3);
        for (at, row) in rows.iter().enumerate() {
            let found =
                model.contributions(&mut inputs(&rows), at, 0..9, usize::MAX, &mut scratch, Stop::default()).unwrap();
            let all = found.clone();
            for (output, found) in found.iter().enumerate() {
                let one = output..output + 1;
                let one = model.contributions(&mut inputs(&rows), at, one, usize::MAX, &mut scratch, Stop::default());
                assert_eq!(one.as_deref(), Ok(&all[output..output + 1]), "of one output");
                let value = |known: usize| -> f64 {
                    let trees = naive.trees.iter().filter(|tree| tree.output == output);
                    let root =
                        |tree: &NaiveTree| if tree.splits.is_empty() { Branch::Leaf(0) } else { Branch::Split(0) };
                    trees.map(|tree| tree.expected(dialect, root(tree), row, known)).sum()
                };
                assert!((found.expected - value(0)).abs() < 1e-9, "case {case}");
                for (feature, part) in found.features.iter().enumerate() {
                    let others = (0..1 << FEATURES).filter(|known| known >> feature & 1 == 0);
                    let expected: f64 = others
                        .map(|known: usize| {
                            let n = known.count_ones() as usize;
                            let weight = factorial(n) * factorial(FEATURES - n - 1) / factorial(FEATURES);
                            weight * (value(known | 1 << feature) - value(known))
                        })
                        .sum();
                    assert!((part - expected).abs() < 1e-9, "case {case}, row {at}: {part} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_tree_is_refused() {
    let split = |left, right| Split {
        feature: 0,
        test: SplitTest::Above { threshold: 1.0, missing: Missing::IsZero },
        left,
        right,
        cover: 1.0,
    };
    let (leaf, to) = (Branch::Leaf, Branch::Split);
    for (splits, fault) in [
        (vec![split(leaf(0), leaf(2))], TreeFault::OutOfRange { split: 0 }),
        (vec![split(leaf(0), to(1))], TreeFault::OutOfRange { split: 0 }),
        (vec![split(leaf(0), leaf(0))], TreeFault::Shared { split: 0 }),
        (vec![split(leaf(0), to(0))], TreeFault::Shared { split: 0 }),
        (vec![split(leaf(0), leaf(1)), split(to(1), leaf(2))], TreeFault::Unreached { branch: to(1) }),
        (vec![Split { feature: 9, ..split(leaf(0), leaf(1)) }], TreeFault::UnknownFeature { split: 0 }),
        (
            vec![Split { test: SplitTest::Members(7), ..split(leaf(0), leaf(1)) }],
            TreeFault::UnknownFeature { split: 0 },
        ),
    ] {
        let mut builder = Builder::new(Dialect::LightGbm, vec![Feature::number("a")], 1);
        let leaves = vec![1.0; splits.len() + 1];
        let source =
            TreeSource { iteration: 0, output: 0, splits: &splits, leaves: &leaves, leaf_covers: &[], linear: &[] };
        assert_eq!(builder.tree(source), Err(fault));
    }
}

#[test]
fn a_stop_leaves_whole_blocks_only() {
    let (_, model) = forest(&mut Random(3), Dialect::LightGbm);
    let rows = rows(&mut Random(4), 600);
    let stopped = std::sync::atomic::AtomicBool::new(true);
    let mut out = vec![vec![0.0; 600]; model.outputs(ModelOutput::Raw)];
    let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    let scoring = Scoring { output: ModelOutput::Raw, iterations: usize::MAX };
    let mut scratch = ScoreScratch::default();
    let picking = Picking { stop: Stop::when(&stopped), ..Picking::default() };
    assert!(model.score(&mut inputs(&rows), 600, scoring, &mut slices, &mut scratch, picking).is_err());
    let explained = model.contributions(&mut inputs(&rows), 0, 0..1, usize::MAX, &mut scratch, Stop::when(&stopped));
    assert_eq!(explained, Err(NoContributions::Stopped));
    // The time is up after the first block was read.
    let until = std::sync::atomic::AtomicBool::new(false);
    let mut asked = |feature: usize, from: usize, values: &mut [f64]| {
        until.store(from >= 256, std::sync::atomic::Ordering::Relaxed);
        values.iter_mut().zip(&rows[from..]).for_each(|(value, row)| *value = row[feature]);
    };
    let picking = Picking { until: Stop::when(&until), ..Picking::default() };
    let done = model.score(&mut asked, 600, scoring, &mut slices, &mut scratch, picking);
    assert_eq!(done, Ok(512));
}

thread_local! {
    static LOOKS_LEFT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One output, so many trees of 31 leaves.
fn many_trees(dialect: Dialect, count: usize) -> Model {
    let random = &mut Random(8);
    let mut builder = Builder::new(dialect, (0..FEATURES).map(|at| Feature::number(format!("f{at}"))).collect(), 1);
    for iteration in 0..count {
        let (mut splits, leaf_covers) = tree(random, 31);
        for split in &mut splits {
            split.feature = random.below(FEATURES) as u32;
            let missing = Missing::Goes { right: random.below(2) == 0 };
            split.test = SplitTest::Above { threshold: random.below(40) as f64 / 4.0 - 5.0, missing };
        }
        let leaves: Vec<f64> = (0..31).map(|_| random.below(1000) as f64 / 7.0 - 70.0).collect();
        let (leaf_covers, linear, iteration) = (&leaf_covers[..], &[][..], iteration as u32);
        let source = TreeSource { iteration, output: 0, splits: &splits, leaves: &leaves, leaf_covers, linear };
        builder.tree(source).unwrap();
    }
    builder.finish(String::new(), Response { link: Link::Identity, average: false, dialect })
}

/// Whatever the moment at which the time is up, a row has its whole score or none at all.
#[test]
fn a_row_has_its_whole_score_or_none() {
    const ROWS: usize = 700;
    const UNTOUCHED: f64 = -1e300;
    let scoring = Scoring { output: ModelOutput::Raw, iterations: usize::MAX };
    let at_look = |looks: usize| {
        LOOKS_LEFT.set(looks);
        let has_passed = |_| {
            let left = LOOKS_LEFT.get();
            LOOKS_LEFT.set(left.saturating_sub(1));
            left == 0
        };
        // The moment itself does not matter: looks are counted.
        #[expect(clippy::disallowed_methods, reason = "a moment is needed, whichever it is")]
        Stop::default().or_at(Some(TimeLimit { at: std::time::Instant::now(), has_passed }))
    };
    for dialect in [Dialect::LightGbm, Dialect::XgBoost, Dialect::CatBoost] {
        // Many trees, so that there are looks within a block.
        let model = many_trees(dialect, 3_000);
        let rows = rows(&mut Random(9), ROWS);
        let mut scratch = ScoreScratch::default();
        let mut score = |until: Stop<'_>| {
            let mut out = vec![vec![UNTOUCHED; ROWS]; model.outputs(ModelOutput::Raw)];
            let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
            let picking = Picking { until, ..Picking::default() };
            let done = model.score(&mut inputs(&rows), ROWS, scoring, &mut slices, &mut scratch, picking).unwrap();
            (done, out)
        };
        let (all, whole) = score(Stop::default());
        assert_eq!(all, ROWS);
        let (mut looks, mut seen) = (0, Vec::new());
        loop {
            let (done, out) = score(at_look(looks));
            for (out, whole) in out.iter().zip(&whole) {
                let bits = |scores: &[f64]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&out[..done]), bits(&whole[..done]), "{dialect:?}, {looks} looks, {done} rows");
                assert!(out[done..].iter().all(|score| *score == UNTOUCHED), "{dialect:?}, {looks} looks, {done} rows");
            }
            seen.push(done);
            if done == ROWS {
                break;
            }
            looks += 1;
        }
        seen.dedup();
        assert_eq!(seen, [0, 256, 512, ROWS]);
        assert!(looks > 4, "some of the {looks} looks were within a block");
    }
}
