//! What XGBoost's objectives make of base scores and of sums.

use rankd_column::math::logf;
use rankd_column::model::response::Link;
use rankd_column::model::{Dialect, Response};

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
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => (Link::Exp, logf),
        "multi:softprob" => (Link::Softmax, |score| score),
        "multi:softmax" => (Link::Argmax, |score| score),
        _ => return None,
    };
    Some(Objective { response: Response { link, average: false, dialect: Dialect::XgBoost }, margin })
}

fn logit(score: f32) -> f32 {
    -logf(1.0 / score - 1.0)
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
            digest = (digest ^ u64::from(logf(x).to_bits())).wrapping_mul(0x100_0000_01b3);
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
