//! The kinds of objects that plugins read.

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
    /// Volcano's groups of pods.
    PodGroup,
    /// The coscheduling plugin's groups of pods.
    CoschedulingPodGroup,
    /// Kubernetes' groups of pods, `v1beta1`.
    KubernetesPodGroup,
    /// The same, `v1alpha2`: Kubernetes 1.36.
    KubernetesPodGroupAlpha,
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
    /// Services: their pods are spread by default.
    Service,
    /// Old controllers of pods: theirs are too.
    ReplicationController,
    /// Controllers of pods, as Deployments make them: theirs are too.
    ReplicaSet,
    /// Controllers of pods with names of their own: theirs are too.
    StatefulSet,
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
        Self::PodGroup,
        Self::CoschedulingPodGroup,
        Self::KubernetesPodGroup,
        Self::KubernetesPodGroupAlpha,
        Self::Device,
        Self::ShareTemplates,
        Self::Reservation,
        Self::ResourceClaim,
        Self::ResourceSlice,
        Self::DeviceClass,
        Self::Service,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::StatefulSet,
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

    /// The kinds that decide on claims of devices: pods that have some wait until these were listed.
    pub const DEVICE_CLAIMS: &[Self] = &[Self::ResourceClaim, Self::ResourceSlice, Self::DeviceClass];

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
            Self::PodGroup
            | Self::CoschedulingPodGroup
            | Self::KubernetesPodGroup
            | Self::KubernetesPodGroupAlpha => "podgroups",
            Self::Device => "devices",
            Self::ShareTemplates => "configmaps",
            Self::Reservation => "reservations",
            Self::ResourceClaim => "resourceclaims",
            Self::ResourceSlice => "resourceslices",
            Self::DeviceClass => "deviceclasses",
            Self::Service => "services",
            Self::ReplicationController => "replicationcontrollers",
            Self::ReplicaSet => "replicasets",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
        }
    }
}
