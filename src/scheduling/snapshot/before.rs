//! What a step of a plan changes, as it was before: charging or releasing one pod, or cordoning cards, is undone exactly.

use std::{collections::BTreeSet, sync::Arc};

use super::{Snapshot, left::set_left};
use crate::device::CardId;
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        node::NodeInfo,
    },
    world::{
        ledger::{Charge, Held},
        node_state::NodeState,
        nominations::Nominations,
        volume_reservations::Reservations,
    },
};

/// What charging or releasing one pod changes, as it was before.
#[derive(Debug)]
pub(in crate::scheduling) struct Before {
    pod: Uid,
    charge: Option<Arc<Charge>>,
    /// The claims that the pod was taken to leave.
    left: BTreeSet<Arc<str>>,
    nodes: Vec<(NodeName, Option<Arc<NodeState>>)>,
    used: Option<(Arc<str>, Option<Held>)>,
    reservations: Arc<Reservations>,
    nominations: Arc<Nominations>,
    changes: usize,
}

impl Before {
    /// What charging this pod changes, as it is now: on the node and in the namespace of `to`, beside those of what the pod holds.
    pub(in crate::scheduling) fn of(snapshot: &Snapshot, pod: &Uid, to: Option<&Charge>) -> Self {
        let Snapshot { world, ledger, changes, .. } = snapshot;
        let charge = ledger.get_shared(pod).cloned();
        let charges = || charge.as_deref().into_iter().chain(to);
        let nodes: BTreeSet<_> = charges().map(|charge| charge.node.clone()).collect();
        let namespace = charges().map(|charge| charge.pod.namespace.clone()).next();
        Self {
            pod: pod.clone(),
            nodes: nodes.into_iter().map(|node| (node.clone(), world.node(&node).cloned())).collect(),
            used: namespace
                .map(|namespace| (namespace.clone(), world.quotas.used().get(&namespace).cloned())),
            reservations: world.reservations.clone(),
            nominations: world.nominations.clone(),
            changes: changes.len(),
            left: world.resource_claims.left_by(pod),
            charge,
        }
    }

    /// Cordons cards of a node, of which none is in the mix of cards otherwise than before; returns what was before.
    pub(in crate::scheduling) fn cordoning(
        snapshot: &mut Snapshot,
        node: &NodeName,
        cards: &BTreeSet<CardId>,
    ) -> Self {
        let mut before = Self::of(snapshot, &Uid::default(), None);
        if let Some(state) = snapshot.world.node(node).cloned() {
            let mut info = NodeInfo::clone(&state.info);
            info.devices.cordon(cards);
            let cordoned = NodeState { info: Arc::new(info), ..NodeState::clone(&state) };
            before.nodes.push((node.clone(), Some(state)));
            Arc::make_mut(&mut snapshot.world.nodes).put(Arc::new(cordoned));
            snapshot.refold([node]);
        }
        before
    }

    /// Puts back which cards are kept for nominated pods, and leaves all else that the step has changed.
    pub(in crate::scheduling) fn restore_kept_cards(&self, snapshot: &mut Snapshot) {
        snapshot.world.nominations = self.nominations.clone();
    }

    /// Puts back what was before the step; every later step has been undone. Generations are not given again to other states: what was
    /// remembered of a state that is undone is never taken for another.
    pub(in crate::scheduling) fn restore(self, snapshot: &mut Snapshot) {
        let Self { pod, charge, left, nodes, used, reservations, nominations, changes } = self;
        let claims = [snapshot.ledger.get(&pod), charge.as_deref()].into_iter().flatten();
        let claims: Vec<_> = claims.flat_map(Charge::claims_of_devices).collect();
        match charge {
            Some(charge) => drop(snapshot.ledger.charge(pod.clone(), charge)),
            None => drop(snapshot.ledger.release(&pod)),
        }
        let mut moved = snapshot.fold_claims(claims);
        moved.extend(set_left(snapshot, &pod, &left));
        // Those whose states are put back are found so below.
        snapshot.refold(moved.iter().filter(|node| nodes.iter().all(|(known, _)| known != *node)));
        let world = &mut snapshot.world;
        for (node, state) in nodes {
            if let Some(state) = state.filter(|_| world.node(&node).is_some()) {
                Arc::make_mut(&mut world.nodes).put(state);
            }
        }
        if let Some((namespace, held)) = used {
            Arc::make_mut(&mut world.quotas).restore(&namespace, held);
        }
        world.reservations = reservations;
        world.nominations = nominations;
        snapshot.changes.truncate(changes);
    }
}
