//! Containers of one pod with devices of their own: each is given what it asks for whenever there is any way to do so.

use berth::{
    device::{
        ContainerDeviceRequest, DeviceAllocation, DeviceAllocations, DeviceCount, DeviceType, DevicesUsed,
        JointRequest, JointScope, Minor, NodeDevices, PartitionPolicy, TopologyScope, TypedRequest,
    },
    scheduling::model::devices::{Strategy as Order, by_container},
};
use proptest::prelude::*;

use super::joint_devices::{
    Rules, amounts, exclusive, held, in_use, is_sound, made, minors, node, orders, partitions, request,
    settings, typed,
};

/// GPUs alone, or GPUs and NICs on the same switches.
fn asked() -> impl Strategy<Value = JointRequest> {
    let part = prop_oneof![5 => Just(None), 1 => Just(Some(TopologyScope::NumaNode)), 1 => Just(Some(TopologyScope::Pcie))];
    let percent = prop_oneof![Just(100_u64), Just(60), Just(50), Just(40), Just(30)];
    let gpus = (1..=2_u32, percent, part, exclusive()).prop_map(|(count, percent, scope, exclusive)| {
        let gpus = TypedRequest { scope, exclusive, ..typed(count, percent) };
        JointRequest { types: [(DeviceType::Gpu, gpus)].into(), ..JointRequest::default() }
    });
    prop_oneof![2 => gpus, 1 => request(JointScope::SamePcie)]
}

fn pod(requests: &[JointRequest]) -> JointRequest {
    let container = |(at, request): (usize, &JointRequest)| ContainerDeviceRequest {
        container: at.to_string(),
        request: request.clone(),
    };
    JointRequest {
        containers: requests.iter().enumerate().map(container).collect(),
        ..JointRequest::default()
    }
}

/// Whether these devices are what the request asks for.
fn allow(rules: &Rules<'_>, gpus: &[Minor], nics: &[Minor]) -> bool {
    if rules.request.joint.is_some() {
        return rules.allow(gpus, nics);
    }
    let DeviceCount::Exactly(count) = rules.request.types[&DeviceType::Gpu].count else { return false };
    nics.is_empty()
        && gpus.len() == count as usize
        && rules.are_gpus(gpus)
        && gpus.iter().all(|&minor| rules.may_be_given(DeviceType::Gpu, minor))
}

/// Every choice of devices that the rules allow.
fn choices(rules: &Rules<'_>) -> Vec<(Vec<Minor>, Vec<Minor>)> {
    let nics = if rules.request.joint.is_some() { rules.sets(DeviceType::Rdma) } else { vec![Vec::new()] };
    let gpus = rules.sets(DeviceType::Gpu).into_iter().filter(|gpus| rules.are_gpus(gpus));
    let pairs = gpus.flat_map(|gpus| nics.iter().map(move |nics| (gpus.clone(), nics.clone())));
    pairs.filter(|(gpus, nics)| allow(rules, gpus, nics)).collect()
}

/// What a container has of these devices; of functions the first that is free, since all of a device are alike.
fn given(rules: &Rules<'_>, of: [(DeviceType, &[Minor]); 2]) -> DeviceAllocations {
    let one = |kind: DeviceType, minor: Minor| {
        let typed = &rules.request.types[&kind];
        let functions = rules.node.device(kind, minor).unwrap().functions[0].functions.iter();
        let taken = rules.used.get(kind, minor);
        let mut free = functions.filter(|one| taken.is_none_or(|taken| !taken.functions.contains(&one.bus)));
        DeviceAllocation {
            minor,
            amounts: typed.each.clone(),
            functions: typed.functions.iter().filter_map(|_| free.next()).cloned().collect(),
            exclusive: typed.exclusive,
            ..DeviceAllocation::default()
        }
    };
    let of = of.into_iter().filter(|(_, minors)| !minors.is_empty());
    of.map(|(kind, minors)| (kind, minors.iter().map(|&minor| one(kind, minor)).collect())).collect()
}

/// Whether every container can be given what it asks for, tried out.
fn can_be_met(node: &NodeDevices, used: &DevicesUsed, requests: &[JointRequest]) -> bool {
    let Some((request, others)) = requests.split_first() else { return true };
    let rules = Rules { node, used, request };
    choices(&rules).iter().any(|(gpus, nics)| {
        let devices = given(&rules, [(DeviceType::Gpu, gpus), (DeviceType::Rdma, nics)]);
        can_be_met(node, &used.clone().and(DevicesUsed::of([&devices])), others)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn containers_have_devices_of_their_own_whenever_there_is_a_way(
        gpus in made(4), nics in made(3), gpu_use in in_use(), nic_use in in_use(), partitions in partitions(),
        requests in prop::collection::vec(asked(), 1..=4), order in orders(),
    ) {
        let node = node(&gpus, &nics, partitions);
        let before = held(&node, &gpu_use, &nic_use);
        let used = DevicesUsed::of([&before]);
        match by_container(&node, &used, &pod(&requests), &settings(order)) {
            Ok(containers) => {
                prop_assert_eq!(containers.len(), requests.len());
                let mut all = vec![before.clone()];
                all.extend(containers.iter().map(|one| one.devices.clone()));
                is_sound(&node, &all).map_err(TestCaseError::fail)?;
                for (at, request) in requests.iter().enumerate() {
                    let others = all.iter().enumerate().filter(|(other, _)| *other != at + 1);
                    let used = DevicesUsed::of(others.map(|(_, devices)| devices));
                    let own = &containers[at].devices;
                    let (gpus, nics) = (minors(own, DeviceType::Gpu), minors(own, DeviceType::Rdma));
                    let rules = Rules { node: &node, used: &used, request };
                    prop_assert!(allow(&rules, &gpus, &nics), "container {at}: GPUs {gpus:?} with NICs {nics:?} break a rule");
                }
            }
            Err(shortfalls) => prop_assert!(!can_be_met(&node, &used, &requests), "{shortfalls:?}"),
        }
    }
}

#[test]
fn a_first_choice_that_leaves_too_little_is_taken_back() {
    let node = node(&[(0, 0, true), (0, 0, true)], &[(0, 0, true)], (None, PartitionPolicy::Prefer));
    let share = |percent| JointRequest {
        types: [(DeviceType::Gpu, typed(1, percent))].into(),
        ..JointRequest::default()
    };
    let in_use = DeviceAllocation { minor: 0, amounts: amounts(40), ..DeviceAllocation::default() };
    let used = DevicesUsed::of([&DeviceAllocations::from([(DeviceType::Gpu, vec![in_use])])]);
    // Alone, the first container is given of the card with the most left, which the second one needs.
    let emptiest = settings(Some(Order::LeastAllocated));
    let alone = by_container(&node, &used, &pod(&[share(60)]), &emptiest).unwrap();
    assert_eq!(minors(&alone[0].devices, DeviceType::Gpu), [1]);
    let both = by_container(&node, &used, &pod(&[share(60), share(90)]), &emptiest).unwrap();
    let cards: Vec<_> = both.iter().map(|one| minors(&one.devices, DeviceType::Gpu)).collect();
    assert_eq!(cards, [[0], [1]]);
}
