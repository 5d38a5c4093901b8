//! The meaning of expressions and predicates on one row, by plain recursion over boxed terms.
//!
//! Written from the rules and not from the crate: an operation that is not evaluated cannot fail, so an overflow is an
//! error exactly where `?` meets one. Nothing here is fast. Only the functions of numbers are those of the table of operations;
//! `scalars` defines them a second time.

use crate::table::{KEY_TYPES, NOW_MS, PARAM_TYPES, USER_ID, World};
use rankd_column::expr::operation::{CallResult, Gives, Meaning};
use rankd_column::expr::tree::Ix;
use rankd_column::expr::{Binary, Call, Compare, Op, Pattern, Tree, Unary};
use rankd_column::{Key, List, Type, Value};
use regex::RegexBuilder;
use std::cmp::Ordering;

/// An expression or a predicate.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Const(Value),
    Key(u32),
    Param(u32),
    NowMs,
    UserId,
    Call(Call, Vec<Term>, Option<&'static str>),
    Unary(Unary, Box<Term>),
    Binary(Binary, Box<(Term, Term)>),
    Clamp(Box<(Term, Term, Term)>),
    Coalesce(Box<(Term, Term)>),
    If(Box<(Term, Term, Term)>),
    Truth(bool),
    And(Box<(Term, Term)>),
    Or(Box<(Term, Term)>),
    Not(Box<Term>),
    Compare(Compare, Box<(Term, Term)>),
    In(Box<Term>, Vec<Value>),
    Null(Box<Term>, bool),
    Match { key: u32, pattern: Pattern, ignore_case: bool },
}

/// An int operation left the range of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Overflow;

impl Term {
    pub(crate) fn children(&self) -> Vec<&Term> {
        match self {
            Term::Const(_) | Term::Key(_) | Term::Param(_) | Term::NowMs | Term::UserId => vec![],
            Term::Truth(_) | Term::Match { .. } => vec![],
            Term::Call(_, operands, _) => operands.iter().collect(),
            Term::Unary(_, x) | Term::Not(x) | Term::In(x, _) | Term::Null(x, _) => vec![x],
            Term::Binary(_, ab) | Term::Coalesce(ab) | Term::And(ab) | Term::Or(ab) | Term::Compare(_, ab) => {
                vec![&ab.0, &ab.1]
            }
            Term::Clamp(abc) | Term::If(abc) => vec![&abc.0, &abc.1, &abc.2],
        }
    }

    /// The type of a value term; `None` where it can only be null.
    pub(crate) fn type_of(&self) -> Option<Type> {
        let meet =
            |types: Vec<Option<Type>>| types.into_iter().flatten().reduce(|a, b| if a == b { a } else { Type::Float });
        match self {
            Term::Const(value) => value.type_of(),
            Term::Key(key) => Some(KEY_TYPES[*key as usize]),
            Term::Param(param) => Some(PARAM_TYPES[*param as usize]),
            Term::NowMs | Term::UserId => Some(Type::Int),
            Term::Call(call, operands, _) => match call.gives() {
                _ if operands.iter().any(|operand| operand.type_of().is_none()) => None,
                Gives::Int => Some(Type::Int),
                Gives::Float => Some(Type::Float),
                Gives::Text => Some(Type::Str),
                Gives::Element => match operands[0].type_of() {
                    Some(Type::List(element)) => Some(element.type_of()),
                    other => panic!("{call:?} of {other:?}"),
                },
                Gives::Truth => None,
            },
            Term::If(parts) => meet(vec![parts.1.type_of(), parts.2.type_of()]),
            _ => {
                let met = meet(self.children().iter().map(|child| child.type_of()).collect());
                if self.keeps_ints() { met } else { met.map(|_| Type::Float) }
            }
        }
    }

    fn keeps_ints(&self) -> bool {
        match self {
            Term::Unary(op, _) => op.on_ints().is_some(),
            Term::Binary(op, _) => op.on_ints().is_some(),
            _ => true,
        }
    }

    /// Whether this is an operation in which a number can go wrong, rather than one that hands a value on.
    pub(crate) fn is_arithmetic(&self) -> bool {
        matches!(self, Term::Unary(..) | Term::Binary(..) | Term::Clamp(_))
            || matches!(self, Term::Call(call, ..) if call.gives() != Gives::Truth)
    }

    /// The value on one row. A predicate is a bool and never null.
    pub(crate) fn on(&self, row: usize, world: &World) -> Result<Value, Overflow> {
        let at = |term: &Term| term.on(row, world);
        Ok(match self {
            Term::Const(value) => value.clone(),
            Term::Key(key) => world.table.value(Key(*key), row),
            Term::Param(param) => world.param(*param),
            Term::NowMs => Value::Int(NOW_MS),
            Term::UserId => Value::Int(USER_ID),
            // What can only be null has nothing in it to look at.
            _ if self.is_value() && self.type_of().is_none() => Value::Null,
            Term::Call(of, operands, salt) => {
                call(*of, &operands.iter().map(at).collect::<Result<Vec<_>, _>>()?, salt.unwrap_or_default())?
            }
            Term::Unary(op, x) => match (at(x)?, self.type_of()) {
                (Value::Null, _) => Value::Null,
                (Value::Int(x), Some(Type::Int)) => Value::Int(int(op.on_ints().unwrap().int(x))?),
                (x, _) => Value::Float(op.float(float(&x))),
            },
            Term::Binary(op, ab) => self.arithmetic(*op, at(&ab.0)?, at(&ab.1)?)?,
            Term::Clamp(parts) => {
                let (x, lo, hi) = (at(&parts.0)?, at(&parts.1)?, at(&parts.2)?);
                self.arithmetic(Binary::Min, self.arithmetic(Binary::Max, x, lo)?, hi)?
            }
            Term::Coalesce(ab) => match at(&ab.0)? {
                Value::Null => self.branch(at(&ab.1)?),
                a => self.branch(a),
            },
            Term::If(parts) => self.branch(if parts.0.holds(row, world)? { at(&parts.1)? } else { at(&parts.2)? }),
            Term::Truth(value) => Value::Bool(*value),
            Term::And(ab) => Value::Bool(ab.0.holds(row, world)? && ab.1.holds(row, world)?),
            Term::Or(ab) => Value::Bool(ab.0.holds(row, world)? || ab.1.holds(row, world)?),
            Term::Not(x) => Value::Bool(!x.holds(row, world)?),
            Term::Compare(op, ab) => Value::Bool(compare(*op, &at(&ab.0)?, &at(&ab.1)?)),
            Term::In(x, list) => {
                let x = at(x)?;
                Value::Bool(list.iter().any(|item| compare(Compare::Eq, &x, item)))
            }
            Term::Null(x, negated) => Value::Bool((at(x)? == Value::Null) != *negated),
            Term::Match { key, pattern, ignore_case } => {
                let pattern = match pattern {
                    Pattern::Literal(pattern) => Value::str(pattern),
                    Pattern::Param(param) => world.param(*param),
                };
                Value::Bool(match (world.table.value(Key(*key), row), pattern) {
                    (Value::Str(text), Value::Str(pattern)) => matches(&pattern, *ignore_case, &text),
                    _ => false,
                })
            }
        })
    }

    /// The truth of a predicate on one row.
    pub(crate) fn holds(&self, row: usize, world: &World) -> Result<bool, Overflow> {
        Ok(self.on(row, world)? == Value::Bool(true))
    }

    fn is_value(&self) -> bool {
        self.is_arithmetic()
            || matches!(self, Term::Const(_) | Term::Key(_) | Term::Param(_) | Term::Coalesce(_) | Term::If(_))
    }

    fn arithmetic(&self, op: Binary, a: Value, b: Value) -> Result<Value, Overflow> {
        Ok(match (a, b, self.type_of()) {
            (Value::Null, _, _) | (_, Value::Null, _) => Value::Null,
            (Value::Int(a), Value::Int(b), Some(Type::Int)) => Value::Int(int(op.on_ints().unwrap().int(a, b))?),
            (a, b, _) => Value::Float(op.float(float(&a), float(&b))),
        })
    }

    /// An int that stands where the other branch is a float is that float.
    fn branch(&self, value: Value) -> Value {
        match value {
            Value::Int(v) if self.type_of() == Some(Type::Float) => Value::Float(v as f64),
            value => value,
        }
    }

    /// The same as the crate's flat tree, and the term behind each of its nodes. A node's source is its position times ten.
    pub(crate) fn flatten(&self) -> (Tree, Vec<&Term>) {
        let (mut tree, mut terms) = (Tree::new(), Vec::new());
        self.push(&mut tree, &mut terms);
        (tree, terms)
    }

    fn push<'t>(&'t self, tree: &mut Tree, terms: &mut Vec<&'t Term>) -> Ix {
        let below: Vec<Ix> = self.children().into_iter().map(|child| child.push(tree, terms)).collect();
        let op = match self {
            Term::Const(value) => Op::Const(value.clone()),
            Term::Key(key) => Op::Key(Key(*key)),
            Term::Param(param) => Op::Param(*param),
            Term::NowMs => Op::NowMs,
            Term::UserId => Op::UserId,
            Term::Call(call, _, salt) => {
                Op::Call { call: *call, a: below[0], b: below.get(1).copied(), salt: salt.map(Into::into) }
            }
            Term::Unary(op, _) => Op::Unary(*op, below[0]),
            Term::Binary(op, _) => Op::Binary(*op, below[0], below[1]),
            Term::Clamp(_) => Op::Clamp { x: below[0], lo: below[1], hi: below[2] },
            Term::Coalesce(_) => Op::Coalesce(below[0], below[1]),
            Term::If(_) => Op::If { cond: below[0], then: below[1], other: below[2] },
            Term::Truth(value) => Op::Truth(*value),
            Term::And(_) => Op::And(below[0], below[1]),
            Term::Or(_) => Op::Or(below[0], below[1]),
            Term::Not(_) => Op::Not(below[0]),
            Term::Compare(op, _) => Op::Compare(*op, below[0], below[1]),
            Term::In(_, list) => Op::In(below[0], list.clone()),
            Term::Null(_, negated) => Op::Null { x: below[0], negated: *negated },
            Term::Match { key, pattern, ignore_case } => {
                Op::Match { key: Key(*key), pattern: pattern.clone(), ignore_case: *ignore_case }
            }
        };
        terms.push(self);
        tree.push(op, Some(tree.nodes().len() as u32 * 10))
    }
}

/// A function of values of any type.
fn call(call: Call, operands: &[Value], salt: &str) -> Result<Value, Overflow> {
    if operands.contains(&Value::Null) {
        return Ok(if call.gives() == Gives::Truth { Value::Bool(false) } else { Value::Null });
    }
    let text = |at: usize| match &operands[at] {
        Value::Str(text) => text.to_string(),
        Value::Int(v) => v.to_string(),
        other => panic!("{call:?} of {other}"),
    };
    Ok(match call {
        Call::Contains if matches!(operands[0], Value::List(_)) => {
            Value::Bool(elements(&operands[0]).iter().any(|element| compare(Compare::Eq, element, &operands[1])))
        }
        Call::Size => Value::Int(elements(&operands[0]).len() as i64),
        Call::At => match operands[1] {
            Value::Int(at @ 0..) => elements(&operands[0]).get(at as usize).cloned().unwrap_or(Value::Null),
            _ => Value::Null,
        },
        Call::Overlap => {
            let other = elements(&operands[1]);
            let mut counted: Vec<Value> = Vec::new();
            for element in elements(&operands[0]) {
                let equals = |x: &Value| compare(Compare::Eq, x, &element);
                if other.iter().any(equals) && !counted.iter().any(equals) {
                    counted.push(element);
                }
            }
            Value::Int(counted.len() as i64)
        }
        Call::Sum => match &operands[0] {
            Value::List(list) => match &**list {
                List::Int(values) => {
                    let sum: i128 = values.iter().map(|v| i128::from(*v)).sum();
                    Value::Int(i64::try_from(sum).map_err(|_| Overflow)?)
                }
                List::Float(values) => Value::Float(values.iter().fold(0.0, |sum, v| sum + v)),
                List::Str(_) => panic!("a sum of texts"),
            },
            other => panic!("{call:?} of {other}"),
        },
        Call::Mean => match elements(&operands[0]).len() {
            0 => Value::Null,
            len => {
                let exact = |v: &Value| matches!(v, Value::Int(_));
                let values = elements(&operands[0]);
                let sum = match values.iter().all(exact) {
                    true => values.iter().map(|v| if let Value::Int(v) = v { i128::from(*v) } else { 0 }).sum::<i128>()
                        as f64,
                    false => values.iter().fold(0.0, |sum, v| sum + float(v)),
                };
                Value::Float(sum / len as f64)
            }
        },
        Call::Least | Call::Greatest => {
            let key = |v: &Value| match v {
                Value::Int(v) => (*v, 0.0),
                v => (0, float(v)),
            };
            let order = |a: &Value, b: &Value| {
                let (a, b) = (key(a), key(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
            };
            let values = elements(&operands[0]);
            let found =
                if call == Call::Least { values.into_iter().min_by(order) } else { values.into_iter().max_by(order) };
            found.unwrap_or(Value::Null)
        }
        Call::Dot => Value::Float(f64::from(lanes(operands, |a, b| a * b))),
        Call::L2 => Value::Float(f64::from(lanes(operands, |a, b| (a - b) * (a - b))).sqrt()),
        Call::Cosine => {
            let square = |at: usize| {
                let twice = [operands[at].clone(), operands[at].clone()];
                f64::from(lanes(&twice, |a, b| a * b)).sqrt()
            };
            let lengths = square(0) * square(1);
            let dot = f64::from(lanes(operands, |a, b| a * b));
            Value::Float(if lengths == 0.0 { 0.0 } else { (dot / lengths).clamp(-1.0, 1.0) })
        }
        Call::Int => match &operands[0] {
            Value::Float(v) if v.abs() < 1e30 => i64::try_from(v.trunc() as i128).map_or(Value::Null, Value::Int),
            Value::Float(_) => Value::Null,
            _ => text(0).parse().map_or(Value::Null, Value::Int),
        },
        Call::Float => match &operands[0] {
            Value::Str(text) => text.parse().ok().filter(|v: &f64| v.is_finite()).map_or(Value::Null, Value::Float),
            number => Value::Float(float(number)),
        },
        Call::Lower => Value::str(&text(0).to_lowercase()),
        Call::Upper => Value::str(&text(0).to_uppercase()),
        Call::Length => Value::Int(text(0).chars().count() as i64),
        Call::Append => Value::str(&(text(0) + &text(1))),
        Call::Contains => Value::Bool(text(0).split(&text(1)).count() > 1),
        Call::StartsWith => Value::Bool(text(0).strip_prefix(&text(1)).is_some()),
        Call::EndsWith => Value::Bool(text(0).strip_suffix(&text(1)).is_some()),
        // Their values are held by tests of their own.
        Call::Hash | Call::UnitHash => match call.meaning() {
            Meaning::Salted(hash) => match hash(format!("{salt}:{}", text(0)).as_bytes()) {
                CallResult::Int(v) => Value::Int(v),
                CallResult::Float(v) => Value::Float(v),
                other => panic!("{call:?} gives {other:?}"),
            },
            other => panic!("{call:?} is {other:?}"),
        },
    })
}

fn elements(list: &Value) -> Vec<Value> {
    let Value::List(list) = list else { panic!("{list} is no list") };
    match &**list {
        List::Int(values) => values.iter().map(|v| Value::Int(*v)).collect(),
        List::Float(values) => values.iter().map(|v| Value::Float(*v)).collect(),
        List::Str(values) => values.iter().map(|v| Value::Str(v.clone())).collect(),
    }
}

/// A sum over two vectors: the terms of sixteen lanes, then the lanes in pairs, all rounded to `f32`.
fn lanes(operands: &[Value], term: fn(f32, f32) -> f32) -> f32 {
    let (Value::Vector(a), Value::Vector(b)) = (&operands[0], &operands[1]) else { panic!("no vectors") };
    assert_eq!(a.len(), b.len());
    let mut lanes = [0f32; 16];
    for at in 0..a.len() {
        lanes[at % 16] += term(a[at], b[at]);
    }
    for half in [8, 4, 2, 1] {
        for at in 0..half {
            lanes[at] += lanes[at + half];
        }
    }
    lanes[0]
}

/// Two values of one type, or two numbers; null compares false with everything.
fn compare(op: Compare, a: &Value, b: &Value) -> bool {
    let ordering = match (a, b) {
        (Value::Null, _) | (_, Value::Null) => return false,
        (Value::Str(a), Value::Str(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Float(b)) => int_and_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => int_and_float(*b, *a).map(Ordering::reverse),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        _ => panic!("{a} is compared with {b}"),
    };
    match op {
        Compare::Eq => ordering == Some(Ordering::Equal),
        Compare::Ne => ordering != Some(Ordering::Equal),
        Compare::Lt => ordering == Some(Ordering::Less),
        Compare::Le => ordering == Some(Ordering::Less) || ordering == Some(Ordering::Equal),
        Compare::Gt => ordering == Some(Ordering::Greater),
        Compare::Ge => ordering == Some(Ordering::Greater) || ordering == Some(Ordering::Equal),
    }
}

/// Exact: within 128 bits every float that is near an int is a whole number and a fraction.
fn int_and_float(a: i64, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    if b.abs() > 1e30 {
        return Some(if b > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let (below, fraction) = (b.floor() as i128, b - b.floor());
    Some(match i128::from(a).cmp(&below) {
        Ordering::Equal if fraction > 0.0 => Ordering::Less,
        ordering => ordering,
    })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Int(v) => *v as f64,
        Value::Float(v) => *v,
        other => panic!("arithmetic on {other}"),
    }
}

fn int((value, overflowed): (i64, bool)) -> Result<i64, Overflow> {
    if overflowed { Err(Overflow) } else { Ok(value) }
}

fn matches(pattern: &str, ignore_case: bool, text: &str) -> bool {
    RegexBuilder::new(pattern).case_insensitive(ignore_case).build().unwrap().is_match(text)
}
