//! A number to the power of another: e^(y · ln x), with the logarithm and the product as two numbers each.
//!
//! |x| is a power of two times `c`, 1 or 1.5, times (1 + s) / (1 - s) with |s| up to 0.102. ln of the last is (2/3)·s·(3 + s² + s⁴·Q(s²)).
//! Its relative error is near 2^-67, and a product of up to 745 makes that 0.03 ulp of the result.

use crate::math::exact::{AROUND_FIVE_QUARTERS, LN_2, pick, polynomial, scale, split, sum_ordered, upper};
use crate::math::exponential::{clamp, powered};

/// (3 artanh(s) / s - 3 - s²) / s⁴ as a function of s² up to 0.01022, to 2.4e-19.
const REST: [f64; 7] = [
    0.6,
    0.428_571_428_571_426_3,
    0.333_333_333_336_814_64,
    0.272_727_270_686_160_76,
    0.230_769_800_298_369_83,
    0.199_918_526_976_301_66,
    0.182_231_079_020_190_95,
];

/// 2 / 3 in two parts, the first of 26 bits.
const TWO_THIRDS: [f64; 2] = [0.666_666_656_732_559_2, 9.934_107_462_565_104e-9];

/// ln 1.5 in two parts, the first of 42 bits.
const LN_1_5: [f64; 2] = [0.405_465_108_108_160_17, 4.215_966_355_549_632e-15];

const ROOT_OF_1_5: f64 = 1.224_744_871_391_589;

/// Any number but 1 to a power beyond this is 0 or infinite.
const POWER_MAX: f64 = 73_786_976_294_838_206_464.0;

const TWO_TO_52: f64 = 4_503_599_627_370_496.0;

/// `x` to the power of `y`.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let size = x.abs();
    let (high, low) = times(ln(size), clamp(y, -POWER_MAX, POWER_MAX));
    let is_beyond = high.abs() > 800.0;
    let (whole, one, rest) = powered(clamp(high, -800.0, 800.0), pick(is_beyond, 0.0, low)).parts();
    let found = scale(one + rest, whole);
    // Zero and infinity have no logarithm.
    let of_zero = pick(y < 0.0, f64::INFINITY, 0.0);
    let of_infinity = pick(y < 0.0, 0.0, f64::INFINITY);
    let found = pick(size == 0.0, of_zero, found);
    let found = pick(size == f64::INFINITY, of_infinity, found);
    // A negative number has whole powers only, and the odd ones are negative.
    let steps = y.abs();
    let counted = steps + TWO_TO_52;
    let is_small = steps < TWO_TO_52;
    let is_whole = !is_small | (counted - TWO_TO_52 == steps);
    let last_bit = pick(is_small, counted, steps).to_bits() << 63;
    let sign = pick(is_whole & (steps < 2.0 * TWO_TO_52), f64::from_bits(last_bit & x.to_bits()), 0.0).to_bits();
    let found = f64::from_bits(found.to_bits() | sign);
    let found = pick((x < 0.0) & !is_whole & (size < f64::INFINITY), f64::NAN, found);
    let found = pick(x.is_nan() | y.is_nan(), f64::NAN, found);
    pick((x == 1.0) | (y == 0.0), 1.0, found)
}

/// The natural logarithm of a positive number, as two numbers.
#[inline(always)]
fn ln(x: f64) -> (f64, f64) {
    let (whole, m) = split(x, AROUND_FIVE_QUARTERS);
    let is_high = m >= ROOT_OF_1_5;
    let c = pick(is_high, 1.5, 1.0);
    // s = (m - c) / (m + c), as `high` of 26 bits and `low`.
    let (above, below) = (m - c, m + c);
    let inverse = 1.0 / below;
    let s = above * inverse;
    let high = upper(s);
    let (below_high, below_low) = (upper(below), m - (upper(below) - c));
    let low = ((above - high * below_high) - high * below_low) * inverse;
    // 3 + s² + s⁴·Q(s²), of which s² is known to more than 53 bits.
    let square = s * s;
    let (sum, lost) = sum_ordered(3.0, high * high);
    let rest = square * square * polynomial(REST, square) + low * (high + s);
    let (sum, sum_low) = sum_ordered(sum, lost + rest);
    // Times s, times 2 / 3.
    let sum_high = upper(sum);
    let product = sum_ordered(high * sum_high, high * ((sum - sum_high) + sum_low) + low * sum);
    let product_high = upper(product.0);
    let product_low = (product.0 - product_high) + product.1;
    let near = product_high * TWO_THIRDS[0];
    let near_low = product_high * TWO_THIRDS[1] + product_low * (TWO_THIRDS[0] + TWO_THIRDS[1]);
    // And the shares of `c` and of the power of two, the first parts of which add up without error.
    let (c_high, c_low) = (pick(is_high, LN_1_5[0], 0.0), pick(is_high, LN_1_5[1], 0.0));
    let (high, low) = sum_ordered(whole * LN_2[0] + c_high, near);
    sum_ordered(high, low + (near_low + (whole * LN_2[1] + c_low)))
}

/// The product of a pair and a number, as a pair.
#[inline(always)]
fn times(x: (f64, f64), y: f64) -> (f64, f64) {
    let (x_high, y_high) = (upper(x.0), upper(y));
    let x_low = (x.0 - x_high) + x.1;
    sum_ordered(x_high * y_high, x_low * y_high + x.0 * (y - y_high))
}
