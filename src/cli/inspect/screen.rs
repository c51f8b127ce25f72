//! The screen of `--watch`: what is drawn, and what a key does. It reads neither clock nor cluster.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use jiff::Timestamp;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Cell, Paragraph, Row, Table},
};

use super::{
    cells::{CellTable, TextCell},
    order::SortBy,
};
use crate::{
    cli::output::{Detail, Paint},
    excerpt::{VALUE, excerpt, is_obeyed, visible},
};

/// Lines that are not rows: tabs, sums, headings, status.
const FRAME: u16 = 4;

/// Characters of what is searched for.
const LONGEST_SEARCH: usize = 63;

/// Between two columns.
const GAP: u16 = 2;

/// What a screen shows of a cluster.
pub(super) trait Watched {
    /// The command.
    const TITLE: &'static str;
    /// What can be shown, by the keys 1, 2, 3.
    const TABS: &'static [&'static str];

    /// All of it in one line.
    fn sum(&self) -> String;

    /// The rows of one tab.
    fn table(&self, tab: usize, sort_by: SortBy, detail: Detail) -> CellTable;
}

/// What was read last.
#[derive(Clone, Debug)]
pub(super) struct Reading<T> {
    /// What there is; `None`: nothing could be read yet.
    pub(super) seen: Option<T>,
    /// When that was read.
    pub(super) at: Option<Timestamp>,
    /// Why nothing newer could be read, or what is missing from what was.
    pub(super) trouble: Option<String>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self { seen: None, at: None, trouble: None }
    }
}

/// What a key comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum KeyEffect {
    /// Nothing is drawn otherwise.
    None,
    /// The screen is drawn anew.
    Redraw,
    /// The program ends.
    Quit,
}

/// What is shown of it.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    tabs: &'static [&'static str],
    /// Which of them is shown.
    tab: usize,
    sort_by: SortBy,
    detail: Detail,
    /// The row at the top.
    first: usize,
    /// So many columns after the first are left out.
    shift: usize,
    /// Only rows whose name contains this are shown.
    search: String,
    /// Whether keys are letters of what is searched for.
    is_typing: bool,
    /// How many rows fit.
    page: usize,
}

impl Screen {
    /// A screen that begins with this tab.
    pub(super) fn new<T: Watched>(tab: usize, sort_by: SortBy, detail: Detail) -> Self {
        let (tabs, search) = (T::TABS, String::new());
        Self { tabs, tab, sort_by, detail, first: 0, shift: 0, search, is_typing: false, page: 1 }
    }

    /// Takes a key in.
    pub(super) fn press(&mut self, key: KeyEvent) -> KeyEffect {
        if key.kind == KeyEventKind::Release {
            return KeyEffect::None;
        }
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if with_control => return KeyEffect::Quit,
            KeyCode::Char('l') if with_control => return KeyEffect::Redraw,
            KeyCode::Char(_) if with_control => return KeyEffect::None,
            _ if self.is_typing => return self.type_search(key.code),
            KeyCode::Char('q') => return KeyEffect::Quit,
            KeyCode::Esc if self.search.is_empty() => return KeyEffect::Quit,
            KeyCode::Esc => self.search.clear(),
            KeyCode::Char(key @ '1'..='9') => {
                let tab = key as usize - '1' as usize;
                if tab >= self.tabs.len() {
                    return KeyEffect::None;
                }
                self.show(tab);
            }
            KeyCode::Tab => self.show((self.tab + 1) % self.tabs.len()),
            KeyCode::BackTab => self.show((self.tab + self.tabs.len() - 1) % self.tabs.len()),
            KeyCode::Char('s') => self.sort_by = self.sort_by.next(),
            KeyCode::Char('w') => {
                self.detail = if self.detail == Detail::Wide { Detail::Usual } else { Detail::Wide }
            }
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.search.clear();
            }
            KeyCode::Down | KeyCode::Char('j') => self.first = self.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first = self.first.saturating_add(self.page),
            KeyCode::PageUp => self.first = self.first.saturating_sub(self.page),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = usize::MAX,
            KeyCode::Right => self.shift = self.shift.saturating_add(1),
            KeyCode::Left => self.shift = self.shift.saturating_sub(1),
            _ => return KeyEffect::None,
        }
        KeyEffect::Redraw
    }

    fn type_search(&mut self, key: KeyCode) -> KeyEffect {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.search.clear();
            }
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Char(c) if !is_obeyed(c) && self.search.chars().count() < LONGEST_SEARCH => {
                self.search.push(c);
            }
            _ => return KeyEffect::None,
        }
        self.first = 0;
        KeyEffect::Redraw
    }

    fn show(&mut self, tab: usize) {
        if self.tab != tab {
            (self.tab, self.first, self.shift) = (tab, 0, 0);
        }
    }

    /// Draws the whole screen.
    pub(super) fn draw<T: Watched>(&mut self, frame: &mut Frame<'_>, reading: &Reading<T>) {
        let [tabs, sums, rows, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.page = frame.area().height.saturating_sub(FRAME).max(1).into();
        frame.render_widget(Paragraph::new(self.tabs(T::TITLE)), tabs);
        let shown = match &reading.seen {
            Some(seen) => {
                frame.render_widget(Paragraph::new(seen.sum()), sums);
                self.draw_rows(frame, rows, seen)
            }
            None => ShownRows::default(),
        };
        frame.render_widget(Paragraph::new(self.status(reading, shown)), status);
    }

    fn tabs(&self, title: &'static str) -> Line<'static> {
        let tab = |(at, called): (usize, &&'static str)| {
            let shown = Style::new().add_modifier(Modifier::REVERSED);
            let style = if at == self.tab { shown } else { Style::new() };
            [Span::styled(format!(" {} {called} ", at + 1), style), Span::raw(" ")]
        };
        let title = Span::styled(format!("{title}  "), Style::new().add_modifier(Modifier::BOLD));
        // One that is always shown says nothing.
        let tabs = self.tabs.iter().enumerate().filter(|_| self.tabs.len() > 1);
        std::iter::once(title).chain(tabs.flat_map(tab)).collect()
    }

    /// Draws the rows that fit.
    fn draw_rows(&mut self, frame: &mut Frame<'_>, area: Rect, seen: &impl Watched) -> ShownRows {
        let CellTable { headings, mut rows, names } = seen.table(self.tab, self.sort_by, self.detail);
        let wanted = self.search.to_lowercase();
        rows.retain(|row| {
            let mut names = names.iter().filter_map(|column| row.get(*column));
            names.any(|name| name.text.to_lowercase().contains(&wanted))
        });
        self.first = self.first.min(rows.len().saturating_sub(self.page));
        self.shift = self.shift.min(headings.len().saturating_sub(2));
        let is_shown = |column: usize| column == 0 || column > self.shift;
        let columns = || (0..headings.len()).filter(|column| is_shown(*column));
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let cells = cells.map(|cell| Span::raw(cell.text.as_str()).width());
            let widest = cells.chain([headings[column].len()]).max().unwrap_or_default();
            Constraint::Length(u16::try_from(widest).unwrap_or(u16::MAX))
        };
        let widths: Vec<_> = columns().map(width).collect();
        let heading = Row::new(columns().map(|column| Cell::from(headings[column])));
        let last = rows.len().min(self.first + self.page);
        let shown = ShownRows { first: self.first, last, of: rows.len() };
        let row = |row: &Vec<TextCell>| {
            Row::new(columns().filter_map(|at| row.get(at)).map(cell).collect::<Vec<_>>())
        };
        let table = Table::new(rows[self.first..last].iter().map(row), widths)
            .header(heading.style(Style::new().add_modifier(Modifier::BOLD)))
            .column_spacing(GAP);
        frame.render_widget(table, area);
        shown
    }

    fn status<T>(&self, reading: &Reading<T>, shown: ShownRows) -> Line<'static> {
        if self.is_typing {
            return Line::from(format!("/{}", self.search));
        }
        let mut said: Vec<Span<'static>> = Vec::new();
        if let Some(trouble) = &reading.trouble {
            let trouble = excerpt(trouble, VALUE).into_owned();
            said.push(Span::styled(format!("{trouble}  "), Style::new().fg(Color::Red)));
        }
        let at = match reading.at {
            Some(at) => format!("read at {}  ", at.strftime("%H:%M:%SZ")),
            None if reading.trouble.is_none() => "reading the cluster ...  ".to_owned(),
            None => String::new(),
        };
        said.push(Span::raw(at));
        if !self.search.is_empty() {
            said.push(Span::raw(format!("names with `{}`  ", visible(&self.search))));
        }
        if shown.of > 0 {
            said.push(Span::raw(format!("{}-{} of {}  ", shown.first + 1, shown.last, shown.of)));
        }
        let sorted = self.sort_by.called();
        let view = if self.tabs.len() > 1 { " [Tab] view" } else { "" };
        said.push(Span::raw(format!("by {sorted}  [q]uit{view} [s]ort [w]ide [/] search")));
        Line::from(said)
    }
}

/// Which of the rows are shown.
#[derive(Clone, Copy, Debug, Default)]
struct ShownRows {
    first: usize,
    last: usize,
    of: usize,
}

fn cell(cell: &TextCell) -> Cell<'static> {
    let style = match cell.paint {
        Some(Paint::Green) => Style::new().fg(Color::Green),
        Some(Paint::Yellow) => Style::new().fg(Color::Yellow),
        Some(Paint::Red) => Style::new().fg(Color::Red),
        Some(Paint::Bold) => Style::new().add_modifier(Modifier::BOLD),
        None => Style::new(),
    };
    Cell::from(cell.text.clone()).style(style)
}
