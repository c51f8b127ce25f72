//! Why a pod does not fit: for each card, for each node, and for the cluster in kube-scheduler's words.

use std::{collections::BTreeMap, fmt};

use super::quota::Exceeded;

/// Why one card can't serve one container. The names are HAMi's, so that people find them again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CardReason {
    /// Its plugin says that it does not work.
    CardNotHealth,
    /// An operator keeps new pods off it.
    CardCordoned,
    /// Its model is not one that the pod wants.
    CardTypeMismatch,
    /// Its uuid is not one that the pod wants.
    CardUuidMismatch,
    /// It is sliced in a way that the pod does not want or that is not served.
    ModeNotFit,
    /// It hangs on another NUMA node than enough others.
    NumaNotFit,
    /// All its slots are taken.
    CardTimeSlicingExhausted,
    /// A pod that this one shares no card with uses it.
    CardMarkConflict,
    /// The namespace's quota leaves too little.
    ResourceQuotaNotFit,
    /// It has too little free memory.
    CardInsufficientMemory,
    /// It has too little free compute.
    CardInsufficientCore,
    /// One of both wants the card for itself.
    ExclusiveDeviceAllocateConflict,
    /// All its compute is given away.
    CardComputeUnitsExhausted,
    /// No hardware slice of it is free and large enough.
    CardMigTopologyInfeasible,
}

impl CardReason {
    /// The name, as `berth simulate --explain` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CardNotHealth => "CardNotHealth",
            Self::CardCordoned => "CardCordoned",
            Self::CardTypeMismatch => "CardTypeMismatch",
            Self::CardUuidMismatch => "CardUuidMismatch",
            Self::ModeNotFit => "ModeNotFit",
            Self::CardTimeSlicingExhausted => "CardTimeSlicingExhausted",
            Self::CardInsufficientMemory => "CardInsufficientMemory",
            Self::CardInsufficientCore => "CardInsufficientCore",
            Self::ExclusiveDeviceAllocateConflict => "ExclusiveDeviceAllocateConflict",
            Self::CardComputeUnitsExhausted => "CardComputeUnitsExhausted",
            Self::NumaNotFit => "NumaNotFit",
            Self::CardMarkConflict => "CardMarkConflict",
            Self::ResourceQuotaNotFit => "ResourceQuotaNotFit",
            Self::CardMigTopologyInfeasible => "CardMigTopologyInfeasible",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::CardNotHealth => "node(s) had only unhealthy GPUs left",
            Self::CardCordoned => "node(s) had only cordoned GPUs left",
            Self::CardTypeMismatch => "node(s) didn't match Pod's GPU type",
            Self::CardUuidMismatch => "node(s) didn't match Pod's GPU UUIDs",
            Self::ModeNotFit => "node(s) didn't match Pod's GPU mode",
            Self::CardTimeSlicingExhausted => "node(s) had no free slot on a GPU",
            Self::CardInsufficientMemory => "Insufficient GPU memory",
            Self::CardInsufficientCore => "Insufficient GPU cores",
            Self::ExclusiveDeviceAllocateConflict => "node(s) had no GPU free for exclusive use",
            Self::CardComputeUnitsExhausted => "node(s) had no GPU cores left",
            Self::NumaNotFit => "node(s) had too few GPUs on one NUMA node",
            Self::CardMarkConflict => "node(s) had only GPUs left that a Pod kept apart from this one uses",
            Self::ResourceQuotaNotFit => "GPU quota of the namespace exceeded",
            Self::CardMigTopologyInfeasible => "node(s) had no free MIG slice of the size",
        }
    }
}

/// Why one node can't serve one pod.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reason {
    /// It is cordoned.
    Unschedulable,
    /// It has a taint that the pod does not bear.
    UntoleratedTaint,
    /// Its labels are not those that the pod wants.
    AffinityMismatch,
    /// It has as many pods as it may have.
    TooManyPods,
    /// It has too little of a resource.
    Insufficient(String),
    /// No device plugin of the pod's dialect runs there.
    NoDevices,
    /// What its device plugin registered can't be read.
    UnreadableDevices,
    /// Its device plugin reports itself from time to time and has not for too long.
    ExpiredRegistration,
    /// Its device plugin owes an answer for too long.
    SilentAgent,
    /// A pod on it holds cards that nobody can tell: any of them may be full.
    UnreadableAssignment,
    /// It has fewer cards than one container asks for.
    NodeInsufficientDevice,
    /// So many of its cards fail this test.
    Card {
        /// The test.
        reason: CardReason,
        /// How many cards fail it.
        count: usize,
        /// How many cards there are.
        of: usize,
    },
    /// Some cards fit, but fewer than the container asks for.
    AllocatedCardsInsufficientRequest {
        /// How many fit.
        count: usize,
        /// How many there are.
        of: usize,
    },
}

impl Reason {
    /// Whether it is about the node's cards: what a pod asks of them may be changed.
    pub fn is_of_cards(&self) -> bool {
        matches!(
            self,
            Self::NodeInsufficientDevice | Self::Card { .. } | Self::AllocatedCardsInsufficientRequest { .. }
        )
    }

    /// The name, as `berth simulate --explain` prints it.
    pub fn name(&self) -> String {
        match self {
            Self::Unschedulable => "NodeUnschedulable".to_owned(),
            Self::UntoleratedTaint => "TaintToleration".to_owned(),
            Self::AffinityMismatch => "NodeAffinity".to_owned(),
            Self::TooManyPods => "TooManyPods".to_owned(),
            Self::Insufficient(resource) => format!("Insufficient {resource}"),
            Self::NoDevices => "NodeUnregistered".to_owned(),
            Self::UnreadableDevices => "NodeRegistrationUnreadable".to_owned(),
            Self::ExpiredRegistration => "NodeRegistrationExpired".to_owned(),
            Self::SilentAgent => "NodeAgentSilent".to_owned(),
            Self::UnreadableAssignment => "NodeAssignmentUnreadable".to_owned(),
            Self::NodeInsufficientDevice => "NodeInsufficientDevice".to_owned(),
            Self::Card { reason, .. } => reason.name().to_owned(),
            Self::AllocatedCardsInsufficientRequest { .. } => "AllocatedCardsInsufficientRequest".to_owned(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Unschedulable => "node(s) were unschedulable".to_owned(),
            Self::UntoleratedTaint => "node(s) had untolerated taint(s)".to_owned(),
            Self::AffinityMismatch => "node(s) didn't match Pod's node affinity/selector".to_owned(),
            Self::TooManyPods => "Too many pods".to_owned(),
            Self::Insufficient(resource) => format!("Insufficient {resource}"),
            Self::NoDevices => "node(s) had no GPUs of the kind that the Pod asks for".to_owned(),
            Self::UnreadableDevices => "node(s) had an unreadable GPU registration".to_owned(),
            Self::ExpiredRegistration => "node(s) had a device plugin that has stopped reporting".to_owned(),
            Self::SilentAgent => "node(s) had a device plugin that does not answer".to_owned(),
            Self::UnreadableAssignment => "node(s) had a Pod with an unreadable GPU assignment".to_owned(),
            Self::NodeInsufficientDevice => "node(s) had fewer GPUs than one container asks for".to_owned(),
            Self::Card { reason, .. } => reason.words().to_owned(),
            Self::AllocatedCardsInsufficientRequest { .. } => {
                "node(s) had too few GPUs with enough room".to_owned()
            }
        }
    }
}

/// Why one node can't serve one pod: every reason of the first test that it failed.
pub type NodeReasons = Vec<Reason>;

/// Why no node can serve a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FitError {
    nodes: usize,
    cause: Cause,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Cause {
    /// A reason that holds on every node, such as a constraint that is not served.
    Pod(String),
    /// The namespace's quota, whatever the node.
    Quota(Exceeded),
    /// So many nodes for each reason; and how the quota stands, where nodes failed for it.
    Nodes(BTreeMap<String, usize>, Option<String>),
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
}

impl FitError {
    /// Why each node failed.
    pub fn of_nodes<'a>(reasons: impl IntoIterator<Item = &'a NodeReasons>) -> Self {
        let mut counts = BTreeMap::new();
        let mut nodes = 0;
        for node in reasons {
            nodes += 1;
            let words: std::collections::BTreeSet<_> = node.iter().map(Reason::words).collect();
            for word in words {
                *counts.entry(word).or_insert(0) += 1;
            }
        }
        Self { nodes, cause: Cause::Nodes(counts, None) }
    }

    /// The namespace's quota, whatever the node.
    pub fn of_quota(exceeded: Exceeded) -> Self {
        Self { nodes: 0, cause: Cause::Quota(exceeded) }
    }

    /// With how the namespace's quota stands, for which nodes failed.
    #[must_use]
    pub fn beside_quota(mut self, standing: String) -> Self {
        if let Cause::Nodes(_, quota) = &mut self.cause {
            *quota = Some(standing);
        }
        self
    }

    /// Whether this was said before, but for how much of the quota is used: that changes too often to be told to all who wait for it.
    pub fn repeats(&self, said: &str) -> bool {
        matches!(&self.cause, Cause::Quota(exceeded) if exceeded.is_said_in(said))
    }

    /// What may make room for the pod.
    pub fn awaits(&self) -> Awaits {
        match &self.cause {
            Cause::Quota(_) => Awaits::Quota,
            Cause::Nodes(_, Some(_)) => Awaits::NodeOrQuota,
            Cause::Pod(_) | Cause::Nodes(_, None) => Awaits::Node,
        }
    }

    /// A reason of the pod's own, whatever the node.
    pub fn of_pod(nodes: usize, reason: String) -> Self {
        Self { nodes, cause: Cause::Pod(reason) }
    }

    /// How many nodes it speaks of.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many nodes have each reason: `1 Insufficient cpu, 2 node(s) had untolerated taint(s)`.
    pub fn counted(&self) -> String {
        let Cause::Nodes(counts, _) = &self.cause else { return String::new() };
        let mut counts: Vec<_> = counts.iter().map(|(words, count)| format!("{count} {words}")).collect();
        counts.sort();
        counts.join(", ")
    }
}

/// A quota that is exceeded in the API server's words; the rest in kube-scheduler's form: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`
/// (`pkg/scheduler/framework/types.go` `FitError`).
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_error_reads_as_kube_schedulers() {
        let memory = Reason::Card { reason: CardReason::CardInsufficientMemory, count: 3, of: 4 };
        let slots = Reason::Card { reason: CardReason::CardTimeSlicingExhausted, count: 1, of: 4 };
        let nodes = [
            vec![Reason::UntoleratedTaint],
            vec![memory.clone(), slots],
            vec![memory],
            vec![Reason::Insufficient("cpu".into())],
        ];
        assert_eq!(
            FitError::of_nodes(&nodes).to_string(),
            "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) had no free slot on a GPU, \
             1 node(s) had untolerated taint(s), 2 Insufficient GPU memory."
        );
    }
}
