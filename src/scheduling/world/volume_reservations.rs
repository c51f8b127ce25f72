//! Volumes that pods which are being placed have chosen.

use std::{collections::BTreeMap, sync::Arc};

use crate::scheduling::model::{name::NodeName, prebind_step::VolumeChoice};

/// What pods that are being placed have chosen for their claims.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reservations {
    /// By volume, the full name of the claim that it is to be bound to.
    pub volumes: BTreeMap<Arc<str>, Arc<str>>,
    /// By a claim's full name, the node and the choice.
    pub claims: BTreeMap<Arc<str>, (NodeName, VolumeChoice)>,
}
