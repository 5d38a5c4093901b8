//! The same bits everywhere: as one number that is the same on every machine, at every width of vectors, and in a process whose C library
//! may use less of the processor.

use crate::functions::{FUNCTIONS, Random};
use rankd_column::kernel::wide::each_width;
use rankd_column::math;
use std::process::Command;

/// The digest of the results. Another one means that answers of plans change: say so in the CHANGELOG.
const DIGEST: u64 = 0xc028_87a1_c0dc_51fe;

/// All functions on arguments of all kinds, as one number.
fn digest() -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bits: u64| digest = (digest ^ bits).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    for function in FUNCTIONS {
        let mut random = Random(3);
        for turn in 0..20_000 {
            let (x, y) = (function.arguments)(&mut random, turn);
            add((function.of)(x, y).to_bits());
        }
    }
    for bits in (0..0x7f80_0000u32).step_by(100_003) {
        add(math::logf(f32::from_bits(bits)).to_bits().into());
    }
    digest
}

#[test]
fn the_digest_is_the_same_on_every_machine() {
    let found = digest();
    println!("digest {found:#x}");
    assert_eq!(found, DIGEST, "{found:#x}");
}

/// What the C library may use of the processor changes what its own functions give, and must not change what ours do.
#[test]
fn the_digest_does_not_depend_on_the_c_library() {
    let this = std::env::current_exe().unwrap();
    for tunables in ["", "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4"] {
        let mut command = Command::new(&this);
        command.args(["--exact", "same_bits::the_digest_is_the_same_on_every_machine", "--nocapture"]);
        let output = command.env("GLIBC_TUNABLES", tunables).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{tunables}: {text}");
        assert!(text.contains(&format!("digest {DIGEST:#x}")), "{tunables}: {text}");
    }
}

/// In the development profile no loop is vectorised; the benchmark `functions` compares the same in the release profile.
#[test]
fn every_width_gives_the_bits_of_a_single_call() {
    let mut random = Random(4);
    macro_rules! check {
        ($($name:ident),*) => { $({
            let function = FUNCTIONS.iter().find(|function| function.name == stringify!($name).trim_end_matches("_near")).unwrap();
            let x: Vec<f64> = (0..3000).map(|turn| (function.arguments)(&mut random, turn).0).collect();
            let expected: Vec<u64> = x.iter().map(|&x| math::$name(x).to_bits()).collect();
            let widths = each_width(#[inline(always)] || {
                let mut found = vec![0; x.len()];
                for row in 0..x.len() {
                    found[row] = math::$name(x[row]).to_bits();
                }
                found
            });
            assert!(widths.iter().all(|found| *found == expected), stringify!($name));
        })* };
    }
    check!(exp, exp2, log, log2, log10, log1p, sigmoid, tanh, sin_near, cos_near);
    let pow = FUNCTIONS.iter().find(|function| function.name == "pow").unwrap();
    let pairs: Vec<(f64, f64)> = (0..3000).map(|turn| (pow.arguments)(&mut random, turn)).collect();
    let widths = each_width(
        #[inline(always)]
        || {
            let mut found = vec![(0, 0); pairs.len()];
            for row in 0..pairs.len() {
                let (x, y) = pairs[row];
                found[row] = (math::pow(x, y).to_bits(), math::decay(x, y).to_bits());
            }
            found
        },
    );
    let expected: Vec<(u64, u64)> =
        pairs.iter().map(|&(x, y)| (math::pow(x, y).to_bits(), math::decay(x, y).to_bits())).collect();
    assert!(widths.iter().all(|found| *found == expected));
}
