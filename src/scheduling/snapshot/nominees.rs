//! Nodes that are kept for pods, and the cards and devices that these will get there once pods that are being deleted are gone.
//!
//! They are a function of the node's pods, of claims and of the nominated pods, found anew when one of these changes: nothing of them is remembered
//! elsewhere, so that a restart chooses the same.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{Snapshot, in_use::with_charges, left::set_left};
use crate::device::Allocation;
use crate::scheduling::{
    model::{
        change::Change,
        footprint::Footprint,
        name::{NodeName, Uid},
        pod::{Deletion, PodInfo},
        steps::{Allowance, PER_MILLISECOND},
    },
    plugin::{dynamic_resources::PodClaims, filter::filter},
    world::{ledger::Charge, nominations::Nominee, resource_claims::KeptDevices},
};

/// Choosing the devices that are kept for a pod takes so many steps at most, about a millisecond; where that is too little, none are kept.
const TO_KEEP: Allowance = Allowance::of(PER_MILLISECOND);

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

    /// Chooses the cards of the pods that this node is kept for, and the devices of their claims: as if every pod that is being deleted were gone, and
    /// the victims of the pod itself, and with them the claims that only they use. Those of other pods stay: if the cards of one pod moved with the
    /// victims of another, both would take turns without end.
    pub(super) fn choose_kept_cards(&mut self, name: &NodeName) {
        let nominees = self.world.nominations.nominees(name);
        if self.world.node(name).is_none() || nominees.is_empty() {
            return;
        }
        let (mut footprints, mut kept, mut devices): (Vec<_>, Vec<Allocation>, Vec<KeptDevices>) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut chosen = Vec::new();
        let mut differs = false;
        for nominee in nominees {
            let left = leave_claims(self, &nominee, name);
            let found = choose_for(self, &nominee, name, (&footprints, &kept, &devices));
            for pod in left {
                // The states of nodes were not folded anew meanwhile.
                set_left(self, &pod, &BTreeSet::new());
            }
            let Some((cards, given)) = found else { continue };
            footprints.push(nominee.footprint.clone());
            kept.extend(cards.iter().cloned());
            devices.push(given.clone());
            differs |= self.world.nominations.cards(&nominee.pod) != cards;
            chosen.push((nominee, cards, given));
        }
        if !self.on_trial {
            let stamp = self.world.resource_claims.stamp(name);
            for (nominee, _, given) in &mut chosen {
                *given = std::mem::take(given).stamped(stamp);
                differs |= nominee.devices != *given;
            }
        }
        if differs {
            let nominations = Arc::make_mut(&mut self.world.nominations);
            for (nominee, cards, devices) in chosen {
                nominations.keep_cards(&nominee.pod, cards);
                nominations.keep_devices(&nominee.pod, devices);
            }
        }
    }
}

/// Takes the pods that go for a nominated pod to leave their claims; returns those that used some.
fn leave_claims(snapshot: &mut Snapshot, nominee: &Nominee, node: &NodeName) -> Vec<Uid> {
    let deleted =
        snapshot.ledger.on_node(node).filter(|(_, charge)| charge.importance.deletion != Deletion::None);
    let going: BTreeSet<Uid> = deleted.map(|(pod, _)| pod).chain(&nominee.victims).cloned().collect();
    let own: BTreeSet<_> = nominee.footprint.claims_of_devices().collect();
    let mut left = Vec::new();
    for pod in going {
        let claims = snapshot.world.resource_claims.used_by(&pod).filter(|claim| !own.contains(*claim));
        let claims: BTreeSet<Arc<str>> = claims.cloned().collect();
        // In a plan the pod may have left them already.
        if !claims.is_empty() && snapshot.world.resource_claims.left_by(&pod).is_empty() {
            set_left(snapshot, &pod, &claims);
            left.push(pod);
        }
    }
    left
}

/// The cards and devices of one nominated pod, beside what is kept for others.
fn choose_for(
    snapshot: &Snapshot,
    nominee: &Nominee,
    name: &NodeName,
    (footprints, kept, devices): (&[Arc<Footprint>], &[Allocation], &[KeptDevices]),
) -> Option<(Vec<Allocation>, KeptDevices)> {
    let node = snapshot.world.node(name)?;
    let stays = |(pod, charge): &(&Uid, &Charge)| {
        charge.importance.deletion == Deletion::None && !nominee.victims.contains(*pod)
    };
    let staying: Vec<_> = snapshot.ledger.on_node(name).filter(stays).map(|(_, charge)| charge).collect();
    let state = with_charges(snapshot, node, &staying);
    let state = state.beside(footprints.to_vec(), kept.iter());
    let state = devices.iter().fold(state, |state, devices| devices.keep_on(state));
    let cards = filter(&nominee.ask, &state, &snapshot.world.device_resources, &[]).unwrap_or_default();
    let cards = snapshot.ledger.sized(cards, name);
    if snapshot.on_trial || !nominee.footprint.may_use_devices() {
        return Some((cards, nominee.devices.clone()));
    }
    let given = PodClaims::devices_on(&nominee.demand(), &snapshot.world, &state, TO_KEEP);
    Some((cards, KeptDevices::of(&snapshot.world.resource_claims, name, given)))
}

/// Chooses the devices anew that are kept for pods: claims or devices have changed.
pub(super) fn keep_devices_anew(snapshot: &mut Snapshot) {
    if snapshot.on_trial || snapshot.world.nominations.is_empty() {
        return;
    }
    let claims = &snapshot.world.resource_claims;
    for node in snapshot.world.nominations.with_other_devices(|node| claims.stamp(node)) {
        snapshot.choose_kept_cards(&node);
    }
}
