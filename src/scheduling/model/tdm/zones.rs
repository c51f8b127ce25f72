//! The zones of the settings, and how each stands at a time.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::window::{TimeOfDay, Window, WindowState, last_closed, state_of};
use crate::object::selector::LabelValues;

/// The revocable zones of a cluster: which label of a node names its zone, and the windows of each zone.
#[derive(Clone, Debug, PartialEq)]
pub struct RevocableZones {
    /// The label of a node that names its zone; empty: time division is off, and every node is like any other.
    pub label: String,
    /// The windows of each zone.
    pub windows: BTreeMap<Arc<str>, Vec<Window>>,
    /// By whose clock windows are read.
    pub time_zone: TimeZone,
    /// So long before a window's end pods are evicted, and no pod is placed any more.
    pub grace: SignedDuration,
    /// How long after one round of evictions the next follows.
    pub evict_period: SignedDuration,
}

impl Default for RevocableZones {
    fn default() -> Self {
        Self {
            label: String::new(),
            windows: BTreeMap::new(),
            time_zone: TimeZone::UTC,
            grace: SignedDuration::ZERO,
            evict_period: SignedDuration::from_mins(1),
        }
    }
}

/// A node's zone as it stands.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ZoneState {
    /// The zone's name.
    pub zone: Arc<str>,
    /// Whether it takes pods.
    pub window: WindowState,
    /// What the clock shows at the zone's next change.
    pub until: Option<TimeOfDay>,
    /// When it closed last, if it was open in the days before.
    pub closed: Option<Timestamp>,
}

impl ZoneState {
    /// Whether it takes pods.
    pub fn is_open(&self) -> bool {
        matches!(self.window, WindowState::Open(_))
    }

    /// When this changes.
    pub fn changes(&self) -> Option<Timestamp> {
        match self.window {
            WindowState::Open(at) | WindowState::Closed(at) => at,
        }
    }
}

impl RevocableZones {
    /// Whether time division is off.
    pub fn is_off(&self) -> bool {
        self.label.is_empty()
    }

    /// The name of the zone that a node with these labels is in.
    pub fn of<'a>(&self, labels: &'a dyn LabelValues) -> Option<&'a str> {
        if self.is_off() {
            return None;
        }
        labels.value(&self.label).filter(|zone| !zone.is_empty())
    }

    /// How a zone stands. One without a window is closed and never opens.
    pub fn state(&self, zone: &str, now: Timestamp) -> ZoneState {
        let known = self.windows.get_key_value(zone);
        let windows = known.map_or(&[][..], |(_, windows)| windows);
        let window = state_of(windows, &self.time_zone, self.grace, now);
        let mut state = ZoneState {
            zone: known.map_or_else(|| zone.into(), |(name, _)| name.clone()),
            window,
            until: None,
            closed: last_closed(windows, &self.time_zone, self.grace, now),
        };
        state.until = state.changes().map(|at| TimeOfDay::at(at, &self.time_zone));
        state
    }
}
