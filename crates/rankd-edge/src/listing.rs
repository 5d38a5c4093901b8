//! A plain table for people: columns as wide as their widest cell, counted in cells of a terminal, of which some characters take two.

use unicode_width::UnicodeWidthStr;

/// What stands between two columns.
const GAP: &str = "  ";

/// The rows of a table.
pub struct Listing {
    rows: Vec<Vec<String>>,
    /// Columns whose cells end at the same place.
    right: Vec<usize>,
}

impl Listing {
    /// A table with these headings.
    pub fn new(head: &[&str]) -> Listing {
        Listing { rows: vec![head.iter().map(|cell| cell.to_string()).collect()], right: Vec::new() }
    }

    /// Lets the cells of a column end at the same place, as numbers do.
    pub fn align_right(&mut self, column: usize) {
        self.right.push(column);
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Leaves out the last columns, as many as do not fit into so many cells of a terminal, and gives their headings. The first stays.
    pub fn fit(&mut self, width: usize) -> Vec<String> {
        let mut end = 0;
        let fits = |(at, column): (usize, usize)| {
            end += column + if at == 0 { 0 } else { GAP.len() };
            at == 0 || end <= width
        };
        let kept = self.widths().into_iter().enumerate().map(fits).take_while(|fits| *fits).count();
        let left_out = self.rows.first().map(|head| head.get(kept..).unwrap_or_default().to_vec());
        self.rows.iter_mut().for_each(|row| row.truncate(kept));
        left_out.unwrap_or_default()
    }

    /// The table as lines of text.
    pub fn render(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                let space = " ".repeat(width.saturating_sub(cell.width()));
                if self.right.contains(&at) { space + cell } else { cell.clone() + &space }
            });
            let line: Vec<String> = cells.collect();
            out.push_str(line.join(GAP).trim_end());
            out.push('\n');
        }
        out
    }

    /// Of each column, how many cells of a terminal its widest cell takes.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let mut listing = Listing::new(&["id", "title", "score"]);
        listing.align_right(0);
        listing.align_right(2);
        for cells in [["7", "東京", "0.5"], ["10", "Alpha", "12"]] {
            listing.row(cells.map(str::to_owned).to_vec());
        }
        listing
    }

    #[test]
    fn columns_are_aligned_where_characters_are_wide_too() {
        assert_eq!(listing().render(), "id  title  score\n 7  東京     0.5\n10  Alpha     12\n");
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out_and_named() {
        let mut all = listing();
        assert!(all.fit(16).is_empty());
        let mut two = listing();
        assert_eq!(two.fit(15), ["score"]);
        assert_eq!(two.render(), "id  title\n 7  東京\n10  Alpha\n");
        let mut one = listing();
        assert_eq!(
            (one.fit(1), one.render()),
            (vec!["title".to_owned(), "score".to_owned()], "id\n 7\n10\n".to_owned())
        );
    }
}
