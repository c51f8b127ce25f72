//! What objects say of storage. Volumes that may be bound to a claim and published capacities are found by what a claim asks for, so that a
//! decision costs as much as what there is for the claim, however many volumes others use.

mod capacities;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Object, Objects};
use crate::object::{
    Labels,
    storage::{
        CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
        VolumeAttachment,
    },
};
use capacities::Capacities;

use crate::scheduling::model::{
    kind::Kind,
    name::{NodeName, full_name},
};

/// The names of objects of storage by what claims ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct StorageIndex {
    by_key: BTreeMap<StorageKey, BTreeSet<Arc<str>>>,
    capacities: Capacities,
}

/// By what an object of storage is found.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum StorageKey {
    /// A volume that may be bound to any claim of this class.
    AvailableOfClass(Arc<str>),
    /// A volume that is bound to this claim or kept for it, by its full name.
    ForClaim(Arc<str>),
    /// A volume's attachment to this node.
    AttachedTo(Arc<str>),
}

impl StorageKey {
    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::PersistentVolume(volume) => match &volume.spec.claim_ref {
                Some(claim) => Some(Self::ForClaim(full_name(&claim.namespace, &claim.name))),
                None if volume.status.phase == "Available" => {
                    Some(Self::AvailableOfClass(volume.class().into()))
                }
                None => None,
            },
            Object::VolumeAttachment(attachment) => {
                Some(Self::AttachedTo(attachment.spec.node_name.as_str().into()))
            }
            _ => None,
        }
    }
}

impl StorageIndex {
    pub(super) fn insert(&mut self, name: &Arc<str>, object: &Object) {
        if let Object::CsiStorageCapacity(capacity) = object {
            self.capacities.insert(name, capacity);
        }
        if let Some(key) = StorageKey::of(object) {
            self.by_key.entry(key).or_default().insert(name.clone());
        }
    }

    pub(super) fn remove(&mut self, name: &str, object: &Object) {
        if let Object::CsiStorageCapacity(capacity) = object {
            self.capacities.remove(name, capacity);
        }
        let Some(key) = StorageKey::of(object) else { return };
        if let Some(names) = self.by_key.get_mut(&key) {
            names.remove(name);
            if names.is_empty() {
                self.by_key.remove(&key);
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

impl Objects {
    /// A volume.
    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        match self.get(Kind::PersistentVolume, name)? {
            Object::PersistentVolume(volume) => Some(volume),
            _ => None,
        }
    }

    /// The volumes that may be bound to the claim: those that are meant for it, and available ones of its class; each by name.
    pub fn volumes_for<'a>(
        &'a self,
        claim: &PersistentVolumeClaim,
    ) -> impl Iterator<Item = &'a Arc<PersistentVolume>> + use<'a> {
        let keys = volume_keys(claim);
        let names: Vec<_> = keys.iter().flat_map(|key| self.storage.names(key)).collect();
        names.into_iter().filter_map(|name| self.volume(name))
    }

    /// How many volumes and published capacities are compared with a claim, beside what the labels of a node lead to.
    pub fn storage_for(&self, claim: &PersistentVolumeClaim) -> usize {
        let volumes: usize = volume_keys(claim).iter().map(|key| self.storage.count(key)).sum();
        volumes + self.storage.capacities.anywhere(claim.class())
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
        labels: &Labels,
        will_do: impl Fn(&CsiStorageCapacity) -> bool,
    ) -> Option<&CsiStorageCapacity> {
        let known = |name: &str| match self.get(Kind::CsiStorageCapacity, name)? {
            Object::CsiStorageCapacity(capacity) => Some(&**capacity),
            _ => None,
        };
        let will_do = |name: &str| known(name).is_some_and(&will_do);
        known(self.storage.capacities.first(class, labels, will_do)?)
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

fn volume_keys(claim: &PersistentVolumeClaim) -> [StorageKey; 2] {
    let own_name = full_name(&claim.metadata.namespace, &claim.metadata.name);
    [StorageKey::ForClaim(own_name), StorageKey::AvailableOfClass(claim.class().into())]
}
