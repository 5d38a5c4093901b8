//! `rankd serve` when things go wrong around it: too many requests, clients that are slow, plans that are broken, an end.
//!
//! Reading order: [`load`] (requests at fixed times), [`tally`] (what came of them), [`stage`] (plans, servers, tables), then
//! a file for each fault.

pub mod balancer;
pub mod ceiling;
pub mod clock;
pub mod degraded;
pub mod dial;
pub mod hog;
pub mod learned;
pub mod load;
pub mod network;
pub mod overload;
pub mod proxy;
pub mod reload;
pub mod reserve;
pub mod rollback;
pub mod service;
pub mod slow;
pub mod stage;
pub mod stop;
pub mod swap;
pub mod swap_model;
pub mod tally;
pub mod upgrade;
