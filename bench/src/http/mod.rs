//! `rankd serve` under load, beside a floor that does the least that can give the same answer over HTTP.
//!
//! Reading order: [`shape`] (what is asked and answered), [`floor`], [`server`] (both as processes of their own), [`load`], [`alone`]
//! (a plan without any HTTP).

pub mod alone;
pub mod floor;
pub mod load;
pub mod server;
pub mod shape;
