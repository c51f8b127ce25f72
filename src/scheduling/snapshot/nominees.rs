//! Nodes that are kept for pods, and the cards that these will get there once pods that are being deleted are gone.
//!
//! The cards are a function of the node's pods and of the nominated pods, found anew when either changes: nothing of them is remembered
//! elsewhere, so that a restart chooses the same.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::Snapshot;
use crate::scheduling::{
    model::{
        change::Change,
        name::{NodeName, Uid},
        pod::{Deletion, PodInfo},
    },
    plugin::filter::filter,
    world::ledger::Charge,
};

impl Snapshot {
    /// Takes in which node is kept for a pod that holds nothing.
    pub fn nominate(&mut self, pod: &PodInfo) {
        let before = self.world.nominations.node_of(&pod.key.uid).cloned();
        let holds = self.ledger.get(&pod.key.uid).is_some();
        if !holds && Arc::make_mut(&mut self.world.nominations).see(pod) {
            self.note_nomination(before, pod.status.nominated.clone());
        }
    }

    /// Keeps a node for a pod, for which these pods of the node are deleted; or, with the time since when, until these have ended.
    pub fn keep_for(
        &mut self,
        pod: &PodInfo,
        node: &NodeName,
        victims: BTreeSet<Uid>,
        room_since: Option<Timestamp>,
    ) {
        let before = self.world.nominations.node_of(&pod.key.uid).cloned();
        Arc::make_mut(&mut self.world.nominations).plan(pod, node, victims, room_since);
        self.note_nomination(before, Some(node.clone()));
    }

    /// The nomination of the pod stands in its status: once the status states none any more, it is over.
    pub(in crate::scheduling) fn note_nomination_written(&mut self, pod: &Uid) {
        Arc::make_mut(&mut self.world.nominations).note_written(pod);
    }

    /// No node is kept for the pod any more.
    pub fn end_nomination(&mut self, pod: &Uid) {
        let before = self.world.nominations.node_of(pod).cloned();
        if before.is_some() && Arc::make_mut(&mut self.world.nominations).remove(pod) {
            self.note_nomination(before, None);
        }
    }

    fn note_nomination(&mut self, before: Option<NodeName>, now: Option<NodeName>) {
        self.world.generation += 1;
        self.changes.push(Change::Nomination);
        let nodes: BTreeSet<NodeName> = before.into_iter().chain(now).collect();
        for node in nodes {
            self.choose_kept_cards(&node);
        }
    }

    /// Chooses the cards of the pods that this node is kept for: as if every pod that is being deleted were gone, and the victims of the
    /// pod itself. Those of other pods stay: if the cards of one pod moved with the victims of another, both would take turns without end.
    pub(super) fn choose_kept_cards(&mut self, name: &NodeName) {
        let nominees = self.world.nominations.nominees(name);
        let Some(node) = self.world.node(name).filter(|_| !nominees.is_empty()) else { return };
        let (mut footprints, mut kept, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
        for nominee in nominees {
            let stays = |pod: &Uid, charge: &Charge| {
                charge.importance.deletion == Deletion::None && !nominee.victims.contains(pod)
            };
            let state = self.state_with(node.slot, name, (node.info.clone(), node.zone.clone()), stays);
            let state = state.beside(footprints.clone(), kept.iter());
            let cards = filter(&nominee.ask, &state, &self.world.device_resources, &[]).unwrap_or_default();
            let cards = self.ledger.sized(cards, name);
            footprints.push(nominee.footprint);
            kept.extend(cards.iter().cloned());
            if self.world.nominations.cards(&nominee.pod) != cards {
                chosen.push((nominee.pod, cards));
            }
        }
        if !chosen.is_empty() {
            let nominations = Arc::make_mut(&mut self.world.nominations);
            for (pod, cards) in chosen {
                nominations.keep_cards(&pod, cards);
            }
        }
    }
}
