//! What the plugins that look at more than one node found out for one pod, before its nodes are tested and scored: kube-scheduler's
//! PreFilter, PreScore and CycleState.

use std::sync::Arc;

use super::{
    dynamic_resources::PodClaims,
    image_locality::LocalImages,
    inter_pod_affinity::{Neighbours, scoring::PreferredNeighbours},
    node_volume_limits::Attachments,
    pod_counts::PodCounts,
    pod_topology_spread::{Spread, scoring::PreferredSpread},
    score::weights::ScoreWeights,
    tdm::Finish,
    volume_binding::{Claims, scoring::VolumeCapacity},
    volume_restrictions,
    volume_zone::Zones,
};
use crate::scheduling::{
    model::{
        plugin::Plugin,
        pod::Demand,
        prebind_step::{PrebindStep, VolumeChoice},
        reason::{NodeReasons, Reason},
        steps::COMPARE,
    },
    world::{node_state::NodeState, surroundings::Surroundings},
};

/// What the plugins found out for one pod. It holds as long as no pod, no node and no other object changes, and
/// for this time.
#[derive(Debug, Default)]
pub struct Cycle<'a> {
    attachments: Option<Attachments<'a>>,
    claims: Option<Arc<Claims<'a>>>,
    zones: Option<Zones>,
    spread: Option<Spread>,
    neighbours: Option<Neighbours>,
    devices: Option<PodClaims<'a>>,
    finish: Option<Finish>,
}

impl<'a> Cycle<'a> {
    /// Asks each plugin that has something to do for this pod. The error holds on every node.
    pub fn prepare(
        demand: &Demand,
        around: Surroundings<'a>,
        counts: &mut PodCounts,
    ) -> Result<Self, Reason> {
        if !demand.footprint.claims.is_empty() {
            // Each claim that is not bound is compared with all of them.
            let storage = around.objects.volumes().count() + around.objects.capacities().count();
            counts.steps().add(COMPARE * 4, storage.saturating_mul(demand.footprint.claims.len()));
        }
        let claims = Claims::prepare(demand, around)?;
        volume_restrictions::test_claims(demand, around)?;
        Ok(Self {
            attachments: Attachments::prepare(demand, around.objects),
            claims: claims.map(Arc::new),
            zones: Zones::prepare(demand, around.objects),
            spread: Spread::prepare(demand, around, counts),
            neighbours: Neighbours::prepare(demand, around, counts),
            devices: PodClaims::prepare(demand, around, counts)?,
            finish: Finish::of(&demand.ask, around.now),
        })
    }

    /// Whether no plugin has anything to do: every node passes.
    pub fn is_empty(&self) -> bool {
        let Self { attachments, claims, zones, spread, neighbours, devices, finish } = self;
        attachments.is_none()
            && claims.is_none()
            && zones.is_none()
            && spread.is_none()
            && neighbours.is_none()
            && devices.is_none()
            && finish.is_none()
    }

    /// Every reason of the first plugin that rejects the node.
    pub fn test(&self, node: &NodeState) -> Result<(), NodeReasons> {
        let alone = |reason: Reason| vec![reason];
        self.finish.map_or(Ok(()), |finish| finish.test(node)).map_err(alone)?;
        self.attachments.as_ref().map_or(Ok(()), |attachments| attachments.test(node)).map_err(alone)?;
        self.volumes(node)?;
        self.zones.as_ref().map_or(Ok(()), |zones| zones.test(&node.info.labels)).map_err(alone)?;
        self.spread.as_ref().map_or(Ok(()), |spread| spread.test(node)).map_err(alone)?;
        self.neighbours.as_ref().map_or(Ok(()), |neighbours| neighbours.test(node)).map_err(alone)?;
        self.devices.as_ref().map_or(Ok(()), |claims| claims.test(node)).map_err(alone)
    }

    /// Whether the node has devices for the pod's claims.
    pub(in crate::scheduling) fn has_devices(&self, node: &NodeState) -> bool {
        self.devices.as_ref().is_none_or(|claims| claims.test(node).is_ok())
    }

    /// The devices that the pod's claims are given on this node.
    pub fn devices(&self, node: &NodeState) -> Result<Vec<PrebindStep>, NodeReasons> {
        let chosen = self.devices.as_ref().map_or_else(|| Ok(Vec::new()), |claims| claims.choose(node));
        chosen.map_err(|reason| vec![reason])
    }

    /// What binds the pod's claims on this node.
    pub fn volumes(&self, node: &NodeState) -> Result<Vec<VolumeChoice>, NodeReasons> {
        self.claims.as_ref().map_or_else(|| Ok(Vec::new()), |claims| claims.choose(&node.info))
    }
}

/// What the plugins that score by more than one node found out for one pod. It holds as long as [`Cycle`] does.
#[derive(Debug, Default)]
pub struct Preferences<'a> {
    pub(in crate::scheduling) spread: Option<PreferredSpread<'a>>,
    pub(in crate::scheduling) neighbours: Option<PreferredNeighbours>,
    pub(in crate::scheduling) images: Option<LocalImages<'a>>,
    pub(in crate::scheduling) volumes: Option<VolumeCapacity<'a>>,
}

impl<'a> Preferences<'a> {
    /// Asks each plugin whose score has a weight above 0 and that has something to score for the pod. `cycle` is what the plugins
    /// found out for its filters.
    pub fn prepare(
        demand: &'a Demand,
        around: Surroundings<'a>,
        cycle: Option<&Cycle<'a>>,
        counts: &mut PodCounts,
        weights: &ScoreWeights,
    ) -> Self {
        let mut preferences = Self::default();
        if weights.counts(Plugin::PodTopologySpread) {
            preferences.spread = PreferredSpread::prepare(demand, around, counts);
        }
        if weights.counts(Plugin::InterPodAffinity) {
            preferences.neighbours = PreferredNeighbours::prepare(demand, around, counts);
        }
        if weights.counts(Plugin::ImageLocality) {
            preferences.images = LocalImages::prepare(demand, around);
        }
        if weights.counts(Plugin::VolumeBinding) {
            preferences.volumes = cycle.and_then(|cycle| VolumeCapacity::of(cycle.claims.as_ref()?));
        }
        preferences
    }

    /// Whether no plugin has anything to score.
    pub fn is_empty(&self) -> bool {
        let Self { spread, neighbours, images, volumes } = self;
        spread.is_none() && neighbours.is_none() && images.is_none() && volumes.is_none()
    }
}
