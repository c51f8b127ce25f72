//! Objects that plugins read beside pods, nodes and quotas. Each kind arrives as listed, seen and gone, on one path.

mod devices;
mod forest;
mod groups;
mod pod_selection;
pub mod selecting;
mod storage;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use forest::{GroupForest, plant, uproot};
use selecting::SelectingObject;
use storage::StorageIndex;

pub use storage::SizedVolume;

use super::reservation::ReservationState;
use crate::{
    device::ModelTemplates,
    object::{
        DeviceClass, DeviceTaintRule, Labels, PodDisruptionBudget, ResourceClaim, ResourceSlice,
        storage::{
            CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
            VolumeAttachment,
        },
    },
    persistent::PersistentMap,
    scheduling::model::{
        gang::Group,
        kind::{Kind, PodGroupKind, TaintRuleVersion},
        name::{NodeName, full_name},
        node::Offer,
    },
};

/// An object that plugins read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Object {
    /// A namespace and its labels.
    Namespace(Arc<str>, Arc<Labels>),
    /// A volume.
    PersistentVolume(Arc<PersistentVolume>),
    /// A claim of a volume.
    PersistentVolumeClaim(Arc<PersistentVolumeClaim>),
    /// A class of volumes.
    StorageClass(Arc<StorageClass>),
    /// The CSI drivers on a node.
    CsiNode(Arc<CsiNode>),
    /// A CSI driver.
    CsiDriver(Arc<CsiDriver>),
    /// How much storage of a class there is for some nodes.
    CsiStorageCapacity(Arc<CsiStorageCapacity>),
    /// A volume that is attached to a node.
    VolumeAttachment(Arc<VolumeAttachment>),
    /// How many of its pods may be evicted.
    PodDisruptionBudget(Arc<PodDisruptionBudget>),
    /// A PodGroup of this kind, its full name, and what it says.
    PodGroup(PodGroupKind, Arc<str>, Arc<Group>),
    /// A node's name, and what its Device offers there.
    Device(NodeName, Arc<Offer>),
    /// A claim of devices.
    ResourceClaim(Arc<ResourceClaim>),
    /// Devices that a driver publishes.
    ResourceSlice(Arc<ResourceSlice>),
    /// A class of devices.
    DeviceClass(Arc<DeviceClass>),
    /// A rule that taints devices, in this version.
    DeviceTaintRule(TaintRuleVersion, Arc<DeviceTaintRule>),
    /// The ConfigMap's full name, and the templates of shares that it lists.
    ShareTemplates(Arc<str>, Arc<ModelTemplates>),
    /// A Reservation's name, and what it holds.
    Reservation(Arc<str>, Arc<ReservationState>),
    /// The full name of an object that selects pods, and which ones.
    Selecting(Arc<str>, SelectingObject),
    /// A DaemonSet's full name, and its uid.
    DaemonSet(Arc<str>, Arc<str>),
    /// The kind and the full name of an object that is there and can't be read: it stays as it was last seen.
    Unread(Kind, Arc<str>),
}

impl Object {
    /// The object's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Namespace(..) => Kind::Namespace,
            Self::PersistentVolume(_) => Kind::PersistentVolume,
            Self::PersistentVolumeClaim(_) => Kind::PersistentVolumeClaim,
            Self::StorageClass(_) => Kind::StorageClass,
            Self::CsiNode(_) => Kind::CsiNode,
            Self::CsiDriver(_) => Kind::CsiDriver,
            Self::CsiStorageCapacity(_) => Kind::CsiStorageCapacity,
            Self::VolumeAttachment(_) => Kind::VolumeAttachment,
            Self::PodDisruptionBudget(_) => Kind::PodDisruptionBudget,
            Self::PodGroup(kind, ..) => Kind::PodGroup(*kind),
            Self::Device(..) => Kind::Device,
            Self::ResourceClaim(_) => Kind::ResourceClaim,
            Self::ResourceSlice(_) => Kind::ResourceSlice,
            Self::DeviceClass(_) => Kind::DeviceClass,
            Self::DeviceTaintRule(version, _) => Kind::DeviceTaintRule(*version),
            Self::ShareTemplates(..) => Kind::ShareTemplates,
            Self::Reservation(..) => Kind::Reservation,
            Self::Selecting(_, object) => Kind::Selecting(object.kind()),
            Self::DaemonSet(..) => Kind::DaemonSet,
            Self::Unread(kind, _) => *kind,
        }
    }

    /// Whether both are one PodGroup that says the same of its pods.
    fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::PodGroup(kind, name, group), Self::PodGroup(other_kind, other_name, other)) => {
                (kind, name) == (other_kind, other_name) && group.is_alike(other)
            }
            _ => false,
        }
    }

    /// The object's name; behind its namespace and a `/` where its kind has one.
    pub fn name(&self) -> Arc<str> {
        let metadata = match self {
            Self::Namespace(name, _)
            | Self::PodGroup(_, name, _)
            | Self::Device(name, _)
            | Self::ShareTemplates(name, _)
            | Self::Reservation(name, _)
            | Self::Selecting(name, _)
            | Self::DaemonSet(name, _)
            | Self::Unread(_, name) => return name.clone(),
            Self::PersistentVolume(object) => &object.metadata,
            Self::PersistentVolumeClaim(object) => &object.metadata,
            Self::StorageClass(object) => &object.metadata,
            Self::CsiNode(object) => &object.metadata,
            Self::CsiDriver(object) => &object.metadata,
            Self::CsiStorageCapacity(object) => &object.metadata,
            Self::VolumeAttachment(object) => &object.metadata,
            Self::PodDisruptionBudget(object) => &object.metadata,
            Self::ResourceClaim(object) => &object.metadata,
            Self::ResourceSlice(object) => &object.metadata,
            Self::DeviceClass(object) => &object.metadata,
            Self::DeviceTaintRule(_, object) => &object.metadata,
        };
        full_name(&metadata.namespace, &metadata.name)
    }
}

/// Every object that plugins read, by kind and name. A copy takes no longer where there are more objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    by_kind: BTreeMap<Kind, PersistentMap<Arc<str>, Object>>,
    storage: StorageIndex,
    forest: GroupForest,
    listed: BTreeSet<Kind>,
    /// Of these the API server serves none.
    unserved: BTreeSet<Kind>,
    /// These are not watched, as the settings have it.
    left_out: &'static [Kind],
    no_labels: Arc<Labels>,
    version: u64,
    namespaces: u64,
}

impl Objects {
    /// Takes in an object, new or changed; whether it differs from what was known. The status of a PodGroup, which Berth writes, does not count.
    pub fn set(&mut self, object: Object) -> bool {
        if matches!(object, Object::Unread(..)) {
            return false;
        }
        let (kind, name) = (object.kind(), object.name());
        let known = self.by_kind.entry(kind).or_default();
        if known.get(&name) == Some(&object) {
            return false;
        }
        if known.get(&name).is_some_and(|before| before.is_alike(&object)) {
            known.insert_mut(name, object);
            return false;
        }
        if let Some(before) = known.get(&name).cloned() {
            self.storage.remove(&name, &before);
            uproot(self, &before);
        }
        self.storage.insert(&name, &object);
        self.by_kind.entry(kind).or_default().insert_mut(name, object.clone());
        plant(self, &object);
        self.note_change(kind);
        true
    }

    /// Takes an object out; whether it was known.
    pub fn remove(&mut self, kind: Kind, name: &str) -> bool {
        let Some(before) = self.get(kind, name).cloned() else { return false };
        uproot(self, &before);
        self.by_kind.get_mut(&kind).map(|known| known.remove_mut(name));
        self.storage.remove(name, &before);
        self.note_change(kind);
        true
    }

    fn note_change(&mut self, kind: Kind) {
        self.version += 1;
        self.namespaces += u64::from(kind == Kind::Namespace);
    }

    /// Takes in that all objects of a kind are known.
    pub fn note_listed(&mut self, kind: Kind) {
        self.listed.insert(kind);
        self.unserved.remove(&kind);
        self.version += 1;
    }

    /// Takes in that the API server does not serve this kind.
    pub fn note_unserved(&mut self, kind: Kind) {
        self.note_listed(kind);
        self.unserved.insert(kind);
    }

    /// Whether it is known that the API server does not serve this kind.
    pub fn is_unserved(&self, kind: Kind) -> bool {
        self.unserved.contains(&kind)
    }

    /// Takes in that these kinds are not watched, as the settings have it: nothing waits for their lists.
    pub fn leave_out(&mut self, kinds: &'static [Kind]) {
        self.listed.extend(kinds);
        self.left_out = kinds;
    }

    /// Whether this kind is not watched, as the settings have it.
    pub fn is_left_out(&self, kind: Kind) -> bool {
        self.left_out.contains(&kind)
    }

    /// Whether all objects of these kinds are known.
    pub fn are_listed(&self, kinds: &[Kind]) -> bool {
        self.unlisted(kinds).next().is_none()
    }

    /// Those of these kinds whose objects are not all known.
    pub fn unlisted(&self, kinds: &[Kind]) -> impl Iterator<Item = Kind> {
        kinds.iter().copied().filter(|kind| !self.listed.contains(kind))
    }

    /// Every object of a kind, by name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.by_kind.get(&kind).into_iter().flat_map(PersistentMap::values)
    }

    fn get(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.by_kind.get(&kind)?.get(name)
    }

    /// The labels of a namespace; none where it is not known.
    pub fn namespace_labels(&self, name: &str) -> &Labels {
        match self.get(Kind::Namespace, name) {
            Some(Object::Namespace(_, labels)) => labels,
            _ => &self.no_labels,
        }
    }

    /// Every PodDisruptionBudget, by namespace and name.
    pub fn disruption_budgets(&self) -> impl Iterator<Item = &Arc<PodDisruptionBudget>> {
        self.of_kind(Kind::PodDisruptionBudget).filter_map(|object| match object {
            Object::PodDisruptionBudget(budget) => Some(budget),
            _ => None,
        })
    }

    /// Greater after every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Greater after every change of a namespace.
    pub fn namespaces_version(&self) -> u64 {
        self.namespaces
    }
}
