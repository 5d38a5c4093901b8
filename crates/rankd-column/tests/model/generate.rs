//! Random terms, tables and views. Which functions of numbers there are comes from the table of operations.
//!
//! Terms are grown by strategies, a level at a time, so that a failing one shrinks to its smallest part. Tables are large:
//! they are drawn by a small generator from a recipe, and the recipe is what shrinks.

use crate::oracle::Term;
use crate::table::{FIRST_ARRAY, FIRST_MISSING, FIRST_MISSING_ARRAY, KEY_TYPES, PARAM_TYPES, PATTERN_PARAM, Table};
use proptest::prelude::*;
use proptest::sample::select;
use rankd_column::expr::operation::{Gives, Takes};
use rankd_column::expr::{Binary, Call, Compare, Pattern, Unary};
use rankd_column::kernel::sort::Order;
use rankd_column::{Element, Key, List, RowSet, Stop, Type, Value};
use std::sync::Arc;

const TAME_INTS: [i64; 8] = [-7, -2, -1, 0, 1, 2, 3, 10];
pub(crate) const WILD_INTS: [i64; 14] = [
    i64::MIN,
    i64::MIN + 1,
    -(1 << 53) - 1,
    -1,
    0,
    1,
    2,
    3_037_000_500,
    1 << 53,
    (1 << 53) + 1,
    1 << 62,
    i64::MAX - 1024,
    i64::MAX - 1,
    i64::MAX,
];
const TAME_FLOATS: [f64; 10] = [-2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 7.25];
pub(crate) const WILD_FLOATS: [f64; 16] = [
    f64::MIN,
    -9_223_372_036_854_775_808.0,
    -9_007_199_254_740_992.0,
    -1e-300,
    -0.0,
    0.0,
    5e-324,
    0.1,
    0.499_999_999_999_999_94,
    2.5,
    9_007_199_254_740_992.0,
    9_007_199_254_740_994.0,
    9_223_372_036_854_774_784.0,
    9_223_372_036_854_775_808.0,
    1e19,
    f64::MAX,
];
/// By bytes, capitals stand before small letters and U+FFFD before U+10000 (by UTF-16 units it would be after).
pub(crate) const STRINGS: [&str; 16] =
    ["12", "-7.5", "1e3", "ΑΣ", "", "a", "A", "ab", "abc", "aBc", "b", "zz", "é", "ß", "\u{FFFD}", "\u{10000}"];
const PATTERNS: [&str; 9] = ["", "a", "^a", "b$", "a.c", "[A-Z]", "^É", "^$", "(a|z)+b?$"];

/// A source of numbers that gives the same ones every time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(salt: u64) -> Dice {
        Dice(salt)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) rows: usize,
    pub(crate) salt: u64,
    /// Values at the borders of their types.
    pub(crate) wild: bool,
    /// Of ten cells, so many are null.
    pub(crate) nulls: usize,
    /// Few distinct values or many.
    pub(crate) distinct: bool,
}

impl Recipe {
    pub(crate) fn table(self) -> Table {
        let mut dice = Dice::new(self.salt);
        let mut ids: Vec<i64> = (0..self.rows as i64).map(|row| row * 3 - 20).collect();
        for at in (1..ids.len()).rev() {
            ids.swap(at, dice.below(at + 1));
        }
        let spare_strings = STRINGS[..dice.below(4)].to_vec();
        let columns = (1..FIRST_MISSING).chain(FIRST_ARRAY..FIRST_MISSING_ARRAY).map(|key| {
            let nulls = if dice.below(3) == 0 { 0 } else { self.nulls };
            (Key(key), (0..self.rows).map(|_| self.cell(KEY_TYPES[key as usize], nulls, &mut dice)).collect())
        });
        Table { columns: columns.collect(), ids, spare_strings }
    }

    fn cell(self, type_of: Type, nulls: usize, dice: &mut Dice) -> Value {
        if dice.below(10) < nulls {
            return Value::Null;
        }
        match type_of {
            Type::Int if self.distinct && self.wild => Value::Int(dice.bits() as i64),
            Type::Int if self.distinct => Value::Int(dice.below(2000) as i64 - 1000),
            Type::Int if self.wild => Value::Int(dice.one_of(&WILD_INTS)),
            Type::Int => Value::Int(dice.one_of(&TAME_INTS)),
            Type::Float if self.distinct && self.wild => {
                let any = f64::from_bits(dice.bits());
                Value::Float(if any.is_finite() { any } else { -0.0 })
            }
            Type::Float if self.distinct => Value::Float(dice.below(4000) as f64 / 16.0 - 100.0),
            Type::Float if self.wild => Value::Float(dice.one_of(&WILD_FLOATS)),
            Type::Float => Value::Float(dice.one_of(&TAME_FLOATS)),
            Type::Bool => Value::Bool(dice.below(2) == 0),
            Type::Str if self.distinct => Value::str(&format!("{}{}", dice.one_of(&STRINGS), dice.below(300))),
            Type::Str => Value::str(dice.one_of(&STRINGS)),
            Type::List(element) => {
                let count = dice.one_of(&[0, 1, 2, 5]);
                let elements: Vec<Value> = (0..count).map(|_| self.cell(element.type_of(), 0, dice)).collect();
                Value::List(Arc::new(list(element, &elements)))
            }
            Type::Vector(dimension) => {
                let number = |_| (dice.below(4000) as f32 / 16.0 - 100.0) * if self.wild { 1e36 } else { 1.0 };
                Value::Vector((0..dimension).map(number).collect())
            }
        }
    }
}

fn list(element: Element, elements: &[Value]) -> List {
    let wrong = |value: &Value| -> ! { panic!("{value} in a list of {}", element.type_of()) };
    match element {
        Element::Int => List::Int(elements.iter().map(|v| if let Value::Int(v) = v { *v } else { wrong(v) }).collect()),
        Element::Float => {
            List::Float(elements.iter().map(|v| if let Value::Float(v) = v { *v } else { wrong(v) }).collect())
        }
        Element::Str => {
            List::Str(elements.iter().map(|v| if let Value::Str(v) = v { v.clone() } else { wrong(v) }).collect())
        }
    }
}

pub(crate) fn recipe(rows: impl Strategy<Value = usize>) -> impl Strategy<Value = Recipe> {
    (rows, any::<u64>(), any::<bool>(), 0..8usize, any::<bool>())
        .prop_map(|(rows, salt, wild, nulls, distinct)| Recipe { rows, salt, wild, nulls, distinct })
}

/// Few rows, and now and then none or one.
pub(crate) fn few() -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0..2usize, 6 => 2..40usize]
}

/// Around the borders of a chunk, of a block and between one way of sorting and the next, and far beyond them.
pub(crate) fn many() -> impl Strategy<Value = usize> {
    select(vec![15, 16, 17, 63, 64, 65, 199, 200, 201, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 5000])
}

/// Which rows of a table are looked at, and how the view came about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    All,
    Taken(u64),
    /// Some rows in order, as a filter leaves them.
    Kept(u64),
    /// Rows in any order, some of them more than once.
    Drawn(u64),
    DrawnThenTaken(u64),
    Sorted(u64),
}

impl Look {
    pub(crate) fn at(self, rows: &RowSet) -> RowSet {
        let n = rows.len();
        let drawn = |dice: &mut Dice| rows.looking_at((0..n).map(|_| dice.below(n) as u32).collect());
        match self {
            Look::All => rows.clone(),
            Look::Taken(salt) => rows.take(Dice::new(salt).below(n + 2)),
            Look::Kept(salt) => {
                let mut dice = Dice::new(salt);
                rows.looking_at((0..n as u32).filter(|_| dice.below(3) > 0).collect())
            }
            Look::Drawn(salt) => drawn(&mut Dice::new(salt)),
            Look::DrawnThenTaken(salt) => {
                let mut dice = Dice::new(salt);
                drawn(&mut dice).take(dice.below(n + 2))
            }
            Look::Sorted(salt) => {
                let order = if salt % 2 == 0 { Order::Asc } else { Order::Desc };
                rows.sort(Key((salt % 9) as u32), order, Stop::default()).unwrap()
            }
        }
    }
}

pub(crate) fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        Just(Look::All),
        any::<u64>().prop_map(Look::Taken),
        any::<u64>().prop_map(Look::Kept),
        any::<u64>().prop_map(Look::Drawn),
        any::<u64>().prop_map(Look::DrawnThenTaken),
        any::<u64>().prop_map(Look::Sorted),
    ]
}

/// Parameters of the registry's types or null, and now and then too few of them.
pub(crate) fn params() -> impl Strategy<Value = Vec<Value>> {
    let each: Vec<BoxedStrategy<Value>> = PARAM_TYPES
        .iter()
        .enumerate()
        .map(|(param, &type_of)| {
            let known = match param as u32 {
                PATTERN_PARAM => select(PATTERNS.to_vec()).prop_map(Value::str).boxed(),
                _ => literal(type_of),
            };
            prop_oneof![1 => Just(Value::Null), 4 => known].boxed()
        })
        .collect();
    (each, 0..PARAM_TYPES.len() * 4).prop_map(|(mut params, len)| {
        params.truncate(len.max(2));
        params
    })
}

fn literal(type_of: Type) -> BoxedStrategy<Value> {
    match type_of {
        Type::Int => {
            prop_oneof![4 => select(TAME_INTS.to_vec()), 1 => select(WILD_INTS.to_vec())].prop_map(Value::Int).boxed()
        }
        Type::Float => prop_oneof![4 => select(TAME_FLOATS.to_vec()), 1 => select(WILD_FLOATS.to_vec())]
            .prop_map(Value::Float)
            .boxed(),
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Str => select(STRINGS.to_vec()).prop_map(Value::str).boxed(),
        Type::List(element) => prop::collection::vec(literal(element.type_of()), 0..14)
            .prop_map(move |elements| Value::List(Arc::new(list(element, &elements))))
            .boxed(),
        Type::Vector(dimension) => {
            prop::collection::vec(select(vec![-1.5f32, 0.0, 0.1, 1.0, 3e20]), usize::from(dimension))
                .prop_map(|numbers| Value::Vector(numbers.into()))
                .boxed()
        }
    }
}

type Terms = BoxedStrategy<Term>;

/// Terms of every type up to one depth.
#[derive(Clone)]
pub(crate) struct Level {
    pub(crate) int: Terms,
    /// Ints and floats, mixed in every way that gives a number.
    pub(crate) number: Terms,
    pub(crate) bool: Terms,
    pub(crate) str: Terms,
    /// Lists of ints, of floats and of strings.
    lists: [Terms; 3],
    vector: Terms,
    pub(crate) predicate: Terms,
}

impl Level {
    pub(crate) fn deep(depth: usize) -> Level {
        (0..depth).fold(Level::leaves(), |level, _| level.next())
    }

    fn leaves() -> Level {
        let int = leaf(Type::Int);
        let number = prop_oneof![1 => int.clone(), 2 => leaf(Type::Float)].boxed();
        let (bool, str) = (leaf(Type::Bool), leaf(Type::Str));
        let predicate = any::<bool>().prop_map(Term::Truth).boxed();
        let lists = [Element::Int, Element::Float, Element::Str].map(|element| leaf(Type::List(element)));
        Level { int, number, bool, str, lists, vector: leaf(Type::Vector(3)), predicate }
    }

    fn next(&self) -> Level {
        let (int, number) = (&self.int, &self.number);
        let unary_on_ints = Unary::ALL.iter().copied().filter(|op| op.on_ints().is_some()).collect();
        let binary_on_ints = Binary::ALL.iter().copied().filter(|op| op.on_ints().is_some()).collect();
        let of_ints = prop_oneof![
            2 => leaf(Type::Int),
            1 => unary(unary_on_ints, int),
            3 => binary(binary_on_ints, int),
            1 => clamp(int),
            3 => self.branches(int),
            2 => self.calls(Gives::Int),
            1 => self.of_elements(0),
        ];
        let of_numbers = prop_oneof![
            1 => leaf(Type::Float),
            2 => int.clone(),
            2 => unary(Unary::ALL.to_vec(), number),
            4 => binary(Binary::ALL.to_vec(), number),
            1 => clamp(number),
            3 => self.branches(number),
            2 => self.calls(Gives::Float),
            1 => self.of_elements(1),
        ];
        Level {
            int: of_ints.boxed(),
            number: of_numbers.boxed(),
            bool: prop_oneof![leaf(Type::Bool), self.branches(&self.bool)].boxed(),
            str: prop_oneof![
                2 => leaf(Type::Str), 2 => self.branches(&self.str), 2 => self.calls(Gives::Text), 1 => self.of_elements(2),
            ]
            .boxed(),
            lists: [Element::Int, Element::Float, Element::Str].map(|element| {
                prop_oneof![leaf(Type::List(element)), self.branches(&self.lists[element as usize])].boxed()
            }),
            vector: prop_oneof![leaf(Type::Vector(3)), self.branches(&self.vector)].boxed(),
            predicate: self.predicates(),
        }
    }

    /// Every function of the table that gives this, on every operand that it takes.
    fn calls(&self, gives: Gives) -> Terms {
        let calls: Vec<Call> = Call::ALL.iter().copied().filter(|call| call.gives() == gives).collect();
        let level = self.clone();
        let call =
            select(calls).prop_flat_map(move |call| (Just(call), level.operands(call), select(vec!["", "s", "home"])));
        call.prop_map(|(call, operands, salt)| {
            let is_salted = call.operation().fields.iter().any(|field| field.name == "salt");
            Term::Call(call, operands, is_salted.then_some(salt))
        })
        .boxed()
    }

    /// Operands that go together.
    fn operands(&self, call: Call) -> BoxedStrategy<Vec<Term>> {
        let pair = |a: &Terms, b: &Terms| (a.clone(), b.clone()).prop_map(|(a, b)| vec![a, b]).boxed();
        let [ints, floats, texts] = &self.lists;
        match *call.takes() {
            [Takes::TextOrList, Takes::Member] => prop_oneof![
                2 => pair(&self.str, &self.str),
                1 => pair(ints, &self.number),
                1 => pair(floats, &self.number),
                2 => pair(texts, &self.str),
            ]
            .boxed(),
            [Takes::List, Takes::SameList] => {
                prop_oneof![pair(ints, ints), pair(floats, floats), pair(texts, texts)].boxed()
            }
            ref takes => takes.iter().map(|takes| self.operand(*takes)).collect::<Vec<Terms>>().boxed(),
        }
    }

    fn operand(&self, takes: Takes) -> Terms {
        let [ints, floats, _] = &self.lists;
        match takes {
            Takes::Int => self.int.clone(),
            Takes::Text => self.str.clone(),
            Takes::IntOrText => prop_oneof![self.int.clone(), self.str.clone()].boxed(),
            Takes::NumberOrText => prop_oneof![self.number.clone(), self.str.clone()].boxed(),
            Takes::List => self.any_list(),
            Takes::NumberList => prop_oneof![ints.clone(), floats.clone()].boxed(),
            Takes::Vector | Takes::SameVector => self.vector.clone(),
            Takes::SameList | Takes::TextOrList | Takes::Member => panic!("it depends on another operand"),
        }
    }

    fn any_list(&self) -> Terms {
        let [ints, floats, texts] = &self.lists;
        prop_oneof![ints.clone(), floats.clone(), texts.clone()].boxed()
    }

    /// Functions that give an element of such lists, or a number like one.
    fn of_elements(&self, element: usize) -> Terms {
        let takes = |call: &&Call| element < 2 || call.takes()[0] == Takes::List;
        let calls = Call::ALL.iter().filter(|call| call.gives() == Gives::Element).filter(takes);
        let at = (0i64..4).prop_map(|at| Term::Const(Value::Int(at)));
        let index = prop_oneof![at, self.int.clone()];
        (select(calls.copied().collect::<Vec<_>>()), self.lists[element].clone(), index)
            .prop_map(|(call, list, index)| {
                let operands = [list, index].into_iter().take(call.takes().len());
                Term::Call(call, operands.collect(), None)
            })
            .boxed()
    }

    fn branches(&self, values: &Terms) -> Terms {
        let pair = (values.clone(), values.clone()).prop_map(|ab| Term::Coalesce(Box::new(ab)));
        let choice =
            (self.predicate.clone(), values.clone(), values.clone()).prop_map(|parts| Term::If(Box::new(parts)));
        prop_oneof![pair, choice].boxed()
    }

    fn predicates(&self) -> Terms {
        let (all, equality) = (Compare::ALL.to_vec(), vec![Compare::Eq, Compare::Ne]);
        let pair = || (self.predicate.clone(), self.predicate.clone()).prop_map(Box::new);
        let any_value = prop_oneof![self.int.clone(), self.number.clone(), self.bool.clone(), self.str.clone()];
        prop_oneof![
            1 => any::<bool>().prop_map(Term::Truth),
            3 => pair().prop_map(Term::And),
            3 => pair().prop_map(Term::Or),
            2 => self.predicate.clone().prop_map(|x| Term::Not(Box::new(x))),
            6 => compare(all.clone(), &self.number),
            2 => compare(all.clone(), &self.int),
            3 => compare(all, &self.str),
            2 => compare(equality, &self.bool),
            2 => within(&self.number, vec![Type::Int, Type::Float]),
            1 => within(&self.number, vec![Type::Int]),
            1 => within(&self.bool, vec![Type::Bool]),
            2 => within(&self.str, vec![Type::Str]),
            2 => (any_value, any::<bool>()).prop_map(|(x, negated)| Term::Null(Box::new(x), negated)),
            1 => (prop_oneof![self.any_list(), self.vector.clone()], any::<bool>())
                .prop_map(|(x, negated)| Term::Null(Box::new(x), negated)),
            2 => pattern_match(),
            3 => self.calls(Gives::Truth),
        ]
        .boxed()
    }
}

fn leaf(type_of: Type) -> Terms {
    let of_type =
        |types: &[Type]| -> Vec<u32> { (0..).zip(types).filter(|(_, t)| **t == type_of).map(|(at, _)| at).collect() };
    let params = of_type(&PARAM_TYPES[..PATTERN_PARAM as usize]);
    let of_run = vec![Term::NowMs, Term::UserId];
    prop_oneof![
        6 => select(of_type(&KEY_TYPES)).prop_map(Term::Key),
        3 => literal(type_of).prop_map(Term::Const),
        2 => select(params).prop_map(Term::Param),
        1 => Just(Term::Const(Value::Null)),
        1 => select(if type_of == Type::Int { of_run } else { vec![Term::Const(Value::Null)] }),
    ]
    .boxed()
}

fn unary(ops: Vec<Unary>, x: &Terms) -> Terms {
    (select(ops), x.clone()).prop_map(|(op, x)| Term::Unary(op, Box::new(x))).boxed()
}

fn binary(ops: Vec<Binary>, x: &Terms) -> Terms {
    (select(ops), x.clone(), x.clone()).prop_map(|(op, a, b)| Term::Binary(op, Box::new((a, b)))).boxed()
}

fn clamp(x: &Terms) -> Terms {
    (x.clone(), x.clone(), x.clone()).prop_map(|parts| Term::Clamp(Box::new(parts))).boxed()
}

fn compare(ops: Vec<Compare>, x: &Terms) -> Terms {
    (select(ops), x.clone(), x.clone()).prop_map(|(op, a, b)| Term::Compare(op, Box::new((a, b)))).boxed()
}

fn within(x: &Terms, types: Vec<Type>) -> Terms {
    let item = select(types).prop_flat_map(literal);
    (x.clone(), prop::collection::vec(item, 1..5)).prop_map(|(x, list)| Term::In(Box::new(x), list)).boxed()
}

fn pattern_match() -> Terms {
    let pattern = prop_oneof![
        2 => select(PATTERNS.to_vec()).prop_map(|text| Pattern::Literal(text.to_owned())),
        1 => Just(Pattern::Param(PATTERN_PARAM)),
    ];
    (select(vec![7, 8, 12]), pattern, any::<bool>())
        .prop_map(|(key, pattern, ignore_case)| Term::Match { key, pattern, ignore_case })
        .boxed()
}
