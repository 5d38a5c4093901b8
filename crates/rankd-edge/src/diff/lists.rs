//! How much two ranked lists agree: pure functions of positions. What was run, and for whom, is not known here.
//!
//! A list is taken by its ids, and of a repeated id only the first occurrence counts, so that every id has one position.

use rankd_column::{Id, Key, RowSet, Value};
use std::collections::HashMap;

/// How much weight the next place has, beside the one before it, in [`Paired::rbo`].
pub const RBO_P: f64 = 0.9;

/// A row of an answer, as far as lists are compared by it.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedRow {
    /// What it is called.
    pub id: Id,
    /// The number that lists are compared by besides, where there is one.
    pub score: Option<f64>,
    /// The group that it is counted in, where rows are grouped.
    pub group: Option<String>,
    /// What the node is called that brought it in, where that was asked.
    pub source: Option<String>,
}

/// Takes the rows of an output, of a repeated id the first one.
pub fn ranked_rows(rows: &RowSet, score: Option<Key>, group: Option<Key>) -> Vec<RankedRow> {
    let mut seen = HashMap::with_capacity(rows.len());
    let mut ranked = Vec::with_capacity(rows.len());
    for position in 0..rows.len() {
        let id = match rows.value(Key::ID, position) {
            Value::Str(text) => Id::Text(text),
            Value::Int(id) => Id::Int(id),
            // An id is nothing else.
            Value::Null | Value::Float(_) | Value::Bool(_) | Value::List(_) | Value::Vector(_) => continue,
        };
        if seen.insert(id.clone(), ()).is_some() {
            continue;
        }
        let score = score.and_then(|key| match rows.value(key, position) {
            Value::Float(score) => Some(score),
            Value::Int(score) => Some(score as f64),
            Value::Null | Value::Str(_) | Value::Bool(_) | Value::List(_) | Value::Vector(_) => None,
        });
        let group = group.map(|key| match rows.value(key, position) {
            Value::Str(text) => text.to_string(),
            value => value.to_string(),
        });
        ranked.push(RankedRow { id, score, group, source: None });
    }
    ranked
}

/// Two lists, each row with its position in the other.
pub struct Paired {
    /// By position in the first list: the position in the second.
    in_b: Vec<Option<usize>>,
    /// By position in the second list: the position in the first.
    in_a: Vec<Option<usize>>,
}

impl Paired {
    /// Finds the rows of each in the other. No id may be there twice.
    pub fn new(a: &[RankedRow], b: &[RankedRow]) -> Paired {
        let positions = |rows: &[RankedRow]| -> HashMap<Id, usize> {
            rows.iter().enumerate().map(|(at, row)| (row.id.clone(), at)).collect()
        };
        let (of_a, of_b) = (positions(a), positions(b));
        Paired {
            in_b: a.iter().map(|row| of_b.get(&row.id).copied()).collect(),
            in_a: b.iter().map(|row| of_a.get(&row.id).copied()).collect(),
        }
    }

    /// Whether both have the same ids in the same order.
    pub fn is_same(&self) -> bool {
        self.in_a.len() == self.in_b.len() && self.in_b.iter().enumerate().all(|(at, in_b)| *in_b == Some(at))
    }

    /// The positions of rows in the first list that the second does not have.
    pub fn left(&self) -> impl Iterator<Item = usize> {
        absent(&self.in_b)
    }

    /// The positions of rows in the second list that the first does not have.
    pub fn entered(&self) -> impl Iterator<Item = usize> {
        absent(&self.in_a)
    }

    /// The positions in both lists of the rows that both have, in the order of the first.
    pub fn kept(&self) -> impl Iterator<Item = (usize, usize)> {
        self.in_b.iter().enumerate().filter_map(|(at, in_b)| in_b.map(|in_b| (at, in_b)))
    }

    /// The part of the first `k` rows that both have, of the longer of the two: 1 where both are empty.
    pub fn overlap(&self, k: usize) -> f64 {
        let longer = self.in_b.len().max(self.in_a.len()).min(k);
        if longer == 0 {
            return 1.0;
        }
        self.kept().filter(|(a, b)| *a < k && *b < k).count() as f64 / longer as f64
    }

    /// How far the rows that both have moved, on average; nothing where they share none.
    pub fn displacement(&self) -> Option<f64> {
        let (mut moved, mut count) = (0, 0_usize);
        for (a, b) in self.kept() {
            (moved, count) = (moved + a.abs_diff(b), count + 1);
        }
        (count > 0).then(|| moved as f64 / count as f64)
    }

    /// Rank-biased overlap with `p`, extrapolated to lists of unequal length (Webber, Moffat and Zobel, 2010, equation 32): 1 for
    /// equal lists, 0 for lists that share nothing.
    pub fn rbo(&self, p: f64) -> f64 {
        let (short, long) = match self.in_a.len() < self.in_b.len() {
            true => (&self.in_a, &self.in_b),
            false => (&self.in_b, &self.in_a),
        };
        match (short.len(), long.len()) {
            (0, 0) => return 1.0,
            (0, _) => return 0.0,
            _ => {}
        }
        let (s, l) = (short.len(), long.len());
        // How many ids both have among the first d, the part of them at each depth, and that weighted.
        let (mut shared, mut shared_by_all, mut weight, mut sum) = (0_usize, 0_usize, 1.0, 0.0);
        for d in 1..=l {
            let at = d - 1;
            let of_long = long[at].is_some_and(|in_short| in_short <= at);
            let of_short = short.get(at).is_some_and(|in_long| in_long.is_some_and(|in_long| in_long <= at));
            // A row at the same place of both is one row.
            let is_one = of_long && of_short && long[at] == Some(at);
            shared += usize::from(of_long) + usize::from(of_short) - usize::from(is_one);
            if d == s {
                shared_by_all = shared;
            }
            weight *= p;
            sum += shared as f64 / d as f64 * weight;
            if d > s {
                sum += shared_by_all as f64 * (d - s) as f64 / (s as f64 * d as f64) * weight;
            }
        }
        let rest = (shared as f64 - shared_by_all as f64) / l as f64 + shared_by_all as f64 / s as f64;
        ((1.0 - p) / p * sum + rest * weight).clamp(0.0, 1.0)
    }
}

fn absent(positions: &[Option<usize>]) -> impl Iterator<Item = usize> {
    positions.iter().enumerate().filter(|(_, other)| other.is_none()).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::math::pow;

    fn list(ids: &[i64]) -> Vec<RankedRow> {
        ids.iter().map(|id| RankedRow { id: Id::Int(*id), score: None, group: None, source: None }).collect()
    }

    fn paired(a: &[i64], b: &[i64]) -> Paired {
        Paired::new(&list(a), &list(b))
    }

    #[test]
    fn lists_that_agree_have_the_highest_figures_and_lists_that_share_nothing_the_lowest() {
        for (a, b, overlap, rbo) in [
            (&[1, 2, 3][..], &[1, 2, 3][..], 1.0, 1.0),
            (&[], &[], 1.0, 1.0),
            (&[1, 2], &[], 0.0, 0.0),
            (&[], &[1], 0.0, 0.0),
            (&[1, 2], &[3, 4], 0.0, 0.0),
        ] {
            let pair = paired(a, b);
            assert_eq!(pair.overlap(20), overlap, "{a:?} {b:?}");
            assert!((pair.rbo(RBO_P) - rbo).abs() < 1e-12, "{a:?} {b:?}: {}", pair.rbo(RBO_P));
            assert_eq!(pair.is_same(), overlap == 1.0);
        }
    }

    #[test]
    fn figures_of_a_small_pair_are_those_that_were_computed_by_hand() {
        // 2 and 1 change places, 4 leaves, 5 enters.
        let pair = paired(&[1, 2, 3, 4], &[2, 1, 3, 5]);
        assert_eq!((pair.overlap(1), pair.overlap(2), pair.overlap(4)), (0.0, 1.0, 0.75));
        assert_eq!(pair.displacement(), Some(2.0 / 3.0));
        assert_eq!((pair.left().collect::<Vec<_>>(), pair.entered().collect::<Vec<_>>()), (vec![3], vec![3]));
        // Shared at depths 1 to 4: 0, 2, 3, 3. With p = 0.5: 0.5/0.5 × (0 + 1 × 0.25 + 1 × 0.125 + 0.75 × 0.0625) + 0.75 × 0.0625.
        assert!((pair.rbo(0.5) - (0.25 + 0.125 + 0.046875 + 0.046875)).abs() < 1e-12, "{}", pair.rbo(0.5));
        // The longer list counts: the second half of one is missing from the other.
        assert_eq!(paired(&[1, 2, 3, 4], &[1, 2]).overlap(20), 0.5);
        // A short list that agrees as far as it goes is taken to go on like that.
        assert!((paired(&[1, 2, 3, 4], &[1, 2]).rbo(RBO_P) - 1.0).abs() < 1e-12);
    }

    /// The definitions, word by word: sets of prefixes.
    fn slow(a: &[i64], b: &[i64], p: f64) -> f64 {
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        if long.is_empty() {
            return 1.0;
        }
        if short.is_empty() {
            return 0.0;
        }
        let (s, l) = (short.len() as f64, long.len() as f64);
        let shared = |d: usize| {
            let prefix = |list: &[i64]| list[..d.min(list.len())].to_vec();
            prefix(long).iter().filter(|id| prefix(short).contains(id)).count() as f64
        };
        let x_s = shared(short.len());
        let x_l = shared(long.len());
        let first: f64 = (1..=long.len()).map(|d| shared(d) / d as f64 * pow(p, d as f64)).sum();
        let then: f64 =
            (short.len() + 1..=long.len()).map(|d| x_s * (d as f64 - s) / (s * d as f64) * pow(p, d as f64)).sum();
        (1.0 - p) / p * (first + then) + ((x_l - x_s) / l + x_s / s) * pow(p, l)
    }

    #[test]
    fn rank_biased_overlap_is_its_definition_on_random_lists() {
        let mut state = 7_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..2_000 {
            let mut draw = || {
                let mut ids: Vec<i64> = Vec::new();
                for _ in 0..below(12) {
                    let id = below(14) as i64;
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }
                ids
            };
            let (a, b) = (draw(), draw());
            let (found, expected) = (paired(&a, &b).rbo(RBO_P), slow(&a, &b, RBO_P));
            assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found} {expected}");
            assert_eq!(found, paired(&b, &a).rbo(RBO_P), "both ways");
        }
    }
}
