//! The one place where a model's response calls a function that is not exact. Raw scores call none.

pub(super) fn exp(x: f64) -> f64 {
    x.exp()
}

pub(super) fn ln_1p(x: f64) -> f64 {
    x.ln_1p()
}
