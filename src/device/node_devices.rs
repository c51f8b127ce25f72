//! The typed devices of a node, GPUs beside NICs and FPGAs: health, place in the machine, virtual functions, partitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    agent::Answer,
    amounts::{Amounts, NamedDimension, Proportion},
    card::Health,
    label_filter::{DeviceLabels, LabelFilter},
};

/// What kind of device it is. A node numbers the devices of each type on their own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DeviceType {
    /// A GPU or another accelerator that is shared as one.
    Gpu,
    /// A NIC with RDMA.
    Rdma,
    /// An FPGA.
    Fpga,
}

impl DeviceType {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Rdma, Self::Fpga];

    /// Its name: `gpu`, `rdma` or `fpga`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Rdma => "rdma",
            Self::Fpga => "fpga",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The number of a device among those of its type on the node.
pub type Minor = u32;

/// Where a device is in the machine.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DeviceLocation {
    /// The socket; `None`: not known.
    pub socket: Option<u32>,
    /// The NUMA node; `None`: not known, it is taken to be near every one.
    pub numa: Option<u32>,
    /// The PCIe switch or root complex, by a name that is equal for all devices below it.
    pub pcie: Arc<str>,
    /// The device's own PCI address; empty: not known.
    pub bus: String,
}

/// A function of a device that a pod can be given as a device of its own. Its PCI address is its identity on the node.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SriovFunction {
    /// Its PCI address.
    pub bus: String,
    /// Its number; koordlet does not know it and writes -1.
    pub minor: i32,
}

/// Virtual functions that bear the same labels.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct VirtualFunctions {
    /// The labels.
    pub labels: DeviceLabels,
    /// The functions.
    pub functions: Vec<SriovFunction>,
}

/// One device of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeDevice {
    /// A GPU's uuid or a NIC's PCI address.
    pub id: String,
    /// Whether new pods may be given it.
    pub health: Health,
    /// Labels by which pods choose it.
    pub labels: DeviceLabels,
    /// All that it has.
    pub total: Amounts,
    /// Where it is; `None`: not known.
    pub topology: Option<DeviceLocation>,
    /// Its virtual functions.
    pub functions: Vec<VirtualFunctions>,
}

impl NodeDevice {
    /// Whether pods may be given any of it: it works, and it has something.
    pub fn serves(&self) -> bool {
        self.health == Health::Healthy && !self.total.is_zero()
    }

    /// Its PCIe switch, where that is known.
    pub fn pcie(&self) -> Option<&Arc<str>> {
        self.topology.as_ref().map(|topology| &topology.pcie)
    }

    /// The virtual functions of groups that the filter admits, by PCI address.
    pub fn functions_of<'a>(&'a self, filter: &'a LabelFilter) -> BTreeSet<&'a SriovFunction> {
        let admitted = self.functions.iter().filter(|group| filter.admits(&group.labels));
        admitted.flat_map(|group| &group.functions).collect()
    }
}

/// Cards that are given together, since their links are partitioned so.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Partition {
    /// The cards.
    pub minors: BTreeSet<Minor>,
    /// What its links carry, in bytes a second; `None`: not known.
    pub ring_bandwidth: Option<u64>,
    /// How good it is; higher is better.
    pub score: i64,
}

/// By the number of cards, the partitions of that size.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct PartitionTable(BTreeMap<u32, Vec<Partition>>);

impl PartitionTable {
    /// The partitions by their number of cards. Within a number the best come first, and those that are equally good in the given order.
    pub fn new(partitions: impl IntoIterator<Item = (u32, Vec<Partition>)>) -> Self {
        let mut table: BTreeMap<_, _> = partitions.into_iter().collect();
        for partitions in table.values_mut() {
            partitions.sort_by_key(|partition| std::cmp::Reverse(partition.score));
        }
        Self(table)
    }

    /// The partitions of so many cards in groups of one score, the best first; `None`: no cards are given in this number.
    pub fn of(&self, count: u32) -> Option<impl Iterator<Item = &[Partition]>> {
        let partitions = self.0.get(&count).filter(|partitions| !partitions.is_empty())?;
        Some(partitions.chunk_by(|one, next| one.score == next.score))
    }

    /// Every partition with the number of cards under which it stands.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Partition)> {
        self.0.iter().flat_map(|(&count, partitions)| partitions.iter().map(move |one| (count, one)))
    }
}

/// Whether whole cards are given by partitions alone.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PartitionPolicy {
    /// A partition if one is free, otherwise any cards.
    #[default]
    Prefer,
    /// Partitions only.
    Honor,
}

/// The device plugin of a vendor's GPUs that serves one pod at a time, under a lock of the node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LockingPlugin {
    /// Whose GPUs it serves. It is asked for pods that name its resources, and for no others.
    pub vendor: &'static str,
    /// The key of the lock.
    pub lock: Arc<str>,
    /// How many GPUs it gives a pod at most; `None`: any number.
    pub most: Option<u32>,
    /// What a pod must have at least of each GPU, in each of these dimensions.
    pub least: Amounts,
    /// What it has made of a pod that was bound just now.
    pub answer: Answer,
}

/// Which dimensions of a GPU are those of a card.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CardDimensions {
    /// Its memory, in bytes and in percent.
    pub memory: Proportion,
    /// Its compute, in percent.
    pub cores: NamedDimension,
}

/// By name, the shares in which the cards of one model are given, where they can't be divided freely.
pub type ShareTemplates = BTreeMap<String, Amounts>;

/// By vendor and model (`huawei-Ascend-310P`), the templates of shares.
pub type ModelTemplates = BTreeMap<String, Arc<ShareTemplates>>;

/// The names of the templates that are exactly so much of a card.
pub fn matching<'a>(templates: &'a ShareTemplates, each: &'a Amounts) -> impl Iterator<Item = &'a str> {
    templates.iter().filter(move |(_, amounts)| *amounts == each).map(|(name, _)| name.as_str())
}

/// The typed devices of one node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeDevices {
    /// The devices by type and minor.
    pub devices: BTreeMap<DeviceType, BTreeMap<Minor, NodeDevice>>,
    /// How the GPUs may be given together; `None`: the node has no such table.
    pub partitions: Option<PartitionTable>,
    /// Whether partitions bind.
    pub partition_policy: PartitionPolicy,
    /// The vendor of the GPUs; `None`: not known.
    pub vendor: Option<String>,
    /// Their model; `None`: not known.
    pub model: Option<String>,
    /// Which dimensions of its GPUs other plugins register as cards; `None`: none is known.
    pub card: Option<CardDimensions>,
    /// What keeps pods on one card of the node apart; `None`: nothing is known to.
    pub isolation: Option<String>,
    /// The device plugin of its GPUs, if it serves one pod at a time under a lock of the node.
    pub plugin: Option<Arc<LockingPlugin>>,
    /// The shares in which its GPUs are given to pods that need a template.
    pub templates: Arc<ShareTemplates>,
}

/// What the labels of a Node say of all its devices.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceTraits {
    /// The vendor of its GPUs; `None`: the Node does not say.
    pub vendor: Option<String>,
    /// Their model; `None`: the Node does not say.
    pub model: Option<String>,
    /// What keeps pods on one card apart.
    pub isolation: Option<String>,
    /// Whether partitions bind.
    pub partition_policy: PartitionPolicy,
    /// The partitions that cards of this vendor and model have.
    pub partitions: Option<PartitionTable>,
    /// The vendor's device plugin, if it serves one pod at a time under a lock of the node.
    pub plugin: Option<Arc<LockingPlugin>>,
}

impl NodeDevices {
    /// The same devices on a Node with these labels. Where both state a value, the Node's counts. Partitions and the policy on them come as a
    /// pair: those that are listed for these devices with their policy, or else those of the Node's model with the Node's policy.
    #[must_use]
    pub fn on(mut self, node: &DeviceTraits) -> Self {
        let DeviceTraits { vendor, model, isolation, partition_policy, partitions, plugin } = node;
        self.plugin = if vendor.is_some() { plugin.clone() } else { self.plugin };
        self.vendor = vendor.clone().or(self.vendor);
        self.model = model.clone().or(self.model);
        self.isolation.clone_from(isolation);
        if self.partitions.is_none() {
            self.partitions.clone_from(partitions);
            self.partition_policy = *partition_policy;
        }
        self
    }

    /// The same devices, with those of these templates that are their model's.
    #[must_use]
    pub fn dividing(mut self, templates: &ModelTemplates) -> Self {
        self.templates = self.template_key().and_then(|key| templates.get(&key).cloned()).unwrap_or_default();
        self
    }

    /// Vendor and model, by which templates of shares are looked up: `huawei-Ascend-310P`.
    pub fn template_key(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        Some(format!("{}-{model}", self.vendor.as_deref().unwrap_or_default()))
    }

    /// The devices of a type, by minor.
    pub fn of(&self, kind: DeviceType) -> impl Iterator<Item = (Minor, &NodeDevice)> {
        self.devices.get(&kind).into_iter().flatten().map(|(&minor, device)| (minor, device))
    }

    /// How many devices of a type there are.
    pub fn count(&self, kind: DeviceType) -> usize {
        self.devices.get(&kind).map_or(0, BTreeMap::len)
    }

    /// One device.
    pub fn device(&self, kind: DeviceType, minor: Minor) -> Option<&NodeDevice> {
        self.devices.get(&kind)?.get(&minor)
    }
}
