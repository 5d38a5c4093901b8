//! What it takes to compile a regular expression, known before it is compiled.
//!
//! The regex crate bounds the program that a pattern becomes. What it makes of the pattern before that is not bounded: each
//! class is spelled out as ranges first, and where case is ignored its characters are looked at one by one. So the syntax
//! tree, which is cheap to make, is walked beforehand. The figures are measured, and rounded up.

use crate::expr::pattern::{BadPattern, Bounds, NESTING_MAX};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, Ast, ClassPerl, ClassSetBinaryOp, ClassSetItem, ClassUnicode, ClassUnicodeKind, Flag, Flags, GroupKind,
    RepetitionKind, RepetitionRange, Visitor,
};

/// The estimated bytes that it takes to compile a pattern, or why it cannot be used.
pub(super) fn estimate(pattern: &str, ignore_case: bool, bounds: &Bounds) -> Result<usize, BadPattern> {
    if pattern.len() > bounds.text {
        return Err(BadPattern::TooLong { bytes: pattern.len(), max: bounds.text });
    }
    let ast = ParserBuilder::new().nest_limit(NESTING_MAX).build().parse(pattern).map_err(|error| syntax(&error))?;
    let estimate = match ast::visit(&ast, Estimate::new(ignore_case)) {
        Ok(estimate) => usize::try_from(estimate).unwrap_or(usize::MAX),
        Err(never) => match never {},
    };
    if estimate > bounds.estimate {
        return Err(BadPattern::TooCostly { estimate, max: bounds.estimate });
    }
    Ok(estimate)
}

/// What is wrong, without the drawing of the place.
pub(super) fn syntax(error: &impl ToString) -> BadPattern {
    let text = error.to_string();
    BadPattern::Syntax(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
}

/// Any part of a pattern.
const PART: u64 = 64;
/// A pattern without parts: compiling `a` takes 50 microseconds.
const PATTERN: u64 = 8 << 10;
/// `.`, and a class that is all but a few characters.
const DOT: u64 = 512;
/// One character beyond ASCII, and a range of them.
const CHARACTER: u64 = 256;
const RANGE: u64 = 1 << 10;
/// `\w`, `\p{Greek}` and their kind: hundreds of ranges, once as ranges and once for each repeat as a program.
const NAMED: u64 = 32 << 10;
/// How many characters of such a class are looked at, one by one, where case is ignored.
const NAMED_WIDTH: u64 = 64 << 10;
/// All characters there are.
const EVERYTHING: u64 = 0x11_0000;

/// Adds up what a pattern takes, part by part.
struct Estimate {
    /// Whether case is ignored anywhere in the pattern.
    ignore_case: bool,
    total: u64,
    /// Characters that are looked at one by one where case is ignored.
    folded: u64,
    /// How often what is visited now is repeated in the program: the product for each repetition that is open.
    repeats: Vec<u64>,
    /// The characters in each class that is open, at most.
    classes: Vec<u64>,
}

impl Estimate {
    fn new(ignore_case: bool) -> Estimate {
        Estimate { ignore_case, total: PATTERN, folded: 0, repeats: Vec::new(), classes: Vec::new() }
    }

    /// A part of the program.
    fn compiled(&mut self, bytes: u64) {
        let repeats = self.repeats.last().copied().unwrap_or(1);
        self.total = self.total.saturating_add(bytes.saturating_mul(repeats));
    }

    /// A class with a name of its own, which is spelled out first.
    fn named(&mut self) {
        self.total = self.total.saturating_add(NAMED);
        self.compiled(NAMED);
    }

    fn unicode(&mut self, class: &ClassUnicode) -> u64 {
        self.named();
        let width = unicode_width(class);
        self.folded = self.folded.saturating_add(width);
        if class.is_negated() { EVERYTHING } else { width }
    }

    fn perl(&mut self, class: &ClassPerl) -> u64 {
        self.named();
        if class.negated { EVERYTHING } else { NAMED_WIDTH }
    }

    fn flags(&mut self, flags: &Flags) {
        self.ignore_case |= flags.flag_state(Flag::CaseInsensitive) == Some(true);
    }

    /// Adds this number of characters to the class that is open.
    fn holds(&mut self, width: u64) {
        if let Some(class) = self.classes.last_mut() {
            *class = class.saturating_add(width).min(EVERYTHING);
        }
    }

    /// A class is complete; gives what it adds to the one around it.
    fn close(&mut self, negated: bool) -> u64 {
        let width = self.classes.pop().unwrap_or(0);
        self.folded = self.folded.saturating_add(width);
        if negated {
            self.compiled(DOT);
        }
        if negated { EVERYTHING } else { width }
    }
}

impl Visitor for Estimate {
    type Output = u64;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<u64, Self::Err> {
        // Looking at two characters takes as long as a byte of the rest.
        let folded = if self.ignore_case { self.folded / 2 } else { 0 };
        Ok(self.total.saturating_add(folded))
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        self.compiled(PART);
        match ast {
            Ast::Repetition(repetition) => {
                let times = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
                    RepetitionKind::Range(RepetitionRange::Exactly(times)) => *times,
                    RepetitionKind::Range(RepetitionRange::AtLeast(times)) => times.saturating_add(1),
                    RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
                };
                let around = self.repeats.last().copied().unwrap_or(1);
                self.repeats.push(around.saturating_mul(u64::from(times).max(1)));
            }
            Ast::Dot(_) => self.compiled(DOT),
            Ast::Literal(literal) if !literal.c.is_ascii() => self.compiled(CHARACTER),
            Ast::ClassUnicode(class) => {
                self.unicode(class);
            }
            Ast::ClassPerl(class) => {
                self.perl(class);
            }
            Ast::ClassBracketed(_) => self.classes.push(0),
            Ast::Flags(set) => self.flags(&set.flags),
            Ast::Group(group) => {
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags(flags);
                }
            }
            Ast::Empty(_) | Ast::Literal(_) | Ast::Assertion(_) | Ast::Alternation(_) | Ast::Concat(_) => {}
        }
        Ok(())
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Repetition(_) => {
                self.repeats.pop();
            }
            Ast::ClassBracketed(class) => {
                self.close(class.negated);
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        self.compiled(PART);
        let width = match item {
            ClassSetItem::Empty(_) | ClassSetItem::Union(_) => 0,
            ClassSetItem::Literal(literal) => {
                self.compiled(if literal.c.is_ascii() { 0 } else { CHARACTER });
                1
            }
            ClassSetItem::Range(range) => {
                self.compiled(if range.end.c.is_ascii() { 0 } else { RANGE });
                u64::from(u32::from(range.end.c).saturating_sub(u32::from(range.start.c))) + 1
            }
            ClassSetItem::Ascii(class) => {
                self.compiled(RANGE);
                if class.negated { EVERYTHING } else { 0x80 }
            }
            ClassSetItem::Unicode(class) => self.unicode(class),
            ClassSetItem::Perl(class) => self.perl(class),
            ClassSetItem::Bracketed(_) => {
                self.classes.push(0);
                0
            }
        };
        self.holds(width);
        Ok(())
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        if let ClassSetItem::Bracketed(class) = item {
            let width = self.close(class.negated);
            self.holds(width);
        }
        Ok(())
    }

    /// Both sides are looked at before they are put together, and the outcome is again.
    fn visit_class_set_binary_op_post(&mut self, _: &ClassSetBinaryOp) -> Result<(), Self::Err> {
        let width = self.classes.last().copied().unwrap_or(0);
        self.folded = self.folded.saturating_add(2 * width);
        Ok(())
    }
}

/// The characters that are looked at one by one in a class `\p{…}` where case is ignored. Of all names only `any` has a range
/// that is large and has letters in it.
fn unicode_width(class: &ClassUnicode) -> u64 {
    let name = match &class.kind {
        ClassUnicodeKind::OneLetter(_) => return NAMED_WIDTH,
        ClassUnicodeKind::Named(name) => name,
        ClassUnicodeKind::NamedValue { value, .. } => value,
    };
    let plain = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect::<String>();
    if plain.ends_with("any") { EVERYTHING } else { NAMED_WIDTH }
}
