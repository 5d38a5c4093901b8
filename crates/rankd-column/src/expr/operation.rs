//! What there is to know about an operation of expressions, as data, and the macro that turns rows into operations.
//!
//! The rows are in [`crate::expr::operations`], and a new one belongs there. No meaning is decided here.

pub use crate::expr::call::{CallResult, Gives, Meaning, Takes};
use crate::math::NEAR_MAX;

/// One operation. An operation is infallible, and keeps numbers finite, only where its row says so.
#[derive(Debug)]
pub struct Operation {
    /// The field `op` in JSON.
    pub name: &'static str,
    pub form: Form,
    /// The fields beside `op`.
    pub fields: &'static [Field],
    pub rule: Rule,
    pub nulls: Nulls,
    pub overflow: Overflow,
    pub finite: Finite,
    pub script: Script,
    /// What it gives, as the documentation and editors show it.
    pub doc: &'static str,
    /// Numbers and what comes of them; of number functions only.
    pub examples: &'static [(&'static [f64], f64)],
}

/// Which operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Unary(super::Unary),
    Binary(super::Binary),
    Call(super::Call),
    Special(super::Special),
}

/// A field of an operation.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub holds: Holds,
    pub required: bool,
}

impl Field {
    pub(super) const fn new(name: &'static str, holds: Holds) -> Field {
        Field { name, holds, required: true }
    }

    pub(super) const fn optional(name: &'static str, holds: Holds) -> Field {
        Field { name, holds, required: false }
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// An operation that gives a value.
    Value,
    /// An operation that gives true or false.
    Predicate,
    /// A number, a text, a bool or null.
    Literal,
    /// A list of literals.
    List,
    Key,
    Param,
    Comparison,
    Pattern,
    Flags,
    /// A text that is known when the plan is read.
    Salt,
}

impl Holds {
    /// Whether the field holds an operation.
    pub fn is_operation(self) -> bool {
        match self {
            Holds::Value | Holds::Predicate => true,
            Holds::Literal
            | Holds::List
            | Holds::Key
            | Holds::Param
            | Holds::Comparison
            | Holds::Pattern
            | Holds::Flags
            | Holds::Salt => false,
        }
    }
}

/// What an operation takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It has no operations below it; gives what the text says.
    Leaf(&'static str),
    /// Numbers to a number: an int if all of them are ints, else a float.
    Number,
    /// Numbers to a float.
    Float,
    /// Values of one type to that type; an int beside a float becomes a float.
    Shared,
    /// What the text says to true or false.
    Truth(&'static str),
    /// One or two values, each of a type that is taken at its place.
    Call { takes: &'static [Takes], gives: Gives },
}

/// What becomes of null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// The result is null where an operand is.
    Pass,
    /// The operation decides.
    Own,
    /// The result is false where an operand is null.
    False,
    /// There is none: neither in the operands nor in the result.
    Never,
}

/// Whether the result can leave the range of its type: 64 bits of an int, the longest text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It cannot, or the result is neither int nor text.
    Never,
    Possible,
}

/// Whether finite operands make a finite result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finite {
    /// They do, whatever their values.
    Kept,
    /// They may not.
    Lost,
}

/// How plans in TypeScript write an operation.
#[derive(Debug)]
pub struct Script {
    /// As an operator or another form of the language, if there is one: `a + b`.
    pub syntax: &'static str,
    pub function: Function,
}

/// The function that plans call. Numbers that are known when a plan is compiled are computed by the JavaScript in it.
#[derive(Debug)]
pub enum Function {
    /// Takes the operands: `sqrt(x)` and `E.sqrt(x)`.
    Exact(&'static str),
    /// The same, but known numbers are computed by the row's own function: JavaScript's has the bits of a machine's C library.
    Computed,
    /// Takes two operands or more: `min(a, b, c)` and `E.min(a, b, c)`.
    Folded(&'static str),
    /// Takes the operands, in `E` only: `E.add(a, b)`.
    SpeltOut,
    /// Takes the operands and always gives an expression: `lower(x)` and `E.lower(x)`, or `contains(a, b)` and `Pred.contains(a, b)`.
    Built(Built),
    /// Written by hand in the runtime of the compiler.
    ByHand(&'static [Export]),
}

/// A function that is made from its row, whatever it takes.
#[derive(Clone, Copy, Debug)]
pub struct Built {
    /// As TypeScript writes it.
    pub name: &'static str,
    /// The signatures in TypeScript, each without the name.
    pub types: &'static [&'static str],
}

/// A name that plans find.
#[derive(Debug)]
pub struct Export {
    pub home: Home,
    pub name: &'static str,
    /// The signatures in TypeScript, each without the name.
    pub types: &'static [&'static str],
}

/// Where a name is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// It is a global.
    Global,
    /// It is a field of `E`.
    E,
    /// It is a field of `Pred`.
    Pred,
}

impl Script {
    pub(super) const fn function(native: &'static str) -> Script {
        Script { syntax: "", function: Function::Exact(native) }
    }

    pub(super) const fn computed() -> Script {
        Script { syntax: "", function: Function::Computed }
    }

    pub(super) const fn folded(native: &'static str) -> Script {
        Script { syntax: "", function: Function::Folded(native) }
    }

    pub(super) const fn operator(syntax: &'static str) -> Script {
        Script { syntax, function: Function::SpeltOut }
    }

    pub(super) const fn built(name: &'static str, types: &'static [&'static str]) -> Script {
        Script { syntax: "", function: Function::Built(Built { name, types }) }
    }

    pub(super) const fn by_hand(syntax: &'static str, exports: &'static [Export]) -> Script {
        Script { syntax, function: Function::ByHand(exports) }
    }
}

impl Operation {
    /// Whether it gives true or false.
    pub fn is_truth(&self) -> bool {
        match self.rule {
            Rule::Truth(_) | Rule::Call { gives: Gives::Truth, .. } => true,
            Rule::Leaf(_) | Rule::Number | Rule::Float | Rule::Shared => false,
            Rule::Call { gives: Gives::Int | Gives::Float | Gives::Text | Gives::Element, .. } => false,
        }
    }

    /// The names under which plans find the operation.
    pub fn names(&self) -> Vec<(Home, &'static str)> {
        match self.script.function {
            Function::Exact(_) | Function::Computed | Function::Folded(_) => {
                vec![(Home::Global, self.name), (Home::E, self.name)]
            }
            Function::SpeltOut => vec![(Home::E, self.name)],
            Function::Built(built) => {
                vec![(Home::Global, built.name), (if self.is_truth() { Home::Pred } else { Home::E }, built.name)]
            }
            Function::ByHand(exports) => exports.iter().map(|export| (export.home, export.name)).collect(),
        }
    }
}

/// The names that plans find in one place, each once.
pub fn names_in(home: Home) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (at, name) in super::operations::OPERATIONS.iter().flat_map(|operation| operation.names()) {
        if at == home && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Something to do with the scalar function of an operation. It is compiled for each operation by itself, so that no loop decides
/// on each row which function to call.
pub(super) trait WithUnary<A, R> {
    type Output;

    fn with(self, f: impl Fn(A) -> R) -> Self::Output;

    /// The same for a function of many steps, which is inlined wherever it is called.
    #[inline(always)]
    fn with_long(self, f: impl Fn(A) -> R) -> Self::Output
    where
        Self: Sized,
    {
        self.with(f)
    }
}

/// The same for functions of two operands.
pub(super) trait WithBinary<A, R> {
    type Output;

    fn with(self, f: impl Fn(A, A) -> R) -> Self::Output;

    #[inline(always)]
    fn with_long(self, f: impl Fn(A, A) -> R) -> Self::Output
    where
        Self: Sized,
    {
        self.with(f)
    }
}

/// Calls the function.
pub(super) struct Apply<T>(pub(super) T);

impl<A, R> WithUnary<A, R> for Apply<A> {
    type Output = R;

    #[inline(always)]
    fn with(self, f: impl Fn(A) -> R) -> R {
        f(self.0)
    }
}

impl<A, R> WithBinary<A, R> for Apply<(A, A)> {
    type Output = R;

    #[inline(always)]
    fn with(self, f: impl Fn(A, A) -> R) -> R {
        f(self.0.0, self.0.1)
    }
}

impl super::Unary {
    #[inline(always)]
    pub fn float(self, x: f64) -> f64 {
        match self.far() {
            Some(far) if x.abs() > NEAR_MAX => far(x),
            _ => self.with_floats(Apply(x)),
        }
    }
}

impl super::Binary {
    #[inline(always)]
    pub fn float(self, a: f64, b: f64) -> f64 {
        self.with_floats(Apply((a, b)))
    }
}

impl super::IntUnary {
    /// The result, wrapped around where it overflowed, and whether it did.
    #[inline(always)]
    pub fn int(self, x: i64) -> (i64, bool) {
        self.with_ints(Apply(x))
    }
}

impl super::IntBinary {
    #[inline(always)]
    pub fn int(self, a: i64, b: i64) -> (i64, bool) {
        self.with_ints(Apply((a, b)))
    }
}

/// Makes the enums `Unary`, `Binary`, `IntUnary`, `IntBinary`, `Call` and `Special`, their scalar functions and [`Operation`]s of the rows.
macro_rules! operations {
    (
        unary_on_ints { $( $UI:ident {
            name: $ui_name:literal, int: $ui_int:expr, overflow: $ui_overflow:ident,
            float: $ui_float:expr, finite: $ui_finite:ident, script: $ui_script:expr,
            examples: $ui_examples:expr, doc: $ui_doc:literal,
        } )* }
        unary_on_floats { $( $UF:ident {
            name: $uf_name:literal, float: $uf_float:expr, $( far: $uf_far:expr, )? finite: $uf_finite:ident, script: $uf_script:expr,
            examples: $uf_examples:expr, doc: $uf_doc:literal,
        } )* }
        binary_on_ints { $( $BI:ident {
            name: $bi_name:literal, int: $bi_int:expr, overflow: $bi_overflow:ident,
            float: $bi_float:expr, finite: $bi_finite:ident, script: $bi_script:expr,
            examples: $bi_examples:expr, doc: $bi_doc:literal,
        } )* }
        binary_on_floats { $( $BF:ident {
            name: $bf_name:literal, float: $bf_float:expr, finite: $bf_finite:ident, script: $bf_script:expr,
            examples: $bf_examples:expr, doc: $bf_doc:literal,
        } )* }
        calls { $( $C:ident {
            name: $c_name:literal, fields: $c_fields:expr, takes: $c_takes:expr, gives: $c_gives:ident,
            overflow: $c_overflow:ident, finite: $c_finite:ident, meaning: $c_meaning:expr, script: $c_script:expr, doc: $c_doc:literal,
        } )* }
        special { $( $S:ident {
            name: $s_name:literal, fields: $s_fields:expr, rule: $s_rule:expr, nulls: $s_nulls:ident,
            overflow: $s_overflow:ident, finite: $s_finite:ident, script: $s_script:expr,
            examples: $s_examples:expr, doc: $s_doc:literal,
        } )* }
    ) => {
        operations!(@numbers Unary, IntUnary, WithUnary, UNARY, (x),
            [$( $UI { $ui_name, $ui_int, $ui_overflow, $ui_float, $ui_finite, $ui_script, $ui_examples, $ui_doc } )*]
            [$( $UF { $uf_name, $uf_float, $uf_finite, $uf_script, $uf_examples, $uf_doc } )*]);

        impl Unary {
            /// What takes the place of the function where the argument is greater than [`NEAR_MAX`](crate::math::NEAR_MAX) in size.
            pub(super) const fn far(self) -> Option<fn(f64) -> f64> {
                match self {
                    $( Unary::$UI => None, )*
                    $( Unary::$UF => operations!(@far $( $uf_far )?), )*
                }
            }
        }

        operations!(@numbers Binary, IntBinary, WithBinary, BINARY, (a, b),
            [$( $BI { $bi_name, $bi_int, $bi_overflow, $bi_float, $bi_finite, $bi_script, $bi_examples, $bi_doc } )*]
            [$( $BF { $bf_name, $bf_float, $bf_finite, $bf_script, $bf_examples, $bf_doc } )*]);

        /// A function of values of any type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call { $( #[doc = $c_doc] $C, )* }

        impl Call {
            pub const ALL: &[Call] = &[$( Call::$C, )*];

            /// What it means for one row.
            pub const fn meaning(self) -> Meaning {
                match self {
                    $( Call::$C => const { $c_meaning }, )*
                }
            }

            pub const fn takes(self) -> &'static [Takes] {
                match self {
                    $( Call::$C => $c_takes, )*
                }
            }

            pub const fn gives(self) -> Gives {
                match self {
                    $( Call::$C => Gives::$c_gives, )*
                }
            }

            pub const fn operation(self) -> &'static Operation {
                match self {
                    $( Call::$C => const { &Operation {
                        name: $c_name,
                        form: Form::Call(Call::$C),
                        fields: $c_fields,
                        rule: Rule::Call { takes: $c_takes, gives: Gives::$c_gives },
                        nulls: Gives::$c_gives.nulls(),
                        overflow: Overflow::$c_overflow,
                        finite: Finite::$c_finite,
                        script: $c_script,
                        doc: $c_doc,
                        examples: &[],
                    } }, )*
                }
            }
        }

        /// An operation with a meaning of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Special { $( #[doc = $s_doc] $S, )* }

        impl Special {
            pub const fn operation(self) -> &'static Operation {
                match self {
                    $( Special::$S => const { &Operation {
                        name: $s_name,
                        form: Form::Special(Special::$S),
                        fields: $s_fields,
                        rule: $s_rule,
                        nulls: Nulls::$s_nulls,
                        overflow: Overflow::$s_overflow,
                        finite: Finite::$s_finite,
                        script: $s_script,
                        doc: $s_doc,
                        examples: $s_examples,
                    } }, )*
                }
            }
        }

        /// All operations.
        pub const OPERATIONS: &[&Operation] = &[
            $( Special::$S.operation(), )*
            $( Binary::$BI.operation(), )* $( Binary::$BF.operation(), )*
            $( Unary::$UI.operation(), )* $( Unary::$UF.operation(), )*
            $( Call::$C.operation(), )*
        ];
    };

    (@inlined (x) $f:expr) => { #[inline(always)] |x| $f(x) };
    (@inlined (a, b) $f:expr) => { #[inline(always)] |a, b| $f(a, b) };

    (@far) => { None };
    (@far $far:expr) => { Some($far) };

    (@numbers $Enum:ident, $IntEnum:ident, $With:ident, $fields:ident, $operands:tt,
        [$( $I:ident { $i_name:literal, $i_int:expr, $i_overflow:ident, $i_float:expr, $i_finite:ident, $i_script:expr, $i_examples:expr, $i_doc:literal } )*]
        [$( $F:ident { $f_name:literal, $f_float:expr, $f_finite:ident, $f_script:expr, $f_examples:expr, $f_doc:literal } )*]
    ) => {
        /// A function of numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Enum { $( #[doc = $i_doc] $I, )* $( #[doc = $f_doc] $F, )* }

        /// The functions that make an int of ints.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $IntEnum { $( #[doc = $i_doc] $I, )* }

        impl $Enum {
            pub const ALL: &[$Enum] = &[$( $Enum::$I, )* $( $Enum::$F, )*];

            /// The same function on ints, where it keeps them ints.
            pub const fn on_ints(self) -> Option<$IntEnum> {
                match self {
                    $( $Enum::$I => Some($IntEnum::$I), )*
                    $( $Enum::$F => None, )*
                }
            }

            #[inline(always)]
            pub(super) fn with_floats<W: $With<f64, f64>>(self, with: W) -> W::Output {
                match self {
                    $( $Enum::$I => with.with($i_float), )*
                    $( $Enum::$F => with.with_long(operations!(@inlined $operands $f_float)), )*
                }
            }

            pub const fn operation(self) -> &'static Operation {
                match self {
                    $( $Enum::$I => const { &Operation {
                        name: $i_name,
                        form: Form::$Enum($Enum::$I),
                        fields: $fields,
                        rule: Rule::Number,
                        nulls: Nulls::Pass,
                        overflow: Overflow::$i_overflow,
                        finite: Finite::$i_finite,
                        script: $i_script,
                        doc: $i_doc,
                        examples: $i_examples,
                    } }, )*
                    $( $Enum::$F => const { &Operation {
                        name: $f_name,
                        form: Form::$Enum($Enum::$F),
                        fields: $fields,
                        rule: Rule::Float,
                        nulls: Nulls::Pass,
                        overflow: Overflow::Never,
                        finite: Finite::$f_finite,
                        script: $f_script,
                        doc: $f_doc,
                        examples: $f_examples,
                    } }, )*
                }
            }
        }

        impl $IntEnum {
            pub const ALL: &[$IntEnum] = &[$( $IntEnum::$I, )*];

            #[inline(always)]
            pub(super) fn with_ints<W: $With<i64, (i64, bool)>>(self, with: W) -> W::Output {
                match self {
                    $( $IntEnum::$I => with.with($i_int), )*
                }
            }
        }
    };
}

pub(super) use operations;
