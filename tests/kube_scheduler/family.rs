//! The families of constraints and preferences: what each is called, how it is put into a cluster, and whether Berth serves it.

#[path = "family/claims.rs"]
mod claims;
#[path = "family/devices.rs"]
pub(crate) mod devices;
#[path = "family/disks.rs"]
mod disks;
#[path = "family/nodes.rs"]
mod nodes;
#[path = "family/pods.rs"]
mod pods;
#[path = "family/preferences.rs"]
mod preferences;
#[path = "family/resources.rs"]
mod resources;
#[path = "family/spread.rs"]
pub(crate) mod spread;

use crate::kube_scheduler::world::World;

/// One kind of constraint between pods and nodes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Family {
    /// `spec.schedulingGates`.
    Gates,
    /// `spec.unschedulable` of nodes.
    Cordons,
    /// Taints and tolerations.
    Taints,
    /// `spec.nodeSelector`.
    Selectors,
    /// Required node affinity.
    NodeAffinity,
    /// Host ports.
    Ports,
    /// Resources that are whole numbers.
    Resources,
    /// How many pods a node can have.
    PodCounts,
    /// Quantities finer than a thousandth of a core or a byte, in several containers. Of cpu the API server itself rounds each
    /// container up to a thousandth (kubernetes `pkg/apis/core/v1/defaults.go`, `SetDefaults_ResourceList`); of memory it stores
    /// thousandths of a byte.
    Fractions,
    /// Bound pods that are being resized in place.
    Resized,
    /// Topology spread with `DoNotSchedule`.
    Spread,
    /// Required affinity of the pod to other pods.
    PodAffinity,
    /// Required anti-affinity of the pod to other pods.
    PodAntiAffinity,
    /// Required anti-affinity of bound pods to the pod.
    ShunnedByOthers,
    /// Claims that one pod at a time may use.
    OncePod,
    /// Claims, bound or to be bound.
    Claims,
    /// Zone labels of volumes.
    VolumeZones,
    /// Disks that pods name without a claim.
    Disks,
    /// How many volumes of a CSI driver a node can have.
    AttachLimits,
    /// Features of the kubelet that a pod needs.
    NodeFeatures,
    /// Claims of devices, some of which are held by others.
    DeviceClaims,
    /// Extended resources for which classes stand, on nodes with and without a device plugin.
    ExtendedResources,
    /// Preferred node affinity.
    PreferredNodes,
    /// Taints of effect `PreferNoSchedule`.
    SoftTaints,
    /// Topology spread with `ScheduleAnyway`.
    SoftSpread,
    /// Services and controllers, whose pods are spread by default.
    DefaultSpread,
    /// Preferred affinity and anti-affinity between pods, on both sides.
    PreferredPods,
    /// Nodes whose cpu and memory are used unevenly.
    Balance,
    /// Images that nodes have already.
    Images,
    /// Room that is kept for pods which are nominated to a node.
    Nominated,
}

/// The families that Berth does not serve yet. A pod that asks for one of them must fit no node. To serve a family, delete
/// its line here; the comparison is strict from then on.
pub(crate) const NOT_SERVED: &[Family] = &[];

/// A family, its name, the plugins that decide by it, and what puts it into a cluster.
struct Row(Family, &'static str, &'static [&'static str], fn(&mut World));

const ROWS: &[Row] = &[
    Row(Family::Gates, "gates", &["SchedulingGates"], pods::gates),
    Row(Family::Cordons, "cordons", &["NodeUnschedulable"], nodes::cordons),
    Row(Family::Taints, "taints", &["TaintToleration"], nodes::taints),
    Row(Family::Selectors, "selectors", &["NodeAffinity"], nodes::selectors),
    Row(Family::NodeAffinity, "node-affinity", &["NodeAffinity", "PreFilter"], nodes::affinity),
    Row(Family::Ports, "ports", &["NodePorts"], pods::ports),
    Row(Family::Resources, "resources", &["NodeResourcesFit"], resources::whole),
    Row(Family::PodCounts, "pod-counts", &["NodeResourcesFit"], resources::pod_counts),
    Row(Family::Fractions, "fractions", &["NodeResourcesFit"], resources::fractions),
    Row(Family::Resized, "resized", &["NodeResourcesFit"], resources::resized),
    Row(Family::Spread, "spread", &["PodTopologySpread"], spread::spread),
    Row(Family::PodAffinity, "pod-affinity", &["InterPodAffinity"], spread::affinity),
    Row(Family::PodAntiAffinity, "pod-anti-affinity", &["InterPodAffinity"], spread::anti_affinity),
    Row(Family::ShunnedByOthers, "shunned-by-others", &["InterPodAffinity"], spread::shunned_by_others),
    Row(Family::OncePod, "once-pod", &["VolumeRestrictions"], disks::once_pod),
    Row(Family::Claims, "claims", &["VolumeBinding", "PreFilter"], claims::claims),
    Row(Family::VolumeZones, "volume-zones", &["VolumeZone"], disks::volume_zones),
    Row(Family::Disks, "disks", &["VolumeRestrictions"], disks::disks),
    Row(Family::AttachLimits, "attach-limits", &["NodeVolumeLimits"], disks::attach_limits),
    Row(Family::NodeFeatures, "node-features", &["NodeDeclaredFeatures"], pods::node_features),
    Row(Family::DeviceClaims, "device-claims", &["DynamicResources", "PreFilter"], devices::claims),
    Row(
        Family::ExtendedResources,
        "extended-resources",
        &["DynamicResources", "NodeResourcesFit", "PreFilter"],
        devices::extended_resources,
    ),
    Row(Family::PreferredNodes, "preferred-nodes", &["NodeAffinity"], preferences::nodes),
    Row(Family::SoftTaints, "soft-taints", &["TaintToleration"], preferences::taints),
    Row(Family::SoftSpread, "soft-spread", &["PodTopologySpread"], preferences::spread),
    Row(Family::DefaultSpread, "default-spread", &["PodTopologySpread"], preferences::default_spread),
    Row(Family::PreferredPods, "preferred-pods", &["InterPodAffinity"], preferences::pods),
    Row(Family::Balance, "balance", &["NodeResourcesBalancedAllocation"], preferences::balance),
    Row(Family::Images, "images", &["ImageLocality"], preferences::images),
    Row(Family::Nominated, "nominated", &[], pods::nominated),
];

impl Family {
    /// Every family, in the order in which they are put into a cluster.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    /// The family of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Its name, as `BERTH_PARITY_FAMILIES` has it.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether a node that kube-scheduler's plugin of this name refuses may be refused by reason of the family.
    pub(crate) fn may_decide(self, plugin: &str, nominated: bool) -> bool {
        match self {
            Self::Nominated => nominated,
            _ => !nominated && self.row().2.contains(&plugin),
        }
    }

    /// Whether it gives nodes their room: a cluster can have one such family.
    pub(crate) fn gives_room(self) -> bool {
        matches!(
            self,
            Self::Resources
                | Self::PodCounts
                | Self::Fractions
                | Self::Resized
                | Self::Balance
                | Self::Nominated
        )
    }

    /// The plugin that scores by it, where it is about scores alone.
    pub(crate) fn scorer(self) -> Option<&'static str> {
        let scores = matches!(
            self,
            Self::PreferredNodes
                | Self::SoftTaints
                | Self::SoftSpread
                | Self::DefaultSpread
                | Self::PreferredPods
                | Self::Balance
                | Self::Images
        );
        scores.then(|| self.row().2[0])
    }

    /// Whether Berth is held to kube-scheduler's answer.
    pub(crate) fn is_served(self) -> bool {
        !NOT_SERVED.contains(&self)
    }

    /// Puts the family into the cluster.
    pub(crate) fn enter(self, world: &mut World) {
        (self.row().3)(world);
    }

    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.0 == self).expect("every family has its row")
    }
}
