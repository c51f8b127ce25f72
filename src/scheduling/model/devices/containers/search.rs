//! Which devices each of several containers has: as if it were alone, and otherwise whatever leaves enough for the others.
//!
//! Where a container can have these devices and the rest of the containers then find nothing, every other choice of it leaves out one of these
//! devices, or of devices that are alike has fewer. So each choice is followed by those with one device less to choose from. What is left for the rest
//! of the containers is not tried twice.

use std::collections::{BTreeSet, VecDeque};

use super::alike::{AlikeDevices, Barred, State};
use crate::device::{DeviceAllocations, DeviceCount, DeviceType, DevicesUsed, JointRequest, NodeDevices};
use crate::scheduling::model::devices::{AllocationSettings, Shortfall, allocate_without};

/// So many choices are tried for one pod on one node.
const MOST_STEPS: u32 = 4_000;

/// What each of these requests is given, in their order; otherwise why the first that finds nothing does.
pub(super) fn choose(
    node: &NodeDevices,
    used: &DevicesUsed,
    requests: &[&JointRequest],
    settings: &AllocationSettings,
) -> Result<Vec<DeviceAllocations>, Vec<Shortfall>> {
    // A container that finds nothing where it is alone finds nothing beside others.
    for request in requests {
        allocate_without(node, used, request, settings, &BTreeSet::new())?;
    }
    let alike = AlikeDevices::of(node, requests);
    let (steps, failed) = (MOST_STEPS, BTreeSet::new());
    let mut search = ContainerSearch { node, requests, settings, alike, steps, failed, shortfalls: None };
    search.from(0, used).ok_or_else(|| search.shortfalls.unwrap_or_default())
}

struct ContainerSearch<'a> {
    node: &'a NodeDevices,
    requests: &'a [&'a JointRequest],
    settings: &'a AllocationSettings,
    alike: AlikeDevices,
    steps: u32,
    /// From which request on there was no solution, and what was used by then.
    failed: BTreeSet<(usize, State)>,
    /// Why the first request found nothing that did.
    shortfalls: Option<Vec<Shortfall>>,
}

impl ContainerSearch<'_> {
    /// What the requests from this one on are given beside what is used.
    fn from(&mut self, at: usize, used: &DevicesUsed) -> Option<Vec<DeviceAllocations>> {
        let Some(request) = self.requests.get(at).copied() else { return Some(Vec::new()) };
        let state = (at, self.alike.state(used));
        if self.failed.contains(&state) || !self.has_room(at, used) {
            return None;
        }
        let mut open = VecDeque::from([Barred::default()]);
        let mut seen = BTreeSet::from([Barred::default()]);
        while let Some(barred) = open.pop_front() {
            self.steps = self.steps.checked_sub(1)?;
            let devices = match self.try_without(request, used, &barred) {
                Ok(devices) => devices,
                Err(shortfalls) => {
                    self.shortfalls.get_or_insert(shortfalls);
                    continue;
                }
            };
            let then = used.clone().and(DevicesUsed::of([&devices]));
            if let Some(others) = self.from(at + 1, &then) {
                return Some(std::iter::once(devices).chain(others).collect());
            }
            for next in self.alike.others((request, used), &devices, &barred) {
                if seen.insert(next.clone()) {
                    open.push_back(next);
                }
            }
        }
        self.failed.insert(state);
        None
    }

    fn try_without(
        &self,
        request: &JointRequest,
        used: &DevicesUsed,
        barred: &Barred,
    ) -> Result<DeviceAllocations, Vec<Shortfall>> {
        let mut used = used.clone();
        for (kind, minor, function) in &barred.functions {
            used.keep(*kind, *minor, [function.clone()]);
        }
        allocate_without(self.node, &used, request, self.settings, &barred.devices)
    }

    /// Whether the node has as much in all as the requests from this one on ask for together. That it has does not say that they fit.
    fn has_room(&mut self, at: usize, used: &DevicesUsed) -> bool {
        let has = DeviceType::ALL.into_iter().all(|kind| self.has_room_of(kind, at, used));
        if !has {
            self.shortfalls.get_or_insert(vec![Shortfall::Gpus]);
        }
        has
    }

    fn has_room_of(&self, kind: DeviceType, at: usize, used: &DevicesUsed) -> bool {
        let asked = self.requests[at..].iter().filter_map(|request| request.types.get(&kind));
        let mut dimensions =
            asked.clone().flat_map(|typed| typed.each.iter().map(|(dimension, _)| dimension));
        dimensions.all(|dimension| {
            let of_one = asked.clone().map(|typed| {
                let each = typed.each.get(dimension).unwrap_or(0);
                match typed.count {
                    DeviceCount::Exactly(count) => each.saturating_mul(count.into()),
                    DeviceCount::All => each,
                }
            });
            let free = self
                .node
                .of(kind)
                .filter_map(|(minor, _)| used.left_of(self.node, kind, minor).get(dimension));
            let publish = self.node.of(kind).any(|(_, device)| device.total.get(dimension).is_some());
            !publish || of_one.fold(0_u64, u64::saturating_add) <= free.fold(0_u64, u64::saturating_add)
        })
    }
}
