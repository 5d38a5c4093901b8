//! Decodes one expression or predicate into a flat tree, with an explicit stack instead of recursion.
//!
//! Names are resolved on the way. A part that is wrong is reported and stands as null in the tree, which fits everywhere, so
//! that it causes no further complaints.

use crate::check::names::{Access, Names};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::{Fault, Fields, Kind, Reader};
use crate::limits::{EXPRESSION_DEPTH_MAX, EXPRESSION_NODES_MAX};
use crate::wire::Sources;
use crate::wire::cursor::{Cursor, Place};
use rankd_column::expr::{Binary, Compare, Op, Pattern, Tree, Unary};
use rankd_column::{Key, Value};
use std::borrow::Cow;
use std::rc::Rc;

/// The JSON fields that an operation has, by what they hold.
const CHILDREN: &[&str] = &["a", "b", "x", "lo", "hi", "cond", "then", "else", "lhs"];

/// Whether a table holds values or truths; the constant `true` can be either.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Value,
    Predicate,
}

/// A decoded tree, and how each of its nodes is reached.
pub(crate) struct Decoded {
    pub(crate) tree: Tree,
    /// By node: the parent and the field in it.
    parents: Vec<Option<(u32, &'static str)>>,
    /// Where in the artifact the root stands.
    base: String,
    /// Something in it was reported, so what the checks find in it further on may be due to that.
    pub(crate) broken: bool,
}

impl Decoded {
    /// The JSON pointer of a node.
    pub(crate) fn pointer(&self, node: u32) -> String {
        let mut fields = Vec::new();
        let mut at = node;
        while let Some((parent, field)) = self.parents.get(at as usize).copied().flatten() {
            fields.push(field);
            at = parent;
        }
        fields.iter().rev().fold(self.base.clone(), |pointer, field| pointer + "/" + field)
    }
}

/// What an operation's name stands for, and the fields that it takes.
#[derive(Clone, Copy)]
enum Form {
    Constant,
    Key,
    Param,
    Unary(Unary),
    Binary(Binary),
    Clamp,
    Coalesce,
    If,
    And,
    Or,
    Not,
    Compare,
    In,
    Null { negated: bool },
    Regex,
}

const FORMS: &[(&str, Form, &[&str])] = &[
    ("const_number", Form::Constant, &["value"]),
    ("const_string", Form::Constant, &["value"]),
    ("const_bool", Form::Constant, &["value"]),
    ("const_null", Form::Constant, &[]),
    ("key_ref", Form::Key, &["key"]),
    ("param_ref", Form::Param, &["param"]),
    ("add", Form::Binary(Binary::Add), &["a", "b"]),
    ("sub", Form::Binary(Binary::Sub), &["a", "b"]),
    ("mul", Form::Binary(Binary::Mul), &["a", "b"]),
    ("div", Form::Binary(Binary::Div), &["a", "b"]),
    ("mod", Form::Binary(Binary::Mod), &["a", "b"]),
    ("pow", Form::Binary(Binary::Pow), &["a", "b"]),
    ("min", Form::Binary(Binary::Min), &["a", "b"]),
    ("max", Form::Binary(Binary::Max), &["a", "b"]),
    ("neg", Form::Unary(Unary::Neg), &["x"]),
    ("abs", Form::Unary(Unary::Abs), &["x"]),
    ("floor", Form::Unary(Unary::Floor), &["x"]),
    ("ceil", Form::Unary(Unary::Ceil), &["x"]),
    ("round", Form::Unary(Unary::Round), &["x"]),
    ("sqrt", Form::Unary(Unary::Sqrt), &["x"]),
    ("log", Form::Unary(Unary::Log), &["x"]),
    ("log1p", Form::Unary(Unary::Log1p), &["x"]),
    ("exp", Form::Unary(Unary::Exp), &["x"]),
    ("sigmoid", Form::Unary(Unary::Sigmoid), &["x"]),
    ("clamp", Form::Clamp, &["x", "lo", "hi"]),
    ("coalesce", Form::Coalesce, &["a", "b"]),
    ("if", Form::If, &["cond", "then", "else"]),
    ("and", Form::And, &["a", "b"]),
    ("or", Form::Or, &["a", "b"]),
    ("not", Form::Not, &["x"]),
    ("cmp", Form::Compare, &["cmp", "a", "b"]),
    ("in", Form::In, &["lhs", "list"]),
    ("is_null", Form::Null { negated: false }, &["x"]),
    ("not_null", Form::Null { negated: true }, &["x"]),
    ("regex", Form::Regex, &["key", "pattern"]),
];

const COMPARES: &[(&str, Compare)] = &[
    ("==", Compare::Eq),
    ("!=", Compare::Ne),
    ("<", Compare::Lt),
    ("<=", Compare::Le),
    (">", Compare::Gt),
    (">=", Compare::Ge),
];

/// An object that is being read: its fields so far. What was given but wrong is `Some(None)`.
struct Part<'t> {
    /// The field of the parent that this part is.
    field: &'static str,
    place: Rc<Place>,
    op: Option<Cow<'t, str>>,
    children: Vec<(&'static str, u32)>,
    value: Option<Option<Value>>,
    key: Option<Option<Key>>,
    param: Option<Option<u32>>,
    compare: Option<Option<Compare>>,
    list: Option<Vec<Value>>,
    pattern: Option<Option<Pattern>>,
    ignore_case: bool,
    source: Option<u32>,
    /// The fields that were given, but for `op` and `source`, which every part has.
    given: Vec<Cow<'t, str>>,
    /// How many diagnostics there were before this part.
    found_before: usize,
}

impl Part<'_> {
    fn child(&self, field: &str) -> u32 {
        self.children.iter().find(|(name, _)| *name == field).map_or(0, |(_, ix)| *ix)
    }
}

struct Decoder<'n, 'd> {
    names: &'n Names<'n>,
    sources: &'n Sources,
    found: &'d mut Diagnostics,
    tree: Tree,
    parents: Vec<Option<(u32, &'static str)>>,
    /// Operations and list items so far; the root is the first.
    size: usize,
    /// Bytes of texts so far.
    text: usize,
    broken: bool,
    base: &'n str,
}

/// How large an expression is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Size {
    /// Operations and list items.
    pub(crate) nodes: usize,
    /// Bytes of its texts.
    pub(crate) text: usize,
}

/// Decodes the text of one table entry.
pub(crate) fn decode(
    text: &str,
    base: String,
    sort: Sort,
    names: &Names<'_>,
    sources: &Sources,
    found: &mut Diagnostics,
) -> Result<(Decoded, Size), Fault> {
    let (tree, parents) = Default::default();
    let mut decoder = Decoder { names, sources, found, tree, parents, size: 1, text: 0, broken: false, base: &base };
    let root = match decoder.read(text, &base) {
        Err(fault) if fault == Fault::TOLD => decoder.stand_in(),
        other => other?,
    };
    if sort == Sort::Predicate {
        decoder.as_predicate(root);
    }
    let Decoder { tree, parents, broken, size, text, .. } = decoder;
    Ok((Decoded { tree, parents, base, broken }, Size { nodes: size, text }))
}

impl Decoder<'_, '_> {
    fn read(&mut self, text: &str, base: &str) -> Result<u32, Fault> {
        let mut reader = Reader::new(text, usize::MAX);
        let mut open: Vec<(Fields, Part<'_>)> = Vec::new();
        if reader.peek()? != Kind::Object {
            return Ok(self.wrong(Code::WrongJsonType, base, "expected an operation: an object with \"op\""));
        }
        open.push((reader.open_object()?, self.part("", Rc::new(Place::Root(base.to_owned())))));
        while let Some((fields, part)) = open.last_mut() {
            let Some((name, repeated)) = reader.field(fields)? else {
                let Some((_, part)) = open.pop() else { break };
                let (field, found_before, source) = (part.field, part.found_before, part.source);
                let ix = self.finish(part);
                if self.found.list().len() > found_before {
                    self.found.place_since(found_before, source.and_then(|at| self.sources.span(at)).as_ref());
                }
                match open.last_mut() {
                    Some((_, parent)) => parent.children.push((field, ix)),
                    None => return Ok(ix),
                }
                continue;
            };
            if repeated {
                let message = format!("the field {} appears twice", quoted(&name));
                self.wrong(Code::DuplicateField, &format!("{}/{name}", part.place.pointer()), message);
                reader.skip()?;
                continue;
            }
            match CHILDREN.iter().find(|child| **child == name) {
                Some(child) => {
                    part.given.push(name);
                    let place = Rc::new(Place::Below(part.place.clone(), child));
                    if let Some(stand_in) = self.refuse_child(&mut reader, open.len(), &place)? {
                        if let Some((_, part)) = open.last_mut() {
                            part.children.push((child, stand_in));
                        }
                        continue;
                    }
                    open.push((reader.open_object()?, self.part(child, place)));
                }
                None => self.scalar(&mut reader, part, name)?,
            }
        }
        Ok(self.stand_in())
    }

    /// A stand-in for a child that is no object; one that is too deep or one too many ends the reading.
    fn refuse_child(&mut self, reader: &mut Reader<'_>, depth: usize, place: &Place) -> Result<Option<u32>, Fault> {
        let kind = reader.peek()?;
        if kind != Kind::Object {
            let message = format!("expected an operation, not {}", kind.name());
            self.wrong(Code::WrongJsonType, &place.pointer(), message);
        } else if depth >= EXPRESSION_DEPTH_MAX {
            // The pointer of the place itself would be as long as the nesting is deep.
            let message = format!("nested deeper than the limit of {EXPRESSION_DEPTH_MAX}");
            self.wrong(Code::ExpressionTooDeep, self.base, message);
            return Err(Fault::TOLD);
        } else {
            self.grow(1)?;
            return Ok(None);
        }
        reader.skip()?;
        Ok(Some(self.stand_in()))
    }

    /// Counts operations and list items. One too many ends the reading of this expression.
    fn grow(&mut self, by: usize) -> Result<(), Fault> {
        self.size += by;
        if self.size <= EXPRESSION_NODES_MAX {
            return Ok(());
        }
        let message = format!("larger than the limit of {EXPRESSION_NODES_MAX} operations and list items");
        self.wrong(Code::ExpressionTooLarge, self.base, message);
        Err(Fault::TOLD)
    }

    /// Reads a field that is not an operation itself.
    fn scalar<'t>(&mut self, reader: &mut Reader<'t>, part: &mut Part<'t>, name: Cow<'t, str>) -> Result<(), Fault> {
        let raw = reader.raw()?;
        let before = self.found.errors();
        let mut cursor = Cursor::of_field(raw, &part.place, name.clone(), self.found);
        match &*name {
            "op" => part.op = Some(cursor.text()?.unwrap_or_default()),
            "source" => {
                part.source = cursor.int(0, u32::MAX.into())?.map(|at| at as u32);
                if part.source.is_some_and(|at| self.sources.span(at).is_none()) {
                    cursor.report(Code::BadSource, "the sources table has no such span");
                }
            }
            "value" => {
                let value = cursor.scalar()?;
                self.text += text_len(value.as_ref());
                part.value = Some(value);
            }
            "key" => part.key = Some(self.names.key(&mut cursor, Access::Read)?),
            "param" => part.param = Some(self.names.param(&mut cursor)?),
            "cmp" => part.compare = Some(compare(&mut cursor)?),
            "list" => {
                let room = EXPRESSION_NODES_MAX - self.size;
                let mut list = Vec::new();
                if cursor.expect(Kind::Array)? && cursor.has_more_than(room)? {
                    return self.grow(room + 1);
                }
                cursor.array(|cursor, _| {
                    list.extend(cursor.scalar()?);
                    Ok(())
                })?;
                list.shrink_to_fit();
                self.size += list.len();
                self.text += list.iter().map(|item| text_len(Some(item))).sum::<usize>();
                part.list = Some(list);
            }
            "pattern" => {
                let pattern = pattern(&mut cursor, self.names)?;
                if let Some(Pattern::Literal(text)) = &pattern {
                    self.text += text.len();
                }
                part.pattern = Some(pattern);
            }
            "flags" => match cursor.text()?.as_deref() {
                Some("i") => part.ignore_case = true,
                Some("") | None => {}
                Some(_) => cursor.report(Code::ParamOutOfRange, "flags are \"\" or \"i\""),
            },
            // Reported with the operation, which knows its fields.
            _ => {}
        }
        self.broken |= self.found.errors() > before;
        if !matches!(&*name, "op" | "source") {
            part.given.push(name);
        }
        Ok(())
    }

    /// Closes an object: adds its operation to the tree, or a stand-in where something is wrong with it.
    fn finish(&mut self, mut part: Part<'_>) -> u32 {
        let Some(op) = part.op.take() else {
            return self.wrong(Code::MissingField, &part.place.pointer(), "the field \"op\" is missing");
        };
        let Some((name, form, required)) = FORMS.iter().find(|(name, ..)| *name == op) else {
            let message = format!("there is no operation {}", quoted(&op));
            let unknown = Diagnostic::new(Code::UnknownOperation, format!("{}/op", part.place.pointer()), message);
            let known = FORMS.iter().map(|(name, ..)| *name);
            return self.tell(unknown.nearest(&op, known));
        };
        let mut complete = true;
        for field in part.given.iter().filter(|field| !required.contains(&&***field)) {
            let also = (*name == "regex" && field == "flags") || (*name == "const_null" && field == "value");
            if !also {
                complete = false;
                let message = format!("{name} has no field {}", quoted(field));
                let pointer = format!("{}/{field}", part.place.pointer());
                let unknown = Diagnostic::new(Code::UnknownField, pointer, message);
                self.tell(unknown.nearest(field, required.iter().copied()));
            }
        }
        for field in required.iter().filter(|field| part.given.iter().all(|given| given != **field)) {
            complete = false;
            let message = format!("{name} needs the field {field:?}");
            self.wrong(Code::MissingField, &part.place.pointer(), message);
        }
        let op = if complete { self.operation(*form, name, &mut part) } else { None };
        let Some(op) = op else {
            self.broken = true;
            return self.stand_in();
        };
        let ix = self.push(op, part.source);
        for (field, child) in part.children {
            self.parents[child as usize] = Some((ix, field));
        }
        ix
    }

    /// The operation of a part whose fields are all there; `None` where one of them was wrong.
    fn operation(&mut self, form: Form, name: &str, part: &mut Part<'_>) -> Option<Op> {
        Some(match form {
            Form::Constant => match (name, part.value.take().unwrap_or(Some(Value::Null))?) {
                ("const_number", value @ (Value::Int(_) | Value::Float(_)))
                | ("const_string", value @ Value::Str(_))
                | ("const_bool", value @ Value::Bool(_))
                | ("const_null", value @ Value::Null) => Op::Const(value),
                (_, value) => {
                    let message = format!("{name} cannot have the value {value}");
                    self.wrong(Code::WrongJsonType, &format!("{}/value", part.place.pointer()), message);
                    return None;
                }
            },
            Form::Key => Op::Key(part.key??),
            Form::Param => Op::Param(part.param??),
            Form::Unary(op) => Op::Unary(op, part.child("x")),
            Form::Binary(op) => Op::Binary(op, part.child("a"), part.child("b")),
            Form::Clamp => Op::Clamp { x: part.child("x"), lo: part.child("lo"), hi: part.child("hi") },
            Form::Coalesce => Op::Coalesce(part.child("a"), part.child("b")),
            Form::If => {
                let cond = self.as_predicate(part.child("cond"));
                Op::If { cond, then: part.child("then"), other: part.child("else") }
            }
            Form::And => Op::And(self.as_predicate(part.child("a")), self.as_predicate(part.child("b"))),
            Form::Or => Op::Or(self.as_predicate(part.child("a")), self.as_predicate(part.child("b"))),
            Form::Not => Op::Not(self.as_predicate(part.child("x"))),
            Form::Compare => self.comparison(part.compare??, part.child("a"), part.child("b")),
            Form::In => Op::In(part.child("lhs"), part.list.take()?),
            Form::Null { negated } => Op::Null { x: part.child("x"), negated },
            Form::Regex => Op::Match { key: part.key??, pattern: part.pattern.take()??, ignore_case: part.ignore_case },
        })
    }

    /// `== null` and `!= null` ask whether a value is there; all other comparisons with null are false.
    fn comparison(&self, compare: Compare, a: u32, b: u32) -> Op {
        let is_null = |ix| *self.tree.op(ix) == Op::Const(Value::Null);
        let negated = compare == Compare::Ne;
        match compare {
            Compare::Eq | Compare::Ne if is_null(b) => Op::Null { x: a, negated },
            Compare::Eq | Compare::Ne if is_null(a) => Op::Null { x: b, negated },
            _ => Op::Compare(compare, a, b),
        }
    }

    /// Where a truth belongs, the constants true and false are truths; and a stand-in must not be complained about.
    fn as_predicate(&mut self, ix: u32) -> u32 {
        match *self.tree.op(ix) {
            Op::Const(Value::Bool(value)) => self.tree.replace(ix, Op::Truth(value)),
            Op::Const(Value::Null) if self.broken => self.tree.replace(ix, Op::Truth(false)),
            _ => {}
        }
        ix
    }

    fn push(&mut self, op: Op, source: Option<u32>) -> u32 {
        self.parents.push(None);
        self.tree.push(op, source)
    }

    fn stand_in(&mut self) -> u32 {
        self.push(Op::Const(Value::Null), None)
    }

    fn part<'t>(&self, field: &'static str, place: Rc<Place>) -> Part<'t> {
        Part {
            field,
            place,
            op: None,
            children: Vec::new(),
            value: None,
            key: None,
            param: None,
            compare: None,
            list: None,
            pattern: None,
            ignore_case: false,
            source: None,
            given: Vec::new(),
            found_before: self.found.list().len(),
        }
    }

    fn wrong(&mut self, code: Code, pointer: &str, message: impl Into<String>) -> u32 {
        self.tell(Diagnostic::new(code, pointer, message))
    }

    fn tell(&mut self, diagnostic: Diagnostic) -> u32 {
        self.broken = true;
        self.found.push(diagnostic);
        self.stand_in()
    }
}

fn text_len(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Str(text)) => text.len(),
        _ => 0,
    }
}

fn compare(cursor: &mut Cursor<'_, '_>) -> Result<Option<Compare>, Fault> {
    let Some(text) = cursor.text()? else { return Ok(None) };
    let known = COMPARES.iter().find(|(name, _)| *name == text).map(|(_, compare)| *compare);
    if known.is_none() {
        let message = format!("{} is not a comparison", quoted(&text));
        let wrong = Diagnostic::new(Code::UnknownOperation, cursor.pointer(), message);
        cursor.report_at(wrong.nearest(&text, COMPARES.iter().map(|(name, _)| *name)));
    }
    Ok(known)
}

fn pattern(cursor: &mut Cursor<'_, '_>, names: &Names<'_>) -> Result<Option<Pattern>, Fault> {
    let (mut pattern, mut given) = (None, 0);
    let before = cursor.errors();
    cursor.object(&["literal", "param"], |cursor, field| {
        given += 1;
        pattern = match field {
            "literal" => cursor.text()?.map(|text| Pattern::Literal(text.into_owned())),
            _ => names.text_param(cursor)?.map(Pattern::Param),
        };
        Ok(())
    })?;
    if given != 1 && cursor.errors() == before {
        cursor.report(Code::MissingField, "a pattern is {\"literal\": text} or {\"param\": name}, one of the two");
        return Ok(None);
    }
    Ok(pattern)
}
