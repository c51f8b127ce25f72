//! The devices of a node, as Koordinator's `Device` lists them.
//!
//! Source: koordinator `apis/scheduling/v1alpha1/device_types.go`. The object is cluster-scoped and named like its node.

use serde::Deserialize;

use super::{container::ResourceMap, metadata::Metadata, nullable, selector::Labels};

/// The devices of one node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Device {
    /// The node's name, labels and annotations.
    pub metadata: Metadata,
    /// The devices.
    #[serde(deserialize_with = "nullable")]
    pub spec: DeviceSpec,
}

/// `spec` of a `Device`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceSpec {
    /// Each device.
    #[serde(deserialize_with = "nullable")]
    pub devices: Vec<DeviceInfo>,
}

/// One device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceInfo {
    /// `gpu`, `rdma`, `fpga` or another.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// Labels by which pods choose it.
    #[serde(deserialize_with = "nullable")]
    pub labels: Labels,
    /// A GPU's uuid or a NIC's PCI address.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Its number among those of its type; absent: 0.
    #[serde(deserialize_with = "nullable")]
    pub minor: i32,
    /// Whether it works; absent: it does not.
    #[serde(deserialize_with = "nullable")]
    pub health: bool,
    /// All that it has.
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceMap,
    /// Where it is in the machine.
    pub topology: Option<DeviceTopology>,
    /// Its virtual functions.
    #[serde(deserialize_with = "nullable")]
    pub vf_groups: Vec<VirtualFunctionGroup>,
    /// Conditions; they inform, `health` decides.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<super::pod::Condition>,
}

/// `topology` of a device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceTopology {
    /// The socket; negative: not known.
    #[serde(rename = "socketID", deserialize_with = "nullable")]
    pub socket: i32,
    /// The NUMA node; negative: not known.
    #[serde(rename = "nodeID", deserialize_with = "nullable")]
    pub numa: i32,
    /// The PCIe switch or root complex.
    #[serde(rename = "pcieID", deserialize_with = "nullable")]
    pub pcie: String,
    /// The device's PCI address.
    #[serde(rename = "busID", deserialize_with = "nullable")]
    pub bus: String,
}

/// Virtual functions that bear the same labels.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct VirtualFunctionGroup {
    /// The labels.
    #[serde(deserialize_with = "nullable")]
    pub labels: Labels,
    /// The functions.
    #[serde(deserialize_with = "nullable")]
    pub vfs: Vec<VirtualFunction>,
}

/// A virtual function.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct VirtualFunction {
    /// Its number; koordlet writes -1.
    #[serde(deserialize_with = "nullable")]
    pub minor: i32,
    /// Its PCI address.
    #[serde(rename = "busID", deserialize_with = "nullable")]
    pub bus: String,
}
