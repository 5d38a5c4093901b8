//! A node's parameters against its task's declaration: known, complete, of the right type and in range.

use crate::check::literals::{generator, values};
use crate::check::names::Access;
use crate::check::tables::Tables;
use crate::check::{Checker, Data, Draft, node_args, template, uses};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::{Fault, Kind, Number, Reader, segment};
use crate::limits::{
    EXPRS_MAX, LABEL_BYTES_MAX, LITERAL_ROWS_MAX, LITERAL_VALUES_MAX, MADE_CELLS_MAX, MAP_NAME_BYTES_MAX,
    RULE_ROWS_MAX, TEXTS_MAX, WEIGHT_MAX, WEIGHT_MIN,
};
use crate::plan::{Arg, AskedVector, ColumnData, Dial, KeyPrograms, NodeIx, PlanDial};
use crate::signature::{
    Contract, KeyTypes, Literal, Need, Param, ParamKind, ParamRef, Signature, TEXT_BYTES_MAX, TRACE, is_plain,
};
use crate::wire::cursor::Cursor;
use rankd_column::id::check_id;
use rankd_column::{Element, Id, Key, Type, Value};
use std::sync::Arc;

/// Reads the parameters of node `at` into its draft.
pub(super) fn read(
    checker: &Checker<'_>,
    at: usize,
    signature: Signature,
    tables: &mut Tables<'_>,
    draft: &mut Draft,
    found: &mut Diagnostics,
) {
    let Signature { op, contract, .. } = signature;
    let node = &checker.wire.nodes[at];
    let base = format!("/nodes/{at}/params");
    for (name, text) in &node.params {
        let pointer = format!("{base}/{}", segment(name));
        if name == TRACE {
            let mut cursor = Cursor::new(text, pointer, found);
            draft.label = cursor.text().ok().flatten().map(|label| label.into_owned());
            if draft.label.as_ref().is_some_and(|label| label.len() > LABEL_BYTES_MAX) {
                cursor.report(Code::ParamOutOfRange, format!("{TRACE} has at most {LABEL_BYTES_MAX} bytes"));
            }
        } else if contract.params.iter().all(|param| param.name != name) {
            let message = format!("{op} has no parameter {}", quoted(name));
            let unknown = Diagnostic::new(Code::UnknownTaskParam, pointer, message);
            found.push(unknown.nearest(name, contract.params.iter().map(|param| param.name)));
        }
    }
    let has_input = !node.inputs.is_empty();
    let given = node.params.iter().map(|(name, _)| name.as_ref()).collect();
    let mut reading = Reading { checker, at: at as NodeIx, contract, given, tables, draft, base, has_input };
    for param in contract.params {
        let given = node.params.iter().find(|(name, _)| name == param.name);
        let arg = match (given, &param.need) {
            (Some((_, text)), _) => reading.value(param, text, found),
            (None, Need::Optional) => Some(Arg::Absent),
            (None, Need::Default(Literal::Int(value))) => Some(Arg::Int(*value)),
            (None, Need::Default(Literal::Float(value))) => Some(Arg::Float(*value)),
            (None, Need::Default(Literal::Bool(value))) => Some(Arg::Bool(*value)),
            (None, Need::Default(Literal::Text(value))) => Some(Arg::Text((*value).into())),
            (None, Need::Required) => {
                let message = format!("{op} needs the parameter {:?} ({})", param.name, param.kind.name());
                found.push(Diagnostic::new(Code::MissingTaskParam, reading.base.clone(), message));
                None
            }
        };
        reading.draft.args.push(arg);
    }
    reading.count_cells(found);
    let is_given = |name: &str| node.params.iter().any(|(given, _)| given == name);
    uses::check(signature, &reading.draft.args, is_given, has_input, checker.names.registry, &reading.base, found);
}

/// A node whose parameters are being read. Those that name keys are in `key_args`.
pub(super) struct Reading<'c, 'a, 't, 'd> {
    pub(super) checker: &'c Checker<'a>,
    at: NodeIx,
    pub(super) contract: &'static Contract,
    /// The parameters that the plan gives.
    given: Vec<&'c str>,
    tables: &'c mut Tables<'t>,
    pub(super) draft: &'d mut Draft,
    base: String,
    /// Whether the node has rows to work on.
    has_input: bool,
}

impl Reading<'_, '_, '_, '_> {
    /// The value of a parameter; `None` where something about it was reported.
    fn value(&mut self, param: &'static Param, text: &str, found: &mut Diagnostics) -> Option<Arg> {
        let pointer = format!("{}/{}", self.base, param.name);
        // The text was read once already, so it cannot fail to be JSON now.
        self.decode(param, text, pointer, found).ok().flatten()
    }

    fn decode(
        &mut self,
        param: &'static Param,
        text: &str,
        pointer: String,
        found: &mut Diagnostics,
    ) -> Result<Option<Arg>, Fault> {
        let (kind, row) = (Reader::new(text, usize::MAX).peek()?, param.kind.row());
        if !row.json.contains(&kind) {
            let message = format!("{} takes {}, not {}", param.name, row.name, kind.name());
            found.push(Diagnostic::new(Code::WrongParamType, pointer, message));
            return Ok(None);
        }
        let mut cursor = Cursor::new(text, pointer, found);
        Ok(match param.kind {
            ParamKind::Endpoint(kinds) => self.checker.names.endpoint(&mut cursor, kinds)?.map(Arg::Endpoint),
            ParamKind::Int { min, max } => int(&mut cursor, param, min, max)?.map(Arg::Int),
            ParamKind::Dial { min, max } => match kind {
                Kind::Object => self.dial(&mut cursor, param, min, max)?.map(Arg::Dial),
                _ => int(&mut cursor, param, min, max)?.map(Arg::Int),
            },
            ParamKind::Float { min, max } => float(&mut cursor, param, min, max)?.map(Arg::Float),
            ParamKind::Bool => cursor.bool()?.map(Arg::Bool),
            ParamKind::Text => plain_text(&mut cursor, param.name)?.map(Arg::Text),
            ParamKind::Texts => texts(&mut cursor, param)?.map(Arg::Texts),
            ParamKind::PerInput { whole } => self.per_input(&mut cursor, param, whole)?.map(Arg::Numbers),
            ParamKind::Template => {
                let template = template::read(&self.checker.names, &mut cursor, self.has_input)?;
                template.map(|template| Arg::Template(Arc::new(template)))
            }
            ParamKind::Path => {
                let template = template::read_path(&self.checker.names, &mut cursor, self.has_input)?;
                template.map(|template| Arg::Template(Arc::new(template)))
            }
            ParamKind::Pointer => pointer_text(&mut cursor, param.name)?.map(Arg::Text),
            ParamKind::Choice(choices) => {
                let text = cursor.text()?.unwrap_or_default();
                let choice = choices.iter().find(|choice| **choice == text);
                if choice.is_none() {
                    let message = format!("{} is one of {}, not {}", param.name, choices.join(", "), quoted(&text));
                    let wrong = Diagnostic::new(Code::ParamOutOfRange, cursor.pointer(), message);
                    cursor.report_at(wrong.nearest(&text, choices.iter().copied()));
                }
                choice.map(|choice| Arg::Text((*choice).into()))
            }
            ParamKind::Model => self.checker.names.model(&mut cursor)?.map(Arg::Model),
            ParamKind::Key(types) => self.key(&mut cursor, param, types)?.map(Arg::Key),
            ParamKind::Keys(types) => self.keys(&mut cursor, param, types)?.map(Arg::Keys),
            ParamKind::KeyMap => self.key_map(&mut cursor, param)?.map(Arg::KeyMap),
            ParamKind::KeyPairs => self.key_pairs(&mut cursor, param)?.map(Arg::KeyPairs),
            ParamKind::KeyChoices(choices) => self.key_choices(&mut cursor, param, choices)?.map(Arg::KeyChoices),
            ParamKind::Aggregates(words) => self.aggregates(&mut cursor, param, words)?.map(Arg::Aggregates),
            ParamKind::SortKeys => self.sort_keys(&mut cursor, param)?.map(Arg::SortKeys),
            ParamKind::Rules => self.rules(&mut cursor, param)?.map(Arg::Rules),
            ParamKind::On => self.on(&mut cursor, kind)?.map(Arg::On),
            ParamKind::Ids { rows } => self.ids(&mut cursor, param, rows)?.map(Arg::Ids),
            ParamKind::KeyPerInput(types) => self.key_per_input(&mut cursor, param, types)?.map(Arg::Keys),
            ParamKind::Exprs => self.exprs(&mut cursor, param)?.map(Arg::Exprs),
            ParamKind::IdsParam => {
                let has_text_ids = self.checker.names.registry.has_text_ids();
                let types = if has_text_ids { "list<string> or list<int>" } else { "list<int>" };
                let fits = |type_of| match type_of {
                    Type::List(Element::Int) => true,
                    Type::List(Element::Str) => has_text_ids,
                    Type::List(Element::Float) | Type::Vector(_) | Type::Int | Type::Float | Type::Bool | Type::Str => {
                        false
                    }
                };
                self.request_param(&mut cursor, param, fits, types)?.map(Arg::Param)
            }
            ParamKind::Cursor { .. } => {
                let fits = |type_of| type_of == Type::Str;
                self.request_param(&mut cursor, param, fits, "string")?.map(Arg::Param)
            }
            ParamKind::Columns { rows } => self.columns(&mut cursor, rows)?.map(Arg::Columns),
            ParamKind::Expr { into } => {
                let (id, pointer) = (cursor.text()?.unwrap_or_default(), cursor.pointer());
                let into = self.key_given_by(into);
                self.tables.expr(&id, into, &pointer, found).map(Arg::Expr)
            }
            ParamKind::TableKey(types) => self.key(&mut cursor, param, types)?.map(Arg::TableKey),
            ParamKind::AskedVector if kind == Kind::Object => {
                let fits = |type_of| matches!(type_of, Type::Vector(_));
                let asked = self.request_param(&mut cursor, param, fits, "vector")?;
                asked.map(|at| Arg::AskedVector(AskedVector::Param(at)))
            }
            ParamKind::AskedVector => {
                let key = self.key(&mut cursor, param, KeyTypes::Vectors)?;
                key.map(|key| Arg::AskedVector(AskedVector::Key(key)))
            }
            ParamKind::TablePred => {
                let (id, pointer) = (cursor.text()?.unwrap_or_default(), cursor.pointer());
                self.tables.pred(&id, &pointer, found).map(Arg::TablePred)
            }
            ParamKind::Pred => {
                let (id, pointer) = (cursor.text()?.unwrap_or_default(), cursor.pointer());
                self.tables.pred(&id, &pointer, found).map(Arg::Pred)
            }
            // No JSON is one: it was refused above.
            ParamKind::Where | ParamKind::Then => None,
            ParamKind::Node => {
                let (id, pointer) = (cursor.text()?.unwrap_or_default(), cursor.pointer());
                let node = self.checker.node(&id, || pointer.clone(), found);
                self.draft.inputs.push(node);
                Some(Arg::Node(self.draft.inputs.len() - 1))
            }
            ParamKind::Reserves => {
                let ids = node_args::reserves(&mut cursor, param)?;
                ids.map(|ids| Arg::Reserves(self.reserve(&ids, found)))
            }
            ParamKind::Fills => {
                let fills = node_args::fills(&mut cursor, param)?;
                fills.map(|fills| Arg::Fills(self.fill(fills, found)))
            }
        })
    }

    /// A number that follows the load: `{"dial": first, "min": least}`.
    fn dial(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &'static Param,
        min: i64,
        max: i64,
    ) -> Result<Option<Dial>, Fault> {
        let (before, mut first, mut least) = (cursor.errors(), None, None);
        // There is no dial inside a dial.
        let number = Param { kind: ParamKind::Int { min, max }, ..*param };
        cursor.object(&["dial", "min"], |cursor, field| {
            let value = if cursor.expect(Kind::Number)? { int(cursor, &number, min, max)? } else { None };
            *(if field == "dial" { &mut first } else { &mut least }) = value;
            Ok(())
        })?;
        let Some((first, least)) = first.zip(least) else {
            if cursor.errors() == before {
                cursor.report(Code::MissingField, "a dial has the fields dial and min");
            }
            return Ok(None);
        };
        if least > first {
            let message = format!("the dial starts at {first} and goes down, so its min is at most that, not {least}");
            cursor.report(Code::BadDial, message);
            return Ok(None);
        }
        let mut dials = self.checker.dials.borrow_mut();
        dials.push(PlanDial { node: self.at, param: param.name, first, min: least });
        Ok(Some(Dial::new(first, Some(dials.len() as u32 - 1))))
    }

    /// The argument of a parameter that was read before.
    fn arg(&self, param: ParamRef) -> Option<&Arg> {
        let (at, _) = self.contract.param(param)?;
        self.draft.args.get(at)?.as_ref()
    }

    /// The number of rows that another parameter gives; `None` where it is wrong, or there is no such parameter.
    fn rows_given_by(&self, param: Option<ParamRef>) -> Option<usize> {
        match self.arg(param?)? {
            Arg::Int(rows) => usize::try_from(*rows).ok(),
            _ => None,
        }
    }

    /// The number of rows that a task makes by itself; `None` where it makes none, or that number is wrong.
    fn rows_made(&self) -> Option<usize> {
        self.contract.params.iter().find_map(|param| match param.kind {
            ParamKind::Columns { rows } => self.rows_given_by(rows),
            _ => None,
        })
    }

    /// Adds the rows that the task makes to those of the nodes before.
    fn count_cells(&self, found: &mut Diagnostics) {
        let Some(rows) = self.rows_made() else { return };
        let columns = self.draft.args.iter().flatten().map(|arg| match arg {
            Arg::Columns(columns) => columns.len(),
            _ => 0,
        });
        let Data { values, cells } = self.checker.data.get();
        let more = rows.saturating_mul(1 + columns.sum::<usize>());
        self.checker.data.set(Data { values, cells: cells.saturating_add(more) });
        if cells <= MADE_CELLS_MAX && cells.saturating_add(more) > MADE_CELLS_MAX {
            let message = format!(
                "{rows} rows make {more} cells, ids included, with those of the nodes before more than the limit of {MADE_CELLS_MAX}"
            );
            found.push(Diagnostic::new(Code::ParamOutOfRange, self.base.clone(), message));
        }
    }

    /// Whether a key parameter is one that the task writes.
    pub(super) fn access(&self, param: &Param) -> Access {
        if self.contract.writes_to(param) { Access::Write } else { Access::Read }
    }

    /// The key that another parameter gives.
    fn key_given_by(&self, param: Option<ParamRef>) -> Option<Key> {
        match self.arg(param?)? {
            Arg::Key(key) => Some(*key),
            _ => None,
        }
    }

    /// A number for each input.
    fn per_input(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &'static Param,
        whole: bool,
    ) -> Result<Option<Vec<f64>>, Fault> {
        let (before, mut numbers) = (cursor.errors(), Vec::new());
        cursor.array(|cursor, _| {
            if !cursor.expect(Kind::Number)? {
                return Ok(());
            }
            let number = match whole {
                true => {
                    let kind = ParamKind::Int { min: 0, max: RULE_ROWS_MAX };
                    int(cursor, &Param { kind, ..*param }, 0, RULE_ROWS_MAX)?.map(|number| number as f64)
                }
                false => {
                    let kind = ParamKind::Float { min: WEIGHT_MIN, max: WEIGHT_MAX };
                    float(cursor, &Param { kind, ..*param }, WEIGHT_MIN, WEIGHT_MAX)?
                }
            };
            numbers.extend(number);
            Ok(())
        })?;
        let inputs = self.checker.wire.nodes[self.at as usize].inputs.len();
        if cursor.errors() == before && numbers.len() != inputs {
            let message = format!("{} has a number for each input, of which there are {inputs}", param.name);
            cursor.report(Code::ParamOutOfRange, message);
        }
        Ok((cursor.errors() == before).then_some(numbers))
    }

    /// A key for each input.
    fn key_per_input(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        types: KeyTypes,
    ) -> Result<Option<Vec<Key>>, Fault> {
        let keys = self.keys(cursor, param, types)?;
        let inputs = self.checker.wire.nodes[self.at as usize].inputs.len();
        if keys.as_ref().is_some_and(|keys| keys.len() != inputs) {
            let message = format!("{} has a key for each input, of which there are {inputs}", param.name);
            cursor.report(Code::ParamOutOfRange, message);
            return Ok(None);
        }
        Ok(keys)
    }

    /// Keys with the expressions that are written to them: `{key: expression, …}`, by their ids in the table.
    fn exprs(&mut self, cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<KeyPrograms>, Fault> {
        let before = cursor.errors();
        let mut given: Vec<(Key, String, String)> = Vec::new();
        let names = &self.checker.names;
        cursor.each_field(|cursor, name| {
            let key = names.key_named(cursor, &name, Access::Write);
            if !cursor.expect(Kind::String)? {
                return Ok(());
            }
            let (id, pointer) = (cursor.text()?.unwrap_or_default().into_owned(), cursor.pointer());
            match key {
                Some(key) if given.iter().any(|(known, ..)| *known == key) => {
                    cursor.report(Code::ParamOutOfRange, "this key is written already");
                }
                Some(key) => given.push((key, id, pointer)),
                None => {}
            }
            Ok(())
        })?;
        if cursor.errors() == before && !(1..=EXPRS_MAX).contains(&given.len()) {
            cursor.report(Code::ParamOutOfRange, format!("{} takes 1 to {EXPRS_MAX} keys", param.name));
        }
        let is_good = cursor.errors() == before;
        let mut exprs = KeyPrograms::with_capacity(given.len());
        for (key, id, pointer) in &given {
            exprs.extend(self.tables.expr(id, Some(*key), pointer, cursor.found()).map(|program| (*key, program)));
        }
        Ok((is_good && exprs.len() == given.len()).then_some(exprs))
    }

    /// A parameter of the request, of a type that fits: `{"param": name}`.
    fn request_param(
        &self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        fits: impl Fn(Type) -> bool,
        types: &str,
    ) -> Result<Option<u32>, Fault> {
        let (before, mut found) = (cursor.errors(), None);
        let names = &self.checker.names;
        cursor.object(&["param"], |cursor, _| {
            found = names.param(cursor)?;
            let Some(entry) = found.map(|at| names.registry.params.get(at)) else { return Ok(()) };
            if !fits(entry.type_of) {
                let message = format!(
                    "{} takes a parameter of type {types}, and {:?} is {}",
                    param.name, entry.name, entry.type_of
                );
                cursor.report(Code::WrongParamType, message);
            }
            Ok(())
        })?;
        if cursor.errors() == before && found.is_none() {
            cursor.report(Code::MissingField, format!("{} names a parameter: {{\"param\": name}}", param.name));
        }
        Ok(found.filter(|_| cursor.errors() == before))
    }

    /// Ids of rows: ints, or texts where ids are strings. An int is then the id that its digits are.
    fn ids(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        param: &Param,
        rows: Option<ParamRef>,
    ) -> Result<Option<Vec<Id>>, Fault> {
        let before = cursor.errors();
        let (type_of, data) = (self.checker.names.registry.key(Key::ID).type_of, &self.checker.data);
        let mut ids = Vec::new();
        let mut count = 0;
        let room = LITERAL_ROWS_MAX.min(LITERAL_VALUES_MAX.saturating_sub(data.get().values));
        cursor.array(|cursor, _| {
            count += 1;
            if count > room {
                cursor.report(Code::ParamOutOfRange, format!("{} has more ids than the limit of {room}", param.name));
                return Err(Fault::REPORTED);
            }
            match (cursor.scalar()?, type_of) {
                (Some(Value::Int(id)), Type::Str) => ids.push(Id::from(&*id.to_string())),
                (Some(Value::Int(id)), _) => ids.push(Id::Int(id)),
                (Some(Value::Str(text)), Type::Str) => match check_id(&text) {
                    Ok(()) => ids.push(Id::Text(text)),
                    Err(fault) => cursor.report(Code::ParamOutOfRange, fault.to_string()),
                },
                (Some(value), _) => {
                    cursor.report(Code::WrongParamType, format!("{value} is not an id of type {type_of}"))
                }
                (None, _) => {}
            }
            Ok(())
        })?;
        data.set(Data { values: data.get().values + count, ..data.get() });
        if cursor.errors() > before {
            return Ok(None);
        }
        self.count_rows(cursor, rows, ids.len());
        Ok((cursor.errors() == before).then_some(ids))
    }

    /// The number of rows where it follows from another parameter: what the plan gives must agree.
    fn count_rows(&mut self, cursor: &mut Cursor<'_, '_>, rows: Option<ParamRef>, count: usize) {
        let Some((at, param)) = rows.and_then(|rows| self.contract.param(rows)) else { return };
        if self.given.contains(&param.name) {
            if let Some(rows) = self.rows_given_by(rows).filter(|rows| *rows != count) {
                cursor.report(Code::ParamOutOfRange, format!("{count} ids for {rows} rows: leave out {}", param.name));
            }
        } else if let Some(arg) = self.draft.args.get_mut(at) {
            *arg = Some(Arg::Int(count as i64));
        }
    }

    /// Literal columns: `{key: [values…]}` or `{key: {generator: …}}`.
    fn columns(
        &self,
        cursor: &mut Cursor<'_, '_>,
        rows: Option<ParamRef>,
    ) -> Result<Option<Vec<(Key, ColumnData)>>, Fault> {
        let registry = self.checker.names.registry;
        let (rows, data) = (self.rows_given_by(rows), &self.checker.data);
        let before = cursor.errors();
        let mut columns = Vec::new();
        cursor.each_field(|cursor, name| {
            let Some(key) = self.checker.names.key_named(cursor, &name, Access::Write) else { return cursor.skip() };
            let entry = registry.key(key);
            let data = match cursor.peek()? {
                Kind::Object => generator(cursor, entry.type_of, data)?.map(ColumnData::Generated),
                _ => Some(ColumnData::Values(values(cursor, entry.type_of, data)?)),
            };
            match (&data, rows) {
                (Some(ColumnData::Values(values)), Some(rows)) if values.len() != rows => {
                    let message = format!("{} values for {rows} rows", values.len());
                    cursor.report(Code::ParamOutOfRange, message);
                }
                _ => {}
            }
            columns.extend(data.map(|data| (key, data)));
            Ok(())
        })?;
        Ok((cursor.errors() == before).then_some(columns))
    }
}

pub(super) fn int(cursor: &mut Cursor<'_, '_>, param: &Param, min: i64, max: i64) -> Result<Option<i64>, Fault> {
    match cursor.number()? {
        Number::Int(value) if (min..=max).contains(&value) => return Ok(Some(value)),
        Number::Float(value) => {
            let message = format!("{} takes {}, not the float {value:?}", param.name, param.kind.name());
            cursor.report(Code::WrongParamType, message);
        }
        _ => cursor.report(Code::ParamOutOfRange, format!("{} takes {}", param.name, param.kind.name())),
    }
    Ok(None)
}

/// A number in the range; an int is taken as a float.
fn float(cursor: &mut Cursor<'_, '_>, param: &Param, min: f64, max: f64) -> Result<Option<f64>, Fault> {
    let value = match cursor.number()? {
        Number::Int(value) => Some(value as f64),
        Number::Float(value) => Some(value),
        Number::OutOfRange => None,
    };
    let value = value.filter(|value| (min..=max).contains(value));
    if value.is_none() {
        cursor.report(Code::ParamOutOfRange, format!("{} takes {}", param.name, param.kind.name()));
    }
    Ok(value)
}

fn plain_text(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Option<Arc<str>>, Fault> {
    let Some(text) = cursor.text()? else { return Ok(None) };
    if !is_plain(&text) {
        let message = format!("{name} is 1 to {TEXT_BYTES_MAX} letters, digits, _, : or -");
        cursor.report(Code::ParamOutOfRange, message);
        return Ok(None);
    }
    Ok(Some(text.as_ref().into()))
}

fn pointer_text(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Option<Arc<str>>, Fault> {
    let Some(text) = cursor.text()? else { return Ok(None) };
    if text.len() > MAP_NAME_BYTES_MAX {
        cursor.report(Code::ParamOutOfRange, format!("{name} has at most {MAP_NAME_BYTES_MAX} bytes"));
        return Ok(None);
    }
    Ok(Some(text.as_ref().into()))
}

fn texts(cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<Vec<Arc<str>>>, Fault> {
    let before = cursor.errors();
    let mut texts = Vec::new();
    cursor.array(|cursor, at| {
        if at >= TEXTS_MAX {
            cursor.report(Code::ParamOutOfRange, format!("{} has at most {TEXTS_MAX} texts", param.name));
            return Err(Fault::REPORTED);
        }
        texts.extend(plain_text(cursor, "each text")?);
        Ok(())
    })?;
    if cursor.errors() == before && texts.is_empty() {
        cursor.report(Code::ParamOutOfRange, format!("{} needs at least one text", param.name));
    }
    Ok((cursor.errors() == before).then_some(texts))
}
