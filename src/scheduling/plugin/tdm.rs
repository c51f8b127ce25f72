//! Whether a pod may be on a node of a revocable zone now: the zone is open to it, and stays open for as long as the pod needs.
//!
//! Volcano's plugin of this name (ed72c7c `pkg/scheduler/plugins/tdm/tdm.go`, `predicateFn` and `nodeOrderFn`). Whether the zone is open is
//! part of the node's state; only a pod that says how long it runs is compared with the time, once for each decision.

use jiff::Timestamp;

use super::{scene::Scene, score::range::MOST};
use crate::scheduling::{
    model::{
        pod::Ask,
        reason::{NodeReasons, Reason},
        tdm::{Permission, WindowState, ZoneState},
    },
    world::node_state::NodeState,
};

/// Fails on a node of a revocable zone that is closed, or that the pod may not use.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let Some(state) = &scene.node.zone else { return Ok(()) };
    let ZoneState { zone, until, .. } = state;
    if !scene.ask.constraints.revocable.zones.covers(zone) {
        return Err(vec![Reason::ZoneNotPermitted]);
    }
    if !state.is_open() {
        return Err(vec![Reason::ZoneClosed { zone: zone.clone(), until: *until }]);
    }
    Ok(())
}

/// How much a pod that may use revocable zones prefers the node: most where the node is in one, since it is lent at no cost to others.
/// `None`: the pod may not, and every node is alike to it.
pub(in crate::scheduling) fn score(ask: &Ask, node: &NodeState) -> Option<i64> {
    if ask.constraints.revocable.zones == Permission::Nowhere {
        return None;
    }
    Some(if node.zone.as_ref().is_some_and(ZoneState::is_open) { MOST } else { 0 })
}

/// When a pod that is placed now will have finished.
#[derive(Clone, Copy, Debug)]
pub struct Finish(Timestamp);

impl Finish {
    /// When a pod that is placed at this time will have finished. `None`: it does not say how long it runs, or may use no revocable zone.
    pub fn of(ask: &Ask, now: Timestamp) -> Option<Self> {
        let revocable = &ask.constraints.revocable;
        let duration = revocable.expected_duration.filter(|_| revocable.zones != Permission::Nowhere)?;
        Some(Self(now.checked_add(duration).unwrap_or(Timestamp::MAX)))
    }

    /// Fails on a node whose zone closes before that.
    pub fn test(self, node: &NodeState) -> Result<(), Reason> {
        let Some(ZoneState { zone, window: WindowState::Open(Some(end)), until, .. }) = &node.zone else {
            return Ok(());
        };
        if *end < self.0 {
            return Err(Reason::ZoneClosesTooSoon { zone: zone.clone(), until: *until });
        }
        Ok(())
    }
}

/// Whether a pod that is placed at this time will have finished before the node's zone closes.
pub(in crate::scheduling) fn lasts(ask: &Ask, node: &NodeState, now: Timestamp) -> bool {
    Finish::of(ask, now).is_none_or(|finish| finish.test(node).is_ok())
}
