//! TypeScript plans to plan artifacts, without Node.
//!
//! A plan file and what it imports are parsed, their operators rewritten to calls that build expressions, their types stripped, and
//! the result is run in an empty JavaScript engine; what it built is written down and checked like any plan. This crate reads no
//! file and knows no task: a [`Folder`](rankd_plan::source::Folder) gives texts, signatures say which tasks there are.
//!
//! Reading order: [`mod@compile`] (one plan from end to end), [`mod@resolve`] (what an import means), [`nesting`], [`parse`] and [`rewrite`]
//! (text to JavaScript), [`mod@config`], [`operations`], [`runtime`] and [`sandbox`] (running it), [`places`], [`pattern`] and [`mod@emit`] (the artifact), [`report`]
//! (what went wrong, at its line), [`current`] (whether an artifact is up to date), [`types`] (declarations for editors).

mod compile;
mod config;
mod current;
mod emit;
mod nesting;
mod operations;
mod parse;
mod pattern;
mod places;
mod report;
mod resolve;
mod rewrite;
mod runtime;
mod sandbox;
pub mod types;

pub use compile::Dslc;

/// Parses and rewrites a text as plans are, for the fuzz target: the code, or how many mistakes there are.
#[doc(hidden)]
pub fn rewritten(text: &str) -> Result<String, usize> {
    compile::on_large_stack(|| {
        let file = places::SourceFile::new("fuzz.plan.ts".to_owned(), text.to_owned());
        let mut found = rankd_plan::Diagnostics::default();
        let module = parse::module(&file, 0, &mut places::Places::default(), &mut found);
        module.map(|module| module.code).ok_or(found.errors())
    })
}
