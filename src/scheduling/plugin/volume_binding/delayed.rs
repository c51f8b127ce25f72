//! A claim that is bound with its pod: which volumes it may be bound to, and whether there is storage to make one. A node costs about as much as what its
//! labels lead to of both; each volume is compared with the claim once for a pod.
//!
//! It must not choose between binding a volume and making one.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::fast::FixedState;

use super::{VolumeReason, admits, is_alike, is_free_for, is_meant_for, is_mountable, selected_node, size};
use crate::scheduling::model::prebind_step::VolumeChoice;
use crate::{
    object::{
        Amount, LabelSelector,
        selector::LabelValues,
        storage::{CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass},
    },
    scheduling::{
        model::{
            name::{NodeName, full_name},
            node::NodeInfo,
        },
        world::{
            World,
            object::{Objects, SizedVolume},
        },
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
    /// Volumes that are meant for no claim; `None`: the claim can't have any.
    free: Option<FreeVolumes<'a>>,
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

/// Volumes that are meant for no claim, of the class of this one.
#[derive(Debug)]
struct FreeVolumes<'a> {
    claim: &'a PersistentVolumeClaim,
    world: &'a World,
    needed: Amount,
    /// Those of each set that would do for the claim, by the address of the set: nodes with one label share it.
    fitting: Mutex<HashMap<usize, Vec<Fitting<'a>>, FixedState>>,
}

/// A volume, with its place in the order of volumes.
type Fitting<'a> = (&'a SizedVolume, &'a PersistentVolume);

impl<'a> FreeVolumes<'a> {
    fn new(claim: &'a PersistentVolumeClaim, world: &'a World) -> Self {
        let needed = size(claim.spec.resources.request("storage"));
        Self { claim, world, needed, fitting: Mutex::default() }
    }

    /// The smallest that would do for the claim, of those to which these labels of a node lead; equals go by name.
    fn first(
        &self,
        labels: &dyn LabelValues,
        will_do: impl Fn(&PersistentVolume) -> bool,
    ) -> Option<&'a PersistentVolume> {
        let mut fitting = self.fitting.lock().unwrap_or_else(PoisonError::into_inner);
        let led_to = self.world.objects().available_volumes(self.claim.class(), labels);
        let first = led_to.filter_map(|set| {
            let fitting = match fitting.entry(ptr::from_ref(set).addr()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.fitting_of(set)),
            };
            fitting.iter().copied().find(|(_, volume)| will_do(volume))
        });
        first.min_by_key(|(place, _)| *place).map(|(_, volume)| volume)
    }

    fn fitting_of(&self, set: &'a BTreeSet<SizedVolume>) -> Vec<Fitting<'a>> {
        let large_enough = set.range((self.needed, Arc::default())..);
        let volumes =
            large_enough.filter_map(|place| Some((place, &**self.world.objects().volume(&place.1)?)));
        let fitting = volumes.filter(|(_, volume)| {
            is_free_for(volume, self.claim)
                && is_alike(volume, self.claim)
                && !is_reserved(volume, self.claim, self.world)
        });
        fitting.collect()
    }
}

/// Whether a pod has chosen the volume for another claim.
fn is_reserved(volume: &PersistentVolume, claim: &PersistentVolumeClaim, world: &World) -> bool {
    let other = world.reservations().volumes.get(&*volume.metadata.name);
    other.is_some_and(|other| **other != *full_name(&claim.metadata.namespace, &claim.metadata.name))
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
            free: None,
            published: class.and_then(|class| published(claim, class, world)),
        };
        if delayed.reserved.is_none() && selected_node(claim).is_none() {
            delayed.find_volumes(world);
        }
        delayed
    }

    fn find_volumes(&mut self, world: &'a World) {
        let free = FreeVolumes::new(self.claim, world);
        let meant = world.objects().volumes_for(self.claim).filter(|volume| {
            is_meant_for(volume, self.claim)
                && volume.size() >= free.needed
                && is_alike(volume, self.claim)
                && !is_reserved(volume, self.claim, world)
        });
        self.meant = meant.map(|volume| &**volume).collect();
        self.free = Some(free);
    }

    /// The volume that is meant for the claim, else the smallest that the node can mount; equals go by name. Those that are `chosen`
    /// are taken.
    pub(super) fn matching(&self, node: &NodeInfo, chosen: &BTreeSet<&str>) -> Option<&'a PersistentVolume> {
        let open = |volume: &PersistentVolume| !chosen.contains(&*volume.metadata.name);
        if let Some(volume) = self.meant.iter().find(|volume| open(volume)) {
            return is_mountable(volume, node).then_some(volume);
        }
        let will_do = |volume: &PersistentVolume| open(volume) && is_mountable(volume, node);
        self.free.as_ref()?.first(&node.labels, will_do)
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
    fn has_capacity(&self, labels: &dyn LabelValues) -> bool {
        self.published.is_none() || self.published(labels).is_some()
    }

    /// What the driver publishes for a node with these labels and is enough for the claim, the first by name.
    pub(super) fn published(&self, labels: &dyn LabelValues) -> Option<&'a CsiStorageCapacity> {
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
