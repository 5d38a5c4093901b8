//! The operations of expressions: one row each, and no other list anywhere.
//!
//! A row says what the operation is called in JSON, what it does to one number (`int`, `float`), what can go wrong (`overflow`,
//! `finite`), how TypeScript writes it, some examples and a line of documentation. The JSON reader, the types, the compiler, the
//! loops over rows, the TypeScript functions and their declarations, the documentation and the generators of the tests all read it.
//!
//! To add a function of one or two numbers, add a row to one of the first four groups and regenerate the declarations and the
//! documentation (CONTRIBUTING.md). A function of texts is a row of the group `calls`. A special operation also needs an [`Op`](crate::expr::Op) and its code, which the compiler asks
//! for: no `match` over operations has a default.
//!
//! `int` gives the result wrapped around, and whether it overflowed. `Overflow::Never` and `Finite::Kept` are promises, on which an
//! evaluation skips rows whose result is not needed. If in doubt, write `Possible` and `Lost`.

use crate::column::builder::parse_text;
use crate::expr::arrays::numbers;
use crate::expr::compile::exact_int;
use crate::expr::hash;
use crate::expr::operation::*;
use crate::kernel::similarity::Similarity;
use crate::math;
use crate::value::Value;

const UNARY: &[Field] = &[Field::new("x", Holds::Value)];
const BINARY: &[Field] = &[Field::new("a", Holds::Value), Field::new("b", Holds::Value)];
const VECTORS: &[&str] = &["<N extends number>(a: Vector<N>, b: Vector<N>): number"];
const SALTED: &[Field] = &[Field::new("x", Holds::Value), Field::new("salt", Holds::Salt)];

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

operations! {
    unary_on_ints {
        Neg {
            name: "neg", int: |x| 0i64.overflowing_sub(x), overflow: Possible,
            float: |x| -x, finite: Kept, script: Script::operator("-x"),
            examples: &[(&[2.5], -2.5), (&[0.0], -0.0), (&[-3.0], 3.0)],
            doc: "`x` with its sign changed",
        }
        Abs {
            name: "abs", int: i64::overflowing_abs, overflow: Possible,
            float: f64::abs, finite: Kept, script: Script::function("Math.abs"),
            examples: &[(&[-2.5], 2.5), (&[-0.0], 0.0), (&[3.0], 3.0)],
            doc: "`x` without its sign",
        }
        Sign {
            name: "sign", int: |x| (x.signum(), false), overflow: Never,
            float: |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }, finite: Kept, script: Script::function("Math.sign"),
            examples: &[(&[-2.5], -1.0), (&[-0.0], -0.0), (&[0.0], 0.0), (&[3.0], 1.0), (&[NAN], NAN)],
            doc: "-1, 0 or 1, as `x` is less than, equal to or greater than 0",
        }
    }
    unary_on_floats {
        Floor {
            name: "floor", float: f64::floor, finite: Kept, script: Script::function("Math.floor"),
            examples: &[(&[1.5], 1.0), (&[-1.5], -2.0), (&[-0.0], -0.0)],
            doc: "the next whole number down",
        }
        Ceil {
            name: "ceil", float: f64::ceil, finite: Kept, script: Script::function("Math.ceil"),
            examples: &[(&[1.5], 2.0), (&[-1.5], -1.0), (&[-0.5], -0.0)],
            doc: "the next whole number up",
        }
        Round {
            name: "round", float: f64::round, finite: Kept,
            // JavaScript's rounds halves up.
            script: Script::function("(x) => Math.trunc(x) + (Math.abs(x - Math.trunc(x)) >= 0.5 ? Math.sign(x) : -0)"),
            examples: &[(&[2.5], 3.0), (&[-2.5], -3.0), (&[0.499_999_999_999_999_94], 0.0), (&[-0.25], -0.0)],
            doc: "the nearest whole number, half away from zero: 2.5 gives 3, -2.5 gives -3",
        }
        Trunc {
            name: "trunc", float: f64::trunc, finite: Kept, script: Script::function("Math.trunc"),
            examples: &[(&[1.5], 1.0), (&[-1.5], -1.0), (&[-0.5], -0.0)],
            doc: "the next whole number towards zero",
        }
        Sqrt {
            name: "sqrt", float: f64::sqrt, finite: Lost, script: Script::function("Math.sqrt"),
            examples: &[(&[9.0], 3.0), (&[2.25], 1.5), (&[-1.0], NAN)],
            doc: "square root; NaN of a negative number",
        }
        Log {
            name: "log", float: math::log, finite: Lost, script: Script::computed(),
            examples: &[(&[1.0], 0.0), (&[0.0], -INFINITY), (&[-1.0], NAN)],
            doc: "natural logarithm; minus infinity of 0, NaN of a negative number",
        }
        Log1p {
            name: "log1p", float: math::log1p, finite: Lost, script: Script::computed(),
            examples: &[(&[0.0], 0.0), (&[-1.0], -INFINITY), (&[-2.0], NAN)],
            doc: "natural logarithm of 1 + `x`",
        }
        Log2 {
            name: "log2", float: math::log2, finite: Lost, script: Script::computed(),
            examples: &[(&[8.0], 3.0), (&[0.25], -2.0), (&[0.0], -INFINITY), (&[-1.0], NAN)],
            doc: "logarithm to base 2; minus infinity of 0, NaN of a negative number",
        }
        Log10 {
            name: "log10", float: math::log10, finite: Lost, script: Script::computed(),
            examples: &[(&[1000.0], 3.0), (&[1.0], 0.0), (&[0.0], -INFINITY), (&[-1.0], NAN)],
            doc: "logarithm to base 10; minus infinity of 0, NaN of a negative number",
        }
        Exp {
            name: "exp", float: math::exp, finite: Lost, script: Script::computed(),
            examples: &[(&[0.0], 1.0), (&[1000.0], INFINITY), (&[-1000.0], 0.0)],
            doc: "exponential: e to the power of `x`",
        }
        Sigmoid {
            name: "sigmoid", float: math::sigmoid, finite: Kept,
            script: Script::computed(),
            examples: &[(&[0.0], 0.5), (&[1000.0], 1.0), (&[-1000.0], 0.0)],
            doc: "1 / (1 + e^-`x`)",
        }
        Tanh {
            name: "tanh", float: math::tanh, finite: Kept, script: Script::computed(),
            examples: &[(&[0.0], 0.0), (&[1000.0], 1.0), (&[-1000.0], -1.0)],
            doc: "hyperbolic tangent: from -1 to 1",
        }
        Sin {
            name: "sin", float: math::sin_near, far: math::sin, finite: Kept, script: Script::computed(),
            examples: &[(&[0.0], 0.0), (&[-0.0], -0.0)],
            doc: "sine of an angle in radians",
        }
        Cos {
            name: "cos", float: math::cos_near, far: math::cos, finite: Kept, script: Script::computed(),
            examples: &[(&[0.0], 1.0), (&[-0.0], 1.0)],
            doc: "cosine of an angle in radians",
        }
    }
    binary_on_ints {
        Add {
            name: "add", int: i64::overflowing_add, overflow: Possible,
            float: |a, b| a + b, finite: Lost, script: Script::operator("a + b"),
            examples: &[(&[1.0, 2.5], 3.5), (&[2.0, -5.0], -3.0)],
            doc: "sum",
        }
        Sub {
            name: "sub", int: i64::overflowing_sub, overflow: Possible,
            float: |a, b| a - b, finite: Lost, script: Script::operator("a - b"),
            examples: &[(&[1.0, 2.5], -1.5), (&[2.0, -5.0], 7.0)],
            doc: "difference",
        }
        Mul {
            name: "mul", int: i64::overflowing_mul, overflow: Possible,
            float: |a, b| a * b, finite: Lost, script: Script::operator("a * b"),
            examples: &[(&[2.0, 2.5], 5.0), (&[2.0, -5.0], -10.0)],
            doc: "product",
        }
        Min {
            name: "min", int: |a, b| (a.min(b), false), overflow: Never,
            float: min, finite: Kept, script: Script::folded("Math.min"),
            examples: &[(&[1.0, 2.5], 1.0), (&[0.0, -0.0], -0.0), (&[NAN, 1.0], NAN), (&[1.0, NAN], NAN)],
            doc: "the smaller; NaN if either is",
        }
        Max {
            name: "max", int: |a, b| (a.max(b), false), overflow: Never,
            float: max, finite: Kept, script: Script::folded("Math.max"),
            examples: &[(&[1.0, 2.5], 2.5), (&[-0.0, 0.0], 0.0), (&[NAN, 1.0], NAN), (&[1.0, NAN], NAN)],
            doc: "the larger; NaN if either is",
        }
    }
    binary_on_floats {
        Div {
            name: "div", float: |a, b| a / b, finite: Lost, script: Script::operator("a / b"),
            examples: &[(&[1.0, 2.0], 0.5), (&[1.0, 0.0], INFINITY), (&[0.0, 0.0], NAN)],
            doc: "quotient of floats, also of two ints",
        }
        Mod {
            name: "mod", float: |a, b| a % b, finite: Lost, script: Script::operator("a % b"),
            examples: &[(&[5.0, 3.0], 2.0), (&[-5.0, 3.0], -2.0), (&[5.0, 0.0], NAN)],
            doc: "remainder of floats, with the sign of `a`",
        }
        Pow {
            name: "pow", float: math::pow, finite: Lost,
            // As IEEE 754 defines it; JavaScript's operator differs in two places.
            script: Script { syntax: "a ** b", function: Function::Computed },
            examples: &[(&[2.0, 10.0], 1024.0), (&[1.0, NAN], 1.0), (&[-1.0, INFINITY], 1.0), (&[-8.0, 0.5], NAN)],
            doc: "`a` to the power of `b`",
        }
        Decay {
            name: "decay", float: math::decay, finite: Lost,
            script: Script::computed(),
            examples: &[(&[0.0, 7.0], 1.0), (&[14.0, 7.0], 0.25), (&[-7.0, 7.0], 2.0), (&[1.0, 0.0], 0.0), (&[0.0, 0.0], NAN)],
            doc: "what is left of 1 at the age `a` with the half-life `b`: 0.5 to the power of `a` / `b`",
        }
    }
    calls {
        Int {
            name: "int", fields: UNARY, takes: &[Takes::NumberOrText], gives: Int, overflow: Never, finite: Kept,
            meaning: Meaning::Scalar {
                int: CallResult::Int,
                float: |x| exact_int(&Value::Float(x.trunc())).map_or(CallResult::Null, CallResult::Int),
                text: |x| parse_text(x.as_bytes()).map_or(CallResult::Null, CallResult::Int),
            },
            script: Script::built("int", &["(x: number | string): number"]),
            doc: "`x` as an int: a float without its fraction, a text as stored ints are read; null where that is no int of 64 bits",
        }
        Float {
            name: "float", fields: UNARY, takes: &[Takes::NumberOrText], gives: Float, overflow: Never, finite: Kept,
            meaning: Meaning::Scalar {
                int: |x| CallResult::Float(x as f64),
                float: CallResult::Float,
                text: |x| parse_text(x.as_bytes()).filter(|x: &f64| x.is_finite()).map_or(CallResult::Null, CallResult::Float),
            },
            script: Script::built("float", &["(x: number | string): number"]),
            doc: "`x` as a float: a text as stored floats are read; null where that is no finite number",
        }
        Lower {
            name: "lower", fields: UNARY, takes: &[Takes::Text], gives: Text, overflow: Possible, finite: Kept,
            meaning: Meaning::Text(|x| CallResult::Text(x.to_lowercase())),
            script: Script::built("lower", &["(x: string): string"]),
            doc: "`x` in lower case, by Unicode and without regard to any language",
        }
        Upper {
            name: "upper", fields: UNARY, takes: &[Takes::Text], gives: Text, overflow: Possible, finite: Kept,
            meaning: Meaning::Text(|x| CallResult::Text(x.to_uppercase())),
            script: Script::built("upper", &["(x: string): string"]),
            doc: "`x` in upper case, by Unicode and without regard to any language",
        }
        Length {
            name: "length", fields: UNARY, takes: &[Takes::Text], gives: Int, overflow: Never, finite: Kept,
            meaning: Meaning::Text(|x| CallResult::Int(x.chars().count() as i64)),
            script: Script::built("length", &["(x: string): number"]),
            doc: "how many characters `x` has",
        }
        Append {
            name: "append", fields: BINARY, takes: &[Takes::Text, Takes::Text], gives: Text, overflow: Possible, finite: Kept,
            meaning: Meaning::Append, script: Script::built("append", &["(a: string, b: string): string"]),
            doc: "`a` and then `b`",
        }
        Contains {
            name: "contains", fields: BINARY, takes: &[Takes::TextOrList, Takes::Member], gives: Truth, overflow: Never, finite: Kept,
            meaning: Meaning::Contains(|a, b| a.contains(b)),
            script: Script::built("contains", &[
                "(a: string, b: string): boolean", "(a: List<number>, b: number): boolean", "(a: List<string>, b: string): boolean",
            ]),
            doc: "neither is null and `b` is a part of the text `a`, or an element of the list `a`",
        }
        StartsWith {
            name: "starts_with", fields: BINARY, takes: &[Takes::Text, Takes::Text], gives: Truth, overflow: Never, finite: Kept,
            meaning: Meaning::Test(|a, b| a.starts_with(b)),
            script: Script::built("startsWith", &["(a: string, b: string): boolean"]),
            doc: "neither is null and `a` begins with `b`",
        }
        EndsWith {
            name: "ends_with", fields: BINARY, takes: &[Takes::Text, Takes::Text], gives: Truth, overflow: Never, finite: Kept,
            meaning: Meaning::Test(|a, b| a.ends_with(b)),
            script: Script::built("endsWith", &["(a: string, b: string): boolean"]),
            doc: "neither is null and `a` ends with `b`",
        }
        Hash {
            name: "hash", fields: SALTED, takes: &[Takes::IntOrText], gives: Int, overflow: Never, finite: Kept,
            meaning: Meaning::Salted(|text| CallResult::Int(hash::int_hash(text))),
            script: Script::built("hash", &["(x: number | string, salt: string): number"]),
            doc: "XXH64 with seed 0 of the text `salt:x` without its top bit; an int counts as its decimal text",
        }
        UnitHash {
            name: "unit_hash", fields: SALTED, takes: &[Takes::IntOrText], gives: Float, overflow: Never, finite: Kept,
            meaning: Meaning::Salted(|text| CallResult::Float(hash::unit_hash(text))),
            script: Script::built("unitHash", &["(x: number | string, salt: string): number"]),
            doc: "the first 13 hex digits of SHA-256 of the text `salt:x` as an integer, divided by 2^52: from 0 up to 1",
        }
        Size {
            name: "size", fields: UNARY, takes: &[Takes::List], gives: Int, overflow: Never, finite: Kept,
            meaning: Meaning::Size, script: Script::built("size", &["(x: List<number> | List<string>): number"]),
            doc: "how many elements `x` has",
        }
        At {
            name: "at", fields: BINARY, takes: &[Takes::List, Takes::Int], gives: Element, overflow: Never, finite: Kept,
            meaning: Meaning::At,
            script: Script::built("at", &["(a: List<number>, b: number): number", "(a: List<string>, b: number): string"]),
            doc: "the element of `a` at the position `b`, counted from 0; null where there is none",
        }
        Overlap {
            name: "overlap", fields: BINARY, takes: &[Takes::List, Takes::SameList], gives: Int, overflow: Never, finite: Kept,
            meaning: Meaning::Overlap,
            script: Script::built("overlap", &[
                "(a: List<number>, b: List<number>): number", "(a: List<string>, b: List<string>): number",
            ]),
            doc: "how many distinct elements of `a` are in `b`",
        }
        Sum {
            name: "sum", fields: UNARY, takes: &[Takes::NumberList], gives: Element, overflow: Possible, finite: Lost,
            meaning: Meaning::Numbers { ints: numbers::int_sum, floats: numbers::float_sum },
            script: Script::built("sum", &["(x: List<number>): number"]),
            doc: "the sum of the elements, in order; 0 of the empty list",
        }
        Mean {
            name: "mean", fields: UNARY, takes: &[Takes::NumberList], gives: Float, overflow: Never, finite: Lost,
            meaning: Meaning::Numbers { ints: numbers::int_mean, floats: numbers::float_mean },
            script: Script::built("mean", &["(x: List<number>): number"]),
            doc: "the sum of the elements divided by their number; null of the empty list",
        }
        Least {
            name: "least", fields: UNARY, takes: &[Takes::NumberList], gives: Element, overflow: Never, finite: Kept,
            meaning: Meaning::Numbers {
                ints: |x| x.iter().min().map_or(CallResult::Null, |x| CallResult::Int(*x)),
                floats: |x| x.iter().copied().reduce(min).map_or(CallResult::Null, CallResult::Float),
            },
            script: Script::built("least", &["(x: List<number>): number"]),
            doc: "the smallest element; null of the empty list",
        }
        Greatest {
            name: "greatest", fields: UNARY, takes: &[Takes::NumberList], gives: Element, overflow: Never, finite: Kept,
            meaning: Meaning::Numbers {
                ints: |x| x.iter().max().map_or(CallResult::Null, |x| CallResult::Int(*x)),
                floats: |x| x.iter().copied().reduce(max).map_or(CallResult::Null, CallResult::Float),
            },
            script: Script::built("greatest", &["(x: List<number>): number"]),
            doc: "the largest element; null of the empty list",
        }
        Dot {
            name: "dot", fields: BINARY, takes: &[Takes::Vector, Takes::SameVector], gives: Float, overflow: Never, finite: Lost,
            meaning: Meaning::Vectors(Similarity::Dot),
            script: Script::built("dot", VECTORS),
            doc: "the dot product",
        }
        Cosine {
            name: "cosine", fields: BINARY, takes: &[Takes::Vector, Takes::SameVector], gives: Float, overflow: Never, finite: Lost,
            meaning: Meaning::Vectors(Similarity::Cosine),
            script: Script::built("cosine", VECTORS),
            doc: "the cosine of the angle between `a` and `b`, from -1 to 1; 0 where the length of either is 0",
        }
        L2 {
            name: "l2", fields: BINARY, takes: &[Takes::Vector, Takes::SameVector], gives: Float, overflow: Never, finite: Lost,
            meaning: Meaning::Vectors(Similarity::L2),
            script: Script::built("l2", VECTORS),
            doc: "the distance between `a` and `b`",
        }
    }
    special {
        ConstNumber {
            name: "const_number", fields: &[Field::new("value", Holds::Literal)],
            rule: Rule::Leaf("int or float"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("1.5", &[Export { home: Home::E, name: "const", types: &["(value: number | bigint): number"] }]),
            examples: &[], doc: "the number",
        }
        ConstString {
            name: "const_string", fields: &[Field::new("value", Holds::Literal)],
            rule: Rule::Leaf("string"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("\"text\"", &[Export { home: Home::E, name: "const", types: &["(value: string): string"] }]),
            examples: &[], doc: "the text",
        }
        ConstBool {
            name: "const_bool", fields: &[Field::new("value", Holds::Literal)],
            rule: Rule::Leaf("bool"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("true", &[
                Export { home: Home::E, name: "const", types: &["(value: boolean): boolean"] },
                Export { home: Home::Pred, name: "const", types: &["(value: boolean): boolean"] },
            ]),
            examples: &[], doc: "true or false; also a predicate, where one is expected",
        }
        ConstNull {
            name: "const_null", fields: &[Field::optional("value", Holds::Literal)],
            rule: Rule::Leaf("fits any type"), nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("null", &[Export { home: Home::E, name: "const", types: &["(value: null): null"] }]),
            examples: &[], doc: "null",
        }
        KeyRef {
            name: "key_ref", fields: &[Field::new("key", Holds::Key)],
            rule: Rule::Leaf("the key's type"), nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("Key.score", &[
                Export { home: Home::E, name: "key", types: &["<K extends Expr | AnyArray>(key: KeyArg<K>): ValueOf<K>"] },
            ]),
            examples: &[], doc: "the row's cell; null if the row has no such column",
        }
        ParamRef {
            name: "param_ref", fields: &[Field::new("param", Holds::Param)],
            rule: Rule::Leaf("the parameter's type"), nulls: Own, overflow: Never, finite: Lost,
            script: Script::by_hand("P.weight", &[Export { home: Home::E, name: "param", types: &[
                "(param: ParamOf<number>): number", "(param: ParamOf<string>): string", "(param: ParamOf<boolean>): boolean",
                "<T extends AnyArray>(param: ParamOf<T>): T",
            ] }]),
            examples: &[], doc: "the parameter's value in this run; null if it has none",
        }
        NowMs {
            name: "now_ms", fields: &[],
            rule: Rule::Leaf("int"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("nowMs()", &[
                Export { home: Home::Global, name: "nowMs", types: &["(): number"] },
                Export { home: Home::E, name: "nowMs", types: &["(): number"] },
            ]),
            examples: &[], doc: "the request's time in milliseconds since 1970, one value for the whole run",
        }
        UserId {
            name: "user_id", fields: &[],
            rule: Rule::Leaf("the type of `id`"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("U.id", &[]),
            examples: &[], doc: "the id of the user that the request is for",
        }
        Clamp {
            name: "clamp",
            fields: &[Field::new("x", Holds::Value), Field::new("lo", Holds::Value), Field::new("hi", Holds::Value)],
            rule: Rule::Number, nulls: Pass, overflow: Never, finite: Kept,
            script: Script::function("(x, lo, hi) => Math.min(Math.max(x, lo), hi)"),
            examples: &[(&[9.0, 0.0, 5.0], 5.0), (&[-9.0, 0.0, 5.0], 0.0), (&[1.0, 5.0, 2.0], 2.0), (&[NAN, 0.0, 1.0], NAN)],
            doc: "`min(max(x, lo), hi)`; so `hi` wins where `lo` > `hi`",
        }
        Coalesce {
            name: "coalesce", fields: BINARY,
            rule: Rule::Shared, nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("a ?? b", &[
                Export { home: Home::Global, name: "coalesce", types: COALESCE },
                Export { home: Home::E, name: "coalesce", types: COALESCE },
            ]),
            examples: &[], doc: "`a`, or `b` where `a` is null",
        }
        If {
            name: "if",
            fields: &[Field::new("cond", Holds::Predicate), Field::new("then", Holds::Value), Field::new("else", Holds::Value)],
            rule: Rule::Shared, nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("cond ? a : b", &[Export { home: Home::E, name: "if", types: &[
                "(cond: boolean, then: number | null, other: number | null): number",
                "(cond: boolean, then: string | null, other: string | null): string",
                "(cond: boolean, then: boolean | null, other: boolean | null): boolean",
                "<T extends AnyArray>(cond: boolean, then: T | null, other: T | null): T",
            ] }]),
            examples: &[], doc: "`then` where `cond` is true, `else` where it is not",
        }
        And {
            name: "and", fields: &[Field::new("a", Holds::Predicate), Field::new("b", Holds::Predicate)],
            rule: Rule::Truth("predicates"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("a && b", &[Export { home: Home::Pred, name: "and", types: &["(...conditions: boolean[]): boolean"] }]),
            examples: &[], doc: "both are true",
        }
        Or {
            name: "or", fields: &[Field::new("a", Holds::Predicate), Field::new("b", Holds::Predicate)],
            rule: Rule::Truth("predicates"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("a || b", &[Export { home: Home::Pred, name: "or", types: &["(...conditions: boolean[]): boolean"] }]),
            examples: &[], doc: "at least one is true",
        }
        Not {
            name: "not", fields: &[Field::new("x", Holds::Predicate)],
            rule: Rule::Truth("predicate"), nulls: Never, overflow: Never, finite: Kept,
            script: Script::by_hand("!x", &[Export { home: Home::Pred, name: "not", types: &["(condition: boolean): boolean"] }]),
            examples: &[], doc: "`x` is false",
        }
        Cmp {
            name: "cmp", fields: &[Field::new("cmp", Holds::Comparison), Field::new("a", Holds::Value), Field::new("b", Holds::Value)],
            rule: Rule::Truth("two numbers, strings or bools"), nulls: False, overflow: Never, finite: Kept,
            script: Script::by_hand("a < b", &[Export { home: Home::Pred, name: "cmp", types: &[
                "(cmp: \"==\" | \"!=\" | \"<\" | \"<=\" | \">\" | \">=\", a: Expr, b: Expr): boolean",
            ] }]),
            examples: &[], doc: "neither is null and the comparison of `a` with `b` holds",
        }
        In {
            name: "in", fields: &[Field::new("lhs", Holds::Value), Field::new("list", Holds::List)],
            rule: Rule::Truth("expression; list of literals, key or parameter"), nulls: False, overflow: Never, finite: Kept,
            script: Script::by_hand("[1, 2].includes(x)", &[Export { home: Home::Pred, name: "in", types: &[
                "(x: number, list: readonly (number | bigint)[]): boolean",
                "(x: string, list: readonly string[]): boolean",
                "(x: boolean, list: readonly boolean[]): boolean",
                "(x: number, list: List<number>): boolean",
                "(x: string, list: List<string>): boolean",
            ] }]),
            examples: &[], doc: "`lhs` is not null and equals a value of the list",
        }
        IsNull {
            name: "is_null", fields: UNARY,
            rule: Rule::Truth("expression of any type"), nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("x == null", &[Export { home: Home::Pred, name: "isNull", types: &["(x: Expr | AnyArray): boolean"] }]),
            examples: &[], doc: "`x` is null",
        }
        NotNull {
            name: "not_null", fields: UNARY,
            rule: Rule::Truth("expression of any type"), nulls: Own, overflow: Never, finite: Kept,
            script: Script::by_hand("x != null", &[Export { home: Home::Pred, name: "notNull", types: &["(x: Expr | AnyArray): boolean"] }]),
            examples: &[], doc: "`x` is not null",
        }
        Regex {
            name: "regex",
            fields: &[Field::new("key", Holds::Key), Field::new("pattern", Holds::Pattern), Field::optional("flags", Holds::Flags)],
            rule: Rule::Truth("string key"), nulls: False, overflow: Never, finite: Kept,
            script: Script::by_hand("regex(Key.title, \"^a\")", &[
                Export { home: Home::Global, name: "regex", types: REGEX },
                Export { home: Home::Pred, name: "regex", types: REGEX },
            ]),
            examples: &[], doc: "the cell is not null and the pattern matches a part of it",
        }
    }
}

const COALESCE: &[&str] = &[
    "(...values: (number | null)[]): number",
    "(...values: (string | null)[]): string",
    "(...values: (boolean | null)[]): boolean",
    "<T extends AnyArray>(...values: (T | null)[]): T",
];
const REGEX: &[&str] = &["<K extends string>(key: KeyArg<K>, pattern: string | RegExp, flags?: \"\" | \"i\"): boolean"];

/// The smaller number; NaN if either is, and -0.0 before 0.0, so that the order of operands never shows.
#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    let smaller = if (a < b) | ((a == b) & a.is_sign_negative()) { a } else { b };
    if a.is_nan() { a } else { smaller }
}

#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    let larger = if (a > b) | ((a == b) & a.is_sign_positive()) { a } else { b };
    if a.is_nan() { a } else { larger }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_and_max_do_not_depend_on_operand_order() {
        for (a, b) in [(0.0, -0.0), (NAN, 1.0), (1.0, 2.0), (-INFINITY, 3.0)] {
            assert_eq!(min(a, b).to_bits(), min(b, a).to_bits(), "min {a} {b}");
            assert_eq!(max(a, b).to_bits(), max(b, a).to_bits(), "max {a} {b}");
        }
        assert!(min(-0.0, 0.0).is_sign_negative() && max(-0.0, 0.0).is_sign_positive());
    }
}
