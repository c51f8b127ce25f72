//! Berth's own read structs as kinds that kube's client can list and watch.
//!
//! kube needs an `ObjectMeta` of each object; it gets name, namespace, uid and version, and nothing else is kept.

use std::borrow::Cow;

use k8s_openapi::{
    ClusterResourceScope, NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    dialect::{koordinator, marks},
    object::{
        ConfigMap, Device, DeviceClass, DeviceTaintRule, Metadata, Namespace, Node, Pod, PodDisruptionBudget,
        PodGroup, Reservation, ResourceClaim, ResourceQuota, ResourceSlice,
        selecting::{DaemonSet, ReplicaSet, ReplicationController, Service, StatefulSet},
        storage::{
            CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
            VolumeAttachment,
        },
    },
};

/// A read struct, with the metadata that kube needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "T", bound = "T: DeserializeOwned + Wire")]
pub struct Watched<T> {
    metadata: ObjectMeta,
    /// The object.
    pub object: T,
}

/// A kind of object that is watched.
pub trait Wire {
    /// Cluster-wide or in namespaces.
    type Scope;
    /// The API group; empty for the core.
    const GROUP: &'static str = "";
    /// Its version.
    const VERSION: &'static str = "v1";
    /// The kind's name.
    const KIND: &'static str;
    /// The kind's name in paths.
    const PLURAL: &'static str;

    /// The object's metadata.
    fn metadata(&self) -> &Metadata;
}

impl Wire for Pod {
    type Scope = NamespaceResourceScope;
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for Node {
    type Scope = ClusterResourceScope;
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for Namespace {
    type Scope = ClusterResourceScope;
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for ResourceQuota {
    type Scope = NamespaceResourceScope;
    const KIND: &'static str = "ResourceQuota";
    const PLURAL: &'static str = "resourcequotas";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for PodGroup {
    type Scope = NamespaceResourceScope;
    const GROUP: &'static str = marks::GROUPS_API;
    const VERSION: &'static str = marks::GROUPS_VERSION;
    const KIND: &'static str = "PodGroup";
    const PLURAL: &'static str = "podgroups";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for Device {
    type Scope = ClusterResourceScope;
    const GROUP: &'static str = koordinator::names::DEVICE_GROUP;
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "Device";
    const PLURAL: &'static str = "devices";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Wire for Reservation {
    type Scope = ClusterResourceScope;
    const GROUP: &'static str = koordinator::names::DEVICE_GROUP;
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "Reservation";
    const PLURAL: &'static str = "reservations";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// PodGroups of another API, which are read as Volcano's are, and CompositePodGroups.
macro_rules! pod_group {
    ($(#[$doc:meta])* $name:ident, $group:literal, $version:literal) => {
        pod_group!($(#[$doc])* $name, $group, $version, "PodGroup", "podgroups");
    };
    ($(#[$doc:meta])* $name:ident, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub PodGroup);

        impl Wire for $name {
            type Scope = NamespaceResourceScope;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;

            fn metadata(&self) -> &Metadata {
                &self.0.metadata
            }
        }

        impl AsRef<PodGroup> for $name {
            fn as_ref(&self) -> &PodGroup {
                &self.0
            }
        }
    };
}

pod_group!(
    /// A PodGroup of the coscheduling plugin.
    CoschedulingPodGroup,
    "scheduling.x-k8s.io",
    "v1alpha1"
);
pod_group!(
    /// A PodGroup of Kubernetes 1.37 and later.
    KubernetesPodGroup,
    "scheduling.k8s.io",
    "v1beta1"
);
pod_group!(
    /// A PodGroup of Kubernetes 1.37 that does not serve the newer version.
    KubernetesPodGroupAlpha3,
    "scheduling.k8s.io",
    "v1alpha3"
);
pod_group!(
    /// A PodGroup of Kubernetes 1.36.
    KubernetesPodGroupAlpha2,
    "scheduling.k8s.io",
    "v1alpha2"
);
pod_group!(
    /// A CompositePodGroup of Kubernetes 1.37.
    CompositePodGroup,
    "scheduling.k8s.io",
    "v1alpha3",
    "CompositePodGroup",
    "compositepodgroups"
);

impl AsRef<Self> for PodGroup {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// A DeviceTaintRule of Kubernetes 1.36.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct DeviceTaintRuleBeta(pub DeviceTaintRule);

impl Wire for DeviceTaintRuleBeta {
    type Scope = ClusterResourceScope;
    const GROUP: &'static str = "resource.k8s.io";
    const VERSION: &'static str = "v1beta2";
    const KIND: &'static str = "DeviceTaintRule";
    const PLURAL: &'static str = "devicetaintrules";

    fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }
}

/// A kind whose object keeps its metadata under that name.
macro_rules! wire {
    ($type:ty, $scope:ty, $group:literal, $kind:literal, $plural:literal) => {
        impl Wire for $type {
            type Scope = $scope;
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;

            fn metadata(&self) -> &Metadata {
                &self.metadata
            }
        }
    };
}

wire!(ConfigMap, NamespaceResourceScope, "", "ConfigMap", "configmaps");
wire!(PersistentVolume, ClusterResourceScope, "", "PersistentVolume", "persistentvolumes");
wire!(PersistentVolumeClaim, NamespaceResourceScope, "", "PersistentVolumeClaim", "persistentvolumeclaims");
wire!(StorageClass, ClusterResourceScope, "storage.k8s.io", "StorageClass", "storageclasses");
wire!(CsiNode, ClusterResourceScope, "storage.k8s.io", "CSINode", "csinodes");
wire!(CsiDriver, ClusterResourceScope, "storage.k8s.io", "CSIDriver", "csidrivers");
wire!(
    CsiStorageCapacity,
    NamespaceResourceScope,
    "storage.k8s.io",
    "CSIStorageCapacity",
    "csistoragecapacities"
);
wire!(VolumeAttachment, ClusterResourceScope, "storage.k8s.io", "VolumeAttachment", "volumeattachments");
wire!(PodDisruptionBudget, NamespaceResourceScope, "policy", "PodDisruptionBudget", "poddisruptionbudgets");
wire!(ResourceClaim, NamespaceResourceScope, "resource.k8s.io", "ResourceClaim", "resourceclaims");
wire!(ResourceSlice, ClusterResourceScope, "resource.k8s.io", "ResourceSlice", "resourceslices");
wire!(DeviceClass, ClusterResourceScope, "resource.k8s.io", "DeviceClass", "deviceclasses");
wire!(DeviceTaintRule, ClusterResourceScope, "resource.k8s.io", "DeviceTaintRule", "devicetaintrules");
wire!(Service, NamespaceResourceScope, "", "Service", "services");
wire!(ReplicationController, NamespaceResourceScope, "", "ReplicationController", "replicationcontrollers");
wire!(ReplicaSet, NamespaceResourceScope, "apps", "ReplicaSet", "replicasets");
wire!(StatefulSet, NamespaceResourceScope, "apps", "StatefulSet", "statefulsets");
wire!(DaemonSet, NamespaceResourceScope, "apps", "DaemonSet", "daemonsets");

impl<T: Wire> From<T> for Watched<T> {
    fn from(object: T) -> Self {
        let metadata = object.metadata();
        let set = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let metadata = ObjectMeta {
            name: set(&metadata.name),
            namespace: set(&metadata.namespace),
            uid: set(&metadata.uid),
            resource_version: set(&metadata.resource_version),
            ..ObjectMeta::default()
        };
        Self { metadata, object }
    }
}

impl<T: Wire> Resource for Watched<T> {
    type DynamicType = ();
    type Scope = T::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        T::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        T::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        T::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
