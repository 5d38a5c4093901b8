//! How far the functions are from the exact results, that `exp` and `log` are monotone, and that what is exact is exact.
//!
//! The benchmark `functions` does the first on a million arguments each and prints the greatest error.

use crate::functions::{FUNCTIONS, Random, worst};
use rankd_column::math;

#[test]
fn no_function_is_further_off_than_it_may() {
    for function in FUNCTIONS {
        let (off, (x, y)) = worst(function, 1, 30_000);
        assert!(off <= function.ulps_max, "{} of {x:e} and {y:e} is off by {off} ulp", function.name);
        // A reference that follows the function, or arguments that ask nothing of it, would show no error.
        assert!(off > 0.4, "{} is never off by more than {off} ulp", function.name);
    }
}

type Scalar = fn(f64) -> f64;

/// From a number on, the next ones upwards.
fn ascending(start: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(start), |x| Some(x.next_up())).take(200)
}

#[test]
fn exp_and_the_logarithms_never_fall() {
    let mut random = Random(2);
    let exps = FUNCTIONS.iter().find(|function| function.name == "exp").unwrap();
    let logs = FUNCTIONS.iter().find(|function| function.name == "log").unwrap();
    // Beside arguments from all over, where the ways to compute change: at multiples of ln 2 / 2, of the root of 2, and around 0 and 1.
    let halves = (-2150..2050).map(|n| f64::from(n) * 0.5 * std::f64::consts::LN_2 - 1e-14);
    let mut of_exp: Vec<f64> = halves.chain([-1e-300, -1e-17, 1e-17, -1e-8, 1e-8, -0.25, 0.25]).collect();
    let roots = (-1070..1020).map(|n| math::exp2(f64::from(n) + 0.5) * (1.0 - 1e-14));
    let mut of_log: Vec<f64> = roots.chain([f64::from_bits(1), 1.0 - 1e-14, f64::MIN_POSITIVE]).collect();
    for turn in 0..4000 {
        of_exp.push((exps.arguments)(&mut random, turn).0);
        of_log.push((logs.arguments)(&mut random, turn).0);
    }
    let ours: [(&str, Scalar, &[f64]); 5] = [
        ("exp", math::exp, &of_exp),
        ("exp2", math::exp2, &of_exp),
        ("log", math::log, &of_log),
        ("log2", math::log2, &of_log),
        ("log10", math::log10, &of_log),
    ];
    for (name, f, starts) in ours {
        for &start in starts {
            let mut before = f64::NEG_INFINITY;
            for x in ascending(start) {
                let now = f(x);
                assert!(now >= before, "{name} falls at {x:e}: {before:e} {now:e}");
                before = now;
            }
        }
    }
}

#[test]
fn what_is_exact_comes_out_exact() {
    assert_eq!((math::exp(0.0), math::exp(-0.0), math::cos(0.0)), (1.0, 1.0, 1.0));
    assert_eq!((math::sigmoid(0.0), math::log(1.0), math::log1p(0.0), math::tanh(0.0)), (0.5, 0.0, 0.0, 0.0));
    for n in -1074..1024 {
        let power = math::exp2(f64::from(n));
        let expected =
            if n < -1022 { f64::from_bits(1 << (n + 1074)) } else { f64::from_bits(((n + 1023) as u64) << 52) };
        assert_eq!((power, math::log2(expected)), (expected, f64::from(n)));
        assert_eq!((math::pow(2.0, f64::from(n)), math::decay(f64::from(-n), 1.0)), (expected, expected), "{n}");
    }
    for n in 0..=22 {
        let power: f64 = format!("1e{n}").parse().unwrap();
        assert_eq!((math::pow(10.0, f64::from(n)), math::log10(power)), (power, f64::from(n)));
    }
    // Every power of a whole number that a double has.
    let mut powers = 0;
    for base in 2..3000u64 {
        let (mut power, mut n) = (base, 1);
        while power < 1 << 53 {
            let (x, y) = (base as f64, f64::from(n));
            assert_eq!((math::pow(x, y), math::pow(-x, y).abs()), (power as f64, power as f64), "{base}^{n}");
            assert_eq!(math::pow(power as f64, 1.0), power as f64);
            // And its root, where that is a power of two, so that 1 / y is exact.
            if (n as u32).is_power_of_two() {
                assert_eq!(math::pow(power as f64, 1.0 / y), x, "the root {n} of {power}");
            }
            (power, n, powers) = (power * base, n + 1, powers + 1);
        }
    }
    assert!(powers > 10_000, "{powers}");
}
