//! What may be read of gangs: who belongs to which, what their pods hold, and how far these are.

use std::sync::Arc;

use super::Gangs;
use crate::scheduling::{
    model::{
        gang::{Gang, GangName, Member, Membership, Policy, Tally, tree::GroupTree},
        name::{NodeName, Uid},
        pod::{PodInfo, Stage},
    },
    node_flow::NodeFlows,
    prebind::Prebinding,
    scheduler::scheduling_cycle::{
        pods::Pods,
        scheduling_queue::{PodProgress, SchedulingQueue},
    },
    snapshot::Snapshot,
    world::ledger::Commitment,
};

/// Gangs beside what else is known of their pods.
#[derive(Clone, Copy)]
pub(in crate::scheduling::scheduler) struct GangView<'a> {
    /// The gangs.
    pub(in crate::scheduling::scheduler) gangs: &'a Gangs,
    /// The pods that were seen.
    pub(in crate::scheduling::scheduler) pods: &'a Pods,
    /// How far they are.
    pub(in crate::scheduling::scheduler) queue: &'a SchedulingQueue,
    /// What they hold, and what PodGroups say.
    pub(in crate::scheduling::scheduler) snapshot: &'a Snapshot,
    /// Those whose claims are being bound.
    pub(in crate::scheduling::scheduler) prebinding: &'a Prebinding,
    /// Those in the lines of nodes.
    pub(in crate::scheduling::scheduler) flows: &'a NodeFlows,
    /// Whether kube-scheduler chooses the nodes: each pod is placed alone then.
    pub(in crate::scheduling::scheduler) directed: bool,
}

/// What the pods of a gang, or of a group in one, hold.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Survey {
    /// Those that hold a place, bound or not.
    pub(super) placed: Tally,
    /// Those that are bound.
    pub(super) bound: Tally,
    /// Those for which a Binding is under way.
    pub(super) binding: Tally,
    /// Those that have started.
    pub(super) started: Tally,
    /// The nodes of those that hold a place, with the group of each.
    pub(super) nodes: Vec<(GangName, NodeName)>,
    /// Those that are decided, and for which no Binding is under way, with what each is in its group.
    pub(super) assumed: Vec<(Uid, Member)>,
    /// Those that Berth or another scheduler has bound.
    pub(super) evictable: Vec<Uid>,
}

impl Survey {
    /// Whether a pod is bound, or may be by the time that a Binding is answered.
    pub(super) fn is_committed(&self) -> bool {
        self.binding.total() + self.bound.total() > 0
    }

    /// Whether a pod of this member's group is to give up its place, unless it is bound: its gang has lost a place before any of its pods was bound. In a
    /// tree of groups, each group that the pod is in counts by itself, too.
    pub(super) fn is_broken(&self, gang: &Gang, member: &Member) -> bool {
        let Some(tree) = &gang.groups else { return !gang.is_whole(&self.placed) && !self.is_committed() };
        let wholes = tree.wholes(&self.placed);
        let (bound, binding) = (tree.sums(&self.bound), tree.sums(&self.binding));
        tree.chain(&member.gang).any(|at| !wholes[at] && bound[at] + binding[at] == 0)
    }
}

impl<'a> GangView<'a> {
    /// What a pod is in its gang, and what its PodGroup says; `None`: it is placed alone.
    pub(super) fn membership(self, uid: &Uid) -> Option<(&'a Member, Membership)> {
        self.gangs.timeout.filter(|_| !self.directed)?;
        let info = &self.pods.get(uid)?.info;
        let member = info.groups.gang()?;
        if let Some(why) = self.contradiction(info) {
            return Some((member, Membership::Policy(Policy::Unserved(why.into()))));
        }
        match self.snapshot.objects().membership(&member.gang) {
            Membership::Policy(Policy::Alone) => None,
            membership => Some((member, membership)),
        }
    }

    /// Why a pod is not placed, since it is not as its PodGroup says; `None`: it is.
    pub(super) fn contradiction(self, pod: &PodInfo) -> Option<String> {
        let group = self.snapshot.objects().group_preemption(pod.importance.group.as_ref()?)?;
        group.contradiction(&pod.importance).filter(|_| pod.holding.is_none())
    }

    /// Whether the pod is placed together with others, or waits for its PodGroup.
    pub(in crate::scheduling::scheduler) fn is_in_gang(self, uid: &Uid) -> bool {
        self.membership(uid).is_some()
    }

    /// Whether all pods of the pod's gang must share a domain, or those of a group in it.
    pub(in crate::scheduling::scheduler) fn shares_topology(self, uid: &Uid) -> bool {
        let Some((_, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else { return false };
        match &gang.groups {
            Some(tree) => tree.has_topology(GroupTree::ROOT),
            None => gang.topology.is_some(),
        }
    }

    /// The gang that the pods of a PodGroup are placed with.
    pub(in crate::scheduling::scheduler) fn root(self, group: &GangName) -> GangName {
        self.snapshot.objects().groups().root(group)
    }

    /// The pods of a gang, or of a group in one.
    pub(in crate::scheduling::scheduler) fn members(
        self,
        gang: &GangName,
    ) -> impl Iterator<Item = &'a Uid> + use<'a> {
        let leaves = self.snapshot.objects().groups().leaves(gang);
        leaves.into_iter().flat_map(move |leaf| self.gangs.members(&leaf))
    }

    /// Whether the pods of a group are evicted with those of one that it is in.
    pub(in crate::scheduling::scheduler) fn goes_with_others(self, group: &GangName) -> bool {
        let lineage = self.snapshot.objects().groups().lineage(group);
        lineage.iter().skip(1).any(|above| self.gangs.is_rolling_back(above))
    }

    /// Whether the pods of a group are evicted, by themselves or with those of one that it is in.
    pub(super) fn is_rolled_back(self, group: &GangName) -> bool {
        self.gangs.is_rolling_back(group) || self.goes_with_others(group)
    }

    /// The other pods of a pod's gang, and itself.
    fn mates(self, member: &Member) -> impl Iterator<Item = &'a Uid> + use<'a> {
        self.members(&self.root(&member.gang))
    }

    /// Whether the claims of every pod of the gang that is decided are bound.
    pub(in crate::scheduling::scheduler) fn is_permitted(self, uid: &Uid) -> bool {
        let Some((member, _)) = self.membership(uid) else { return true };
        !self.mates(member).any(|mate| self.prebinding.is_binding(mate))
    }

    /// Whether the pod's gang has lost a place before any of its pods was bound: none of them is bound then.
    pub(in crate::scheduling::scheduler) fn is_of_broken_gang(self, uid: &Uid) -> bool {
        let Some((member, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else {
            return false;
        };
        self.survey(&self.root(&member.gang)).is_broken(&gang, member)
    }

    /// The other pods of the pod's gang that are not bound.
    pub(in crate::scheduling::scheduler) fn unbound_mates(self, uid: &Uid) -> Vec<Uid> {
        let Some((member, _)) = self.membership(uid) else { return Vec::new() };
        let is_bound = |mate: &Uid| {
            let charge = self.snapshot.ledger().get(mate);
            charge.is_some_and(|charge| charge.commitment == Commitment::Bound)
        };
        let mates = self.mates(member).filter(|mate| *mate != uid && !is_bound(mate));
        mates.cloned().collect()
    }

    /// What must hold of a gang, and what its pods hold; `None`: its pods are not placed together, or that is not known.
    pub(in crate::scheduling::scheduler) fn stand(self, name: &GangName) -> Option<(Arc<Gang>, Survey)> {
        match self.snapshot.objects().membership(name) {
            Membership::Policy(Policy::Gang(gang)) => Some((gang, self.survey(name))),
            _ => None,
        }
    }

    /// What the pods of a gang, or of a group in one, hold.
    pub(in crate::scheduling::scheduler) fn survey(self, gang: &GangName) -> Survey {
        let mut survey = Survey::default();
        for uid in self.members(gang) {
            let (Some(entry), Some(charge)) = (self.pods.get(uid), self.snapshot.ledger().get(uid)) else {
                continue;
            };
            let Some(member) = entry.info.groups.gang() else { continue };
            survey.placed.count(member);
            survey.nodes.push((member.gang.clone(), charge.node.clone()));
            if charge.stage == Stage::Running {
                survey.started.count(member);
            }
            match charge.commitment {
                Commitment::Bound => {
                    survey.bound.count(member);
                    survey.evictable.push(uid.clone());
                }
                Commitment::Assumed if self.is_being_bound(uid) => survey.binding.count(member),
                Commitment::Assumed => survey.assumed.push((uid.clone(), member.clone())),
                Commitment::Intended => {}
            }
        }
        survey
    }

    /// Whether a Binding was sent for the pod, or a lock is being taken for it.
    fn is_being_bound(self, uid: &Uid) -> bool {
        matches!(self.queue.progress(uid), PodProgress::InLine(node) if self.flows.serves(node, uid))
    }
}
