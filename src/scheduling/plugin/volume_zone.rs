//! Whether the zone labels of a pod's bound volumes admit a node.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumezone/volume_zone.go`. A claim or volume that is missing is
//! [`super::volume_binding`]'s to report.

use std::collections::BTreeSet;

use crate::{
    object::Labels,
    scheduling::{
        model::{pod::Demand, reason::Reason},
        world::object::Objects,
    },
};

/// A volume label and its name since Kubernetes 1.17.
const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// The zones and regions of one pod's bound volumes.
#[derive(Debug)]
pub(in crate::scheduling) struct Zones(Vec<Zone>);

#[derive(Debug)]
struct Zone {
    label: &'static str,
    new_label: &'static str,
    values: BTreeSet<String>,
}

impl Zones {
    /// The zones of the pod's volumes; `None`: they have none.
    pub(in crate::scheduling) fn prepare(demand: &Demand, objects: &Objects) -> Option<Self> {
        // Upstream looks at claims that are named in the pod, not at those that live as long as it.
        let named = demand.footprint.claims.iter().filter(|one| one.owner.is_none());
        let claims = named.filter_map(|one| objects.claim(&demand.footprint.namespace, &one.name));
        let volumes = claims.filter_map(|claim| objects.volume(&claim.spec.volume_name));
        let zones: Vec<_> = volumes.flat_map(|volume| zones(volume.metadata.labels.as_ref())).collect();
        (!zones.is_empty()).then_some(Self(zones))
    }

    /// Fails on a node in another zone or region than one of the volumes. A node without such labels passes.
    pub(in crate::scheduling) fn test(&self, labels: &Labels) -> Result<(), Reason> {
        if !TOPOLOGY_LABELS.iter().any(|(label, _)| labels.contains_key(*label)) {
            return Ok(());
        }
        let within = |zone: &Zone| {
            let value = labels.get(zone.label).or_else(|| labels.get(zone.new_label));
            value.is_some_and(|value| zone.values.contains(value))
        };
        if self.0.iter().all(within) { Ok(()) } else { Err(Reason::VolumeZone) }
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
