//! Aligned columns, as kubectl prints them; colour only where standard output is a terminal that wants it.

use owo_colors::{OwoColorize, Stream};

/// A table whose last column is not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "   ";

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, a line for each row.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        line += &colour(cell);
        if at + 1 < row.len() {
            line += &" ".repeat(width - cell.chars().count());
            line += GAP;
        }
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

/// Outcomes stand out.
fn colour(cell: &str) -> String {
    match cell {
        "Admitted" | "Bound" => cell.if_supports_color(Stream::Stdout, |text| text.green()).to_string(),
        "Denied" => cell.if_supports_color(Stream::Stdout, |text| text.red()).to_string(),
        "Unschedulable" => cell.if_supports_color(Stream::Stdout, |text| text.yellow()).to_string(),
        _ => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_with_their_text() {
        let mut table = Table::new(&["NAME", "NODE", "WHY"]);
        table.row(["a", "node-1", ""]);
        table.row(["längst", "", "full"]);
        assert_eq!(table.render(), "NAME     NODE     WHY\na        node-1\nlängst            full\n");
    }
}
