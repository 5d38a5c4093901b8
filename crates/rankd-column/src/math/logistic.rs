//! `sigmoid` and `tanh`: quotients of what [`exponential`](super::exponential) gives, as two numbers.
//!
//! Both take `e` to a power that is at most 0, so nothing overflows, and what is small stays exact to the last bits. The error is
//! that of the division and of the correction after it, 0.5 ulp each, and little more.

use crate::math::exact::{pick, power_of_two, scale, sum_ordered};
use crate::math::exponential::{clamp, powered};

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let (whole, one, rest) = powered(clamp(-x.abs(), -746.0, 0.0), 0.0).parts();
    let (power, low) = sum_ordered(one, rest);
    // Below 2^-100 the power does not count beside 1.
    let two = power_of_two(pick(whole < -100.0, -100.0, whole));
    let below = sum_ordered(1.0, power * two);
    let below = (below.0, below.1 + low * two);
    // e^x / (1 + e^x) for negative numbers: the power of two comes last.
    let is_negative = x < 0.0;
    let above = (pick(is_negative, power, 1.0), pick(is_negative, low, 0.0));
    scale(quotient(above, below), pick(is_negative, whole, 0.0))
}

/// (e^x - e^-x) / (e^x + e^-x).
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    // e^-2|x| - 1 over itself plus 2. From 22 on, that is 1.
    let above = powered(clamp(-2.0 * x.abs(), -44.0, 0.0), 0.0).less_one();
    let (below, low) = sum_ordered(2.0, above.0);
    quotient(above, (below, low + above.1)).copysign(x)
}

/// A quotient of pairs, where the second is from 1 to 2.
#[inline(always)]
fn quotient(a: (f64, f64), b: (f64, f64)) -> f64 {
    let quotient = a.0 / b.0;
    // What the low parts change is small, so a straight line stands for 1 / b.
    quotient + (a.1 - quotient * b.1) * (1.457 - 0.5 * b.0)
}
