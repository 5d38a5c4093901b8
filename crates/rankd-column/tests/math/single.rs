//! `logf` against the C library of this machine, where that is glibc.

use rankd_column::math::logf;

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(clippy::disallowed_methods, reason = "what is to be equalled is the library's")]
fn logf_has_the_bits_of_glibc() {
    // Every 2,039th positive number is more than a million, of all exponents; and all around 1, where the most is lost.
    let all = (0..0x7f80_0000u32).step_by(2039).chain(0x3f7f_0000..0x3f81_0000).chain(0..5000);
    let mut count = 0;
    for bits in all {
        let x = f32::from_bits(bits);
        assert_eq!(logf(x).to_bits(), x.ln().to_bits(), "{x:e}");
        count += 1;
    }
    assert!(count > 1_000_000, "{count}");
}

#[test]
fn logf_of_what_has_no_logarithm() {
    assert!(logf(-1.0).is_nan() && logf(f32::NAN).is_nan() && logf(f32::NEG_INFINITY).is_nan());
    assert_eq!((logf(0.0), logf(-0.0), logf(f32::INFINITY)), (f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY));
    assert_eq!(logf(1.0).to_bits(), 0);
}
