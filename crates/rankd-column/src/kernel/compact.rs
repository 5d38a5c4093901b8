//! Turns a mask over rows into the list of the rows it keeps.

use crate::rowset::Rows;

/// Appends the stored rows of `rows` whose mask is true, in order. `out` must have room for all of them.
#[inline(always)]
pub fn compact(mask: &[bool], rows: Rows<'_>, out: &mut Vec<u32>) {
    debug_assert_eq!(mask.len(), rows.len());
    let kept = out.len();
    // Every row is written and only the kept ones advance: no branch to mispredict.
    out.resize(kept + mask.len() + 1, 0);
    let tail = &mut out[kept..];
    let mut count = 0;
    match rows {
        Rows::Range { start, .. } => {
            for (position, &keep) in mask.iter().enumerate() {
                tail[count] = (start + position) as u32;
                count += usize::from(keep);
            }
        }
        Rows::Listed(rows) => {
            for (&row, &keep) in rows.iter().zip(mask) {
                tail[count] = row;
                count += usize::from(keep);
            }
        }
    }
    out.truncate(kept + count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_appends_the_kept_rows_in_order() {
        let mut out = vec![9];
        compact(&[true, false, true], Rows::Range { start: 4, len: 3 }, &mut out);
        compact(&[false, true], Rows::Listed(&[8, 2]), &mut out);
        assert_eq!(out, [9, 4, 6, 2]);
    }
}
