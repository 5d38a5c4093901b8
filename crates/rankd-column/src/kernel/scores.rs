//! Scores made of the scores of a whole list: scaled to each other, or damped by how many of a group come before.
//!
//! A row without a score gets none. Sums are taken in the order of the view.

use crate::kernel::groups::{Groups, NO_GROUP};
use crate::kernel::sort::{Order, arrange, rank_float};
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};

/// How scores are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The lowest is 0, the highest 1.
    MinMax,
    /// The mean is 0, and one standard deviation, that of all these scores and not of a sample, is 1.
    Deviations,
    /// The place among all scores: the lowest is 0, the highest 1; equal scores share the mean of their places.
    Quantiles,
}

/// From here on, differences and squares could overflow.
const LARGE: f64 = 1e150;

/// Scales scores; where all of them are equal, each becomes `flat`.
pub fn scaled(scores: &[Option<f64>], scale: Scale, flat: f64, stop: Stop<'_>) -> Result<Vec<Option<f64>>, Stopped> {
    let (mut low, mut high, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0usize);
    for chunk in stop.slices(scores) {
        for score in chunk?.iter().flatten() {
            (low, high, count) = (low.min(*score), high.max(*score), count + 1);
        }
    }
    // 0.0 and -0.0 are equal.
    if low >= high {
        return each(scores, |_| flat, stop);
    }
    // None of the three changes when all scores are divided by the same number.
    let unit = if low.abs().max(high.abs()) > LARGE { low.abs().max(high.abs()) } else { 1.0 };
    match scale {
        Scale::MinMax => {
            let (low, span) = (low / unit, high / unit - low / unit);
            each(scores, |score| (score / unit - low) / span, stop)
        }
        Scale::Deviations => {
            let mean = sum(scores, |score| score / unit, stop)? / count as f64;
            let square = |score: f64| (score / unit - mean) * (score / unit - mean);
            let deviation = (sum(scores, square, stop)? / count as f64).sqrt();
            // Scores may differ by less than their mean is exact.
            let made = |score: f64| if deviation > 0.0 { (score / unit - mean) / deviation } else { flat };
            each(scores, made, stop)
        }
        Scale::Quantiles => quantiles(scores, count, stop),
    }
}

fn sum(scores: &[Option<f64>], of: impl Fn(f64) -> f64, stop: Stop<'_>) -> Result<f64, Stopped> {
    let mut total = 0.0;
    for chunk in stop.slices(scores) {
        chunk?.iter().flatten().for_each(|score| total += of(*score));
    }
    Ok(total)
}

fn each(scores: &[Option<f64>], of: impl Fn(f64) -> f64, stop: Stop<'_>) -> Result<Vec<Option<f64>>, Stopped> {
    let mut out = Vec::with_capacity(scores.len());
    for chunk in stop.slices(scores) {
        out.extend(chunk?.iter().map(|score| score.map(&of)));
    }
    Ok(out)
}

/// The positions of some scores, the lowest or the highest first; equal ones in the order of the view.
fn in_order(
    scores: &[Option<f64>],
    order: Order,
    is_meant: impl Fn(usize) -> bool,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let flip = match order {
        Order::Asc => 0,
        Order::Desc => u64::MAX,
    };
    let (mut ranks, mut positions) = (Vec::with_capacity(scores.len()), Vec::with_capacity(scores.len()));
    for start in stop.starts(scores.len()) {
        let start = start?;
        for (at, score) in scores.iter().enumerate().skip(start).take(ROWS_A_LOOK) {
            if let Some(score) = score.filter(|_| is_meant(at)) {
                ranks.push(rank_float(score) ^ flip);
                positions.push(at as u32);
            }
        }
    }
    let mut out = Vec::with_capacity(positions.len());
    arrange(&ranks, &positions, &mut out, stop)?;
    Ok(out)
}

/// There are at least two different scores.
fn quantiles(scores: &[Option<f64>], count: usize, stop: Stop<'_>) -> Result<Vec<Option<f64>>, Stopped> {
    let order = in_order(scores, Order::Asc, |_| true, stop)?;
    let score = |at: &u32| scores[*at as usize];
    let (mut out, mut first, mut looks) = (vec![None; scores.len()], 0, stop.looks());
    for equals in order.chunk_by(|a, b| score(a) == score(b)) {
        looks.before(equals.len())?;
        let place = first as f64 + (equals.len() - 1) as f64 / 2.0;
        let quantile = Some(place / (count - 1) as f64);
        equals.iter().for_each(|at| out[*at as usize] = quantile);
        first += equals.len();
    }
    Ok(out)
}

/// Multiplies each score with `factor` once for every row of its group that comes before it by score, the higher first and then in the order
/// of the view; but not with less than `floor` in all. A row that is in no group keeps its score.
pub fn damped(
    mut scores: Vec<Option<f64>>,
    groups: &Groups,
    factor: f64,
    floor: f64,
    stop: Stop<'_>,
) -> Result<Vec<Option<f64>>, Stopped> {
    let order = in_order(&scores, Order::Desc, |at| groups.of_rows[at] != NO_GROUP, stop)?;
    let mut next = vec![1f64; groups.count];
    for chunk in stop.slices(&order) {
        for at in chunk?.iter().map(|at| *at as usize) {
            let by = &mut next[groups.of_rows[at] as usize];
            scores[at] = scores[at].map(|score| score * by.max(floor));
            *by *= factor;
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scores() -> impl Strategy<Value = Vec<Option<f64>>> {
        let score = prop_oneof![
            3 => (-3i32..4).prop_map(|n| Some(f64::from(n) / 2.0)),
            1 => Just(None),
            1 => prop_oneof![Just(-0.0), Just(f64::MAX), Just(f64::MIN), Just(1e-300), Just(7e200)].prop_map(Some),
        ];
        proptest::collection::vec(score, 0..25)
    }

    fn near(a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
            (a, b) => a == b,
        }
    }

    /// By the words of each, with numbers small enough for them.
    fn naive(scores: &[Option<f64>], scale: Scale, flat: f64) -> Vec<Option<f64>> {
        let unit = if scores.iter().flatten().any(|score| score.abs() > LARGE) { 1e200 } else { 1.0 };
        let there: Vec<f64> = scores.iter().flatten().map(|score| score / unit).collect();
        let n = there.len() as f64;
        let (low, high) = there.iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
        let mean = there.iter().sum::<f64>() / n;
        let deviation = (there.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
        let of = |score: f64| {
            let x = score / unit;
            let (below, equal) =
                (there.iter().filter(|y| **y < x).count() as f64, there.iter().filter(|y| **y == x).count() as f64);
            match scale {
                _ if low == high => flat,
                Scale::MinMax => (x - low) / (high - low),
                Scale::Deviations if deviation == 0.0 => flat,
                Scale::Deviations => (x - mean) / deviation,
                Scale::Quantiles => (below + (equal - 1.0) / 2.0) / (n - 1.0),
            }
        };
        scores.iter().map(|score| score.map(of)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn scores_are_scaled_by_the_words_of_each_way(scores in scores(), way in 0..3usize) {
            let scale = [Scale::MinMax, Scale::Deviations, Scale::Quantiles][way];
            // What is far smaller than the largest is nothing beside it.
            let large = scores.iter().flatten().any(|score| score.abs() > LARGE);
            let scores: Vec<Option<f64>> = match large {
                true => scores.iter().map(|score| score.filter(|score| *score == 0.0 || score.abs() > 1e100)).collect(),
                false => scores.iter().map(|score| score.filter(|score| score.abs() > 0.1)).collect(),
            };
            let found = scaled(&scores, scale, 0.25, Stop::default()).unwrap();
            let expected = naive(&scores, scale, 0.25);
            prop_assert!(found.iter().flatten().all(|score| score.is_finite()));
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!(near(*found, *expected), "{found:?} {expected:?} in {scores:?}");
            }
        }

        #[test]
        fn a_score_is_damped_by_the_rows_of_its_group_before_it(
            cells in proptest::collection::vec((prop_oneof![4 => (-3i32..4).prop_map(Some), 1 => Just(None)], prop_oneof![3 => 0..3u32, 1 => Just(NO_GROUP)]), 0..25),
            factor in 0..=4u32,
            floor in 0..=2u32,
        ) {
            let scores: Vec<Option<f64>> = cells.iter().map(|(score, _)| score.map(f64::from)).collect();
            let groups = Groups { of_rows: cells.iter().map(|(_, group)| *group).collect(), count: 3 };
            let (factor, floor) = (f64::from(factor) / 4.0, f64::from(floor) / 4.0);
            let found = damped(scores.clone(), &groups, factor, floor, Stop::default()).unwrap();
            for at in 0..cells.len() {
                let before = |other: &usize| {
                    groups.of_rows[*other] == groups.of_rows[at]
                        && match (scores[*other], scores[at]) {
                            (Some(a), Some(b)) => a > b || (a == b && *other < at),
                            _ => false,
                        }
                };
                let place = (0..cells.len()).filter(before).count();
                let by = if groups.of_rows[at] == NO_GROUP { 1.0 } else { (0..place).fold(1.0, |by, _| by * factor).max(floor) };
                prop_assert!(near(found[at], scores[at].map(|score| score * by)), "{at}: {found:?} of {cells:?}");
            }
        }
    }
}
