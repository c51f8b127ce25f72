//! Whether a node can attach the volumes of a pod's CSI drivers beside those that it has attached.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`, without the translation of in-tree volumes.

use std::collections::{BTreeMap, BTreeSet};

use crate::scheduling::{
    change::Change,
    footprint::Footprint,
    object::{Kind, Objects},
    pod::Demand,
    reason::Reason,
    snapshot::NodeState,
};

/// A volume: its driver and what that calls it.
type Volume = (String, String);

/// The volumes that one pod attaches.
#[derive(Debug)]
pub(in crate::scheduling) struct Attachments<'a> {
    objects: &'a Objects,
    volumes: BTreeSet<Volume>,
}

impl<'a> Attachments<'a> {
    /// The volumes of the pod's claims; `None`: no CSI driver attaches any.
    pub(in crate::scheduling) fn prepare(demand: &Demand, objects: &'a Objects) -> Option<Self> {
        let volumes: BTreeSet<Volume> = volumes(&demand.footprint, objects).collect();
        (!volumes.is_empty()).then_some(Self { objects, volumes })
    }

    /// Fails on a node whose limit of volumes of a driver would be exceeded.
    pub(in crate::scheduling) fn test(&self, node: &NodeState) -> Result<(), Reason> {
        let Some(csi) = self.objects.csi_node(&node.info.name) else { return Ok(()) };
        let limits = csi.spec.drivers.iter();
        let limits = limits.filter_map(|driver| Some((&*driver.name, driver.allocatable.as_ref()?.count?)));
        let limits: BTreeMap<&str, i64> = limits.collect();
        if !self.volumes.iter().any(|(driver, _)| limits.contains_key(&**driver)) {
            return Ok(());
        }
        let in_use: BTreeSet<Volume> = node.pods.iter().flat_map(|pod| volumes(pod, self.objects)).collect();
        let all: BTreeSet<Volume> = in_use.iter().cloned().chain(self.attached(&node.info.name)).collect();
        for (driver, limit) in limits {
            let of_driver = |volume: &&Volume| volume.0 == driver;
            // A volume that is attached and that no pod there uses any more counts beside itself, as upstream counts it.
            let new = self.volumes.difference(&in_use).filter(of_driver).count();
            let used = all.iter().filter(of_driver).count();
            if new > 0 && i64::try_from(used + new).unwrap_or(i64::MAX) > limit {
                return Err(Reason::VolumeLimit);
            }
        }
        Ok(())
    }

    /// The volumes that are attached to the node, whether a pod uses them or not.
    fn attached(&self, node: &str) -> impl Iterator<Item = Volume> {
        let attachments = self.objects.attachments().filter(move |one| one.spec.node_name == node);
        attachments.filter_map(|one| {
            let volume = self.objects.volume(one.spec.source.persistent_volume_name.as_deref()?)?;
            let attacher = Some(one.spec.attacher.clone()).filter(|attacher| !attacher.is_empty())?;
            Some((attacher, volume.spec.csi.as_ref()?.volume_handle.clone()))
        })
    }
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

/// Whether the change could let a pod through that was rejected here.
pub(in crate::scheduling) fn helps(change: &Change) -> bool {
    match change {
        Change::PodRemoved(other) => !other.claims.is_empty(),
        Change::Object(kind, _) => {
            matches!(
                kind,
                Kind::CsiNode | Kind::VolumeAttachment | Kind::PersistentVolumeClaim | Kind::PersistentVolume
            )
        }
        Change::Node => true,
        Change::PodAdded(_) | Change::Nomination => false,
    }
}
