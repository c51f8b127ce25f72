//! The time, as far as it decides what fits: how the zones of nodes stand.

use jiff::Timestamp;

use super::Snapshot;
use crate::scheduling::model::{
    name::NodeName,
    node::NodeInfo,
    tdm::{RevocableZones, ZoneState},
};

impl Snapshot {
    /// The same cluster, whose nodes are divided by these zones.
    #[must_use]
    pub fn divided(self, zones: RevocableZones) -> Self {
        Self { zones: zones.into(), ..self }
    }

    /// The revocable zones of the settings.
    pub fn revocable_zones(&self) -> &RevocableZones {
        &self.zones
    }

    /// The time up to which windows have been looked at.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Takes in the time. Returns the nodes whose zones have opened or closed meanwhile, in order of name.
    pub fn set_now(&mut self, now: Timestamp) -> Vec<NodeName> {
        self.now = now;
        let due = |state: &ZoneState| state.changes().is_some_and(|at| at <= now);
        let zones: Vec<_> =
            self.zone_states.values().filter(|state| due(state)).map(|state| state.zone.clone()).collect();
        let mut moved = Vec::new();
        for zone in zones {
            let state = self.zones.state(&zone, now);
            self.zone_states.insert(zone.clone(), state);
            let in_zone = |name: &&NodeName| {
                self.node(name).is_some_and(|node| node.zone.as_ref().is_some_and(|state| state.zone == zone))
            };
            moved.extend(self.by_name.keys().filter(in_zone).cloned());
        }
        moved.sort();
        for node in &moved {
            self.refold(node);
        }
        moved
    }

    /// When a zone of a node opens or closes next.
    pub fn next_zone_change(&self) -> Option<Timestamp> {
        self.zone_states.values().filter_map(ZoneState::changes).min()
    }

    /// When a zone closed last, whether it has opened again or not: the epoch where none was open in the days before. `None`: every zone
    /// that a node has named is open.
    pub fn last_closed(&self) -> Option<Timestamp> {
        let zones = self.zone_states.values();
        let any_closed = zones.clone().any(|state| !state.is_open());
        any_closed.then(|| zones.filter_map(|state| state.closed).max().unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// How the zone that a node is in stands.
    pub(super) fn zone_of(&mut self, node: &NodeInfo) -> Option<ZoneState> {
        let zone = self.zones.of(&node.labels)?;
        if let Some(state) = self.zone_states.get(zone) {
            return Some(state.clone());
        }
        let state = self.zones.state(zone, self.now);
        self.zone_states.insert(state.zone.clone(), state.clone());
        Some(state)
    }
}
