//! Whether a pod may be on a node of a revocable zone now: the zone is open to it, and stays open for as long as the pod needs.
//!
//! Volcano's plugin of this name (ed72c7c `pkg/scheduler/plugins/tdm/tdm.go`, `predicateFn` and `nodeOrderFn`). Whether the zone is open is
//! part of the node's state; only a pod that says how long it runs is compared with the time, once for each decision.

use std::{borrow::Cow, fmt, sync::Arc};

use jiff::Timestamp;
use smallvec::smallvec;

use super::{
    contract::{
        Cure, Filter, FilterStage, Placement, PreFilter, PreFiltered, Reasons, Rejection, SchedulingPlugin,
        Score,
    },
    pod_counts::PodCounts,
    scene::Scene,
    score::range::{MOST, float},
};
use crate::scheduling::{
    model::{
        pod::{Ask, Demand},
        tdm::{Permission, TimeOfDay, WindowState, ZoneState},
    },
    world::{World, node_parts::NodePart, node_state::NodeState, nodes::Nodes},
};

/// Rejects a node of a revocable zone that is closed, that the pod may not use, or that closes before the pod could finish; a pod that may use
/// revocable zones prefers them. Volcano adds its score to others of about one tenth of that: with this weight a pod takes a node of an open
/// revocable zone before any other.
#[derive(Debug)]
pub struct Tdm;

impl SchedulingPlugin for Tdm {
    const NAME: &'static str = "tdm";
    const WEIGHT: Option<u32> = Some(10);

    type Reason = ZoneReason;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }
}

impl Filter for Tdm {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<ZoneReason>> {
        let Some(state) = &scene.node.zone else { return Ok(()) };
        let ZoneState { zone, until, .. } = state;
        if !scene.ask.constraints.revocable.zones.covers(zone) {
            return Err(smallvec![ZoneReason::NotPermitted]);
        }
        if !state.is_open() {
            return Err(smallvec![ZoneReason::Closed { zone: zone.clone(), until: *until }]);
        }
        Ok(())
    }
}

impl PreFilter for Tdm {
    type Found<'a> = Finish;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        _counts: &mut PodCounts,
    ) -> Result<Option<Finish>, ZoneReason> {
        Ok(Finish::of(&demand.ask, world.now()))
    }
}

impl Score for Tdm {
    /// Most where the node is in a zone, since it is lent at no cost to others.
    fn score(placement: &Placement<'_>) -> Option<f64> {
        if placement.ask.constraints.revocable.zones == Permission::Nowhere {
            return None;
        }
        let is_open = placement.node.zone.as_ref().is_some_and(ZoneState::is_open);
        Some(if is_open { float(MOST) } else { 0.0 })
    }

    fn is_even(ask: &Ask, _nodes: &Nodes) -> bool {
        ask.constraints.revocable.zones == Permission::Nowhere
    }
}

/// Why a pod may not be on a node of a revocable zone.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ZoneReason {
    /// The pod is not preemptable or may not use this zone.
    NotPermitted,
    /// The zone is closed.
    Closed {
        /// The zone.
        zone: Arc<str>,
        /// When it opens; `None`: never.
        until: Option<TimeOfDay>,
    },
    /// The zone closes before the pod could finish.
    ClosesTooSoon {
        /// The zone.
        zone: Arc<str>,
        /// When it closes.
        until: Option<TimeOfDay>,
    },
}

impl Rejection for ZoneReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::NotPermitted => "RevocableZoneNotPermitted".into(),
            Self::Closed { .. } => "RevocableZoneClosed".into(),
            Self::ClosesTooSoon { .. } => "RevocableZoneClosesTooSoon".into(),
        }
    }

    fn cure(&self) -> Cure {
        Cure::Time
    }

    fn stage(&self) -> Option<FilterStage> {
        match self {
            Self::NotPermitted | Self::Closed { .. } => Some(FilterStage::Node),
            Self::ClosesTooSoon { .. } => Some(FilterStage::Prepared),
        }
    }
}

impl fmt::Display for ZoneReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted => {
                write!(formatter, "node(s) were in a revocable zone that the Pod may not use")
            }
            Self::Closed { zone, until: Some(until) } => {
                write!(formatter, "node(s) in revocable zone {zone} closed until {until}")
            }
            Self::Closed { zone, until: None } => {
                write!(formatter, "node(s) in revocable zone {zone}, which has no window")
            }
            Self::ClosesTooSoon { zone, until } => {
                write!(formatter, "node(s) in revocable zone {zone}, which closes")?;
                until.iter().try_for_each(|until| write!(formatter, " at {until}"))?;
                write!(formatter, ", before the Pod could finish")
            }
        }
    }
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
}

impl PreFiltered<'_, ZoneReason> for Finish {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<ZoneReason>> {
        let Some(ZoneState { zone, window: WindowState::Open(Some(end)), until, .. }) = &node.zone else {
            return Ok(());
        };
        if *end < self.0 {
            return Err(smallvec![ZoneReason::ClosesTooSoon { zone: zone.clone(), until: *until }]);
        }
        Ok(())
    }
}

/// Whether a pod that is placed at this time will have finished before the node's zone closes.
pub(in crate::scheduling) fn lasts(ask: &Ask, node: &NodeState, now: Timestamp) -> bool {
    Finish::of(ask, now).is_none_or(|finish| finish.test(node).is_ok())
}
