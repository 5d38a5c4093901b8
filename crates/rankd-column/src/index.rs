//! Where in a column a value is: rows by id, and rows by the cells of a column.
//!
//! Made once for columns that do not change, such as those of a table, and then only read.

use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::kernel::gather::NO_ROW;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;
use std::sync::Arc;

/// The row of each id; ids are distinct.
#[derive(Debug)]
pub struct IdIndex(Places);

/// Places by number.
#[derive(Debug)]
enum Places {
    /// By the distance from the first; [`NO_ROW`] where there is no such number.
    Dense {
        first: i64,
        places: Vec<u32>,
    },
    Sparse(HashMap<i64, u32>),
}

/// Numbers that fill at least this part of their range are looked up by their position in it.
const DENSE_PART: u64 = 4;

impl Places {
    /// The first place of each number, and how many distinct ones there are.
    fn first_of(numbers: impl ExactSizeIterator<Item = (i64, u32)> + Clone) -> Places {
        let count = numbers.len();
        let all = || numbers.clone().map(|(number, _)| number);
        let (Some(first), Some(last)) = (all().min(), all().max()) else {
            return Places::Sparse(HashMap::new());
        };
        let range = last.abs_diff(first);
        if range / DENSE_PART <= count as u64 {
            let mut places = vec![NO_ROW; range as usize + 1];
            for (number, place) in numbers {
                let slot = &mut places[number.abs_diff(first) as usize];
                *slot = (*slot).min(place);
            }
            return Places::Dense { first, places };
        }
        let mut places = HashMap::with_capacity(count);
        for (number, place) in numbers {
            places.entry(number).or_insert(place);
        }
        Places::Sparse(places)
    }

    /// [`NO_ROW`] where there is no such number.
    #[inline]
    fn at(&self, number: i64) -> u32 {
        match self {
            Places::Dense { first, places } => {
                // Below the first wraps around to far above the last.
                let distance = number.wrapping_sub(*first) as u64;
                usize::try_from(distance).ok().and_then(|at| places.get(at)).copied().unwrap_or(NO_ROW)
            }
            Places::Sparse(places) => places.get(&number).copied().unwrap_or(NO_ROW),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Places::Dense { places, .. } => size_of_val(&**places),
            Places::Sparse(places) => places.allocation_size(),
        }
    }
}

impl IdIndex {
    /// Where an id is there twice, the first row counts.
    pub fn new(ids: &[i64]) -> IdIndex {
        IdIndex(Places::first_of(ids.iter().enumerate().map(|(row, id)| (*id, row as u32))))
    }

    /// The row of an id; [`NO_ROW`] where there is none.
    #[inline]
    pub fn row(&self, id: i64) -> u32 {
        self.0.at(id)
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The rows of each value of a column, in their order. Null is no value.
#[derive(Debug)]
pub struct GroupIndex {
    values: GroupValues,
    /// The rows of all groups side by side, and where each group ends.
    rows: Vec<u32>,
    ends: Vec<u32>,
}

#[derive(Debug)]
enum GroupValues {
    Ints(Places),
    Texts(TextIndex),
}

/// The codes of a dictionary by their texts.
#[derive(Debug)]
struct TextIndex {
    dictionary: Arc<Dictionary>,
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl TextIndex {
    fn new(dictionary: &Arc<Dictionary>) -> TextIndex {
        let hasher = DefaultHashBuilder::default();
        let mut codes = HashTable::with_capacity(dictionary.len());
        for code in 0..dictionary.len() as u32 {
            let hash = hasher.hash_one(dictionary.get(code));
            codes.insert_unique(hash, code, |&code| hasher.hash_one(dictionary.get(code)));
        }
        TextIndex { dictionary: dictionary.clone(), codes, hasher }
    }

    fn code(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.codes.find(hash, |&code| self.dictionary.get(code) == text).copied()
    }
}

impl GroupIndex {
    /// `None` for a column that is neither of ints nor of strings: others are not matched.
    pub fn new(column: &Column) -> Option<GroupIndex> {
        match column {
            Column::Int(cells) => Some(GroupIndex::of_ints(cells)),
            Column::Str(cells, dictionary) => {
                let (rows, ends) = grouped(dictionary.len(), (0..cells.len()).map(|row| cells.get(row)));
                Some(GroupIndex { values: GroupValues::Texts(TextIndex::new(dictionary)), rows, ends })
            }
            Column::Float(_) | Column::Bool(_) | Column::List(..) | Column::Vector(..) => None,
        }
    }

    fn of_ints(cells: &Cells<i64>) -> GroupIndex {
        let mut distinct: Vec<i64> = (0..cells.len()).filter_map(|row| cells.get(row)).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let groups = Places::first_of(distinct.iter().enumerate().map(|(group, value)| (*value, group as u32)));
        let of_rows = (0..cells.len()).map(|row| cells.get(row).map(|value| groups.at(value)));
        let (rows, ends) = grouped(distinct.len(), of_rows);
        GroupIndex { values: GroupValues::Ints(groups), rows, ends }
    }

    /// The rows with this int.
    #[inline]
    pub fn rows_of_int(&self, value: i64) -> &[u32] {
        match &self.values {
            GroupValues::Ints(groups) => self.group(groups.at(value)),
            GroupValues::Texts(_) => &[],
        }
    }

    /// The rows with this text.
    pub fn rows_of_text(&self, text: &str) -> &[u32] {
        match &self.values {
            GroupValues::Texts(texts) => texts.code(text).map_or(&[], |code| self.group(code)),
            GroupValues::Ints(_) => &[],
        }
    }

    fn group(&self, group: u32) -> &[u32] {
        let at = group as usize;
        let Some(&end) = self.ends.get(at) else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.rows[start as usize..end as usize]
    }

    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            GroupValues::Ints(groups) => groups.bytes(),
            // The texts are the column's.
            GroupValues::Texts(texts) => texts.codes.allocation_size(),
        };
        values + size_of_val(&*self.rows) + size_of_val(&*self.ends)
    }
}

/// The rows of each group side by side, and where each group ends.
fn grouped(groups: usize, of_rows: impl Iterator<Item = Option<u32>> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; groups];
    of_rows.clone().flatten().for_each(|group| ends[group as usize] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum - *end;
    }
    // Each counts from where its group begins to where it ends, as its rows come.
    let mut rows = vec![0; sum as usize];
    for (row, group) in of_rows.enumerate() {
        if let Some(group) = group {
            let next = &mut ends[group as usize];
            rows[*next as usize] = row as u32;
            *next += 1;
        }
    }
    (rows, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuilder;
    use crate::value::Type;

    #[test]
    fn ids_are_found_whether_they_lie_close_or_far_apart() {
        for ids in [&[5, 3, 9][..], &[], &[i64::MIN, 0, i64::MAX], &[1_000_000, 5], &[-3, -1, -2]] {
            let index = IdIndex::new(ids);
            for (row, id) in ids.iter().enumerate() {
                assert_eq!(index.row(*id), row as u32, "{ids:?}");
            }
            for other in [4, 1, i64::MAX - 1, i64::MIN + 1, 7] {
                assert_eq!(index.row(other), NO_ROW, "{other} in {ids:?}");
            }
        }
    }

    #[test]
    fn rows_are_grouped_by_value_in_their_order() {
        let ints = Column::Int([Some(7), None, Some(-1), Some(7), Some(i64::MAX)].into_iter().collect());
        let index = GroupIndex::new(&ints).unwrap();
        assert_eq!((index.rows_of_int(7), index.rows_of_int(-1)), (&[0, 3][..], &[2][..]));
        assert_eq!((index.rows_of_int(i64::MAX), index.rows_of_int(0)), (&[4][..], &[][..]));
        let mut texts = ColumnBuilder::new(Type::Str, 0);
        for text in ["b", "a", "b", ""] {
            assert!(texts.push_str(text));
        }
        texts.push_null();
        let index = GroupIndex::new(&texts.finish()).unwrap();
        assert_eq!((index.rows_of_text("b"), index.rows_of_text("a")), (&[0, 2][..], &[1][..]));
        assert_eq!((index.rows_of_text(""), index.rows_of_text("c")), (&[3][..], &[][..]));
        assert!(index.rows_of_int(0).is_empty() && GroupIndex::new(&Column::Bool(Cells::full(vec![true]))).is_none());
    }
}
