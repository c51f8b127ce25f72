//! One device of a slice, read once: its names, attributes, capacities and what it takes of counters.

mod attribute;
mod hardware;
mod kind;
mod node_resources;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{capacity::Capacity, node::NodeSelection, taint::DeviceTaints};
use crate::object::{
    Amount,
    resource_claim::AllocatedDevice,
    resource_slice::{NodeAllocatableResource, ResourceSliceSpec, SliceDevice},
};

pub use attribute::AttributeValues;
pub(super) use attribute::DerivedValues;
pub use kind::{CORES, DeviceKind, MEMORY};
pub use node_resources::OverheadTaken;
pub(super) use node_resources::{DeviceNodeResources, Mapping};
use view::DeviceView;

/// The attribute that names the PCIe root complex of a device (kubernetes `dynamic-resource-allocation/deviceattribute`).
pub(super) const PCIE_ROOT: &str = "resource.kubernetes.io/pcieRoot";

/// A device's identity in the cluster.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceId {
    /// The driver.
    pub driver: Arc<str>,
    /// The driver's pool.
    pub pool: Arc<str>,
    /// The device's name in the pool.
    pub device: Arc<str>,
}

impl DeviceId {
    /// A device's identity.
    pub fn new(driver: &str, pool: &str, device: &str) -> Self {
        Self { driver: driver.into(), pool: pool.into(), device: device.into() }
    }
}

impl From<&AllocatedDevice> for DeviceId {
    fn from(AllocatedDevice { driver, pool, device, .. }: &AllocatedDevice) -> Self {
        Self::new(driver, pool, device)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// Tells apart what was published of devices, over all devices and times.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Reading(pub(super) u64);

/// A counter of a pool: its set and its name.
pub(super) type CounterName = (Arc<str>, Arc<str>);

/// What a device takes of a set of counters.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct SetUse {
    pub(super) set: Arc<str>,
    /// How much of each counter.
    pub(super) counters: BTreeMap<Arc<str>, Amount>,
    /// The groups of which it must have one in common with all others that take of the set.
    pub(super) groups: BTreeSet<Arc<str>>,
}

/// What must hold before a pod with the device is bound (KEP-5007).
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceBinding {
    /// Whether an allocation holds for its node alone.
    pub(super) to_node: bool,
    /// Conditions that must be true.
    pub(super) conditions: Vec<String>,
    /// Conditions of which none may be true.
    pub(super) failure_conditions: Vec<String>,
}

/// What a device is to nodes.
#[derive(Clone, Debug)]
pub(super) struct DeviceNodes {
    /// From which nodes it can be reached.
    pub(super) selection: NodeSelection,
    /// What an allocation takes of the resources of the node that uses it.
    pub(super) takes: DeviceNodeResources,
    /// What kubelet need not ask the driver to do: only a node whose kubelet knows of this can use the device then.
    pub(super) skips: Vec<String>,
}

/// A device.
#[derive(Clone, Debug)]
pub struct PoolDevice {
    /// Its identity.
    pub id: DeviceId,
    /// Another whenever it is published anew.
    pub(super) reading: Reading,
    /// Attributes by their full names; `None`: this version does not know the kind of value.
    pub(super) attributes: BTreeMap<String, Option<AttributeValues>>,
    /// Capacities by their names, as the slice spells them.
    pub(super) capacity: BTreeMap<String, Capacity>,
    pub(super) consumes: Vec<SetUse>,
    /// The id of the hardware of its node that it is, or is a part of; `None`: not known, or it is of no one node.
    pub hardware: Option<Arc<str>>,
    pub(super) nodes: DeviceNodes,
    pub(super) taints: DeviceTaints,
    pub(super) binding: DeviceBinding,
    /// Whether several requests can share it.
    pub shareable: bool,
    /// What selectors see of it.
    pub(super) view: DeviceView,
    /// A field of it for whose sake it can't be given: this version does not do what the field asks for.
    pub(super) unserved: Option<&'static str>,
}

impl PoolDevice {
    /// Reads a device of a slice; the error is why the slice's pool can't be used.
    pub(super) fn read(
        spec: &ResourceSliceSpec,
        device: &SliceDevice,
        selection: &NodeSelection,
    ) -> Result<Self, String> {
        let id = DeviceId::new(&spec.driver, &spec.pool.name, &device.name);
        let selection = if spec.per_device_node_selection {
            NodeSelection::read(device.node_name.as_deref(), device.all_nodes, device.node_selector.as_ref())
        } else {
            selection.clone()
        };
        let capacity = device.capacity.iter().map(|(name, capacity)| {
            let read = Capacity::read(capacity);
            read.map(|read| (name.clone(), read))
                .map_err(|reason| format!("device {}: capacity {name}: {reason}", device.name))
        });
        let attributes = attribute::by_full_name(&spec.driver, &device.attributes);
        Ok(Self {
            capacity: capacity.collect::<Result<_, _>>()?,
            consumes: consumed(device)?,
            hardware: hardware::of(&spec.driver, &attributes, &selection),
            attributes,
            nodes: DeviceNodes {
                selection,
                takes: DeviceNodeResources::read(device)?,
                skips: spec.skip_node_operations.clone(),
            },
            taints: DeviceTaints::published(&device.taints),
            binding: DeviceBinding {
                to_node: device.binds_to_node,
                conditions: device.binding_conditions.clone(),
                failure_conditions: device.binding_failure_conditions.clone(),
            },
            shareable: device.allow_multiple_allocations,
            view: DeviceView::of(&spec.driver, device),
            unserved: unserved(device),
            reading: Reading::default(),
            id,
        })
    }

    /// The one node from which it can be reached; `None`: there may be several.
    pub fn node(&self) -> Option<&str> {
        match &self.nodes.selection {
            NodeSelection::Name(node) => Some(node),
            NodeSelection::All | NodeSelection::Selector(_) | NodeSelection::Unknown => None,
        }
    }

    /// A capacity that is named so or, in the domain of the driver, so: the slice's spelling and how much there is.
    pub fn capacity(&self, name: &str) -> Option<(&str, Amount)> {
        capacity_named(name, &self.id.driver, &self.capacity)
    }

    /// The values of an attribute by its full name; `None`: the device has none that can be compared.
    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeValues> {
        self.attributes.get(name)?.as_ref()
    }
}

/// The capacity, of these of a device of this driver, that is named so or, in the domain of the driver, so: its spelling and how much there is.
fn capacity_named<'a>(
    name: &str,
    driver: &str,
    all: &'a BTreeMap<String, Capacity>,
) -> Option<(&'a str, Amount)> {
    let is_it = |spelled: &str| own_name(spelled, driver).unwrap_or(spelled) == name;
    let found = all.iter().find(|(spelled, _)| is_it(spelled));
    found.map(|(spelled, capacity)| (spelled.as_str(), capacity.value.amount))
}

/// What follows the driver's domain in a name that is spelled with it; `None`: it has no domain or another.
fn own_name<'a>(spelled: &'a str, driver: &str) -> Option<&'a str> {
    spelled.strip_prefix(driver)?.strip_prefix('/')
}

fn consumed(device: &SliceDevice) -> Result<Vec<SetUse>, String> {
    let uses = device.consumes_counters.iter().map(|consumption| {
        let set = &consumption.counter_set;
        let counters = consumption.counters.iter().map(|(counter, amount)| {
            let amount = amount.value.amount();
            let amount = amount
                .map_err(|reason| format!("device {}: counter {set}/{counter}: {reason}", device.name))?;
            Ok((counter.as_str().into(), amount))
        });
        Ok(SetUse {
            set: set.as_str().into(),
            counters: counters.collect::<Result<_, String>>()?,
            groups: consumption.compatibility_groups.iter().map(|group| group.as_str().into()).collect(),
        })
    });
    uses.collect()
}

/// The field for whose sake the device can't be given: what 1.36 has for a node's resources differs from 1.37 in what the pod's status says of it.
fn unserved(device: &SliceDevice) -> Option<&'static str> {
    let mut resources = device.node_allocatable_resources.values();
    let of_1_36 =
        |resource: &NodeAllocatableResource| resource.mapping.is_none() && resource.overhead.is_none();
    resources.any(of_1_36).then_some("nodeAllocatableResourceMappings")
}
