//! A full stable descending sort of listed rows by their scores.
//!
//! Scores become 64-bit keys. A window of the highest bits that differ is sorted together with the position, least
//! significant digit first; the window is as narrow as leaves few ties, and those are sorted by their whole keys.

use crate::floor::Width;
use crate::floor::top::{by_counting, descending};

/// Up to this many rows, counting beats sorting.
const COUNT_MAX: usize = 64;
/// From this many, two passes of buckets beat a comparison sort.
const RADIX_MIN: usize = 200;

/// Working space kept from call to call.
#[derive(Default)]
pub struct Space {
    keys: Vec<u64>,
    from: Vec<u64>,
    to: Vec<u64>,
    counts: Vec<u32>,
}

pub fn sort(scores: &[f64], rows: &[u32], width: Width, space: &mut Space) -> Vec<u32> {
    match width {
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { avx512(scores, rows, space) },
        // SAFETY: the features were detected.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { avx2(scores, rows, space) },
        _ => sorted(scores, rows, space),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn avx512(scores: &[f64], rows: &[u32], space: &mut Space) -> Vec<u32> {
    sorted(scores, rows, space)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2(scores: &[f64], rows: &[u32], space: &mut Space) -> Vec<u32> {
    sorted(scores, rows, space)
}

#[inline(always)]
fn sorted(scores: &[f64], rows: &[u32], space: &mut Space) -> Vec<u32> {
    // SAFETY: the filter gave row numbers of these scores.
    let score = |&row: &u32| unsafe { *scores.get_unchecked(row as usize) };
    if rows.len() <= COUNT_MAX {
        let mut few = [0.0; COUNT_MAX];
        few.iter_mut().zip(rows).for_each(|(few, row)| *few = score(row));
        return by_counting(&few[..rows.len()], rows);
    }
    let Space { keys, from, to, counts } = space;
    keys.clear();
    keys.extend(rows.iter().map(|row| descending(score(row))));
    let differing = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
    let significant = 64 - differing.leading_zeros();
    let digit_bits = if rows.len() < RADIX_MIN { 16 } else { (rows.len().ilog2() / 2 + 2).clamp(8, 11) };
    let shift = significant.saturating_sub(2 * digit_bits);
    let pack = |(at, &key): (usize, &u64)| u64::from((key >> shift) as u32) << 32 | at as u64;

    if rows.len() < RADIX_MIN {
        from.clear();
        from.extend(keys.iter().enumerate().map(pack));
        from.sort_unstable();
    } else {
        let digits = 1 << digit_bits;
        let low = |packed: u64| (packed >> 32) as usize & (digits - 1);
        let high = |packed: u64| (packed >> (32 + digit_bits)) as usize & (digits - 1);
        counts.clear();
        counts.resize(2 * digits, 0);
        let (lows, highs) = counts.split_at_mut(digits);
        for element in keys.iter().enumerate().map(pack) {
            lows[low(element)] += 1;
            highs[high(element)] += 1;
        }
        starts(lows);
        starts(highs);
        from.resize(rows.len(), 0);
        to.resize(rows.len(), 0);
        // SAFETY: the starts are sums of the counts of these very elements, so each place is below `rows.len()`.
        unsafe {
            for element in keys.iter().enumerate().map(pack) {
                let place = lows.get_unchecked_mut(low(element));
                *to.get_unchecked_mut(*place as usize) = element;
                *place += 1;
            }
            for &element in to.iter() {
                let place = highs.get_unchecked_mut(high(element));
                *from.get_unchecked_mut(*place as usize) = element;
                *place += 1;
            }
        }
    }
    if shift > 0 {
        sort_ties(from, keys);
    }
    // SAFETY: positions are those of `rows`.
    from.iter().map(|&packed| unsafe { *rows.get_unchecked(packed as u32 as usize) }).collect()
}

#[inline(always)]
fn starts(counts: &mut [u32]) {
    let mut start = 0;
    for count in counts {
        start += std::mem::replace(count, start);
    }
}

#[inline(always)]
fn sort_ties(packed: &mut [u64], keys: &[u64]) {
    let mut at = 1;
    while at < packed.len() {
        if packed[at] >> 32 != packed[at - 1] >> 32 {
            at += 1;
            continue;
        }
        let start = at - 1;
        let run = packed[start..].iter().take_while(|&&other| other >> 32 == packed[start] >> 32).count();
        packed[start..start + run].sort_unstable_by_key(|&packed| (keys[packed as u32 as usize], packed));
        at = start + run + 1;
    }
}
