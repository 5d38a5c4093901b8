//! What follows the trees of a LightGBM file: importances and parameters, which are passed over, and the categories of pandas.

use super::lightgbm::{Line, ModelLines};
use super::problem::Read;
use crate::json::{Fault, Kind, Number, Reader};
use rankd_column::model::Categories;

pub(super) struct Tail {
    /// One list for each categorical feature, in their order.
    pub(super) categories: Vec<Categories>,
    /// Where they are.
    pub(super) at: usize,
}

pub(super) fn read_tail(lines: &mut ModelLines<'_>) -> Read<Tail> {
    let mut tail = Tail { categories: Vec::new(), at: lines.at() };
    let mut has_categories = false;
    while let Some(line) = lines.next_full() {
        match line.text.split_once(':') {
            Some(("feature_importances", "")) => pass(lines, |line| line.text.trim().is_empty()),
            Some(("parameters", "")) => pass(lines, |line| line.text == "end of parameters"),
            Some(("pandas_categorical", _)) if has_categories => return line.fail("a line that was given before"),
            Some(("pandas_categorical", list)) => {
                has_categories = true;
                tail.at = line.at + line.text.len() - list.len();
                tail.categories = pandas(Line { at: tail.at, text: list })?;
            }
            _ => return line.fail("a line that is not known here"),
        }
    }
    Ok(tail)
}

fn pass(lines: &mut ModelLines<'_>, is_last: impl Fn(Line<'_>) -> bool) {
    while let Some(line) = lines.next() {
        if is_last(line) {
            return;
        }
    }
}

/// `null`, or a list of lists.
fn pandas(line: Line<'_>) -> Read<Vec<Categories>> {
    let mut reader = Reader::new(line.text, 4);
    let mut found = Vec::new();
    let mut read = || -> std::result::Result<std::result::Result<(), &'static str>, Fault> {
        if reader.peek()? == Kind::Null {
            reader.null()?;
            reader.end()?;
            return Ok(Ok(()));
        }
        let mut lists = reader.open_array()?;
        while reader.item(&mut lists)? {
            match list(&mut reader)? {
                Ok(list) => found.push(list),
                Err(message) => return Ok(Err(message)),
            }
        }
        reader.end()?;
        Ok(Ok(()))
    };
    match read() {
        Ok(Ok(())) => Ok(found),
        Ok(Err(message)) => line.fail(message),
        Err(fault) => Line { at: line.at + fault.at, text: "" }.fail(fault.message),
    }
}

/// Texts, ints or bools, all of one kind.
fn list(reader: &mut Reader<'_>) -> std::result::Result<std::result::Result<Categories, &'static str>, Fault> {
    const OTHER: &str = "a list of categories that are not all strings, all ints or all bools";
    let (mut texts, mut ints, mut bools) = (Vec::new(), Vec::new(), Vec::new());
    let mut items = reader.open_array()?;
    while reader.item(&mut items)? {
        match reader.peek()? {
            Kind::String => texts.push(reader.string()?.into_owned()),
            Kind::Bool => bools.push(reader.bool()?),
            Kind::Number => match reader.number()? {
                Number::Int(int) => ints.push(int),
                Number::Float(_) | Number::OutOfRange => return Ok(Err(OTHER)),
            },
            Kind::Null | Kind::Array | Kind::Object => return Ok(Err(OTHER)),
        }
    }
    let list = match (texts.is_empty(), ints.is_empty(), bools.is_empty()) {
        (_, true, true) => Categories::of_texts(texts.iter().map(String::as_str)),
        (true, false, true) => Categories::of_ints(ints),
        (true, true, false) => Categories::of_bools(bools),
        _ => return Ok(Err(OTHER)),
    };
    Ok(list.ok_or("a list of categories that has one of them twice"))
}
