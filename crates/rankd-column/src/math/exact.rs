//! Steps that lose nothing: sums and products as two numbers, powers of two, the exponent of a number.
//!
//! A pair is a number and what rounding took from it: their sum is meant, and is exact where the function says so.

/// Added and taken off again, it rounds a number of up to 2^51 to a whole one; in between, the low bits are the whole number.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// 2^52: its low bits count ones.
const COUNTING: f64 = 4_503_599_627_370_496.0;

const ONE_BITS: u64 = 1.0f64.to_bits();

/// ln 2 in two parts. The first has 42 bits: its product with an exponent is exact.
pub(super) const LN_2: [f64; 2] = [0.693_147_180_559_890_3, 5.497_923_018_708_371e-14];

/// 1 / ln 2.
pub(super) const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// The nearest whole number, of two the even one.
#[inline(always)]
pub(super) fn round(x: f64) -> f64 {
    (x + ROUNDING) - ROUNDING
}

/// The low bits of a whole number, as in two's complement.
#[inline(always)]
pub(super) fn low_bits(whole: f64) -> u64 {
    (whole + ROUNDING).to_bits()
}

/// 2 to the power of a whole number from -1023, which gives 0, to 1023.
#[inline(always)]
pub(super) fn power_of_two(whole: f64) -> f64 {
    f64::from_bits((low_bits(whole) << 52).wrapping_add(ONE_BITS))
}

/// `x` times 2 to the power of a whole number, rounded once. The result may be subnormal, zero or infinite.
#[inline(always)]
pub(super) fn scale(x: f64, whole: f64) -> f64 {
    let half = round(whole * 0.5);
    // The first step is exact, and the second is where the result may leave the range.
    x * power_of_two(half) * power_of_two(whole - half)
}

/// `if c { a } else { b }` with both at hand: a branch would keep a loop from being vectorised.
#[inline(always)]
pub(super) fn pick(c: bool, a: f64, b: f64) -> f64 {
    std::hint::select_unpredictable(c, a, b)
}

/// The sum and what rounding took from it, where `a` is zero or not the smaller.
#[inline(always)]
pub(super) fn sum_ordered(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// The sum and what rounding took from it.
#[inline(always)]
pub(super) fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// The first 26 bits: the product of two such numbers is exact.
#[inline(always)]
pub(super) fn upper(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xffff_ffff_f800_0000)
}

/// A positive number as a power of two times one from `low` up to twice that. `low` is one of the constants below.
#[inline(always)]
pub(super) fn split(x: f64, low: u64) -> (f64, f64) {
    // A subnormal number has no exponent of its own.
    let is_subnormal = x < f64::MIN_POSITIVE;
    let bits = pick(is_subnormal, x * 18_014_398_509_481_984.0, x).to_bits();
    let exponent = bits.wrapping_add(ONE_BITS).wrapping_sub(low) >> 52;
    let whole =
        f64::from_bits(COUNTING.to_bits() | exponent) - pick(is_subnormal, COUNTING + 1077.0, COUNTING + 1023.0);
    (whole, f64::from_bits(bits.wrapping_sub(exponent << 52).wrapping_add(ONE_BITS)))
}

/// Numbers from the root of a half up to the root of 2.
pub(super) const AROUND_ONE: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();

/// Numbers from half the root of 3 up to the root of 3.
pub(super) const AROUND_FIVE_QUARTERS: u64 = 0.866_025_403_784_438_6_f64.to_bits();

/// The value of a polynomial, lowest coefficient first. Pairs of terms do not wait for one another.
#[inline(always)]
pub(super) fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    let square = x * x;
    let mut at = (N - 1) & !1;
    let pair = |at: usize| if at + 1 < N { coefficients[at] + coefficients[at + 1] * x } else { coefficients[at] };
    let mut value = pair(at);
    while at > 0 {
        at -= 2;
        value = pair(at) + square * value;
    }
    value
}
