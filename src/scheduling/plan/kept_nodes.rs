//! Nodes that are kept for nominated pods and go to others: which nominations end so that a pod of their priority finds room.

use std::collections::BTreeMap;

use super::Plan;
use crate::scheduling::{
    decide::Filters,
    model::{
        name::{NodeName, Uid},
        pod::Demand,
        steps::JUDGE,
    },
    plugin::pod_counts::PodCounts,
    snapshot::Snapshot,
};

/// The nominated pods of one of these nodes, by which the pod would fit if it were kept for none of them; `None`: there is no such node.
pub(in crate::scheduling) fn choose(
    demand: &Demand,
    kept: BTreeMap<NodeName, Vec<Uid>>,
    counts: &mut PodCounts,
    snapshot: &mut Snapshot,
) -> Option<Vec<Uid>> {
    let mut plan = Plan::new(snapshot);
    let mut would_fit = |(node, nominees): &(NodeName, Vec<Uid>)| {
        let mark = plan.mark();
        for nominee in nominees {
            plan.end_nomination(nominee);
        }
        counts.steps().add(JUDGE + demand.ask.cost(), 1);
        let filters = Filters::prepare(demand, plan.world(), counts);
        let fits = filters.rejected().is_none() && plan.node(node).is_some_and(|state| filters.passes(state));
        drop(filters);
        plan.undo(mark);
        fits
    };
    kept.into_iter().find(|node| would_fit(node)).map(|(_, nominees)| nominees)
}
