//! What of a node's devices of one type a pod may be given.
//!
//! It leaves out what is unhealthy, what the pod's selectors do not admit, and what exclusive use keeps apart.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use super::{AllocationSettings, Shortfall, reserved::ReservationEffect};
use crate::device::{
    Amounts, DeviceCount, DeviceType, DevicesUsed, Exclusive, LabelFilter, Minor, NodeDevice, NodeDevices,
    SriovFunction, TypedRequest,
};

/// A PCIe switch by its name.
pub(super) type Switch = Arc<str>;

/// A device that the pod may be given, if enough of it is left.
pub(super) struct EligibleDevice<'a> {
    pub(super) device: &'a NodeDevice,
    /// What is left of it.
    pub(super) free: Cow<'a, Amounts>,
    /// Whether that is enough.
    pub(super) fits: bool,
    /// The virtual function that the pod would have.
    pub(super) function: Option<&'a SriovFunction>,
    /// How well the pod would sit on it, if enough is left.
    pub(super) score: u64,
}

impl EligibleDevice<'_> {
    /// Whether it is on one of these switches.
    pub(super) fn is_on(&self, switches: &BTreeSet<Switch>) -> bool {
        self.device.pcie().is_some_and(|pcie| switches.contains(pcie))
    }
}

/// What of the devices of one type a pod may be given.
pub(super) struct View<'a> {
    pub(super) kind: DeviceType,
    pub(super) node: &'a NodeDevices,
    pub(super) request: &'a TypedRequest,
    /// How many devices the pod takes.
    pub(super) count: usize,
    /// The devices that it may be given, by minor.
    pub(super) candidates: Vec<(Minor, EligibleDevice<'a>)>,
    /// The devices of the node of which something is used.
    pub(super) used: BTreeSet<Minor>,
}

impl<'a> View<'a> {
    pub(super) fn of(
        kind: DeviceType,
        node: &'a NodeDevices,
        used: &DevicesUsed,
        request: &'a TypedRequest,
        (settings, reserved): (&AllocationSettings, ReservationEffect<'_>),
    ) -> Result<Self, Shortfall> {
        let count = count(kind, node, request)?;
        if request.functions.is_some() && node.of(kind).all(|(_, device)| device.functions.is_empty()) {
            return Err(Shortfall::NoVirtualFunctions(kind));
        }
        let is_there = |&(minor, _): &(Minor, _)| node.device(kind, minor).is_some();
        let of_kind = used.of_type(kind).filter(|(_, of)| !of.amounts.is_zero()).filter(is_there);
        let in_use: BTreeSet<_> = of_kind.map(|(minor, _)| minor).collect();
        let closed = Closed::of(kind, node, used, &in_use, request.exclusive);
        let admits = |device: &NodeDevice| {
            let selected = request.selector.as_ref().is_none_or(|selector| selector.admits(&device.labels));
            device.serves() && selected && is_near(device, settings.numa.as_ref())
        };
        let admitted =
            node.of(kind).filter(|&(minor, device)| admits(device) && !closed.holds(minor, device));
        let admitted = admitted.filter(|&(minor, _)| reserved.admits(kind, minor));
        let candidate =
            |(minor, device)| (minor, candidate(kind, used, request, (settings, reserved), (minor, device)));
        let mut candidates = Vec::with_capacity(node.count(kind));
        candidates.extend(admitted.map(candidate));
        Ok(Self { kind, node, request, count, candidates, used: in_use })
    }

    /// The devices with enough left, by minor.
    pub(super) fn fitting(&self) -> impl Iterator<Item = (Minor, &EligibleDevice<'a>)> {
        self.candidates.iter().filter(|(_, one)| one.fits).map(|(minor, one)| (*minor, one))
    }

    /// A device that the pod may be given, if enough of it is left.
    pub(super) fn candidate(&self, minor: Minor) -> Option<&EligibleDevice<'a>> {
        let at = self.candidates.binary_search_by_key(&minor, |(minor, _)| *minor).ok()?;
        Some(&self.candidates[at].1)
    }

    /// Whether the device has enough left.
    pub(super) fn fits(&self, minor: Minor) -> bool {
        self.candidate(minor).is_some_and(|candidate| candidate.fits)
    }

    /// The switches of these devices, as far as they are known.
    pub(super) fn switches<'m>(&self, minors: impl IntoIterator<Item = &'m Minor>) -> BTreeSet<Switch> {
        let switch = |minor: &Minor| self.node.device(self.kind, *minor)?.pcie().cloned();
        minors.into_iter().filter_map(switch).collect()
    }
}

/// How many devices of the type the pod takes on this node.
fn count(kind: DeviceType, node: &NodeDevices, request: &TypedRequest) -> Result<usize, Shortfall> {
    let admitted =
        |selector: &LabelFilter| node.of(kind).filter(|(_, device)| selector.admits(&device.labels)).count();
    let all = node.count(kind);
    let count = match request.count {
        _ if all == 0 => 0,
        DeviceCount::Exactly(count) => count as usize,
        DeviceCount::All => request.selector.as_ref().map_or(all, admitted),
    };
    if count == 0 { Err(Shortfall::NoDevices(kind)) } else { Ok(count) }
}

fn candidate<'a>(
    kind: DeviceType,
    used: &DevicesUsed,
    request: &'a TypedRequest,
    (settings, reserved): (&AllocationSettings, ReservationEffect<'_>),
    (minor, device): (Minor, &'a NodeDevice),
) -> EligibleDevice<'a> {
    let free = free(used, (kind, minor), device, request, reserved);
    let taken = used.get(kind, minor).map(|of| &of.functions);
    let is_taken = |function: &SriovFunction| taken.is_some_and(|taken| taken.contains(&function.bus));
    let function = request.functions.as_ref().and_then(|filter| {
        let mut functions = device.functions_of(filter).into_iter();
        functions.find(|function| !is_taken(function))
    });
    let has_function = request.functions.is_none() || function.is_some();
    let fits = has_function && request.each.fit(&free);
    let scoring = settings.scoring.as_ref().filter(|_| fits);
    let score = scoring.map_or(0, |scoring| scoring.of_one(&request.each, &device.total, &free));
    let score = score.saturating_add(reserved.preference(kind, minor));
    EligibleDevice { device, free, fits, function, score }
}

/// What is left of a device for the pod.
fn free<'a>(
    used: &DevicesUsed,
    (kind, minor): (DeviceType, Minor),
    device: &'a NodeDevice,
    request: &TypedRequest,
    reserved: ReservationEffect<'_>,
) -> Cow<'a, Amounts> {
    let complete = |amounts: &mut Amounts| {
        // Another scheduler may have written one dimension of two.
        request.proportion().into_iter().for_each(|of| of.complete(amounts, &device.total));
    };
    let mut free = Cow::Borrowed(&device.total);
    if let Some(of) = used.get(kind, minor) {
        let mut held = of.amounts.clone();
        complete(&mut held);
        free = Cow::Owned(free.left(&held));
    }
    if let Some(bound) = reserved.bound(kind, minor) {
        let mut bound = bound.clone();
        complete(&mut bound);
        free = Cow::Owned(free.at_most(&bound));
    }
    free
}

/// Whether the device is on one of these NUMA nodes; one whose NUMA node is not known is near each.
fn is_near(device: &NodeDevice, numa: Option<&BTreeSet<u32>>) -> bool {
    let Some(numa) = numa else { return true };
    device.topology.as_ref().is_some_and(|of| of.numa.is_none_or(|of| numa.contains(&of)))
}

/// What exclusive use keeps apart, whether the pod asks for it or one that is there. Devices whose switch is not known are taken to be on one.
/// Upstream finds what `PCIeLevel` leaves and then forgets it.
struct Closed {
    minors: BTreeSet<Minor>,
    switches: BTreeSet<Option<Switch>>,
}

impl Closed {
    fn of(
        kind: DeviceType,
        node: &NodeDevices,
        used: &DevicesUsed,
        in_use: &BTreeSet<Minor>,
        asked: Option<Exclusive>,
    ) -> Self {
        let (mut minors, mut switches) = (BTreeSet::new(), BTreeSet::new());
        for (minor, device) in node.of(kind).filter(|(minor, _)| in_use.contains(minor)) {
            let held = used.get(kind, minor).and_then(|of| of.exclusive);
            if asked.is_some() || held.is_some() {
                minors.insert(minor);
            }
            if asked.max(held) == Some(Exclusive::Pcie) {
                switches.insert(device.pcie().cloned());
            }
        }
        Self { minors, switches }
    }

    fn holds(&self, minor: Minor, device: &NodeDevice) -> bool {
        let on_switch = || self.switches.contains(&device.pcie().cloned());
        self.minors.contains(&minor) || !self.switches.is_empty() && on_switch()
    }
}
