//! Koordinator's Reservations as scheduling sees them, and what pods say of them.

use std::sync::Arc;

use super::Reading;
use crate::{
    device::{Allocation, Answer, Assignment, DeviceAllocations, ReservationName, UnknownCards},
    dialect::{Dialects, Problem, Unreadable, koordinator},
    object::{self, Pod},
    scheduling::{
        model::{devices::AllocatePolicy, pod_reservation::PodReservation, resources::ResourceAmounts},
        world::{
            object::Object,
            reservation::{Admission, ReservationState, Use},
        },
    },
};

/// What a pod says of Reservations; `None`: it asks for no devices by type, and uses none.
pub(super) fn of_pod(dialects: &Dialects, pod: &Pod) -> Option<PodReservation> {
    let dialect = dialects.named(&koordinator::NAME.into())?;
    let uses = koordinator::reservation::allocated(pod).map(|used| used.uid);
    if uses.is_none() && !matches!(dialect.joint_request(pod), Ok(Some(_))) {
        return None;
    }
    Some(PodReservation {
        uid: pod.metadata.uid.as_str().into(),
        name: pod.metadata.name.as_str().into(),
        controller: pod.metadata.controller.clone(),
        uses,
        // A pod of which this can't be read is not placed.
        affinity: koordinator::reservation::affinity(pod).ok().flatten(),
    })
}

/// A Reservation. Of one whose devices can't be read, any device of its node may be held.
pub fn reservation(read: &object::Reservation) -> Reading<Object> {
    let mut troubles = Vec::new();
    let (metadata, spec, status) = (&read.metadata, &read.spec, &read.status);
    let (devices, unread) = match koordinator::reservation::devices(read) {
        Ok(devices) => (devices, None),
        Err(trouble) => {
            let unread = trouble.to_string();
            troubles.push(trouble);
            (DeviceAllocations::new(), Some(unread))
        }
    };
    let resources = ResourceAmounts::read(status.allocatable.iter()).unwrap_or_else(|(name, error)| {
        let field = format!("status.allocatable[{name}]");
        troubles.push(Unreadable::new(Problem::Quantity, field, error.to_string()));
        ResourceAmounts::default()
    });
    let assignment = Arc::new(Assignment { devices, ..Assignment::default() });
    let unknown = unread.as_ref().map(|_| UnknownCards::Everything);
    let whole = Allocation::new(koordinator::NAME.into(), assignment, Answer::Succeeded);
    let allocation = Allocation { unread: unread.map(String::into_boxed_str), unknown, ..whole };
    let closed = spec.unschedulable || !spec.taints.is_empty();
    let reservation = ReservationState {
        name: ReservationName { name: metadata.name.clone(), uid: metadata.uid.clone() },
        labels: metadata.labels.clone().unwrap_or_default(),
        node: koordinator::reservation::is_available(read).then(|| status.node_name.as_str().into()),
        // Devices are held one by one; what is negative holds nothing.
        resources: resources.without(koordinator::names::is_device).left(&ResourceAmounts::default()),
        allocation,
        owners: spec.owners.clone(),
        admission: if closed { Admission::Closed } else { Admission::Owners },
        policy: match spec.allocate_policy.as_str() {
            "Restricted" => AllocatePolicy::Restricted,
            _ => AllocatePolicy::Aligned,
        },
        allowed: if spec.allocate_once == Some(false) { Use::Shared } else { Use::Once },
        order: koordinator::reservation::order(read),
    };
    (Object::Reservation(metadata.name.as_str().into(), Arc::new(reservation)), troubles)
}
