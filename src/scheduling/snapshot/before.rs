//! What a step of a plan changes, as it was before: charging or releasing one pod is undone exactly.

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::scheduling::{
    model::name::{NodeName, Uid},
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
    charge: Option<Charge>,
    nodes: Vec<(NodeName, Option<Arc<NodeState>>)>,
    used: Option<(Arc<str>, Option<Held>)>,
    reservations: Arc<Reservations>,
    nominations: Arc<Nominations>,
    changes: usize,
}

impl Snapshot {
    /// What charging this pod changes, as it is now: on the node and in the namespace of `to`, beside those of what the pod holds.
    pub(in crate::scheduling) fn before(&self, pod: &Uid, to: Option<&Charge>) -> Before {
        let charge = self.ledger.get(pod).cloned();
        let charges = || charge.iter().chain(to);
        let nodes: BTreeSet<_> = charges().map(|charge| charge.node.clone()).collect();
        let namespace = charges().map(|charge| charge.namespace.clone()).next();
        Before {
            pod: pod.clone(),
            nodes: nodes.into_iter().map(|node| (node.clone(), self.node(&node).cloned())).collect(),
            used: namespace.map(|namespace| (namespace.clone(), self.quotas.used().get(&namespace).cloned())),
            reservations: self.reservations.clone(),
            nominations: self.nominations.clone(),
            changes: self.changes.len(),
            charge,
        }
    }

    /// Puts back what was before the step; every later step has been undone. Generations are not given again to other states: what was
    /// remembered of a state that is undone is never taken for another.
    pub(in crate::scheduling) fn restore(&mut self, before: Before) {
        let Before { pod, charge, nodes, used, reservations, nominations, changes } = before;
        let claims = [self.ledger.get(&pod), charge.as_ref()].into_iter().flatten();
        let claims: Vec<_> = claims.flat_map(Charge::claims_of_devices).collect();
        match charge {
            Some(charge) => drop(self.ledger.charge(pod, charge)),
            None => drop(self.ledger.release(&pod)),
        }
        let moved = self.fold_claims(claims);
        // Those whose states are put back are found so below.
        for node in moved.iter().filter(|node| nodes.iter().all(|(known, _)| known != *node)) {
            self.refold(node);
        }
        for (node, state) in nodes {
            if let (Some(&slot), Some(state)) = (self.by_name.get(&node), state) {
                self.put(slot, state);
            }
        }
        if let Some((namespace, held)) = used {
            self.quotas.restore(&namespace, held);
        }
        self.reservations = reservations;
        self.nominations = nominations;
        self.changes.truncate(changes);
    }
}
