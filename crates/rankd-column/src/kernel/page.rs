//! The rows that come next for someone who has seen others: those that were not served yet.
//!
//! What was served is known by hashes: XXH64 of `page:` and the id's text. Two ids with the same hash would hide each other; with a thousand
//! served rows that happens once in 10^16 rows.

use crate::expr::hash::{Salted, xxh64};
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};
use crate::value::Value;
use hashbrown::HashSet;

/// A page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Positions of the view, in order.
    pub positions: Vec<usize>,
    /// Whether there is a row for another page.
    pub has_more: bool,
}

/// The first `size` rows whose hash was not served, each id once.
pub fn page(hashes: &[u64], is_served: impl Fn(u64) -> bool, size: usize, stop: Stop<'_>) -> Result<Page, Stopped> {
    let (mut page, mut seen, mut looks) = (Page::default(), HashSet::new(), stop.looks());
    for (position, hash) in hashes.iter().enumerate() {
        looks.before(1)?;
        if is_served(*hash) || !seen.insert(*hash) {
            continue;
        }
        if page.positions.len() == size {
            page.has_more = true;
            break;
        }
        page.positions.push(position);
    }
    Ok(page)
}

/// The hash of each row's id, in the order of the view.
pub fn id_hashes(rows: &RowSet, stop: Stop<'_>) -> Result<Vec<u64>, Stopped> {
    let (ids, texts) = (rows.batch().ids(), rows.batch().id_texts());
    let (mut salted, mut hashes) = (Salted::new("page"), Vec::with_capacity(rows.len()));
    for chunk in stop.chunks(rows.rows()) {
        let ids = chunk?.iter().map(|row| ids[row]);
        match texts {
            Some(texts) => hashes.extend(ids.map(|code| xxh64(salted.with_text(texts.text(code))))),
            None => hashes.extend(ids.map(|id| xxh64(salted.with_int(id)))),
        }
    }
    Ok(hashes)
}

/// A short hash of a value, by which groups are known again; nothing for null and for what has no groups.
pub fn value_hash(value: &Value) -> Option<u32> {
    let mut salted = Salted::new("value");
    let hash = match value {
        Value::Int(int) => xxh64(salted.with_int(*int)),
        // Equal floats are one group: 0.0 and -0.0 are.
        Value::Float(float) => xxh64(salted.with_int((float + 0.0).to_bits() as i64)),
        Value::Bool(bool) => xxh64(salted.with_int(i64::from(*bool))),
        Value::Str(text) => xxh64(salted.with_text(text)),
        Value::Null | Value::List(_) | Value::Vector(_) => return None,
    };
    // Never 0, which stands for no value.
    Some((hash >> 32) as u32 | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::id_texts::{IdDictionary, IdTexts};
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn an_int_and_the_text_of_its_digits_are_the_same_row() {
        let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
        let codes = [7, -3].iter().map(|id: &i64| texts.code(&id.to_string()).unwrap()).collect();
        let of_texts = id_hashes(&RowSet::new(Batch::with_ids(codes, Some(texts))), Stop::default()).unwrap();
        assert_eq!(of_texts, id_hashes(&RowSet::new(Batch::new(vec![7, -3])), Stop::default()).unwrap());
        assert_eq!(of_texts[0], xxh64(b"page:7"));
        assert_eq!(value_hash(&Value::Float(0.0)), value_hash(&Value::Float(-0.0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn a_page_has_the_first_rows_that_were_not_served(
            hashes in proptest::collection::vec(0..20u64, 0..30),
            served in proptest::collection::vec(0..20u64, 0..10),
            size in 1..12usize,
        ) {
            let found = page(&hashes, |hash| served.contains(&hash), size, Stop::default()).unwrap();
            let is_new = |at: &usize| !served.contains(&hashes[*at]) && !hashes[..*at].contains(&hashes[*at]);
            let new: Vec<usize> = (0..hashes.len()).filter(is_new).collect();
            prop_assert_eq!(found.has_more, new.len() > size);
            prop_assert_eq!(&found.positions[..], &new[..new.len().min(size)]);
        }
    }
}
