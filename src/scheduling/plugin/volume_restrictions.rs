//! Whether the disks that a pod names in its own spec are free on a node, and its claims that only one pod may use.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`.

use super::scene::Scene;
use crate::scheduling::{
    model::{
        change::Change,
        footprint::{ClaimUse, Footprint},
        kind::Kind,
        pod::Demand,
        reason::{NodeReasons, Reason},
    },
    world::surroundings::Surroundings,
};

/// Fails on a node where another pod has one of the disks and either of them may write.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let wanted = &scene.ask.constraints.exclusive.disks;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut taken = scene.node.pods.iter().flat_map(|pod| &pod.exclusive.disks);
    if taken.any(|taken| wanted.iter().any(|wanted| wanted.conflicts(taken))) {
        return Err(vec![Reason::DiskConflict]);
    }
    Ok(())
}

/// Fails on every node while another pod uses a claim of the pod's that only one pod may use.
pub(in crate::scheduling) fn test_claims(demand: &Demand, around: Surroundings<'_>) -> Result<(), Reason> {
    let footprint = &demand.footprint;
    let single = |used: &&ClaimUse| {
        let claim = around.objects.claim(&footprint.namespace, &used.name);
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
    let states = around.claiming.iter().filter_map(|&slot| around.slots[slot].as_ref());
    let mut pods = states.flat_map(|state| &state.pods);
    if pods.any(|pod| uses(pod)) { Err(Reason::ClaimInUse) } else { Ok(()) }
}

/// Whether the change could let a pod through that was rejected here.
pub(in crate::scheduling) fn helps(pod: &Footprint, change: &Change) -> bool {
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
        | Change::Charged(_)
        | Change::CardsClaimed(_) => false,
    }
}
