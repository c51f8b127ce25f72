//! What a pod asks of a node's typed devices, and what it is given: several types at once, with rules that join them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    amounts::{Amounts, NamedDimension, Proportion},
    label_filter::LabelFilter,
    node_devices::{CardDimensions, DeviceType, Minor, NodeDevices, SriovFunction},
};

/// How many devices of a type.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DeviceCount {
    /// So many.
    Exactly(u32),
    /// Every device of the node that the selector admits.
    All,
}

/// Whether a pod takes devices whole.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DevicePortion {
    /// All of each device.
    Whole,
    /// A share of each device.
    Share,
}

/// The part of the machine that the devices of one type must share.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TopologyScope {
    /// The node.
    Node,
    /// A NUMA node.
    NumaNode,
    /// A PCIe switch.
    Pcie,
    /// One device.
    Device,
}

/// What a pod does not share with other pods.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Exclusive {
    /// Its devices.
    Device,
    /// The devices of the same type below the PCIe switches of its devices.
    Pcie,
}

/// How a pod wants its cards partitioned. A pod that has one is given partitions alone.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PartitionSpec {
    /// Which partitions will do.
    pub choice: PartitionChoice,
    /// What the links of the partition must carry at least, in bytes a second.
    pub ring_bandwidth: Option<u64>,
}

/// Which partitions will do.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PartitionChoice {
    /// The best that is free.
    #[default]
    BestEffort,
    /// Those of the best score only.
    Restricted,
}

/// What a pod asks of the devices of one type.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TypedRequest {
    /// What it takes of each device.
    pub each: Amounts,
    /// Of how many.
    pub count: DeviceCount,
    /// Whether it takes them whole.
    pub portion: DevicePortion,
    /// Labels that the devices must have.
    pub selector: Option<LabelFilter>,
    /// It takes a virtual function of each device, of a group with these labels; `None`: it takes none.
    pub functions: Option<LabelFilter>,
    /// What the devices must share; `None`: no part is required.
    pub scope: Option<TopologyScope>,
    /// What it does not share with others.
    pub exclusive: Option<Exclusive>,
    /// How its cards must be partitioned.
    pub partition: Option<PartitionSpec>,
    /// Whether what it takes of a device must be exactly a template of the device's model.
    pub by_template: bool,
    /// Which of its dimensions are those of a card; `None`: it asks for devices that are no cards.
    pub card: Option<CardDimensions>,
}

impl TypedRequest {
    /// The dimensions that are two of one thing; what is given is completed by it.
    pub fn proportion(&self) -> Option<&Proportion> {
        self.card.as_ref().map(|card| &card.memory)
    }

    /// How many devices it takes at least.
    pub const fn least(&self) -> u32 {
        match self.count {
            DeviceCount::Exactly(count) => count,
            DeviceCount::All => 1,
        }
    }
}

/// Whether types that are joined must be on the same PCIe switches.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum JointScope {
    /// They should.
    Preferred,
    /// They must: each type is on exactly the switches of the first.
    SamePcie,
}

/// Types whose devices are chosen together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Joint {
    /// The types; the first leads, the others follow to its PCIe switches.
    pub types: Vec<DeviceType>,
    /// Whether they must.
    pub scope: JointScope,
}

/// What a pod asks of a node's typed devices.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct JointRequest {
    /// By type.
    pub types: BTreeMap<DeviceType, TypedRequest>,
    /// The types that are chosen together.
    pub joint: Option<Joint>,
    /// By which dimensions devices are compared, and how much each counts.
    pub weights: Arc<[(NamedDimension, u64)]>,
    /// What must keep pods on one card of the node apart, where a pod takes shares; `None`: it does not say.
    pub isolation: Option<String>,
    /// Whether settings of NCCL are written for what it is given.
    pub nccl: bool,
    /// The vendor whose device plugin kubelet asks for the pod, which names that plugin's resources; `None`: it names none.
    pub plugin: Option<&'static str>,
    /// What each container asks for itself; none: the pod asks as a whole. Where there are any, the pod asks for nothing beside.
    pub containers: Vec<ContainerDeviceRequest>,
}

impl JointRequest {
    /// Whether it asks for devices of this type, as a whole or for a container.
    pub fn asks(&self, kind: DeviceType) -> bool {
        self.types.contains_key(&kind) || self.containers.iter().any(|one| one.request.asks(kind))
    }
}

/// What one container asks of a node's typed devices for itself.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ContainerDeviceRequest {
    /// Its name.
    pub container: String,
    /// What it asks.
    pub request: JointRequest,
}

/// What one container is given of its pod's devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerDevices {
    /// Its name.
    pub container: String,
    /// Its devices.
    pub devices: DeviceAllocations,
}

/// What containers are given together: of a device that several have, the sum.
pub fn together(containers: &[ContainerDevices]) -> DeviceAllocations {
    let mut all: BTreeMap<DeviceType, BTreeMap<Minor, DeviceAllocation>> = BTreeMap::new();
    for (&kind, devices) in containers.iter().flat_map(|container| &container.devices) {
        for device in devices {
            let of_type = all.entry(kind).or_default();
            match of_type.get_mut(&device.minor) {
                None => drop(of_type.insert(device.minor, device.clone())),
                Some(known) => {
                    known.amounts.add(&device.amounts);
                    known.functions.extend(device.functions.iter().cloned());
                }
            }
        }
    }
    all.into_iter().map(|(kind, devices)| (kind, devices.into_values().collect())).collect()
}

/// The devices of a pod's node, and what it asked for: what device plugins read of the pod depends on both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DevicePlace {
    /// All devices of the node.
    pub devices: Arc<NodeDevices>,
    /// What the pod asked for.
    pub request: Arc<JointRequest>,
}

/// What a pod is given of one device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceAllocation {
    /// The device's number.
    pub minor: Minor,
    /// Its id; `None`: it was not written.
    pub id: Option<String>,
    /// How much of it.
    pub amounts: Amounts,
    /// Its virtual functions.
    pub functions: Vec<SriovFunction>,
    /// The template that the share is.
    pub template: Option<String>,
    /// What the pod does not share with others.
    pub exclusive: Option<Exclusive>,
}

/// What a pod is given of a node's typed devices, by minor within a type.
pub type DeviceAllocations = BTreeMap<DeviceType, Vec<DeviceAllocation>>;

/// What is used of one device.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceUse {
    /// How much.
    pub amounts: Amounts,
    /// PCI addresses of the virtual functions that pods have.
    pub functions: BTreeSet<String>,
    /// What the pods on it do not share with others.
    pub exclusive: Option<Exclusive>,
}

/// What is used of a node's typed devices: a fold over what its pods hold.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DevicesUsed(BTreeMap<(DeviceType, Minor), DeviceUse>);

impl DevicesUsed {
    /// What these allocations use together.
    pub fn of<'a>(held: impl IntoIterator<Item = &'a DeviceAllocations>) -> Self {
        let mut used = Self::default();
        for (&kind, allocations) in held.into_iter().flatten() {
            for DeviceAllocation { minor, amounts, functions, exclusive, .. } in allocations {
                let functions = functions.iter().map(|function| function.bus.clone()).collect();
                used.add(
                    kind,
                    *minor,
                    DeviceUse { amounts: amounts.clone(), functions, exclusive: *exclusive },
                );
            }
        }
        used
    }

    /// Both together, of pods that are in one of them alone.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for ((kind, minor), used) in other.0 {
            self.add(kind, minor, used);
        }
        self
    }

    fn add(&mut self, kind: DeviceType, minor: Minor, other: DeviceUse) {
        let of = self.0.entry((kind, minor)).or_default();
        of.amounts.add(&other.amounts);
        of.functions.extend(other.functions);
        of.exclusive = of.exclusive.max(other.exclusive);
    }

    /// What is used of a device; `None`: no pod has any of it.
    pub fn get(&self, kind: DeviceType, minor: Minor) -> Option<&DeviceUse> {
        self.0.get(&(kind, minor))
    }

    /// The devices of a type of which something is used.
    pub fn of_type(&self, kind: DeviceType) -> impl Iterator<Item = (Minor, &DeviceUse)> {
        let of_kind = self.0.range((kind, Minor::MIN)..=(kind, Minor::MAX));
        of_kind.map(|(&(_, minor), used)| (minor, used))
    }

    /// What pods may still be given of a device of this node; nothing of one that is not there or does not serve.
    pub fn left_of(&self, node: &NodeDevices, kind: DeviceType, minor: Minor) -> Amounts {
        let total = node.device(kind, minor).filter(|device| device.serves()).map(|device| &device.total);
        let used = self.get(kind, minor);
        total
            .map(|total| used.map_or_else(|| total.clone(), |used| total.left(&used.amounts)))
            .unwrap_or_default()
    }

    /// Lets nobody else have these virtual functions of a device.
    pub fn keep(&mut self, kind: DeviceType, minor: Minor, functions: impl IntoIterator<Item = String>) {
        self.0.entry((kind, minor)).or_default().functions.extend(functions);
    }

    /// Each device of which something is used.
    pub fn iter(&self) -> impl Iterator<Item = (DeviceType, Minor, &DeviceUse)> {
        self.0.iter().map(|(&(kind, minor), used)| (kind, minor, used))
    }
}
