//! The tests that a node must pass before a pod may be placed on it, and what scores the nodes that pass: one table of plugins, one file
//! for each, named as in kube-scheduler. [`devices`] and [`shares_only`] are Berth's own, and [`mod@tdm`] is Volcano's.
//!
//! What a plugin is made of, [`contract`] says. Most look at one pod and one node, so that their answer holds until the node changes
//! ([`super::decide::class`] keeps it). Those that look at more than one node are asked once for a pod ([`cycle`]) and then test the nodes that
//! passed the others.

pub mod allocate;
pub mod amounts;
pub mod claim_fits;
pub mod contract;
pub mod cycle;
pub mod devices;
pub mod dynamic_resources;
pub mod filter;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod least_waste;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_counts;
pub mod pod_topology_spread;
pub mod rejection;
mod row;
pub mod scene;
pub mod score;
pub mod shares_only;
pub mod taint_toleration;
pub mod tdm;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use std::fmt;

use super::{
    model::{change::Change, footprint::Footprint, kube_scheduler::KubeScheduler},
    world::object::Objects,
};
use contract::{Cure, FilterStage, Reach, Rejection, Shortage};
use row::{InTable, Row};

/// Makes the table: each line is a plugin, the module that it is in, its reasons, and the points at which it takes part (the builders of [`Row`]).
macro_rules! table {
    ($($(#[doc = $words:literal])* $plugin:ident in $module:ident, $reason:ty: $($point:ident)+;)+) => {
        /// A plugin, in the order in which they run.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Plugin {
            $($(#[doc = $words])* $plugin,)+
        }

        /// Why one node can't serve one pod: a reason of the plugin that rejects it.
        #[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Reason {
            $($(#[doc = $words])* $plugin($reason),)+
        }

        /// Every plugin, in the order in which they run.
        const TABLE: &[Row] = &[$(Row::of::<$module::$plugin>()$(.$point::<$module::$plugin>())+,)+];

        $(impl InTable for $module::$plugin {
            const PLUGIN: Plugin = Plugin::$plugin;

            fn reason(reason: $reason) -> Reason {
                Reason::$plugin(reason)
            }

            fn own(reason: &Reason) -> Option<&$reason> {
                match reason {
                    Reason::$plugin(reason) => Some(reason),
                    _ => None,
                }
            }
        })+

        impl Reason {
            /// The plugin that rejects the node for it.
            pub const fn plugin(&self) -> Plugin {
                match self {
                    $(Self::$plugin(_) => Plugin::$plugin,)+
                }
            }

            /// The reason without the amounts of one node: nodes are counted together that fail for the same.
            #[must_use]
            pub fn kind(&self) -> Self {
                match self {
                    $(Self::$plugin(reason) => $module::$plugin::kind(reason),)+
                }
            }

            fn rejection(&self) -> &dyn Rejection {
                match self {
                    $(Self::$plugin(reason) => reason,)+
                }
            }
        }
    };
}

// Of one node, the cheapest tests come first, as in kube-scheduler (v1.36 `pkg/scheduler/apis/config/v1/default_plugins.go`); the cards come last.
// Scores are summed in this order: that of the cards alone has a fraction, and comes last too.
table! {
    /// Cordons.
    NodeUnschedulable in node_unschedulable, node_unschedulable::Cordoned: filter;
    /// Taints of the node and tolerations of the pod.
    TaintToleration in taint_toleration, taint_toleration::UntoleratedTaint: filter score;
    /// Node selector and node affinity.
    NodeAffinity in node_affinity, node_affinity::AffinityMismatch: filter score;
    /// Ports of the node.
    NodePorts in node_ports, node_ports::PortTaken: filter;
    /// Resources that Kubernetes accounts.
    NodeResourcesFit in node_resources_fit, node_resources_fit::ResourceReason: filter pre_score;
    /// What stays of use for the pods that may come; it only scores.
    LeastWaste in least_waste, std::convert::Infallible: room_score;
    /// How evenly cpu and memory are used; it only scores.
    NodeResourcesBalancedAllocation in node_resources_balanced_allocation, std::convert::Infallible: score;
    /// Images that the node has already; it only scores.
    ImageLocality in image_locality, std::convert::Infallible: pre_score;
    /// Disks that are named in the pod itself, and claims that only one pod may use.
    VolumeRestrictions in volume_restrictions, volume_restrictions::VolumeInUse: filter pre_filter;
    /// Features of the kubelet.
    NodeDeclaredFeatures in node_declared_features, node_declared_features::FeatureMissing: filter;
    /// Nodes that are kept for shares.
    SharesOnly in shares_only, shares_only::KeptForShares: pre_filter;
    /// Windows of revocable zones; named as Volcano's plugin.
    Tdm in tdm, tdm::ZoneReason: filter pre_filter score;
    /// How many volumes a CSI driver can attach to the node.
    NodeVolumeLimits in node_volume_limits, node_volume_limits::VolumeLimit: pre_filter;
    /// Claims: their volumes' node affinity, and volumes that are bound or made with the pod.
    VolumeBinding in volume_binding, volume_binding::VolumeReason: pre_filter;
    /// Zone labels of volumes.
    VolumeZone in volume_zone, volume_zone::OtherZone: pre_filter;
    /// Spread constraints.
    PodTopologySpread in pod_topology_spread, pod_topology_spread::SpreadReason: pre_filter pre_score;
    /// Affinity and anti-affinity between pods.
    InterPodAffinity in inter_pod_affinity, inter_pod_affinity::NeighbourReason: pre_filter pre_score;
    /// Claims of devices (Dynamic Resource Allocation).
    DynamicResources in dynamic_resources, dynamic_resources::ClaimRejection: pre_filter;
    /// Cards: fit, quota and the device plugin's state.
    Devices in devices, devices::DeviceReason: filter score;
}

/// Why one node can't serve one pod: every reason of the first plugin that rejects it.
pub type NodeReasons = Vec<Reason>;

impl Plugin {
    /// The plugins that score.
    pub fn scoring() -> impl Iterator<Item = Self> {
        TABLE.iter().filter(|row| row.weight.is_some()).map(|row| row.plugin)
    }

    /// By how much its score is multiplied where nothing is set and this release of kube-scheduler is followed; 0 if it does not score.
    pub fn default_weight(self, followed: KubeScheduler) -> u32 {
        self.row().weight.map_or(0, |weight| weight.of(followed))
    }

    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name, as kube-scheduler's configuration spells it.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// On what its answer for a node depends.
    pub const fn reach(self) -> Reach {
        self.row().reach
    }

    /// Whether the change could let a pod through that it has rejected.
    pub fn helps(self, pod: &Footprint, change: &Change, objects: &Objects) -> bool {
        (self.row().helps)(pod, change, objects)
    }
}

impl Reason {
    /// Whether it is about the node's cards: what a pod asks of them may be changed.
    pub fn is_of_cards(&self) -> bool {
        matches!(self, Self::Devices(reason) if reason.is_of_cards())
    }

    /// The name, as `berth simulate --explain` prints it.
    pub fn name(&self) -> String {
        self.rejection().name().into_owned()
    }

    /// Its words without the devices and pools that they name, which are not the pod's owner's.
    pub fn own_words(&self) -> String {
        self.rejection().own_words()
    }

    /// What more than its kind the pod's owner is told of the nearest node; `None`: nothing.
    pub fn own_detail(&self) -> Option<String> {
        self.rejection().own_detail()
    }

    /// What could make the node have the pod.
    pub fn cure(&self) -> Cure {
        self.rejection().cure()
    }

    /// The resource of which the node has too little, where that is the reason.
    pub fn shortage(&self) -> Option<Shortage<'_>> {
        self.rejection().shortage()
    }

    /// How many filters a node has passed that is rejected for this, in the order in which they run.
    pub fn passed(&self) -> usize {
        let plugin = self.plugin();
        let only = if plugin.row().test.is_some() { FilterStage::Node } else { FilterStage::Prepared };
        match self.rejection().stage().unwrap_or(only) {
            FilterStage::Node => plugin as usize,
            FilterStage::Prepared => TABLE.len() + plugin as usize,
            FilterStage::Quota => 2 * TABLE.len(),
        }
    }
}

/// In kube-scheduler's words, where it has some.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rejection().fmt(formatter)
    }
}
