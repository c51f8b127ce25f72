//! What pods hold, charged and released, and what is folded anew for it.

use std::{collections::BTreeSet, sync::Arc};

use super::{Snapshot, left::set_left};
use crate::scheduling::{
    model::{
        change::Change,
        kind::Kind,
        name::Uid,
        prebind_step::{PrebindStep, VolumeChoice},
    },
    world::ledger::Charge,
};

impl Snapshot {
    /// Charges a pod with what it holds.
    pub fn charge(&mut self, uid: Uid, charge: impl Into<Arc<Charge>>) {
        let charge: Arc<Charge> = charge.into();
        let (node, namespace) = (charge.node.clone(), charge.pod.namespace.clone());
        self.end_nomination(&uid);
        let before = self.ledger.get(&uid);
        let reserves = !volumes(before.map_or(&[], |before| &before.steps)).eq(volumes(&charge.steps));
        if before.is_some_and(|before| before.holds_as(&charge)) {
            self.ledger.renew(uid, charge);
            return;
        }
        let footprint = charge.footprint.clone();
        let claims: Vec<_> =
            before.into_iter().chain([&*charge]).flat_map(Charge::claims_of_devices).collect();
        self.changes.push(Change::Charged(node.clone()));
        let uid_of_claims = uid.clone();
        let before = self.ledger.charge(uid, charge);
        if reserves {
            self.fold_reservations();
        }
        let mut nodes = self.fold_claims(claims);
        nodes.extend(set_left(self, &uid_of_claims, &BTreeSet::new()));
        let moved = before.as_ref().is_none_or(|before| before.node != node || before.footprint != footprint);
        if moved {
            self.changes.extend(before.iter().map(|before| Change::PodRemoved(before.footprint.clone())));
            if before.is_some() {
                note_resources_freed(self);
            }
            self.changes.push(Change::PodAdded(footprint));
        }
        nodes.extend(before.map(|before| before.node.clone()));
        nodes.insert(node);
        self.refold(&nodes);
        Arc::make_mut(&mut self.world.quotas).refold([&namespace], &mut self.ledger);
    }

    /// Forgets what a pod holds, and returns it.
    pub fn release(&mut self, uid: &Uid) -> Option<Arc<Charge>> {
        let charge = self.ledger.release(uid)?;
        self.changes.push(Change::PodRemoved(charge.footprint.clone()));
        note_resources_freed(self);
        if volumes(&charge.steps).next().is_some() {
            self.fold_reservations();
        }
        let mut nodes = self.fold_claims(charge.claims_of_devices());
        nodes.insert(charge.node.clone());
        self.refold(&nodes);
        Arc::make_mut(&mut self.world.quotas).refold([&charge.pod.namespace], &mut self.ledger);
        Some(charge)
    }

    fn fold_reservations(&mut self) {
        self.world.reservations = Arc::new(self.ledger.reservations());
        self.changes.push(Change::Object(Kind::PersistentVolume, Arc::default()));
    }
}

/// A node may have more left of its own resources. That wakes pods with claims alone, for which a filter of one node says nothing of what devices take.
pub(super) fn note_resources_freed(snapshot: &mut Snapshot) {
    if snapshot.world.resource_claims.inventory().take_of_nodes() {
        snapshot.changes.push(Change::ResourcesFreed);
    }
}

/// As [`Snapshot::release`], for a pod that is taken to end: claims that only pods use which end so are free then, but for these.
pub(in crate::scheduling) fn release_with_claims(
    snapshot: &mut Snapshot,
    uid: &Uid,
    but: &BTreeSet<Arc<str>>,
) -> Option<Arc<Charge>> {
    let charge = snapshot.release(uid)?;
    let used = snapshot.world.resource_claims.used_by(uid);
    let left: BTreeSet<Arc<str>> = used.filter(|claim| !but.contains(*claim)).cloned().collect();
    let nodes = set_left(snapshot, uid, &left);
    snapshot.refold(&nodes);
    Some(charge)
}

fn volumes(steps: &[PrebindStep]) -> impl Iterator<Item = &VolumeChoice> {
    steps.iter().filter_map(PrebindStep::volume)
}
