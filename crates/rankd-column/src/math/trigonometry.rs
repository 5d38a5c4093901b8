//! Sine and cosine of what is left of an angle, put together by its quarter turns.
//!
//! Both are computed and one is taken: a branch could not be vectorised. The error is below 1 ulp.
//! Angles beyond [`NEAR_MAX`] take a way of their own, with branches. A loop over many computes all as if they were
//! near and then does the far ones again.

pub use crate::math::angle::NEAR_MAX;
use crate::math::angle::{Angle, far, near};
use crate::math::exact::{pick, polynomial};

/// (sin r - r) / r³ as a function of r² up to |r| = π / 4, to 1.2e-20.
const SINE: [f64; 7] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_333_331,
    -0.000_198_412_698_412_650_44,
    2.755_731_921_932_218_4e-6,
    -2.505_210_622_649_572e-8,
    1.605_853_066_884_048_3e-10,
    -7.586_640_781_310_91e-13,
];

/// (cos r - 1 + r² / 2) / r⁴ as a function of r², to 6.5e-22.
const COSINE: [f64; 7] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_888_7,
    2.480_158_730_158_463_5e-5,
    -2.755_731_922_139_329_5e-7,
    2.087_675_578_774_339_3e-9,
    -1.147_046_035_532_710_6e-11,
    4.745_840_362_947_064e-14,
];

/// The sine of an angle in radians.
pub fn sin(x: f64) -> f64 {
    if x.abs() > NEAR_MAX { of(far(x), 0) } else { sin_near(x) }
}

/// The cosine of an angle in radians.
pub fn cos(x: f64) -> f64 {
    if x.abs() > NEAR_MAX { of(far(x), 1) } else { cos_near(x) }
}

/// The sine of an angle of at most [`NEAR_MAX`]; of a greater one, anything.
#[inline(always)]
pub fn sin_near(x: f64) -> f64 {
    let found = of(near(x), 0);
    pick(x.abs() < 1e-9, x, found)
}

/// The cosine of an angle of at most [`NEAR_MAX`]; of a greater one, anything.
#[inline(always)]
pub fn cos_near(x: f64) -> f64 {
    of(near(x), 1)
}

/// The sine of an angle and some more quarter turns.
#[inline(always)]
fn of(angle: Angle, more: u64) -> f64 {
    let Angle { quarters, high, low } = angle;
    let quarters = quarters.wrapping_add(more);
    let square = high * high;
    let half = 0.5 * square;
    let sine = high + (high * square * polynomial(SINE, square) + (low - low * half));
    let one = 1.0 - half;
    let cosine = one + (((1.0 - one) - half) + (square * square * polynomial(COSINE, square) - high * low));
    let found = pick(quarters & 1 == 0, sine, cosine);
    f64::from_bits(found.to_bits() ^ (quarters & 2) << 62)
}
