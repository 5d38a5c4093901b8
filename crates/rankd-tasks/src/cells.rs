//! Collections as the cells of list columns.

use rankd_column::column::ColumnBuilder;
use rankd_column::{Element, Type};

/// The members of a set in the order of what they are: numbers as numbers, and text, as well as what is equal, by bytes.
pub(crate) fn sorted<'m>(members: impl Iterator<Item = &'m [u8]>, type_of: Type) -> Vec<&'m [u8]> {
    fn number<T: std::str::FromStr>(member: &[u8]) -> Option<T> {
        std::str::from_utf8(member).ok()?.parse().ok()
    }
    let mut members: Vec<&[u8]> = members.collect();
    match type_of {
        Type::List(Element::Int) => members.sort_unstable_by_key(|member| (number::<i64>(member), *member)),
        Type::List(Element::Float) => members.sort_unstable_by(|a, b| {
            let order = |member| number::<f64>(member).unwrap_or(f64::NAN);
            order(a).total_cmp(&order(b)).then_with(|| a.cmp(b))
        }),
        _ => members.sort_unstable(),
    }
    members
}

/// Adds a list. An element that is not of the list's type is left out and counted. A list that is too long becomes null, and the
/// answer is false.
pub(crate) fn push_list<'e>(
    column: &mut ColumnBuilder,
    elements: impl Iterator<Item = &'e [u8]>,
    skipped: &mut u64,
) -> bool {
    let added = column.open().is_some_and(|mut cell| {
        let element = cell.element();
        for bytes in elements {
            if cell.is_full() {
                return false;
            }
            let Ok(text) = std::str::from_utf8(bytes) else {
                *skipped += 1;
                continue;
            };
            let added = match element {
                Element::Int => text.parse().is_ok_and(|value| cell.push_int(value)),
                Element::Float => text.parse().is_ok_and(|value| cell.push_float(value)),
                Element::Str => cell.push_str(text),
            };
            *skipped += u64::from(!added);
        }
        cell.close()
    });
    if !added {
        column.push_null();
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::value::ELEMENTS_MAX;

    fn list(type_of: &str, elements: &[&str]) -> (String, bool, u64) {
        let type_of: Type = type_of.parse().unwrap();
        let mut column = ColumnBuilder::new(type_of, 1);
        let mut skipped = 0;
        let members = sorted(elements.iter().map(|element| element.as_bytes()), type_of);
        let added = push_list(&mut column, members.into_iter(), &mut skipped);
        (column.finish().value(0).to_string(), added, skipped)
    }

    #[test]
    fn elements_are_ordered_by_what_they_are_and_others_are_left_out() {
        assert_eq!(list("list<int>", &["10", "9", "x", "-1", "1.5"]), ("[-1, 9, 10]".into(), true, 2));
        assert_eq!(list("list<float>", &["10", "9.5", "x", "inf", "-1"]), ("[-1.0, 9.5, 10.0]".into(), true, 2));
        assert_eq!(list("list<string>", &["b", "10", "9"]), (r#"["10", "9", "b"]"#.into(), true, 0));
        assert_eq!(list("list<string>", &[]), ("[]".into(), true, 0));
    }

    #[test]
    fn a_list_that_is_too_long_is_null_and_said_so() {
        let many: Vec<String> = (0..=ELEMENTS_MAX).map(|element| element.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(list("list<int>", &many), ("null".into(), false, 0));
        assert!(list("list<int>", &many[1..]).1);
    }
}
