//! Rows that are filled up from others, so that there are enough of them.

use crate::kernel::groups::Groups;
use crate::stop::{Stop, Stopped};

/// The positions of the first `kept` rows, whatever they are, and after them those of the others whose id is not there yet, until there are
/// `count`. The rows are grouped by their ids.
pub fn filled_up(ids: &Groups, kept: usize, count: usize, stop: Stop<'_>) -> Result<Vec<usize>, Stopped> {
    let mut is_there = vec![false; ids.count];
    ids.of_rows[..kept].iter().for_each(|group| is_there[*group as usize] = true);
    let mut order: Vec<usize> = (0..kept).collect();
    let mut looks = stop.looks();
    for (at, group) in ids.of_rows.iter().enumerate().skip(kept) {
        if order.len() >= count {
            break;
        }
        looks.before(1)?;
        if !std::mem::replace(&mut is_there[*group as usize], true) {
            order.push(at);
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_first_rows_stay_and_only_new_ones_follow(
            ids in proptest::collection::vec(0..12u32, 0..30),
            kept in 0..30usize,
            count in 0..30usize,
        ) {
            let kept = kept.min(ids.len());
            let groups = Groups { of_rows: ids.clone(), count: 12 };
            let found: Vec<u32> = filled_up(&groups, kept, count, Stop::default()).unwrap().iter().map(|at| ids[*at]).collect();
            let mut expected = ids[..kept].to_vec();
            for id in &ids[kept..] {
                if expected.len() < count && !expected.contains(id) {
                    expected.push(*id);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
