//! Koordinator's devices: what its node side writes about a node, what pods ask by its names, and what a pod was given.
//!
//! Source: koordinator a7a1b76 `apis/extension/device_share.go`, `apis/scheduling/v1alpha1/device_types.go`,
//! `pkg/scheduler/plugins/deviceshare`. Where Berth differs from that scheduler, the item says so.

pub mod adaption;
pub mod by_container;
pub mod completion;
pub mod dimension;
mod hints;
pub mod names;
pub mod nccl;
pub mod node;
pub mod partitions;
pub mod plugin;
mod pod_level;
pub mod record;
pub mod request;
pub mod reservation;
pub mod shape;
pub mod templates;

use jiff::Timestamp;

use super::{Carried, Dialect, HintKeys, LockSpec, MissingCount, Record, SharingMode, Unreadable};
use crate::{
    device::{
        Answer, Assignment, Blend, CardChoice, CardPolicy, CoreBudget, Cores, DeviceAllocations, DevicePlace,
        Inventory, JointRequest, Marks, NodePolicy, PodRequest, Profile, Selection, SlicesOfCard, Tie,
    },
    object::{Container, Node, Pod},
};

/// The dialect's name.
pub const NAME: &str = "koordinator";

/// What the names of Koordinator's GPU resources begin with: `gpu`, `gpu-core`, `gpu-memory`, `gpu-memory-ratio`, `gpu.shared`.
pub const GPU_PREFIX: &str = "koordinator.sh/gpu";

/// Whether an object of this API version is of Koordinator's group.
pub fn is_of_group(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, _)| group == names::DEVICE_GROUP)
}

/// Koordinator's devices: a pod has them as a whole, by type. Its own node agents need neither a lock nor an answer; device plugins of some vendors do.
#[derive(Clone, Debug)]
pub struct Koordinator {
    profile: Profile,
    mode: SharingMode,
    cards: WholeCards,
    locks: Vec<LockSpec>,
}

/// Whether whole cards by their vendors' names are asked of Koordinator's devices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WholeCards {
    /// `nvidia.com/gpu`, `amd.com/gpu` and `dcu.com/gpu` are Koordinator's too, and Ascend's units alone are a request that it refuses.
    Included,
    /// `nvidia.com/gpu`, `amd.com/gpu` and `dcu.com/gpu` are Koordinator's in pods that ask for no share by another dialect's names.
    WithoutShares,
    /// These names are other dialects', or no business of Berth's.
    LeftOut,
}

impl Koordinator {
    /// The mode in which pods ask by Koordinator's names.
    pub fn sharing_mode() -> SharingMode {
        SharingMode::Vendor(NAME.into())
    }

    /// Whether a container names one of the dialect's resources, with more than 0 and not only to describe a share.
    fn is_asked(&self, pod: &Pod) -> bool {
        let resources = self.resources();
        let asks = |name: &str| resources.contains(&name) && !self.qualifies(name);
        let amounts = |container: &Container| {
            let sections = [&container.resources.limits, &container.resources.requests];
            sections.into_iter().flatten().flatten().any(|(name, amount)| asks(name) && !amount.is_zero())
        };
        pod.containers().any(|(_, container)| amounts(container))
    }

    /// The dialect with or without whole cards by their vendors' names.
    pub fn new(cards: WholeCards) -> Self {
        Self { cards, ..Self::default() }
    }
}

impl Default for Koordinator {
    fn default() -> Self {
        let profile = Profile {
            name: NAME.into(),
            blend: Blend::Even,
            tie: Tie::Lowest,
            core_budget: CoreBudget::Fixed(Cores::WHOLE),
            slices: SlicesOfCard::One,
        };
        Self { profile, mode: Self::sharing_mode(), cards: WholeCards::Included, locks: plugin::locks() }
    }
}

impl Dialect for Koordinator {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn mode(&self) -> &SharingMode {
        &self.mode
    }

    fn resources(&self) -> Vec<&str> {
        let vendors = |name: &&str| names::WHOLE_CARDS.contains(name) && self.cards == WholeCards::LeftOut;
        let gpus = names::GPU_RESOURCES.into_iter().filter(|name| !vendors(name));
        gpus.chain([names::RDMA, names::FPGA]).collect()
    }

    fn share_resources(&self) -> Vec<&str> {
        Vec::new()
    }

    fn whole_cards(&self) -> Vec<&str> {
        if self.cards == WholeCards::WithoutShares { names::WHOLE_CARDS.to_vec() } else { Vec::new() }
    }

    fn plugin_resources(&self) -> Vec<&str> {
        plugin::resources().collect()
    }

    /// Ascend's units say of which kind a share of a card is; the share itself is asked by memory. Alone they are Huawei's own plugin's, unless
    /// all of the vendors' names are Koordinator's. Resources of other vendors' plugins have these asked, and ask for nothing.
    fn qualifies(&self, resource: &str) -> bool {
        if plugin::resources().any(|name| name == resource) {
            return true;
        }
        let unit = [names::NPU_CORE, names::NPU_CPU, names::NPU_DVPP].contains(&resource);
        unit && self.cards != WholeCards::Included
    }

    /// Its hints are JSON, which no list of a namespace can be merged with.
    fn hint_keys(&self) -> Option<&HintKeys> {
        None
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        None
    }

    /// Its node side writes a Device, not the node.
    fn inventory(&self, _node: &Node) -> Result<Option<Inventory>, Unreadable> {
        Ok(None)
    }

    fn request(&self, pod: &Pod, _missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        Ok(self.joint_request(pod)?.map(|_| PodRequest {
            containers: Vec::new(),
            selection: Selection::default(),
            choice: CardChoice::from(CardPolicy::Binpack),
            node_policy: NodePolicy::Indifferent,
            marks: Marks::default(),
            shuns: Marks::default(),
        }))
    }

    fn joint_request(&self, pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
        if !self.is_asked(pod) {
            return Ok(None);
        }
        reservation::affinity(pod).map_err(|error| vec![error])?;
        request::request(pod)
    }

    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        let carried = |devices| {
            let (by_container, reservation) = (by_container::carried(pod), reservation::allocated(pod));
            let assignment = Assignment {
                devices,
                reservation: reservation.map(Box::new),
                by_container: by_container.into(),
                ..Assignment::default()
            };
            Carried { assignment, ..Carried::default() }
        };
        Ok(record::carried(pod)?.map(carried))
    }

    fn record(&self, assignment: &Assignment, _node: &str, _now: Timestamp) -> Record {
        let mut annotations = by_container::annotations(&assignment.by_container);
        annotations.insert(names::ALLOCATED.to_owned(), record::encode(&assignment.devices));
        annotations.extend(assignment.reservation.as_deref().map(reservation::written));
        Record { annotations, ..Record::default() }
    }

    fn adaption(
        &self,
        given: &DeviceAllocations,
        (node, place): (&str, &DevicePlace),
        now: Timestamp,
    ) -> Result<Record, String> {
        let mut record =
            adaption::record(given, (node, &place.devices), place.request.isolation.as_deref(), now)?;
        if place.request.nccl {
            let settings = nccl::settings(given, &place.devices);
            record.annotations.extend(settings.map(|text| (names::NCCL_CONF.to_owned(), text)));
        }
        Ok(record)
    }

    /// koordlet reads the annotation when it starts the containers, and answers nothing; device plugins of some vendors do.
    fn answer(&self, pod: &Pod) -> Answer {
        plugin::answer(pod)
    }

    fn locks(&self) -> &[LockSpec] {
        &self.locks
    }

    fn locks_by_devices(&self) -> bool {
        true
    }
}
