//! At most so many rows of a group, in the whole list or in every stretch of it.

use crate::kernel::groups::Groups;
use crate::stop::{Stop, Stopped};
use std::collections::VecDeque;

/// The positions of the rows that are kept. A row is dropped if `max` rows of its group are among those kept before it: all of them, or
/// with a `window` above 0 the last `window - 1`, so that no `window` neighbours have more. Rows that are in no group are always kept.
pub fn capped(groups: &Groups, max: usize, window: usize, stop: Stop<'_>) -> Result<Vec<usize>, Stopped> {
    let mut counts = vec![0usize; groups.count];
    let (mut kept, mut recent) = (Vec::with_capacity(groups.of_rows.len()), VecDeque::new());
    let mut at = 0;
    for chunk in stop.slices(&groups.of_rows) {
        for &group in chunk? {
            let count = counts.get_mut(group as usize);
            if count.as_ref().is_none_or(|count| **count < max) {
                count.into_iter().for_each(|count| *count += 1);
                kept.push(at);
                if window > 0 {
                    recent.push_back(group);
                    if recent.len() >= window {
                        // No group has this number where the row was in none.
                        let left = recent.pop_front().and_then(|left: u32| counts.get_mut(left as usize));
                        left.into_iter().for_each(|count| *count -= 1);
                    }
                }
            }
            at += 1;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::groups::NO_GROUP;
    use proptest::prelude::*;

    /// The same by looking at the rows that were kept before.
    fn naive(groups: &[u32], max: usize, window: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let before = match window {
                0 => &kept[..],
                window => &kept[kept.len().saturating_sub(window - 1)..],
            };
            let count = before.iter().filter(|before| groups[**before] == *group).count();
            if *group == NO_GROUP || count < max {
                kept.push(at);
            }
        }
        kept
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn as_many_are_kept_as_by_looking_back(
            of_rows in proptest::collection::vec(prop_oneof![0..4u32, Just(NO_GROUP)], 0..40),
            max in 1..4usize,
            window in 0..8usize,
        ) {
            let groups = Groups { of_rows, count: 4 };
            let kept = capped(&groups, max, window, Stop::default()).unwrap();
            prop_assert_eq!(&kept, &naive(&groups.of_rows, max, window));
            let kept: Vec<u32> = kept.iter().map(|at| groups.of_rows[*at]).collect();
            let window = if window == 0 { kept.len().max(1) } else { window };
            for some in kept.windows(window.min(kept.len().max(1))) {
                for group in 0..4 {
                    prop_assert!(some.iter().filter(|other| **other == group).count() <= max);
                }
            }
        }
    }
}
