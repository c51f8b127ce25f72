//! Why a node's devices do not serve a pod.
//!
//! The words are Koordinator's, where it has them: users search for them.

use crate::device::DeviceType;

/// One reason.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum Shortfall {
    /// Too few devices of the type have enough left.
    #[error("Insufficient {0} devices")]
    Devices(DeviceType),
    /// The node has no device of the type, or none that the selector admits.
    #[error("Insufficient {0} devices")]
    NoDevices(DeviceType),
    /// No device of the type has virtual functions.
    #[error("Insufficient {0} VirtualFunctions")]
    NoVirtualFunctions(DeviceType),
    /// No devices of the joined types are free on the same PCIe switches.
    #[error(
        "node(s) Device Joint-Allocate rules violation: no free devices of the joined types share a PCIe switch"
    )]
    JointRule,
    /// Partitions are required, and the node has no table of them.
    #[error("node(s) missing GPU Partition Table")]
    NoPartitionTable,
    /// Partitions are required, and none has so many cards.
    #[error("node(s) Unsupported number of GPU requests")]
    PartitionSize,
    /// Partitions are required, and none that will do is free.
    #[error("Insufficient Partitioned GPU Devices")]
    Partitions,
    /// A part of the machine is required, and where the GPUs are is not known.
    #[error("node(s) missing GPU Device Topology Tree")]
    NoTopology,
    /// A part of the machine is required for shares of several cards.
    #[error("node(s) Unsupported Multi-Shared GPU")]
    SharesOfSeveral,
    /// No part of the machine of the required kind has enough left.
    #[error("Insufficient Topology Scoped GPU Devices")]
    Scope,
    /// Too few GPUs have enough left.
    #[error("Insufficient GPU Devices")]
    Gpus,
    /// The node's model has no template that is exactly what is asked for.
    #[error("no matched GPU shared resource template")]
    Template,
    /// What keeps pods on one card apart is not what the pod needs.
    #[error("node(s) GPU isolation provider mismatch")]
    Isolation,
    /// The vendor's device plugin serves pods that name its resources alone, and the pod names none, or another vendor's.
    #[error("node(s) GPU device plugin is not called for the Pod, which names no resource of its vendor")]
    PluginNotAsked,
    /// The vendor's device plugin gives a pod fewer cards.
    #[error("node(s) GPU device plugin gives a Pod fewer cards")]
    PluginCards,
    /// The vendor's device plugin needs compute, and more memory.
    #[error("node(s) GPU device plugin needs compute, and memory of at least one of its units")]
    PluginShare,
    /// The pod must use a Reservation, and none on the node is for it.
    #[error("node(s) no reservation(s) met the Pod's reservation affinity")]
    Reservation,
    /// The pod must use a Reservation, and of those on the node that are for it none has enough left.
    #[error("node(s) reservation(s) that met the Pod's reservation affinity had not enough left")]
    ReservationInUse,
}

impl Shortfall {
    /// Whether pods that leave the node could cure it.
    pub const fn is_resolvable(self) -> bool {
        matches!(
            self,
            Self::Devices(_)
                | Self::JointRule
                | Self::Partitions
                | Self::Scope
                | Self::Gpus
                | Self::ReservationInUse
        )
    }
}
