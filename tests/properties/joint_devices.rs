//! Whatever a node has: no device and no virtual function is given twice, and devices that must be on the same switches are found whenever
//! there are any.

use std::{collections::BTreeSet, sync::Arc};

use berth::{
    device::{
        Amounts, DeviceAllocation, DeviceAllocations, DeviceCount, DeviceLocation, DevicePortion, DeviceType,
        DevicesUsed, Exclusive, Health, Joint, JointRequest, JointScope, LabelFilter, Minor, NamedDimension,
        NodeDevice, NodeDevices, Partition, PartitionPolicy, PartitionTable, SriovFunction, TopologyScope,
        TypedRequest, Unit, VirtualFunctions,
    },
    scheduling::model::devices::{AllocationSettings, Scoring, Strategy as Order, allocate},
};
use proptest::prelude::*;

use super::fixtures;

const SWITCHES: u32 = 4;

/// A device: its switch, how many virtual functions it has, whether it works.
pub(crate) type Made = (u32, usize, bool);
/// What is used of a device: how much, and by which policy.
pub(crate) type InUse = (u64, Option<Exclusive>);

pub(crate) fn share() -> NamedDimension {
    NamedDimension::new("share", Unit::Percent)
}

pub(crate) fn amounts(percent: u64) -> Amounts {
    Amounts::from_iter([(share(), percent)])
}

fn device(kind: DeviceType, minor: Minor, (switch, functions, works): Made) -> NodeDevice {
    let function = |number: usize| SriovFunction { bus: format!("{kind}{minor}.{number}"), minor: -1 };
    NodeDevice {
        id: format!("{kind}-{minor}"),
        health: if works { Health::Healthy } else { Health::Unhealthy },
        labels: [].into(),
        total: amounts(100),
        topology: Some(DeviceLocation {
            socket: None,
            numa: Some(switch / 2),
            pcie: Arc::from(switch.to_string()),
            bus: String::new(),
        }),
        functions: vec![VirtualFunctions {
            labels: [].into(),
            functions: (0..functions).map(function).collect(),
        }],
    }
}

pub(crate) fn made(most: usize) -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec((0..SWITCHES, 0..3_usize, prop::bool::weighted(0.9)), 1..=most)
}

pub(crate) fn exclusive() -> impl Strategy<Value = Option<Exclusive>> {
    prop_oneof![6 => Just(None), 1 => Just(Some(Exclusive::Device)), 1 => Just(Some(Exclusive::Pcie))]
}

pub(crate) fn in_use() -> impl Strategy<Value = Vec<InUse>> {
    let percent = prop_oneof![5 => Just(0_u64), 1 => Just(40), 1 => Just(60), 2 => Just(100)];
    prop::collection::vec((percent, exclusive()), 6)
}

/// GPUs in pairs, or no table; whether it binds.
pub(crate) fn partitions() -> impl Strategy<Value = (Option<PartitionTable>, PartitionPolicy)> {
    let of = |minors: [Minor; 2], score| Partition { minors: minors.into(), ring_bandwidth: None, score };
    let table = PartitionTable::new([(2, vec![of([0, 1], 1), of([2, 3], 2), of([1, 4], 1)])]);
    prop_oneof![
        3 => Just((None, PartitionPolicy::Prefer)),
        1 => Just((Some(table.clone()), PartitionPolicy::Prefer)),
        1 => Just((Some(table), PartitionPolicy::Honor)),
    ]
}

pub(crate) fn node(
    gpus: &[Made],
    nics: &[Made],
    of: (Option<PartitionTable>, PartitionPolicy),
) -> NodeDevices {
    let numbered = |kind, made: &[Made]| {
        let minors = 0..u32::try_from(made.len()).unwrap();
        minors.zip(made).map(|(minor, made)| (minor, device(kind, minor, *made))).collect()
    };
    let devices = [(DeviceType::Gpu, gpus), (DeviceType::Rdma, nics)];
    let devices = devices.map(|(kind, made)| (kind, numbered(kind, made))).into();
    NodeDevices { devices, partitions: of.0, partition_policy: of.1, ..NodeDevices::default() }
}

/// What pods hold that are there already; the first function of a NIC goes with it.
pub(crate) fn held(node: &NodeDevices, gpus: &[InUse], nics: &[InUse]) -> DeviceAllocations {
    let of = |kind, used: &[InUse]| {
        let devices = node.of(kind).zip(used).filter(|(_, (percent, _))| *percent > 0);
        let held = devices.map(|((minor, device), (percent, exclusive))| DeviceAllocation {
            minor,
            amounts: amounts(*percent),
            functions: device.functions[0].functions.iter().take(1).cloned().collect(),
            exclusive: *exclusive,
            ..DeviceAllocation::default()
        });
        (kind, held.collect())
    };
    [of(DeviceType::Gpu, gpus), of(DeviceType::Rdma, nics)].into()
}

pub(crate) fn typed(count: u32, percent: u64) -> TypedRequest {
    let portion = if percent == 100 { DevicePortion::Whole } else { DevicePortion::Share };
    fixtures::typed_request(amounts(percent), DeviceCount::Exactly(count), portion)
}

pub(crate) fn request(scope: JointScope) -> impl Strategy<Value = JointRequest> {
    let gpu = prop_oneof![3 => (1..=4_u32, Just(100)), 1 => (1..=2_u32, Just(50))];
    let part = prop_oneof![
        4 => Just(None),
        1 => Just(Some(TopologyScope::NumaNode)),
        1 => Just(Some(TopologyScope::Pcie)),
        1 => Just(Some(TopologyScope::Device)),
    ];
    let nic = (1..=3_u32, prop_oneof![Just(1), Just(50), Just(100)], any::<bool>());
    let made =
        move |(gpu, part, nic, of_gpu, of_nic, leads): ((u32, u64), _, (u32, u64, bool), _, _, bool)| {
            let gpus = TypedRequest { scope: part, exclusive: of_gpu, ..typed(gpu.0, gpu.1) };
            let functions = nic.2.then(LabelFilter::default);
            let nics = TypedRequest { functions, exclusive: of_nic, ..typed(nic.0, nic.1) };
            let mut types = vec![DeviceType::Gpu, DeviceType::Rdma];
            if !leads {
                types.reverse();
            }
            JointRequest {
                types: [(DeviceType::Gpu, gpus), (DeviceType::Rdma, nics)].into(),
                joint: Some(Joint { types, scope }),
                ..JointRequest::default()
            }
        };
    (gpu, part, nic, exclusive(), exclusive(), prop::bool::weighted(0.8)).prop_map(made)
}

/// The rules, written down once more: which devices of a type may be given, and which of them together.
pub(crate) struct Rules<'a> {
    pub(crate) node: &'a NodeDevices,
    pub(crate) used: &'a DevicesUsed,
    pub(crate) request: &'a JointRequest,
}

impl Rules<'_> {
    fn switch(&self, kind: DeviceType, minor: Minor) -> String {
        self.node.device(kind, minor).unwrap().pcie().unwrap().to_string()
    }

    fn switches(&self, kind: DeviceType, minors: &[Minor]) -> BTreeSet<String> {
        minors.iter().map(|&minor| self.switch(kind, minor)).collect()
    }

    pub(crate) fn may_be_given(&self, kind: DeviceType, minor: Minor) -> bool {
        let of = &self.request.types[&kind];
        let device = self.node.device(kind, minor).unwrap();
        let in_use = |minor| self.used.get(kind, minor).is_some();
        let taken = self.used.get(kind, minor);
        let share_of = |amounts: &Amounts| amounts.get(&share()).unwrap();
        let left = 100 - taken.map_or(0, |taken| share_of(&taken.amounts));
        let functions = device.functions[0].functions.iter();
        let mut free = functions.filter(|one| taken.is_none_or(|taken| !taken.functions.contains(&one.bus)));
        let has_function = of.functions.is_none() || free.next().is_some();
        let beside = self.node.of(kind).map(|(minor, _)| minor);
        let mut beside = beside.filter(|&other| self.switch(kind, other) == self.switch(kind, minor));
        let apart = beside.all(|other| {
            let held = self.used.get(kind, other).and_then(|used| used.exclusive);
            held != Some(Exclusive::Pcie) && !(of.exclusive == Some(Exclusive::Pcie) && in_use(other))
        });
        let held = taken.and_then(|taken| taken.exclusive);
        let alone = !in_use(minor) || (of.exclusive.is_none() && held.is_none());
        device.health == Health::Healthy && left >= share_of(&of.each) && has_function && apart && alone
    }

    /// Whether the GPUs may be given together.
    pub(crate) fn are_gpus(&self, minors: &[Minor]) -> bool {
        let of = &self.request.types[&DeviceType::Gpu];
        let switches = self.switches(DeviceType::Gpu, minors);
        let numa: BTreeSet<_> = switches.iter().map(|switch| switch.parse::<u32>().unwrap() / 2).collect();
        let several_shares = of.portion == DevicePortion::Share && minors.len() > 1;
        let in_scope = match of.scope {
            None | Some(TopologyScope::Node) => true,
            Some(_) if several_shares => false,
            Some(TopologyScope::Device) => minors.len() == 1,
            Some(TopologyScope::Pcie) => switches.len() == 1,
            Some(TopologyScope::NumaNode) => numa.len() == 1,
        };
        let binding =
            of.portion == DevicePortion::Whole && self.node.partition_policy == PartitionPolicy::Honor;
        let set: BTreeSet<_> = minors.iter().copied().collect();
        let mut partitions = self.node.partitions.iter().flat_map(PartitionTable::iter);
        in_scope && (!binding || partitions.any(|(_, partition)| partition.minors == set))
    }

    /// Whether these devices obey every rule.
    pub(crate) fn allow(&self, gpus: &[Minor], nics: &[Minor]) -> bool {
        let count = |kind| match self.request.types[&kind].count {
            DeviceCount::Exactly(count) => count as usize,
            DeviceCount::All => unreachable!("no request asks for every device"),
        };
        let leads = self.request.joint.as_ref().unwrap().types[0];
        let switches = self.switches(DeviceType::Gpu, gpus);
        let wanted = if leads == DeviceType::Rdma { 0 } else { switches.len() };
        gpus.len() == count(DeviceType::Gpu)
            && nics.len() == count(DeviceType::Rdma).max(wanted)
            && switches == self.switches(DeviceType::Rdma, nics)
            && self.are_gpus(gpus)
            && gpus.iter().all(|&minor| self.may_be_given(DeviceType::Gpu, minor))
            && nics.iter().all(|&minor| self.may_be_given(DeviceType::Rdma, minor))
    }

    pub(crate) fn sets(&self, kind: DeviceType) -> Vec<Vec<Minor>> {
        let minors = self.node.of(kind).map(|(minor, _)| minor);
        let minors: Vec<_> = minors.filter(|&minor| self.may_be_given(kind, minor)).collect();
        let of = |bits: u32| {
            let chosen = minors.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
            chosen.map(|(_, &minor)| minor).collect::<Vec<_>>()
        };
        (1..1_u32 << minors.len()).map(of).collect()
    }

    /// Whether any devices at all obey every rule.
    fn can_be_met(&self) -> bool {
        let nics = self.sets(DeviceType::Rdma);
        let gpus = self.sets(DeviceType::Gpu);
        gpus.iter().any(|gpus| self.are_gpus(gpus) && nics.iter().any(|nics| self.allow(gpus, nics)))
    }
}

pub(crate) fn minors(given: &DeviceAllocations, kind: DeviceType) -> Vec<Minor> {
    given.get(&kind).into_iter().flatten().map(|device| device.minor).collect()
}

pub(crate) fn settings(order: Option<Order>) -> AllocationSettings {
    let scoring = order.map(|strategy| Scoring { strategy, weights: [(share(), 1)].into() });
    AllocationSettings { scoring, numa: None }
}

pub(crate) fn orders() -> impl Strategy<Value = Option<Order>> {
    prop_oneof![Just(None), Just(Some(Order::LeastAllocated)), Just(Some(Order::MostAllocated))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn devices_on_the_same_switches_are_found_whenever_there_are_any(
        gpus in made(5), nics in made(5), gpu_use in in_use(), nic_use in in_use(),
        partitions in partitions(), request in request(JointScope::SamePcie), order in orders(),
    ) {
        let node = node(&gpus, &nics, partitions);
        let used = DevicesUsed::of([&held(&node, &gpu_use, &nic_use)]);
        let rules = Rules { node: &node, used: &used, request: &request };
        match allocate(&node, &used, &request, &settings(order)) {
            Ok(given) => {
                let (gpus, nics) = (minors(&given, DeviceType::Gpu), minors(&given, DeviceType::Rdma));
                prop_assert!(rules.allow(&gpus, &nics), "GPUs {gpus:?} with NICs {nics:?} break a rule");
            }
            Err(shortfalls) => prop_assert!(!rules.can_be_met(), "{shortfalls:?}"),
        }
    }
}

/// What there is and what is given never differ by more than is left, and a function is given once.
pub(crate) fn is_sound(node: &NodeDevices, held: &[DeviceAllocations]) -> Result<(), String> {
    let mut functions = BTreeSet::new();
    let given = held.iter().flatten().flat_map(|(_, devices)| devices);
    for function in given.flat_map(|device| &device.functions) {
        if !functions.insert(function) {
            return Err(format!("{} is given twice", function.bus));
        }
    }
    for (kind, minor, used) in DevicesUsed::of(held).iter() {
        let total = &node.device(kind, minor).ok_or("a device that is not there is given")?.total;
        if used.amounts.get(&share()) > total.get(&share()) {
            return Err(format!("{kind} {minor} is given more than once"));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_device_and_no_virtual_function_is_given_twice(
        gpus in made(6), nics in made(6), partitions in partitions(), order in orders(),
        steps in prop::collection::vec(
            (prop_oneof![request(JointScope::SamePcie), request(JointScope::Preferred)], any::<Option<prop::sample::Index>>()),
            1..30,
        ),
    ) {
        let node = node(&gpus, &nics, partitions);
        let mut held: Vec<DeviceAllocations> = Vec::new();
        for (request, leaver) in steps {
            if let Some(leaver) = leaver.filter(|_| !held.is_empty()) {
                held.swap_remove(leaver.index(held.len()));
            }
            held.extend(allocate(&node, &DevicesUsed::of(&held), &request, &settings(order)));
            is_sound(&node, &held).map_err(TestCaseError::fail)?;
        }
    }
}
