//! The answer of `berth moves` as a table.

use std::collections::BTreeSet;

use crate::{
    api::moves::MovesReport,
    cli::{output::Shown, table::Table},
};

/// The moves in their order, what they win, and which pods stay.
pub(super) fn table(report: &MovesReport) -> Shown {
    let mut text = Shown::default();
    if !report.moves.is_empty() {
        let mut moves = Table::new(&["POD", "FROM", "TO", "GPUS", "AFTER"]);
        for row in &report.moves {
            let pod = row.pod.name();
            moves.row([pod, row.from.clone(), row.to.clone(), row.cards.join(","), row.after.join(",")]);
        }
        text = moves.render().and(&Shown::line(""));
    }
    text = text.and(&Shown::line(summary(report)));
    let cordoned: BTreeSet<_> =
        report.moves.iter().flat_map(|row| &row.cordon).map(|card| (&card.node, &card.card)).collect();
    if !cordoned.is_empty() {
        let cards: Vec<_> = cordoned.iter().map(|(node, card)| format!("{card} on {node}")).collect();
        text = text.and(&Shown::line(format!("Kept free while pods move: {}.", cards.join(", "))));
    }
    for (reason, pods) in &report.kept {
        let pods = if *pods == 1 { "1 pod stays: it".to_owned() } else { format!("{pods} pods stay: each") };
        text = text.and(&Shown::line(format!("{pods} {reason}.")));
    }
    text
}

fn summary(report: &MovesReport) -> String {
    let (before, after) = (report.before.fragmentation_percent, report.after.fragmentation_percent);
    let gpus = report.frees.whole_gpus;
    let gpus = if gpus == 1 { "1 whole GPU becomes".to_owned() } else { format!("{gpus} whole GPUs become") };
    match report.moves.len() {
        0 => format!("No pod is worth moving. Fragmentation: {before} %."),
        moves => {
            let pods = if moves == 1 { "1 pod moves" } else { &format!("{moves} pods move") };
            format!("{pods}, and {gpus} free. Fragmentation: {before} % before, {after} % after.")
        }
    }
}
