//! What a pod says about Koordinator's Reservations.

use std::sync::Arc;

use crate::object::{metadata::Controller, reservation::ReservationAffinity};

/// What a pod says of Reservations, and what their owners are compared with beside namespace and labels.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodReservation {
    /// The pod's uid.
    pub uid: Arc<str>,
    /// The pod's name.
    pub name: Arc<str>,
    /// The pod's controller.
    pub controller: Option<Controller>,
    /// The uid of the Reservation that it uses.
    pub uses: Option<String>,
    /// The Reservations of which it must use one.
    pub affinity: Option<ReservationAffinity>,
}
