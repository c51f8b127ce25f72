//! Whether the zone labels of a pod's bound volumes admit a node.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumezone/volume_zone.go`. A claim or volume that is missing is
//! [`super::volume_binding`]'s to report.

use std::{borrow::Cow, collections::BTreeSet};

use smallvec::smallvec;

use super::{
    contract::{PreFilter, PreFiltered, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::PodCounts,
    volume_binding::VolumeBinding,
};
use crate::{
    object::{Labels, selector::LabelValues},
    scheduling::{
        model::{change::Change, footprint::Footprint, pod::Demand},
        world::{World, node_state::NodeState, object::Objects},
    },
};

/// Rejects a node in another zone or region than one of the pod's volumes.
#[derive(Debug)]
pub struct VolumeZone;

impl SchedulingPlugin for VolumeZone {
    const NAME: &'static str = "VolumeZone";
    const REACH: Reach = Reach::Cluster;

    type Reason = OtherZone;

    fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
        VolumeBinding::helps(pod, change, objects)
    }
}

impl PreFilter for VolumeZone {
    type Found<'a> = VolumeZones;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        _counts: &mut PodCounts,
    ) -> Result<Option<VolumeZones>, OtherZone> {
        Ok(VolumeZones::of(demand, world.objects()))
    }
}

/// The node is in another zone or region than a volume.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) had no available volume zone")]
pub struct OtherZone;

impl Rejection for OtherZone {
    fn name(&self) -> Cow<'static, str> {
        VolumeZone::NAME.into()
    }
}

/// A volume label and its name since Kubernetes 1.17.
const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// The zones and regions of one pod's bound volumes.
#[derive(Debug)]
pub struct VolumeZones(Vec<Zone>);

#[derive(Debug)]
struct Zone {
    label: &'static str,
    new_label: &'static str,
    values: BTreeSet<String>,
}

impl VolumeZones {
    /// The zones of the pod's volumes; `None`: they have none.
    fn of(demand: &Demand, objects: &Objects) -> Option<Self> {
        // Upstream looks at claims that are named in the pod, not at those that live as long as it.
        let named = demand.footprint.claims.iter().filter(|one| one.owner.is_none());
        let claims = named.filter_map(|one| objects.claim(&demand.footprint.namespace, &one.name));
        let volumes = claims.filter_map(|claim| objects.volume(&claim.spec.volume_name));
        let zones: Vec<_> = volumes.flat_map(|volume| zones(volume.metadata.labels.as_ref())).collect();
        (!zones.is_empty()).then_some(Self(zones))
    }

    /// Whether the node with these labels is in the zone and region of each volume. A node without such labels is.
    fn admits(&self, labels: &dyn LabelValues) -> bool {
        if !TOPOLOGY_LABELS.iter().any(|(label, _)| labels.value(label).is_some()) {
            return true;
        }
        let within = |zone: &Zone| {
            let value = labels.value(zone.label).or_else(|| labels.value(zone.new_label));
            value.is_some_and(|value| zone.values.contains(value))
        };
        self.0.iter().all(within)
    }
}

impl PreFiltered<'_, OtherZone> for VolumeZones {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<OtherZone>> {
        if self.admits(&node.info.labels) { Ok(()) } else { Err(smallvec![OtherZone]) }
    }
}

/// The zones that a volume's labels name: several are separated by `__`. A label with an empty one is passed over, as upstream does.
fn zones(labels: Option<&Labels>) -> Vec<Zone> {
    let zone = |(label, new_label): (&'static str, &'static str)| {
        let values: BTreeSet<String> =
            labels?.get(label)?.split("__").map(|value| value.trim().to_owned()).collect();
        let readable = values.iter().all(|value| !value.is_empty());
        readable.then_some(Zone { label, new_label, values })
    };
    TOPOLOGY_LABELS.into_iter().filter_map(zone).collect()
}
