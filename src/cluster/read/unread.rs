//! What an object counts as if not all of it can be read: it frees nothing and gets nothing.
//!
//! This depends on the object alone, so a restart decides the same. A kind whose readable part would say something wrong stays as it was last
//! seen (`Object::Unread`).

use std::sync::Arc;

use crate::{
    cluster::informer::unread::Unread,
    device::UnknownCards,
    object::Metadata,
    scheduling::{
        Claim, NodeInfo, PodInfo,
        model::{
            gang::{Group, Policy},
            kind::Kind,
            name::full_name,
            resources::ResourceAmounts,
        },
        world::{object::Object, reservation::Admission},
    },
};

/// The fields and the reasons, in one line.
fn why(unread: &[Unread]) -> String {
    unread.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A pod holds what the others of its fields say, and is not placed.
pub(in crate::cluster) fn pod(pod: &mut PodInfo, unread: &[Unread]) {
    if !unread.is_empty() && pod.claim != Claim::None {
        pod.claim = Claim::unreadable(format!("Pod is not placed: {}", why(unread)));
    }
}

/// A node has room for no further pod.
pub(in crate::cluster) fn node(node: &mut NodeInfo, unread: &[Unread]) {
    if !unread.is_empty() {
        node.cordoned = true;
        node.allocatable = ResourceAmounts::default();
    }
}

/// The pods of the group wait.
pub(in crate::cluster) fn pod_group(object: Object, unread: &[Unread]) -> Object {
    match object {
        Object::PodGroup(kind, name, group) if !unread.is_empty() => {
            let policy = Policy::Unserved(why(unread).into());
            Object::PodGroup(kind, name, Arc::new(Group { policy, ..Arc::unwrap_or_clone(group) }))
        }
        object => object,
    }
}

/// Any device of its node may be held, and no further pod may use it.
pub(in crate::cluster) fn reservation(object: Object, unread: &[Unread]) -> Object {
    match object {
        Object::Reservation(name, reservation) if !unread.is_empty() => {
            let mut reservation = Arc::unwrap_or_clone(reservation);
            reservation.admission = Admission::Closed;
            reservation.allocation.unread = Some(why(unread).into());
            reservation.allocation.unknown = Some(UnknownCards::Everything);
            Object::Reservation(name, Arc::new(reservation))
        }
        object => object,
    }
}

/// An object of another kind stays as it was last seen.
pub(in crate::cluster) fn object(kind: Kind, metadata: &Metadata) -> Object {
    Object::Unread(kind, full_name(&metadata.namespace, &metadata.name))
}
