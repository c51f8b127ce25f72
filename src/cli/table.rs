//! Aligned columns, as kubectl prints them; colour only where standard output is a terminal that wants it.

use std::io::{IsTerminal, stdout};

use owo_colors::Stream;

use super::output::{Paint, Shown};
use crate::excerpt::visible;

/// A table whose last column is not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "   ";

/// A last column that is narrower is not broken: it would be a column of single words.
const NARROWEST: usize = 24;

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row. Its cells may be from outside: each stays in its place, whatever it holds.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| visible(cell.as_ref()).into_owned()).collect());
    }

    /// The text, a line for each row; on a terminal, a last column that is too wide for it is broken into several lines.
    pub fn render(&self) -> Shown {
        let terminal = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        self.render_within(terminal.map(|(width, _)| usize::from(width.0)))
    }

    /// The text within this many characters a line, as far as only the last column has to be broken for it.
    fn render_within(&self, most: Option<usize>) -> Shown {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
        let last = most.and_then(|most| most.checked_sub(before)).filter(|last| *last >= NARROWEST);
        let text = |row: &Vec<String>| -> Shown {
            let broken =
                last.filter(|_| row.len() == columns).map_or_else(Vec::new, |last| broken(row, last));
            match broken.split_first() {
                None => line(row, &widths),
                Some((first, rest)) => {
                    let blank = || vec![String::new(); columns.saturating_sub(1)];
                    let first = [&row[..columns - 1], std::slice::from_ref(first)].concat();
                    let rest = rest.iter().map(|part| [blank(), vec![part.clone()]].concat());
                    std::iter::once(first).chain(rest).map(|row| line(&row, &widths)).collect()
                }
            }
        };
        self.rows.iter().map(text).collect()
    }
}

/// The last cell of a row, broken between words; a word that is too long stands alone. Empty: it fits as it is.
fn broken(row: &[String], most: usize) -> Vec<String> {
    let cell = row.last().map_or("", String::as_str);
    if cell.chars().count() <= most {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    for word in cell.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn line(row: &[String], widths: &[usize]) -> Shown {
    let mut line = Shown::default();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        line = line.and(&colour(cell));
        if at + 1 < row.len() {
            let blanks = width - cell.chars().count();
            line = line.and(&Shown::text(format_args!("{:blanks$}{GAP}", "")));
        }
    }
    line.ended()
}

/// Outcomes stand out.
fn colour(cell: &str) -> Shown {
    match cell {
        "Admitted" | "Bound" => Shown::painted(cell, Paint::Green, Stream::Stdout),
        "Denied" => Shown::painted(cell, Paint::Red, Stream::Stdout),
        "Unschedulable" => Shown::painted(cell, Paint::Yellow, Stream::Stdout),
        _ => Shown::text(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_column_that_is_too_wide_is_broken_between_words_below_itself() {
        let mut table = Table::new(&["NAME", "WHY"]);
        table.row(["pod", "one two three four five six seven"]);
        table.row(["short", "fits"]);
        let narrow = "NAME    WHY\npod     one two three four five\n        six seven\nshort   fits\n";
        assert_eq!(table.render_within(Some(32)).as_str(), narrow);
        let whole = "NAME    WHY\npod     one two three four five six seven\nshort   fits\n";
        assert_eq!(table.render_within(None).as_str(), whole);
        assert_eq!(table.render_within(Some(20)).as_str(), whole, "a column of single words helps nobody");
    }

    #[test]
    fn columns_are_aligned_and_lines_end_with_their_text() {
        let mut table = Table::new(&["NAME", "NODE", "WHY"]);
        table.row(["a", "node-1", ""]);
        table.row(["längst", "", "full"]);
        let text = "NAME     NODE     WHY\na        node-1\nlängst            full\n";
        assert_eq!(table.render().as_str(), text);
    }

    #[test]
    fn a_cell_forges_neither_a_row_nor_a_colour() {
        let mut table = Table::new(&["NAME", "WHY"]);
        table.row(["a\nb   Bound", "\u{1b}[2J\u{9b}31m\u{202e}z"]);
        let text = "NAME           WHY\na\\nb   Bound   \\u{1b}[2J\\u{9b}31m\\u{202e}z\n";
        assert_eq!(table.render().as_str(), text);
    }
}
