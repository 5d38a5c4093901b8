//! The functions, what measures them, how far off they may be, and arguments for them.

use crate::reference::{self, Big};
use rankd_column::math;

/// One function. A function of one number does not look at its second argument.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) of: fn(f64, f64) -> f64,
    pub(crate) exact: fn(f64, f64) -> Big,
    pub(crate) ulps_max: f64,
    /// An argument for each of the numbers 0, 1, 2, …; by turns from the ranges that matter.
    pub(crate) arguments: fn(&mut Random, u64) -> (f64, f64),
}

macro_rules! function {
    ($name:ident, $ulps_max:expr, $arguments:expr) => {
        Function {
            name: stringify!($name),
            of: |x, _| math::$name(x),
            exact: |x, _| reference::$name(x),
            ulps_max: $ulps_max,
            arguments: |random, turn| ($arguments(random, turn), 0.0),
        }
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    function!(exp, 1.0, |random: &mut Random, turn| match turn % 4 {
        0 => random.between(-745.2, 709.8),
        1 => random.between(-1.0, 1.0),
        2 => random.between(-40.0, 40.0),
        _ => random.sized(-60.0, 3.0),
    }),
    function!(exp2, 1.0, |random: &mut Random, turn| match turn % 4 {
        0 => random.between(-1075.1, 1024.0),
        1 => random.between(-1.0, 1.0),
        2 => random.between(-60.0, 60.0),
        _ => random.sized(-60.0, 3.0),
    }),
    function!(log, 1.0, logarithmic),
    function!(log2, 1.0, logarithmic),
    function!(log10, 1.0, logarithmic),
    function!(log1p, 1.0, |random: &mut Random, turn| match turn % 5 {
        0 => random.between(-1.0, 1.0),
        1 => random.any().abs(),
        2 => random.sized(-70.0, -1.0),
        3 => random.sized(-53.0, 0.0).abs() - 1.0,
        _ => random.between(0.0, 1000.0),
    }),
    Function {
        name: "pow",
        of: math::pow,
        exact: reference::pow,
        ulps_max: 2.0,
        arguments: |random, turn| {
            let x = match turn % 5 {
                0 => random.between(0.0, 10.0),
                1 => random.any().abs(),
                2 => 1.0 + random.sized(-50.0, -1.0),
                3 => (1 + random.next() % 1_000_000) as f64 * f64::from_bits(1),
                _ => (1 + random.next() % 1000) as f64,
            };
            // So that the result is spread over the range, which is what is hard.
            let size = match turn / 5 % 3 {
                0 => random.between(-745.0, 709.0),
                1 => random.between(-20.0, 20.0),
                _ => random.between(-1.0, 1.0),
            };
            let y = size / if x == 1.0 { 1.0 } else { math::log(x) };
            let x = if x == 0.0 { 1.5 } else { x };
            match turn / 15 % 4 {
                0 => (x, y.round().clamp(-1e15, 1e15)),
                1 => (-x, y.round().clamp(-1e15, 1e15)),
                _ => (x, y),
            }
        },
    },
    Function {
        name: "decay",
        of: math::decay,
        exact: reference::decay,
        ulps_max: 1.0,
        arguments: |random, turn| match turn % 3 {
            0 => (random.between(0.0, 1000.0), random.between(1.0, 100.0)),
            1 => (random.between(-1000.0, 1074.0), 1.0),
            _ => (random.sized(-30.0, 5.0), random.sized(-3.0, 3.0)),
        },
    },
    function!(sigmoid, 2.0, |random: &mut Random, turn| match turn % 4 {
        0 => random.between(-745.2, 40.0),
        1 => random.between(-1.0, 1.0),
        2 => random.between(-40.0, 40.0),
        _ => random.sized(-60.0, 5.0),
    }),
    function!(tanh, 2.0, |random: &mut Random, turn| match turn % 4 {
        0 => random.between(-23.0, 23.0),
        1 => random.between(-1.0, 1.0),
        2 => random.sized(-1074.0, 0.0),
        _ => random.sized(-30.0, 3.0),
    }),
    function!(sin, 2.0, angular),
    function!(cos, 2.0, angular),
];

fn logarithmic(random: &mut Random, turn: u64) -> f64 {
    match turn % 5 {
        0 => random.between(0.5, 2.0),
        1 => random.any().abs().max(f64::from_bits(1)),
        2 => 1.0 + random.sized(-52.0, -1.0),
        3 => (1 + random.next() % 1_000_000) as f64 * f64::from_bits(1),
        _ => (1 + random.next() % 1_000_000) as f64,
    }
}

fn angular(random: &mut Random, turn: u64) -> f64 {
    let quarter = std::f64::consts::FRAC_PI_2;
    match turn % 6 {
        0 => random.between(-10.0, 10.0),
        1 => random.between(-1e6, 1e6),
        2 => (random.next() % 700_000) as f64 * quarter,
        3 => random.sized(-70.0, 0.0),
        // Beyond what goes in a straight line, and near multiples of a quarter there.
        4 => random.sized(19.0, 100.0),
        _ => (random.next() >> 11) as f64 * quarter,
    }
}

/// Numbers that are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Any finite number.
    fn any(&mut self) -> f64 {
        loop {
            let x = f64::from_bits(self.next());
            if x.is_finite() {
                return x;
            }
        }
    }

    /// A number of either sign with an exponent from `low` up to `high`.
    fn sized(&mut self, low: f64, high: f64) -> f64 {
        let x = math::exp2(self.between(low, high));
        if self.next().is_multiple_of(2) { x } else { -x }
    }
}

/// The greatest error of a function on so many of its arguments, and the arguments.
pub(crate) fn worst(function: &Function, seed: u64, turns: u64) -> (f64, (f64, f64)) {
    let mut random = Random(seed);
    let mut worst = (0.0, (0.0, 0.0));
    for turn in 0..turns {
        let (x, y) = (function.arguments)(&mut random, turn);
        let off = reference::ulps((function.of)(x, y), (function.exact)(x, y));
        if off > worst.0 {
            worst = (off, (x, y));
        }
    }
    worst
}
