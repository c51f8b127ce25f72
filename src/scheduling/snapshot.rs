//! The cluster as it stands: the world, and what it is folded from.
//!
//! A node's state is an immutable value that is replaced when anything on the node changes; its generation tells whether it has.

mod agents;
mod before;
mod charge;
mod claims;
mod in_use;
mod left;
mod node;
mod nominees;
mod objects;
mod zones;

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use super::model::{change::Change, plugin_arguments::PluginArguments, tdm::RevocableZones};
use super::world::{World, ledger::Ledger, reservation::NodeReservations};
use agents::Agents;
use zones::Zones;

pub(in crate::scheduling) use before::Before;
pub(in crate::scheduling) use charge::release_with_claims;
pub(in crate::scheduling) use in_use::{least_usage, with_charges};

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Check {
    /// It is.
    Right,
    /// It was not, and has been put right.
    Wrong,
}

/// The cluster as it stands: it owns the [`World`], and replaces a part of it when something changes of which that part is a fold.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    world: World,
    ledger: Ledger,
    /// Koordinator's Reservations that hold something.
    reserved: NodeReservations,
    /// What is known of device plugins.
    agents: Agents,
    /// How the zones of nodes stand.
    zones: Zones,
    /// What has changed since it was last asked.
    changes: Vec<Change>,
    /// Whether what happens is a plan's, and is most likely undone.
    on_trial: bool,
}

impl Snapshot {
    /// An empty cluster, whose nodes need not advertise these resources, which are the dialects' own, and are divided by these zones. Its plugins have
    /// these arguments.
    pub fn new(
        device_resources: BTreeSet<String>,
        arguments: PluginArguments,
        zones: RevocableZones,
    ) -> Self {
        let (device_resources, arguments) = (Arc::new(device_resources), Arc::new(arguments));
        let world = World { device_resources, arguments, ..World::default() };
        Self { world, zones: Zones::of(zones), ..Self::default() }
    }

    /// What plugins read.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Who holds what.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How the zones of nodes stand.
    pub(in crate::scheduling) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// What has changed since this was last asked.
    pub(in crate::scheduling) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

/// What happens from now on is a plan's: the devices that are kept for pods stay as they are.
pub(in crate::scheduling) fn begin_trial(snapshot: &mut Snapshot) {
    snapshot.on_trial = true;
}

/// What happens from now on is no plan's any more.
pub(in crate::scheduling) fn end_trial(snapshot: &mut Snapshot) {
    snapshot.on_trial = false;
}

impl Deref for Snapshot {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}
