//! Nodes that refuse a pod, those that lack the same together.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    cli::{output::Shown, table::Table},
    device::Quota,
    scheduling::{
        Ask, NodeReasons,
        decide::nearest::{Lack, lacks},
        world::node_state::NodeState,
    },
};

/// So many names of a group are shown in a table.
const MOST_NAMES: usize = 3;

/// Nodes that lack the same.
#[derive(Clone, Debug, Serialize)]
pub struct NodeGroup {
    reasons: Vec<LackingReason>,
    /// How many these are.
    count: usize,
    /// By name.
    names: Vec<String>,
}

/// What nodes lack.
#[derive(Clone, Debug, Serialize)]
struct LackingReason {
    /// As `berth simulate` has it.
    reason: String,
    /// How much is missing on the node that lacks least: MiB, percent of compute, slots or cards; of another resource in its own unit, cpu in
    /// thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<u64>,
}

/// The groups, by the names of their reasons.
#[derive(Default)]
pub(super) struct NodeGroups(BTreeMap<Vec<String>, AlikeNodes>);

/// Nodes that lack the same: how much of each on the node that lacks least, and their names.
#[derive(Default)]
struct AlikeNodes {
    by: Vec<Option<u64>>,
    names: Vec<String>,
}

impl NodeGroups {
    /// Takes in a node.
    pub(super) fn add(&mut self, ask: &Ask, state: &Arc<NodeState>, reasons: &NodeReasons, quotas: &[Quota]) {
        let mut least: BTreeMap<String, Option<u64>> = BTreeMap::new();
        for lack in &lacks(ask, state, reasons, quotas).1 {
            let by = least.entry(Lack::reason(lack)).or_insert_with(|| lack.by());
            *by = lesser(*by, lack.by());
        }
        let (names, by): (Vec<_>, Vec<_>) = least.into_iter().unzip();
        let alike =
            self.0.entry(names).or_insert_with(|| AlikeNodes { by: by.clone(), ..AlikeNodes::default() });
        for (least, by) in alike.by.iter_mut().zip(by) {
            *least = lesser(*least, by);
        }
        alike.names.push(state.info.name.to_string());
    }

    /// The largest first.
    pub(super) fn into_rows(self) -> Vec<NodeGroup> {
        let group = |(reasons, AlikeNodes { by, mut names }): (Vec<String>, AlikeNodes)| {
            names.sort();
            let reasons = reasons.into_iter().zip(by).map(|(reason, by)| LackingReason { reason, by });
            NodeGroup { reasons: reasons.collect(), count: names.len(), names }
        };
        let mut rows: Vec<_> = self.0.into_iter().map(group).collect();
        rows.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.names.cmp(&other.names)));
        rows
    }
}

/// The lesser amount, where both are.
fn lesser(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other))
}

/// A line for each group.
pub(super) fn table(groups: &[NodeGroup]) -> Shown {
    let mut table = Table::new(&["NODES", "LACK", "NAMES"]);
    for NodeGroup { reasons, count, names } in groups {
        let reasons: Vec<_> = reasons
            .iter()
            .map(|one| match one.by {
                Some(by) => format!("{} ({by})", one.reason),
                None => one.reason.clone(),
            })
            .collect();
        let mut shown = names[..names.len().min(MOST_NAMES)].join(", ");
        if let Some(more) = names.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
            shown = format!("{shown} and {more} more");
        }
        table.row([count.to_string(), reasons.join(", "), shown]);
    }
    table.render()
}
