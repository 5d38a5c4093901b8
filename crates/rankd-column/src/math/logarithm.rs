//! The logarithms: the exponent's share, and ln(1 + f), where 1 + f is between the roots of a half and of 2.
//!
//! With s = f / (2 + f), ln(1 + f) is 2s + s³·R(s²). `s` is kept as two numbers, of which the first has 26 bits, so its products
//! with constants are exact; s³·R is at most 0.0034. The error is 0.5 ulp and below 0.05 ulp of what was lost before the last step,
//! which is also less than the step from one argument to the next: the logarithms are monotone.

use crate::math::exact::{AROUND_ONE, LN_2, LOG2_E, pick, polynomial, power_of_two, split, sum, sum_ordered, upper};

/// (2 artanh(s) - 2s) / s³ as a function of s² up to 0.02944, to 2.1e-18.
const REST: [f64; 8] = [
    0.666_666_666_666_666_6,
    0.400_000_000_000_008_85,
    0.285_714_285_707_982_4,
    0.222_222_223_928_184_4,
    0.181_817_955_320_337_98,
    0.153_862_451_327_098_55,
    0.132_686_379_108_955_2,
    0.130_879_490_395_412_05,
];

/// Constants in two parts: of 26 bits, so that products with 26 bits are exact, or of 42, so that those with exponents are.
const LOG2_E_HALVES: [f64; 2] = [1.442_695_021_629_333_5, 1.925_962_991_126_617_5e-8];
const LOG10_E_HALVES: [f64; 2] = [0.434_294_477_105_140_7, 4.798_111_141_615_973e-9];
const LOG10_2: [f64; 2] = [0.301_029_995_663_952_83, 2.836_339_455_104_496_4e-14];
const LOG10_E: f64 = std::f64::consts::LOG10_E;

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    let (whole, m) = split(x, AROUND_ONE);
    let near = near_one(m - 1.0, None);
    let (high, low) = sum_ordered(whole * LN_2[0], near.0);
    special(x, high + (low + (near.1 + whole * LN_2[1])))
}

/// The logarithm to base 2.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    let (whole, m) = split(x, AROUND_ONE);
    let near = near_one(m - 1.0, None);
    let (high, low) = sum_ordered(whole, near.0 * LOG2_E_HALVES[0]);
    special(x, high + (low + (near.0 * LOG2_E_HALVES[1] + near.1 * LOG2_E)))
}

/// The logarithm to base 10.
#[inline(always)]
pub fn log10(x: f64) -> f64 {
    let (whole, m) = split(x, AROUND_ONE);
    let near = near_one(m - 1.0, None);
    let (high, low) = sum_ordered(whole * LOG10_2[0], near.0 * LOG10_E_HALVES[0]);
    let rest = near.0 * LOG10_E_HALVES[1] + near.1 * LOG10_E;
    special(x, high + (low + (rest + whole * LOG10_2[1])))
}

/// The natural logarithm of 1 + `x`.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let (one_more, lost) = sum(1.0, x);
    let (whole, m) = split(one_more, AROUND_ONE);
    // Where no power of two is taken out, nothing is lost with `x` itself.
    let is_near = whole == 0.0;
    let f = pick(is_near, x, m - 1.0);
    // Of a large number nothing is lost that counts.
    let lost = pick(is_near, 0.0, lost * power_of_two(pick(whole > 100.0, -100.0, -whole)));
    let near = near_one(f, Some(lost));
    let (high, low) = sum_ordered(whole * LN_2[0], near.0);
    let found = special(one_more, high + (low + (near.1 + whole * LN_2[1])));
    pick(x.abs() < f64::EPSILON * 0.25, x, found)
}

/// ln(1 + f + lost) as two numbers, the first of 26 bits.
#[inline(always)]
fn near_one(f: f64, lost: Option<f64>) -> (f64, f64) {
    let below = 2.0 + f;
    let inverse = 1.0 / below;
    let s = f * inverse;
    let high = upper(s);
    // What is left of f after high · (2 + f): all of it is exact, but for the last product.
    let (below_high, below_low) = (upper(below), f - (upper(below) - 2.0));
    let left = (f - high * below_high) - high * below_low;
    let left = match lost {
        Some(lost) => left + lost * (1.0 - s),
        None => left,
    };
    let square = s * s;
    (2.0 * high, 2.0 * (left * inverse) + s * square * polynomial(REST, square))
}

/// What was found for a positive number, or what a logarithm gives for any other.
#[inline(always)]
fn special(x: f64, found: f64) -> f64 {
    let found = pick(x < f64::INFINITY, found, x);
    let found = pick(x == 0.0, f64::NEG_INFINITY, found);
    pick(x < 0.0, f64::NAN, found)
}
