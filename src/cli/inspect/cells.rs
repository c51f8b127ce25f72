//! Rows of cells, for a table and for the screen.

use crate::{
    cli::{
        output::{Paint, Shown},
        table::Table,
    },
    excerpt::{VALUE, excerpt, listed},
};

/// So many values of a list stand in one cell.
const MOST_LISTED: usize = 8;

/// A view as text.
#[derive(Clone, Debug)]
pub(super) struct CellTable {
    /// Above the columns.
    pub(super) headings: Vec<&'static str>,
    /// In the order in which they are shown.
    pub(super) rows: Vec<Vec<TextCell>>,
    /// The columns in which names are looked for.
    pub(super) names: &'static [usize],
}

/// One cell. No character of it is one that a terminal obeys.
#[derive(Clone, Debug)]
pub(super) struct TextCell {
    /// What it says.
    pub(super) text: String,
    /// How it stands out.
    pub(super) paint: Option<Paint>,
}

impl TextCell {
    /// Text that may be from outside: as much of it as a table should hold.
    pub(super) fn new(text: &str) -> Self {
        Self { text: excerpt(text, VALUE).into_owned(), paint: None }
    }

    pub(super) fn number(number: u64) -> Self {
        Self::new(&number.to_string())
    }

    /// The first of a list, and how many more there are; `-`: there is none.
    pub(super) fn list<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        let text = if all.is_empty() { "-".to_owned() } else { listed(&all, MOST_LISTED) };
        Self { text, paint: None }
    }
}

/// How so many are called that the caller may not see.
pub(super) fn others(count: u64) -> String {
    if count == 1 { "(1 other)".to_owned() } else { format!("({count} others)") }
}

impl CellTable {
    /// As it is printed.
    pub(super) fn shown(&self) -> Shown {
        let mut table = Table::new(&self.headings);
        for row in &self.rows {
            table.painted_row(row.iter().map(|cell| (&cell.text, cell.paint)));
        }
        table.render()
    }
}
