//! Parsing and rewriting never panics and never overflows the stack, whatever the text.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    // Whether it is TypeScript does not matter.
    let _ = dslc::rewritten(text);
});
