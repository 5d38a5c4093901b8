//! What XGBoost's objectives make of base scores and of sums.

use rankd_column::model::Response;
use rankd_column::model::response::Link;

/// What becomes of sums, and of the base score before anything is added to it: it is in the space of responses.
pub(super) struct Objective {
    pub(super) response: Response,
    pub(super) margin: fn(f32) -> f32,
}

pub(super) fn objective(name: &str) -> Option<Objective> {
    let (link, margin): (Link, fn(f32) -> f32) = match name {
        "reg:squarederror"
        | "reg:squaredlogerror"
        | "reg:absoluteerror"
        | "reg:pseudohubererror"
        | "reg:quantileerror"
        | "rank:pairwise"
        | "rank:ndcg"
        | "rank:map"
        | "binary:logitraw" => (Link::Identity, |score| score),
        "reg:logistic" | "binary:logistic" => (Link::Sigmoid { slope: 1.0 }, logit),
        "binary:hinge" => (Link::IsPositive, |score| score),
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => (Link::Exp, ln),
        "multi:softprob" => (Link::Softmax, |score| score),
        "multi:softmax" => (Link::Argmax, |score| score),
        _ => return None,
    };
    Some(Objective { response: Response { link, average: false, single: true }, margin })
}

fn logit(score: f32) -> f32 {
    -ln(1.0 / score - 1.0)
}

/// `logf` as current versions of glibc compute it, bit for bit: the method of Szabolcs Nagy's "Optimized Routines", with a table of 16 intervals
/// and a polynomial in 64 bits. Only asked for numbers that are zero or above; NaN for others.
fn ln(x: f32) -> f32 {
    /// The reciprocal of about the middle of each interval, and its logarithm.
    const TABLE: [(u64, u64); 16] = [
        (0x3ff661ec79f8f3be, 0xbfd57bf7808caade),
        (0x3ff571ed4aaf883d, 0xbfd2bef0a7c06ddb),
        (0x3ff49539f0f010b0, 0xbfd01eae7f513a67),
        (0x3ff3c995b0b80385, 0xbfcb31d8a68224e9),
        (0x3ff30d190c8864a5, 0xbfc6574f0ac07758),
        (0x3ff25e227b0b8ea0, 0xbfc1aa2bc79c8100),
        (0x3ff1bb4a4a1a343f, 0xbfba4e76ce8c0e5e),
        (0x3ff12358f08ae5ba, 0xbfb1973c5a611ccc),
        (0x3ff0953f419900a7, 0xbfa252f438e10c1e),
        (0x3ff0000000000000, 0x0000000000000000),
        (0x3fee608cfd9a47ac, 0x3faaa5aa5df25984),
        (0x3feca4b31f026aa0, 0x3fbc5e53aa362eb4),
        (0x3feb2036576afce6, 0x3fc526e57720db08),
        (0x3fe9c2d163a1aa2d, 0x3fcbc2860d224770),
        (0x3fe886e6037841ed, 0x3fd1058bc8a07ee1),
        (0x3fe767dcf5534862, 0x3fd4043057b6ee09),
    ];
    const POLYNOMIAL: [u64; 3] = [0xbfd00ea348b88334, 0x3fd5575b0be00b6a, 0xbfdffffef20a4123];
    const FIRST: u32 = 0x3f33_0000;
    const SUBNORMALS: f32 = 8_388_608.0;
    if x == 1.0 {
        return 0.0;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x.is_infinite() {
        return x;
    }
    let bits = match x.is_normal() {
        true => x.to_bits(),
        false => (x * SUBNORMALS).to_bits().wrapping_sub(23 << 23),
    };
    let offset = bits.wrapping_sub(FIRST);
    let (inverse, logarithm) = TABLE[(offset >> 19) as usize % TABLE.len()];
    let exponent = (offset as i32) >> 23;
    let z = f64::from(f32::from_bits(bits.wrapping_sub(offset & 0xff80_0000)));
    let [a, b, c] = POLYNOMIAL.map(f64::from_bits);
    // With one rounding where the processor has such an instruction, as everywhere by now.
    let r = z.mul_add(f64::from_bits(inverse), -1.0);
    let start = f64::from(exponent).mul_add(std::f64::consts::LN_2, f64::from_bits(logarithm));
    let square = r * r;
    let sum = a.mul_add(square, b.mul_add(r, c));
    sum.mul_add(square, start + r) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_logarithms_have_the_bits_of_glibc() {
        // The digest is of glibc's results: `make_golden.py logf` prints it.
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for at in 0..1_000_000_u32 {
            let x = f32::from_bits((at.wrapping_mul(2_139_095) ^ at) % 0x7f80_0000);
            digest = (digest ^ u64::from(ln(x).to_bits())).wrapping_mul(0x100_0000_01b3);
        }
        assert_eq!(digest, GLIBC);
    }

    const GLIBC: u64 = 0xe6240bfcb7f419ce;

    #[test]
    fn margins_of_scores() {
        let margin = |name: &str, score: f32| (objective(name).unwrap().margin)(score);
        assert_eq!(margin("binary:logistic", 0.5), 0.0);
        assert_eq!(margin("count:poisson", 1.0), 0.0);
        assert_eq!(margin("reg:squarederror", 0.3), 0.3);
        assert!(!margin("binary:logistic", 1.5).is_finite() && !margin("reg:gamma", 0.0).is_finite());
        assert!(objective("reg:other").is_none());
    }
}
