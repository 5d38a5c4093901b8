//! Data that is written into a plan: the values of a column, or how they are generated.

use crate::check::Data;
use crate::codes::Code;
use crate::json::{Fault, Kind};
use crate::limits::{LITERAL_ROWS_MAX, LITERAL_VALUES_MAX};
use crate::plan::Generator;
use crate::wire::cursor::Cursor;
use rankd_column::column::ColumnBuilder;
use rankd_column::{Type, Value};
use std::cell::Cell;

pub(super) fn values(cursor: &mut Cursor<'_, '_>, type_of: Type, data: &Cell<Data>) -> Result<Vec<Value>, Fault> {
    let (mut values, mut count) = (Vec::new(), 0);
    let more = |cursor: &mut Cursor<'_, '_>, values: usize| {
        let values = data.get().values + values;
        if values > LITERAL_VALUES_MAX {
            let message = format!("with these, the plan has more values than the limit of {LITERAL_VALUES_MAX}");
            cursor.report(Code::ParamOutOfRange, message);
            return Err(Fault::REPORTED);
        }
        data.set(Data { values, ..data.get() });
        Ok(())
    };
    cursor.array(|cursor, _| {
        count += 1;
        more(cursor, 1)?;
        if count > LITERAL_ROWS_MAX {
            return cursor.skip();
        }
        let value = match type_of.is_scalar() {
            true => fitting(cursor, type_of)?,
            false => fitting_array(cursor, type_of)?,
        };
        // The elements of a list are values, too.
        match &value {
            Value::List(list) => more(cursor, list.len())?,
            Value::Vector(vector) => more(cursor, vector.len())?,
            Value::Null | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) => {}
        }
        values.push(value);
        Ok(())
    })?;
    if count > LITERAL_ROWS_MAX {
        let message = format!("{count} values are more than the limit of {LITERAL_ROWS_MAX}");
        cursor.report(Code::ParamOutOfRange, message);
    }
    Ok(values)
}

/// A scalar of the type, or null; an int widens to a float.
fn fitting(cursor: &mut Cursor<'_, '_>, type_of: Type) -> Result<Value, Fault> {
    Ok(match cursor.scalar()? {
        Some(Value::Int(v)) if type_of == Type::Float => Value::Float(v as f64),
        Some(value) if value.type_of().is_none_or(|found| found == type_of) => value,
        Some(value) => {
            cursor.report(Code::WrongParamType, format!("{value} is not of type {type_of}"));
            Value::Null
        }
        None => Value::Null,
    })
}

/// A list or vector of the type, or null.
fn fitting_array(cursor: &mut Cursor<'_, '_>, type_of: Type) -> Result<Value, Fault> {
    let mut column = ColumnBuilder::new(type_of, 1);
    if cursor.peek()? == Kind::Null {
        cursor.skip()?;
        return Ok(Value::Null);
    }
    let Some(mut cell) = column.open() else { return Ok(Value::Null) };
    if let Err(misfit) = cursor.array_cell(&mut cell)? {
        cursor.report(Code::WrongParamType, format!("this is not a {type_of}: {misfit}"));
        return Ok(Value::Null);
    }
    // It has as many elements as it should, or that would have been a misfit.
    Ok(if cell.close() { column.finish().value(0) } else { Value::Null })
}

/// `{"sequence":{"start":0,"step":1}}`, `{"hash":{"seed":1,"modulus":100}}` or `{"cycle":[…]}`.
pub(super) fn generator(
    cursor: &mut Cursor<'_, '_>,
    type_of: Type,
    data: &Cell<Data>,
) -> Result<Option<Generator>, Fault> {
    let before = cursor.errors();
    let mut made = None;
    cursor.object(&["sequence", "hash", "cycle"], |cursor, name| {
        made = Some(match name {
            "sequence" => {
                let (mut start, mut step) = (0, 1);
                cursor.object(&["start", "step"], |cursor, field| {
                    let number = cursor.int(-(1 << 52), 1 << 52)?.unwrap_or(0);
                    *(if field == "start" { &mut start } else { &mut step }) = number;
                    Ok(())
                })?;
                Generator::Sequence { start, step }
            }
            "hash" => {
                let (mut seed, mut modulus) = (0, 1 << 31);
                cursor.object(&["seed", "modulus"], |cursor, field| {
                    let number = cursor.int(1, 1 << 52)?.unwrap_or(1);
                    if field == "seed" {
                        seed = number as u64
                    } else {
                        modulus = number
                    }
                    Ok(())
                })?;
                Generator::Hash { seed, modulus }
            }
            _ => Generator::Cycle { values: values(cursor, type_of, data)? },
        });
        Ok(())
    })?;
    let fits = match (&made, type_of) {
        (Some(Generator::Cycle { values }), _) => !values.is_empty(),
        (Some(_), type_of) => type_of.is_number(),
        (None, _) => false,
    };
    if !fits && cursor.errors() == before {
        let message = "a generator is sequence or hash for numbers, or a cycle of at least one value";
        cursor.report(Code::ParamOutOfRange, message);
    }
    Ok(made.filter(|_| fits))
}
