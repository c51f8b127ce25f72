//! Devices that do the same for every container, so that of several choices one is tried.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{
    DeviceAllocations, DeviceCount, DeviceType, DeviceUse, DevicesUsed, JointRequest, Minor, NodeDevice,
    NodeDevices,
};

/// A device of a node.
type Key = (DeviceType, Minor);

/// What is used of each kind of devices that are alike, whichever of them it is.
pub(super) type State = BTreeMap<usize, Vec<DeviceUse>>;

/// What a container may not choose.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Barred {
    /// Devices.
    pub(super) devices: BTreeSet<Key>,
    /// Virtual functions, by PCI address.
    pub(super) functions: BTreeSet<(DeviceType, Minor, String)>,
}

/// The devices of a node by kinds that are alike.
pub(super) struct AlikeDevices {
    kind_of: BTreeMap<Key, usize>,
    with_functions: BTreeSet<Key>,
}

impl AlikeDevices {
    /// Devices are alike if they differ in nothing but their names. Cards that a request may have by a partition are each of their own kind, and so are
    /// devices with virtual functions.
    pub(super) fn of(node: &NodeDevices, requests: &[&JointRequest]) -> Self {
        let mut known: Vec<(DeviceType, &NodeDevice)> = Vec::new();
        let (mut kind_of, mut with_functions) = (BTreeMap::new(), BTreeSet::new());
        let by_partition = node.partitions.is_some() && requests.iter().any(|one| one.asks(DeviceType::Gpu));
        for kind in DeviceType::ALL {
            let alone = kind == DeviceType::Gpu && by_partition;
            for (minor, device) in node.of(kind) {
                let has_functions = device.functions.iter().any(|group| !group.functions.is_empty());
                let same = |(other, of): &(DeviceType, &NodeDevice)| *other == kind && are_alike(of, device);
                let found = known.iter().position(same).filter(|_| !alone && !has_functions);
                let at = found.unwrap_or_else(|| {
                    known.push((kind, device));
                    known.len() - 1
                });
                kind_of.insert((kind, minor), at);
                if has_functions {
                    with_functions.insert((kind, minor));
                }
            }
        }
        Self { kind_of, with_functions }
    }

    /// What is used, without a look at which of the devices that are alike it is.
    pub(super) fn state(&self, used: &DevicesUsed) -> State {
        let mut state = State::new();
        for (kind, minor, of) in used.iter() {
            if let Some(at) = self.kind_of.get(&(kind, minor)) {
                state.entry(*at).or_default().push(of.clone());
            }
        }
        for uses in state.values_mut() {
            uses.sort_unstable();
        }
        state
    }

    /// What else the request may not choose beside `barred`, so that it chooses otherwise than these devices: one thing of what it chose in
    /// each case. Devices are barred with those that are alike and as much used, but for as many as then remain.
    pub(super) fn others(
        &self,
        (request, used): (&JointRequest, &DevicesUsed),
        devices: &DeviceAllocations,
        barred: &Barred,
    ) -> Vec<Barred> {
        let mut others = Vec::new();
        for (&kind, given) in devices {
            if request.types.get(&kind).is_some_and(|typed| typed.count == DeviceCount::All) {
                continue;
            }
            let chosen: BTreeSet<Key> = given.iter().map(|device| (kind, device.minor)).collect();
            for device in given {
                let key = (kind, device.minor);
                let mut next = barred.clone();
                let named =
                    device.functions.iter().map(|function| (kind, device.minor, function.bus.clone()));
                if self.with_functions.contains(&key) && !device.functions.is_empty() {
                    next.functions.extend(named);
                } else {
                    next.devices.extend(self.same(key, used).filter(|same| !chosen.contains(same)));
                    next.devices.insert(key);
                }
                others.push(next);
            }
        }
        others
    }

    /// The devices that are alike and as much used, itself among them.
    fn same<'a>(&'a self, of: Key, used: &'a DevicesUsed) -> impl Iterator<Item = Key> + 'a {
        let (at, held) = (self.kind_of.get(&of), used.get(of.0, of.1));
        let same = move |key: &Key| self.kind_of.get(key) == at && used.get(key.0, key.1) == held;
        self.kind_of.keys().copied().filter(same)
    }
}

/// Whether the devices differ in nothing but their names.
fn are_alike(one: &NodeDevice, other: &NodeDevice) -> bool {
    let place = |device: &NodeDevice| {
        device.topology.as_ref().map(|of| (of.socket, of.numa, std::sync::Arc::clone(&of.pcie)))
    };
    (one.health, &one.labels, &one.total, &one.functions)
        == (other.health, &other.labels, &other.total, &other.functions)
        && place(one) == place(other)
}
