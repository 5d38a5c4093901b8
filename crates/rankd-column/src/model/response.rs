//! From raw sums to what a library's `predict` gives.
//!
//! Raw scores have the library's bits. Here our own functions take the place of a C library's, so a result may be the next float but one.
//! CatBoost has an exponential of its own, whose error grows with its argument: it is computed as it is there.

use super::forest::BLOCK;
use super::source::Dialect;
use crate::math::{exp, exp_in_steps, log1p};

/// Which numbers a row gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelOutput {
    Raw,
    #[default]
    Response,
}

/// What becomes of raw sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    pub link: Link,
    /// Sums are divided by the number of iterations first.
    pub average: bool,
    /// Whose arithmetic it is: XGBoost's numbers have 32 bits, CatBoost's exponential is its own.
    pub dialect: Dialect,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    Identity,
    /// Of each output: `1 / (1 + exp(-slope x))`.
    Sigmoid {
        slope: f64,
    },
    /// Over all outputs.
    Softmax,
    Exp,
    /// The square, with the sign.
    SignedSquare,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// 1 above zero, else 0.
    IsPositive,
    /// One number: the first output of the largest sum.
    Argmax,
}

impl Response {
    /// How many numbers a row gets for so many sums.
    pub(super) fn outputs(&self, sums: usize) -> usize {
        if self.link == Link::Argmax { 1 } else { sums }
    }

    /// In place, for the first `len` rows of a block. `sums` has a block for each output.
    pub(super) fn apply(&self, sums: &mut [[f64; BLOCK]], len: usize, iterations: usize) {
        if self.average && iterations > 0 {
            sums.iter_mut().flat_map(|sums| &mut sums[..len]).for_each(|sum| *sum /= iterations as f64);
        }
        let single = self.dialect == Dialect::XgBoost;
        let exp = match self.dialect {
            Dialect::LightGbm | Dialect::XgBoost => exp,
            Dialect::CatBoost => exp_in_steps,
        };
        let each = |sums: &mut [[f64; BLOCK]], link: &dyn Fn(f64) -> f64| {
            sums.iter_mut().flat_map(|sums| &mut sums[..len]).for_each(|sum| *sum = rounded(link(*sum), single));
        };
        match self.link {
            Link::Identity => {}
            Link::Sigmoid { slope } => match single {
                true => each(sums, &|x| f64::from(single_sigmoid(x as f32))),
                false => each(sums, &|x| 1.0 / (1.0 + exp(-slope * x))),
            },
            Link::Exp => each(sums, &exp),
            Link::SignedSquare => each(sums, &|x| if x < 0.0 { -(x * x) } else { x * x }),
            Link::Softplus => each(sums, &|x| log1p(exp(x))),
            Link::IsPositive => each(sums, &|x| f64::from(u8::from(x > 0.0))),
            Link::Softmax => (0..len).for_each(|row| softmax(sums, row, exp, single)),
            Link::Argmax => (0..len).for_each(|row| argmax(sums, row)),
        }
    }
}

fn rounded(value: f64, single: bool) -> f64 {
    if single { f64::from(value as f32) } else { value }
}

/// As XGBoost has it: large arguments are cut off, so that no infinity comes up.
fn single_sigmoid(x: f32) -> f32 {
    let power = exp(f64::from((-x).min(88.7))) as f32;
    1.0 / (power + 1.0 + 1e-16)
}

fn softmax(sums: &mut [[f64; BLOCK]], row: usize, exp: fn(f64) -> f64, single: bool) {
    let largest = sums.iter().map(|sums| sums[row]).fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for sums in sums.iter_mut() {
        sums[row] = rounded(exp(rounded(sums[row] - largest, single)), single);
        total += sums[row];
    }
    let total = rounded(total, single);
    sums.iter_mut().for_each(|sums| sums[row] = rounded(sums[row] / total, single));
}

fn argmax(sums: &mut [[f64; BLOCK]], row: usize) {
    let mut best = 0;
    for at in 1..sums.len() {
        if sums[at][row] > sums[best][row] {
            best = at;
        }
    }
    if let Some(first) = sums.first_mut() {
        first[row] = best as f64;
    }
}
