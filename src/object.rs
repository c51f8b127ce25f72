//! What Berth reads of Kubernetes objects: small structs with the fields that rules look at, and their JSON.
//!
//! Holds no rule, no client and no clock. Unknown fields are skipped; `null` reads as absent, as the API server has it.

pub mod affinity;
pub mod config_map;
pub mod constraints;
pub mod container;
pub mod device;
pub mod device_class;
pub mod device_taint_rule;
pub mod duration;
pub mod metadata;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod pod_disruption_budget;
pub mod pod_group;
pub mod quantity;
pub mod quota;
pub mod read;
pub mod requirement;
pub mod reservation;
pub mod resource_claim;
pub mod resource_slice;
pub mod selecting;
pub mod selector;
pub mod storage;
pub mod toleration;
pub mod volume;
pub mod workload;

pub use affinity::{Affinity, NodeSelector, NodeSelectorTerm, PreferredTerm};
pub use config_map::ConfigMap;
pub use container::{Container, EnvVar, Port, ResourceMap, Resources};
pub use device::Device;
pub use device_class::DeviceClass;
pub use device_taint_rule::DeviceTaintRule;
pub use metadata::Metadata;
pub use namespace::Namespace;
pub use node::{Node, Taint};
pub use pod::{Pod, PodSpec, PodStatus};
pub use pod_disruption_budget::PodDisruptionBudget;
pub use pod_group::PodGroup;
pub use quantity::{Amount, Quantity, UnreadableQuantity};
pub use quota::ResourceQuota;
pub use read::{UnreadableField, parse, read};
pub use requirement::Requirement;
pub use reservation::Reservation;
pub use resource_claim::{ResourceClaim, ResourceClaimTemplate};
pub use resource_slice::ResourceSlice;
pub use selector::{LabelSelector, Labels};
pub use toleration::Toleration;
pub use volume::Volume;
pub use workload::Workloads;

use serde::{Deserialize, Deserializer, de::IgnoredAny};

/// Reads `null` as the type's default: the API server drops nulls, files that people write have them.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Something of which only the presence matters.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Present;

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
