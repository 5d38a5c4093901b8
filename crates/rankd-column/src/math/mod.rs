//! The functions of numbers that no processor has: the same bits on every machine.
//!
//! The C library computes `exp` and its like in several ways and picks one by what the processor has, so the same plan would give
//! other bits elsewhere. Here each function is one definition, made of additions, multiplications, divisions and moves of bits, which
//! IEEE 754 defines to the last bit; nothing is contracted (`a * b + c` rounds twice), and nothing is looked up in a table. A
//! definition is a straight line without branches, and inlined, so a loop over a column is vectorised as the
//! width at hand allows, and a single call gives the same bits.
//!
//! What is promised, and tested against a reference of 256 bits (`tests/math`), for all arguments, subnormal ones too:
//!
//! | function | error at most | also |
//! |---|---|---|
//! | [`exp`], [`log`] | 1 ulp | never falls where its argument rises |
//! | [`log1p`], [`log2`], [`log10`], [`exp2`] | 1 ulp | |
//! | [`pow`], [`sigmoid`], [`tanh`], [`sin`], [`cos`] | 2 ulp | |
//! | [`decay`] | 1 ulp of 0.5 to the power of the rounded quotient | |
//! | [`logf`] | as glibc computes it | the single precision that model files were trained with |
//! | [`exp_in_steps`] | as CatBoost computes it, to 2 ulp | for its responses alone |
//!
//! Where the exact result is a number, it is what comes out, as long as it is not subnormal: the error before the last rounding is below half an ulp
//! in `exp`, `exp2`, `pow` and the logarithms. Infinities, NaN and signed zeros are as IEEE 754 says.
//!
//! Reading order: [`exact`] (steps without error), [`exponential`], [`logistic`], [`logarithm`], [`power`], [`angle`] and
//! [`trigonometry`], [`single`]. The polynomials were found by `tests/math/golden.py`.

mod angle;
mod exact;
mod exponential;
mod logarithm;
mod logistic;
mod power;
mod single;
mod trigonometry;

pub use exponential::{decay, exp, exp_in_steps, exp2};
pub use logarithm::{log, log1p, log2, log10};
pub use logistic::{sigmoid, tanh};
pub use power::pow;
pub use single::logf;
pub use trigonometry::{NEAR_MAX, cos, cos_near, sin, sin_near};
