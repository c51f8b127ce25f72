//! What is left of a group that goes as a whole, of which pods were preempted already: a scheduler has ended between two deletions.
//!
//! It follows from what pods and nominations say, so a scheduler that is started anew finds it.

use super::GangView;
use crate::scheduling::{
    model::{
        gang::{DisruptionMode, GangName, GroupApi},
        name::NodeName,
        pod::{Deletion, Placer, PodKey},
    },
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
    /// The pods of the group that are left while others are preempted for a pod of Berth's.
    pub(in crate::scheduling::scheduler) fn left_over(self, name: &GangName) -> Vec<LeftOver> {
        let stated = || self.snapshot.objects().group_preemption(&name.group);
        let goes_whole = || stated().is_some_and(|group| group.disruption == DisruptionMode::All);
        if name.api != GroupApi::Kubernetes || self.directed || !goes_whole() {
            return Vec::new();
        }
        let charges = || self.snapshot.ledger().of_group(&name.group).map(|(_, charge)| charge);
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
