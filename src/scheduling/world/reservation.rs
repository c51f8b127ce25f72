//! Capacity of a node that Koordinator's Reservations hold for pods to come: which pods may use it, and what of it is left.
//!
//! What is left is a fold over the pods of the node that use the Reservation. Placing a Reservation on a node is not done here.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::ledger::{Charge, Commitment};
use crate::{
    device::{
        Allocation, Amounts, Assignment, DeviceAllocation, DeviceAllocations, DeviceType, InitPhase, Minor,
        NamedDimension, ReservationName, Usage,
    },
    object::{Labels, reservation::ReservationOwner},
    scheduling::model::{
        devices::{AllocatePolicy, ReservedDevices},
        name::NodeName,
        pod::Demand,
        resources::ResourceAmounts,
    },
};

/// How many pods may use a Reservation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Use {
    /// One: once it is bound, nothing is held any more.
    Once,
    /// As many as find room in it.
    Shared,
}

/// Whether further pods may use a Reservation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admission {
    /// Its owners.
    Owners,
    /// None.
    Closed,
}

/// A Reservation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReservationState {
    /// Its name and uid.
    pub name: ReservationName,
    /// Its labels.
    pub labels: Labels,
    /// The node on which it holds something; `None`: it holds nothing.
    pub node: Option<NodeName>,
    /// What it holds of the resources that Kubernetes accounts, those of devices left out.
    pub resources: ResourceAmounts,
    /// The devices that it holds.
    pub allocation: Allocation,
    /// The pods that may use it.
    pub owners: Vec<ReservationOwner>,
    /// Whether further pods may.
    pub admission: Admission,
    /// Whether a pod that uses it may have what it lacks from the rest of the node.
    pub policy: AllocatePolicy,
    /// How many pods may use it.
    pub allowed: Use,
    /// Which comes first of several: the lowest; `None`: after all that have one.
    pub order: Option<i64>,
}

/// Which of several Reservations a pod uses that fits in each: the least. One with an order comes first, then the one that is the fullest with the pod.
/// Source: koordinator a7a1b76 `pkg/scheduler/plugins/reservation/{nominator,scoring}.go`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Preference {
    without_order: bool,
    order: i64,
    fullness: Reverse<u64>,
}

/// A Reservation on its node, as it stands beside the pods there.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// The Reservation.
    pub reservation: Arc<ReservationState>,
    /// The devices that are left of it.
    pub devices: DeviceAllocations,
    /// What is left of its other resources.
    pub resources: ResourceAmounts,
    /// How many pods use it.
    pub users: usize,
    /// What is in use of the node's cards and devices without what is left of it.
    pub usage: Usage,
    /// What is in use of the node's other resources without what is left of it.
    pub requested: ResourceAmounts,
}

impl ReservationState {
    /// Whether it is for a pod, used up or not.
    pub fn is_for(&self, demand: &Demand) -> bool {
        let Some(pod) = &demand.footprint.reservation else { return false };
        let (namespace, labels) = (&demand.footprint.namespace, &demand.footprint.labels);
        let owns = |owner: &ReservationOwner| {
            let object = owner.object.as_ref();
            let controller = owner.controller.as_ref();
            let selector = owner.label_selector.as_ref();
            object.is_none_or(|object| object.is_of(&pod.uid, namespace, &pod.name))
                && controller.is_none_or(|owner| {
                    pod.controller.as_ref().is_some_and(|controller| owner.is_of(namespace, controller))
                })
                && selector.is_none_or(|selector| selector.matches(labels))
        };
        let wanted = pod.affinity.as_ref();
        self.admission == Admission::Owners
            && self.owners.iter().any(owns)
            && wanted.is_none_or(|wanted| wanted.admits(&self.name.name, &self.labels))
    }

    /// The pods among these that use it.
    fn users<'c>(&self, charges: &[&'c Charge]) -> Vec<&'c Charge> {
        let uses = |charge: &&&Charge| charge.reservation() == Some(self.name.uid.as_str());
        charges.iter().filter(uses).copied().collect()
    }

    /// What is left of it beside the pods that use it.
    fn left(&self, users: &[&Charge]) -> (DeviceAllocations, ResourceAmounts) {
        let is_over = |charge: &&Charge| charge.commitment == Commitment::Bound;
        if self.allowed == Use::Once && users.iter().any(is_over) {
            return (DeviceAllocations::new(), ResourceAmounts::default());
        }
        let mut resources = self.resources.clone();
        let mut devices = self.allocation.assignment.devices.clone();
        for charge in users {
            resources = resources.left(&charge.footprint.resources);
            for used in charge.allocations.iter().flat_map(|one| &one.assignment.devices) {
                let Some(held) = devices.get_mut(used.0) else { continue };
                used.1.iter().for_each(|used| take(held, used));
            }
        }
        for held in devices.values_mut() {
            held.retain(|one| !one.amounts.is_zero() || !one.functions.is_empty());
        }
        (devices, resources)
    }
}

/// Takes what a pod has of one device out of what is held of it.
fn take(held: &mut [DeviceAllocation], used: &DeviceAllocation) {
    for one in held.iter_mut().filter(|one| one.minor == used.minor) {
        one.amounts = one.amounts.left(&used.amounts);
        one.functions.retain(|function| used.functions.iter().all(|used| used.bus != function.bus));
    }
}

impl Reserved {
    /// Whether the pod may use it, as far as it has not been used up.
    pub fn admits(&self, demand: &Demand) -> bool {
        let free = self.reservation.allowed == Use::Shared || self.users == 0;
        // Reserved devices are given to a pod as a whole.
        let mut asked = demand.ask.devices.iter().filter_map(|device| device.joint.as_ref());
        let as_a_whole = asked.all(|joint| joint.containers.is_empty());
        free && as_a_whole && self.reservation.is_for(demand) && self.covers(&demand.ask.resources)
    }

    /// Whether what is left of its other resources does, where the pod may have no more of those that it holds.
    fn covers(&self, asked: &ResourceAmounts) -> bool {
        let held = asked.iter().filter(|(name, _)| self.reservation.resources.names(name));
        self.reservation.policy == AllocatePolicy::Aligned
            || held.into_iter().all(|(name, asked)| asked <= self.resources.get(name))
    }

    /// Its place among others in which the pod fits too.
    pub fn preference(&self, demand: &Demand) -> Preference {
        let order = self.reservation.order;
        let fullness = Reverse(self.fullness(demand));
        Preference { without_order: order.is_none(), order: order.unwrap_or_default(), fullness }
    }

    /// How much of it is used together with the pod, in percent, as the mean over all that it holds. What the pod asks for beyond it counts as nothing.
    fn fullness(&self, demand: &Demand) -> u64 {
        let asked = &demand.ask.resources;
        let resources = self.reservation.resources.iter().map(|(name, held)| {
            let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
            (amount(held), amount(self.resources.get(name)), amount(asked.get(name)))
        });
        let shares = resources.chain(self.of_devices(demand)).filter(|(held, ..)| *held > 0);
        let shares: Vec<u64> = shares
            .map(|(held, left, asked)| {
                let used = (held.saturating_sub(left)).saturating_add(asked);
                if used > held {
                    0
                } else {
                    u64::try_from(u128::from(used) * 100 / u128::from(held)).unwrap_or(0)
                }
            })
            .collect();
        shares.iter().sum::<u64>() / u64::try_from(shares.len()).unwrap_or(1).max(1)
    }

    /// Of each dimension of its devices by type: what it holds, what is left of it, and what the pod asks for.
    fn of_devices(&self, demand: &Demand) -> Vec<(u64, u64, u64)> {
        let sums = |devices: &DeviceAllocations, kind: &DeviceType| {
            let mut sum = Amounts::default();
            devices.get(kind).into_iter().flatten().for_each(|one| sum.add(&one.amounts));
            sum
        };
        let asked = |kind: &DeviceType, dimension: &NamedDimension| {
            let mut joint = demand.ask.devices.iter().filter_map(|device| device.joint.as_ref());
            let typed = joint.find_map(|joint| joint.types.get(kind));
            typed.map_or(0, |typed| {
                typed.each.get(dimension).unwrap_or(0).saturating_mul(typed.least().into())
            })
        };
        let held = &self.reservation.allocation.assignment.devices;
        let of_kind = |kind: &DeviceType| {
            let left = sums(&self.devices, kind);
            let dimensions = sums(held, kind);
            let of = |(dimension, held): (&NamedDimension, u64)| {
                (held, left.get(dimension).unwrap_or(0), asked(kind, dimension))
            };
            dimensions.iter().map(of).collect::<Vec<_>>()
        };
        held.keys().flat_map(of_kind).collect()
    }

    /// What is left of its devices: each type of which it holds some.
    pub fn devices_left(&self) -> ReservedDevices {
        let held = &self.reservation.allocation.assignment.devices;
        let left = |kind| {
            let devices = self.devices.get(kind).into_iter().flatten();
            devices.map(|one| (one.minor, one.amounts.clone())).collect::<BTreeMap<Minor, _>>()
        };
        held.keys().map(|kind| (*kind, left(kind))).collect()
    }
}

/// Every Reservation that holds something of a node, by node and name.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduling) struct NodeReservations(
    BTreeMap<NodeName, BTreeMap<Arc<str>, Arc<ReservationState>>>,
);

impl NodeReservations {
    /// The Reservations on a node, by name; `None`: there are none.
    pub(in crate::scheduling) fn on_node(
        &self,
        node: &NodeName,
    ) -> Option<&BTreeMap<Arc<str>, Arc<ReservationState>>> {
        self.0.get(node)
    }

    /// Replaces the Reservation of this name; `None`: it is gone. Returns the nodes on which it holds something, or did.
    pub(in crate::scheduling) fn set(
        &mut self,
        name: &Arc<str>,
        reservation: Option<&Arc<ReservationState>>,
    ) -> Vec<NodeName> {
        let mut nodes = Vec::new();
        self.0.retain(|node, of_node| {
            nodes.extend(of_node.remove(name).map(|_| node.clone()));
            !of_node.is_empty()
        });
        if let Some(reservation) = reservation
            && let Some(node) = &reservation.node
        {
            self.0.entry(node.clone()).or_default().insert(name.clone(), reservation.clone());
            nodes.push(node.clone());
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// What is in use of a node with these Reservations and these pods, which use so much of it: with what is left of the Reservations, and each
/// Reservation as it stands. `join` counts what the node's cards have beside it and by other names.
pub(in crate::scheduling) fn fold<'r>(
    join: impl Fn(Usage) -> Usage,
    reservations: impl Iterator<Item = &'r Arc<ReservationState>>,
    charges: &[&Charge],
    (usage, requested): (Usage, ResourceAmounts),
) -> (Usage, ResourceAmounts, Vec<Arc<Reserved>>) {
    let left: Vec<_> = reservations
        .map(|reservation| {
            let users = reservation.users(charges);
            let (devices, resources) = reservation.left(&users);
            (reservation, devices, resources, users.len())
        })
        .collect();
    // What is in use with what is left of all but one of them; of none, it is of all.
    let beside = |without: Option<usize>| {
        let (mut usage, mut requested) = (usage.clone(), requested.clone());
        for (_, (reservation, devices, resources, _)) in
            left.iter().enumerate().filter(|(at, _)| Some(*at) != without)
        {
            let assignment = Assignment { devices: devices.clone(), ..Assignment::default() };
            usage = usage.and(Usage::of([(&assignment, InitPhase::Done)]));
            let unread = reservation.allocation.unknown.as_ref();
            usage = usage.with_unread(unread.map(|_| reservation.allocation.profile.clone()));
            requested.add(resources);
        }
        (join(usage), requested)
    };
    let reserved = left.iter().enumerate().map(|(at, (reservation, devices, resources, users))| {
        let (usage, requested) = beside(Some(at));
        Arc::new(Reserved {
            reservation: Arc::clone(reservation),
            devices: devices.clone(),
            resources: resources.clone(),
            users: *users,
            usage,
            requested,
        })
    });
    let reserved = reserved.collect();
    let (usage, requested) = beside(None);
    (usage, requested, reserved)
}
