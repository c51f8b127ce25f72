//! GPUs by their place in the machine: as many as are wanted below one PCIe switch, else in one NUMA node, else anywhere.
//!
//! Source: koordinator `allocator_gpu.go` (`allocateFromScope`), `allocator_gpu_helper.go` (`GetGPUTopologyScope`). Upstream's tree ends at the
//! switches, so that a card as the required part can't be had; here one card is such a part.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{Shortfall, view::View};
use crate::device::{DevicePortion, DeviceType, Minor, NodeDevice, NodeDevices, TopologyScope};

/// A part of the machine and the GPUs in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scope {
    /// What kind of part.
    pub level: TopologyScope,
    /// The GPUs, by minor, those too that serve no pod.
    pub minors: Vec<Minor>,
    /// The parts of which it consists.
    pub parts: Vec<Self>,
}

/// The GPUs found in a part of the machine.
struct FoundGpus {
    minors: Vec<Minor>,
    /// How deep the part is: the deeper, the nearer the cards are to each other.
    depth: usize,
    /// How many of the parts around it are in use already: the more, the more whole parts stay free.
    busy: usize,
    score: u64,
}

impl Scope {
    /// The machine with its NUMA nodes and their switches; `None`: the place of a GPU is not known, or there is none.
    pub fn of(node: &NodeDevices) -> Option<Self> {
        let places = node.of(DeviceType::Gpu).map(|(minor, device)| Some((place_of(device)?, minor)));
        let mut gpus: Vec<_> = places.collect::<Option<_>>()?;
        gpus.sort_unstable();
        let numa = |of_numa: &[((Option<u32>, &str), Minor)]| {
            let switches = of_numa.chunk_by(|(one, _), (next, _)| one == next);
            let minors = switches.map(|of_switch| of_switch.iter().map(|(_, minor)| *minor).collect());
            let switch = |minors| Self { level: TopologyScope::Pcie, minors, parts: Vec::new() };
            Self::above(TopologyScope::NumaNode, minors.map(switch).collect())
        };
        let numa_nodes = gpus.chunk_by(|((one, _), _), ((next, _), _)| one == next).map(numa);
        (!gpus.is_empty()).then(|| Self::above(TopologyScope::Node, numa_nodes.collect()))
    }

    fn above(level: TopologyScope, parts: Vec<Self>) -> Self {
        let mut minors: Vec<_> = parts.iter().flat_map(|part| &part.minors).copied().collect();
        minors.sort_unstable();
        Self { level, minors, parts }
    }

    fn is_busy(&self, view: &View<'_>) -> bool {
        self.minors.iter().any(|minor| view.used.contains(minor))
    }

    /// This part and all below it that are of the required kind and have enough GPUs, in the order in which they should be used: the
    /// smallest first, and of equal ones those within parts that are in use.
    pub(super) fn preferred<'s>(&'s self, view: &View<'_>) -> Vec<&'s Self> {
        let mut parts = Vec::new();
        self.collect(view, 0, &mut parts);
        parts.sort_by_key(|(part, busy)| (Reverse(part.level), Reverse(*busy)));
        parts.into_iter().map(|(part, _)| part).collect()
    }

    fn collect<'s>(&'s self, view: &View<'_>, around: usize, parts: &mut Vec<(&'s Self, usize)>) {
        let busy = around + usize::from(self.is_busy(view));
        if self.minors.len() >= view.count && self.level >= required(view) {
            parts.push((self, busy));
        }
        self.parts.iter().for_each(|part| part.collect(view, busy, parts));
    }
}

/// The NUMA node and the switch of a device; `None`: its place is not known.
fn place_of(device: &NodeDevice) -> Option<(Option<u32>, &str)> {
    device.topology.as_ref().map(|place| (place.numa, &*place.pcie))
}

/// The kind of part that is required. One card is all of a part of its own, so it may be below any switch.
fn required(view: &View<'_>) -> TopologyScope {
    view.request.scope.unwrap_or(TopologyScope::Node).min(TopologyScope::Pcie)
}

/// Whether these cards are together in a part of the machine of the required kind.
pub(super) fn holds(view: &View<'_>, minors: &BTreeSet<Minor>) -> bool {
    let place = |minor: &Minor| view.node.device(view.kind, *minor).and_then(place_of);
    let numa = || minors.iter().map(|minor| place(minor).map(|(numa, _)| numa));
    let switch = || minors.iter().map(place);
    match view.request.scope {
        None | Some(TopologyScope::Node) => true,
        Some(TopologyScope::NumaNode) => is_one(numa()),
        Some(TopologyScope::Pcie) => is_one(switch()),
        Some(TopologyScope::Device) => minors.len() == 1,
    }
}

/// Whether all are known and the same.
fn is_one<T: Ord>(places: impl Iterator<Item = Option<T>>) -> bool {
    places.collect::<Option<BTreeSet<_>>>().is_some_and(|places| places.len() == 1)
}

/// Whether the pod's cards may be chosen by their place; an error is why not.
pub(super) fn is_possible(view: &View<'_>, tree: Option<&Scope>) -> Result<(), Shortfall> {
    if view.request.scope == Some(TopologyScope::Device) && view.count > 1 {
        return Err(Shortfall::Scope);
    }
    match tree {
        None => Err(Shortfall::NoTopology),
        Some(_) if view.request.portion == DevicePortion::Share && view.count > 1 => {
            Err(Shortfall::SharesOfSeveral)
        }
        Some(_) => Ok(()),
    }
}

/// The GPUs nearest to each other, of equally near ones those that leave the most of the machine free.
pub(super) fn choose(view: &View<'_>, tree: &Scope) -> Result<Vec<Minor>, Shortfall> {
    let found = within(view, tree, 0, 0).map(|found| found.minors);
    let shortfall = if view.request.scope.is_some() { Shortfall::Scope } else { Shortfall::Gpus };
    found.ok_or(shortfall)
}

fn within(view: &View<'_>, scope: &Scope, depth: usize, busy: usize) -> Option<FoundGpus> {
    if scope.minors.len() < view.count {
        return None;
    }
    let (depth, busy) = (depth + 1, busy + usize::from(scope.is_busy(view)));
    let shares = view.request.portion == DevicePortion::Share;
    let mut best: Option<FoundGpus> = None;
    for found in scope.parts.iter().filter_map(|part| within(view, part, depth, busy)) {
        let rank = |found: &FoundGpus| (found.depth, found.busy, if shares { found.score } else { 0 });
        if best.as_ref().is_none_or(|best| rank(best) < rank(&found)) {
            best = Some(found);
        }
    }
    best.or_else(|| {
        let (minors, worth) = (scope.level >= required(view)).then(|| cards(view, scope))??;
        Some(FoundGpus { minors, depth, busy, score: worth })
    })
}

/// Cards of this part, wherever in it: the first of them whole, or the best share.
fn cards(view: &View<'_>, scope: &Scope) -> Option<(Vec<Minor>, u64)> {
    let fitting = scope.minors.iter().copied().filter(|&minor| view.fits(minor));
    if view.request.portion == DevicePortion::Share {
        let fitting = fitting.filter_map(|minor| Some((view.candidate(minor)?.score, Reverse(minor))));
        let best = fitting.max()?;
        return Some((vec![best.1.0], best.0));
    }
    let minors: Vec<_> = fitting.take(view.count).collect();
    (minors.len() == view.count).then_some((minors, 0))
}
