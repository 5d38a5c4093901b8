//! Rows that get places of their own among others: promoted rows, a banner at a fixed place, one of a kind every so often.
//!
//! SlotPlaces are those of the finished list, counted from 0. Fills are served in their order: each row of a fill takes the next of the fill's
//! places that no earlier fill has. One for which there is none is left out. A place past the end of the list is its end, except for
//! a fill that recurs: it has the places that the list reaches. A row that the others have, too, is moved: it leaves its place among them.
//! A row that an earlier fill, or the same one, has placed is not placed again.

use crate::kernel::groups::{Groups, NO_GROUP};
use crate::stop::{Stop, Stopped};

/// The places of one fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotPlaces {
    /// These, in ascending order.
    At(Vec<usize>),
    /// The last of so many, over and over: 4, 9, 14 for 5.
    Every(usize),
}

/// One fill: how many rows it has, the most of them that get a place, and where.
#[derive(Clone, Copy, Debug)]
pub struct SlotFill<'a> {
    pub rows: usize,
    pub max: usize,
    pub places: &'a SlotPlaces,
}

/// The finished list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Positions among the rows of the base and of all fills, end to end.
    pub order: Vec<usize>,
    /// How many rows had to go to a later place because an earlier fill had theirs.
    pub moved: usize,
    /// How many rows of fills found no place.
    pub left_out: usize,
}

/// `ids` are the rows of the base and of all fills, end to end, grouped by their ids.
pub fn slots(ids: &Groups, base: usize, fills: &[SlotFill<'_>], stop: Stop<'_>) -> Result<Slots, Stopped> {
    // By id: how many rows of the base have it, and whether a fill has placed it.
    let (mut in_base, mut is_placed) = (vec![0usize; ids.count], vec![false; ids.count]);
    for group in ids.of_rows[..base].iter().filter(|group| **group != NO_GROUP) {
        in_base[*group as usize] += 1;
    }
    let (mut found, mut looks) = (Slots::default(), stop.looks());
    // The rows that have places, by place.
    let mut placed: Vec<(usize, usize)> = Vec::new();
    let (mut base_left, mut start) = (base, base);
    for fill in fills {
        // The number of its next place, how many places earlier fills have before that, and the rows that it has placed itself.
        let (mut next, mut before, mut own) = (0, 0, Vec::new());
        for at in start..start + fill.rows {
            looks.before(1)?;
            let group = ids.of_rows[at] as usize;
            if own.len() == fill.max {
                found.left_out += start + fill.rows - at;
                break;
            }
            if is_placed[group] {
                continue;
            }
            let mut is_moved = false;
            let place = loop {
                let Some(place) = place_of(fill.places, next) else { break None };
                next += 1;
                while placed.get(before).is_some_and(|(taken, _)| *taken < place) {
                    before += 1;
                }
                if placed.get(before).is_some_and(|(taken, _)| *taken == place) {
                    is_moved = true;
                    continue;
                }
                // What the list has before this place; the row itself leaves the base.
                let reaches = base_left - in_base[group] + before + own.len() >= place;
                break (reaches || matches!(fill.places, SlotPlaces::At(_))).then_some(place);
            };
            let Some(place) = place else {
                found.left_out += 1;
                continue;
            };
            own.push((place, at));
            is_placed[group] = true;
            base_left -= in_base[group];
            found.moved += usize::from(is_moved);
        }
        placed.extend(own);
        placed.sort_unstable();
        start += fill.rows;
    }
    let is_left = |at: &usize| ids.of_rows[*at] == NO_GROUP || !is_placed[ids.of_rows[*at] as usize];
    let mut of_base = (0..base).filter(is_left);
    let mut of_fills = placed.iter().peekable();
    while let Some(at) = of_fills
        .next_if(|(place, _)| *place == found.order.len())
        .map(|(_, at)| *at)
        .or_else(|| of_base.next())
        .or_else(|| of_fills.next().map(|(_, at)| *at))
    {
        looks.before(1)?;
        found.order.push(at);
    }
    Ok(found)
}

/// A place by its number.
fn place_of(places: &SlotPlaces, number: usize) -> Option<usize> {
    match places {
        SlotPlaces::At(places) => places.get(number).copied(),
        SlotPlaces::Every(every) => every.checked_mul(number + 1).map(|after| after - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap};

    /// The groups of ids, which are never null.
    fn grouped(ids: &[u8]) -> Groups {
        let mut numbers = HashMap::new();
        let of_rows = ids.iter().map(|id| {
            let next = numbers.len() as u32;
            *numbers.entry(*id).or_insert(next)
        });
        let of_rows = of_rows.collect();
        Groups { of_rows, count: numbers.len() }
    }

    fn ids_of(base: &[u8], fills: &[(&[u8], SlotPlaces, usize)]) -> (Vec<u8>, usize, usize) {
        let all: Vec<u8> = base.iter().chain(fills.iter().flat_map(|(rows, _, _)| *rows)).copied().collect();
        let of: Vec<SlotFill<'_>> =
            fills.iter().map(|(rows, places, max)| SlotFill { rows: rows.len(), max: *max, places }).collect();
        let found = slots(&grouped(&all), base.len(), &of, Stop::default()).unwrap();
        (found.order.iter().map(|at| all[*at]).collect(), found.moved, found.left_out)
    }

    #[test]
    fn rows_take_their_places_and_the_others_close_up() {
        let at = |places: &[usize]| SlotPlaces::At(places.to_vec());
        let all = usize::MAX;
        assert_eq!(ids_of(&[1, 2, 3], &[(&[8, 9], at(&[1, 3]), all)]), (vec![1, 8, 2, 9, 3], 0, 0));
        assert_eq!(
            ids_of(&[1, 2], &[(&[8, 9], at(&[0, 30]), all)]),
            (vec![8, 1, 2, 9], 0, 0),
            "past the end is the end"
        );
        assert_eq!(ids_of(&[1, 2, 3], &[(&[3], at(&[0]), all)]), (vec![3, 1, 2], 0, 0), "moved, not doubled");
        assert_eq!(ids_of(&[1, 2], &[(&[8], at(&[1]), all), (&[9], at(&[1, 2]), all)]), (vec![1, 8, 9, 2], 1, 0));
        assert_eq!(ids_of(&[1, 2], &[(&[8], at(&[1]), all), (&[9], at(&[1]), all)]), (vec![1, 8, 2], 0, 1));
        assert_eq!(
            ids_of(&[1, 2, 3, 4, 5], &[(&[6, 7, 8, 9], SlotPlaces::Every(2), all)]),
            (vec![1, 6, 2, 7, 3, 8, 4, 9, 5], 0, 0)
        );
        assert_eq!(
            ids_of(&[1, 2, 3], &[(&[6, 7, 8], SlotPlaces::Every(3), 1)]),
            (vec![1, 2, 6, 3], 0, 2),
            "one at most"
        );
        assert_eq!(
            ids_of(&[1], &[(&[6, 7, 8], SlotPlaces::Every(2), all)]),
            (vec![1, 6], 0, 2),
            "what the list reaches"
        );
        assert_eq!(ids_of(&[], &[(&[6], SlotPlaces::Every(1), all)]), (vec![6], 0, 0));
    }

    /// By the words of the header: the list is made anew after each row.
    fn naive(base: &[u8], fills: &[(Vec<u8>, SlotPlaces, usize)]) -> (Vec<u8>, usize) {
        let (mut placed, mut left_out): (BTreeMap<usize, u8>, usize) = (BTreeMap::new(), 0);
        for (rows, places, max) in fills {
            let (mut next, mut own) = (0, 0);
            for (nth, id) in rows.iter().enumerate() {
                if own == *max {
                    left_out += rows.len() - nth;
                    break;
                }
                if placed.values().any(|other| other == id) {
                    continue;
                }
                let mut place = None;
                while place.is_none() {
                    let candidate = match places {
                        SlotPlaces::At(places) => places.get(next).copied(),
                        SlotPlaces::Every(every) => Some(every * (next + 1) - 1),
                    };
                    let Some(candidate) = candidate else { break };
                    next += 1;
                    place = Some(candidate).filter(|place| !placed.contains_key(place));
                }
                let others =
                    base.iter().filter(|other| *other != id && !placed.values().any(|of| of == *other)).count();
                let reached = |place: &usize| others + placed.range(..place).count() >= *place;
                match place.filter(|place| matches!(places, SlotPlaces::At(_)) || reached(place)) {
                    Some(place) => {
                        placed.insert(place, *id);
                        own += 1;
                    }
                    None => left_out += 1,
                }
            }
        }
        let mut others: Vec<u8> = base.iter().filter(|id| !placed.values().any(|of| of == *id)).copied().collect();
        others.reverse();
        let mut list = Vec::new();
        for (place, id) in &placed {
            while list.len() < *place && !others.is_empty() {
                list.extend(others.pop());
            }
            list.push(*id);
        }
        list.extend(others.into_iter().rev());
        (list, left_out)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_list_is_that_of_the_header(
            base in proptest::collection::vec(0..20u8, 0..12),
            fills in proptest::collection::vec((
                proptest::collection::vec(0..24u8, 0..6),
                prop_oneof![
                    proptest::collection::btree_set(0..14usize, 1..5).prop_map(|places| SlotPlaces::At(places.into_iter().collect())),
                    (1..6usize).prop_map(SlotPlaces::Every),
                ],
                prop_oneof![Just(usize::MAX), 1..4usize],
            ), 0..4),
        ) {
            let borrowed: Vec<(&[u8], SlotPlaces, usize)> =
                fills.iter().map(|(rows, places, max)| (&rows[..], places.clone(), *max)).collect();
            let (list, _, left_out) = ids_of(&base, &borrowed);
            prop_assert_eq!((list, left_out), naive(&base, &fills));
        }
    }
}
