//! The kinds of objects that plugins read.

use super::gang::GroupApi;

/// A kind of groups of pods.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PodGroupKind {
    /// Volcano's.
    Volcano,
    /// The coscheduling plugin's.
    Coscheduling,
    /// Kubernetes', `v1beta1`.
    Kubernetes,
    /// The same, `v1alpha3`: Kubernetes 1.37 that does not serve `v1beta1`.
    KubernetesAlpha3,
    /// The same, `v1alpha2`: Kubernetes 1.36.
    KubernetesAlpha2,
    /// Kubernetes' groups of groups, CompositePodGroups: `v1alpha3`.
    Composite,
}

impl PodGroupKind {
    /// Whose groups of pods these are.
    pub const fn api(self) -> GroupApi {
        match self {
            Self::Volcano => GroupApi::Volcano,
            Self::Coscheduling => GroupApi::Coscheduling,
            Self::Kubernetes | Self::KubernetesAlpha3 | Self::KubernetesAlpha2 => GroupApi::Kubernetes,
            Self::Composite => GroupApi::Composite,
        }
    }
}

/// A kind of objects that select pods.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SelectingKind {
    /// Services.
    Service,
    /// Old controllers of pods.
    ReplicationController,
    /// Controllers of pods, as Deployments make them.
    ReplicaSet,
    /// Controllers of pods with names of their own.
    StatefulSet,
}

/// A version of the API of rules that taint devices; an API server may serve both.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TaintRuleVersion {
    /// Kubernetes 1.37 and later.
    V1,
    /// Kubernetes 1.36.
    V1Beta2,
}

/// A kind of object that plugins read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// Namespaces: terms of affinity select them by label.
    Namespace,
    /// Volumes.
    PersistentVolume,
    /// Claims of volumes.
    PersistentVolumeClaim,
    /// Classes of volumes.
    StorageClass,
    /// The CSI drivers on a node.
    CsiNode,
    /// CSI drivers.
    CsiDriver,
    /// How much storage of a class there is for some nodes.
    CsiStorageCapacity,
    /// Volumes that are attached to nodes.
    VolumeAttachment,
    /// How many pods may be evicted.
    PodDisruptionBudget,
    /// Groups of pods.
    PodGroup(PodGroupKind),
    /// The devices of nodes, as Koordinator's node side lists them.
    Device,
    /// The ConfigMap with the templates of shares of cards.
    ShareTemplates,
    /// Capacity of nodes that Koordinator keeps for pods to come.
    Reservation,
    /// Claims of devices.
    ResourceClaim,
    /// Devices that drivers publish.
    ResourceSlice,
    /// Classes of devices.
    DeviceClass,
    /// Rules that taint devices.
    DeviceTaintRule(TaintRuleVersion),
    /// Objects that select pods which are spread by default.
    Selecting(SelectingKind),
    /// Controllers that keep a pod on every node: theirs stay when a revocable zone closes.
    DaemonSet,
}

impl Kind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::Namespace,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
        Self::CsiDriver,
        Self::CsiStorageCapacity,
        Self::VolumeAttachment,
        Self::PodDisruptionBudget,
        Self::PodGroup(PodGroupKind::Volcano),
        Self::PodGroup(PodGroupKind::Coscheduling),
        Self::PodGroup(PodGroupKind::Kubernetes),
        Self::PodGroup(PodGroupKind::KubernetesAlpha3),
        Self::PodGroup(PodGroupKind::KubernetesAlpha2),
        Self::PodGroup(PodGroupKind::Composite),
        Self::Device,
        Self::ShareTemplates,
        Self::Reservation,
        Self::ResourceClaim,
        Self::ResourceSlice,
        Self::DeviceClass,
        Self::DeviceTaintRule(TaintRuleVersion::V1),
        Self::DeviceTaintRule(TaintRuleVersion::V1Beta2),
        Self::Selecting(SelectingKind::Service),
        Self::Selecting(SelectingKind::ReplicationController),
        Self::Selecting(SelectingKind::ReplicaSet),
        Self::Selecting(SelectingKind::StatefulSet),
        Self::DaemonSet,
    ];

    /// The kinds that decide where a pod with claims may go: such pods wait until these were listed.
    pub const STORAGE: &[Self] = &[
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
        Self::CsiDriver,
        Self::CsiStorageCapacity,
        Self::VolumeAttachment,
    ];

    /// The kinds that decide on claims of devices: pods that have some wait until these were listed. The API server may not serve the rules.
    pub const DEVICE_CLAIMS: &[Self] = &[
        Self::ResourceClaim,
        Self::ResourceSlice,
        Self::DeviceClass,
        Self::DeviceTaintRule(TaintRuleVersion::V1),
        Self::DeviceTaintRule(TaintRuleVersion::V1Beta2),
    ];

    /// The kinds that list the devices of nodes by type and hold some of them: pods that ask for such devices wait until these were
    /// listed. The API server may serve none of them.
    pub const DEVICES_BY_TYPE: &[Self] = &[Self::Device, Self::Reservation];

    /// The kinds of groups of pods; the API server may serve none of them.
    pub const POD_GROUPS: &[Self] = &[
        Self::PodGroup(PodGroupKind::Volcano),
        Self::PodGroup(PodGroupKind::Coscheduling),
        Self::PodGroup(PodGroupKind::Kubernetes),
        Self::PodGroup(PodGroupKind::KubernetesAlpha3),
        Self::PodGroup(PodGroupKind::KubernetesAlpha2),
        Self::PodGroup(PodGroupKind::Composite),
    ];

    /// The kinds of groups of pods of this API, the newest version first.
    pub const fn of_groups(api: GroupApi) -> &'static [Self] {
        match api {
            GroupApi::Volcano => &[Self::PodGroup(PodGroupKind::Volcano)],
            GroupApi::Coscheduling => &[Self::PodGroup(PodGroupKind::Coscheduling)],
            GroupApi::Kubernetes => &[
                Self::PodGroup(PodGroupKind::Kubernetes),
                Self::PodGroup(PodGroupKind::KubernetesAlpha3),
                Self::PodGroup(PodGroupKind::KubernetesAlpha2),
            ],
            GroupApi::Composite => &[Self::PodGroup(PodGroupKind::Composite)],
        }
    }

    /// The resource, as a ClusterRole names it.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::PersistentVolume => "persistentvolumes",
            Self::PersistentVolumeClaim => "persistentvolumeclaims",
            Self::StorageClass => "storageclasses",
            Self::CsiNode => "csinodes",
            Self::CsiDriver => "csidrivers",
            Self::CsiStorageCapacity => "csistoragecapacities",
            Self::VolumeAttachment => "volumeattachments",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::PodGroup(PodGroupKind::Composite) => "compositepodgroups",
            Self::PodGroup(_) => "podgroups",
            Self::Device => "devices",
            Self::ShareTemplates => "configmaps",
            Self::Reservation => "reservations",
            Self::ResourceClaim => "resourceclaims",
            Self::ResourceSlice => "resourceslices",
            Self::DeviceClass => "deviceclasses",
            Self::DeviceTaintRule(_) => "devicetaintrules",
            Self::Selecting(SelectingKind::Service) => "services",
            Self::Selecting(SelectingKind::ReplicationController) => "replicationcontrollers",
            Self::Selecting(SelectingKind::ReplicaSet) => "replicasets",
            Self::Selecting(SelectingKind::StatefulSet) => "statefulsets",
            Self::DaemonSet => "daemonsets",
        }
    }
}
