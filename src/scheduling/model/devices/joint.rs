//! Devices of several types that are chosen together: the first type leads, the others follow to its PCIe switches.
//!
//! Source: koordinator `device_allocator.go` (`jointAllocate`, `validateJointAllocation`).

use std::collections::BTreeSet;

use super::{
    Choice, Chosen, Shortfall, gpu, pick, search,
    view::{Switch, View},
};
use crate::device::{DeviceType, Joint, JointScope};

/// The devices of one type, whatever the pod takes of others.
pub(super) fn alone(view: &View<'_>) -> Result<Chosen, Shortfall> {
    match view.kind {
        DeviceType::Gpu => gpu::choose(view),
        DeviceType::Rdma | DeviceType::Fpga => {
            pick::choose(view, view.count, view.count, &BTreeSet::new()).map(Chosen::from)
        }
    }
}

/// The devices of the joined types; none where no types are joined.
pub(super) fn choose(views: &[View<'_>], joint: Option<&Joint>) -> Result<Choice, Shortfall> {
    let Some(joint) = joint else { return Ok(Choice::new()) };
    let joined = joint.types.iter().map(|kind| views.iter().find(|view| view.kind == *kind));
    let Some(joined) = joined.collect::<Option<Vec<_>>>() else { return Ok(Choice::new()) };
    let followed = follow(&joined, joint.scope);
    match (joint.scope, followed) {
        (JointScope::Preferred, followed) => followed,
        (JointScope::SamePcie, Ok(choice)) if is_joint(&joined, &choice) => Ok(choice),
        (JointScope::SamePcie, followed) => search::choose(&joined).ok_or(match followed {
            Err(shortfall) => shortfall,
            Ok(_) => Shortfall::JointRule,
        }),
    }
}

/// The first type as if it were alone, then the others near it.
fn follow(joined: &[&View<'_>], scope: JointScope) -> Result<Choice, Shortfall> {
    let mut choice = Choice::new();
    let Some((first, others)) = joined.split_first() else { return Ok(choice) };
    let leader = alone(first)?;
    let switches = first.switches(&leader.minors);
    choice.insert(first.kind, leader);
    for view in others {
        choice.insert(view.kind, follower(view, scope, &switches)?);
    }
    Ok(choice)
}

/// One device for each switch, or as many as are asked for where that is more. Unless the switches bind, fewer will do, and others too.
fn follower(view: &View<'_>, scope: JointScope, switches: &BTreeSet<Switch>) -> Result<Chosen, Shortfall> {
    if view.kind == DeviceType::Gpu {
        return gpu::choose(view);
    }
    let most = view.count.max(switches.len());
    let least = if scope == JointScope::SamePcie { most } else { view.count };
    pick::choose(view, least, most, switches).map(Chosen::from)
}

/// Whether every type is on exactly the switches of the first.
fn is_joint(joined: &[&View<'_>], choice: &Choice) -> bool {
    let mut switches = joined.iter().map(|view| view.switches(&choice[&view.kind].minors));
    let first = switches.next();
    switches.all(|others| Some(&others) == first.as_ref())
}
