//! What was found on each node, so that what lasts is reported once.

use std::collections::BTreeMap;

use super::{DoubleAllocation, Finding, MissingAssignment, Overcommitment, UnreadAssignment, overcommitted};
use crate::{
    device::CardId,
    dra::device::DeviceId,
    scheduling::{
        model::{
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::PodKey,
        },
        snapshot::Snapshot,
        world::{
            ledger::{Charge, Commitment},
            node_state::NodeState,
            pod_lister::PodLister,
        },
    },
};

/// What is found on one node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeFindings {
    /// The cards of which pods hold more than there is.
    pub overcommitted: BTreeMap<CardId, Overcommitment>,
    /// The devices of bound pods that several claims have.
    pub double_allocations: BTreeMap<DeviceId, DoubleAllocation>,
    /// The pods whose assignments can't be read.
    pub unread: BTreeMap<Uid, UnreadAssignment>,
    /// The bound pods that ask for a share and carry no assignment.
    pub unassigned: BTreeMap<Uid, MissingAssignment>,
}

/// How much is found on one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FindingCounts {
    /// Cards of which pods hold more than there is.
    pub overcommitted: usize,
    /// Devices of bound pods that several claims have.
    pub double_allocations: usize,
    /// Pods whose assignments can't be read.
    pub unread: usize,
    /// Bound pods that ask for a share and carry no assignment.
    pub unassigned: usize,
}

impl NodeFindings {
    /// How much it is.
    pub fn counts(&self) -> FindingCounts {
        FindingCounts {
            overcommitted: self.overcommitted.len(),
            double_allocations: self.double_allocations.len(),
            unread: self.unread.len(),
            unassigned: self.unassigned.len(),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is found on all nodes; a node where nothing is found is not kept.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Findings(BTreeMap<NodeName, NodeFindings>);

/// What has changed of a node's findings.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Raised {
    /// What is new, and the pods that it is told of.
    pub(in crate::scheduling) new: Vec<(PodKey, Finding)>,
    /// All that is found on the node now, if that has changed.
    pub(in crate::scheduling) now: Option<NodeFindings>,
}

impl Findings {
    /// Looks at a node on which something has changed.
    pub(in crate::scheduling) fn watch(
        &mut self,
        node: &NodeName,
        snapshot: &Snapshot,
        pods: &dyn PodLister,
    ) -> Raised {
        let found = match snapshot.node(node) {
            Some(state) => found_on(state, snapshot, pods),
            None => NodeFindings::default(),
        };
        if self.0.get(node).map_or(found.is_empty(), |known| *known == found) {
            return Raised::default();
        }
        let known =
            if found.is_empty() { self.0.remove(node) } else { self.0.insert(node.clone(), found.clone()) };
        let known = known.unwrap_or_default();
        let key = |uid: &Uid| pods.pod(uid).map(|pod| pod.key.clone());
        let mut new = Vec::new();
        let info = snapshot.node(node).map(|state| &*state.info);
        for (card, overcommitment) in &found.overcommitted {
            if !known.overcommitted.contains_key(card) {
                let holders =
                    info.into_iter().flat_map(|info| holders_of(card, info, snapshot)).filter_map(key);
                new.extend(holders.map(|pod| (pod, Finding::Overcommitted(overcommitment.clone()))));
            }
        }
        for (device, given) in &found.double_allocations {
            let told = known.double_allocations.get(device).map(|known| &known.pods);
            let untold = given.pods.iter().filter(|pod| told.is_none_or(|told| !told.contains(*pod)));
            new.extend(untold.filter_map(key).map(|pod| (pod, Finding::DoubleAllocation(given.clone()))));
        }
        for (uid, unread) in &found.unread {
            if known.unread.get(uid).is_none_or(|known| known.why != unread.why) {
                new.extend(key(uid).map(|pod| (pod, Finding::Unread(unread.clone()))));
            }
        }
        for (uid, missing) in &found.unassigned {
            if !known.unassigned.contains_key(uid) {
                new.extend(key(uid).map(|pod| (pod, Finding::Unassigned(missing.clone()))));
            }
        }
        Raised { new, now: Some(found) }
    }
}

fn found_on(state: &NodeState, snapshot: &Snapshot, pods: &dyn PodLister) -> NodeFindings {
    let charges = || snapshot.ledger().on_node(&state.info.name);
    let unread = |(uid, charge): (&Uid, &Charge)| Some((uid.clone(), UnreadAssignment::of(charge)?));
    let unassigned =
        |(uid, _): (&Uid, &Charge)| Some((uid.clone(), MissingAssignment::of(pods.pod(uid)?, &state.info)?));
    NodeFindings {
        overcommitted: held_beyond(state, snapshot),
        double_allocations: DoubleAllocation::on_node(&state.info.name, snapshot),
        unread: charges().filter_map(unread).collect(),
        unassigned: charges().filter_map(unassigned).collect(),
    }
}

/// The cards of which bound pods hold too much. A decision that is not bound holds nothing of a card: HAMi's scheduler writes its own before
/// it asks for the lock, and decides anew where it does not get it.
fn held_beyond(state: &NodeState, snapshot: &Snapshot) -> BTreeMap<CardId, Overcommitment> {
    let found = overcommitted(&state.info, &state.usage);
    if found.is_empty() {
        return found;
    }
    let charges = snapshot.ledger().on_node(&state.info.name).map(|(_, charge)| charge);
    let bound: Vec<_> = charges.filter(|charge| charge.commitment == Commitment::Bound).collect();
    let of_pods = snapshot.ledger().usage_by(&state.info.name, &bound);
    overcommitted(&state.info, &snapshot.known_use(&state.info, of_pods))
}

/// The bound pods with shares of a card of this node, by either of its names.
fn holders_of<'a>(
    card: &'a CardId,
    node: &'a NodeInfo,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = &'a Uid> {
    let holds = |charge: &Charge| {
        charge.commitment == Commitment::Bound
            && charge.shares().any(|share| node.devices.is_one_card(&share.card, card))
    };
    snapshot.ledger().on_node(&node.name).filter(move |(_, charge)| holds(charge)).map(|(uid, _)| uid)
}
