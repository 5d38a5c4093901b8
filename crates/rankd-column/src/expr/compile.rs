//! A checked tree flattened into steps, each of which works on a chunk of rows.
//!
//! What does not depend on the row (constants, parameters, whatever is made of them) becomes no step at all: it is computed
//! once a run. Registers are reused as soon as their last reader has read them.

use crate::batch::Key;
use crate::expr::operation::Gives;
use crate::expr::operations::{Binary, Call};
use crate::expr::pattern::{BadLiteral, Literals};
use crate::expr::schedule::Schedule;
use crate::expr::step::{CallOf, Memos, Operand, Placed, Registers, Step, Test};
use crate::expr::tree::{Compare, Ix, Op, Pattern, Tree};
use crate::expr::types::{self, Kind, Schema, TypeError, TypeFault};
use crate::value::{Type, Value};
use regex::Regex;
use std::sync::Arc;

/// What the place of an expression takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A column of this type; ints widen to float.
    Column(Type),
    Predicate,
    /// Any value: for checking an expression that nothing uses yet.
    Value,
}

/// An expression or predicate, ready to run over any row set.
#[derive(Debug)]
pub struct Program {
    pub(super) tree: Tree,
    pub(super) kinds: Vec<Kind>,
    /// By node: whether its value is the same on all rows.
    pub(super) uniform: Vec<bool>,
    /// The nodes that a run settles before any row: those, and patterns that come from parameters.
    pub(super) per_run: Vec<Ix>,
    pub(super) steps: Vec<Placed>,
    pub(super) root: Operand,
    /// The type of the result; `None` for a predicate.
    pub(super) result: Option<Type>,
    pub(super) columns: Vec<Key>,
    pub(super) registers: Registers,
    pub(super) memos: Memos,
    /// Whether regular expressions are matched or lists worked through, which can take long for a single row.
    pub(super) may_take_long: bool,
    /// The literal patterns, by node.
    pub(super) regexes: Vec<(Ix, Arc<Regex>)>,
    /// What the column is called that takes no null: a row whose result is null is an error.
    pub(super) required: Option<Box<str>>,
}

impl Program {
    /// Checks and flattens a tree. All mistakes are found, not just the first.
    pub fn compile(tree: &Tree, schema: &impl Schema, want: Want) -> Result<Program, Vec<TypeError>> {
        Program::compile_with(tree, schema, want, &mut Literals::default())
    }

    /// The same for one of several trees, whose patterns are compiled once and bounded together.
    pub fn compile_with(
        tree: &Tree,
        schema: &impl Schema,
        want: Want,
        literals: &mut Literals,
    ) -> Result<Program, Vec<TypeError>> {
        let mut errors = Vec::new();
        let kinds = types::check(tree, schema, &mut errors);
        let regexes = compile_regexes(tree, literals, &mut errors);
        let root_kind = kinds.last().copied().unwrap_or(Kind::Null);
        let result = match (want, root_kind) {
            (_, Kind::Wrong) | (Want::Predicate, Kind::Predicate) => None,
            (Want::Value, Kind::Value(found)) | (Want::Column(found), Kind::Null) if !found.is_scalar() => {
                errors.push(TypeError { node: root(tree), fault: TypeFault::NotComputed(found) });
                None
            }
            (Want::Column(wanted), Kind::Value(found)) if wanted == found && !found.is_scalar() => {
                errors.push(TypeError { node: root(tree), fault: TypeFault::NotComputed(found) });
                None
            }
            (Want::Column(wanted), Kind::Null) => Some(wanted),
            (Want::Value, Kind::Null) => Some(Type::Float),
            (Want::Value, Kind::Value(found)) => Some(found),
            (Want::Column(Type::Float), Kind::Value(Type::Int)) => Some(Type::Float),
            (Want::Column(wanted), Kind::Value(found)) if wanted == found => Some(wanted),
            (want, found) => {
                let node = root(tree);
                let fault = match want {
                    Want::Column(wanted) => TypeFault::WrongResult { wanted, found },
                    Want::Predicate => TypeFault::Misplaced { wanted: "predicate", found },
                    Want::Value => TypeFault::Misplaced { wanted: "value", found },
                };
                errors.push(TypeError { node, fault });
                None
            }
        };
        if !errors.is_empty() || tree.nodes().is_empty() {
            return Err(errors);
        }
        Ok(Compiler::new(tree, kinds).flatten(result).into_program(result, regexes))
    }

    /// The same program for a column that takes no null: a null result is an error of its row, which names the column.
    pub fn requiring(self, column: &str) -> Program {
        Program { required: Some(column.into()), ..self }
    }

    /// The same program with another number in place of a constant of its tree. Nothing where there is no constant, or the number does not fit.
    pub fn with_number(&self, ix: Ix, number: Value, schema: &impl Schema) -> Option<Program> {
        let mut tree = self.tree.clone();
        if !matches!(tree.nodes().get(ix as usize)?.op, Op::Const(Value::Int(_) | Value::Float(_))) {
            return None;
        }
        tree.replace(ix, Op::Const(number));
        let want = self.result.map_or(Want::Predicate, Want::Column);
        let program = Program::compile(&tree, schema, want).ok()?;
        Some(Program { required: self.required.clone(), ..program })
    }

    /// The type of the column that `compute` makes; `None` for a predicate.
    pub fn result(&self) -> Option<Type> {
        self.result
    }

    /// The expression as its author wrote it.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Where node `ix` was written.
    pub fn source(&self, ix: Ix) -> Option<u32> {
        self.tree.nodes()[ix as usize].source
    }

    pub fn keys(&self) -> Vec<Key> {
        self.tree.keys()
    }

    /// The parameters that the program reads as regular expressions.
    pub fn pattern_params(&self) -> impl Iterator<Item = u32> + '_ {
        self.tree.nodes().iter().filter_map(|node| match node.op {
            Op::Match { pattern: Pattern::Param(param), .. } => Some(param),
            _ => None,
        })
    }

    /// Whether the program reads the request's time.
    pub fn reads_now(&self) -> bool {
        self.tree.nodes().iter().any(|node| node.op == Op::NowMs)
    }

    /// The parameters that the program reads, each once.
    pub fn params(&self) -> Vec<u32> {
        let mut params: Vec<u32> = self
            .tree
            .nodes()
            .iter()
            .filter_map(|node| match node.op {
                Op::Param(param) | Op::Match { pattern: Pattern::Param(param), .. } => Some(param),
                _ => None,
            })
            .collect();
        params.sort_unstable();
        params.dedup();
        params
    }
}

fn root(tree: &Tree) -> Ix {
    (tree.nodes().len() as Ix).saturating_sub(1)
}

fn compile_regexes(tree: &Tree, literals: &mut Literals, errors: &mut Vec<TypeError>) -> Vec<(Ix, Arc<Regex>)> {
    let mut regexes = Vec::new();
    for (ix, node) in tree.nodes().iter().enumerate() {
        if let Op::Match { pattern: Pattern::Literal(pattern), ignore_case, .. } = &node.op {
            match literals.compile(pattern, *ignore_case) {
                Ok(regex) => regexes.push((ix as Ix, regex)),
                Err(BadLiteral::Pattern(why)) => {
                    errors.push(TypeError { node: ix as Ix, fault: TypeFault::BadRegex(why) });
                }
                Err(BadLiteral::Together) => {
                    errors.push(TypeError { node: ix as Ix, fault: TypeFault::TooManyRegexes })
                }
            }
        }
    }
    regexes
}

/// The register file that a value lives in. A predicate has its own: it is never null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    Typed(Type),
    Mask,
}

/// The registers of one file, and which of them are free.
#[derive(Default)]
pub(super) struct Pool {
    free: Vec<u32>,
    /// By register: how many times it is still to be read.
    pub(super) readers: Vec<u32>,
}

impl Pool {
    /// A register for a value that is read once.
    fn take(&mut self) -> u32 {
        let register = self.free.pop().unwrap_or(self.readers.len() as u32);
        match self.readers.get_mut(register as usize) {
            Some(readers) => *readers = 1,
            None => self.readers.push(1),
        }
        register
    }

    pub(super) fn read(&mut self, register: u32) {
        let readers = &mut self.readers[register as usize];
        *readers -= 1;
        if *readers == 0 {
            self.free.push(register);
        }
    }
}

/// An operand and the file to give its register back to.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) operand: Operand,
    pub(super) file: File,
}

pub(super) struct Compiler<'a> {
    tree: &'a Tree,
    kinds: Vec<Kind>,
    uniform: Vec<bool>,
    operands: Vec<Operand>,
    pub(super) steps: Vec<Placed>,
    columns: Vec<Key>,
    pools: [Pool; 7],
    memos: Memos,
}

impl<'a> Compiler<'a> {
    fn new(tree: &'a Tree, kinds: Vec<Kind>) -> Compiler<'a> {
        let mut uniform: Vec<bool> = Vec::with_capacity(kinds.len());
        for (node, kind) in tree.nodes().iter().zip(&kinds) {
            let same = match &node.op {
                Op::Key(_) | Op::Match { .. } => false,
                op => *kind == Kind::Null || op.children().all(|child| uniform[child as usize]),
            };
            uniform.push(same);
        }
        let operands = (0..kinds.len() as Ix).map(Operand::Uniform).collect();
        let (steps, columns, pools) = Default::default();
        Compiler { tree, kinds, uniform, operands, steps, columns, pools, memos: Memos::default() }
    }

    fn flatten(mut self, result: Option<Type>) -> Self {
        let schedule = Schedule::of(self.tree, &self.uniform);
        for ix in schedule.nodes {
            let operand = self.place(ix);
            self.operands[ix as usize] = operand;
            if let (Operand::Register(register), readers @ 1..) = (operand, schedule.readers[ix as usize]) {
                let file = self.held(ix).file;
                self.pool(file).readers[register as usize] = readers;
            }
        }
        if let Some(type_of) = result {
            let root = self.held(self.kinds.len() as Ix - 1);
            let root = self.seen_as(root, type_of);
            self.operands.push(root.operand);
        }
        self
    }

    fn into_program(self, result: Option<Type>, regexes: Vec<(Ix, Arc<Regex>)>) -> Program {
        let [ints, floats, bools, symbols, lists, vectors, masks] = self.pools.map(|pool| pool.readers.len() as u32);
        let per_run = |ix: &Ix| {
            let by_param = matches!(self.tree.op(*ix), Op::Match { pattern: Pattern::Param(_), .. });
            self.uniform[*ix as usize] || by_param
        };
        Program {
            per_run: (0..self.kinds.len() as Ix).filter(per_run).collect(),
            may_take_long: self.steps.iter().any(|placed| placed.step.may_take_long()),
            root: self.operands[self.operands.len() - 1],
            tree: self.tree.clone(),
            kinds: self.kinds,
            uniform: self.uniform,
            steps: self.steps,
            result,
            columns: self.columns,
            registers: Registers { ints, floats, bools, symbols, lists, vectors, masks },
            memos: self.memos,
            regexes,
            required: None,
        }
    }

    /// Adds the steps of a node whose value differs by row.
    fn place(&mut self, ix: Ix) -> Operand {
        match self.tree.op(ix) {
            // These never differ by row, so `flatten` does not come here with them.
            Op::Const(_) | Op::Param(_) | Op::NowMs | Op::UserId | Op::Truth(_) => Operand::Uniform(ix),
            Op::Key(key) => self.column(*key),
            Op::Unary(op, x) => {
                let type_of = self.type_of(ix);
                let x = self.typed(*x, type_of);
                let step = match op.on_ints().filter(|_| type_of == Type::Int) {
                    Some(op) => Step::IntUnary(op, x.operand),
                    None => Step::FloatUnary(*op, x.operand),
                };
                self.emit(File::Typed(type_of), step, &[x])
            }
            Op::Binary(op, a, b) => {
                let type_of = self.type_of(ix);
                let (a, b) = (self.typed(*a, type_of), self.typed(*b, type_of));
                self.arithmetic(*op, type_of, a, b).operand
            }
            Op::Clamp { x, lo, hi } => {
                let type_of = self.type_of(ix);
                let (x, lo, hi) = (self.typed(*x, type_of), self.typed(*lo, type_of), self.typed(*hi, type_of));
                let raised = self.arithmetic(Binary::Max, type_of, x, lo);
                self.arithmetic(Binary::Min, type_of, raised, hi).operand
            }
            Op::Coalesce(a, b) => {
                let type_of = self.type_of(ix);
                let (a, b) = (self.typed(*a, type_of), self.typed(*b, type_of));
                self.emit(File::Typed(type_of), Step::Coalesce(type_of, a.operand, b.operand), &[a, b])
            }
            Op::If { cond, then, other } => {
                let type_of = self.type_of(ix);
                let (cond, a, b) = (self.held(*cond), self.typed(*then, type_of), self.typed(*other, type_of));
                let step = Step::If(type_of, cond.operand, a.operand, b.operand);
                self.emit(File::Typed(type_of), step, &[cond, a, b])
            }
            Op::Call { call, a, b, .. } => self.call(ix, *call, *a, *b),
            Op::And(a, b) => {
                let (a, b) = (self.held(*a), self.held(*b));
                self.emit_test(Test::And(a.operand, b.operand), &[a, b])
            }
            Op::Or(a, b) => {
                let (a, b) = (self.held(*a), self.held(*b));
                self.emit_test(Test::Or(a.operand, b.operand), &[a, b])
            }
            Op::Not(x) => {
                let x = self.held(*x);
                self.emit_test(Test::Not(x.operand), &[x])
            }
            Op::Compare(compare, a, b) => self.compare(*compare, *a, *b),
            Op::In(x, list) => self.list(*x, list),
            Op::Null { x, negated } => {
                let (type_of, x) = (self.type_of(*x), self.held(*x));
                self.emit_test(Test::IsNull(type_of, x.operand, *negated), &[x])
            }
            Op::Match { key, .. } => {
                let (x, memo) = (self.column(*key), self.memo());
                self.emit_test(Test::Match { x, node: ix, memo }, &[])
            }
        }
    }

    fn arithmetic(&mut self, op: Binary, type_of: Type, a: Held, b: Held) -> Held {
        let sum = (op == Binary::Add && type_of == Type::Float).then(|| self.sum_of_products(a, b)).flatten();
        if let Some(operand) = sum {
            return Held { operand, file: File::Typed(Type::Float) };
        }
        let step = match op.on_ints().filter(|_| type_of == Type::Int) {
            Some(op) => Step::IntBinary(op, a.operand, b.operand),
            None => Step::FloatBinary(op, a.operand, b.operand),
        };
        let file = File::Typed(type_of);
        Held { operand: self.emit(file, step, &[a, b]), file }
    }

    fn compare(&mut self, compare: Compare, a: Ix, b: Ix) -> Operand {
        let (left, right) = (self.held(a), self.held(b));
        let (x, y) = (left.operand, right.operand);
        let test = match (self.compared_as(a, b), self.compared_as(b, a)) {
            (Type::Int, Type::Int) => Test::CompareInts(compare, x, y),
            (Type::Int, Type::Float) => Test::CompareIntFloat(compare, x, y),
            (Type::Float, Type::Int) => Test::CompareIntFloat(mirrored(compare), y, x),
            (Type::Float, _) => Test::CompareFloats(compare, x, y),
            (Type::Bool, _) => Test::CompareBools(compare, x, y),
            (Type::Str, _) => match (x, y) {
                (x, Operand::Uniform(text)) => Test::CompareText { compare, x, text, memo: self.memo() },
                (Operand::Uniform(text), y) => {
                    Test::CompareText { compare: mirrored(compare), x: y, text, memo: self.memo() }
                }
                (x, y) => Test::CompareStrings(compare, x, y),
            },
            // The checks refuse to compare an int with these, and a list or vector with anything.
            (Type::Int, Type::Bool | Type::Str | Type::List(_) | Type::Vector(_))
            | (Type::List(_) | Type::Vector(_), _) => Test::CompareInts(compare, x, y),
        };
        self.emit_test(test, &[left, right])
    }

    /// The type that `x` is compared as: its own, or the other side's where it is null or an int that a float holds exactly.
    fn compared_as(&self, x: Ix, other: Ix) -> Type {
        match (self.kinds[x as usize], self.kinds[other as usize], self.tree.op(x)) {
            (Kind::Value(Type::Int), Kind::Value(Type::Float), Op::Const(Value::Int(v)))
                if v.unsigned_abs() <= 1 << 53 =>
            {
                Type::Float
            }
            (Kind::Value(type_of), ..) | (_, Kind::Value(type_of), _) => type_of,
            _ => Type::Float,
        }
    }

    fn list(&mut self, x: Ix, list: &[Value]) -> Operand {
        let (type_of, x) = (self.type_of(x), self.held(x));
        let test = match type_of {
            Type::Int => Test::InInts(x.operand, list.iter().filter_map(exact_int).collect()),
            Type::Float => Test::InFloats(x.operand, list.iter().filter_map(exact_float).map(float_bits).collect()),
            Type::Bool => Test::InBools(x.operand, [false, true].map(|v| list.contains(&Value::Bool(v)))),
            Type::Str => {
                let texts = list.iter().filter_map(|item| match item {
                    Value::Str(text) => Some(text.clone()),
                    _ => None,
                });
                Test::InStrings { x: x.operand, set: texts.collect(), memo: self.memo() }
            }
            // The checks refuse these.
            Type::List(_) | Type::Vector(_) => Test::InBools(x.operand, [false; 2]),
        };
        self.emit_test(test, &[x])
    }

    fn call(&mut self, node: Ix, call: Call, a: Ix, b: Option<Ix>) -> Operand {
        let (x, y) = (self.held(a), b.map(|b| self.held(b)));
        let (a, b) = (x.operand, y.map(|y| y.operand));
        let used = [x, y.unwrap_or(x)];
        let used = &used[..1 + usize::from(y.is_some())];
        if let (Gives::Truth, Some(b)) = (call.gives(), b) {
            let test = match (x.file, y.map(|y| y.file)) {
                (File::Typed(Type::List(element)), Some(File::Typed(of))) => {
                    Test::Member { list: a, element, x: b, of }
                }
                _ => Test::Texts { node, a, b, memo: self.memo() },
            };
            return self.emit_test(test, used);
        }
        let of = match x.file {
            File::Typed(Type::Int) => CallOf::Ints(a),
            File::Typed(Type::Float) => CallOf::Floats(a),
            File::Typed(Type::List(_)) => CallOf::Lists { a, b },
            File::Typed(Type::Vector(_)) => CallOf::Vectors { a, b: b.unwrap_or(a) },
            // The checks refuse bools and predicates.
            File::Typed(Type::Str | Type::Bool) | File::Mask => {
                self.memos.texts += 1;
                CallOf::Texts { a, b, memo: self.memos.texts - 1 }
            }
        };
        let gives = self.type_of(node);
        self.emit(File::Typed(gives), Step::Call { gives, node, of }, used)
    }

    fn column(&mut self, key: Key) -> Operand {
        let slot = self.columns.iter().position(|&known| known == key).unwrap_or_else(|| {
            self.columns.push(key);
            self.columns.len() - 1
        });
        Operand::Column(slot as u32)
    }

    fn memo(&mut self) -> u32 {
        self.memos.tests += 1;
        self.memos.tests - 1
    }

    /// The type of a node that differs by row and gives a value. Such a node is never of kind null.
    fn type_of(&self, ix: Ix) -> Type {
        match self.kinds[ix as usize] {
            Kind::Value(type_of) => type_of,
            _ => Type::Float,
        }
    }

    fn held(&self, ix: Ix) -> Held {
        let file = match self.kinds[ix as usize] {
            Kind::Predicate => File::Mask,
            _ => File::Typed(self.type_of(ix)),
        };
        Held { operand: self.operands[ix as usize], file }
    }

    fn typed(&mut self, ix: Ix, type_of: Type) -> Held {
        let held = self.held(ix);
        self.seen_as(held, type_of)
    }

    /// Widens an int that differs by row; what is the same on all rows is widened where it is read.
    fn seen_as(&mut self, held: Held, type_of: Type) -> Held {
        if type_of != Type::Float || held.file != File::Typed(Type::Int) || matches!(held.operand, Operand::Uniform(_))
        {
            return held;
        }
        let file = File::Typed(Type::Float);
        Held { operand: self.emit(file, Step::Widen(held.operand), &[held]), file }
    }

    /// Adds a step. Its register is taken before those of its operands are given back, so a step never writes what it reads.
    fn emit(&mut self, file: File, step: Step, used: &[Held]) -> Operand {
        let register = self.pool(file).take();
        for held in used {
            if let Operand::Register(used) = held.operand {
                self.pool(held.file).read(used);
            }
        }
        self.steps.push(Placed { step, register });
        Operand::Register(register)
    }

    /// The same for a step whose result is true or false.
    fn emit_test(&mut self, test: Test, used: &[Held]) -> Operand {
        self.emit(File::Mask, Step::Test(test), used)
    }

    pub(super) fn pool(&mut self, file: File) -> &mut Pool {
        let at = match file {
            File::Typed(Type::Int) => 0,
            File::Typed(Type::Float) => 1,
            File::Typed(Type::Bool) => 2,
            File::Typed(Type::Str) => 3,
            File::Typed(Type::List(_)) => 4,
            File::Typed(Type::Vector(_)) => 5,
            File::Mask => 6,
        };
        &mut self.pools[at]
    }
}

fn mirrored(compare: Compare) -> Compare {
    match compare {
        Compare::Lt => Compare::Gt,
        Compare::Le => Compare::Ge,
        Compare::Gt => Compare::Lt,
        Compare::Ge => Compare::Le,
        same => same,
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// The int equal to a number, if there is one: nothing else in a list can equal an int.
pub(super) fn exact_int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(v) => Some(*v),
        Value::Float(v) if v.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(v) => Some(*v as i64),
        _ => None,
    }
}

/// The float equal to a number, if there is one.
pub(super) fn exact_float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(v) if !v.is_nan() => Some(*v),
        Value::Int(v) if exact_int(&Value::Float(*v as f64)) == Some(*v) => Some(*v as f64),
        _ => None,
    }
}

/// Equal floats have equal bits: -0.0 counts as 0.0.
pub(super) fn float_bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}
