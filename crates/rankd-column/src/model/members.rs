//! Which side the categories of a set go to, for a block of values at a time.

use super::source::Dialect;

/// What a value is that is no category of any set, and one that is missing.
const OTHER: i32 = -1;
const MISSING: i32 = -2;

/// A set whose members are among so many categories, by how many members it has, is a table of bits; another is searched.
const BITS_A_MEMBER: usize = 64;
const BITS_MIN: usize = 2_048;

#[derive(Debug)]
pub(super) struct Members {
    set: Set,
    /// Whether members go right; all others then go left.
    inside_right: bool,
    missing_right: bool,
}

#[derive(Debug)]
enum Set {
    /// Whether each category from `low` on is a member.
    Table { low: i32, bits: Box<[u8]> },
    /// All members, ascending.
    Listed(Box<[i32]>),
}

impl Members {
    /// Of categories that are ascending and each given once.
    pub(super) fn new(categories: &[u32], inside_right: bool, missing_right: bool) -> Members {
        let listed: Box<[i32]> = categories.iter().filter_map(|category| i32::try_from(*category).ok()).collect();
        let set = match (listed.first(), listed.last()) {
            (Some(&low), Some(&high)) if table_fits(low, high, listed.len()) => {
                let mut bits = vec![0; (high - low) as usize / 8 + 1];
                for at in listed.iter().map(|category| (category - low) as usize) {
                    bits[at / 8] |= 1 << (at % 8);
                }
                Set::Table { low, bits: bits.into() }
            }
            _ => Set::Listed(listed),
        };
        Members { set, inside_right, missing_right }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Members>()
            + match &self.set {
                Set::Table { bits, .. } => bits.len(),
                Set::Listed(members) => size_of_val(&**members),
            }
    }

    /// A byte for each category: 1 for those that go right.
    #[inline(always)]
    pub(super) fn sides(&self, categories: &[i32], sides: &mut [u8]) {
        match &self.set {
            Set::Table { low, bits } => {
                for (side, category) in sides.iter_mut().zip(categories) {
                    let at = category.wrapping_sub(*low) as u32;
                    let inside = bits.get(at as usize / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1);
                    *side = self.side(*category, inside);
                }
            }
            Set::Listed(members) => {
                for (side, category) in sides.iter_mut().zip(categories) {
                    *side = self.side(*category, members.binary_search(category).is_ok());
                }
            }
        }
    }

    #[inline(always)]
    fn side(&self, category: i32, inside: bool) -> u8 {
        u8::from(if category == MISSING { self.missing_right } else { inside == self.inside_right })
    }
}

fn table_fits(low: i32, high: i32, members: usize) -> bool {
    ((high - low) as usize) < BITS_MIN.max(members * BITS_A_MEMBER)
}

/// The category that each value stands for.
#[inline(always)]
pub(super) fn categories(dialect: Dialect, values: &[f64], categories: &mut [i32]) {
    for (category, value) in categories.iter_mut().zip(values) {
        let there = match dialect {
            // Cut off towards zero, so that -0.5 is 0.
            Dialect::LightGbm | Dialect::CatBoost => *value > -1.0 && *value < 2_147_483_648.0,
            Dialect::XgBoost => *value >= 0.0 && *value < 16_777_216.0,
        };
        *category = match there {
            true => *value as i32,
            false if value.is_nan() => MISSING,
            false => OTHER,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::forest::BLOCK;

    fn side(dialect: Dialect, members: &Members, value: f64) -> u8 {
        let (mut found, mut sides) = ([0; BLOCK], [9; BLOCK]);
        categories(dialect, &[value; BLOCK], &mut found);
        members.sides(&found, &mut sides);
        assert!(sides.iter().all(|side| *side == sides[0]));
        sides[0]
    }

    #[test]
    fn members_go_to_their_side_and_all_others_to_the_other() {
        for set in [&[0, 3, 40][..], &[0, 3, 40, 9_999_999]] {
            // As LightGBM has them: members left.
            let members = Members::new(set, false, true);
            for (value, right) in [
                (0.0, 0),
                (-0.5, 0),
                (-1.0, 1),
                (3.9, 0),
                (4.0, 1),
                (40.0, 0),
                (1e9, 1),
                (3e9, 1),
                (-3e9, 1),
                (f64::NAN, 1),
                (f64::INFINITY, 1),
            ] {
                assert_eq!(side(Dialect::LightGbm, &members, value), right, "{value}");
            }
            // As XGBoost has them: members right.
            for missing_right in [false, true] {
                let members = Members::new(set, true, missing_right);
                for (value, right) in [
                    (0.0, 1),
                    (-0.5, 0),
                    (-1.0, 0),
                    (3.9, 1),
                    (4.0, 0),
                    (1e9, 0),
                    (16_777_216.0, 0),
                    (f64::NAN, u8::from(missing_right)),
                ] {
                    assert_eq!(side(Dialect::XgBoost, &members, value), right, "{value}");
                }
            }
        }
        assert!(matches!(Members::new(&[0, 9_999_999], true, true).set, Set::Listed(_)));
        assert_eq!(side(Dialect::LightGbm, &Members::new(&[], false, true), 0.0), 1);
    }
}
