//! Random numbers for rows, which are hashes: the same on every machine, in any order and on any number of threads.
//!
//! The draw of a row is the upper 52 bits of XXH64 (with seed 0) of the text `seed:node:id`, so that anybody can compute it again. An int is
//! the text of its digits. Rows with the same id have the same draw.

use crate::expr::hash::{Salted, xxh64};
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};

const BITS: u32 = 52;

/// XXH64 of a text by itself.
pub fn hash_of_text(text: &str) -> u64 {
    xxh64(text.as_bytes())
}

/// The draws of one node in one run.
pub struct Draws {
    rows: Salted,
    places: Salted,
}

impl Draws {
    pub fn new(seed: &str, node: &str) -> Draws {
        Draws { rows: Salted::new(&format!("{seed}:{node}")), places: Salted::new(&format!("{seed}:{node}#place")) }
    }

    /// One for each row of the view.
    pub fn of_rows(&mut self, rows: &RowSet, stop: Stop<'_>) -> Result<Vec<u64>, Stopped> {
        let (ids, texts) = (rows.batch().ids(), rows.batch().id_texts());
        let mut draws = Vec::with_capacity(rows.len());
        for chunk in stop.chunks(rows.rows()) {
            let ids = chunk?.iter().map(|row| ids[row]);
            match texts {
                Some(texts) => draws.extend(ids.map(|code| draw(self.rows.with_text(texts.text(code))))),
                None => draws.extend(ids.map(|id| draw(self.rows.with_int(id)))),
            }
        }
        Ok(draws)
    }

    /// For what is decided for a place of a list and not for a row: of the text `seed:node#place:place`.
    pub fn of_place(&mut self, place: usize) -> u64 {
        draw(self.places.with_int(place as i64))
    }
}

fn draw(text: &[u8]) -> u64 {
    xxh64(text) >> (u64::BITS - BITS)
}

/// A draw as a number between 0 and 1, never one of them, and exact.
pub fn unit(draw: u64) -> f64 {
    (draw as f64 + 0.5) / (1u64 << BITS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::id_texts::{IdDictionary, IdTexts};
    use std::sync::Arc;

    fn of_ints(seed: &str, node: &str, ids: &[i64]) -> Vec<u64> {
        Draws::new(seed, node).of_rows(&RowSet::new(Batch::new(ids.to_vec())), Stop::default()).unwrap()
    }

    #[test]
    fn a_draw_is_the_published_hash_of_its_text() {
        assert_eq!(of_ints("s", "n", &[7, -12]), [xxh64(b"s:n:7") >> 12, xxh64(b"s:n:-12") >> 12]);
        assert_eq!(Draws::new("s", "n").of_place(3), xxh64(b"s:n#place:3") >> 12);
        assert_eq!(hash_of_text("abc"), 0x44BC_2CF5_AD77_0999);
    }

    #[test]
    fn ints_and_texts_of_their_digits_draw_the_same() {
        let ids = [1, 20, -3, i64::MIN, i64::MAX];
        let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
        let codes = ids.iter().rev().map(|id| texts.code(&id.to_string()).unwrap()).collect();
        let rows = RowSet::new(Batch::with_ids(codes, Some(texts)));
        let mut of_texts = Draws::new("7", "n").of_rows(&rows, Stop::default()).unwrap();
        of_texts.reverse();
        assert_eq!(of_texts, of_ints("7", "n", &ids));
    }

    #[test]
    fn another_seed_node_or_row_draws_another_number() {
        let all = [of_ints("1", "a", &[1, 2]), of_ints("2", "a", &[1, 2]), of_ints("1", "b", &[1, 2])].concat();
        assert!((0..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }

    #[test]
    fn units_are_between_0_and_1_and_spread_evenly() {
        let (least, most) = (unit(0), unit((1 << BITS) - 1));
        assert!(least > 0.0 && most < 1.0 && least == 1.0 - most);
        let ids: Vec<i64> = (0..100_000).collect();
        let mut counts = [0f64; 100];
        for draw in of_ints("seed", "node", &ids) {
            counts[(unit(draw) * 100.0) as usize] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|count| (count - 1000.0) * (count - 1000.0) / 1000.0).sum();
        // With 99 degrees of freedom, less than one in a million of random lists is above this.
        assert!(chi_square < 176.0, "{chi_square}");
    }
}
