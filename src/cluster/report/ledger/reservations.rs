//! Koordinator's Reservations on the ledger's page: what each holds on its node that no pod uses yet.

use serde::Serialize;

use super::devices::{HeldDeviceRow, Resources, held_rows};
use crate::scheduling::world::node_state::NodeState;

/// One Reservation on its node.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationRow {
    /// Its name; absent: it is not shown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How many pods of the node use it.
    pub pods: usize,
    /// The devices that are left of it, which count as in use.
    pub devices: Vec<HeldDeviceRow>,
    /// What is left of it of other resources: cpu in thousandths, the rest in units.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
}

/// A node's Reservations, by name.
pub(super) fn rows(state: &NodeState) -> Vec<ReservationRow> {
    let each = state.reservations.all.iter();
    let amount = |(name, amount): (&str, i64)| (name.to_owned(), u64::try_from(amount).unwrap_or(0));
    each.map(|reserved| ReservationRow {
        name: reserved.reservation.name.name.clone(),
        pods: reserved.users,
        devices: held_rows(&reserved.devices),
        resources: reserved.resources.iter().map(amount).collect(),
    })
    .collect()
}
