//! Picks by chance, in which a higher score makes a row likelier, and how likely each pick was.
//!
//! *Softmax*: each place goes to one of the rows that are left, with a probability proportional to `exp(score / tau)`. All places are drawn at
//! once: the rows in the order of `score / tau + g`, where `g = -ln(-ln u)` is the Gumbel number of the row's draw `u`, are such a list.
//! *Epsilon*: each place goes with the probability epsilon to any of the rows that are left, all alike, and otherwise to the one with the
//! highest score, of equal ones the first. Whether chance decides is drawn by the place; which row it takes is the one with the lowest draw.
//! Both hold for rows with different ids, whose draws are independent.
//!
//! The propensity of a pick is the probability that it had at its place, given the picks before it. Rows without a score come after all
//! others, in their order: where one of them is picked, its propensity is 1.
//!
//! Sums are taken from the last row to the first, so that nothing is ever subtracted, and do not depend on how many rows are picked.

use crate::kernel::draws::unit;
use crate::kernel::sort::{arrange, rank_float};
use crate::math;
use crate::stop::{Picking, ROWS_A_LOOK, Stop, Stopped};

/// How chance takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exploring {
    /// Scores count the more, the lower it is. Above 0.
    Softmax { tau: f64 },
    /// How much of the places chance decides, from 0 to 1.
    Epsilon(f64),
}

/// A row that was picked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExploredPick {
    pub position: usize,
    /// The probability that it had at this place.
    pub propensity: f64,
}

/// Far below any other logarithm of a weight, and still a number.
const LEAST: f64 = -1e300;

/// Picks `count` rows, or all where there are fewer, or fewer where there is no time for more. There is a draw for each score; `of_place` gives
/// those of places.
pub fn explored(
    scores: &[Option<f64>],
    draws: &[u64],
    of_place: impl FnMut(usize) -> u64,
    how: Exploring,
    count: usize,
    picking: Picking<'_>,
) -> Result<Vec<ExploredPick>, Stopped> {
    let (mut scored, mut without) = (Vec::with_capacity(scores.len()), Vec::new());
    for start in picking.stop.starts(scores.len()) {
        let start = start?;
        for (at, score) in scores.iter().enumerate().skip(start).take(ROWS_A_LOOK) {
            match score {
                Some(score) => scored.push((at as u32, *score)),
                None => without.push(at),
            }
        }
    }
    let mut picks = match how {
        Exploring::Softmax { tau } => softmax(&scored, draws, tau, count, picking)?,
        Exploring::Epsilon(epsilon) => epsilon_greedy(&scored, draws, of_place, epsilon, count, picking)?,
    };
    if picks.len() == scored.len() {
        for position in without.into_iter().take(count - picks.len()) {
            if !picking.goes_on(picks.len())? {
                break;
            }
            picks.push(ExploredPick { position, propensity: 1.0 });
        }
    }
    Ok(picks)
}

fn softmax(
    scored: &[(u32, f64)],
    draws: &[u64],
    tau: f64,
    count: usize,
    picking: Picking<'_>,
) -> Result<Vec<ExploredPick>, Stopped> {
    let stop = picking.stop;
    let most = scored.iter().fold(f64::NEG_INFINITY, |most, (_, score)| most.max(*score));
    // The differences to the highest, because those are what counts; the nearest to it are exact.
    let (mut logs, mut ranks) = (Vec::with_capacity(scored.len()), Vec::with_capacity(scored.len()));
    for chunk in stop.slices(scored) {
        for (at, score) in chunk? {
            let log = ((score - most) / tau).max(LEAST);
            logs.push(log);
            ranks.push(!rank_float(log + gumbel(unit(draws[*at as usize]))));
        }
    }
    let order = in_order(&ranks, stop)?;
    let mut picked = 0;
    while picked < count.min(order.len()) && picking.goes_on(picked)? {
        picked += 1;
    }
    let (mut left, mut looks) = (WeightSum::default(), stop.looks());
    let mut picks = Vec::with_capacity(count.min(scored.len()));
    for (place, at) in order.iter().map(|at| *at as usize).enumerate().rev() {
        looks.before(1)?;
        left.add(logs[at]);
        if place < picked {
            picks.push(ExploredPick { position: scored[at].0 as usize, propensity: left.part(logs[at]) });
        }
    }
    picks.reverse();
    Ok(picks)
}

fn epsilon_greedy(
    scored: &[(u32, f64)],
    draws: &[u64],
    mut of_place: impl FnMut(usize) -> u64,
    epsilon: f64,
    count: usize,
    picking: Picking<'_>,
) -> Result<Vec<ExploredPick>, Stopped> {
    let stop = picking.stop;
    let (mut by_score, mut by_chance) = (Vec::with_capacity(scored.len()), Vec::with_capacity(scored.len()));
    for chunk in stop.slices(scored) {
        for (at, score) in chunk? {
            by_score.push(!rank_float(*score));
            by_chance.push(draws[*at as usize]);
        }
    }
    let (by_score, by_chance) = (in_order(&by_score, stop)?, in_order(&by_chance, stop)?);
    let (mut left, mut picks): (Vec<bool>, Vec<ExploredPick>) = (vec![true; scored.len()], Vec::new());
    let (mut best, mut next) = (by_score.iter().peekable(), by_chance.iter().peekable());
    while picks.len() < count.min(scored.len()) && picking.goes_on(picks.len())? {
        while best.next_if(|at| !left[**at as usize]).is_some() {}
        while next.next_if(|at| !left[**at as usize]).is_some() {}
        let is_by_chance = unit(of_place(picks.len())) < epsilon;
        let (Some(best), Some(next)) = (best.peek(), next.peek()) else { break };
        let (best, at) = (**best, **(if is_by_chance { next } else { best }));
        let by_chance = epsilon / (scored.len() - picks.len()) as f64;
        let propensity = if at == best { 1.0 - (epsilon - by_chance) } else { by_chance };
        left[at as usize] = false;
        picks.push(ExploredPick { position: scored[at as usize].0 as usize, propensity });
    }
    Ok(picks)
}

/// Places of ranks, the lowest first, equal ones in their order.
fn in_order(ranks: &[u64], stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let (places, mut out): (Vec<u32>, Vec<u32>) = ((0..ranks.len() as u32).collect(), Vec::with_capacity(ranks.len()));
    arrange(ranks, &places, &mut out, stop)?;
    Ok(out)
}

fn gumbel(unit: f64) -> f64 {
    -math::log(-math::log(unit))
}

/// A sum of `exp(log)`, kept beside the highest of the logarithms so that nothing overflows, and the highest never becomes nothing.
#[derive(Default)]
struct WeightSum {
    /// In parts of the highest.
    sum: f64,
    highest: f64,
}

impl WeightSum {
    fn add(&mut self, log: f64) {
        if self.sum == 0.0 {
            (self.sum, self.highest) = (1.0, log);
        } else if log > self.highest {
            (self.sum, self.highest) = (self.sum * math::exp(self.highest - log) + 1.0, log);
        } else {
            self.sum += math::exp(log - self.highest);
        }
    }

    fn part(&self, log: f64) -> f64 {
        math::exp(log - self.highest) / self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::kernel::draws::Draws;
    use crate::rowset::RowSet;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn explore(scores: &[Option<f64>], how: Exploring, count: usize, seed: u64) -> Vec<ExploredPick> {
        let mut draws = Draws::new(&seed.to_string(), "n");
        let rows = RowSet::new(Batch::new((1..=scores.len() as i64).collect()));
        let of_rows = draws.of_rows(&rows, Stop::default()).unwrap();
        explored(scores, &of_rows, |place| draws.of_place(place), how, count, Picking::default()).unwrap()
    }

    /// How likely this row is at the place after these picks, by the words of the header.
    fn likely(scores: &[Option<f64>], how: Exploring, before: &[usize], at: usize) -> f64 {
        let left: Vec<usize> = (0..scores.len()).filter(|row| !before.contains(row)).collect();
        let scored: Vec<(usize, f64)> = left.iter().filter_map(|row| Some((*row, scores[*row]?))).collect();
        let Some(own) = scores[at] else {
            return if scored.is_empty() && left.first() == Some(&at) { 1.0 } else { 0.0 };
        };
        match how {
            Exploring::Softmax { tau } => {
                1.0 / scored.iter().map(|(_, score)| math::exp((score - own) / tau)).sum::<f64>()
            }
            Exploring::Epsilon(epsilon) => {
                let best = scored.iter().copied().reduce(|best, row| if row.1 > best.1 { row } else { best });
                epsilon / scored.len() as f64 + if best.map(|best| best.0) == Some(at) { 1.0 - epsilon } else { 0.0 }
            }
        }
    }

    /// All lists of so many rows, with their probabilities.
    fn lists(scores: &[Option<f64>], how: Exploring, count: usize) -> Vec<(Vec<usize>, f64)> {
        let mut lists = vec![(Vec::new(), 1.0)];
        for _ in 0..count.min(scores.len()) {
            let longer = |(list, probability): &(Vec<usize>, f64)| {
                let (list, probability) = (list.clone(), *probability);
                let left = (0..scores.len()).filter(|row| !list.contains(row)).collect::<Vec<_>>();
                left.into_iter().map(move |row| {
                    let longer = list.iter().copied().chain([row]).collect();
                    (longer, probability * likely(scores, how, &list, row))
                })
            };
            lists = lists.iter().flat_map(longer).collect();
        }
        lists
    }

    const WAYS: [Exploring; 4] = [
        Exploring::Softmax { tau: 1.0 },
        Exploring::Softmax { tau: 0.3 },
        Exploring::Epsilon(0.3),
        Exploring::Epsilon(1.0),
    ];

    #[test]
    fn every_list_comes_as_often_as_it_is_likely() {
        const RUNS: u64 = 40_000;
        for scores in [
            vec![Some(0.5)],
            vec![Some(0.1), Some(0.9), Some(0.5)],
            vec![Some(1.0), None, Some(1.0), Some(0.2), None],
            vec![Some(0.0), Some(0.3), Some(0.6), Some(0.9), Some(0.3), Some(-1.0)],
        ] {
            for (how, count) in WAYS.into_iter().flat_map(|how| [(how, 2), (how, 3), (how, 9)]) {
                let expected = lists(&scores, how, count);
                let total: f64 = expected.iter().map(|(_, probability)| probability).sum();
                assert!((total - 1.0).abs() < 1e-12, "{how:?} {total}");
                let mut found: HashMap<Vec<usize>, f64> = HashMap::new();
                for seed in 0..RUNS {
                    let picks = explore(&scores, how, count, seed);
                    *found.entry(picks.iter().map(|pick| pick.position).collect()).or_default() += 1.0;
                }
                // Lists that are too rare for the test are put together.
                let (mut chi_square, mut parts, mut rare) = (0.0, 0, (0.0, 0.0));
                let mut add = |often: f64, wanted: f64| {
                    chi_square += (often - wanted) * (often - wanted) / wanted;
                    parts += 1;
                };
                for (list, probability) in expected {
                    let (often, wanted) = (found.remove(&list).unwrap_or(0.0), probability * RUNS as f64);
                    match wanted >= 8.0 {
                        true => add(often, wanted),
                        false => rare = (rare.0 + often, rare.1 + wanted),
                    }
                }
                if rare.1 >= 8.0 {
                    add(rare.0, rare.1);
                }
                assert!(found.is_empty(), "a list that cannot be: {found:?}");
                // The mean and six deviations: seeds are fixed, so that this holds always or never.
                let freedom = f64::from(parts) - 1.0;
                let bound = freedom + 6.0 * (2.0 * freedom).sqrt() + 1e-9;
                assert!(chi_square <= bound, "{scores:?} {how:?} {count}: {chi_square} of {parts}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn propensities_are_the_probabilities_of_the_picks(
            scores in proptest::collection::vec(prop_oneof![4 => (-3i8..4).prop_map(|n| Some(f64::from(n) / 2.0)), 1 => Just(None)], 0..12),
            way in 0..WAYS.len(),
            count in 0..14usize,
            seed in any::<u64>(),
        ) {
            let picks = explore(&scores, WAYS[way], count, seed);
            prop_assert_eq!(picks.len(), count.min(scores.len()));
            let positions: Vec<usize> = picks.iter().map(|pick| pick.position).collect();
            for (place, pick) in picks.iter().enumerate() {
                let expected = likely(&scores, WAYS[way], &positions[..place], pick.position);
                prop_assert!((pick.propensity - expected).abs() < 1e-12, "{pick:?} {expected} in {scores:?}");
                prop_assert!(pick.propensity > 0.0 && pick.propensity <= 1.0);
            }
            // Fewer picks are the first of more.
            prop_assert_eq!(&explore(&scores, WAYS[way], count / 2, seed)[..], &picks[..(count / 2).min(picks.len())]);
        }
    }

    #[test]
    fn scores_of_any_size_have_propensities() {
        let scores: Vec<Option<f64>> = [f64::MAX, f64::MIN, 0.0, 1e-300, -1e308, f64::MAX].map(Some).to_vec();
        for how in [Exploring::Softmax { tau: 1e-9 }, Exploring::Softmax { tau: 1e300 }, Exploring::Epsilon(0.0)] {
            for seed in 0..100 {
                let picks = explore(&scores, how, 6, seed);
                assert!(picks.iter().all(|pick| (0.0..=1.0).contains(&pick.propensity)), "{picks:?}");
                assert_eq!(picks.last().map(|pick| pick.propensity), Some(1.0));
            }
        }
        assert_eq!(
            explore(&scores, Exploring::Epsilon(0.0), 2, 1).iter().map(|p| p.position).collect::<Vec<_>>(),
            [0, 5]
        );
    }
}
