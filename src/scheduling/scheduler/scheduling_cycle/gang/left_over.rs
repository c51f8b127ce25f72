//! What is left of a group that goes as a whole, of which pods were preempted already: a scheduler has ended between two deletions.
//!
//! It follows from what pods and nominations say, so a scheduler that is started anew finds it.

use std::collections::BTreeSet;

use super::GangView;
use crate::scheduling::{
    model::{
        gang::{GangName, GroupApi},
        name::NodeName,
        pod::{Deletion, Placer, PodKey},
    },
    plan::preemption::members_of,
    world::ledger::{Charge, Commitment},
};

/// A pod that goes since others of its group went.
pub(in crate::scheduling::scheduler) struct LeftOver {
    /// The pod.
    pub(in crate::scheduling::scheduler) pod: PodKey,
    /// The pod for which the others went.
    pub(in crate::scheduling::scheduler) preemptor: PodKey,
    /// The node that is kept for that.
    pub(in crate::scheduling::scheduler) node: NodeName,
}

impl GangView<'_> {
    /// The pods of the gang's groups that are left while others of their group are preempted for a pod of Berth's.
    pub(in crate::scheduling::scheduler) fn left_over(self, name: &GangName) -> Vec<LeftOver> {
        if self.directed {
            return Vec::new();
        }
        let objects = self.snapshot.objects();
        let leaves =
            objects.groups().leaves(name).into_iter().filter(|leaf| leaf.api == GroupApi::Kubernetes);
        let whole: BTreeSet<GangName> =
            leaves.filter_map(|leaf| objects.groups().disrupted_whole(&leaf.group)).collect();
        whole.iter().flat_map(|group| self.left_of(group)).collect()
    }

    /// The same of one group that is disrupted as a whole.
    fn left_of(self, group: &GangName) -> Vec<LeftOver> {
        let members = members_of(group, self.snapshot);
        let charges = || members.iter().map(|(_, charge)| *charge);
        if !charges().any(|charge| charge.importance.deletion == Deletion::Preempted) {
            return Vec::new();
        }
        let stays = |charge: &&Charge| {
            charge.importance.deletion == Deletion::None && charge.commitment == Commitment::Bound
        };
        let preempts = |charge: &Charge| {
            let nominees = self.snapshot.nominations().on_node(&charge.node).into_iter();
            let mut nominees = nominees.filter_map(|uid| Some(&self.pods.get(&uid)?.info));
            let nominee = nominees.find(|nominee| {
                nominee.placer == Placer::Berth && nominee.importance.priority > charge.importance.priority
            });
            nominee.map(|nominee| (nominee.key.clone(), charge.node.clone()))
        };
        let Some((preemptor, node)) = charges().find_map(preempts) else { return Vec::new() };
        let left = charges().filter(stays).map(|charge| LeftOver {
            pod: charge.pod.clone(),
            preemptor: preemptor.clone(),
            node: node.clone(),
        });
        left.collect()
    }
}
