//! Several row sets as one: one after the other, or in turn.

use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};

/// Row sets end to end, in their order. Neighbours are put together first, so that no row is copied more often than the number of
/// sets can be halved.
pub fn end_to_end(mut sets: Vec<RowSet>, stop: Stop<'_>) -> Result<RowSet, Stopped> {
    while sets.len() > 1 {
        let mut pairs = Vec::with_capacity(sets.len().div_ceil(2));
        for pair in sets.chunks(2) {
            pairs.push(match pair {
                [left, right] => left.concat(right, stop)?,
                alone => alone[0].clone(),
            });
        }
        sets = pairs;
    }
    Ok(sets.pop().unwrap_or_else(RowSet::empty))
}

/// In which order the rows of several sets are taken: the position of each among all rows, set after set. The next row is from the set with
/// the least `(taken + 1) / weight`, of equal ones the first; sets of equal weight take turns. There is a weight for each length.
pub fn in_turn(lengths: &[usize], weights: &[f64], stop: Stop<'_>) -> Result<Vec<usize>, Stopped> {
    let starts = lengths.iter().scan(0, |next, length| Some(std::mem::replace(next, *next + length)));
    let starts: Vec<usize> = starts.collect();
    let (total, mut taken): (usize, Vec<usize>) = (lengths.iter().sum(), vec![0; lengths.len()]);
    let (mut order, mut looks) = (Vec::with_capacity(total), stop.looks());
    while order.len() < total {
        looks.before(lengths.len())?;
        let due = |set: &usize| (taken[*set] + 1) as f64 / weights[*set];
        let open = (0..lengths.len()).filter(|set| taken[*set] < lengths[*set]);
        // The first of equal ones, as `min_by` gives it.
        let Some(set) = open.min_by(|a, b| due(a).total_cmp(&due(b))) else { break };
        order.push(starts[set] + taken[set]);
        taken[set] += 1;
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_take_turns_and_the_rest_follows() {
        let order = |lengths: &[usize], weights: &[f64]| in_turn(lengths, weights, Stop::default()).unwrap();
        assert_eq!(order(&[3, 1, 2], &[1.0; 3]), [0, 3, 4, 1, 5, 2]);
        assert_eq!(order(&[4, 2], &[2.0, 1.0]), [0, 1, 4, 2, 3, 5]);
        assert_eq!(order(&[], &[]), [0usize; 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn every_row_comes_once_in_the_order_of_its_set_and_no_set_falls_behind(
            sets in proptest::collection::vec((0..12usize, 1..5u32), 0..6),
        ) {
            let lengths: Vec<usize> = sets.iter().map(|(length, _)| *length).collect();
            let weights: Vec<f64> = sets.iter().map(|(_, weight)| f64::from(*weight)).collect();
            let order = in_turn(&lengths, &weights, Stop::default()).unwrap();
            let rows: Vec<RowSet> = lengths.iter().enumerate().map(|(set, length)| {
                RowSet::new(Batch::new((0..*length).map(|at| (100 * set + at) as i64).collect()))
            }).collect();
            let all = end_to_end(rows, Stop::default()).unwrap();
            let merged: Vec<i64> = all.positions(order).ids().collect();
            prop_assert_eq!(merged.len(), lengths.iter().sum::<usize>());
            let mut taken = vec![0usize; sets.len()];
            for id in merged {
                let set = (id / 100) as usize;
                prop_assert_eq!(id as usize % 100, taken[set], "in the order of its set");
                let due = |other: usize| (taken[other] + 1) as f64 / weights[other];
                for other in (0..sets.len()).filter(|other| taken[*other] < lengths[*other]) {
                    prop_assert!(due(set) < due(other) || (due(set) == due(other) && set <= other), "{set} before {other}");
                }
                taken[set] += 1;
            }
        }
    }
}
