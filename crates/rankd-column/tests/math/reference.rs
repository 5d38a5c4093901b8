//! Numbers of 256 bits, and the functions computed with them: what the functions of `rankd_column::math` are measured by.
//!
//! It shares nothing with them: other reductions, power series until nothing is left, constants from series of their own. What is
//! lost is below 2^-180 of a result, except near zeros, where it is below 2^-110. The golden values that another
//! program made (`golden.txt`) hold it to that.

use std::sync::LazyLock;

const WORDS: usize = 4;
const BITS: i64 = 64 * WORDS as i64;

/// `± 0.digits · 2^exponent`, with the first digit set; zero has none set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Big {
    negative: bool,
    exponent: i64,
    /// The highest word first.
    digits: [u64; WORDS],
}

impl Big {
    const ZERO: Big = Big { negative: false, exponent: 0, digits: [0; WORDS] };

    pub(crate) fn new(x: f64) -> Big {
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        let (whole, exponent) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Big::normal(x.is_sign_negative(), exponent + 64, [whole, 0, 0, 0])
    }

    fn whole(x: u64) -> Big {
        Big::normal(false, 64, [x, 0, 0, 0])
    }

    fn is_zero(&self) -> bool {
        self.digits[0] == 0
    }

    fn normal(negative: bool, exponent: i64, digits: [u64; WORDS]) -> Big {
        let Some(first) = digits.iter().position(|&word| word != 0) else { return Big::ZERO };
        let zeros = first as i64 * 64 + i64::from(digits[first].leading_zeros());
        Big { negative, exponent: exponent - zeros, digits: shifted_up(digits, zeros as usize) }
    }

    fn neg(self) -> Big {
        Big { negative: !self.negative, ..self }
    }

    pub(crate) fn abs(self) -> Big {
        Big { negative: false, ..self }
    }

    /// Times a power of two.
    fn scaled(self, by: i64) -> Big {
        Big { exponent: self.exponent + by, ..self }
    }

    pub(crate) fn add(self, other: Big) -> Big {
        if other.is_zero() {
            return self;
        }
        if self.is_zero() {
            return other;
        }
        let is_larger = (self.exponent, self.digits) >= (other.exponent, other.digits);
        let (large, small) = if is_larger { (self, other) } else { (other, self) };
        let apart = large.exponent - small.exponent;
        if apart >= BITS {
            return large;
        }
        let small_digits = shifted_down(small.digits, apart as usize);
        let mut digits = [0; WORDS];
        if large.negative == small.negative {
            let mut carry = false;
            for at in (0..WORDS).rev() {
                let (sum, first) = large.digits[at].overflowing_add(small_digits[at]);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                (digits[at], carry) = (sum, first | second);
            }
            if carry {
                let mut down = shifted_down(digits, 1);
                down[0] |= 1 << 63;
                return Big { negative: large.negative, exponent: large.exponent + 1, digits: down };
            }
        } else {
            let mut borrow = false;
            for at in (0..WORDS).rev() {
                let (less, first) = large.digits[at].overflowing_sub(small_digits[at]);
                let (less, second) = less.overflowing_sub(u64::from(borrow));
                (digits[at], borrow) = (less, first | second);
            }
        }
        Big::normal(large.negative, large.exponent, digits)
    }

    pub(crate) fn sub(self, other: Big) -> Big {
        self.add(other.neg())
    }

    fn mul(self, other: Big) -> Big {
        let mut product = [0u64; 2 * WORDS];
        for a in (0..WORDS).rev() {
            let mut carry = 0;
            for b in (0..WORDS).rev() {
                let at = a + b + 1;
                let sum = u128::from(self.digits[a]) * u128::from(other.digits[b]) + u128::from(product[at]) + carry;
                (product[at], carry) = (sum as u64, sum >> 64);
            }
            product[a] = carry as u64;
        }
        // One digit more, for where the first is not set.
        let mut digits = [0; WORDS];
        let shift = usize::from(product[0] >> 63 == 0);
        for (at, word) in digits.iter_mut().enumerate() {
            *word = if shift == 0 { product[at] } else { product[at] << 1 | product[at + 1] >> 63 };
        }
        Big::normal(self.negative != other.negative, self.exponent + other.exponent - shift as i64, digits)
    }

    fn over(self, by: u64) -> Big {
        let (mut digits, mut left) = ([0; WORDS], 0u128);
        for (at, word) in digits.iter_mut().enumerate() {
            let part = left << 64 | u128::from(self.digits[at]);
            (*word, left) = ((part / u128::from(by)) as u64, part % u128::from(by));
        }
        Big::normal(self.negative, self.exponent, digits)
    }

    /// 1 / x, by Newton's steps from the first 53 bits.
    fn inverse(self) -> Big {
        let first = Big::new(1.0 / self.fraction());
        let x = Big { exponent: 0, ..self };
        let step = |y: Big| y.mul(Big::whole(2).sub(x.mul(y)));
        step(step(step(first))).scaled(-self.exponent)
    }

    /// The digits as a number from 1/2 up to 1, with the sign.
    fn fraction(&self) -> f64 {
        let size = (self.digits[0] >> 11) as f64 / (1u64 << 53) as f64;
        if self.negative { -size } else { size }
    }

    /// The nearest number that is not far beyond the range, to 53 bits or so.
    pub(crate) fn to_f64(self) -> f64 {
        let half = self.exponent.clamp(-2000, 2000) / 2;
        let two = |by: i64| if by < -1022 { 0.0 } else { f64::from_bits(((by.min(1023) + 1023) as u64) << 52) };
        self.fraction() * two(half) * two(self.exponent.clamp(-2000, 2000) - half)
    }

    /// The nearest whole number, and its last two bits.
    fn round(self) -> (Big, u64) {
        let up = self.abs().add(Big::whole(1).scaled(-1));
        if up.exponent <= 0 {
            return (Big::ZERO, 0);
        }
        assert!(up.exponent < BITS, "no whole number");
        let down = shifted_down(up.digits, (BITS - up.exponent) as usize);
        let whole = Big { negative: self.negative, ..Big::normal(false, BITS, down) };
        let last = down[WORDS - 1] & 3;
        (whole, if self.negative { last.wrapping_neg() & 3 } else { last })
    }
}

fn shifted_up(digits: [u64; WORDS], by: usize) -> [u64; WORDS] {
    let (words, bits) = (by / 64, by % 64);
    let word = |at: usize| digits.get(at).copied().unwrap_or_default();
    std::array::from_fn(|at| {
        let (high, low) = (word(at + words), word(at + words + 1));
        if bits == 0 { high } else { high << bits | low >> (64 - bits) }
    })
}

fn shifted_down(digits: [u64; WORDS], by: usize) -> [u64; WORDS] {
    let (words, bits) = (by / 64, by % 64);
    let word = |at: usize| at.checked_sub(words).and_then(|at| digits.get(at).copied()).unwrap_or_default();
    std::array::from_fn(|at| {
        let (low, high) = (word(at), if at == 0 { 0 } else { word(at - 1) });
        if bits == 0 { low } else { low >> bits | high << (64 - bits) }
    })
}

/// 1 / n!.
static INVERSE_FACTORIALS: LazyLock<Vec<Big>> = LazyLock::new(|| {
    let mut list = vec![Big::whole(1)];
    for n in 1..64 {
        list.push(list[n - 1].over(n as u64));
    }
    list
});

/// Σ ± 1 / ((2k + 1) · x^(2k + 1)): the area tangent of 1 / x, or with signs the arc tangent.
fn odd_powers(x: u64, alternating: bool) -> Big {
    let (mut power, mut sum) = (Big::whole(1).over(x), Big::ZERO);
    for k in 0..140 {
        let term = power.over(2 * k + 1);
        sum = if alternating && k % 2 == 1 { sum.sub(term) } else { sum.add(term) };
        power = power.over(x * x);
    }
    sum
}

static LN_2: LazyLock<Big> = LazyLock::new(|| odd_powers(3, false).scaled(1));
/// ln 10 = 3 ln 2 + ln 1.25.
static LN_10: LazyLock<Big> = LazyLock::new(|| LN_2.mul(Big::whole(3)).add(odd_powers(9, false).scaled(1)));
/// π / 2 = 2 (4 arctan 1/5 - arctan 1/239).
static QUARTER: LazyLock<Big> = LazyLock::new(|| odd_powers(5, true).scaled(2).sub(odd_powers(239, true)).scaled(1));
static LOG2_E: LazyLock<Big> = LazyLock::new(|| LN_2.inverse());
static LOG10_E: LazyLock<Big> = LazyLock::new(|| LN_10.inverse());
static QUARTERS_IN_ONE: LazyLock<Big> = LazyLock::new(|| QUARTER.inverse());

fn exp_of(x: Big) -> Big {
    let (whole, _) = x.mul(*LOG2_E).round();
    let r = x.sub(whole.mul(*LN_2)).scaled(-6);
    let mut power = INVERSE_FACTORIALS[24];
    for n in (0..24).rev() {
        power = power.mul(r).add(INVERSE_FACTORIALS[n]);
    }
    for _ in 0..6 {
        power = power.mul(power);
    }
    power.scaled(whole.to_f64() as i64)
}

/// One step from the logarithm of the library, which is near enough to leave the fifth power of its error.
#[expect(clippy::disallowed_methods, reason = "where a step starts does not change what it finds")]
fn ln_of(x: Big) -> Big {
    // Near 1 the digits are taken as they are, or the exponent would cancel most of them.
    let near = x.to_f64();
    let guess = if (0.5..2.0).contains(&near) {
        near.ln()
    } else {
        x.fraction().ln() + x.exponent as f64 * std::f64::consts::LN_2
    };
    let guess = Big::new(guess);
    let left = x.mul(exp_of(guess.neg())).sub(Big::whole(1));
    let mut sum = Big::whole(1).over(6);
    for n in (1..6).rev() {
        sum = Big::whole(1).over(n).sub(sum.mul(left));
    }
    guess.add(sum.mul(left))
}

/// The sine of an angle and some more quarter turns.
fn sin_of(x: Big, more: u64) -> Big {
    let (quarters, last) = x.mul(*QUARTERS_IN_ONE).round();
    let r = x.sub(quarters.mul(*QUARTER));
    let quarters = last + more;
    let square = r.mul(r).neg();
    let odd = 1 - quarters as usize % 2;
    let mut sum = INVERSE_FACTORIALS[60 + odd];
    for n in (0..30).rev() {
        sum = sum.mul(square).add(INVERSE_FACTORIALS[2 * n + odd]);
    }
    let sum = if odd == 1 { sum.mul(r) } else { sum };
    if quarters & 2 == 0 { sum } else { sum.neg() }
}

pub(crate) fn exp(x: f64) -> Big {
    exp_of(Big::new(x))
}

pub(crate) fn exp2(x: f64) -> Big {
    exp_of(Big::new(x).mul(*LN_2))
}

pub(crate) fn log(x: f64) -> Big {
    ln_of(Big::new(x))
}

pub(crate) fn log2(x: f64) -> Big {
    log(x).mul(*LOG2_E)
}

pub(crate) fn log10(x: f64) -> Big {
    log(x).mul(*LOG10_E)
}

pub(crate) fn log1p(x: f64) -> Big {
    let x = Big::new(x);
    if x.exponent < -120 { x.sub(x.mul(x).scaled(-1)) } else { ln_of(Big::whole(1).add(x)) }
}

pub(crate) fn pow(x: f64, y: f64) -> Big {
    let size = exp_of(log(x.abs()).mul(Big::new(y)));
    if x < 0.0 && y % 2.0 != 0.0 { size.neg() } else { size }
}

pub(crate) fn decay(age: f64, half_life: f64) -> Big {
    exp2(-(age / half_life))
}

pub(crate) fn sigmoid(x: f64) -> Big {
    Big::whole(1).add(exp(-x)).inverse()
}

pub(crate) fn tanh(x: f64) -> Big {
    let x = Big::new(x);
    if x.exponent < -60 {
        return x.sub(x.mul(x).mul(x).over(3));
    }
    let power = exp_of(x.scaled(1));
    power.sub(Big::whole(1)).mul(power.add(Big::whole(1)).inverse())
}

/// For angles up to 2^100.
pub(crate) fn sin(x: f64) -> Big {
    let x = Big::new(x);
    if x.exponent < -60 { x.sub(x.mul(x).mul(x).over(6)) } else { sin_of(x, 0) }
}

pub(crate) fn cos(x: f64) -> Big {
    sin_of(Big::new(x), 1)
}

/// How far a result is from the exact one, in units of the last place that a double has there.
pub(crate) fn ulps(found: f64, exact: Big) -> f64 {
    // Beyond the middle between the largest double and what would follow it, infinity is right.
    let too_large = Big::whole((1 << 54) - 1).scaled(970);
    if found.is_infinite() {
        let is_right = !exact.abs().sub(too_large).negative && (found < 0.0) == exact.negative;
        return if is_right { 0.0 } else { f64::INFINITY };
    }
    if found.is_nan() {
        return f64::INFINITY;
    }
    let last_place = exact.exponent.max(-1021) - 53;
    let apart = Big::new(found).sub(exact);
    if apart.is_zero() { 0.0 } else { apart.abs().scaled(-last_place).to_f64() }
}
