//! JavaScript's regular expressions in the syntax of the engine that matches them, meaning the same.
//!
//! The two differ in silence: `\d` and `\w` are ASCII in JavaScript, `.` leaves out four line ends, `&&` in a class is two
//! characters. What has no counterpart is refused. A text is read as code points, as JavaScript does with the flag `u`.

/// JavaScript's white space and line ends.
const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
const WORD: &str = "0-9A-Za-z_";
const ANY: &str = r"[^\n\r\u{2028}\u{2029}]";

/// What a pattern has that the engine does not: the words that stand after "has no".
pub(crate) type Missing = &'static str;

/// The pattern in the engine's syntax. `unicode` says whether it has the flag `u`.
pub(crate) fn translated(source: &str, unicode: bool) -> Result<String, Missing> {
    let mut reader = Pattern { rest: source.chars().peekable(), unicode, out: String::new() };
    while let Some(c) = reader.rest.next() {
        reader.term(c)?;
    }
    Ok(reader.out)
}

struct Pattern<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    unicode: bool,
    out: String,
}

/// One part of a class, or of what stands outside of one.
enum Atom {
    Char(char),
    /// The inside of a class.
    Set(String),
}

impl Pattern<'_> {
    fn term(&mut self, c: char) -> Result<(), Missing> {
        match c {
            '.' => self.out.push_str(ANY),
            '[' => self.class()?,
            '(' if self.rest.peek() == Some(&'?') => self.group()?,
            '{' => self.braces(),
            '}' | ']' => self.literal(c),
            '\\' => match self.rest.peek() {
                Some('b') => {
                    self.rest.next();
                    self.out.push_str(r"(?-u:\b)");
                }
                Some('B') => return Err("\\B"),
                Some('k' | '1'..='9') => return Err("references back to a group"),
                _ => match self.escape()? {
                    Atom::Char(c) => self.literal(c),
                    Atom::Set(set) => self.out.push_str(&format!("[{set}]")),
                },
            },
            // What both read alike, and characters that stand for themselves.
            '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' => self.out.push(c),
            _ => self.literal(c),
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&escaped(c));
    }

    /// `(?:` and `(?<name>`; the parenthesis was read.
    fn group(&mut self) -> Result<(), Missing> {
        self.rest.next();
        match self.rest.next() {
            Some(':') => self.out.push_str("(?:"),
            Some('<') if !matches!(self.rest.peek(), Some('=' | '!')) => self.out.push_str("(?<"),
            Some('=' | '!' | '<') => return Err("look-around"),
            _ => return Err("flags inside a pattern"),
        }
        Ok(())
    }

    /// `{2}`, `{2,}` and `{2,3}` repeat; any other brace is a character.
    fn braces(&mut self) {
        let inside: String = self.rest.clone().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        let closed = self.rest.clone().nth(inside.len()) == Some('}');
        let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
        if closed && !least.is_empty() && !most.contains(',') {
            self.out.push_str(&format!("{{{inside}}}"));
            self.rest.nth(inside.len());
        } else {
            self.literal('{');
        }
    }

    /// What follows a backslash, inside a class and outside.
    fn escape(&mut self) -> Result<Atom, Missing> {
        let Some(c) = self.rest.next() else { return Err("an end after a backslash") };
        Ok(match c {
            'd' => Atom::Set("0-9".to_owned()),
            'D' => Atom::Set("^0-9".to_owned()),
            'w' => Atom::Set(WORD.to_owned()),
            'W' => Atom::Set(format!("^{WORD}")),
            's' => Atom::Set(SPACE.to_owned()),
            'S' => Atom::Set(format!("^{SPACE}")),
            'n' => Atom::Char('\n'),
            'r' => Atom::Char('\r'),
            't' => Atom::Char('\t'),
            'v' => Atom::Char('\x0B'),
            'f' => Atom::Char('\x0C'),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => Atom::Char('\0'),
            '0'..='9' => return Err("octal escapes"),
            'c' => match self.rest.next() {
                Some(letter) if letter.is_ascii_alphabetic() => Atom::Char(char::from(letter as u8 % 32)),
                _ => return Err("such control characters"),
            },
            'x' => self.code(2)?,
            'u' if self.rest.peek() == Some(&'{') && self.unicode => {
                self.rest.next();
                let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                code_point(&digits)?
            }
            'u' => self.code(4)?,
            'p' | 'P' if self.unicode => {
                let name: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                Atom::Set(format!("\\{c}{name}}}"))
            }
            _ => Atom::Char(c),
        })
    }

    fn code(&mut self, digits: usize) -> Result<Atom, Missing> {
        let code: String = self.rest.clone().take(digits).collect();
        if code.chars().filter(char::is_ascii_hexdigit).count() < digits {
            return Err("half an escape");
        }
        self.rest.nth(digits - 1);
        code_point(&code)
    }

    /// A class; its bracket was read.
    fn class(&mut self) -> Result<(), Missing> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        self.out.push_str(if negated { "[^" } else { "[" });
        let mut empty = true;
        loop {
            let Some(c) = self.rest.next() else { return Err("a class without an end") };
            if c == ']' {
                break;
            }
            empty = false;
            let low = self.class_atom(c)?;
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
            if !is_range {
                self.push_atom(&low);
                continue;
            }
            self.rest.next();
            let Some(c) = self.rest.next() else { return Err("a class without an end") };
            match (low, self.class_atom(c)?) {
                (Atom::Char(low), Atom::Char(high)) => {
                    self.out.push_str(&format!("{}-{}", escaped(low), escaped(high)));
                }
                _ => return Err("a range from or to a set such as \\d"),
            }
        }
        if empty {
            return Err("classes without a character, such as [] and [^]");
        }
        self.out.push(']');
        Ok(())
    }

    fn class_atom(&mut self, c: char) -> Result<Atom, Missing> {
        match c {
            '\\' if self.rest.next_if_eq(&'b').is_some() => Ok(Atom::Char('\x08')),
            '\\' => self.escape(),
            _ => Ok(Atom::Char(c)),
        }
    }

    fn push_atom(&mut self, atom: &Atom) {
        match atom {
            Atom::Char(c) => self.literal(*c),
            Atom::Set(set) if set.starts_with('^') => self.out.push_str(&format!("[{set}]")),
            Atom::Set(set) => self.out.push_str(set),
        }
    }
}

fn code_point(digits: &str) -> Result<Atom, Missing> {
    let code = u32::from_str_radix(digits, 16).map_err(|_| "half an escape")?;
    char::from_u32(code)
        .map(Atom::Char)
        .ok_or("halves of surrogate pairs: write the character, or \\u{…} with the flag u")
}

/// A character that stands for itself, in a class and outside.
fn escaped(c: char) -> String {
    match c {
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '&' | '-' | '~' | '#' => {
            format!("\\{c}")
        }
        c if c.is_control() => format!("\\x{:02X}", u32::from(c)),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_read_alike_stays() {
        for pattern in ["a+b", "^(free|casino)$", "a{2,3}?", "(?:x|y)*", "(?<n>[a-z]+)", "é😀", "[^abc]"] {
            assert_eq!(translated(pattern, false).as_deref(), Ok(pattern));
        }
    }

    #[test]
    fn what_would_mean_something_else_is_spelt_out() {
        for (javascript, engine) in [
            (r"\bspam\b", r"(?-u:\b)spam(?-u:\b)"),
            (r"\d+", "[0-9]+"),
            (r"[\w.]", r"[0-9A-Za-z_\.]"),
            (r"[^\D]", "[^[^0-9]]"),
            ("a.b", r"a[^\n\r\u{2028}\u{2029}]b"),
            ("[a&&b]", r"[a\&\&b]"),
            ("[[:alpha:]]", r"[\[:alpha:]\]"),
            ("a{,3}", r"a\{,3\}"),
            (r"\a\<", "a<"),
            (r"\/\u00e9\x41", "/éA"),
            (r"[\b]", r"[\x08]"),
        ] {
            assert_eq!(translated(javascript, false).as_deref(), Ok(engine), "{javascript}");
        }
        assert_eq!(translated(r"\u{1f600}\p{Lu}", true).as_deref(), Ok(r"😀[\p{Lu}]"));
    }

    #[test]
    fn what_the_engine_does_not_have_is_refused() {
        for pattern in [r"a(?=b)", r"(?<!a)b", r"(a)\1", r"\B", "[]", "[^]", r"\ud83d", "(?i:a)", r"[\d-z]", r"\k<a>"] {
            assert!(translated(pattern, false).is_err(), "{pattern}");
        }
    }
}
