//! The answer of `berth moves`, as JSON has it and as a table.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    cli::{output::Shown, table::Table},
    scheduling::plan::moves::{MovePlan, NodeCard, PodMove, Unmovable},
};

/// Which pods move, and what that wins.
#[derive(Clone, Debug, Serialize)]
pub struct MovesReport {
    moves: Vec<MoveRow>,
    frees: FreedRow,
    before: PackingRow,
    after: PackingRow,
    /// How many pods hold cards that count and are not moved, by reason.
    unmovable: BTreeMap<&'static str, usize>,
    #[serde(skip)]
    kept: BTreeMap<Unmovable, usize>,
}

/// A pod that moves.
#[derive(Clone, Debug, Serialize)]
struct MoveRow {
    namespace: String,
    name: String,
    from: String,
    to: String,
    /// The cards that it is given there.
    cards: Vec<String>,
    /// The pods that must have moved before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    /// Cards that must be cordoned while it moves, beside those that become free.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cordon: Vec<CardRow>,
}

/// A card of a node.
#[derive(Clone, Debug, Serialize)]
struct CardRow {
    node: String,
    card: String,
}

/// What becomes free.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FreedRow {
    /// How many more GPUs are free than before.
    whole_gpus: usize,
    nodes: Vec<String>,
    cards: Vec<CardRow>,
}

/// How the GPUs are used.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PackingRow {
    fragmentation_percent: f64,
}

impl From<&NodeCard> for CardRow {
    fn from(NodeCard { node, card }: &NodeCard) -> Self {
        Self { node: node.to_string(), card: card.to_string() }
    }
}

impl From<&PodMove> for MoveRow {
    fn from(one: &PodMove) -> Self {
        Self {
            namespace: one.pod.namespace.to_string(),
            name: one.pod.name.to_string(),
            from: one.from.to_string(),
            to: one.to.to_string(),
            cards: one.cards.iter().map(ToString::to_string).collect(),
            after: one.after.iter().map(ToString::to_string).collect(),
            cordon: one.closed.iter().map(CardRow::from).collect(),
        }
    }
}

impl MovesReport {
    /// A plan, with FGD's fragmentation before and after it, in percent.
    pub(super) fn of(plan: &MovePlan, before: f64, after: f64) -> Self {
        let nodes: BTreeSet<_> = plan.freed.iter().map(|freed| freed.node.to_string()).collect();
        Self {
            moves: plan.moves.iter().map(MoveRow::from).collect(),
            frees: FreedRow {
                whole_gpus: plan.won,
                nodes: nodes.into_iter().collect(),
                cards: plan.freed.iter().map(CardRow::from).collect(),
            },
            before: PackingRow { fragmentation_percent: rounded(before) },
            after: PackingRow { fragmentation_percent: rounded(after) },
            unmovable: plan.kept.iter().map(|(reason, pods)| (reason.as_str(), *pods)).collect(),
            kept: plan.kept.clone(),
        }
    }

    /// The moves in their order, what they win, and which pods stay.
    pub fn table(&self) -> Shown {
        let mut text = Shown::default();
        if !self.moves.is_empty() {
            let mut moves = Table::new(&["POD", "FROM", "TO", "GPUS", "AFTER"]);
            for row in &self.moves {
                let pod = format!("{}/{}", row.namespace, row.name);
                moves.row([pod, row.from.clone(), row.to.clone(), row.cards.join(","), row.after.join(",")]);
            }
            text = moves.render().and(&Shown::line(""));
        }
        text = text.and(&Shown::line(self.summary()));
        let cordoned: BTreeSet<_> =
            self.moves.iter().flat_map(|row| &row.cordon).map(|card| (&card.node, &card.card)).collect();
        if !cordoned.is_empty() {
            let cards: Vec<_> = cordoned.iter().map(|(node, card)| format!("{card} on {node}")).collect();
            text = text.and(&Shown::line(format!("Kept free while pods move: {}.", cards.join(", "))));
        }
        for (reason, pods) in &self.kept {
            let pods =
                if *pods == 1 { "1 pod stays: it".to_owned() } else { format!("{pods} pods stay: each") };
            text = text.and(&Shown::line(format!("{pods} {reason}.")));
        }
        text
    }

    fn summary(&self) -> String {
        let (before, after) = (self.before.fragmentation_percent, self.after.fragmentation_percent);
        let gpus = self.frees.whole_gpus;
        let gpus =
            if gpus == 1 { "1 whole GPU becomes".to_owned() } else { format!("{gpus} whole GPUs become") };
        match self.moves.len() {
            0 => format!("No pod is worth moving. Fragmentation: {before} %."),
            moves => {
                let pods = if moves == 1 { "1 pod moves" } else { &format!("{moves} pods move") };
                format!("{pods}, and {gpus} free. Fragmentation: {before} % before, {after} % after.")
            }
        }
    }
}

/// To a hundredth.
fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}
