//! The rows with the lowest draws: so many rows by chance, each set of rows as likely as any other.
//!
//! No list is sorted. One look at eight bits of all draws tells which of the 256 parts the last row is in; the next eight bits of the draws of
//! that part tell it more exactly, and so on. Random draws are soon told apart; equal ones, of rows with the same id, are looked at
//! seven times.

use crate::stop::{Stop, Stopped};

const DIGIT: u32 = 8;
const PARTS: usize = 1 << DIGIT;

/// The positions of the `count` lowest draws, ascending; of equal draws the first. All positions where there are no more.
pub fn lowest(draws: &[u64], count: usize, stop: Stop<'_>) -> Result<Vec<usize>, Stopped> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if count >= draws.len() {
        return Ok((0..draws.len()).collect());
    }
    let (last, mut of_last) = nth(draws, count, stop)?;
    let mut positions = Vec::with_capacity(count);
    for start in stop.starts(draws.len()) {
        let start = start?;
        for (at, draw) in draws.iter().enumerate().skip(start).take(crate::stop::ROWS_A_LOOK) {
            let is_last = *draw == last && of_last > 0;
            of_last -= usize::from(is_last);
            if *draw < last || is_last {
                positions.push(at);
            }
        }
    }
    Ok(positions)
}

/// The draw that stands at this place, from 1, when all are in order; and how many draws like it are needed to come so far.
fn nth(draws: &[u64], place: usize, stop: Stop<'_>) -> Result<(u64, usize), Stopped> {
    let (mut known, mut left) = (0u64, place);
    // Those that begin with what is known.
    let mut like: Option<Vec<u64>> = None;
    for shift in (0..u64::BITS).step_by(DIGIT as usize).rev() {
        let among = like.as_deref().unwrap_or(draws);
        let digit = |draw: u64| (draw >> shift) as usize % PARTS;
        let mut counts = [0usize; PARTS];
        for chunk in stop.slices(among) {
            chunk?.iter().for_each(|draw| counts[digit(*draw)] += 1);
        }
        let (mut part, mut before) = (0, 0);
        while part < PARTS - 1 && before + counts[part] < left {
            before += counts[part];
            part += 1;
        }
        known |= (part as u64) << shift;
        left -= before;
        let mut next = Vec::with_capacity(counts[part]);
        for chunk in stop.slices(among) {
            next.extend(chunk?.iter().filter(|draw| digit(**draw) == part));
        }
        like = Some(next);
    }
    Ok((known, left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn the_lowest_draws_are_those_of_a_stable_sort(
            draws in proptest::collection::vec(prop_oneof![3 => any::<u64>(), 1 => 0..4u64, 1 => Just(u64::MAX), 1 => (0..3u64).prop_map(|n| n << 60)], 0..40),
            count in 0..45usize,
        ) {
            let mut expected: Vec<usize> = (0..draws.len()).collect();
            expected.sort_by_key(|at| draws[*at]);
            expected.truncate(count);
            expected.sort_unstable();
            prop_assert_eq!(lowest(&draws, count, Stop::default()).unwrap(), expected);
        }
    }
}
