//! A plain table for people: columns as wide as their widest cell.

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

    /// The table as lines of text.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match self.right.contains(&at) {
                true => format!("{cell:>width$}"),
                false => format!("{cell:width$}"),
            });
            let line: Vec<String> = cells.collect();
            out.push_str(line.join("  ").trim_end());
            out.push('\n');
        }
        out
    }
}
