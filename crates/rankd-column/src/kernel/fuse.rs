//! Several ranked lists of the same things as one.
//!
//! The lists lie end to end. What is in several of them is a group, and its score is made of the terms that its first row in each list
//! brings. The order is that of the scores, the highest first; of equal ones, that of the best place in a list, and then that of the first
//! rows. A group without a term comes last.

use crate::kernel::gather::NO_ROW;
use crate::kernel::groups::Groups;
use crate::stop::{Stop, Stopped};

/// How the terms of a group are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    Sum,
    Max,
}

/// A group at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusedRow {
    /// The position of its first row.
    pub position: usize,
    pub score: Option<f64>,
}

/// Fuses lists of these lengths. There is a group and perhaps a term for each row; every row is in a group.
pub fn fused(
    groups: &Groups,
    lengths: &[usize],
    terms: &[Option<f64>],
    together: Together,
    stop: Stop<'_>,
) -> Result<Vec<FusedRow>, Stopped> {
    struct Group {
        row: FusedRow,
        best_place: usize,
        last_list: usize,
    }
    let mut all: Vec<Group> = Vec::with_capacity(groups.count);
    let (mut position, mut looks) = (0, stop.looks());
    for (list, length) in lengths.iter().enumerate() {
        for place in 0..*length {
            looks.before(1)?;
            let (number, term) = (groups.of_rows[position] as usize, terms[position]);
            match all.get_mut(number) {
                // Groups are numbered in the order of their first rows.
                None => all.push(Group { row: FusedRow { position, score: term }, best_place: place, last_list: list }),
                Some(group) if group.last_list != list => {
                    group.last_list = list;
                    group.best_place = group.best_place.min(place);
                    group.row.score = match (group.row.score, term, together) {
                        (Some(a), Some(b), Together::Sum) => Some(a + b),
                        (Some(a), Some(b), Together::Max) => Some(a.max(b)),
                        (a, b, _) => a.or(b),
                    };
                }
                Some(_) => {}
            }
            position += 1;
        }
    }
    stop.check()?;
    // Stable, so that groups that are equal stay in the order of their first rows. A group without a score is below all numbers.
    all.sort_by(|a, b| {
        let key = |group: &Group| group.row.score.map(|score| score + 0.0);
        let by_score = match (key(b), key(a)) {
            (Some(b), Some(a)) => b.total_cmp(&a),
            (b, a) => b.is_some().cmp(&a.is_some()),
        };
        by_score.then(a.best_place.cmp(&b.best_place))
    });
    Ok(all.into_iter().map(|group| group.row).collect())
}

/// For each list, the position of each group's first row in it, or [`NO_ROW`].
pub fn positions(groups: &Groups, lengths: &[usize], stop: Stop<'_>) -> Result<Vec<Vec<u32>>, Stopped> {
    let (mut all, mut start) = (Vec::with_capacity(lengths.len()), 0);
    for length in lengths {
        let mut firsts = vec![NO_ROW; groups.count];
        let mut position = start;
        for chunk in stop.slices(&groups.of_rows[start..start + length]) {
            for group in chunk? {
                let first = &mut firsts[*group as usize];
                if *first == NO_ROW {
                    *first = position as u32;
                }
                position += 1;
            }
        }
        all.push(firsts);
        start += length;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the words of the header, thing by thing.
    fn naive(lists: &[Vec<(u32, Option<f64>)>], together: Together) -> Vec<(u32, Option<f64>)> {
        let mut things: Vec<u32> = Vec::new();
        lists.iter().flatten().for_each(|(thing, _)| {
            if !things.contains(thing) {
                things.push(*thing);
            }
        });
        let of = |thing: u32| {
            let firsts = lists.iter().filter_map(|list| {
                let place = list.iter().position(|(other, _)| *other == thing)?;
                Some((place, list[place].1))
            });
            let firsts: Vec<(usize, Option<f64>)> = firsts.collect();
            let terms = firsts.iter().filter_map(|(_, term)| *term);
            let score = match together {
                Together::Sum => terms.reduce(|a, b| a + b),
                Together::Max => terms.reduce(f64::max),
            };
            (score, firsts.iter().map(|(place, _)| *place).min().unwrap())
        };
        let mut ranked: Vec<(u32, Option<f64>)> = Vec::new();
        while !things.is_empty() {
            let better = |a: u32, b: u32| {
                let ((a, a_place), (b, b_place)) = (of(a), of(b));
                a > b || (a == b && a_place < b_place)
            };
            let best =
                things.iter().copied().reduce(|best, thing| if better(thing, best) { thing } else { best }).unwrap();
            things.retain(|thing| *thing != best);
            ranked.push((best, of(best).0));
        }
        ranked
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn lists_are_fused_by_the_words_of_the_header(
            lists in proptest::collection::vec(
                proptest::collection::vec((0..6u32, prop_oneof![4 => (0..4u8).prop_map(Some), 1 => Just(None)]), 0..6), 0..5),
            sum in any::<bool>(),
        ) {
            let together = if sum { Together::Sum } else { Together::Max };
            let lists: Vec<Vec<(u32, Option<f64>)>> = lists
                .into_iter()
                .map(|list| list.into_iter().map(|(thing, term)| (thing, term.map(f64::from))).collect())
                .collect();
            let things: Vec<u32> = lists.iter().flatten().map(|(thing, _)| *thing).collect();
            let terms: Vec<Option<f64>> = lists.iter().flatten().map(|(_, term)| *term).collect();
            let lengths: Vec<usize> = lists.iter().map(Vec::len).collect();
            // Numbered in the order of their first rows.
            let mut known: Vec<u32> = Vec::new();
            let of_rows = things.iter().map(|thing| {
                let at = known.iter().position(|other| other == thing).unwrap_or_else(|| {
                    known.push(*thing);
                    known.len() - 1
                });
                at as u32
            });
            let of_rows: Vec<u32> = of_rows.collect();
            let mut start = 0;
            let by_list = positions(&Groups { of_rows: of_rows.clone(), count: known.len() }, &lengths, Stop::default()).unwrap();
            for (list, firsts) in lists.iter().zip(by_list) {
                let first = |thing: &u32| list.iter().position(|(other, _)| other == thing).map_or(NO_ROW, |at| (start + at) as u32);
                prop_assert_eq!(firsts, known.iter().map(first).collect::<Vec<u32>>());
                start += list.len();
            }
            let groups = Groups { of_rows, count: known.len() };
            let found = fused(&groups, &lengths, &terms, together, Stop::default()).unwrap();
            let found: Vec<(u32, Option<f64>)> = found.iter().map(|row| (things[row.position], row.score)).collect();
            prop_assert_eq!(found, naive(&lists, together));
        }
    }
}
