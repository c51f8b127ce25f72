//! The names of plugins.

/// A plugin, in the order in which kube-scheduler asks them (v1.36 `pkg/scheduler/apis/config/v1/default_plugins.go`).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Plugin {
    /// Cordons.
    NodeUnschedulable,
    /// Taints of the node and tolerations of the pod.
    TaintToleration,
    /// Node selector and node affinity.
    NodeAffinity,
    /// Ports of the node.
    NodePorts,
    /// Resources that Kubernetes accounts.
    NodeResourcesFit,
    /// How evenly cpu and memory are used; it only scores.
    NodeResourcesBalancedAllocation,
    /// Images that the node has already; it only scores.
    ImageLocality,
    /// Disks that are named in the pod itself, and claims that only one pod may use.
    VolumeRestrictions,
    /// How many volumes a CSI driver can attach to the node.
    NodeVolumeLimits,
    /// Claims: their volumes' node affinity, and volumes that are bound or made with the pod.
    VolumeBinding,
    /// Zone labels of volumes.
    VolumeZone,
    /// Spread constraints.
    PodTopologySpread,
    /// Affinity and anti-affinity between pods.
    InterPodAffinity,
    /// Claims of devices (Dynamic Resource Allocation).
    DynamicResources,
    /// Features of the kubelet.
    NodeDeclaredFeatures,
    /// Windows of revocable zones; named as Volcano's plugin.
    Tdm,
    /// Cards: fit, quota and the device plugin's state.
    Devices,
}

impl Plugin {
    /// The name, as kube-scheduler's configuration spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodeUnschedulable => "NodeUnschedulable",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::NodePorts => "NodePorts",
            Self::NodeResourcesFit => "NodeResourcesFit",
            Self::NodeResourcesBalancedAllocation => "NodeResourcesBalancedAllocation",
            Self::ImageLocality => "ImageLocality",
            Self::VolumeRestrictions => "VolumeRestrictions",
            Self::NodeVolumeLimits => "NodeVolumeLimits",
            Self::VolumeBinding => "VolumeBinding",
            Self::VolumeZone => "VolumeZone",
            Self::PodTopologySpread => "PodTopologySpread",
            Self::InterPodAffinity => "InterPodAffinity",
            Self::DynamicResources => "DynamicResources",
            Self::NodeDeclaredFeatures => "NodeDeclaredFeatures",
            Self::Tdm => "tdm",
            Self::Devices => "Devices",
        }
    }

    /// Whether its answer for a node depends on more than that node and the pod's ask.
    pub const fn looks_around(self) -> bool {
        matches!(
            self,
            Self::PodTopologySpread
                | Self::InterPodAffinity
                | Self::VolumeRestrictions
                | Self::NodeVolumeLimits
                | Self::VolumeBinding
                | Self::VolumeZone
                | Self::DynamicResources
        )
    }
}
