//! The programs `rankd` and `dslc`. The only room that knows arguments, the environment, terminals and signals.
//!
//! [`App`] is a program made of tasks. Reading order: [`app`], [`cli`] (what the user typed), [`signals`], [`compile_child`] and
//! [`confinement`] (plan code in a process of its own).

mod app;
mod cli;
mod compile_child;
mod confinement;
mod signals;

pub use app::App;
