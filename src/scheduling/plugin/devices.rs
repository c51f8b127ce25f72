//! Whether a node has cards for a pod: its device plugin answers, what it registered can be read, and the cards have room.

pub mod reason;

use std::{iter, sync::Arc};

use smallvec::smallvec;

use super::{
    allocate::{self, allocate_from},
    contract::{Filter, Placement, Reasons, SchedulingPlugin, Score},
    scene::Scene,
    score::cards,
};
use crate::{
    device::{
        Allocation, Answer, Assignment, DeviceType, IdFilter, JointRequest, NodeDevices, Profile,
        ProfileRequest, Quota, Usage, together,
    },
    scheduling::{
        model::{
            devices::{self, Shortfall},
            pod::Ask,
        },
        world::{
            node_parts::NodePart,
            node_state::{Agent, NodeState},
            nodes::Nodes,
        },
    },
};

pub use reason::{CardReason, DeviceReason};

/// Rejects a node that has no cards or devices for the pod, or whose device plugin owes an answer for too long, and prefers nodes by how well the
/// cards suit that the pod would get there.
#[derive(Debug)]
pub struct Devices;

impl SchedulingPlugin for Devices {
    const NAME: &'static str = "Devices";
    const WEIGHT: Option<u32> = Some(1);

    type Reason = DeviceReason;

    fn reads(ask: &Ask) -> Option<&'static [NodePart]> {
        let by_uuid = ask.devices.iter().any(|device| device.request.selection.ids != IdFilter::default());
        if by_uuid {
            return None;
        }
        // Whether a claim serves the shares depends on what the node has of a resource.
        let by_class = ask.devices.iter().any(|device| device.by_class.is_some());
        Some(if by_class { &[NodePart::Amounts, NodePart::Rest] } else { &[NodePart::Rest] })
    }

    /// Which shares a claim serves on the node; nothing else of its cards depends on amounts.
    fn of_amounts(ask: &Ask, node: &NodeState) -> Option<u64> {
        let by_claim = ask.devices.iter().map(|device| node.serves_by_claim(device));
        (ask.devices.len() < 64).then(|| by_claim.fold(0, |bits, one| bits << 1 | u64::from(one)))
    }
}

impl Filter for Devices {
    /// Fails on a node whose device plugin owes an answer for too long: it would mix up two pods. Whether the node has cards is found out
    /// where they are chosen, by `allocations`.
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<DeviceReason>> {
        match scene.node.agents.agent {
            Agent::Silent => Err(smallvec![DeviceReason::SilentAgent]),
            Agent::Answering => Ok(()),
        }
    }
}

impl Score for Devices {
    fn score(placement: &Placement<'_>) -> Option<f64> {
        // Where the pod leaves least of no use is not said by how full cards are.
        let counts = !placement.ask.wastes_least();
        counts.then(|| cards::of_node(&placement.ask.devices, placement.node, placement.allocations))
    }

    fn is_even(ask: &Ask, _nodes: &Nodes) -> bool {
        ask.wastes_least()
    }
}

/// What the node would give for each request that its device plugins serve within the namespace's quotas, or why it can't serve the first that it can't.
pub(in crate::scheduling) fn allocations(
    scene: &Scene<'_>,
    quotas: &[Quota],
) -> Result<Vec<Allocation>, Reasons<DeviceReason>> {
    let quotas = quotas.iter().copied().chain(iter::repeat(Quota::default()));
    let requests = scene.ask.devices.iter().zip(quotas);
    let requests = requests.filter(|(device, _)| !scene.node.serves_by_claim(device));
    let allocation = |(device, quota): (&ProfileRequest, Quota)| {
        let shares = shares(scene, device, quota)?;
        let answer = answer(scene.node, device);
        Ok(Allocation::new(device.profile.name.clone(), Arc::new(shares), answer))
    };
    requests.map(allocation).collect()
}

/// Whether the node has too few cards for the pod where so much is in use of them, as far as that is found out sooner than which cards it would give.
pub(in crate::scheduling) fn lacks_cards(ask: &Ask, node: &NodeState, usage: &Usage) -> bool {
    let shares = ask.devices.iter().filter(|device| device.joint.is_none() && !node.serves_by_claim(device));
    shares.into_iter().any(|device| {
        let offer = node.info.devices.offer(&device.profile.name);
        let inventory = offer.and_then(|offer| offer.inventory.as_deref());
        inventory.is_some_and(|inventory| {
            allocate::lacks_cards(&device.request, inventory, usage, &device.profile)
        })
    })
}

/// What the node's agent will have made of the pod once it is bound. Koordinator's own answers nothing, and reads what is written.
fn answer(node: &NodeState, device: &ProfileRequest) -> Answer {
    let Some(joint) = &device.joint else { return Answer::Awaited };
    let offered = node.info.devices.offer(&device.profile.name).and_then(|offer| offer.inventory.as_deref());
    let plugin = offered.and_then(|inventory| inventory.devices().plugin.as_ref());
    let plugin = plugin.filter(|_| joint.asks(DeviceType::Gpu));
    plugin.map_or(Answer::Succeeded, |plugin| plugin.answer)
}

/// The shares that the node would give each container.
fn shares(
    scene: &Scene<'_>,
    device: &ProfileRequest,
    quota: Quota,
) -> Result<Assignment, Reasons<DeviceReason>> {
    let Scene { node, first_card, .. } = *scene;
    let ProfileRequest { profile, request, joint, .. } = device;
    let offer =
        node.info.devices.offer(&profile.name).ok_or_else(|| smallvec![DeviceReason::Unregistered])?;
    if node.agents.expired.contains(&profile.name) {
        return Err(smallvec![DeviceReason::Expired]);
    }
    let inventory = offer.inventory.as_deref().ok_or_else(|| smallvec![DeviceReason::Unreadable])?;
    if let Some(joint) = joint {
        return typed(node, profile, inventory.devices(), joint);
    }
    if inventory.cards().is_empty() {
        return Err(smallvec![DeviceReason::Unregistered]);
    }
    if node.usage.unread().iter().any(|other| node.info.devices.may_be_cards_of(inventory.cards(), other)) {
        return Err(smallvec![DeviceReason::UnreadableAssignment]);
    }
    allocate_from(first_card, request, inventory, &node.usage, (profile, quota)).map_err(Reasons::from_vec)
}

/// The devices by type that the node would give the pod.
fn typed(
    node: &NodeState,
    profile: &Profile,
    offered: &NodeDevices,
    joint: &JointRequest,
) -> Result<Assignment, Reasons<DeviceReason>> {
    if node.usage.unread().contains(&profile.name) {
        return Err(smallvec![DeviceReason::UnreadableAssignment]);
    }
    let (used, settings) = (node.usage.devices(), devices::AllocationSettings::of(joint));
    let reasons =
        |shortfalls: Vec<Shortfall>| shortfalls.into_iter().map(DeviceReason::Typed).collect::<Reasons<_>>();
    if !joint.containers.is_empty() {
        let by_container = devices::by_container(offered, used, joint, &settings).map_err(reasons)?;
        return Ok(Assignment {
            devices: together(&by_container),
            by_container: by_container.into(),
            ..Assignment::default()
        });
    }
    let given = match &node.reservations.within {
        Some(within) => {
            let (left, policy) = (within.devices_left(), within.reservation.policy);
            devices::allocate_within(offered, used, joint, &settings, (&left, policy))
        }
        None => devices::allocate(offered, used, joint, &settings),
    };
    let within = node.reservations.within.as_ref();
    let reservation = within.map(|within| Box::new(within.reservation.name.clone()));
    Ok(Assignment { devices: given.map_err(reasons)?, reservation, ..Assignment::default() })
}
