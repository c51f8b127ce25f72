//! What objects say of storage. Volumes that may be bound to a claim and published capacities are found by what a claim asks for, so that a
//! decision costs as much as what there is for the claim, however many volumes others use.

mod by_label;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, slice, sync::Arc};

use super::{Object, Objects};
use crate::{
    object::{
        Amount,
        selector::LabelValues,
        storage::{
            CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
            VolumeAttachment,
        },
    },
    persistent::{PersistentMap, value_of},
};
use by_label::ByLabel;

use crate::scheduling::model::{
    kind::Kind,
    name::{NodeName, full_name},
    needed_label::NeededLabel,
};

/// The names of objects of storage by what claims ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct StorageIndex {
    by_key: PersistentMap<StorageKey, BTreeSet<Arc<str>>>,
    /// Published capacities.
    capacities: Arc<ByLabel<Arc<str>>>,
    /// Volumes that may be bound to any claim of their class.
    available: Arc<ByLabel<SizedVolume>>,
}

/// How large a volume is, and its name.
pub type SizedVolume = (Amount, Arc<str>);

/// By what an object of storage is found.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum StorageKey {
    /// A volume that is bound to this claim or kept for it, by its full name.
    ForClaim(Arc<str>),
    /// A volume's attachment to this node.
    AttachedTo(Arc<str>),
}

impl StorageKey {
    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::PersistentVolume(volume) => {
                let claim = volume.spec.claim_ref.as_ref()?;
                Some(Self::ForClaim(full_name(&claim.namespace, &claim.name)))
            }
            Object::VolumeAttachment(attachment) => {
                Some(Self::AttachedTo(attachment.spec.node_name.as_str().into()))
            }
            _ => None,
        }
    }
}

impl StorageIndex {
    pub(super) fn insert(&mut self, name: &Arc<str>, object: &Object) {
        match object {
            Object::CsiStorageCapacity(capacity) => {
                Arc::make_mut(&mut self.capacities).insert(
                    &capacity.storage_class_name,
                    name,
                    needed_to_use(capacity),
                );
            }
            Object::PersistentVolume(volume) if is_available(volume) => {
                let key = (volume.size(), name.clone());
                Arc::make_mut(&mut self.available).insert(volume.class(), &key, needed_to_mount(volume));
            }
            _ => {}
        }
        if let Some(key) = StorageKey::of(object) {
            value_of(&mut self.by_key, &key).insert(name.clone());
        }
    }

    pub(super) fn remove(&mut self, name: &str, object: &Object) {
        match object {
            Object::CsiStorageCapacity(capacity) => {
                Arc::make_mut(&mut self.capacities).remove(
                    &capacity.storage_class_name,
                    &name.into(),
                    needed_to_use(capacity),
                );
            }
            Object::PersistentVolume(volume) if is_available(volume) => {
                let key = (volume.size(), name.into());
                Arc::make_mut(&mut self.available).remove(volume.class(), &key, needed_to_mount(volume));
            }
            _ => {}
        }
        let Some(key) = StorageKey::of(object) else { return };
        if let Some(names) = self.by_key.get_mut(&key) {
            names.remove(name);
            if names.is_empty() {
                self.by_key.remove_mut(&key);
            }
        }
    }

    /// The names under a key, in order.
    fn names<'a>(&'a self, key: &StorageKey) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        self.by_key.get(key).into_iter().flatten()
    }

    fn count(&self, key: &StorageKey) -> usize {
        self.by_key.get(key).map_or(0, BTreeSet::len)
    }
}

/// Whether the volume may be bound to any claim of its class.
fn is_available(volume: &PersistentVolume) -> bool {
    volume.spec.claim_ref.is_none() && volume.status.phase == "Available"
}

/// Labels that a node needs to use what is published; its topology may need more.
fn needed_to_use(capacity: &CsiStorageCapacity) -> impl Iterator<Item = NeededLabel<'_>> {
    capacity.node_topology.iter().flat_map(|topology| {
        let equal = topology.match_labels.iter();
        let equal = equal.map(|(key, value)| NeededLabel { key, values: slice::from_ref(value) });
        equal.chain(NeededLabel::among(&topology.match_expressions))
    })
}

/// Labels that a node needs to mount the volume; its node affinity may need more.
fn needed_to_mount(volume: &PersistentVolume) -> impl Iterator<Item = NeededLabel<'_>> {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let term = required.and_then(|required| match &required.node_selector_terms[..] {
        [term] => Some(term),
        _ => None,
    });
    term.into_iter().flat_map(|term| NeededLabel::among(&term.match_expressions))
}

impl Objects {
    /// A volume.
    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        match self.get(Kind::PersistentVolume, name)? {
            Object::PersistentVolume(volume) => Some(volume),
            _ => None,
        }
    }

    /// The volumes that are bound to the claim or kept for one of its name, by name.
    pub fn volumes_for<'a>(
        &'a self,
        claim: &PersistentVolumeClaim,
    ) -> impl Iterator<Item = &'a Arc<PersistentVolume>> + use<'a> {
        self.storage.names(&for_claim(claim)).filter_map(|name| self.volume(name))
    }

    /// The volumes that may be bound to any claim of this class, those to which these labels of a node lead: in sets each of which goes from the smallest up,
    /// equals by name. A set has one address as long as no volume changes.
    pub fn available_volumes<'a>(
        &'a self,
        class: &str,
        labels: &dyn LabelValues,
    ) -> impl Iterator<Item = &'a BTreeSet<SizedVolume>> {
        self.storage.available.led_to(class, labels)
    }

    /// How many volumes and published capacities are compared with a claim, beside what the labels of a node lead to.
    pub fn storage_for(&self, claim: &PersistentVolumeClaim) -> usize {
        let StorageIndex { capacities, available, .. } = &self.storage;
        let anywhere = capacities.anywhere(claim.class()) + available.anywhere(claim.class());
        self.storage.count(&for_claim(claim)) + anywhere
    }

    /// A claim of a namespace.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<PersistentVolumeClaim>> {
        match self.get(Kind::PersistentVolumeClaim, &full_name(namespace, name))? {
            Object::PersistentVolumeClaim(claim) => Some(claim),
            _ => None,
        }
    }

    /// A class of volumes.
    pub fn class(&self, name: &str) -> Option<&StorageClass> {
        match self.get(Kind::StorageClass, name)? {
            Object::StorageClass(class) => Some(class),
            _ => None,
        }
    }

    /// The CSI drivers on a node.
    pub fn csi_node(&self, node: &str) -> Option<&CsiNode> {
        match self.get(Kind::CsiNode, node)? {
            Object::CsiNode(node) => Some(node),
            _ => None,
        }
    }

    /// A CSI driver.
    pub fn csi_driver(&self, name: &str) -> Option<&CsiDriver> {
        match self.get(Kind::CsiDriver, name)? {
            Object::CsiDriver(driver) => Some(driver),
            _ => None,
        }
    }

    /// How much storage of a class there is for a node with these labels, as far as CSI drivers say: the first by name that will do. It is asked about
    /// those of which the labels that a node needs are such.
    pub fn first_capacity(
        &self,
        class: &str,
        labels: &dyn LabelValues,
        will_do: impl Fn(&CsiStorageCapacity) -> bool,
    ) -> Option<&CsiStorageCapacity> {
        let known = |name: &str| match self.get(Kind::CsiStorageCapacity, name)? {
            Object::CsiStorageCapacity(capacity) => Some(&**capacity),
            _ => None,
        };
        let will_do = |name: &&Arc<str>| known(name).is_some_and(&will_do);
        let led_to = self.storage.capacities.led_to(class, labels);
        known(led_to.filter_map(|names| names.iter().find(will_do)).min()?)
    }

    /// The attachments of volumes to a node, by name.
    pub fn attachments<'a>(
        &'a self,
        node: &NodeName,
    ) -> impl Iterator<Item = &'a VolumeAttachment> + use<'a> {
        let names = self.storage.names(&StorageKey::AttachedTo(node.clone()));
        names.filter_map(|name| match self.get(Kind::VolumeAttachment, name)? {
            Object::VolumeAttachment(attachment) => Some(&**attachment),
            _ => None,
        })
    }
}

fn for_claim(claim: &PersistentVolumeClaim) -> StorageKey {
    StorageKey::ForClaim(full_name(&claim.metadata.namespace, &claim.metadata.name))
}
