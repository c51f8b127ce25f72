//! Whether a node can attach the volumes of a pod's CSI drivers beside those that it has attached.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`, without the translation of in-tree volumes.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use smallvec::smallvec;

use super::{
    contract::{PreFilter, PreFiltered, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::PodCounts,
};
use crate::scheduling::{
    model::{change::Change, footprint::Footprint, kind::Kind, pod::Demand},
    world::{World, node_state::NodeState, object::Objects},
};

/// Rejects a node whose limit of volumes of a driver would be exceeded.
#[derive(Debug)]
pub struct NodeVolumeLimits;

impl SchedulingPlugin for NodeVolumeLimits {
    const NAME: &'static str = "NodeVolumeLimits";
    const REACH: Reach = Reach::Cluster;

    type Reason = VolumeLimit;

    fn helps(_pod: &Footprint, change: &Change, _objects: &Objects) -> bool {
        match change {
            Change::PodRemoved(other) => !other.claims.is_empty(),
            Change::Object(kind, _) => {
                matches!(
                    kind,
                    Kind::CsiNode
                        | Kind::VolumeAttachment
                        | Kind::PersistentVolumeClaim
                        | Kind::PersistentVolume
                )
            }
            Change::Node => true,
            Change::PodAdded(_)
            | Change::Nomination
            | Change::DevicesFreed
            | Change::ResourcesFreed
            | Change::Charged(_)
            | Change::CardsClaimed(_) => false,
        }
    }
}

impl PreFilter for NodeVolumeLimits {
    type Found<'a> = Attachments<'a>;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        _counts: &mut PodCounts,
    ) -> Result<Option<Attachments<'a>>, VolumeLimit> {
        Ok(Attachments::of(demand, world.objects()))
    }
}

/// The node can't attach so many volumes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) exceed max volume count")]
pub struct VolumeLimit;

impl Rejection for VolumeLimit {
    fn name(&self) -> Cow<'static, str> {
        NodeVolumeLimits::NAME.into()
    }
}

/// A volume: its driver and what that calls it.
type Volume = (String, String);

/// The volumes that one pod attaches.
#[derive(Debug)]
pub struct Attachments<'a> {
    objects: &'a Objects,
    volumes: BTreeSet<Volume>,
}

impl<'a> Attachments<'a> {
    /// The volumes of the pod's claims; `None`: no CSI driver attaches any.
    fn of(demand: &Demand, objects: &'a Objects) -> Option<Self> {
        let volumes: BTreeSet<Volume> = volumes(&demand.footprint, objects).collect();
        (!volumes.is_empty()).then_some(Self { objects, volumes })
    }
}

impl PreFiltered<'_, VolumeLimit> for Attachments<'_> {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<VolumeLimit>> {
        let Some(csi) = self.objects.csi_node(&node.info.name) else { return Ok(()) };
        let limits = csi.spec.drivers.iter();
        let limits = limits.filter_map(|driver| Some((&*driver.name, driver.allocatable.as_ref()?.count?)));
        let limits: BTreeMap<&str, i64> = limits.collect();
        if !self.volumes.iter().any(|(driver, _)| limits.contains_key(&**driver)) {
            return Ok(());
        }
        let in_use: BTreeSet<Volume> = node.pods.iter().flat_map(|pod| volumes(pod, self.objects)).collect();
        let in_use_by_name = in_use.iter().map(|(driver, handle)| (&**driver, &**handle));
        let all: BTreeSet<(&str, &str)> = in_use_by_name.chain(attached(node, self.objects)).collect();
        for (driver, limit) in limits {
            // A volume that is attached and that no pod there uses any more counts beside itself, as upstream counts it.
            let new = self.volumes.difference(&in_use).filter(|volume| volume.0 == driver).count();
            let used = all.iter().filter(|volume| volume.0 == driver).count();
            if new > 0 && i64::try_from(used + new).unwrap_or(i64::MAX) > limit {
                return Err(smallvec![VolumeLimit]);
            }
        }
        Ok(())
    }
}

/// The volumes that are attached to a node, whether a pod uses them or not, each with its driver.
fn attached<'a>(node: &NodeState, objects: &'a Objects) -> impl Iterator<Item = (&'a str, &'a str)> {
    objects.attachments(&node.info.name).filter_map(|one| {
        let volume = objects.volume(one.spec.source.persistent_volume_name.as_deref()?)?;
        let csi = volume.spec.csi.as_ref()?;
        Some((&*one.spec.attacher, &*csi.volume_handle))
    })
}

/// The volumes of a pod's claims: of one that is not bound yet, the one that its class will have made.
fn volumes<'a>(pod: &'a Footprint, objects: &'a Objects) -> impl Iterator<Item = Volume> + 'a {
    pod.claims.iter().filter_map(move |used| {
        let claim = objects.claim(&pod.namespace, &used.name)?;
        let (driver, handle) = if let Some(volume) = objects.volume(&claim.spec.volume_name) {
            let csi = volume.spec.csi.as_ref()?;
            (csi.driver.clone(), csi.volume_handle.clone())
        } else {
            let class = objects.class(claim.class())?;
            (class.provisioner.clone(), format!("claim {}/{}", pod.namespace, used.name))
        };
        (!driver.is_empty() && !handle.is_empty()).then_some((driver, handle))
    })
}
