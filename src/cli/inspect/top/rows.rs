//! The rows of `berth top` as text, for a table and for the screen.

use super::{
    TopView,
    bar::{self, Glyphs},
    usage::{ClusterUsage, ModelUsage, NamespaceUsage, NodeUsage, UsedAmounts},
};
use crate::{
    api::gpu_parts::GpuParts,
    cli::{
        output::{Detail, Paint, Shown},
        table::Table,
    },
    excerpt::{VALUE, excerpt, listed},
};

/// Characters of a bar.
const WIDTH: u32 = 10;

/// So many cards of a node have a character of their own.
const MOST_CARDS: usize = 16;

/// So many models, reasons or quotas stand in one cell.
const MOST_LISTED: usize = 8;

/// A view as text.
#[derive(Clone, Debug)]
pub struct UsageTable {
    /// Above the columns.
    pub headings: Vec<&'static str>,
    /// As the usage is sorted.
    pub rows: Vec<Vec<UsageCell>>,
}

/// One cell. No character of it is one that a terminal obeys.
#[derive(Clone, Debug)]
pub struct UsageCell {
    /// What it says.
    pub text: String,
    /// How it stands out.
    pub paint: Option<Paint>,
}

impl UsageCell {
    /// Text that may be from outside: as much of it as a table should hold.
    fn new(text: &str) -> Self {
        Self { text: excerpt(text, VALUE).into_owned(), paint: None }
    }

    fn number(number: u64) -> Self {
        Self::new(&number.to_string())
    }

    /// The first of a list, and how many more there are; `-`: there is none.
    fn list<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        let text = if all.is_empty() { "-".to_owned() } else { listed(&all, MOST_LISTED) };
        Self { text, paint: None }
    }

    /// In parts of a card.
    fn parts(gpus: f64) -> Self {
        Self::new(&format!("{gpus:.2}"))
    }

    fn bar(part: f64, glyphs: Glyphs) -> Self {
        let text = format!("{} {:>3}%", glyphs.bar(part, WIDTH), bar::percent(part));
        Self { text, paint: Some(bar::paint(part)) }
    }
}

impl UsageTable {
    /// A view of some usage.
    pub fn of(usage: &ClusterUsage, view: TopView, detail: Detail, glyphs: Glyphs) -> Self {
        let mut table = match view {
            TopView::Nodes => Self {
                headings: vec!["NODE", "CARDS", "EACH", "MEMORY", "MIB", "COMPUTE", "PODS"],
                rows: usage.nodes.iter().map(|node| node_row(node, detail, glyphs)).collect(),
            },
            TopView::Models => Self {
                headings: vec!["MODEL", "NODES", "CARDS", "MEMORY", "MIB", "COMPUTE", "PODS"],
                rows: usage.models.iter().map(|model| model_row(model, detail, glyphs)).collect(),
            },
            TopView::Namespaces => Self {
                headings: vec!["NAMESPACE", "WAIT", "GPUS", "MEMORY", "MIB", "COMPUTE", "PODS"],
                rows: usage.namespaces.iter().map(|one| namespace_row(one, detail, glyphs)).collect(),
            },
        };
        if detail == Detail::Wide {
            table.headings.extend(match view {
                TopView::Nodes => {
                    &["COMPUTE (%)", "SLOTS", "HEALTHY", "FREE", "STRANDED", "STATUS", "MODELS"][..]
                }
                TopView::Models => &["COMPUTE (%)", "SLOTS", "HEALTHY", "FREE", "FRAGMENTED", "STRANDED"],
                TopView::Namespaces => &["COMPUTE (%)", "SLOTS", "MODELS", "QUOTA"],
            });
        }
        table
    }

    /// As it is printed.
    pub fn shown(&self) -> Shown {
        let mut table = Table::new(&self.headings);
        for row in &self.rows {
            table.painted_row(row.iter().map(|cell| (&cell.text, cell.paint)));
        }
        table.render()
    }
}

fn node_row(node: &NodeUsage, detail: Detail, glyphs: Glyphs) -> Vec<UsageCell> {
    let each = node.cards.iter().take(MOST_CARDS);
    let mut each: String = each.map(|card| glyphs.level(card.amounts.larger_part(), card.healthy)).collect();
    if node.cards.len() > MOST_CARDS {
        each.push('+');
    }
    let cards = node.cards.len() as u64;
    let mut row = vec![UsageCell::new(&node.name), UsageCell::number(cards), UsageCell::new(&each)];
    row.extend(of_amounts(&node.amounts, glyphs));
    row.push(UsageCell::number(node.pods));
    if detail == Detail::Wide {
        let healthy = node.cards.iter().filter(|card| card.healthy).count();
        row.extend(more_of_amounts(&node.amounts));
        row.push(UsageCell::new(&format!("{healthy}/{cards}")));
        row.extend([UsageCell::parts(node.gpus.free), stranded(&node.gpus)]);
        let closed: Vec<_> = node.closed.iter().copied().collect();
        let closed = if closed.is_empty() { "open".to_owned() } else { closed.join(",") };
        row.push(UsageCell::new(&closed));
        row.push(UsageCell::list(node.models()));
    }
    row
}

fn model_row(model: &ModelUsage, detail: Detail, glyphs: Glyphs) -> Vec<UsageCell> {
    let mut row =
        vec![UsageCell::new(&model.model), UsageCell::number(model.nodes), UsageCell::number(model.cards)];
    row.extend(of_amounts(&model.amounts, glyphs));
    row.push(UsageCell::number(model.pods));
    if detail == Detail::Wide {
        row.extend(more_of_amounts(&model.amounts));
        row.push(UsageCell::new(&format!("{}/{}", model.healthy, model.cards)));
        row.extend([UsageCell::parts(model.gpus.free), UsageCell::parts(model.gpus.fragmented)]);
        row.push(stranded(&model.gpus));
    }
    row
}

fn namespace_row(namespace: &NamespaceUsage, detail: Detail, glyphs: Glyphs) -> Vec<UsageCell> {
    let mut row = vec![
        UsageCell::new(&namespace.namespace),
        UsageCell::number(namespace.waiting),
        UsageCell::parts(namespace.gpus),
    ];
    row.extend(of_amounts(&namespace.amounts, glyphs));
    row.push(UsageCell::number(namespace.pods));
    if detail == Detail::Wide {
        row.extend(more_of_amounts(&namespace.amounts));
        row.push(UsageCell::list(&namespace.models));
        let quotas = namespace.quotas.iter();
        row.push(UsageCell::list(quotas.map(|one| format!("{} {}/{}", one.resource, one.used, one.hard))));
    }
    row
}

fn of_amounts(amounts: &UsedAmounts, glyphs: Glyphs) -> [UsageCell; 3] {
    [
        UsageCell::bar(amounts.memory_part(), glyphs),
        UsageCell::new(&format!("{}/{}", amounts.memory_used, amounts.memory)),
        UsageCell::bar(amounts.cores_part(), glyphs),
    ]
}

fn more_of_amounts(amounts: &UsedAmounts) -> [UsageCell; 2] {
    [
        UsageCell::new(&format!("{:.0}/{:.0}", amounts.cores_used, amounts.cores)),
        UsageCell::new(&format!("{}/{}", amounts.slots_used, amounts.slots)),
    ]
}

fn stranded(gpus: &GpuParts) -> UsageCell {
    let each = gpus.stranded.iter().map(|one| format!("{:.2} {}", one.gpus, one.reason));
    UsageCell::list(each)
}
