//! Infinities, NaN, zeros and the ends of the range: as IEEE 754 and the functions of the C library have them.

use rankd_column::math;

const INFINITY: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const LEAST: f64 = f64::from_bits(1);

type Scalar = fn(f64) -> f64;
/// Arguments and results.
type Cases = &'static [(f64, f64)];

#[test]
fn functions_of_one_number() {
    let cases: &[(&str, Scalar, Cases)] = &[
        (
            "exp",
            math::exp,
            &[
                (INFINITY, INFINITY),
                (-INFINITY, 0.0),
                (NAN, NAN),
                (f64::MAX, INFINITY),
                (-f64::MAX, 0.0),
                (LEAST, 1.0),
                (-LEAST, 1.0),
                // The last that is finite and the first that is not, the last that is not 0 and the first that is.
                (709.782_712_893_384, 1.797_693_134_862_273_2e308),
                (709.782_712_893_384_1, INFINITY),
                (-745.133_219_101_941_1, LEAST),
                (-745.133_219_101_941_2, 0.0),
            ],
        ),
        ("exp2", math::exp2, &[(INFINITY, INFINITY), (-INFINITY, 0.0), (NAN, NAN), (1024.0, INFINITY), (-1075.0, 0.0)]),
        ("log", math::log, LOGARITHM),
        ("log2", math::log2, LOGARITHM),
        ("log10", math::log10, LOGARITHM),
        (
            "log1p",
            math::log1p,
            &[
                (INFINITY, INFINITY),
                (-INFINITY, NAN),
                (NAN, NAN),
                (-1.0, -INFINITY),
                (-1.5, NAN),
                (-0.0, -0.0),
                (LEAST, LEAST),
                (-LEAST, -LEAST),
                (f64::MIN_POSITIVE, f64::MIN_POSITIVE),
            ],
        ),
        (
            "sigmoid",
            math::sigmoid,
            &[
                (INFINITY, 1.0),
                (-INFINITY, 0.0),
                (NAN, NAN),
                (f64::MAX, 1.0),
                (-f64::MAX, 0.0),
                (-0.0, 0.5),
                (-744.5, LEAST),
            ],
        ),
        (
            "tanh",
            math::tanh,
            &[
                (INFINITY, 1.0),
                (-INFINITY, -1.0),
                (NAN, NAN),
                (-0.0, -0.0),
                (LEAST, LEAST),
                (-LEAST, -LEAST),
                (25.0, 1.0),
            ],
        ),
        (
            "sin",
            math::sin,
            &[(INFINITY, NAN), (-INFINITY, NAN), (NAN, NAN), (-0.0, -0.0), (LEAST, LEAST), (-LEAST, -LEAST)],
        ),
        ("cos", math::cos, &[(INFINITY, NAN), (-INFINITY, NAN), (NAN, NAN), (-0.0, 1.0), (LEAST, 1.0)]),
    ];
    for (name, f, cases) in cases {
        for &(x, expected) in *cases {
            let found = f(x);
            assert!(same(found, expected), "{name} of {x:e} is {found:e}, not {expected:e}");
        }
    }
}

const LOGARITHM: &[(f64, f64)] = &[
    (INFINITY, INFINITY),
    (-INFINITY, NAN),
    (NAN, NAN),
    (0.0, -INFINITY),
    (-0.0, -INFINITY),
    (-1.0, NAN),
    (-LEAST, NAN),
    (1.0, 0.0),
];

/// The C library is held to the same rules, and is another definition of them.
#[test]
#[expect(clippy::disallowed_methods, reason = "another definition of the special cases")]
fn powers_of_all_kinds_of_numbers_are_as_the_library_has_them() {
    let sizes =
        [0.0, LEAST, 1e-300, 0.5, 1.0, 1.5, 2.0, 3.0, 1e15 + 0.5, (1u64 << 52) as f64, (1u64 << 53) as f64 - 1.0];
    let more = [(1u64 << 53) as f64, 1e300, f64::MAX, INFINITY, NAN];
    let all: Vec<f64> = sizes.into_iter().chain(more).flat_map(|x| [x, -x]).collect();
    let mut special = 0;
    for &x in &all {
        for &y in &all {
            let (found, expected) = (math::pow(x, y), x.powf(y));
            let is_special = !expected.is_finite() || expected == 0.0 || expected.abs() == 1.0;
            if is_special {
                assert!(same(found, expected), "{x:e} to the power of {y:e} is {found:e}, not {expected:e}");
                special += 1;
            } else {
                assert!((found / expected - 1.0).abs() < 1e-15, "{x:e} to the power of {y:e}: {found:e} {expected:e}");
            }
        }
    }
    assert!(special > 700, "{special}");
}

#[test]
fn a_half_life_of_nothing_or_forever() {
    let cases = [
        (0.0, 0.0, NAN),
        (1.0, 0.0, 0.0),
        (-1.0, 0.0, INFINITY),
        (5.0, INFINITY, 1.0),
        (INFINITY, 5.0, 0.0),
        (NAN, 1.0, NAN),
    ];
    for (age, half_life, expected) in cases {
        let found = math::decay(age, half_life);
        assert!(same(found, expected), "{age} {half_life}: {found} {expected}");
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}
