//! What a node gives of its typed devices, and why it gives none.

use std::sync::Arc;

use super::*;
use crate::device::{
    Amounts, DeviceCount, DeviceLocation, Exclusive, Health, Joint, JointScope, NamedDimension, NodeDevice,
    Partition, PartitionChoice, PartitionPolicy, PartitionSpec, PartitionTable, TopologyScope, TypedRequest,
    Unit,
};
use crate::scheduling::fixtures;

fn share() -> NamedDimension {
    NamedDimension::new("share", Unit::Percent)
}

fn amounts(percent: u64) -> Amounts {
    Amounts::from_iter([(share(), percent)])
}

fn device(kind: DeviceType, minor: Minor, switch: u32) -> NodeDevice {
    let pcie = Arc::from(switch.to_string());
    NodeDevice {
        id: format!("{kind}-{minor}"),
        health: Health::Healthy,
        labels: BTreeMap::new(),
        total: amounts(100),
        topology: Some(DeviceLocation { socket: None, numa: Some(switch / 2), pcie, bus: String::new() }),
        functions: Vec::new(),
    }
}

/// Two GPUs and a NIC below each of four switches, two of them to a NUMA node.
fn machine() -> NodeDevices {
    let gpus = (0..8).map(|minor| (minor, device(DeviceType::Gpu, minor, minor / 2)));
    let nics = (0..4).map(|minor| (minor, device(DeviceType::Rdma, minor, minor)));
    let devices = [(DeviceType::Gpu, gpus.collect()), (DeviceType::Rdma, nics.collect())].into();
    NodeDevices { devices, ..NodeDevices::default() }
}

fn typed(count: u32, percent: u64) -> TypedRequest {
    let portion = if percent == 100 { DevicePortion::Whole } else { DevicePortion::Share };
    fixtures::typed_request(amounts(percent), DeviceCount::Exactly(count), portion)
}

fn of(types: impl IntoIterator<Item = (DeviceType, TypedRequest)>) -> JointRequest {
    JointRequest { types: types.into_iter().collect(), ..JointRequest::default() }
}

fn held(kind: DeviceType, minors: &[Minor], percent: u64) -> DeviceAllocations {
    let one = |&minor| DeviceAllocation { minor, amounts: amounts(percent), ..DeviceAllocation::default() };
    [(kind, minors.iter().map(one).collect())].into()
}

fn given(
    node: &NodeDevices,
    pods: &[DeviceAllocations],
    request: &JointRequest,
) -> Result<Vec<(DeviceType, Vec<Minor>)>, Vec<Shortfall>> {
    scored(node, pods, request, None)
}

fn scored(
    node: &NodeDevices,
    pods: &[DeviceAllocations],
    request: &JointRequest,
    strategy: Option<Strategy>,
) -> Result<Vec<(DeviceType, Vec<Minor>)>, Vec<Shortfall>> {
    let scoring = strategy.map(|strategy| Scoring { strategy, weights: [(share(), 1)].into() });
    let given = allocate(node, &DevicesUsed::of(pods), request, &AllocationSettings { scoring, numa: None })?;
    let minors = |devices: Vec<DeviceAllocation>| devices.into_iter().map(|device| device.minor).collect();
    Ok(given.into_iter().map(|(kind, devices)| (kind, minors(devices))).collect())
}

#[test]
fn gpus_whose_nics_are_taken_give_way_to_others_where_the_switches_bind() {
    let pods = [held(DeviceType::Gpu, &[0], 100), held(DeviceType::Rdma, &[0], 100)];
    let mut request = of([(DeviceType::Gpu, typed(3, 100)), (DeviceType::Rdma, typed(1, 100))]);
    let types = vec![DeviceType::Gpu, DeviceType::Rdma];
    request.joint = Some(Joint { types: types.clone(), scope: JointScope::SamePcie });
    let found = given(&machine(), &pods, &request).unwrap();
    assert_eq!(found, [(DeviceType::Gpu, vec![4, 5, 6]), (DeviceType::Rdma, vec![2, 3])]);
    request.joint = Some(Joint { types, scope: JointScope::Preferred });
    let near = given(&machine(), &pods, &request).unwrap();
    assert_eq!(near, [(DeviceType::Gpu, vec![1, 2, 3]), (DeviceType::Rdma, vec![1, 2])]);
}

#[test]
fn a_lack_of_devices_on_the_same_switches_is_a_reason_of_its_own() {
    let pods = [held(DeviceType::Rdma, &[0, 1], 100), held(DeviceType::Gpu, &[4, 5, 6, 7], 100)];
    let mut request = of([(DeviceType::Gpu, typed(1, 100)), (DeviceType::Rdma, typed(1, 100))]);
    let types = vec![DeviceType::Gpu, DeviceType::Rdma];
    request.joint = Some(Joint { types, scope: JointScope::SamePcie });
    assert_eq!(given(&machine(), &pods, &request), Err(vec![Shortfall::JointRule]));
}

#[test]
fn pods_share_what_an_exclusive_pod_has_in_neither_direction() {
    let exclusive =
        |policy| of([(DeviceType::Rdma, TypedRequest { exclusive: Some(policy), ..typed(1, 10) })]);
    let nic = |minor| Ok(vec![(DeviceType::Rdma, vec![minor])]);
    let pods = [held(DeviceType::Rdma, &[0], 10)];
    assert_eq!(given(&machine(), &pods, &of([(DeviceType::Rdma, typed(1, 10))])), nic(0));
    for policy in [Exclusive::Device, Exclusive::Pcie] {
        assert_eq!(given(&machine(), &pods, &exclusive(policy)), nic(1));
        let first =
            allocate(&machine(), &DevicesUsed::default(), &exclusive(policy), &AllocationSettings::default());
        assert_eq!(given(&machine(), &[first.unwrap()], &of([(DeviceType::Rdma, typed(1, 10))])), nic(1));
    }
    let below = held(DeviceType::Gpu, &[0], 50);
    let gpu = |policy| of([(DeviceType::Gpu, TypedRequest { exclusive: Some(policy), ..typed(1, 50) })]);
    let on = |minor| Ok(vec![(DeviceType::Gpu, vec![minor])]);
    assert_eq!(given(&machine(), std::slice::from_ref(&below), &gpu(Exclusive::Device)), on(1));
    assert_eq!(given(&machine(), &[below], &gpu(Exclusive::Pcie)), on(2));
}

#[test]
fn one_card_is_a_part_of_the_machine_and_two_are_not() {
    let of_device = |count| {
        of([(DeviceType::Gpu, TypedRequest { scope: Some(TopologyScope::Device), ..typed(count, 100) })])
    };
    assert_eq!(given(&machine(), &[], &of_device(1)), Ok(vec![(DeviceType::Gpu, vec![0])]));
    assert_eq!(given(&machine(), &[], &of_device(2)), Err(vec![Shortfall::Scope]));
}

#[test]
fn a_partition_that_crosses_the_required_part_of_the_machine_is_not_given() {
    let across = Partition { minors: [1, 4].into(), ring_bandwidth: None, score: 1 };
    let node = NodeDevices { partitions: Some(PartitionTable::new([(2, vec![across])])), ..machine() };
    let pair = |scope| of([(DeviceType::Gpu, TypedRequest { scope, ..typed(2, 100) })]);
    assert_eq!(given(&node, &[], &pair(None)), Ok(vec![(DeviceType::Gpu, vec![1, 4])]));
    let near = given(&node, &[], &pair(Some(TopologyScope::NumaNode)));
    assert_eq!(near, Ok(vec![(DeviceType::Gpu, vec![0, 1])]));
}

#[test]
fn the_partitions_of_the_best_score_come_first_and_a_restricted_pod_has_no_others() {
    let partition =
        |minors: [Minor; 2], score| Partition { minors: minors.into(), ring_bandwidth: None, score };
    let table = PartitionTable::new([(2, vec![partition([0, 1], 1), partition([4, 5], 9)])]);
    let node = NodeDevices { partitions: Some(table), partition_policy: PartitionPolicy::Honor, ..machine() };
    let spec = |choice| Some(PartitionSpec { choice, ring_bandwidth: None });
    let pair = |choice| of([(DeviceType::Gpu, TypedRequest { partition: spec(choice), ..typed(2, 100) })]);
    let best = Ok(vec![(DeviceType::Gpu, vec![4, 5])]);
    assert_eq!(given(&node, &[], &pair(PartitionChoice::BestEffort)), best);
    assert_eq!(given(&node, &[], &pair(PartitionChoice::Restricted)), best);
    let pods = [held(DeviceType::Gpu, &[4], 100)];
    let other = Ok(vec![(DeviceType::Gpu, vec![0, 1])]);
    assert_eq!(given(&node, &pods, &pair(PartitionChoice::BestEffort)), other);
    assert_eq!(given(&node, &pods, &pair(PartitionChoice::Restricted)), Err(vec![Shortfall::Partitions]));
}

#[test]
fn shares_are_packed_onto_the_fullest_card_or_spread_as_the_strategy_says() {
    let pods = [held(DeviceType::Gpu, &[0], 20), held(DeviceType::Gpu, &[1], 60)];
    let share = of([(DeviceType::Gpu, typed(1, 20))]);
    let on = |minor| Ok(vec![(DeviceType::Gpu, vec![minor])]);
    assert_eq!(scored(&machine(), &pods, &share, Some(Strategy::MostAllocated)), on(1));
    assert_eq!(scored(&machine(), &pods, &share, Some(Strategy::LeastAllocated)), on(0));
}

#[test]
fn every_device_that_the_selector_admits_is_given_where_all_are_asked_for() {
    let mut node = machine();
    let nics = node.devices.get_mut(&DeviceType::Rdma).unwrap();
    nics.get_mut(&2).unwrap().labels.insert("rail".to_owned(), "b".to_owned());
    let all = |selector| {
        of([(DeviceType::Rdma, TypedRequest { count: DeviceCount::All, selector, ..typed(0, 1) })])
    };
    let rail = |rule: fn(String) -> crate::device::LabelRule| {
        all(Some(crate::device::LabelFilter(vec![rule("rail".to_owned())])))
    };
    assert_eq!(given(&node, &[], &all(None)), Ok(vec![(DeviceType::Rdma, vec![0, 1, 2, 3])]));
    assert_eq!(
        given(&node, &[], &rail(crate::device::LabelRule::Exists)),
        Ok(vec![(DeviceType::Rdma, vec![2])])
    );
    assert_eq!(
        given(&node, &[], &rail(crate::device::LabelRule::Absent)),
        Ok(vec![(DeviceType::Rdma, vec![0, 1, 3])])
    );
    let other = crate::device::LabelRule::In("rail".to_owned(), vec!["c".to_owned()]);
    let other = all(Some(crate::device::LabelFilter(vec![other])));
    assert_eq!(given(&node, &[], &other), Err(vec![Shortfall::NoDevices(DeviceType::Rdma)]));
}

#[test]
fn a_node_that_isolates_otherwise_serves_no_shares() {
    let isolated = |percent| JointRequest {
        isolation: Some("HAMi-core".to_owned()),
        ..of([(DeviceType::Gpu, typed(1, percent))])
    };
    assert_eq!(given(&machine(), &[], &isolated(50)), Err(vec![Shortfall::Isolation]));
    assert!(given(&machine(), &[], &isolated(100)).is_ok());
    let node = NodeDevices { isolation: Some("HAMi-core".to_owned()), ..machine() };
    assert!(given(&node, &[], &isolated(50)).is_ok());
}
