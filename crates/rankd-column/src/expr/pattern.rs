//! Regular expressions: what they may cost, those of a plan, and those that requests bring, which are kept for a while.
//!
//! Nothing is compiled before [`crate::expr::estimate`] has said what that would take.

use crate::expr::estimate::{self, estimate};
use hashbrown::HashMap;
use regex::{Regex, RegexBuilder};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What a pattern may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of its text.
    pub text: usize,
    /// What it is estimated to take to compile it, in bytes; a KiB takes about 14 microseconds.
    pub estimate: usize,
    /// Bytes of the compiled program, of which there are two.
    pub program: usize,
    /// Bytes of the cache that a thread needs to match it.
    pub cache: usize,
}

/// A pattern that comes with a request.
pub const REQUEST: Bounds = Bounds { text: 1 << 10, estimate: 2 << 20, program: 512 << 10, cache: 256 << 10 };

/// A pattern in a plan.
pub const LITERAL: Bounds = Bounds { text: 8 << 10, estimate: LITERALS_MAX, program: 1 << 20, cache: 1 << 20 };

/// What all patterns of a plan together may be estimated at.
pub const LITERALS_MAX: usize = 4 << 20;

/// How deep groups and classes nest.
pub const NESTING_MAX: u32 = 64;

/// How many patterns of requests are kept, and what they may be estimated at together.
const KEPT_MAX: usize = 32;
const KEPT_ESTIMATE_MAX: usize = 8 << 20;

/// A compiled pattern, or why it cannot be used. Shared, because a copy has caches of its own, which take time to fill.
type Compilation = Result<Arc<Regex>, BadPattern>;

/// Why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPattern {
    TooLong {
        bytes: usize,
        max: usize,
    },
    /// The parser's message, without its drawing of the place.
    Syntax(String),
    /// Compiling it would take too much memory and time.
    TooCostly {
        estimate: usize,
        max: usize,
    },
    /// What it is compiled to is too large.
    TooLarge {
        max: usize,
    },
}

impl std::error::Error for BadPattern {}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPattern::TooLong { bytes, max } => write!(f, "it has {bytes} bytes, and the limit is {max}"),
            BadPattern::Syntax(what) => f.write_str(what),
            BadPattern::TooCostly { estimate, max } => write!(
                f,
                "compiling it takes about {} KiB, and the limit is {} KiB: classes such as \\w count most, repeats such as \
                 {{100}} multiply, and wide classes that ignore case are slow",
                estimate.div_ceil(1 << 10),
                max >> 10
            ),
            BadPattern::TooLarge { max } => write!(f, "compiled, it needs more than {max} bytes"),
        }
    }
}

/// Compiles a pattern within bounds.
fn compile(pattern: &str, ignore_case: bool, bounds: &Bounds) -> Compilation {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(bounds.program)
        .dfa_size_limit(bounds.cache)
        .nest_limit(NESTING_MAX)
        .build()
        .map(Arc::new)
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(max) => BadPattern::TooLarge { max },
            other => estimate::syntax(&other),
        })
}

/// The patterns in the expressions of one plan: each compiled once, all within one bound.
#[derive(Default)]
pub struct Literals {
    compiled: HashMap<(Box<str>, bool), Compilation>,
    estimate: usize,
}

/// Why a pattern in a plan cannot be used.
pub(super) enum BadLiteral {
    /// Something about it alone.
    Pattern(BadPattern),
    /// All patterns up to this one take too much.
    Together,
}

impl Literals {
    pub(super) fn compile(&mut self, pattern: &str, ignore_case: bool) -> Result<Arc<Regex>, BadLiteral> {
        if self.estimate > LITERALS_MAX {
            return Err(BadLiteral::Together);
        }
        let key = (pattern.into(), ignore_case);
        if let Some(known) = self.compiled.get(&key) {
            return known.clone().map_err(BadLiteral::Pattern);
        }
        let made = match estimate(pattern, ignore_case, &LITERAL) {
            Ok(estimate) => {
                self.estimate += estimate;
                if self.estimate > LITERALS_MAX {
                    return Err(BadLiteral::Together);
                }
                compile(pattern, ignore_case, &LITERAL)
            }
            Err(why) => Err(why),
        };
        self.compiled.insert(key, made.clone());
        made.map_err(BadLiteral::Pattern)
    }
}

/// The patterns that came with requests lately, for all threads.
///
/// Bounded in number and size, the one that was used longest ago makes room. So whatever a caller sends, it costs another
/// caller no more than compiling its pattern again. The lock is not held while a pattern is compiled; a thread that needs the same
/// pattern meanwhile waits for it instead of compiling it, too.
#[derive(Default)]
pub(super) struct Kept {
    patterns: Mutex<Vec<Entry>>,
}

struct Entry {
    pattern: Box<str>,
    ignore_case: bool,
    estimate: usize,
    made: Arc<OnceLock<Compilation>>,
}

impl Kept {
    /// Those of this process.
    pub(super) fn shared() -> &'static Kept {
        static SHARED: Kept = Kept { patterns: Mutex::new(Vec::new()) };
        &SHARED
    }

    /// The compiled pattern, or why it cannot be used.
    pub(super) fn get(&self, pattern: &str, ignore_case: bool) -> Compilation {
        let made = match self.find(pattern, ignore_case) {
            Some(made) => made,
            None => self.add(pattern, ignore_case, estimate(pattern, ignore_case, &REQUEST)?),
        };
        made.get_or_init(|| compile(pattern, ignore_case, &REQUEST)).clone()
    }

    fn find(&self, pattern: &str, ignore_case: bool) -> Option<Arc<OnceLock<Compilation>>> {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        let at = patterns.iter().position(|entry| entry.ignore_case == ignore_case && *entry.pattern == *pattern)?;
        // The last one is the most recently used.
        patterns[at..].rotate_left(1);
        patterns.last().map(|entry| entry.made.clone())
    }

    fn add(&self, pattern: &str, ignore_case: bool, estimate: usize) -> Arc<OnceLock<Compilation>> {
        // Another thread may have added it meanwhile; then it is there twice, until one of them is removed.
        let made = Arc::<OnceLock<Compilation>>::default();
        let entry = Entry { pattern: pattern.into(), ignore_case, estimate, made: made.clone() };
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = estimate + patterns.iter().map(|entry| entry.estimate).sum::<usize>();
        let mut gone = 0;
        while gone < patterns.len() && (patterns.len() - gone >= KEPT_MAX || total > KEPT_ESTIMATE_MAX) {
            total -= patterns[gone].estimate;
            gone += 1;
        }
        let gone: Vec<Entry> = patterns.drain(..gone).collect();
        patterns.push(entry);
        drop(patterns);
        // Freed without the lock.
        drop(gone);
        made
    }
}
