//! What cards of one product have in common as devices: selectors are asked once for a kind, and not for each device.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use semver::Version;

use super::{
    AttributeValues, DeviceBinding, DeviceNodeResources, DeviceNodes, DeviceView, PoolDevice, Reading,
    capacity_named, hardware::PARENT,
};
use crate::{
    dra::{
        capacity::Capacity,
        cel::{DeviceValue, DeviceVariable},
        device::DeviceId,
        node::NodeSelection,
        taint::DeviceTaints,
    },
    object::Amount,
};

/// The capacity of a device that is its memory, in bytes (HAMi `k8s-dra-driver` ebeaad97 `cmd/hami-kubelet-plugin/hami_core.go`).
pub const MEMORY: &str = "memory";

/// The capacity of a device that is its compute; all of it is the whole card (the same file).
pub const CORES: &str = "cores";

/// The attributes, in the driver's own domain, that say what a device is, and not which one of its kind. Sources: NVIDIA's driver 0.5
/// (`cmd/gpu-kubelet-plugin/deviceinfo.go`) and HAMi's, as above; `family` and `model` are what others call the same.
const DESCRIBING: [&str; 9] = [
    "architecture",
    "brand",
    "cudaComputeCapability",
    "cudaDriverVersion",
    "driverVersion",
    "family",
    "model",
    "productName",
    "type",
];

/// What devices of one kind have in common.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceKind {
    /// The driver.
    pub driver: Arc<str>,
    /// By full names.
    attributes: BTreeMap<String, AttributeValues>,
    /// By the names that the slice spells.
    capacity: BTreeMap<String, Capacity>,
    /// Whether several requests can share such a device.
    pub shareable: bool,
}

impl PoolDevice {
    /// The kind of a device that is a card: a whole piece of hardware of one node, with memory. `None`: it is not, selectors have no value for it, it
    /// can't be given, or a taint keeps pods from it.
    pub fn as_card(&self) -> Option<DeviceKind> {
        self.hardware.as_ref()?;
        let (_, memory) = self.capacity(MEMORY)?;
        let is_part = self.attributes.contains_key(&self.own(PARENT));
        let serves = self.view.variable.is_ok() && self.unserved.is_none() && !self.taints.keep_away(&[]);
        if memory <= Amount::default() || is_part || !serves {
            return None;
        }
        let describing = DESCRIBING.iter().map(|name| self.own(name));
        let attributes = describing.filter_map(|name| {
            let values = self.attribute(&name)?.clone();
            Some((name, values))
        });
        Some(DeviceKind {
            driver: self.id.driver.clone(),
            attributes: attributes.collect(),
            capacity: self.capacity.clone(),
            shareable: self.shareable,
        })
    }

    fn own(&self, name: &str) -> String {
        format!("{}/{name}", self.id.driver)
    }
}

impl DeviceKind {
    /// The name of the product; where the driver tells none, the driver's.
    pub fn model(&self) -> &str {
        let text = |name: &str| match self.attributes.get(&format!("{}/{name}", self.driver))? {
            AttributeValues::Texts(texts) => texts.first().map(String::as_str),
            _ => None,
        };
        text("productName").or_else(|| text("model")).unwrap_or(&self.driver)
    }

    /// A device of this kind, as selectors and capacities see it. It is of no pool and no node.
    pub(in crate::dra) fn device(&self) -> PoolDevice {
        let attributes = self.attributes.iter();
        let values = attributes.clone().filter_map(|(name, values)| Some((name.as_str(), one(values)?)));
        let amounts = self.capacity.iter();
        let amounts = amounts.map(|(name, one)| (name.as_str(), DeviceValue::Quantity(one.value.amount)));
        PoolDevice {
            id: DeviceId::new(&self.driver, "", ""),
            reading: Reading::default(),
            view: DeviceView {
                variable: DeviceVariable::new(&self.driver, values, amounts, self.shareable),
                is_plain: true,
            },
            attributes: attributes.map(|(name, values)| (name.clone(), Some(values.clone()))).collect(),
            capacity: self.capacity.clone(),
            consumes: Vec::new(),
            hardware: None,
            nodes: DeviceNodes {
                selection: NodeSelection::Unknown,
                takes: DeviceNodeResources::default(),
                skips: Vec::new(),
            },
            taints: DeviceTaints::default(),
            binding: DeviceBinding::default(),
            shareable: self.shareable,
            unserved: None,
        }
    }

    /// The memory of such a device, in bytes.
    pub fn memory(&self) -> u64 {
        let memory = capacity_named(MEMORY, &self.driver, &self.capacity);
        memory.map_or(0, |(_, memory)| u64::try_from(memory.units_rounded_up()).unwrap_or(0))
    }
}

/// The one value; `None`: there are several, or it can't be read.
fn one(values: &AttributeValues) -> Option<DeviceValue> {
    fn only<T: Ord>(values: &BTreeSet<T>) -> Option<&T> {
        values.first().filter(|_| values.len() == 1)
    }
    match values {
        AttributeValues::Ints(values) => only(values).copied().map(DeviceValue::Int),
        AttributeValues::Bools(values) => only(values).copied().map(DeviceValue::Bool),
        AttributeValues::Texts(values) => only(values).cloned().map(DeviceValue::Text),
        AttributeValues::Versions(values) => {
            only(values).and_then(|text| Version::parse(text).ok()).map(DeviceValue::Version)
        }
    }
}
