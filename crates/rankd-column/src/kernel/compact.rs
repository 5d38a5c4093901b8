//! Turns a mask over rows into the list of the rows it keeps.

use crate::kernel::wide::wide;
use crate::rowset::Rows;

/// Rows of a run whose mask is looked at together.
pub(super) const LANES: usize = 8;

/// Rows compacted together, in a buffer small enough to be cleared quickly.
const BLOCK: usize = 256;

/// By the bits of a mask: which lanes are kept, those first.
const KEPT: [[u8; LANES]; 1 << LANES] = {
    let mut table = [[0; LANES]; 1 << LANES];
    let mut mask = 0;
    while mask < table.len() {
        let (mut lane, mut place) = (0, 0);
        while lane < LANES {
            if mask >> lane & 1 == 1 {
                table[mask][place] = lane as u8;
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// Rows of which it is not known beforehand how many there will be get room for all, up to this number.
const ROOM_FOR_ALL: usize = 1 << 17;

/// Room for the rows that are kept of so many.
pub(crate) fn room_for(rows: usize) -> Vec<u32> {
    Vec::with_capacity(rows.min(ROOM_FOR_ALL))
}

/// Makes room for the next rows that are kept, before any of them is there: as much as will be needed if the rest of the rows, of
/// which `seen` of `all` were seen, is like those.
pub(crate) fn make_room(kept: &mut Vec<u32>, next: usize, seen: usize, all: usize) {
    if kept.capacity() - kept.len() >= next || seen >= all {
        return;
    }
    let likely = (kept.len() as f64 / seen.max(1) as f64 * all as f64 * 1.1) as usize;
    let wanted = likely.saturating_add(next).min(all).max(kept.len() + next.min(all));
    kept.reserve_exact(wanted - kept.len());
}

/// Gives back much room that few rows were kept in.
pub(crate) fn give_back(mut kept: Vec<u32>) -> Vec<u32> {
    if kept.capacity() >= ROOM_FOR_ALL && kept.len() < kept.capacity() / 8 {
        kept.shrink_to_fit();
    }
    kept
}

/// Appends the stored rows of `rows` whose mask is true, in order.
pub fn compact(mask: &[bool], rows: Rows<'_>, out: &mut Vec<u32>) {
    debug_assert_eq!(mask.len(), rows.len());
    let mut buffer = [0; BLOCK + LANES];
    for (block, mask) in mask.chunks(BLOCK).enumerate() {
        let rows = rows.slice(block * BLOCK, mask.len());
        let count = wide(
            #[inline(always)]
            || compact_into(mask, rows, &mut buffer),
        );
        out.extend_from_slice(&buffer[..count]);
    }
}

/// The same for as many rows as `out` has room for, and [`LANES`] more. Gives how many are kept.
///
/// Every row is written and only the kept ones advance: no branch to mispredict.
#[inline(always)]
pub(super) fn compact_into(mask: &[bool], rows: Rows<'_>, out: &mut [u32]) -> usize {
    match rows {
        Rows::Range { start, .. } => compact_run(mask, start as u32, out),
        Rows::Listed(rows) => compact_list(mask, rows, out),
    }
}

#[inline(always)]
fn compact_list(mask: &[bool], rows: &[u32], out: &mut [u32]) -> usize {
    let mut count = 0;
    for (&row, &keep) in rows.iter().zip(mask) {
        out[count] = row;
        count += usize::from(keep);
    }
    count
}

/// Neighbouring rows from `start` on, eight at a time. Gives how many are kept.
#[inline(always)]
fn compact_run(mask: &[bool], start: u32, out: &mut [u32]) -> usize {
    let (blocks, rest) = mask.as_chunks::<LANES>();
    let (mut row, mut count) = (start, 0);
    for block in blocks {
        let lanes = bits(block);
        let places: &mut [u32; LANES] = out[count..].first_chunk_mut().expect("every block has its room");
        for (place, &lane) in places.iter_mut().zip(&KEPT[usize::from(lanes)]) {
            *place = row + u32::from(lane);
        }
        row += LANES as u32;
        count += lanes.count_ones() as usize;
    }
    for &keep in rest {
        out[count] = row;
        row += 1;
        count += usize::from(keep);
    }
    count
}

/// A bit a lane, the first lane lowest.
#[inline(always)]
fn bits(block: &[bool; LANES]) -> u8 {
    // Each byte is 0 or 1, and the product brings byte i to bit 56 + i without a carry.
    (u64::from_le_bytes(block.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
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

    #[test]
    fn blocks_and_their_rest_agree_with_one_row_at_a_time() {
        for len in (0..40).chain([BLOCK, 2 * BLOCK + 3]) {
            let mask: Vec<bool> = (0..len).map(|row: usize| row.wrapping_mul(0x9E37_79B9) & 64 != 0).collect();
            let mut out = Vec::new();
            compact(&mask, Rows::Range { start: 5, len }, &mut out);
            let plain: Vec<u32> = (0..len).filter(|&row| mask[row]).map(|row| 5 + row as u32).collect();
            assert_eq!(out, plain);
        }
    }
}
