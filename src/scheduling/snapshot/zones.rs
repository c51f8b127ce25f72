//! The time, as far as it decides what fits: how the zones of nodes stand.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::Snapshot;
use crate::scheduling::model::{
    name::NodeName,
    node::NodeInfo,
    tdm::{RevocableZones, ZoneState},
};

/// The revocable zones of the settings, and how those stand that nodes are in.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduling) struct Zones {
    settings: Arc<RevocableZones>,
    /// By name.
    states: BTreeMap<Arc<str>, ZoneState>,
}

impl Zones {
    /// These, none of which has a node yet.
    pub(super) fn of(settings: RevocableZones) -> Self {
        Self { settings: settings.into(), states: BTreeMap::new() }
    }

    /// The zones of the settings.
    pub(in crate::scheduling) fn settings(&self) -> &RevocableZones {
        &self.settings
    }

    /// When a zone of a node opens or closes next.
    pub(in crate::scheduling) fn next_change(&self) -> Option<Timestamp> {
        self.states.values().filter_map(ZoneState::changes).min()
    }

    /// When a zone closed last, whether it has opened again or not: the epoch where none was open in the days before. `None`: every zone
    /// that a node has named is open.
    pub(in crate::scheduling) fn last_closed(&self) -> Option<Timestamp> {
        let zones = self.states.values();
        let any_closed = zones.clone().any(|state| !state.is_open());
        any_closed.then(|| zones.filter_map(|state| state.closed).max().unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// How the zone that a node is in stands now.
    pub(super) fn of_node(&mut self, node: &NodeInfo, now: Timestamp) -> Option<ZoneState> {
        let zone = self.settings.of(&node.labels)?;
        if let Some(state) = self.states.get(zone) {
            return Some(state.clone());
        }
        let state = self.settings.state(zone, now);
        self.states.insert(state.zone.clone(), state.clone());
        Some(state)
    }

    /// Takes in the time. Returns the zones that have opened or closed meanwhile.
    fn advance(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let due = |state: &&mut ZoneState| state.changes().is_some_and(|at| at <= now);
        let moved = self.states.values_mut().filter(due).map(|state| {
            *state = self.settings.state(&state.zone, now);
            state.zone.clone()
        });
        moved.collect()
    }
}

impl Snapshot {
    /// Takes in the time. Returns the nodes whose zones have opened or closed meanwhile, in order of name.
    pub fn set_now(&mut self, now: Timestamp) -> Vec<NodeName> {
        self.world.now = now;
        let zones = self.zones.advance(now);
        if zones.is_empty() {
            return Vec::new();
        }
        let zone_of = |node: &NodeName| self.world.node(node)?.zone.as_ref();
        let has_moved = |node: &&NodeName| zone_of(node).is_some_and(|state| zones.contains(&state.zone));
        let moved: Vec<NodeName> = self.world.nodes.names().filter(has_moved).cloned().collect();
        self.refold(&moved);
        moved
    }
}
