//! A node's parameters as text: each by itself, and the gist of them in one line. Every text is bounded.

use rankd_column::expr::Program;
use rankd_column::kernel::slots::SlotPlaces;
use rankd_column::kernel::sort::{NullPlace, Order};
use rankd_column::{Key, Value};
use rankd_engine::why::expression_text;
use rankd_plan::Registry;
use rankd_plan::plan::{Arg, AskedVector, ColumnData, Generator, MadeOf, Node, Plan};
use rankd_plan::template::TemplatePart;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The most characters of one parameter, and the most items of a list that are shown.
const TEXT_MAX: usize = 400;
const ITEMS_MAX: usize = 12;

/// What the parameters of a plan's nodes are called.
pub(super) struct Arguments<'a> {
    pub(super) plan: &'a Plan,
    pub(super) registry: &'a Registry,
    /// By program: nodes may share a large one.
    expressions: RefCell<HashMap<*const Program, Arc<str>>>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(plan: &'a Plan, registry: &'a Registry) -> Arguments<'a> {
        Arguments { plan, registry, expressions: RefCell::default() }
    }

    /// The parameters that were given, with their names.
    pub(super) fn all(&self, node: &Node) -> Vec<(&'static str, String)> {
        let params = node.signature.contract.params.iter().zip(&node.args);
        params.filter_map(|(param, arg)| Some((param.name, self.text(node, arg)?))).collect()
    }

    /// The expression that a node is about, or else its parameters in short. Where rows come from is told by lines, and endpoints come last.
    pub(super) fn gist(&self, node: &Node) -> String {
        let contract = node.signature.contract;
        let given = || contract.params.iter().zip(&node.args);
        let written = given().find_map(|(param, arg)| match arg {
            Arg::Key(key) if contract.writes_to(param) => Some(self.key(*key)),
            _ => None,
        });
        for (_, arg) in given() {
            match (arg, written) {
                (Arg::Expr(program), Some(key)) => return format!("{key} = {}", self.expression(program)),
                (Arg::Expr(program) | Arg::Pred(program), _) => return self.expression(program).to_string(),
                (Arg::Exprs(_), _) => return self.text(node, arg).unwrap_or_default(),
                _ => {}
            }
        }
        let is_line = |arg: &Arg| matches!(arg, Arg::Node(_) | Arg::Reserves(_));
        let named = given().filter(|(_, arg)| !is_line(arg) && arg.endpoint().is_none());
        let named = named.filter_map(|(param, arg)| Some(format!("{} {}", param.name, self.text(node, arg)?)));
        let endpoints = node.args.iter().filter(|arg| arg.endpoint().is_some());
        named.chain(endpoints.filter_map(|arg| self.text(node, arg))).collect::<Vec<_>>().join(", ")
    }

    /// An expression as plans write it.
    pub(super) fn expression(&self, program: &Arc<Program>) -> Arc<str> {
        let make = || expression_text(program, self.registry, TEXT_MAX).into();
        self.expressions.borrow_mut().entry(Arc::as_ptr(program)).or_insert_with(make).clone()
    }

    fn key(&self, key: Key) -> &'a str {
        &self.registry.key(key).name
    }

    fn node(&self, node: &Node, input: usize) -> String {
        let ix = node.inputs.get(input).and_then(|ix| self.plan.nodes.get(*ix as usize));
        ix.map_or_else(String::new, |input| input.id.to_string())
    }

    /// One parameter. Nothing where it was not given.
    fn text(&self, node: &Node, arg: &Arg) -> Option<String> {
        let text = match arg {
            Arg::Absent => return None,
            Arg::Int(value) => value.to_string(),
            Arg::Dial(dial) => match dial.fixed() {
                Some(value) => value.to_string(),
                None => self.dial(dial.at(&[]), node, arg),
            },
            Arg::Float(value) => value.to_string(),
            Arg::Bool(value) => value.to_string(),
            Arg::Text(text) => text.to_string(),
            Arg::Texts(texts) => listed(texts, |text| text.to_string()),
            Arg::Numbers(numbers) => listed(numbers, f64::to_string),
            Arg::Template(template) => listed_with("", template.parts(), |part| match part {
                TemplatePart::Text(text) => text.replace('{', "{{").replace('}', "}}"),
                TemplatePart::Id => "{id}".to_owned(),
                TemplatePart::UserId => "{user_id}".to_owned(),
                TemplatePart::Param(at) => format!("{{P.{}}}", self.registry.params.get(*at).name),
                TemplatePart::Key(key) => format!("{{{}}}", self.key(*key)),
            }),
            Arg::Endpoint(at) => self.registry.endpoints.get(*at).name.clone(),
            Arg::Model(model) => self.registry.models.get(model.model).name.clone(),
            Arg::Key(key) => self.key(*key).to_owned(),
            Arg::Keys(keys) => listed(keys, |key| self.key(*key).to_owned()),
            Arg::KeyMap(keys) => listed(keys, |(name, key)| format!("{name}: {}", self.key(*key))),
            Arg::KeyPairs(pairs) => listed(pairs, |pair| format!("{} = {}", self.key(pair.left), self.key(pair.right))),
            Arg::KeyChoices(choices) => listed(choices, |(key, word)| format!("{}: {word}", self.key(*key))),
            Arg::Aggregates(list) => listed(list, |made| self.made(made)),
            Arg::Rules(rules) => listed(rules, |rule| match rule.window {
                0 => format!("{}: {}", self.key(rule.by), rule.max),
                window => format!("{}: {} in {window}", self.key(rule.by), rule.max),
            }),
            Arg::SortKeys(keys) => listed(keys, |by| {
                let order = if by.order == Order::Asc { "asc" } else { "desc" };
                let nulls = if by.nulls == NullPlace::First { ", nulls first" } else { "" };
                format!("{} {order}{nulls}", self.key(by.key))
            }),
            Arg::On(pair) => format!("{} = {}", self.key(pair.left), self.key(pair.right)),
            Arg::Expr(program) | Arg::Pred(program) | Arg::TablePred(program) => self.expression(program).to_string(),
            Arg::AskedVector(AskedVector::Param(at)) => format!("P.{}", self.registry.params.get(*at).name),
            Arg::AskedVector(AskedVector::Key(key)) | Arg::TableKey(key) => self.key(*key).to_owned(),
            Arg::Exprs(list) => {
                listed_with("; ", list, |(key, program)| format!("{} = {}", self.key(*key), self.expression(program)))
            }
            Arg::Node(input) => self.node(node, *input),
            Arg::Reserves(count) => {
                let first = node.inputs.len().saturating_sub(*count);
                listed(&(first..node.inputs.len()).collect::<Vec<_>>(), |input| self.node(node, *input))
            }
            Arg::Fills(fills) => listed(fills, |fill| {
                let places = match &fill.places {
                    SlotPlaces::At(places) => format!("at {}", listed(places, usize::to_string)),
                    SlotPlaces::Every(every) => format!("every {every}"),
                };
                format!("{} {places}", self.node(node, fill.input))
            }),
            Arg::Ids(ids) => listed(ids, |id| id.to_string()),
            Arg::Param(at) => format!("P.{}", self.registry.params.get(*at).name),
            Arg::Columns(columns) => listed(columns, |(key, data)| format!("{} {}", self.key(*key), column(data))),
        };
        Some(shortened(&text, TEXT_MAX))
    }

    /// A number that follows the load: what it is at rest, and the least that it becomes.
    fn dial(&self, first: i64, node: &Node, arg: &Arg) -> String {
        let of_node = node.args.iter().position(|other| std::ptr::eq(other, arg));
        let name = of_node.and_then(|at| node.signature.contract.params.get(at)).map(|param| param.name);
        let is_it = |ix: u32| self.plan.nodes.get(ix as usize).is_some_and(|other| std::ptr::eq(other, node));
        let dial = self.plan.dials.iter().find(|dial| Some(dial.param) == name && is_it(dial.node));
        dial.map_or_else(|| first.to_string(), |dial| format!("{} to {}", dial.min, dial.first))
    }

    fn made(&self, made: &MadeOf) -> String {
        let of = made.of.map_or_else(String::new, |key| self.key(key).to_owned());
        format!("{} = {}({of})", self.key(made.into), made.word)
    }
}

fn column(data: &ColumnData) -> String {
    match data {
        ColumnData::Values(values) => format!("[{}]", listed(values, Value::to_string)),
        ColumnData::Generated(Generator::Sequence { start, step }) => format!("sequence from {start} by {step}"),
        ColumnData::Generated(Generator::Hash { seed, modulus }) => format!("hash of {seed} below {modulus}"),
        ColumnData::Generated(Generator::Cycle { values }) => {
            format!("cycle of [{}]", listed(values, Value::to_string))
        }
    }
}

fn listed<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    listed_with(", ", items, text)
}

fn listed_with<T>(between: &str, items: &[T], text: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = items.iter().take(ITEMS_MAX).map(|item| shortened(&text(item), TEXT_MAX)).collect();
    let more = if items.len() > shown.len() { "…" } else { "" };
    format!("{}{more}", shown.join(between))
}

fn shortened(text: &str, text_max: usize) -> String {
    match text.char_indices().nth(text_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
