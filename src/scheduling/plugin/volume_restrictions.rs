//! Whether the disks that a pod names in its own spec are free on a node, and its claims that only one pod may use.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`.

use std::{borrow::Cow, convert::Infallible};

use smallvec::smallvec;

use super::{
    contract::{Filter, FilterStage, PreFilter, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::PodCounts,
    scene::Scene,
};
use crate::scheduling::{
    model::{
        change::Change,
        footprint::{ClaimUse, Footprint},
        kind::Kind,
        pod::{Ask, Demand},
    },
    world::{World, node_parts::NodePart, object::Objects},
};

/// Rejects a node where another pod has one of the disks and either of them may write, and every node while another pod uses a claim of the
/// pod's that only one pod may use.
#[derive(Debug)]
pub struct VolumeRestrictions;

impl SchedulingPlugin for VolumeRestrictions {
    const NAME: &'static str = "VolumeRestrictions";
    const REACH: Reach = Reach::Cluster;

    type Reason = VolumeInUse;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }

    fn helps(pod: &Footprint, change: &Change, _objects: &Objects) -> bool {
        let shares = |other: &Footprint| {
            other.namespace == pod.namespace
                && other.claims.iter().any(|one| pod.claims.iter().any(|own| own.name == one.name))
        };
        match change {
            Change::PodRemoved(other) => shares(other),
            Change::Object(Kind::PersistentVolumeClaim, _) => true,
            Change::Object(..)
            | Change::PodAdded(_)
            | Change::Node
            | Change::Nomination
            | Change::DevicesFreed
            | Change::ResourcesFreed
            | Change::Charged(_)
            | Change::CardsClaimed(_) => false,
        }
    }
}

impl Filter for VolumeRestrictions {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<VolumeInUse>> {
        let wanted = &scene.ask.constraints.exclusive.disks;
        if wanted.is_empty() {
            return Ok(());
        }
        let mut taken = scene.node.pods.iter().flat_map(|pod| &pod.exclusive.disks);
        if taken.any(|taken| wanted.iter().any(|wanted| wanted.conflicts(taken))) {
            return Err(smallvec![VolumeInUse::Disk]);
        }
        Ok(())
    }
}

impl PreFilter for VolumeRestrictions {
    type Found<'a> = Infallible;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        _counts: &mut PodCounts,
    ) -> Result<Option<Infallible>, VolumeInUse> {
        test_claims(demand, world).map(|()| None)
    }
}

/// What another pod uses.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum VolumeInUse {
    /// A disk that the pod needs, on this node.
    #[error("node(s) had no available disk")]
    Disk,
    /// A claim that only one pod may use.
    #[error(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    )]
    Claim,
}

impl Rejection for VolumeInUse {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Disk => VolumeRestrictions::NAME.into(),
            Self::Claim => "ClaimInUse".into(),
        }
    }

    fn stage(&self) -> Option<FilterStage> {
        match self {
            Self::Disk => Some(FilterStage::Node),
            Self::Claim => Some(FilterStage::Prepared),
        }
    }
}

/// Fails while another pod uses a claim of the pod's that only one pod may use.
fn test_claims(demand: &Demand, world: &World) -> Result<(), VolumeInUse> {
    let footprint = &demand.footprint;
    let single = |used: &&ClaimUse| {
        let claim = world.objects().claim(&footprint.namespace, &used.name);
        let modes = claim.map(|claim| &claim.spec.access_modes);
        used.owner.is_none() && modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
    };
    let single: Vec<&ClaimUse> = footprint.claims.iter().filter(single).collect();
    if single.is_empty() {
        return Ok(());
    }
    let uses = |pod: &Footprint| {
        pod.namespace == footprint.namespace
            && pod
                .claims
                .iter()
                .any(|one| one.owner.is_none() && single.iter().any(|wanted| wanted.name == one.name))
    };
    let states = world.nodes.claiming();
    let mut pods = states.flat_map(|state| &state.pods);
    if pods.any(|pod| uses(pod)) { Err(VolumeInUse::Claim) } else { Ok(()) }
}
