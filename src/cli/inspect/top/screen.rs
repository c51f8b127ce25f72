//! The screen of `berth top --watch`: what is drawn, and what a key does. It reads neither clock nor cluster.

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
    SortBy, TopView,
    bar::{Glyphs, percent},
    rows::{UsageCell, UsageTable},
    usage::ClusterUsage,
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

/// What was read last.
#[derive(Clone, Debug, Default)]
pub struct TopReading {
    /// What is used; `None`: nothing could be read yet.
    pub usage: Option<ClusterUsage>,
    /// When that was read.
    pub at: Option<Timestamp>,
    /// Why nothing newer could be read, or what is missing from what was.
    pub trouble: Option<String>,
}

/// What a key comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyEffect {
    /// Nothing is drawn otherwise.
    None,
    /// The screen is drawn anew.
    Redraw,
    /// The program ends.
    Quit,
}

/// What is shown of it.
#[derive(Clone, Debug)]
pub struct TopScreen {
    view: TopView,
    sort_by: SortBy,
    detail: Detail,
    glyphs: Glyphs,
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

impl TopScreen {
    /// A screen that begins with this view.
    pub fn new(view: TopView, sort_by: SortBy, detail: Detail, glyphs: Glyphs) -> Self {
        let search = String::new();
        Self { view, sort_by, detail, glyphs, first: 0, shift: 0, search, is_typing: false, page: 1 }
    }

    /// Takes a key in.
    pub fn press(&mut self, key: KeyEvent) -> KeyEffect {
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
            KeyCode::Char('1') => self.show(TopView::Nodes),
            KeyCode::Char('2') => self.show(TopView::Models),
            KeyCode::Char('3') => self.show(TopView::Namespaces),
            KeyCode::Tab => self.show(self.view.next()),
            KeyCode::BackTab => self.show(self.view.next().next()),
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

    fn show(&mut self, view: TopView) {
        if self.view != view {
            (self.view, self.first, self.shift) = (view, 0, 0);
        }
    }

    /// Draws the whole screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>, reading: &TopReading) {
        let [tabs, sums, rows, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.page = frame.area().height.saturating_sub(FRAME).max(1).into();
        frame.render_widget(Paragraph::new(self.tabs()), tabs);
        let shown = match &reading.usage {
            Some(usage) => {
                frame.render_widget(Paragraph::new(sum(usage)), sums);
                self.draw_rows(frame, rows, usage)
            }
            None => ShownRows::default(),
        };
        frame.render_widget(Paragraph::new(self.status(reading, shown)), status);
    }

    fn tabs(&self) -> Line<'static> {
        let tab = |(key, view): (char, TopView)| {
            let shown = Style::new().add_modifier(Modifier::REVERSED);
            let style = if view == self.view { shown } else { Style::new() };
            [Span::styled(format!(" {key} {} ", view.called()), style), Span::raw(" ")]
        };
        let tabs = [('1', TopView::Nodes), ('2', TopView::Models), ('3', TopView::Namespaces)];
        let title = Span::styled("berth top  ", Style::new().add_modifier(Modifier::BOLD));
        std::iter::once(title).chain(tabs.into_iter().flat_map(tab)).collect()
    }

    /// Draws the rows that fit.
    fn draw_rows(&mut self, frame: &mut Frame<'_>, area: Rect, usage: &ClusterUsage) -> ShownRows {
        let mut usage = usage.clone();
        usage.sort(self.sort_by);
        let UsageTable { headings, mut rows } = UsageTable::of(&usage, self.view, self.detail, self.glyphs);
        let wanted = self.search.to_lowercase();
        rows.retain(|row| row.first().is_some_and(|name| name.text.to_lowercase().contains(&wanted)));
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
        let row = |row: &Vec<UsageCell>| {
            Row::new(columns().filter_map(|at| row.get(at)).map(cell).collect::<Vec<_>>())
        };
        let table = Table::new(rows[self.first..last].iter().map(row), widths)
            .header(heading.style(Style::new().add_modifier(Modifier::BOLD)))
            .column_spacing(GAP);
        frame.render_widget(table, area);
        shown
    }

    fn status(&self, reading: &TopReading, shown: ShownRows) -> Line<'static> {
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
        said.push(Span::raw(format!("by {sorted}  [q]uit [Tab] view [s]ort [w]ide [/] search")));
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

impl TopView {
    fn next(self) -> Self {
        match self {
            Self::Nodes => Self::Models,
            Self::Models => Self::Namespaces,
            Self::Namespaces => Self::Nodes,
        }
    }

    fn called(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Models => "models",
            Self::Namespaces => "namespaces",
        }
    }
}

impl SortBy {
    fn next(self) -> Self {
        match self {
            Self::Name => Self::Memory,
            Self::Memory => Self::Cores,
            Self::Cores => Self::Name,
        }
    }

    fn called(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Memory => "memory",
            Self::Cores => "compute",
        }
    }
}

/// All cards in one line.
fn sum(usage: &ClusterUsage) -> String {
    let total = usage.total();
    let cards: usize = usage.nodes.iter().map(|node| node.cards.len()).sum();
    let pods: u64 = usage.nodes.iter().map(|node| node.pods).sum();
    let waiting: u64 = usage.namespaces.iter().map(|namespace| namespace.waiting).sum();
    format!(
        "nodes {}, cards {cards}, memory {} %, compute {} %, pods with cards {pods}, waiting pods {waiting}",
        usage.nodes.len(),
        percent(total.memory_part()),
        percent(total.cores_part()),
    )
}

fn cell(cell: &UsageCell) -> Cell<'static> {
    let style = match cell.paint {
        Some(Paint::Green) => Style::new().fg(Color::Green),
        Some(Paint::Yellow) => Style::new().fg(Color::Yellow),
        Some(Paint::Red) => Style::new().fg(Color::Red),
        Some(Paint::Bold) => Style::new().add_modifier(Modifier::BOLD),
        None => Style::new(),
    };
    Cell::from(cell.text.clone()).style(style)
}
