//! Tables: their files beside Polars and DuckDB, a scan beside columns at hand, `hydrate` beside a loop, 64 requests at once.
//!
//! With arguments, only the parts of these names: `files`, `scan`, `hydrate`, `at_once`; a number is how many rows there are.
//! `at_once` needs a release build of rankd.

use rankd_bench::tables::counting::Counting;
use rankd_bench::tables::{at_once, files, hydrate, scan};

#[global_allocator]
static ALLOCATOR: Counting = Counting(mimalloc::MiMalloc);

const ROWS: usize = 1_000_000;

fn main() {
    let (numbers, asked): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.parse::<usize>().is_ok());
    let rows = numbers.first().and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    let parts: [(&str, fn(usize)); 4] =
        [("files", files::run), ("scan", scan::run), ("hydrate", |_| hydrate::run()), ("at_once", at_once::run)];
    for (name, run) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            run(rows);
        }
    }
}
