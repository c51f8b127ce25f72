//! Aligned columns, as kubectl prints them; colour only where standard output is a terminal that wants it.

use std::io::{IsTerminal, stdout};

use owo_colors::Stream;

use super::output::{Paint, Shown};
use crate::excerpt::visible;

/// A table whose last column is not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<TableCell>>,
}

/// One cell.
#[derive(Clone, Debug, Default)]
struct TableCell {
    /// Without a character that a terminal obeys.
    text: String,
    /// How it stands out.
    paint: Option<Paint>,
}

/// Between two columns.
const GAP: &str = "   ";

/// A last column that is narrower is not broken: it would be a column of single words.
const NARROWEST: usize = 24;

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new() };
        table.painted_row(headings.iter().map(|&heading| (heading, None)));
        table
    }

    /// Adds a row. Its cells may be from outside: each stays in its place, whatever it holds. Outcomes stand out.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.painted_row(cells.into_iter().map(|cell| {
            let paint = of_outcome(cell.as_ref());
            (cell, paint)
        }));
    }

    /// The same with how each cell stands out.
    pub fn painted_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = (T, Option<Paint>)>) {
        let cell = |(text, paint): (T, _)| TableCell { text: visible(text.as_ref()).into_owned(), paint };
        self.rows.push(cells.into_iter().map(cell).collect());
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
            cells.map(TableCell::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
        let last = most.and_then(|most| most.checked_sub(before)).filter(|last| *last >= NARROWEST);
        let text = |row: &Vec<TableCell>| -> Shown {
            let broken =
                last.filter(|_| row.len() == columns).map_or_else(Vec::new, |last| broken(row, last));
            match broken.split_first() {
                None => line(row, &widths),
                Some((first, rest)) => {
                    let part = |text: &String| TableCell { text: text.clone(), paint: None };
                    let blank = || vec![TableCell::default(); columns.saturating_sub(1)];
                    let first = [&row[..columns - 1], &[part(first)]].concat();
                    let rest = rest.iter().map(|text| [blank(), vec![part(text)]].concat());
                    std::iter::once(first).chain(rest).map(|row| line(&row, &widths)).collect()
                }
            }
        };
        self.rows.iter().map(text).collect()
    }
}

impl TableCell {
    /// In characters.
    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// The last cell of a row, broken between words; a word that is too long stands alone. Empty: it fits as it is.
fn broken(row: &[TableCell], most: usize) -> Vec<String> {
    let cell = row.last().map_or("", |cell| cell.text.as_str());
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

fn line(row: &[TableCell], widths: &[usize]) -> Shown {
    let mut line = Shown::default();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        line = line.and(&match cell.paint {
            Some(paint) => Shown::painted(&cell.text, paint, Stream::Stdout),
            None => Shown::text(&cell.text),
        });
        if at + 1 < row.len() {
            let blanks = width - cell.width();
            line = line.and(&Shown::text(format_args!("{:blanks$}{GAP}", "")));
        }
    }
    line.ended()
}

/// How an outcome stands out.
fn of_outcome(cell: &str) -> Option<Paint> {
    match cell {
        "Admitted" | "Bound" => Some(Paint::Green),
        "Denied" => Some(Paint::Red),
        "Unschedulable" => Some(Paint::Yellow),
        _ => None,
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
