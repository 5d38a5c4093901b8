//! Regular expressions made to hurt: from a request each is refused, or compiled in little memory and time.
//!
//! The time limit is a coarse guard for slow machines and unoptimised builds; the memory limit is exact.

#![expect(unsafe_code, reason = "counting what is allocated needs a global allocator")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::column::ColumnBuilder;
use rankd_column::expr::{Fault, Op, Pattern, Program, RunValues, Schema, Scratch, Stop, Tree, Want, select};
use rankd_column::{Batch, Key, RowSet, Type, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is; the counters touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// For one pattern, compiled and matched.
const MEMORY_MAX: usize = 8 << 20;
/// For all that are kept.
const KEPT_MAX: usize = 32 << 20;
const TIME_MAX: Duration = Duration::from_secs(10);

struct Titles;

impl Schema for Titles {
    fn key_type(&self, _: Key) -> Type {
        Type::Str
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Str
    }
}

fn program(ignore_case: bool) -> Program {
    let mut tree = Tree::new();
    tree.push(Op::Match { key: Key(1), pattern: Pattern::Param(0), ignore_case }, None);
    Program::compile(&tree, &Titles, Want::Predicate).unwrap()
}

fn titles(titles: &[&str]) -> RowSet {
    let mut column = ColumnBuilder::new(Type::Str, titles.len());
    titles.iter().for_each(|title| assert!(column.push(&Value::str(title))));
    let ids = (1..=titles.len() as i64).collect();
    RowSet::new(Batch::new(ids).with(Key(1), Arc::new(column.finish())))
}

/// Runs a pattern as a request would bring it: how many titles match, or why it cannot be used.
#[expect(clippy::print_stdout, reason = "the figures are the point of running it by hand")]
fn run(pattern: &str, ignore_case: bool) -> Result<usize, String> {
    let (program, rows) = (program(ignore_case), titles(&["The quick brown fox", "", "jumps over ä lazy dog"]));
    let params = [Value::str(pattern)];
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    #[expect(clippy::disallowed_methods, reason = "a coarse guard against work that grows")]
    let start = Instant::now();
    let kept = select(&program, &rows, RunValues::of(&params), &mut Scratch::default(), Stop::default());
    let (took, memory) = (start.elapsed(), PEAK.load(Ordering::Relaxed) - before);
    let shown: String = pattern.chars().take(40).collect();
    println!("{shown:40} {ignore_case:5} {:6} bytes: {took:?}, {memory} bytes of memory", pattern.len());
    assert!(memory < MEMORY_MAX, "{shown} took {memory} bytes");
    assert!(took < TIME_MAX, "{shown} took {took:?}");
    kept.map(|rows| rows.len()).map_err(|error| match error.fault {
        Fault::BadRegex { why } => why.to_string(),
        other => panic!("{other:?}"),
    })
}

/// Patterns of pieces that cost much for their length, put together at random.
fn random(seed: u64) -> String {
    const PIECES: &[&str] = &[
        r"\w",
        r"[^\w]",
        r"\PL",
        r"\p{any}",
        r"[\s\S]",
        r"[\W\d]",
        "[^a]",
        "[[^a]]",
        "[\u{0}-\u{10ffff}]",
        ".",
        "a",
        "k",
        "ſ",
        "é",
        "x*",
        "y?",
        "(z)",
        "|",
        r"\b",
        "^",
        "[a-z]",
        r"[\w&&\pL]",
        r"[\W--\d]",
        "[[:^alpha:]]",
        "(?i)",
        "(?i:",
        ")",
        "(?:",
        "(",
        "{10}",
        "{2,50}",
        "{99}",
        "+",
        "[",
        "]",
        r"\p{Greek}",
        r"\p{age=16.0}",
    ];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut dice = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % sides
    };
    let (kinds, length) = (1 + dice(6), 1 + dice(1024));
    let pieces: Vec<&str> = (0..kinds).map(|_| PIECES[dice(PIECES.len())]).collect();
    let mut pattern = String::new();
    while pattern.len() < length {
        pattern.push_str(pieces[dice(pieces.len())]);
    }
    pattern
}

// One test, so that nothing else allocates while it counts.
#[test]
fn patterns_of_requests_are_refused_or_cheap() {
    assert_eq!(run("(?i)QUICK", false), Ok(1));
    assert_eq!(run("^the", true), Ok(1));
    assert_eq!(run(r"\b\w{3,10}\b", true), Ok(2));
    assert_eq!(run(r"[\s\S]*fox[\s\S]*", true), Ok(1));
    assert_eq!(run("(free money|click here|casino|fox)", true), Ok(1));
    assert_eq!(run("(", false), Err("unclosed group".to_owned()));

    // 54 KB of this took 556 MB and 3.7 s.
    for count in [9_000, 205, 204] {
        let why = run(&r"[^\w]".repeat(count), true).unwrap_err();
        assert!(why.contains("limit"), "{why}");
    }
    for bomb in [
        r"\w".repeat(512),
        r"\PL".repeat(340),
        r"\w{1000}".to_owned(),
        "((((a{50}){50}){50}){50}){50}".to_owned(),
        "((?:a?){999}){999}".to_owned(),
        format!("(?i){}", "[\u{0}-\u{10ffff}]".repeat(130)),
        format!("(?i){}^a{}", "[".repeat(60), "]".repeat(60)),
        format!("(?i)[{}", r"[^a]&&".repeat(50) + "a]"),
        format!("(?i){}", r"\p{Any}".repeat(100)),
        format!("(?i){}", r"\p{gc=any}".repeat(90)),
        format!("(?i:{})", r"[\S]".repeat(200)),
    ] {
        for ignore_case in [false, true] {
            let why = run(&bomb, ignore_case).unwrap_err();
            assert!(why.contains("limit") || why.contains("compiled"), "{bomb}: {why}");
        }
    }
    let mut usable = 0;
    for seed in 0..1_000 {
        usable += usize::from(run(&random(seed), seed % 2 == 0).is_ok());
    }
    assert!(usable > 100, "{usable} of 1,000 random patterns could be used");

    // What is kept of many patterns is bounded.
    let before = NOW.load(Ordering::Relaxed);
    for n in 0..200 {
        assert!(run(&format!(r"\w{{9}}{n}"), false).is_ok());
    }
    let kept = NOW.load(Ordering::Relaxed).saturating_sub(before);
    assert!(kept < KEPT_MAX, "{kept} bytes are kept");

    stopping_ends_the_matching();
}

/// A pattern that takes long for each of many texts ends soon after the flag is set, and gives no rows.
fn stopping_ends_the_matching() {
    let texts: Vec<String> = (0..1_000).map(|n| format!("{n}{}", "ab".repeat(2_000))).collect();
    let rows = titles(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let (program, flag) = (program(false), AtomicBool::new(false));
    let params = [Value::str(r"(?:[ab]*a[ab]){20}[ab]{100}[^0-9ab]")];
    let run = |stop| select(&program, &rows, RunValues::of(&params), &mut Scratch::default(), stop);
    #[expect(clippy::disallowed_methods, reason = "how long it takes says when to stop it")]
    let now = Instant::now;
    let start = now();
    assert_eq!(run(Stop::when(&flag)).unwrap(), []);
    let all = start.elapsed();
    // On a busy machine it may be done before the flag is set.
    let stopped = (0..20).any(|_| {
        flag.store(false, Ordering::Relaxed);
        let begun = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let running = threads.spawn(|| {
                begun.store(true, Ordering::Relaxed);
                run(Stop::when(&flag))
            });
            while !begun.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            let start = now();
            while start.elapsed() < all / 10 {
                std::hint::spin_loop();
            }
            flag.store(true, Ordering::Relaxed);
            match running.join().unwrap() {
                Ok(rows) => !rows.is_empty(),
                Err(error) => error.fault == Fault::Stopped,
            }
        })
    });
    assert!(stopped, "it goes on to the end, which takes {all:?}");
}
