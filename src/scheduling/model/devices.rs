//! Which devices of one node a pod is given, by type: GPUs, NICs and FPGAs, by PCIe switch, NUMA node and partition.
//!
//! A node's devices with what is used of them go in, an allocation or every reason against one comes out. It does not compare nodes.
//!
//! Where Koordinator's scheduler finds an allocation, this one is the same (koordinator `pkg/scheduler/plugins/deviceshare`), but for its
//! defects. Where it gives up since the NICs near the GPUs that it chose first are taken, `search` finds GPUs and NICs that are
//! free together.

mod containers;
mod gpu;
mod joint;
mod partition;
mod pick;
mod plugin;
mod reserved;
pub mod scoring;
mod search;
mod shortfall;
#[cfg(test)]
mod tests;
mod topology;
mod view;

use std::collections::{BTreeMap, BTreeSet};

pub use containers::by_container;
pub use pick::order;
pub use reserved::{AllocatePolicy, ReservedDevices, allocate_within};
pub use scoring::{Scoring, Strategy};
pub use shortfall::Shortfall;
pub use topology::Scope;

use self::{reserved::ReservationEffect, view::View};
use crate::device::{
    DeviceAllocation, DeviceAllocations, DevicePortion, DeviceType, DevicesUsed, JointRequest, Minor,
    NodeDevices,
};

/// What holds for every pod on the node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AllocationSettings {
    /// How the devices of a type are compared; `None`: by their number alone.
    pub scoring: Option<Scoring>,
    /// The NUMA nodes that devices may be on; `None`: any.
    pub numa: Option<BTreeSet<u32>>,
}

impl AllocationSettings {
    /// Koordinator's by default: devices with more left come first, by the request's own weights.
    pub fn of(request: &JointRequest) -> Self {
        let weights = request.weights.clone();
        Self { scoring: Some(Scoring { strategy: Strategy::LeastAllocated, weights }), numa: None }
    }
}

/// The devices chosen of one type, and the template that the shares are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Chosen {
    minors: Vec<Minor>,
    template: Option<String>,
}

impl From<Vec<Minor>> for Chosen {
    fn from(minors: Vec<Minor>) -> Self {
        Self { minors, template: None }
    }
}

/// By type, the devices chosen.
type Choice = BTreeMap<DeviceType, Chosen>;

/// The devices that the pod is given on this node, each type in the order of its minors; otherwise why it is given none.
pub fn allocate(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
) -> Result<DeviceAllocations, Vec<Shortfall>> {
    choose(&views(node, used, request, (settings, ReservationEffect::Nothing))?, request)
}

/// As [`allocate`], without these devices.
fn allocate_without(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
    others: &BTreeSet<(DeviceType, Minor)>,
) -> Result<DeviceAllocations, Vec<Shortfall>> {
    choose(&views(node, used, request, (settings, ReservationEffect::Without(others)))?, request)
}

/// The devices of these views that the pod is given.
fn choose(views: &[View<'_>], request: &JointRequest) -> Result<DeviceAllocations, Vec<Shortfall>> {
    let mut choice = joint::choose(views, request.joint.as_ref()).map_err(|shortfall| vec![shortfall])?;
    let mut shortfalls = Vec::new();
    for view in views {
        if choice.contains_key(&view.kind) {
            continue;
        }
        match joint::alone(view) {
            Ok(chosen) => drop(choice.insert(view.kind, chosen)),
            Err(shortfall) => shortfalls.push(shortfall),
        }
    }
    if !shortfalls.is_empty() {
        return Err(shortfalls);
    }
    let given = views.iter().filter_map(|view| Some((view.kind, written(view, choice.remove(&view.kind)?))));
    Ok(given.collect())
}

/// How well the pod would sit on the node, 0 to 100 for each type that it asks for; the types are added up.
/// Source: koordinator `scoring.go`, which counts what the pod takes of one device, however many it takes.
pub fn score(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
) -> Result<u64, Vec<Shortfall>> {
    let Some(scoring) = &settings.scoring else { return Ok(0) };
    if !request.containers.is_empty() {
        return containers::score_of(node, used, request, settings);
    }
    // The devices are not compared with each other.
    let uncompared = AllocationSettings { scoring: None, numa: settings.numa.clone() };
    let views = views(node, used, request, (&uncompared, ReservationEffect::Nothing))?;
    let of = |view: &View<'_>| {
        let devices = view.candidates.iter();
        scoring.of_all(&view.request.each, &devices.map(|(_, one)| (&one.device.total, &*one.free)))
    };
    Ok(views.iter().map(of).sum())
}

/// What of the node the pod may be given, type by type.
fn views<'a>(
    node: &'a NodeDevices,
    used: &DevicesUsed,
    request: &'a JointRequest,
    (settings, reserved): (&AllocationSettings, ReservationEffect<'_>),
) -> Result<Vec<View<'a>>, Vec<Shortfall>> {
    plugin::test(node, request).map_err(|shortfall| vec![shortfall])?;
    let shares = request.types.get(&DeviceType::Gpu).is_some_and(|gpu| gpu.portion == DevicePortion::Share);
    if shares && request.isolation.is_some() && request.isolation != node.isolation {
        return Err(vec![Shortfall::Isolation]);
    }
    let mut views = Vec::with_capacity(request.types.len());
    let mut shortfalls = Vec::new();
    for (&kind, typed) in &request.types {
        match View::of(kind, node, used, typed, (settings, reserved)) {
            Ok(view) => views.push(view),
            Err(shortfall) => shortfalls.push(shortfall),
        }
    }
    if shortfalls.is_empty() { Ok(views) } else { Err(shortfalls) }
}

/// What the pod is given of each chosen device.
fn written(view: &View<'_>, chosen: Chosen) -> Vec<DeviceAllocation> {
    let mut minors = chosen.minors;
    minors.sort_unstable();
    let one = |minor: Minor| {
        let candidate = &view.candidate(minor)?;
        let mut amounts = view.request.each.clone();
        if let Some(proportion) = view.request.proportion() {
            proportion.complete(&mut amounts, &candidate.device.total);
        }
        let id = &candidate.device.id;
        Some(DeviceAllocation {
            minor,
            id: (!id.is_empty()).then(|| id.clone()),
            amounts,
            functions: candidate.function.cloned().into_iter().collect(),
            template: chosen.template.clone(),
            exclusive: view.request.exclusive,
        })
    };
    minors.into_iter().filter_map(one).collect()
}
