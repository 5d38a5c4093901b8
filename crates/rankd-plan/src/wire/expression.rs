//! Decodes one expression or predicate into a flat tree, with an explicit stack instead of recursion.
//!
//! Which operations there are, and which fields each has, is in the table of `rankd_column::expr::operations`. Names are resolved on
//! the way. A part that is wrong is reported and replaced by null, which fits everywhere, so that it causes no further reports.

use crate::check::names::{Access, Names};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::{Fault, Fields, Kind, Reader};
use crate::limits::{EXPRESSION_DEPTH_MAX, EXPRESSION_NODES_MAX};
use crate::wire::Sources;
use crate::wire::cursor::{Cursor, Place};
use rankd_column::expr::operation::{Form, Holds};
use rankd_column::expr::{Call, Compare, OPERATIONS, Op, Operation, Pattern, Special, Tree};
use rankd_column::{Key, Value};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

/// The fields that operations have, and what each holds. It is the same in every operation that has the field, except that a field
/// may hold a value in one and a predicate in another.
static FIELDS: LazyLock<Vec<(&'static str, Holds)>> = LazyLock::new(|| {
    let mut fields: Vec<(&'static str, Holds)> = Vec::new();
    for field in OPERATIONS.iter().flat_map(|operation| operation.fields) {
        if fields.iter().all(|(known, _)| *known != field.name) {
            fields.push((field.name, field.holds));
        }
    }
    fields
});

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
    /// The key or parameter that has the list.
    list_of: Option<Option<Op>>,
    pattern: Option<Option<Pattern>>,
    ignore_case: bool,
    salt: Option<Option<Arc<str>>>,
    source: Option<u32>,
    /// The fields that were given, without `op` and `source`, which every part has.
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
        Err(fault) if fault == Fault::REPORTED => decoder.stand_in(),
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
            match FIELDS.iter().find(|(known, _)| *known == name) {
                Some((child, holds)) if holds.is_operation() => {
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
                found => self.scalar(&mut reader, part, name, found.map(|(_, holds)| *holds))?,
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
            return Err(Fault::REPORTED);
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
        Err(Fault::REPORTED)
    }

    /// Reads a field that is not an operation itself.
    fn scalar<'t>(
        &mut self,
        reader: &mut Reader<'t>,
        part: &mut Part<'t>,
        name: Cow<'t, str>,
        holds: Option<Holds>,
    ) -> Result<(), Fault> {
        let raw = reader.raw()?;
        let before = self.found.errors();
        let mut cursor = Cursor::of_field(raw, &part.place, name.clone(), self.found);
        match (&*name, holds) {
            ("op", _) => part.op = Some(cursor.text()?.unwrap_or_default()),
            ("source", _) => {
                part.source = cursor.int(0, u32::MAX.into())?.map(|at| at as u32);
                if part.source.is_some_and(|at| self.sources.span(at).is_none()) {
                    cursor.report(Code::BadSource, "the sources table has no such span");
                }
            }
            (_, Some(Holds::Literal)) => {
                let value = cursor.scalar()?;
                self.text += text_len(value.as_ref());
                part.value = Some(value);
            }
            (_, Some(Holds::Key)) => part.key = Some(self.names.key(&mut cursor, Access::Read)?),
            (_, Some(Holds::Param)) => part.param = Some(self.names.param(&mut cursor)?),
            (_, Some(Holds::Comparison)) => part.compare = Some(compare(&mut cursor)?),
            (_, Some(Holds::List)) if cursor.peek()? == Kind::Object => {
                part.list_of = Some(list_of(&mut cursor, self.names)?);
            }
            (_, Some(Holds::List)) => {
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
            (_, Some(Holds::Pattern)) => {
                let pattern = pattern(&mut cursor, self.names)?;
                if let Some(Pattern::Literal(text)) = &pattern {
                    self.text += text.len();
                }
                part.pattern = Some(pattern);
            }
            (_, Some(Holds::Salt)) => {
                let salt = cursor.text()?;
                self.text += salt.as_ref().map_or(0, |salt| salt.len());
                part.salt = Some(salt.map(Into::into));
            }
            (_, Some(Holds::Flags)) => match cursor.text()?.as_deref() {
                Some("i") => part.ignore_case = true,
                Some("") | None => {}
                Some(_) => cursor.report(Code::ParamOutOfRange, "flags are \"\" or \"i\""),
            },
            // Reported with the operation, which knows its fields.
            (_, None) => {}
            // An operation, which the caller reads.
            (_, Some(Holds::Value | Holds::Predicate)) => {}
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
        let Some(operation) = OPERATIONS.iter().find(|operation| operation.name == op) else {
            let message = format!("there is no operation {}", quoted(&op));
            let unknown = Diagnostic::new(Code::UnknownOperation, format!("{}/op", part.place.pointer()), message);
            let known = OPERATIONS.iter().map(|operation| operation.name);
            return self.report(unknown.nearest(&op, known));
        };
        let (name, fields) = (operation.name, operation.fields);
        let mut complete = true;
        for given in part.given.iter().filter(|given| fields.iter().all(|field| field.name != &***given)) {
            complete = false;
            let message = format!("{name} has no field {}", quoted(given));
            let pointer = format!("{}/{given}", part.place.pointer());
            let unknown = Diagnostic::new(Code::UnknownField, pointer, message);
            self.report(unknown.nearest(given, fields.iter().map(|field| field.name)));
        }
        let is_missing = |field: &str| part.given.iter().all(|given| given != field);
        for field in fields.iter().filter(|field| field.required && is_missing(field.name)) {
            complete = false;
            let message = format!("{name} needs the field {:?}", field.name);
            self.wrong(Code::MissingField, &part.place.pointer(), message);
        }
        let op = if complete { self.operation(operation, &mut part) } else { None };
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
    fn operation(&mut self, operation: &Operation, part: &mut Part<'_>) -> Option<Op> {
        for field in operation.fields.iter().filter(|field| field.holds == Holds::Predicate) {
            self.as_predicate(part.child(field.name));
        }
        let child = |field| part.child(field);
        let special = match operation.form {
            Form::Unary(op) => return Some(Op::Unary(op, child("x"))),
            Form::Binary(op) => return Some(Op::Binary(op, child("a"), child("b"))),
            Form::Call(call) => {
                // A call has one or two operands, each an operation, and hashes have a salt.
                let mut operands =
                    operation.fields.iter().filter(|field| field.holds == Holds::Value).map(|field| child(field.name));
                let (a, b) = (operands.next()?, operands.next());
                let salt = match &part.salt {
                    Some(salt) => Some(salt.clone()?),
                    None => None,
                };
                return Some(Op::Call { call, a, b, salt });
            }
            Form::Special(special) => special,
        };
        Some(match special {
            Special::ConstNumber | Special::ConstString | Special::ConstBool | Special::ConstNull => {
                let value = part.value.take().unwrap_or(Some(Value::Null))?;
                return self.constant(special, operation.name, value, part);
            }
            Special::KeyRef => Op::Key(part.key??),
            Special::ParamRef => Op::Param(part.param??),
            Special::NowMs => Op::NowMs,
            Special::UserId => Op::UserId,
            Special::Clamp => Op::Clamp { x: child("x"), lo: child("lo"), hi: child("hi") },
            Special::Coalesce => Op::Coalesce(child("a"), child("b")),
            Special::If => Op::If { cond: child("cond"), then: child("then"), other: child("else") },
            Special::And => Op::And(child("a"), child("b")),
            Special::Or => Op::Or(child("a"), child("b")),
            Special::Not => Op::Not(child("x")),
            Special::Cmp => self.comparison(part.compare??, child("a"), child("b")),
            Special::In => {
                let x = child("lhs");
                match part.list_of.take() {
                    Some(list_of) => {
                        let list = self.push(list_of?, part.source);
                        part.children.push(("list", list));
                        Op::Call { call: Call::Contains, a: list, b: Some(x), salt: None }
                    }
                    None => Op::In(x, part.list.take()?),
                }
            }
            Special::IsNull => Op::Null { x: child("x"), negated: false },
            Special::NotNull => Op::Null { x: child("x"), negated: true },
            Special::Regex => {
                Op::Match { key: part.key??, pattern: part.pattern.take()??, ignore_case: part.ignore_case }
            }
        })
    }

    /// A constant of the type that its operation names.
    fn constant(&mut self, special: Special, name: &str, value: Value, part: &Part<'_>) -> Option<Op> {
        match (special, value) {
            (Special::ConstNumber, value @ (Value::Int(_) | Value::Float(_)))
            | (Special::ConstString, value @ Value::Str(_))
            | (Special::ConstBool, value @ Value::Bool(_))
            | (Special::ConstNull, value @ Value::Null) => Some(Op::Const(value)),
            (_, value) => {
                let message = format!("{name} cannot have the value {value}");
                self.wrong(Code::WrongJsonType, &format!("{}/value", part.place.pointer()), message);
                None
            }
        }
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

    /// Where a truth belongs, the constants true and false are truths; and a stand-in must not be reported.
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
            list_of: None,
            pattern: None,
            ignore_case: false,
            salt: None,
            source: None,
            given: Vec::new(),
            found_before: self.found.list().len(),
        }
    }

    fn wrong(&mut self, code: Code, pointer: &str, message: impl Into<String>) -> u32 {
        self.report(Diagnostic::new(code, pointer, message))
    }

    fn report(&mut self, diagnostic: Diagnostic) -> u32 {
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
    let known = Compare::ALL.into_iter().find(|compare| compare.symbol() == text);
    if known.is_none() {
        let message = format!("{} is not a comparison", quoted(&text));
        let wrong = Diagnostic::new(Code::UnknownOperation, cursor.pointer(), message);
        cursor.report_at(wrong.nearest(&text, Compare::ALL.into_iter().map(Compare::symbol)));
    }
    Ok(known)
}

/// A list that a key or a parameter has.
fn list_of(cursor: &mut Cursor<'_, '_>, names: &Names<'_>) -> Result<Option<Op>, Fault> {
    let (mut list, mut given) = (None, 0);
    let before = cursor.errors();
    cursor.object(&["key", "param"], |cursor, field| {
        given += 1;
        list = match field {
            "key" => names.key(cursor, Access::Read)?.map(Op::Key),
            _ => names.param(cursor)?.map(Op::Param),
        };
        Ok(())
    })?;
    if given != 1 && cursor.errors() == before {
        let message = "a list is [value, …], {\"key\": name} or {\"param\": name}, one of the three";
        cursor.report(Code::MissingField, message);
        return Ok(None);
    }
    Ok(list)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_holds_the_same_in_every_operation() {
        let fields = OPERATIONS.iter().flat_map(|operation| operation.fields);
        for field in fields {
            let (_, holds) = FIELDS.iter().find(|(name, _)| *name == field.name).expect("it is listed");
            assert!(*holds == field.holds || holds.is_operation() && field.holds.is_operation(), "{}", field.name);
            assert!(!matches!(field.name, "op" | "source"), "every operation has these");
        }
    }

    #[test]
    fn no_two_operations_have_one_name() {
        let mut names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
