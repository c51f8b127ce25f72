//! Why no node can serve a pod, and its text in kube-scheduler's form.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    blame::{Blame, Resolvable},
    nearest::Nearest,
    no_room::NoRoom,
};
use crate::scheduling::{
    model::{
        kept_room::KeptRoom,
        message::{Details, Message},
    },
    plugin::{NodeReasons, Plugin, Reason, dynamic_resources::ClaimRejection},
    world::quota::{Exceeded, QuotaStanding},
};

/// Why no node can serve a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FitError {
    nodes: usize,
    cause: Cause,
    resolvable: Resolvable,
    /// Whether a node failed for pods that it is kept for.
    kept: bool,
    /// The node that comes closest.
    nearest: Option<Box<Nearest>>,
    /// Why preemption makes no room, where it was tried or is not to be yet.
    preemption: Option<Box<NoRoom>>,
    /// The room that is kept for the pod meanwhile.
    room: Option<Box<KeptRoom>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Cause {
    /// A reason that holds on every node, such as a constraint that is not served.
    Pod(Reason),
    /// The namespace's quota, whatever the node.
    Quota(Exceeded),
    /// So many nodes for each kind of reason; and how the quota stands, where nodes failed for it.
    Nodes(BTreeMap<Reason, usize>, Option<QuotaStanding>),
}

/// What may make room for a pod that no node would have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Awaits {
    /// A change of a node.
    Node,
    /// A change of the namespace's quota, or of what is used of it.
    Quota,
    /// Either.
    NodeOrQuota,
    /// The end of a comparison of its claims with devices.
    Comparison,
}

impl FitError {
    /// Why each node failed.
    pub fn of_nodes<'a>(reasons: impl IntoIterator<Item = &'a NodeReasons>) -> Self {
        Self::of_counted(reasons.into_iter().map(|list| (list, 1)))
    }

    /// Why nodes failed, each list of reasons with how many nodes have it.
    pub fn of_counted<'a>(failed: impl IntoIterator<Item = (&'a NodeReasons, usize)>) -> Self {
        let mut counts = BTreeMap::new();
        let mut nodes = 0;
        let mut resolvable = Resolvable::No;
        for (list, alike) in failed {
            nodes += alike;
            if resolvable == Resolvable::No {
                resolvable = Resolvable::on_node(list);
            }
            let mut count = |kind: Reason| *counts.entry(kind).or_insert(0) += alike;
            match list.as_slice() {
                [only] => count(only.kind()),
                several => {
                    let kinds: BTreeSet<_> = several.iter().map(Reason::kind).collect();
                    kinds.into_iter().for_each(&mut count);
                }
            }
        }
        if nodes == 0 {
            resolvable = Resolvable::Yes;
        }
        Self {
            nodes,
            cause: Cause::Nodes(counts, None),
            resolvable,
            kept: false,
            nearest: None,
            preemption: None,
            room: None,
        }
    }

    /// The namespace's quota, whatever the node.
    pub fn of_quota(exceeded: Exceeded) -> Self {
        let (cause, resolvable) = (Cause::Quota(exceeded), Resolvable::Yes);
        Self { nodes: 0, cause, resolvable, kept: false, nearest: None, preemption: None, room: None }
    }

    /// With how the namespace's quota stands, for which nodes failed.
    #[must_use]
    pub fn beside_quota(mut self, standing: QuotaStanding) -> Self {
        if let Cause::Nodes(_, quota) = &mut self.cause {
            *quota = Some(standing);
        }
        self
    }

    /// Whether this says the same as the other, but for how much of the quota is used: that changes too often to report it to all pods that wait
    /// for it.
    pub fn repeats(&self, said: &Self) -> bool {
        match (&self.cause, &said.cause) {
            (Cause::Quota(exceeded), Cause::Quota(said)) => exceeded.is_of_quota_of(said),
            _ => false,
        }
    }

    /// Whether both have the same reasons, whatever the nodes and amounts.
    pub fn is_alike(&self, other: &Self) -> bool {
        match (&self.cause, &other.cause) {
            (Cause::Pod(one), Cause::Pod(other)) => one == other || one.kind() == other.kind(),
            (Cause::Quota(one), Cause::Quota(other)) => one.is_of_quota_of(other),
            (Cause::Nodes(one, _), Cause::Nodes(other, _)) => one.keys().eq(other.keys()),
            _ => false,
        }
    }

    /// With the node that comes closest.
    #[must_use]
    pub fn beside_nearest(self, nearest: Option<Nearest>) -> Self {
        Self { nearest: nearest.map(Box::new), ..self }
    }

    /// With why preemption makes no room.
    #[must_use]
    pub fn beside_preemption(self, preemption: impl Into<NoRoom>) -> Self {
        let preemption = preemption.into();
        // What is kept of the quota for nominated pods comes back with their nominations.
        let kept = self.kept || matches!(preemption, NoRoom::Quota(_));
        Self { preemption: Some(Box::new(preemption)), kept, ..self }
    }

    /// With the room that is kept for the pod, if there is any.
    #[must_use]
    pub fn beside_room(self, room: Option<KeptRoom>) -> Self {
        Self { room: room.map(Box::new), ..self }
    }

    /// Whether preemption was tried in vain.
    pub fn is_hopeless(&self) -> bool {
        matches!(self.preemption.as_deref(), Some(NoRoom::Hopeless(_) | NoRoom::Quota(_)))
    }

    /// The node that comes closest, and what it lacks.
    pub fn nearest(&self) -> Option<&Nearest> {
        self.nearest.as_deref()
    }

    /// Some node failed for pods that it is kept for.
    #[must_use]
    pub fn beside_nominated(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Whether some node failed for pods that it is kept for.
    pub fn is_beside_nominated(&self) -> bool {
        self.kept
    }

    /// The plugins that rejected a node.
    pub fn plugins(&self) -> BTreeSet<Plugin> {
        match &self.cause {
            Cause::Nodes(counts, _) => counts.keys().map(Reason::plugin).collect(),
            Cause::Pod(reason) => BTreeSet::from([reason.plugin()]),
            Cause::Quota(_) => BTreeSet::new(),
        }
    }

    /// Why the pod waits, as far as that is counted.
    pub fn blame(&self) -> Blame {
        let reasons = match &self.cause {
            Cause::Quota(_) => return Blame::Quota,
            Cause::Pod(reason) => BTreeSet::from([reason.kind()]),
            Cause::Nodes(counts, _) => counts.keys().cloned().collect(),
        };
        Blame::Reasons(reasons, self.resolvable)
    }

    /// What may make room for the pod.
    pub fn awaits(&self) -> Awaits {
        match &self.cause {
            Cause::Quota(_) => Awaits::Quota,
            Cause::Nodes(_, Some(_)) => Awaits::NodeOrQuota,
            Cause::Pod(Reason::DynamicResources(ClaimRejection::Unfinished)) => Awaits::Comparison,
            Cause::Pod(_) | Cause::Nodes(_, None) => Awaits::Node,
        }
    }

    /// A reason of the pod's own, whatever the node.
    pub fn of_pod(nodes: usize, reason: Reason) -> Self {
        Self {
            nodes,
            cause: Cause::Pod(reason),
            resolvable: Resolvable::Yes,
            kept: false,
            nearest: None,
            preemption: None,
            room: None,
        }
    }

    /// The number of nodes that it is about.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// What is said of it.
    pub fn message(&self) -> Message {
        Message::with_own(self.to_string(), self.own_words())
    }

    /// What is said of it with these details: without the nearest miss, and the devices that reasons name, where the pod's owner is told of her own
    /// objects alone.
    pub fn words(&self, details: Details) -> String {
        match details {
            Details::Full => self.to_string(),
            Details::Own => self.own_words(),
        }
    }

    fn own_words(&self) -> String {
        let nodes = self.nodes;
        let words = match &self.cause {
            Cause::Quota(exceeded) => exceeded.to_string(),
            Cause::Pod(reason) => format!("0/{nodes} nodes are available: {}.", reason.own_words()),
            Cause::Nodes(counts, quota) => {
                let counted =
                    if counts.is_empty() { "no nodes".to_owned() } else { self.counted_for(Details::Own) };
                let quota = quota.iter().map(|quota| format!(" Quota {quota}."));
                format!("0/{nodes} nodes are available: {counted}.{}", quota.collect::<String>())
            }
        };
        let tried = self.preemption.iter().filter(|preemption| preemption.was_tried());
        let words = tried.fold(words, |words, preemption| format!("{words} {preemption}"));
        let nearest = self.nearest.as_ref().and_then(|nearest| nearest.own_words());
        let words = nearest.iter().fold(words, |words, nearest| format!("{words} nearest node: {nearest}."));
        self.room.iter().fold(words, |words, room| format!("{words} {}.", room.own_words()))
    }

    /// The same as [`Self::counted`], as far as it is told. Reasons that read the same without the devices that they name are counted together.
    pub fn counted_for(&self, details: Details) -> String {
        let Cause::Nodes(counts, _) = &self.cause else { return String::new() };
        if details == Details::Full {
            return self.counted();
        }
        let mut own: BTreeMap<String, usize> = BTreeMap::new();
        for (reason, count) in counts {
            *own.entry(reason.own_words()).or_default() += count;
        }
        let mut own: Vec<_> = own.into_iter().map(|(words, count)| format!("{count} {words}")).collect();
        own.sort();
        own.join(", ")
    }

    /// How many nodes have each reason: `1 Insufficient cpu, 2 node(s) had untolerated taint(s)`.
    pub fn counted(&self) -> String {
        let Cause::Nodes(counts, _) = &self.cause else { return String::new() };
        let mut counts: Vec<_> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        counts.sort();
        counts.join(", ")
    }
}

/// A quota that is exceeded in the API server's words; the rest in kube-scheduler's form: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`
/// (`pkg/scheduler/framework/types.go` `FitError`), followed by the nearest miss.
impl fmt::Display for FitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Quota(exceeded) => exceeded.fmt(formatter),
            Cause::Pod(reason) => write!(formatter, "0/{} nodes are available: {reason}.", self.nodes),
            Cause::Nodes(counts, quota) => {
                let counted = if counts.is_empty() { "no nodes".to_owned() } else { self.counted() };
                write!(formatter, "0/{} nodes are available: {counted}.", self.nodes)?;
                quota.iter().try_for_each(|quota| write!(formatter, " Quota {quota}."))
            }
        }?;
        // Where no node has a pod that may be preempted, there is nothing to say of preemption.
        let tried = self.preemption.iter().filter(|preemption| preemption.is_said());
        tried.into_iter().try_for_each(|preemption| write!(formatter, " {preemption}"))?;
        self.nearest.iter().try_for_each(|nearest| write!(formatter, " nearest: {nearest}."))?;
        self.room.iter().try_for_each(|room| write!(formatter, " {room}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::plugin::{
        devices::{CardReason, DeviceReason},
        node_resources_fit::ResourceReason,
        taint_toleration::UntoleratedTaint,
    };

    #[test]
    fn a_fit_error_reads_as_kube_schedulers() {
        let card = |reason, count| Reason::Devices(DeviceReason::Card { reason, count, of: 4 });
        let memory = card(CardReason::CardInsufficientMemory, 3);
        let slots = card(CardReason::CardTimeSlicingExhausted, 1);
        let cpu = ResourceReason::Insufficient { resource: "cpu".into(), requested: 2, free: 1, capacity: 4 };
        let nodes = [
            vec![Reason::TaintToleration(UntoleratedTaint)],
            vec![memory.clone(), slots],
            vec![memory],
            vec![Reason::NodeResourcesFit(cpu)],
        ];
        assert_eq!(
            FitError::of_nodes(&nodes).to_string(),
            "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) had no free slot on a GPU, \
             1 node(s) had untolerated taint(s), 2 Insufficient GPU memory."
        );
    }
}
