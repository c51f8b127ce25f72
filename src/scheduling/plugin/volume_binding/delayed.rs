//! A claim that is bound with its pod: which volumes it may be bound to, which are found once for a pod, and whether there is storage to make one. A node
//! costs about as much as what it can reach of both.
//!
//! It must not choose between binding a volume and making one.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    VolumeReason, admits, by_label::ByLabel, is_alike, is_free_for, is_meant_for, is_mountable,
    selected_node, size,
};
use crate::scheduling::model::prebind_step::VolumeChoice;
use crate::{
    object::{
        LabelSelector, Labels,
        storage::{CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass},
    },
    scheduling::{
        model::{
            name::{NodeName, full_name},
            needed_label::NeededLabel,
            node::NodeInfo,
        },
        world::{World, object::Objects},
    },
};

/// A claim that is bound with its pod.
#[derive(Debug)]
pub(super) struct Delayed<'a> {
    /// The claim.
    pub(super) claim: &'a PersistentVolumeClaim,
    /// The node and the volume that another pod has chosen for it.
    pub(super) reserved: Option<&'a (NodeName, VolumeChoice)>,
    /// The class of which a volume can be made for it.
    class: Option<&'a StorageClass>,
    /// Volumes that are meant for the claim, by name.
    meant: Vec<&'a PersistentVolume>,
    /// Volumes that are meant for no claim and would do for this one: smallest first, equals by name.
    free: ByLabel<'a, PersistentVolume>,
    /// What the driver of the class publishes; `None`: it publishes nothing, or the claim does not say how much it needs.
    published: Option<Published<'a>>,
}

/// What a driver publishes of a class, and how much of it a claim needs, in whole units.
#[derive(Clone, Copy, Debug)]
struct Published<'a> {
    objects: &'a Objects,
    class: &'a str,
    needed: i64,
}

impl<'a> Delayed<'a> {
    /// The claim as it stands.
    pub(super) fn prepare(claim: &'a PersistentVolumeClaim, world: &'a World) -> Self {
        let own_name = full_name(&claim.metadata.namespace, &claim.metadata.name);
        let class = world.objects().class(claim.class());
        let class = class.filter(|class| makes_volumes(class));
        let mut delayed = Self {
            claim,
            reserved: world.reservations().claims.get(&own_name),
            class,
            meant: Vec::new(),
            free: ByLabel::default(),
            published: class.and_then(|class| published(claim, class, world)),
        };
        if delayed.reserved.is_none() && selected_node(claim).is_none() {
            delayed.find_volumes(&own_name, world);
        }
        delayed
    }

    fn find_volumes(&mut self, own_name: &str, world: &'a World) {
        let needed = size(self.claim.spec.resources.request("storage"));
        let mut free = Vec::new();
        for volume in world.objects().volumes_for(self.claim) {
            let meant = is_meant_for(volume, self.claim);
            if !meant && (volume.spec.claim_ref.is_some() || !is_free_for(volume, self.claim)) {
                continue;
            }
            let other = world.reservations().volumes.get(&*volume.metadata.name);
            let capacity = size(volume.spec.capacity.get("storage"));
            if other.is_some_and(|other| **other != *own_name)
                || capacity < needed
                || !is_alike(volume, self.claim)
            {
                continue;
            }
            if meant {
                self.meant.push(volume);
            } else {
                free.push((capacity, &**volume));
            }
        }
        // Stable: volumes of one capacity stay in the order of their names.
        free.sort_by_key(|(capacity, _)| *capacity);
        self.free = ByLabel::of(free.into_iter().map(|(_, volume)| (volume, needed_by(volume))).collect());
    }

    /// The volume that is meant for the claim, else the smallest that the node can mount; equals go by name. Those that are `chosen`
    /// are taken.
    pub(super) fn matching(&self, node: &NodeInfo, chosen: &BTreeSet<&str>) -> Option<&'a PersistentVolume> {
        let open = |volume: &PersistentVolume| !chosen.contains(&*volume.metadata.name);
        if let Some(volume) = self.meant.iter().find(|volume| open(volume)) {
            return is_mountable(volume, node).then_some(volume);
        }
        self.free.first(&node.labels, |volume| open(volume) && is_mountable(volume, node))
    }

    /// The claim's name.
    pub(super) fn name(&self) -> Arc<str> {
        self.claim.metadata.name.as_str().into()
    }

    /// Whether a volume can be made for the claim on this node.
    pub(super) fn can_be_made(&self, node: &NodeInfo) -> Result<(), VolumeReason> {
        if !self.class.is_some_and(|class| admits(class, &node.labels)) {
            return Err(VolumeReason::NoneToBind);
        }
        if self.has_capacity(&node.labels) { Ok(()) } else { Err(VolumeReason::StorageFull) }
    }

    /// Whether there is enough storage to make a volume for a node with these labels, as far as the driver says.
    fn has_capacity(&self, labels: &Labels) -> bool {
        self.published.is_none() || self.published(labels).is_some()
    }

    /// What the driver publishes for a node with these labels and is enough for the claim, the first by name.
    pub(super) fn published(&self, labels: &Labels) -> Option<&'a CsiStorageCapacity> {
        let Published { objects, class, needed } = self.published?;
        objects.first_capacity(class, labels, |capacity| {
            let reaches = |nodes: &LabelSelector| nodes.matches(labels);
            let most = capacity.maximum_volume_size.as_ref().or(capacity.capacity.as_ref());
            capacity.node_topology.as_ref().is_some_and(reaches)
                && most.is_some_and(|most| size(Some(most)).units_rounded_up() >= needed)
        })
    }
}

/// Whether volumes of the class are made on demand.
fn makes_volumes(class: &StorageClass) -> bool {
    !matches!(class.provisioner.as_str(), "" | "kubernetes.io/no-provisioner")
}

/// Labels that a node needs to mount the volume; its node affinity may need more.
fn needed_by(volume: &PersistentVolume) -> Vec<NeededLabel<'_>> {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    match required.map(|required| &required.node_selector_terms[..]) {
        Some([term]) => NeededLabel::among(&term.match_expressions).collect(),
        _ => Vec::new(),
    }
}

/// What the driver of the class publishes; `None`: it publishes nothing, or the claim does not say how much it needs.
fn published<'a>(
    claim: &PersistentVolumeClaim,
    class: &'a StorageClass,
    world: &'a World,
) -> Option<Published<'a>> {
    let objects = world.objects();
    objects.csi_driver(&class.provisioner).filter(|driver| driver.spec.storage_capacity)?;
    let needed = size(Some(claim.spec.resources.request("storage")?)).units_rounded_up();
    Some(Published { objects, class: &class.metadata.name, needed })
}

#[cfg(test)]
mod tests;
