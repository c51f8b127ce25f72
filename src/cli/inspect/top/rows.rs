//! The rows of `berth top` as text, for a table and for the screen.

use super::{
    TopView,
    bar::{self, Glyphs},
};
use crate::{
    api::{
        gpu_parts::GpuParts,
        top::{ClusterUsage, ModelUsage, NamespaceUsage, NodeUsage, UsedAmounts},
    },
    cli::{
        inspect::cells::{CellTable, TextCell, others},
        output::Detail,
    },
};

/// Characters of a bar.
const WIDTH: u32 = 10;

/// So many cards of a node have a character of their own.
const MOST_CARDS: usize = 16;

/// In parts of a card.
fn parts(gpus: f64) -> TextCell {
    TextCell::new(&format!("{gpus:.2}"))
}

fn bar(part: f64, glyphs: Glyphs) -> TextCell {
    let text = format!("{} {:>3}%", glyphs.bar(part, WIDTH), bar::percent(part));
    TextCell { text, paint: Some(bar::paint(part)) }
}

/// A view of some usage.
pub(super) fn table(usage: &ClusterUsage, view: TopView, detail: Detail, glyphs: Glyphs) -> CellTable {
    let (mut headings, rows) = match view {
        TopView::Nodes => (
            vec!["NODE", "CARDS", "EACH", "MEMORY", "MIB", "COMPUTE", "PODS"],
            usage.nodes.iter().map(|node| node_row(node, detail, glyphs)).collect(),
        ),
        TopView::Models => (
            vec!["MODEL", "NODES", "CARDS", "MEMORY", "MIB", "COMPUTE", "PODS"],
            usage.models.iter().map(|model| model_row(model, detail, glyphs)).collect(),
        ),
        TopView::Namespaces => (
            vec!["NAMESPACE", "WAIT", "GPUS", "MEMORY", "MIB", "COMPUTE", "PODS"],
            usage.namespaces.iter().map(|one| namespace_row(one, detail, glyphs)).collect(),
        ),
    };
    if detail == Detail::Wide {
        headings.extend(match view {
            TopView::Nodes => {
                &["COMPUTE (%)", "SLOTS", "HEALTHY", "FREE", "STRANDED", "STATUS", "MODELS"][..]
            }
            TopView::Models => &["COMPUTE (%)", "SLOTS", "HEALTHY", "FREE", "FRAGMENTED", "STRANDED"],
            TopView::Namespaces => &["COMPUTE (%)", "SLOTS", "MODELS", "QUOTA"],
        });
    }
    CellTable { headings, rows, names: &[0] }
}

fn node_row(node: &NodeUsage, detail: Detail, glyphs: Glyphs) -> Vec<TextCell> {
    let each = node.cards.iter().take(MOST_CARDS);
    let mut each: String = each.map(|card| glyphs.level(card.amounts.larger_part(), card.healthy)).collect();
    if node.cards.len() > MOST_CARDS {
        each.push('+');
    }
    let cards = node.cards.len() as u64;
    let mut row = vec![TextCell::new(&node.name), TextCell::number(cards), TextCell::new(&each)];
    row.extend(of_amounts(&node.amounts, glyphs));
    row.push(TextCell::number(node.pods));
    if detail == Detail::Wide {
        let healthy = node.cards.iter().filter(|card| card.healthy).count();
        row.extend(more_of_amounts(&node.amounts));
        row.push(TextCell::new(&format!("{healthy}/{cards}")));
        row.extend([parts(node.gpus.free), stranded(&node.gpus)]);
        let closed: Vec<_> = node.closed.iter().map(AsRef::as_ref).collect();
        let closed = if closed.is_empty() { "open".to_owned() } else { closed.join(",") };
        row.push(TextCell::new(&closed));
        row.push(TextCell::list(node.models()));
    }
    row
}

fn model_row(model: &ModelUsage, detail: Detail, glyphs: Glyphs) -> Vec<TextCell> {
    let mut row =
        vec![TextCell::new(&model.model), TextCell::number(model.nodes), TextCell::number(model.cards)];
    row.extend(of_amounts(&model.amounts, glyphs));
    row.push(TextCell::number(model.pods));
    if detail == Detail::Wide {
        row.extend(more_of_amounts(&model.amounts));
        row.push(TextCell::new(&format!("{}/{}", model.healthy, model.cards)));
        row.extend([parts(model.gpus.free), parts(model.gpus.fragmented)]);
        row.push(stranded(&model.gpus));
    }
    row
}

fn namespace_row(namespace: &NamespaceUsage, detail: Detail, glyphs: Glyphs) -> Vec<TextCell> {
    let name = match namespace.others {
        Some(count) => others(count),
        None => namespace.namespace.clone(),
    };
    let mut row = vec![TextCell::new(&name), TextCell::number(namespace.waiting), parts(namespace.gpus)];
    row.extend(of_amounts(&namespace.amounts, glyphs));
    row.push(TextCell::number(namespace.pods));
    if detail == Detail::Wide {
        row.extend(more_of_amounts(&namespace.amounts));
        row.push(TextCell::list(&namespace.models));
        let quotas = namespace.quotas.iter();
        row.push(TextCell::list(quotas.map(|one| format!("{} {}/{}", one.resource, one.used, one.hard))));
    }
    row
}

fn of_amounts(amounts: &UsedAmounts, glyphs: Glyphs) -> [TextCell; 3] {
    [
        bar(amounts.memory_part(), glyphs),
        TextCell::new(&format!("{}/{}", amounts.memory_used, amounts.memory)),
        bar(amounts.cores_part(), glyphs),
    ]
}

fn more_of_amounts(amounts: &UsedAmounts) -> [TextCell; 2] {
    [
        TextCell::new(&format!("{:.0}/{:.0}", amounts.cores_used, amounts.cores)),
        TextCell::new(&format!("{}/{}", amounts.slots_used, amounts.slots)),
    ]
}

fn stranded(gpus: &GpuParts) -> TextCell {
    let each = gpus.stranded.iter().map(|one| format!("{:.2} {}", one.gpus, one.reason));
    TextCell::list(each)
}
