//! Parsing and rewriting never panics and never overflows the stack: every kept input, and thousands of mutations of them.
//!
//! The same target as `fuzz/fuzz_targets/rewrite.rs`, without nightly. `DSLC_FUZZ_SECONDS=600 cargo test -p dslc --test
//! rewrite_any_text` goes on for ten minutes; the text at hand is then kept in the temporary folder, so that a crash leaves it.

#![expect(clippy::disallowed_methods, reason = "a test reads files, knows the time and tells what it did")]

use std::path::Path;
use std::time::{Duration, Instant};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rewrite");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus is there").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("it can be read")).collect()
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "`",
    "${",
    "=>",
    "?",
    ":",
    "??",
    "&&",
    "||",
    "!",
    "-",
    "+",
    "**",
    "/",
    "*/",
    "/*",
    "//",
    "\n",
    ";",
    ",",
    "\"",
    "'",
    "\\",
    "<",
    ">",
    "=",
    "+=",
    "&&=",
    "...",
    "?.",
    "#",
    "@",
    "async ",
    "await ",
    "yield ",
    "function*(){}",
    "class A{",
    "import(",
    "export default ",
    "enum E{A=1}",
    "as any",
    "satisfies X",
    "Key.id",
    "$rankd",
    "if(",
    "for(;;)",
    "switch(x){case ",
    "new ",
    "typeof ",
    "super.",
    "this",
    "null",
    "0n",
    "1e999",
    "\u{2028}",
    "é",
    "𝄞",
    "\0",
    "<T>",
    "keyof ",
    "infer U",
    "declare ",
];

fn mutate(dice: &mut Dice, corpus: &[Vec<u8>]) -> String {
    let mut text = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(text.len() + 1);
        match dice.below(6) {
            0 if at < text.len() => text[at] = dice.below(256) as u8,
            1 => {
                let end = (at + dice.below(40)).min(text.len());
                text.drain(at..end);
            }
            2 => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len());
                let part = other[from..(from + dice.below(200)).min(other.len())].to_vec();
                text.splice(at..at, part);
            }
            3 => {
                let often = if dice.below(20) == 0 { 3000 } else { 3 };
                let piece = PIECES[dice.below(PIECES.len())].repeat(1 + dice.below(often));
                text.splice(at..at, piece.into_bytes());
            }
            4 => {
                let end = (at + dice.below(60)).min(text.len());
                let part = text[at..end].repeat(1 + dice.below(4));
                text.splice(at..at, part);
            }
            _ => {
                text.splice(at..at, PIECES[dice.below(PIECES.len())].bytes());
            }
        }
    }
    text.truncate(64 << 10);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn no_text_makes_the_compiler_fail() {
    let corpus = corpus();
    for text in &corpus {
        let _ = dslc::rewritten(&String::from_utf8_lossy(text));
    }
    let seconds = std::env::var_os("DSLC_FUZZ_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    let (long, time) = (seconds.is_some(), Duration::from_secs(seconds.unwrap_or(3)));
    let seed = if long { Instant::now().elapsed().subsec_nanos() as u64 ^ u64::from(std::process::id()) } else { 0 };
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ seed);
    let kept = std::env::temp_dir().join("dslc-fuzz-input.ts");
    let (began, mut texts, mut good) = (Instant::now(), 0_u64, 0_u64);
    while began.elapsed() < time && (long || texts < 3000) {
        let text = mutate(&mut dice, &corpus);
        if long {
            std::fs::write(&kept, &text).expect("the temporary folder can be written");
        }
        good += u64::from(dslc::rewritten(&text).is_ok());
        texts += 1;
    }
    println!("{texts} texts, {good} of them TypeScript");
    assert!(good > 0, "some mutations are still programs");
}
