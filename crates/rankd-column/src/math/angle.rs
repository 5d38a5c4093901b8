//! An angle as a number of quarter turns and what is left of it, between -π/4 and π/4, as two numbers.
//!
//! No double is nearer to a quarter turn than about 2^-62 of one, so what is left is known to that and 53 bits more. Up to
//! [`NEAR_MAX`] π/2 in four parts does it, in a straight line; beyond, the bits of 2/π that matter are taken from a table.

use crate::math::exact::{low_bits, round, sum, sum_ordered, upper};

/// Up to here the number of quarter turns has 20 bits.
pub const NEAR_MAX: f64 = 1_000_000.0;

/// π / 2 in parts of 33, 33, 33 and 53 bits: products with 20 bits are exact.
const QUARTER: [f64; 4] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_711_166_5e-21, 8.478_427_660_368_9e-32];

const QUARTERS_IN_ONE: f64 = std::f64::consts::FRAC_2_PI;

/// π / 2 as a pair.
const QUARTER_PAIR: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];

/// 64 zeros and then the bits of 2 / π, from that of a half on.
const TWO_OVER_PI: [u64; 22] = [
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
    0xa9e3_9161_5ee6_1b08,
];

/// An angle.
#[derive(Clone, Copy)]
pub(super) struct Angle {
    /// Only the last two bits count.
    pub(super) quarters: u64,
    pub(super) high: f64,
    pub(super) low: f64,
}

/// The angle of at most [`NEAR_MAX`] in size.
#[inline(always)]
pub(super) fn near(x: f64) -> Angle {
    let quarters = round(x * QUARTERS_IN_ONE);
    let left = x - quarters * QUARTER[0];
    let (left, lost) = sum(left, -(quarters * QUARTER[1]));
    let (left, lost_next) = sum(left, -(quarters * QUARTER[2]));
    let (high, low) = sum(left, (lost + lost_next) - quarters * QUARTER[3]);
    Angle { quarters: low_bits(quarters), high, low }
}

/// The angle of more than [`NEAR_MAX`] in size; of what is not finite, NaN.
pub(super) fn far(x: f64) -> Angle {
    let bits = x.to_bits();
    // The number is digits · 2^exponent.
    let exponent = (bits >> 52 & 0x7ff) as usize;
    let digits = bits & ((1 << 52) - 1) | 1 << 52;
    // Bits of 2 / π above the first of these make whole turns; those below all of them are less than 2^-137 quarters.
    let Some(start) = exponent.checked_sub(1023 + 52 - 62).filter(|_| x.is_finite()) else {
        return Angle { quarters: 0, high: f64::NAN, low: 0.0 };
    };
    let word = |at: usize| {
        let (at, shift) = (start / 64 + at, start % 64);
        let pair = |at: usize| u128::from(TWO_OVER_PI.get(at).copied().unwrap_or_default());
        ((pair(at) << 64 | pair(at + 1)) << shift >> 64) as u64
    };
    // The product, of which the first two bits are the quarters and the other 190 a fraction of one.
    let low = u128::from(word(2)) * u128::from(digits);
    let middle = u128::from(word(1)) * u128::from(digits) + (low >> 64);
    let top = word(0).wrapping_mul(digits).wrapping_add((middle >> 64) as u64);
    let (high_bits, low_bits) = (u128::from(top) << 64 | u128::from(middle as u64), low as u64);
    let quarters = (high_bits >> 126) as u64;
    // The fraction from -1/2 up to 1/2: from a half on, what is missing to the next quarter.
    let (high_bits, low_bits) = (high_bits << 2 | u128::from(low_bits >> 62), low_bits << 2);
    let is_upper = high_bits >> 127 == 1;
    let (high_bits, low_bits) = if is_upper { (!high_bits, !low_bits) } else { (high_bits, low_bits) };
    let zeros = high_bits.leading_zeros().min(127);
    let digits = high_bits << zeros | u128::from(low_bits) << 64 >> (128 - zeros).min(127) & ((1 << zeros) - 1);
    let first = (digits >> 75) as u64 as f64;
    let second = (digits >> 22 & ((1 << 53) - 1)) as u64 as f64;
    let unit = f64::from_bits(u64::from(1023 - 53 - zeros) << 52);
    let (first, second) = (first * unit, second * unit * f64::EPSILON * 0.5);
    // Times π / 2.
    let (first_high, quarter_high) = (upper(first), upper(QUARTER_PAIR[0]));
    let rest = first_high * (QUARTER_PAIR[0] - quarter_high)
        + (first - first_high) * QUARTER_PAIR[0]
        + (first * QUARTER_PAIR[1] + second * QUARTER_PAIR[0]);
    let (high, low) = sum_ordered(first_high * quarter_high, rest);
    let sign = if is_upper == x.is_sign_negative() { 1.0 } else { -1.0 };
    let quarters = quarters + u64::from(is_upper);
    Angle {
        quarters: if x.is_sign_negative() { quarters.wrapping_neg() } else { quarters },
        high: sign * high,
        low: sign * low,
    }
}
