//! The type of every node of a tree, or everything that is wrong with it.
//!
//! Arithmetic on ints is an int where the table of operations has a function of ints; with a float among the operands, or without
//! such a function, it is a float. `coalesce` and `if` have the type that their branches share, and an int beside a float is a
//! float. Null fits anywhere. An operand that is itself wrong is not reported twice.

use crate::batch::Key;
use crate::expr::operation::Gives;
use crate::expr::operations::Call;
use crate::expr::pattern::{self, BadPattern};
use crate::expr::tree::{Compare, Ix, Op, Tree};
use crate::value::{Type, Value};
use std::fmt;

/// What a tree needs to know from outside: the types behind its names.
pub trait Schema {
    fn key_type(&self, key: Key) -> Type;
    fn param_type(&self, param: u32) -> Type;
}

/// What a node gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Value(Type),
    /// A value that is null on every row and fits every type.
    Null,
    Predicate,
    /// Its own error has been reported.
    Wrong,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Value(type_of) => type_of.fmt(f),
            Kind::Null => f.write_str("null"),
            Kind::Predicate => f.write_str("predicate"),
            Kind::Wrong => f.write_str("an error"),
        }
    }
}

/// One mistake and the node that it is at.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeError {
    pub node: Ix,
    pub fault: TypeFault,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeFault {
    /// Arithmetic on something that is not a number.
    NotANumber(Kind),
    /// Two operands that must agree and do not.
    Mismatch(Kind, Kind),
    /// `<` and the like on bools.
    NoOrder,
    /// A comparison of lists or vectors, or `in` on one.
    NotComparable(Type),
    /// The whole would give a list or vector.
    NotComputed(Type),
    /// A predicate where a value belongs, or the other way round.
    Misplaced { wanted: &'static str, found: Kind },
    /// An operand that the operation does not take.
    Operand { operation: &'static str, wanted: &'static str, found: Kind },
    /// `regex` on something that is not a string.
    NotAString(Type),
    /// The list of `in` is empty, holds null, or mixes types.
    BadList,
    /// The regular expression does not compile within its limits.
    BadRegex(BadPattern),
    /// With this one, the regular expressions of a plan are larger together than they may be.
    TooManyRegexes,
    /// The whole gives another type than its place takes.
    WrongResult { wanted: Type, found: Kind },
}

impl std::error::Error for TypeError {}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl fmt::Display for TypeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeFault::NotANumber(found) => write!(f, "arithmetic needs a number, not {found}"),
            TypeFault::Mismatch(a, b) => write!(f, "{a} and {b} cannot be combined"),
            TypeFault::NoOrder => f.write_str("bools have no order; use == or !="),
            TypeFault::NotComparable(found) => {
                write!(f, "{found} has no order and no ==; only whether it is null can be asked")
            }
            TypeFault::NotComputed(found) => write!(f, "an expression cannot give {found}"),
            TypeFault::Misplaced { wanted, found } => write!(f, "expected a {wanted}, not a {found}"),
            TypeFault::Operand { operation, wanted, found } => write!(f, "{operation} takes {wanted}, not {found}"),
            TypeFault::NotAString(found) => write!(f, "regex needs a string key, not {found}"),
            TypeFault::BadList => f.write_str("the list of `in` must hold values of one type, and at least one"),
            TypeFault::BadRegex(why) => write!(f, "this regular expression cannot be used: {why}"),
            TypeFault::TooManyRegexes => write!(
                f,
                "compiling all regular expressions of the plan takes more than the limit of {} KiB",
                pattern::LITERALS_MAX >> 10
            ),
            TypeFault::WrongResult { wanted, found } => write!(f, "the result is {found}, but {wanted} is expected"),
        }
    }
}

/// The kind of each node, in the tree's order.
pub(super) fn check(tree: &Tree, schema: &impl Schema, errors: &mut Vec<TypeError>) -> Vec<Kind> {
    let mut checker = Checker { kinds: Vec::with_capacity(tree.nodes().len()), errors };
    for (ix, node) in tree.nodes().iter().enumerate() {
        let kind = checker.kind(ix as Ix, &node.op, schema);
        checker.kinds.push(kind);
    }
    checker.kinds
}

struct Checker<'a> {
    kinds: Vec<Kind>,
    errors: &'a mut Vec<TypeError>,
}

impl Checker<'_> {
    fn kind(&mut self, ix: Ix, op: &Op, schema: &impl Schema) -> Kind {
        match op {
            Op::Const(value) => value.type_of().map_or(Kind::Null, Kind::Value),
            Op::Key(key) => Kind::Value(schema.key_type(*key)),
            Op::Param(param) => Kind::Value(schema.param_type(*param)),
            Op::NowMs => Kind::Value(Type::Int),
            Op::UserId => Kind::Value(schema.key_type(Key::ID)),
            Op::Call { call, a, b, .. } => self.call(ix, *call, *a, *b),
            Op::Unary(op, x) => self.arithmetic(ix, op.on_ints().is_some(), &[*x]),
            Op::Binary(op, a, b) => self.arithmetic(ix, op.on_ints().is_some(), &[*a, *b]),
            Op::Clamp { x, lo, hi } => self.arithmetic(ix, true, &[*x, *lo, *hi]),
            Op::Coalesce(a, b) => self.meet(ix, *a, *b),
            Op::If { cond, then, other } => {
                self.predicate(ix, *cond);
                self.meet(ix, *then, *other)
            }
            Op::Truth(_) => Kind::Predicate,
            Op::And(a, b) | Op::Or(a, b) => {
                self.predicate(ix, *a);
                self.predicate(ix, *b);
                Kind::Predicate
            }
            Op::Not(x) => {
                self.predicate(ix, *x);
                Kind::Predicate
            }
            Op::Compare(compare, a, b) => {
                let met = self.meet(ix, *a, *b);
                let ordered = !matches!(compare, Compare::Eq | Compare::Ne);
                match met {
                    Kind::Value(Type::Bool) if ordered => self.fail(ix, TypeFault::NoOrder),
                    Kind::Value(found) if !found.is_scalar() => self.fail(ix, TypeFault::NotComparable(found)),
                    Kind::Value(_) | Kind::Null | Kind::Predicate | Kind::Wrong => {}
                }
                Kind::Predicate
            }
            Op::In(x, list) => {
                self.check_list(ix, *x, list);
                Kind::Predicate
            }
            Op::Null { x, .. } => {
                self.value(ix, *x);
                Kind::Predicate
            }
            Op::Match { key, .. } => {
                let found = schema.key_type(*key);
                if found != Type::Str {
                    self.fail(ix, TypeFault::NotAString(found));
                }
                Kind::Predicate
            }
        }
    }

    /// What a call gives; null where an operand can only be null.
    fn call(&mut self, ix: Ix, call: Call, a: Ix, b: Option<Ix>) -> Kind {
        let (mut null, mut wrong) = (false, false);
        let mut first = None;
        for (operand, takes) in [Some(a), b].into_iter().flatten().zip(call.takes()) {
            match self.value(ix, operand) {
                Kind::Null => null = true,
                Kind::Value(type_of) if takes.fits(type_of) => match first {
                    Some(before) if !takes.agrees(before, type_of) => {
                        wrong = true;
                        self.fail(ix, TypeFault::Mismatch(Kind::Value(before), Kind::Value(type_of)));
                    }
                    Some(_) => {}
                    None => first = Some(type_of),
                },
                found => {
                    wrong = true;
                    if found != Kind::Wrong {
                        let operation = call.operation().name;
                        self.fail(ix, TypeFault::Operand { operation, wanted: takes.name(), found });
                    }
                }
            }
        }
        match call.gives() {
            Gives::Truth => Kind::Predicate,
            _ if wrong => Kind::Wrong,
            _ if null => Kind::Null,
            Gives::Int => Kind::Value(Type::Int),
            Gives::Float => Kind::Value(Type::Float),
            Gives::Text => Kind::Value(Type::Str),
            Gives::Element => match first {
                Some(Type::List(element)) => Kind::Value(element.type_of()),
                _ => Kind::Wrong,
            },
        }
    }

    fn check_list(&mut self, ix: Ix, x: Ix, list: &[Value]) {
        match (self.value(ix, x), list_type(list)) {
            (_, None) => self.fail(ix, TypeFault::BadList),
            (Kind::Value(x), Some(_)) if !x.is_scalar() => self.fail(ix, TypeFault::NotComparable(x)),
            (Kind::Value(x), Some(item)) if x != item && !(x.is_number() && item.is_number()) => {
                self.fail(ix, TypeFault::Mismatch(Kind::Value(x), Kind::Value(item)));
            }
            _ => {}
        }
    }

    fn fail(&mut self, node: Ix, fault: TypeFault) {
        self.errors.push(TypeError { node, fault });
    }

    fn predicate(&mut self, ix: Ix, child: Ix) {
        let found = self.kinds[child as usize];
        if !matches!(found, Kind::Predicate | Kind::Wrong) {
            self.fail(ix, TypeFault::Misplaced { wanted: "predicate", found });
        }
    }

    fn value(&mut self, ix: Ix, child: Ix) -> Kind {
        let found = self.kinds[child as usize];
        if found == Kind::Predicate {
            self.fail(ix, TypeFault::Misplaced { wanted: "value", found });
            return Kind::Wrong;
        }
        found
    }

    /// Int if all operands are (or are null), else float.
    fn number(&mut self, ix: Ix, operands: &[Ix]) -> Kind {
        let mut result = Kind::Null;
        for &operand in operands {
            result = match (self.value(ix, operand), result) {
                (Kind::Wrong, _) | (_, Kind::Wrong) => Kind::Wrong,
                (Kind::Value(Type::Float), _) | (Kind::Value(Type::Int), Kind::Value(Type::Float)) => {
                    Kind::Value(Type::Float)
                }
                (Kind::Value(Type::Int), _) => Kind::Value(Type::Int),
                (Kind::Null, result) => result,
                (found, _) => {
                    self.fail(ix, TypeFault::NotANumber(found));
                    Kind::Wrong
                }
            };
        }
        result
    }

    /// A number, or a float whatever the operands are.
    fn arithmetic(&mut self, ix: Ix, keeps_ints: bool, operands: &[Ix]) -> Kind {
        match self.number(ix, operands) {
            Kind::Value(_) if !keeps_ints => Kind::Value(Type::Float),
            kind => kind,
        }
    }

    /// The type that both can be seen as.
    fn meet(&mut self, ix: Ix, a: Ix, b: Ix) -> Kind {
        match (self.value(ix, a), self.value(ix, b)) {
            (Kind::Wrong, _) | (_, Kind::Wrong) => Kind::Wrong,
            (Kind::Null, other) | (other, Kind::Null) => other,
            (a, b) if a == b => a,
            (Kind::Value(a), Kind::Value(b)) if a.is_number() && b.is_number() => Kind::Value(Type::Float),
            (a, b) => {
                self.fail(ix, TypeFault::Mismatch(a, b));
                Kind::Wrong
            }
        }
    }
}

/// The one type of a list of literals; ints and floats together are numbers and count as float.
pub(super) fn list_type(list: &[Value]) -> Option<Type> {
    let mut types = list.iter().map(Value::type_of);
    let first = types.next()??;
    types.try_fold(first, |seen, next| match (seen, next?) {
        (seen, next) if seen == next => Some(seen),
        (seen, next) if seen.is_number() && next.is_number() => Some(Type::Float),
        _ => None,
    })
}
