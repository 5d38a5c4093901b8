//! `e` and 2 to a power: a power of two times e^r, where `r` is between -ln 2 / 2 and ln 2 / 2.
//!
//! e^r is 1 + r + r²/2 + r³·q(r). 1 + r is kept as two numbers, so only the rest, at most 0.07, is rounded before the last step: that
//! loses up to 0.15 ulp. It is also less than the result changes from one argument to the next, as far as the rounding of r², which is
//! monotone itself, does not make it up: `exp` is monotone.

use crate::math::exact::{LN_2, LOG2_E, low_bits, pick, polynomial, power_of_two, round, scale, sum_ordered, upper};

/// (e^r - 1 - r - r² / 2) / r³ up to |r| = 0.3468, to 7.9e-18.
const REST: [f64; 10] = [
    0.166_666_666_666_666_69,
    0.041_666_666_666_666_67,
    0.008_333_333_333_330_048,
    0.001_388_888_888_888_090_8,
    0.000_198_412_698_631_270_43,
    2.480_158_733_406_211e-5,
    2.755_726_834_615_216e-6,
    2.755_726_419_129_420_3e-7,
    2.510_043_955_056_395e-8,
    2.091_818_445_746_914e-9,
];

/// ln 2 in two parts, the first of 26 bits.
const LN_2_HALVES: [f64; 2] = [0.693_147_167_563_438_4, 1.299_650_689_388_988_9e-8];

/// What is beyond gives 0 and infinity like these.
const EXP_MIN: f64 = -746.0;
const EXP_MAX: f64 = 710.0;

/// `e` to the power of `x`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let (whole, one, rest) = powered(clamp(x, EXP_MIN, EXP_MAX), 0.0).parts();
    scale(one + rest, whole)
}

/// Steps of ln 2 / 2048, and their inverse, each rounded once.
const STEPS: f64 = 2_954.639_443_740_597;
const STEP: f64 = 1.0 / STEPS;
/// Of the second and the third term of e^r, where r is at most half a step.
const HALF: f64 = 0.500_000_001_022_758_3;
const SIXTH: f64 = 0.166_666_666_85;

/// `e` to the power of `x` as CatBoost computes it on x86. There `x` is the nearest whole number of steps and a rest, and what the product of that number and
/// a step loses by rounding is in the rest, and so in the result: it is off by up to `x` units in the last place.
#[inline(always)]
pub fn exp_in_steps(x: f64) -> f64 {
    let x = clamp(x, EXP_MIN, EXP_MAX);
    let count = round(x * STEPS);
    let rest = count * STEP - x;
    let less_than_two = (low_bits(count) & 2_047) as f64;
    // At most half a step: what a fourth term would add is in the factors of these.
    let power_of_rest = 1.0 + (rest * rest * (HALF - rest * SIXTH) - rest);
    scale(power_of_rest * exp2(less_than_two / 2_048.0), (count - less_than_two) / 2_048.0)
}

/// 2 to the power of `x`.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1080.0, 1025.0);
    let whole = round(x);
    let fraction = x - whole;
    // The product with ln 2 as a pair.
    let high = upper(fraction);
    let [first, second] = LN_2_HALVES;
    let (r, low) = sum_ordered(high * first, high * second + (fraction - high) * (first + second));
    let (whole, one, rest) = Powered { whole, r, rest: rest(r, low) }.parts();
    scale(one + rest, whole)
}

/// What is left of 1 at an age, where half of it is left at the half-life.
#[inline(always)]
pub fn decay(age: f64, half_life: f64) -> f64 {
    exp2(-(age / half_life))
}

/// 2^whole · (1 + r + rest), where the rest is at most 0.07.
pub(super) struct Powered {
    pub(super) whole: f64,
    pub(super) r: f64,
    pub(super) rest: f64,
}

/// `e` to the power of `x` + `low`, where `low` is what rounding took from `x`, at most 1,000 in size.
#[inline(always)]
pub(super) fn powered(x: f64, low: f64) -> Powered {
    let whole = round(x * LOG2_E);
    // Exact: both are near each other.
    let high = x - whole * LN_2[0];
    let low = whole * LN_2[1] - low;
    let r = high - low;
    Powered { whole, r, rest: rest(r, (high - r) - low) }
}

/// e^(r + low) - 1 - r.
#[inline(always)]
fn rest(r: f64, low: f64) -> f64 {
    let square = r * r;
    0.5 * square + (square * r * polynomial(REST, r) + (low + low * r))
}

impl Powered {
    /// The power of two, and two numbers whose sum is to be multiplied with it.
    #[inline(always)]
    pub(super) fn parts(self) -> (f64, f64, f64) {
        let (one, low) = sum_ordered(1.0, self.r);
        (self.whole, one, low + self.rest)
    }

    /// The whole less 1 as two numbers, of a power that is at most 0. Near 0 the result is as exact as elsewhere.
    #[inline(always)]
    pub(super) fn less_one(self) -> (f64, f64) {
        let two = power_of_two(self.whole);
        let (less, lost) = sum_ordered(-1.0, two);
        let (high, low) = sum_ordered(less, two * self.r);
        sum_ordered(high, (low + lost) + two * self.rest)
    }
}

/// `x`, or the bound that it is beyond. NaN stays NaN.
#[inline(always)]
pub(super) fn clamp(x: f64, min: f64, max: f64) -> f64 {
    let x = pick(x < min, min, x);
    pick(x > max, max, x)
}
