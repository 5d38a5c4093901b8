//! Looks, before a file is parsed, whether it is nested so deeply that parsing it could exhaust the stack.
//!
//! The parser and everything after it recurse as deeply as the code nests, and code nests by brackets (`((((`), but also without
//! them (`!!!!x`, `a => b => c`, `1 + 1 + 1`). So this counts, at every open bracket, the words and signs since the last `;` or
//! `,`: no code nests deeper than the sum of these. It is no parser: where a regular expression cannot be distinguished from a division,
//! it ignores closing brackets from there on, and so can only overestimate the depth.

/// The largest sum that is let through: what the compiler's stack has room for, many times what people write.
pub(crate) const NESTING_MAX: usize = 3_000;

/// What stood last, as far as a `/` after it depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// After it, `/` divides.
    Value,
    /// After it, `/` begins a regular expression.
    Operator,
    /// It could be either.
    Unsure,
}

/// After these words an expression follows, so a `/` begins a regular expression, and a line end does not end a statement.
const KEYWORDS: &[&str] = &[
    "return",
    "typeof",
    "instanceof",
    "in",
    "new",
    "delete",
    "void",
    "throw",
    "case",
    "do",
    "else",
    "extends",
    "default",
    "export",
    "import",
    "const",
    "let",
    "var",
    "if",
    "while",
    "for",
    "with",
    "switch",
    "function",
    "class",
    "try",
    "finally",
];
/// The same, but only in some places; elsewhere they are names.
const CONTEXTUAL: &[&str] = &[
    "await",
    "yield",
    "of",
    "async",
    "as",
    "is",
    "satisfies",
    "keyof",
    "readonly",
    "unique",
    "infer",
    "asserts",
    "abstract",
    "declare",
    "static",
    "get",
    "set",
    "accessor",
    "type",
    "interface",
    "namespace",
    "module",
    "enum",
    "public",
    "private",
    "protected",
    "override",
    "from",
    "out",
];
/// At the start of a line these go on with what came before.
const CONTINUES: &[&str] =
    &["in", "instanceof", "of", "as", "is", "satisfies", "extends", "else", "while", "catch", "finally"];

/// An open bracket.
struct Open {
    /// Words and signs since the last separator inside it.
    run: usize,
    /// It follows `if`, `while`, `for` or `with`, so what comes after it is not divided.
    heads_statement: bool,
    /// It is `${` of a template.
    in_template: bool,
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    open: Vec<Open>,
    /// The sum of all runs.
    depth: usize,
    last: Last,
    word_heads_statement: bool,
    /// `}` stood last.
    after_brace: bool,
    after_line_end: bool,
    counts_closing: bool,
}

/// The byte at which the nesting becomes too deep, if it does.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut scan = Scan {
        text: text.as_bytes(),
        at: 0,
        open: vec![Open { run: 0, heads_statement: false, in_template: false }],
        depth: 0,
        last: Last::Operator,
        word_heads_statement: false,
        after_brace: false,
        after_line_end: false,
        counts_closing: true,
    };
    while scan.at < scan.text.len() {
        scan.step();
        if scan.depth > NESTING_MAX {
            return Some(scan.at.min(text.len()));
        }
    }
    None
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        let byte = self.peek(0);
        match byte {
            b'\n' => {
                self.after_line_end = true;
                self.at += 1;
            }
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'/' if self.peek(1) == b'/' => self.skip_until(b"\n"),
            b'/' if self.peek(1) == b'*' => {
                self.at += 2;
                self.skip_until(b"*/");
            }
            b'/' => self.slash(),
            b'"' | b'\'' => {
                self.quoted(byte);
                self.token(Last::Value);
            }
            b'`' => {
                self.at += 1;
                self.token(Last::Value);
                self.template();
            }
            b'(' | b'[' | b'{' => self.opening(false),
            b')' | b']' | b'}' => self.closing(byte),
            b';' | b',' => {
                self.separate();
                self.last = Last::Operator;
                self.at += 1;
            }
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'#' | 0x80.. => self.word(),
            _ => {
                let doubled = matches!(byte, b'+' | b'-') && self.peek(1) == byte;
                self.at += if doubled { 2 } else { 1 };
                let unsure = doubled || matches!(byte, b'>' | b'!');
                self.token(if unsure { Last::Unsure } else { Last::Operator });
            }
        }
    }

    fn token(&mut self, last: Last) {
        if let Some(open) = self.open.last_mut() {
            open.run += 1;
            self.depth += 1;
        }
        self.last = last;
        self.word_heads_statement = false;
        self.after_brace = false;
        self.after_line_end = false;
    }

    fn separate(&mut self) {
        if let Some(open) = self.open.last_mut() {
            self.depth -= std::mem::take(&mut open.run);
        }
        self.after_line_end = false;
    }

    fn word(&mut self) {
        let start = self.at;
        while matches!(self.peek(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'#' | 0x80..) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        // Two values with a line end between them are two statements, and so are a block and a word.
        if self.after_line_end && (self.last == Last::Value || self.after_brace) && !CONTINUES.contains(&word) {
            self.separate();
        }
        let last = if KEYWORDS.contains(&word) {
            Last::Operator
        } else if CONTEXTUAL.contains(&word) {
            Last::Unsure
        } else {
            Last::Value
        };
        self.token(last);
        self.word_heads_statement = matches!(word, "if" | "while" | "for" | "with");
    }

    fn opening(&mut self, in_template: bool) {
        let heads_statement = self.word_heads_statement;
        self.token(Last::Operator);
        self.open.push(Open { run: 0, heads_statement, in_template });
        self.at += 1;
    }

    fn closing(&mut self, byte: u8) {
        self.at += 1;
        let closed = (self.counts_closing && self.open.len() > 1).then(|| self.open.pop()).flatten();
        let Some(open) = closed else { return self.token(Last::Unsure) };
        self.depth -= open.run;
        self.after_line_end = false;
        self.after_brace = byte == b'}';
        self.last = match byte {
            b'}' => Last::Unsure,
            _ if open.heads_statement => Last::Operator,
            _ => Last::Value,
        };
        if open.in_template {
            self.template();
        }
    }

    fn slash(&mut self) {
        match self.last {
            Last::Value => {
                self.at += 1;
                self.token(Last::Operator);
            }
            Last::Operator => {
                self.regex();
                self.token(Last::Value);
            }
            Last::Unsure => {
                self.counts_closing = false;
                self.at += 1;
                self.token(Last::Operator);
            }
        }
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                b'\n' => {
                    // It was no regular expression.
                    self.counts_closing = false;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'\n' => {
                    self.counts_closing = false;
                    return;
                }
                byte if byte == quote => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
    }

    /// The text of a template up to its end or its next `${`.
    fn template(&mut self) {
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'`' => {
                    self.at += 1;
                    self.last = Last::Value;
                    return;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.at += 1;
                    return self.opening(true);
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn skip_until(&mut self, end: &[u8]) {
        let rest = &self.text[self.at.min(self.text.len())..];
        let found = rest.windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.text.len(), |found| self.at + found + end.len());
        if end == b"\n" {
            self.after_line_end = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_code_is_seen_however_it_nests() {
        for deep in [
            "(".repeat(5000),
            format!("x = {}1", "!".repeat(5000)),
            format!("x = {}1", "a => ".repeat(2500)),
            format!("x = 1{}", "+1".repeat(2500)),
            format!("x = 1{}", "\n+1".repeat(2500)),
            "if (x) ".repeat(2500),
            format!("/*{}*/{}", ")".repeat(5000), "(".repeat(5000)),
            format!("x = \"{}\" + {}", ")".repeat(5000), "(".repeat(5000)),
            format!("x = y! /{}/ {}", ")".repeat(10), "() (".repeat(3000)),
            format!("type X = {}Y", "keyof\n".repeat(5000)),
            format!("x = {}", "`${".repeat(3000)),
        ] {
            assert!(too_deep(&deep).is_some(), "{}", &deep[..40]);
        }
    }

    #[test]
    fn long_code_is_not_deep() {
        for long in [
            "const a = (1 + 2) / 3;\n".repeat(5000),
            "const a = f(1)\n".repeat(5000),
            "if (a) { b(); } else { c(\"(((\"); }\n".repeat(800),
            format!("x = [{}]", "1,".repeat(9000)),
            "const re = /[(/]/.test(\"x\"); // (((\n".repeat(5000),
            "const t = `(${a})(`;\n".repeat(5000),
        ] {
            assert_eq!(too_deep(&long), None, "{}", &long[..40]);
        }
    }
}
