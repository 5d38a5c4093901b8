//! The functions, and the reference itself, against results that mpmath computed (`golden.py`): ends of ranges, hard angles, all sizes.

use crate::functions::FUNCTIONS;
use crate::reference::ulps;

const GOLDEN: &str = include_str!("golden.txt");

#[test]
fn what_another_program_computed_holds() {
    let mut checked = 0;
    for line in GOLDEN.lines() {
        let mut parts = line.split(' ');
        let name = parts.next().unwrap();
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let parts: Vec<&str> = parts.collect();
        let number = |text: &str| f64::from_bits(u64::from_str_radix(text, 16).unwrap());
        let (x, y) = (number(parts[0]), if parts.len() == 4 { number(parts[1]) } else { 0.0 });
        let nearest = number(parts[parts.len() - 2]);
        let above: f64 = parts[parts.len() - 1].parse().unwrap();

        // Both are near, so their bits count the steps between them; away from zero, which for negative results is downwards.
        let found = (function.of)(x, y);
        assert_eq!(found.is_sign_negative(), nearest.is_sign_negative(), "{line}");
        let steps = found.to_bits() as i64 - nearest.to_bits() as i64;
        let above = if nearest < 0.0 { -above } else { above } / 1000.0;
        let off = (steps as f64 - above).abs();
        assert!(off <= function.ulps_max + 0.0005, "{line}: {found:e} is off by {off} ulp");

        // The reference reduces angles by π to 256 bits, which is not enough for the largest.
        if !["sin", "cos"].contains(&name) || x.abs() < 1e30 {
            let off = ulps(nearest, (function.exact)(x, y));
            assert!((off - above.abs()).abs() < 0.001, "{line}: the reference says {off}");
        }
        checked += 1;
    }
    assert!(checked > 2000, "{checked}");
}
