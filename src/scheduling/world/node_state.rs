//! One node as it stands, with what is in use of it: an immutable value that is replaced when anything on the node changes.

use std::{collections::BTreeSet, sync::Arc};

use super::reservation::Reserved;
use crate::{
    device::{Allocation, ByClass, InitPhase, ProfileName, ProfileRequest, Usage},
    dra::{ExtendedResources, TargetNode},
    object::resource_claim::AllocationResult,
    scheduling::model::{
        extended_resources::{ExtendedRequests, Served, Shares},
        footprint::Footprint,
        node::NodeInfo,
        pod_selector::PodTerm,
        resources::ResourceAmounts,
        tdm::ZoneState,
    },
};

/// Whether a node's device plugin does its work.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Agent {
    /// It owes nothing, or not for long.
    #[default]
    Answering,
    /// It owes an answer for too long: no further pod is sent there, since it would mix both up.
    Silent,
}

/// What is known of a node's device plugins.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NodeAgents {
    /// Whether the one answers that owes an answer.
    pub agent: Agent,
    /// Those that have given no sign for too long.
    pub expired: BTreeSet<ProfileName>,
}

/// The Reservations on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeReserved {
    /// All of them: what is left of them counts as in use.
    pub all: Vec<Arc<Reserved>>,
    /// The one within which a pod is judged here; `None`: as any pod.
    pub within: Option<Arc<Reserved>>,
}

/// What is to be known of a node's cards and devices where claims take some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimedOnNode {
    /// What is in use of its cards by pods' shares alone, where claims of devices hold some of them too; `None`: that is all.
    pub beside: Option<Usage>,
    /// Devices that are kept for pods that wait for room here; `None`: the node is not looked at beside such pods.
    pub kept: Option<Vec<Arc<AllocationResult>>>,
}

/// One node and what is in use of it.
#[derive(Clone, Debug)]
pub struct NodeState {
    /// The node.
    pub info: Arc<NodeInfo>,
    /// What is in use of its cards.
    pub usage: Usage,
    /// What claims take of its cards and devices.
    pub claimed: ClaimedOnNode,
    /// What is in use of its other resources.
    pub requested: ResourceAmounts,
    /// The pods on it.
    pub pods: Vec<Arc<Footprint>>,
    /// The Reservations on it.
    pub reservations: NodeReserved,
    /// The required terms of anti-affinity of those pods.
    pub anti_affinity: Vec<Arc<PodTerm>>,
    /// What is known of its device plugins.
    pub agents: NodeAgents,
    /// The revocable zone that it is in, as that stands now.
    pub zone: Option<ZoneState>,
    /// The classes that stand for extended resources, the same for all nodes.
    pub classes: Arc<ExtendedResources>,
    /// Greater after every change, over all nodes.
    pub generation: u64,
    /// Its place in the snapshot, which it keeps while the node exists.
    pub slot: usize,
}

impl NodeState {
    /// As devices are chosen for it.
    pub(in crate::scheduling) fn target(&self) -> TargetNode<'_> {
        TargetNode { name: &self.info.name, labels: &self.info.labels, features: Some(&self.info.features) }
    }

    /// Whether it has as many pods as it may have.
    pub(in crate::scheduling) fn is_full(&self) -> bool {
        let pods = i64::try_from(self.pods.len()).unwrap_or(i64::MAX);
        self.info.allocatable.names("pods") && pods >= self.info.allocatable.get("pods")
    }

    /// Whether a pod on it has required anti-affinity, which may keep others away.
    pub(in crate::scheduling) fn repels(&self) -> bool {
        !self.anti_affinity.is_empty()
    }

    /// Whether the terms of a pod on it move the scores of nodes for other pods.
    pub(in crate::scheduling) fn weighs(&self) -> bool {
        self.pods.iter().any(|pod| pod.weighs())
    }

    /// Whether a pod on it uses claims.
    pub(in crate::scheduling) fn claims(&self) -> bool {
        self.pods.iter().any(|pod| !pod.claims.is_empty())
    }

    /// What is in use of its cards by pods' shares.
    pub(in crate::scheduling) fn registered(&self) -> &Usage {
        self.claimed.beside.as_ref().unwrap_or(&self.usage)
    }

    /// The class by which the node serves an extended resource; `None`: none stands for it, or a device plugin provides the resource.
    pub(in crate::scheduling) fn class_of(&self, resource: &str) -> Option<&str> {
        let class = self.classes.class(resource)?;
        (self.info.allocatable.get(resource) == 0).then_some(class)
    }

    /// The class by which the node serves shares of a dialect's cards; `None`: there is none, or a device plugin serves them.
    pub(in crate::scheduling) fn class_of_shares(&self, profile: &ProfileName, by: &ByClass) -> Option<&str> {
        if self.info.devices.offer(profile).is_some() || self.info.allocatable.get(&by.resource) > 0 {
            return None;
        }
        self.classes.class_or(&by.resource, &by.otherwise)
    }

    /// Whether a claim serves the request here.
    pub(in crate::scheduling) fn serves_by_claim(&self, device: &ProfileRequest) -> bool {
        let class = device.by_class.as_ref().and_then(|by| self.class_of_shares(&device.profile.name, by));
        class.is_some()
    }

    /// As it is for a pod that uses this one of its Reservations.
    #[must_use]
    pub(in crate::scheduling) fn within(&self, reserved: &Arc<Reserved>) -> Self {
        Self {
            usage: reserved.usage.clone(),
            requested: reserved.requested.clone(),
            reservations: NodeReserved { within: Some(Arc::clone(reserved)), ..self.reservations.clone() },
            ..self.clone()
        }
    }

    /// With these pods on it too, for which it is kept and which are to hold these cards.
    #[must_use]
    pub(in crate::scheduling) fn beside<'a>(
        mut self,
        pods: Vec<Arc<Footprint>>,
        cards: impl Iterator<Item = &'a Allocation>,
    ) -> Self {
        let held = Usage::of(cards.map(|allocation| (&*allocation.assignment, InitPhase::Ahead)));
        let held = self.info.devices.joined(held);
        self.claimed.beside = self.claimed.beside.map(|usage| usage.and(held.clone()));
        self.claimed.kept.get_or_insert_default();
        self.usage = self.usage.and(held);
        self.anti_affinity.extend(pods.iter().flat_map(|pod| pod.neighbours.anti_affinity.iter().cloned()));
        for pod in &pods {
            self.requested.add(&pod.resources);
        }
        self.pods.extend(pods);
        self
    }
}

/// What these pods request together.
pub(in crate::scheduling) fn requested(pods: &[Arc<Footprint>]) -> ResourceAmounts {
    let mut requested = ResourceAmounts::default();
    for pod in pods {
        requested.add(&pod.resources);
    }
    requested
}

impl ExtendedRequests {
    /// What of it a node serves by claim: of what a device plugin provides there nothing, and nothing of the dialects' own but shares
    /// for which there is a class.
    pub(in crate::scheduling) fn served_on<'a>(
        &'a self,
        node: &'a NodeState,
        own: &BTreeSet<String>,
    ) -> Vec<Served<'a>> {
        let class = |resource: &str| match &self.shares {
            Some(Shares { profile, by_class, .. }) if *by_class.resource == *resource => {
                node.class_of_shares(profile, by_class)
            }
            _ if own.contains(resource) => None,
            _ => node.class_of(resource),
        };
        self.resources().into_iter().filter_map(|resource| Some((resource, class(resource)?))).collect()
    }
}
