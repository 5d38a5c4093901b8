//! The first rows of a stable sort by a string, without putting the other strings in order.
//!
//! A text is compared by eight of its bytes as one number, behind those that all texts of the dictionary begin with; only
//! where these tie is the rest looked at. Rows that cannot be among the first are dismissed by one comparison of numbers.

use crate::column::Cells;
use crate::dictionary::Dictionary;
use crate::kernel::sort::{Order, sort_runs};
use crate::rowset::Rows;
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};
use std::cmp::Ordering;

/// Candidates beyond the count that are wanted, before the worst are dropped.
const SPARE: usize = 256;

/// A row that may be among the first.
#[derive(Clone, Copy)]
struct Candidate {
    /// Lower is better.
    window: u64,
    code: u32,
    row: u32,
    /// Its position in the view: of equals, the first wins.
    position: u32,
}

/// The `count` first rows by the strings behind their codes, then nulls. The count is at least one.
pub(super) fn top(
    cells: &Cells<u32>,
    dictionary: &Dictionary,
    rows: Rows<'_>,
    order: Order,
    count: usize,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let (values, valid, skip) = (cells.values(), cells.valid(), dictionary.shared_prefix(stop)?);
    let flip = if order == Order::Desc { u64::MAX } else { 0 };
    let by_text = |a: u32, b: u32| match order {
        _ if a == b => Ordering::Equal,
        Order::Asc => dictionary.get(a).cmp(dictionary.get(b)),
        Order::Desc => dictionary.get(b).cmp(dictionary.get(a)),
    };
    let better = |a: &Candidate, b: &Candidate| {
        let by_text = || by_text(a.code, b.code).then(a.position.cmp(&b.position));
        a.window.cmp(&b.window).then_with(by_text)
    };
    let room = count.saturating_mul(2).saturating_add(SPARE);
    let mut best: Vec<Candidate> = Vec::with_capacity(room.min(rows.len()));
    let mut nulls: Vec<u32> = Vec::new();
    let (mut worst, mut position): (Option<Candidate>, u32) = (None, 0);
    for chunk in stop.chunks(rows) {
        for row in chunk?.iter() {
            let at = position;
            position += 1;
            if valid.is_some_and(|valid| !valid[row]) {
                if nulls.len() < count {
                    nulls.push(row as u32);
                }
                continue;
            }
            let code = values[row];
            let window = dictionary.window(code, skip) ^ flip;
            if let Some(worst) = &worst
                && (window > worst.window || (window == worst.window && by_text(code, worst.code) != Ordering::Less))
            {
                continue;
            }
            best.push(Candidate { window, code, row: row as u32, position: at });
            if best.len() >= room {
                worst = Some(cut(&mut best, count, stop, better)?);
            }
        }
    }
    sort_runs(&mut best, stop, better)?;
    let listed = best.iter().map(|candidate| candidate.row).chain(nulls);
    Ok(listed.take(count).collect())
}

/// Drops all but the best `count`, of which there are more; the worst of those.
fn cut(
    best: &mut Vec<Candidate>,
    count: usize,
    stop: Stop<'_>,
    better: impl Fn(&Candidate, &Candidate) -> Ordering,
) -> Result<Candidate, Stopped> {
    // Finding the worst takes less than putting all in order, but does not look.
    match best.len() <= 2 * ROWS_A_LOOK + SPARE {
        true => drop(best.select_nth_unstable_by(count - 1, better)),
        false => sort_runs(best, stop, better)?,
    }
    let worst = best[count - 1];
    best.truncate(count);
    Ok(worst)
}
