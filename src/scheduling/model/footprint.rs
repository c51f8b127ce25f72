//! What a pod is to the plugins beside its cards: its labels, what it takes of a node, and what it demands of other pods.

use std::{collections::BTreeSet, sync::Arc};

use thin_vec::ThinVec;

use super::{
    claim_use::{ClaimSource, ResourceClaimUse},
    name::full_name,
};
use super::{
    extended_resources::{ExtendedRequests, ShareRequests},
    label_set::LabelSet,
    pod_reservation::PodReservation,
    pod_selector::{PodSelector, PodTerm, WeightedTerm, requirements},
    pod_shape::{CardShape, PodShape},
    resources::ResourceAmounts,
};
use crate::device::ByClass;
use crate::object::{
    Container, LabelSelector, Labels, Pod, Volume,
    affinity::PodAffinity,
    affinity::WeightedPodAffinityTerm,
    container::Protocol,
    pod::{ExtendedResourceClaimStatus, TopologySpread},
};

/// How the claim is called in a pod that serves its extended resources: entries of a pod have names of DNS labels.
const EXTENDED: &str = "<extended-resources>";

/// What one pod is to the plugins beside its cards.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Footprint {
    /// The pod's namespace.
    pub namespace: Arc<str>,
    /// The pod's labels.
    pub labels: LabelSet,
    /// Whether the pod is being deleted: spreading does not count it.
    pub terminating: bool,
    /// Resources that Kubernetes accounts.
    pub resources: Arc<ResourceAmounts>,
    /// Shares of cards.
    pub cards: Option<Arc<CardShape>>,
    /// Ports and disks of a node that only one pod can have.
    pub exclusive: Arc<PortsAndDisks>,
    /// Claims of volumes, in the order of the pod's volumes.
    pub claims: ThinVec<ClaimUse>,
    /// Claims of devices, in the order of the pod's entries.
    pub resource_claims: ThinVec<ResourceClaimUse>,
    /// Extended resources, while the pod waits or where a claim serves some.
    pub extended: Option<Arc<ExtendedRequests>>,
    /// Which pods it stands beside, and which not.
    pub neighbours: Arc<NeighbourTerms>,
    /// Over which domains it is spread with pods like it.
    pub spread: Arc<SpreadConstraints>,
    /// What it says of Reservations, where it uses one or may.
    pub reservation: Option<Arc<PodReservation>>,
}

/// A pod's spread constraints.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct SpreadConstraints {
    /// Those that must hold.
    pub required: Vec<SpreadConstraint>,
    /// Those that only score: `ScheduleAnyway`.
    pub preferred: Vec<SpreadConstraint>,
}

/// The terms of a pod's affinity and anti-affinity to other pods.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NeighbourTerms {
    /// Required terms of affinity.
    pub affinity: Vec<PodTerm>,
    /// Required terms of anti-affinity.
    pub anti_affinity: Vec<Arc<PodTerm>>,
    /// Preferred terms of affinity, and those of anti-affinity with a weight below 0.
    pub preferred: Vec<WeightedTerm>,
}

/// A claim that a pod uses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ClaimUse {
    /// The claim's name.
    pub name: Arc<str>,
    /// The pod's uid, for a claim that lives as long as the pod: another pod's of this name is not meant.
    pub owner: Option<Arc<str>>,
}

/// Ports and disks of a node that only one pod can have.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct PortsAndDisks {
    /// Ports of the node.
    pub ports: Vec<HostPort>,
    /// Disks that are named in the pod itself.
    pub disks: Vec<Disk>,
}

impl PortsAndDisks {
    /// Whether there are none.
    pub fn is_nothing(&self) -> bool {
        self.ports.is_empty() && self.disks.is_empty()
    }
}

/// A port of the node that a container listens on.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostPort {
    /// The node's address; `0.0.0.0`: every one.
    pub ip: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

/// A disk that is named in the pod itself, not through a claim.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Disk {
    /// A Google persistent disk.
    Gce {
        /// Its name.
        name: String,
        /// What the pod does with it.
        access: Access,
    },
    /// An Amazon volume.
    Aws {
        /// Its id.
        id: String,
    },
    /// An iSCSI disk.
    Iscsi {
        /// The target's qualified name.
        iqn: String,
        /// What the pod does with it.
        access: Access,
    },
    /// A Ceph block device.
    Rbd {
        /// The monitors of the Ceph cluster: two lists with a monitor in common are of one cluster.
        monitors: Vec<String>,
        /// The pool.
        pool: String,
        /// The image.
        image: String,
        /// What the pod does with it.
        access: Access,
    },
}

/// What a pod does with a disk.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Access {
    /// It only reads.
    ReadOnly,
    /// It may write.
    ReadWrite,
}

/// How evenly matching pods must be spread over the domains of a topology key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SpreadConstraint {
    /// How many more pods one domain may have than the one with the fewest.
    pub max_skew: i64,
    /// The node label whose equal values make one domain.
    pub topology_key: Arc<str>,
    /// Which pods count; one without requirements counts none.
    pub pods: PodSelector,
    /// Below so many domains the fewest are taken to be 0.
    pub min_domains: usize,
    /// Whether nodes that the pod's node affinity rejects are left out.
    pub node_affinity: Inclusion,
    /// Whether nodes with taints that the pod does not tolerate are left out.
    pub node_taints: Inclusion,
}

/// Whether a test of nodes decides which domains count.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Inclusion {
    /// Only nodes that pass it.
    Honor,
    /// All nodes.
    Ignore,
}

impl Footprint {
    /// What the pod is to the plugins, with its resources as they were read.
    pub fn of_pod(pod: &Pod, resources: ResourceAmounts) -> Self {
        let namespace: Arc<str> = pod.metadata.namespace.as_str().into();
        let no_labels = Labels::new();
        let labels = pod.metadata.labels.as_ref().unwrap_or(&no_labels);
        let terms = |affinity: &Option<PodAffinity>| -> Vec<PodTerm> {
            let required = affinity.iter().flat_map(|affinity| &affinity.required);
            required.map(|term| PodTerm::read(term, &namespace, labels)).collect()
        };
        let preferred = |affinity: &Option<PodAffinity>, sign: i64| -> Vec<WeightedTerm> {
            let preferred = affinity.iter().flat_map(|affinity| &affinity.preferred);
            let read = |one: &WeightedPodAffinityTerm| WeightedTerm {
                term: PodTerm::read(&one.pod_affinity_term, &namespace, labels),
                weight: sign * i64::from(one.weight),
            };
            preferred.map(read).collect()
        };
        let read = |spread: &TopologySpread| SpreadConstraint::read(spread, &namespace, labels);
        let (scored, required): (Vec<_>, Vec<_>) = pod
            .spec
            .topology_spread_constraints
            .iter()
            .partition(|spread: &&TopologySpread| spread.when_unsatisfiable == "ScheduleAnyway");
        Self {
            terminating: pod.metadata.deletion_timestamp.is_some(),
            resources: Arc::new(resources),
            cards: None,
            exclusive: Arc::new(PortsAndDisks::of_pod(pod)),
            claims: pod.spec.volumes.iter().filter_map(|volume| ClaimUse::read(volume, pod)).collect(),
            resource_claims: ResourceClaimUse::all(pod).into(),
            extended: ExtendedRequests::of_pod(pod).map(Arc::new),
            neighbours: Arc::new(NeighbourTerms {
                affinity: terms(&pod.spec.affinity.pod_affinity),
                anti_affinity: terms(&pod.spec.affinity.pod_anti_affinity)
                    .into_iter()
                    .map(Arc::new)
                    .collect(),
                preferred: [
                    preferred(&pod.spec.affinity.pod_affinity, 1),
                    preferred(&pod.spec.affinity.pod_anti_affinity, -1),
                ]
                .concat(),
            }),
            spread: Arc::new(SpreadConstraints {
                required: required.into_iter().map(read).collect(),
                preferred: scored.into_iter().map(read).collect(),
            }),
            namespace,
            labels: LabelSet::from(labels),
            reservation: None,
        }
    }

    /// What the pod asks for, as it counts among those that may come; `None`: it asks for no cards.
    pub fn shape(&self) -> Option<PodShape> {
        Some(PodShape::new(&self.resources, self.cards.as_deref()?.clone()))
    }

    /// The names in its namespace of its claims of devices, the one that serves extended resources, or may, last.
    pub fn claim_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let named = self.resource_claims.iter().filter_map(|used| used.claim.as_ref());
        named.chain(self.extended.iter().map(|extended| &extended.claim))
    }

    /// The full names of its claims of devices.
    pub fn claims_of_devices(&self) -> impl Iterator<Item = Arc<str>> {
        let names = self.resource_claims.iter().filter_map(|used| used.claim.as_ref());
        names.map(|name| full_name(&self.namespace, name))
    }

    /// Whether claims of devices serve it, or may on some nodes.
    pub(in crate::scheduling) fn may_use_devices(&self) -> bool {
        !self.resource_claims.is_empty() || self.extended.is_some()
    }

    /// With shares of cards that a class of devices may serve; beside it, by which class.
    #[must_use]
    pub fn sharing(mut self, shares: Option<ShareRequests>) -> (Self, Option<ByClass>) {
        let sharing =
            self.extended.as_ref().zip(shares).and_then(|(extended, shares)| extended.sharing(shares));
        let by_class = sharing.as_ref().and_then(|sharing| Some(sharing.shares.as_ref()?.by_class.clone()));
        if let Some(sharing) = sharing {
            self.extended = Some(Arc::new(sharing));
        }
        (self, by_class)
    }

    /// The same of a pod that is bound, with the claim that serves extended resources of it: what that serves is not taken from the node's
    /// own.
    #[must_use]
    pub fn bound(mut self, served: Option<&ExtendedResourceClaimStatus>) -> Self {
        let Some(served) = served else { return Self { extended: None, ..self } };
        let by_claim =
            |name: &str| served.request_mappings.iter().any(|mapping| mapping.resource_name == *name);
        self.resources = Arc::new(Arc::unwrap_or_clone(self.resources).without(by_claim));
        let (entry, claim) = (EXTENDED.into(), served.resource_claim_name.as_str().into());
        self.resource_claims.push(ResourceClaimUse {
            entry,
            claim: Some(claim),
            source: ClaimSource::Extended,
        });
        self
    }

    /// Whether where the pod may go depends on more than one node.
    pub fn is_cross_node(&self) -> bool {
        let NeighbourTerms { affinity, anti_affinity, .. } = &*self.neighbours;
        let alone = affinity.is_empty() && anti_affinity.is_empty() && self.spread.required.is_empty();
        !alone || !self.claims.is_empty() || !self.resource_claims.is_empty()
    }

    /// Whether the pod's terms move the scores of nodes for other pods, once it is placed.
    pub fn weighs(&self) -> bool {
        !self.neighbours.affinity.is_empty() || !self.neighbours.preferred.is_empty()
    }
}

impl ClaimUse {
    fn read(volume: &Volume, pod: &Pod) -> Option<Self> {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(Self { name: claim.claim_name.as_str().into(), owner: None });
        }
        volume.ephemeral?;
        let name = format!("{}-{}", pod.metadata.name, volume.name);
        Some(Self { name: name.into(), owner: Some(pod.metadata.uid.as_str().into()) })
    }
}

impl SpreadConstraint {
    fn read(spread: &TopologySpread, namespace: &Arc<str>, labels: &Labels) -> Self {
        let merged = requirements(&spread.match_label_keys, "In", labels);
        let policy = |policy: &Option<String>, default| match policy.as_deref() {
            Some("Honor") => Inclusion::Honor,
            Some("Ignore") => Inclusion::Ignore,
            _ => default,
        };
        let pods = PodSelector {
            namespaces: BTreeSet::from([namespace.clone()]),
            namespace_selector: None,
            labels: spread.label_selector.clone().map(|selector| merged.fold(selector, LabelSelector::and)),
        };
        Self {
            max_skew: spread.max_skew.into(),
            topology_key: spread.topology_key.as_str().into(),
            pods,
            min_domains: spread.min_domains.and_then(|least| usize::try_from(least).ok()).unwrap_or(1),
            node_affinity: policy(&spread.node_affinity_policy, Inclusion::Honor),
            node_taints: policy(&spread.node_taints_policy, Inclusion::Ignore),
        }
    }
}

impl PortsAndDisks {
    fn of_pod(pod: &Pod) -> Self {
        let spec = &pod.spec;
        // Ports of an init container that ends are free again before the pod is.
        let sidecars = spec.init_containers.iter().filter(|container| container.is_sidecar());
        let running = spec.containers.iter().chain(sidecars);
        let ports = running.flat_map(|container| host_ports(container, spec.host_network)).collect();
        Self { ports, disks: spec.volumes.iter().filter_map(Disk::read).collect() }
    }
}

/// On the node's network every port is one of the node, as the API server defaults it.
fn host_ports(container: &Container, host_network: bool) -> impl Iterator<Item = HostPort> + '_ {
    container.ports.iter().filter_map(move |port| {
        let number = if port.host_port == 0 && host_network { port.container_port } else { port.host_port };
        (number > 0).then(|| HostPort {
            ip: if port.host_ip.is_empty() { "0.0.0.0".to_owned() } else { port.host_ip.clone() },
            protocol: port.protocol,
            port: number,
        })
    })
}

impl HostPort {
    /// Whether two pods on one node can't both have their port.
    pub fn conflicts(&self, other: &Self) -> bool {
        let any = |port: &Self| port.ip == "0.0.0.0";
        (self.port, self.protocol) == (other.port, other.protocol)
            && (any(self) || any(other) || self.ip == other.ip)
    }
}

impl Disk {
    fn read(volume: &Volume) -> Option<Self> {
        let access = |read_only| if read_only { Access::ReadOnly } else { Access::ReadWrite };
        if let Some(disk) = &volume.gce_persistent_disk {
            return Some(Self::Gce { name: disk.pd_name.clone(), access: access(disk.read_only) });
        }
        if let Some(volume) = &volume.aws_elastic_block_store {
            return Some(Self::Aws { id: volume.volume_id.clone() });
        }
        if let Some(disk) = &volume.iscsi {
            return Some(Self::Iscsi { iqn: disk.iqn.clone(), access: access(disk.read_only) });
        }
        volume.rbd.as_ref().map(|rbd| Self::Rbd {
            monitors: rbd.monitors.clone(),
            pool: rbd.pool.clone(),
            image: rbd.image.clone(),
            access: access(rbd.read_only),
        })
    }

    /// Whether two pods on one node can't both have their disk: the same one, unless both only read
    /// (v1.36 `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`; an Amazon volume is never shared).
    pub fn conflicts(&self, other: &Self) -> bool {
        let written = |one: Access, other: Access| (one, other) != (Access::ReadOnly, Access::ReadOnly);
        match (self, other) {
            (Self::Gce { name, access }, Self::Gce { name: other, access: its }) => {
                name == other && written(*access, *its)
            }
            (Self::Aws { id }, Self::Aws { id: other }) => id == other,
            (Self::Iscsi { iqn, access }, Self::Iscsi { iqn: other, access: its }) => {
                iqn == other && written(*access, *its)
            }
            (
                Self::Rbd { monitors, pool, image, access },
                Self::Rbd { monitors: others, pool: its_pool, image: its_image, access: its },
            ) => {
                (pool, image) == (its_pool, its_image)
                    && monitors.iter().any(|monitor| others.contains(monitor))
                    && written(*access, *its)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(spec: &str) -> Footprint {
        let pod =
            serde_json::from_str(&format!(r#"{{"metadata":{{"namespace":"a"}},"spec":{spec}}}"#)).unwrap();
        Footprint::of_pod(&pod, ResourceAmounts::default())
    }

    #[test]
    fn host_ports_conflict_by_protocol_number_and_address() {
        let ports = footprint(
            r#"{"containers":[{"ports":[{"hostPort":80},{"hostPort":80,"protocol":"UDP"},
                {"hostPort":81,"hostIP":"10.0.0.1"},{"containerPort":82}]}],
                "initContainers":[{"ports":[{"hostPort":90}]},
                {"restartPolicy":"Always","ports":[{"hostPort":91}]}]}"#,
        );
        let ports = &ports.exclusive.ports;
        assert_eq!(ports.iter().map(|port| port.port).collect::<Vec<_>>(), [80, 80, 81, 91]);
        let tcp = |ip: &str, port| HostPort { ip: ip.to_owned(), protocol: Protocol::Tcp, port };
        for (other, conflicts) in [
            (tcp("0.0.0.0", 80), true),
            (tcp("10.0.0.9", 80), true),
            (tcp("0.0.0.0", 81), true),
            (tcp("10.0.0.1", 81), true),
            (tcp("10.0.0.2", 81), false),
            (tcp("0.0.0.0", 82), false),
        ] {
            assert_eq!(ports.iter().any(|port| port.conflicts(&other)), conflicts, "{other:?}");
        }
    }

    #[test]
    fn on_the_nodes_network_a_container_port_is_a_host_port() {
        let pod = footprint(r#"{"hostNetwork":true,"containers":[{"ports":[{"containerPort":8080}]}]}"#);
        assert_eq!(pod.exclusive.ports[0].port, 8080);
    }

    #[test]
    fn a_disk_is_shared_only_by_readers() {
        let disks =
            |volumes: &str| footprint(&format!(r#"{{"volumes":[{volumes}]}}"#)).exclusive.disks.clone();
        let pairs = [
            (
                r#"{"gcePersistentDisk":{"pdName":"d"}}"#,
                r#"{"gcePersistentDisk":{"pdName":"d","readOnly":true}}"#,
                true,
            ),
            (
                r#"{"gcePersistentDisk":{"pdName":"d","readOnly":true}}"#,
                r#"{"gcePersistentDisk":{"pdName":"d","readOnly":true}}"#,
                false,
            ),
            (
                r#"{"awsElasticBlockStore":{"volumeID":"v","readOnly":true}}"#,
                r#"{"awsElasticBlockStore":{"volumeID":"v","readOnly":true}}"#,
                true,
            ),
            (r#"{"iscsi":{"iqn":"i"}}"#, r#"{"iscsi":{"iqn":"j"}}"#, false),
            (
                r#"{"rbd":{"monitors":["a","b"],"image":"x"}}"#,
                r#"{"rbd":{"monitors":["b"],"image":"x","pool":"rbd"}}"#,
                true,
            ),
            (r#"{"rbd":{"monitors":["a"],"image":"x"}}"#, r#"{"rbd":{"monitors":["b"],"image":"x"}}"#, false),
        ];
        for (one, other, conflicts) in pairs {
            assert_eq!(disks(one)[0].conflicts(&disks(other)[0]), conflicts, "{one} and {other}");
        }
    }
}
