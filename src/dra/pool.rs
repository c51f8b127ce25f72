//! Pools of devices: what drivers publish, by generation, and what of it a node can reach.

mod hardware;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hardware::HardwareIndex;

use super::{
    device::{CounterName, PoolDevice, Reading},
    node::{NodeSelection, TargetNode},
    taint::{PoolTaints, TaintRules, TaintedDevices},
};
use crate::{
    object::{Amount, DeviceTaintRule, ResourceSlice},
    persistent::{PersistentMap, PersistentSet, value_of},
};

/// Every pool of the cluster.
#[derive(Clone, Debug, Default)]
pub struct DevicePools {
    pools: PersistentMap<PoolId, Generations>,
    /// By slice, the pool that it belongs to.
    pool_of: PersistentMap<Arc<str>, PoolId>,
    /// By node, the pools with slices that name it.
    of_node: PersistentMap<Arc<str>, BTreeSet<PoolId>>,
    /// The pools with slices that select nodes in another way.
    of_many: PersistentSet<PoolId>,
    /// The pools with devices that take of their nodes' own resources.
    taking: PersistentSet<PoolId>,
    hardware: HardwareIndex,
    taints: Arc<TaintRules>,
    /// How many devices have been read so far.
    readings: u64,
}

/// Driver and pool.
pub type PoolId = (Arc<str>, Arc<str>);

/// What is published of a pool.
#[derive(Clone, Debug, Default)]
struct Generations {
    /// By name.
    slices: BTreeMap<Arc<str>, Arc<ResourceSlice>>,
    /// The newest first.
    published: Arc<[Published]>,
}

/// One generation of a pool as it is published.
#[derive(Clone, Debug, Default)]
struct Published {
    /// How many slices there are to be.
    count: i64,
    /// By name.
    slices: Vec<PoolSlice>,
    counter_sets: BTreeSet<Arc<str>>,
    counters: BTreeMap<CounterName, Amount>,
    /// The sets and the counters of which devices take.
    references: BTreeSet<(Arc<str>, Option<Arc<str>>)>,
    /// Why none of its devices can be given.
    invalid: Option<String>,
}

#[derive(Clone, Debug)]
struct PoolSlice {
    name: String,
    /// `None`: each device selects its nodes.
    selection: Option<NodeSelection>,
    devices: Vec<PoolDevice>,
}

/// A pool as one node sees it.
#[derive(Clone, Debug)]
pub(super) struct VisiblePool<'a> {
    pub(super) id: &'a PoolId,
    published: &'a Published,
    pub(super) state: PoolState,
    /// The devices that the node can reach.
    pub(super) devices: Vec<&'a PoolDevice>,
}

/// Whether devices of a pool can be given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PoolState {
    Usable,
    /// Slices are missing.
    Incomplete,
    /// What is published contradicts itself.
    Invalid(String),
}

impl DevicePools {
    /// Reads slices.
    pub fn new<'a>(slices: impl IntoIterator<Item = &'a ResourceSlice>) -> Self {
        let mut inventory = Self::default();
        let mut touched = BTreeSet::new();
        for (at, slice) in slices.into_iter().enumerate() {
            let name = slice.metadata.name.as_str();
            // A cluster has one slice of a name, and input from elsewhere may have more.
            let twice = inventory.pool_of.contains_key(name);
            let name = if twice { format!("{name}#{at}").into() } else { name.into() };
            touched.extend(inventory.file(name, Arc::new(slice.clone())));
        }
        for pool in &touched {
            inventory.read(pool);
        }
        inventory
    }

    /// Takes in a slice, new or changed; returns the pools that have changed.
    pub fn set(&mut self, slice: Arc<ResourceSlice>) -> Vec<PoolId> {
        let touched = self.file(slice.metadata.name.as_str().into(), slice);
        for pool in &touched {
            self.read(pool);
        }
        touched
    }

    /// Takes a slice out; returns the pool that has changed.
    pub fn remove(&mut self, slice: &str) -> Option<PoolId> {
        let pool = self.unfile(slice)?;
        self.read(&pool);
        Some(pool)
    }

    /// Takes in a rule by a name that no other has; `None`: it is gone. Returns the pools that have changed.
    pub fn set_rule(&mut self, name: &Arc<str>, rule: Option<Arc<DeviceTaintRule>>) -> Vec<PoolId> {
        let mut changed = BTreeSet::new();
        for devices in Arc::make_mut(&mut self.taints).set(name, rule) {
            let pools: Vec<PoolId> = self.pools.keys().filter(|pool| devices.are_in(pool)).cloned().collect();
            for pool in pools {
                let generations = self.pools.get_mut(&pool);
                if generations.is_some_and(|own| own.taint(&self.taints.of_pool(&pool), &devices)) {
                    changed.insert(pool);
                }
            }
        }
        changed.into_iter().collect()
    }

    fn file(&mut self, name: Arc<str>, slice: Arc<ResourceSlice>) -> Vec<PoolId> {
        let before = self.unfile(&name);
        let pool = Self::pool_of(&slice);
        self.pool_of.insert_mut(name.clone(), pool.clone());
        value_of(&mut self.pools, &pool).slices.insert(name, slice);
        before.into_iter().filter(|before| *before != pool).chain([pool.clone()]).collect()
    }

    fn unfile(&mut self, slice: &str) -> Option<PoolId> {
        let pool = self.pool_of.get(slice)?.clone();
        self.pool_of.remove_mut(slice);
        if let Some(generations) = self.pools.get_mut(&pool) {
            generations.slices.remove(slice);
        }
        Some(pool)
    }

    /// Reads a pool anew from its slices.
    fn read(&mut self, pool: &PoolId) {
        self.of_many.remove_mut(pool);
        self.taking.remove_mut(pool);
        let of = self.pools.get(pool).map(Generations::nodes).unwrap_or_default();
        for node in of {
            if let Some(pools) = self.of_node.get_mut(&node)
                && pools.remove(pool)
                && pools.is_empty()
            {
                self.of_node.remove_mut(&node);
            }
        }
        let Some(generations) = self.pools.get_mut(pool) else { return };
        self.hardware.remove(pool, generations.slices().flat_map(|slice| &slice.devices));
        generations.read(&mut self.readings, &self.taints.of_pool(pool));
        if generations.slices.is_empty() {
            self.pools.remove_mut(pool);
            return;
        }
        for node in generations.nodes() {
            value_of(&mut self.of_node, &node).insert(pool.clone());
        }
        self.hardware.add(pool, generations.slices().flat_map(|slice| &slice.devices));
        if generations.slices().any(|slice| !matches!(slice.selection, Some(NodeSelection::Name(_)))) {
            self.of_many.insert_mut(pool.clone());
        }
        let mut devices = generations.slices().flat_map(|slice| &slice.devices);
        if devices.any(|device| !device.nodes.takes.is_nothing()) {
            self.taking.insert_mut(pool.clone());
        }
    }

    /// The pool of a slice.
    pub fn pool_of(slice: &ResourceSlice) -> PoolId {
        (slice.spec.driver.as_str().into(), slice.spec.pool.name.as_str().into())
    }

    /// The pool of the slice of this name, as it was taken in last.
    pub fn pool_of_slice(&self, slice: &str) -> Option<&PoolId> {
        self.pool_of.get(slice)
    }

    /// Whether there are devices that take of their nodes' own resources.
    pub fn take_of_nodes(&self) -> bool {
        !self.taking.is_empty()
    }

    /// The pools of which this node might reach a slice, by driver and name.
    pub fn pools_near(&self, node: &str) -> impl Iterator<Item = &PoolId> {
        self.of_node.get(node).into_iter().flatten().chain(self.of_many.iter())
    }

    /// The nodes that might reach a slice of this pool; `None`: it may be any node.
    pub fn nodes_near(&self, pool: &PoolId) -> Option<BTreeSet<Arc<str>>> {
        let nodes = || self.pools.get(pool).map(Generations::nodes).unwrap_or_default();
        (!self.of_many.contains(pool)).then(nodes)
    }

    /// The newest generation of a pool of which every slice is there, wherever it can be reached; `None`: there is none, or it contradicts itself. Which
    /// devices a node can reach is left open.
    pub(super) fn complete(&self, pool: &PoolId) -> Option<VisiblePool<'_>> {
        let (id, generations) = self.pools.get_key_value(pool)?;
        let mut published = generations.published.iter();
        let newest = published.find(|published| published.has(published.slices.len()))?;
        let published = Some(newest).filter(|newest| newest.invalid.is_none())?;
        Some(VisiblePool { id, published, state: PoolState::Usable, devices: Vec::new() })
    }

    /// The pools of which the node can reach a slice, in the order in which devices are given: pools with binding conditions last,
    /// else by driver and name.
    pub(super) fn pools(&self, node: TargetNode<'_>) -> Vec<VisiblePool<'_>> {
        let ids: BTreeSet<&PoolId> = self.pools_near(node.name).collect();
        let pools = ids.into_iter().filter_map(|id| self.pools.get_key_value(id));
        let mut pools: Vec<_> =
            pools.filter_map(|(id, generations)| seen_from(id, &generations.published, node)).collect();
        pools.sort_by_key(VisiblePool::has_binding_conditions);
        pools
    }
}

impl Generations {
    fn read(&mut self, readings: &mut u64, taints: &PoolTaints<'_>) {
        let mut generations: BTreeMap<Reverse<i64>, Vec<&ResourceSlice>> = BTreeMap::new();
        for slice in self.slices.values() {
            generations.entry(Reverse(slice.spec.pool.generation)).or_default().push(slice);
        }
        let mut published: Vec<_> = generations.into_values().map(Published::read).collect();
        for device in published.iter_mut().flat_map(Published::devices_mut) {
            *readings += 1;
            device.reading = Reading(*readings);
            device.taints.ruled = taints.of(&device.id.device);
        }
        self.published = published.into();
    }

    /// Gives the devices the taints that rules add to them now; whether one of them had others.
    fn taint(&mut self, taints: &PoolTaints<'_>, devices: &TaintedDevices) -> bool {
        let is_meant =
            |device: &PoolDevice| devices.device.as_ref().is_none_or(|name| *name == device.id.device);
        let is_other =
            |device: &PoolDevice| is_meant(device) && device.taints.ruled != taints.of(&device.id.device);
        if !self.slices().flat_map(|slice| &slice.devices).any(is_other) {
            return false;
        }
        let published = Arc::make_mut(&mut self.published);
        for device in published.iter_mut().flat_map(Published::devices_mut).filter(|device| is_meant(device))
        {
            device.taints.ruled = taints.of(&device.id.device);
        }
        true
    }

    fn slices(&self) -> impl Iterator<Item = &PoolSlice> {
        self.published.iter().flat_map(|published| &published.slices)
    }

    /// The nodes that slices name.
    fn nodes(&self) -> BTreeSet<Arc<str>> {
        let named = self.slices().filter_map(|slice| match &slice.selection {
            Some(NodeSelection::Name(node)) => Some(node.as_str().into()),
            _ => None,
        });
        named.collect()
    }
}

impl Published {
    /// Reads the slices of one generation.
    fn read(mut slices: Vec<&ResourceSlice>) -> Self {
        slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let count = slices.first().map_or(0, |slice| slice.spec.pool.resource_slice_count);
        let mut published = Self { count, ..Self::default() };
        for slice in slices {
            if let Err(reason) = published.add(slice) {
                published.invalid.get_or_insert(reason);
            }
        }
        published.invalid = published.invalid.take().or_else(|| published.unknown_counter());
        published
    }

    fn add(&mut self, slice: &ResourceSlice) -> Result<(), String> {
        let spec = &slice.spec;
        let selection =
            NodeSelection::read(spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref());
        let (devices, errors): (Vec<_>, Vec<_>) = spec
            .devices
            .iter()
            .map(|device| PoolDevice::read(spec, device, &selection))
            .partition(Result::is_ok);
        self.slices.push(PoolSlice {
            name: slice.metadata.name.clone(),
            selection: (!spec.per_device_node_selection).then_some(selection),
            devices: devices.into_iter().flatten().collect(),
        });
        for consumption in spec.devices.iter().flat_map(|device| &device.consumes_counters) {
            let set: Arc<str> = consumption.counter_set.as_str().into();
            let counters = consumption.counters.keys().map(|counter| Some(counter.as_str().into()));
            self.references.extend(counters.chain([None]).map(|counter| (set.clone(), counter)));
        }
        for set in &spec.shared_counters {
            if !self.counter_sets.insert(set.name.as_str().into()) {
                return Err(format!("duplicate counter set name {}", set.name));
            }
            for (counter, amount) in &set.counters {
                let amount = amount.value.amount();
                let amount = amount.map_err(|reason| format!("counter {}/{counter}: {reason}", set.name))?;
                self.counters.insert((set.name.as_str().into(), counter.as_str().into()), amount);
            }
        }
        errors.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    fn devices_mut(&mut self) -> impl Iterator<Item = &mut PoolDevice> {
        self.slices.iter_mut().flat_map(|slice| &mut slice.devices)
    }

    /// A set or a counter of which a device takes and that the pool does not have.
    fn unknown_counter(&self) -> Option<String> {
        self.references.iter().find_map(|(set, counter)| match counter {
            None if !self.counter_sets.contains(set) => Some(format!("counter set {set} not found")),
            Some(counter) if !self.counters.contains_key(&(set.clone(), counter.clone())) => {
                Some(format!("counter {counter} not found in counter set {set}"))
            }
            _ => None,
        })
    }

    fn reachable(&self, node: TargetNode<'_>) -> Vec<&PoolSlice> {
        let reachable = |slice: &&PoolSlice| match &slice.selection {
            Some(selection) => selection.admits(node),
            None => slice.devices.iter().any(|device| device.nodes.selection.admits(node)),
        };
        self.slices.iter().filter(reachable).collect()
    }

    fn has(&self, count: usize) -> bool {
        i64::try_from(count) == Ok(self.count)
    }
}

/// The newest generation of which the node can reach a slice. Where slices of it are on other nodes, a newer generation that the node
/// can't reach hides it: the driver is about to replace it.
fn seen_from<'a>(
    id: &'a PoolId,
    generations: &'a [Published],
    node: TargetNode<'_>,
) -> Option<VisiblePool<'a>> {
    let seen = generations.iter().map(|published| published.reachable(node)).enumerate();
    let (at, slices) = seen.into_iter().find(|(_, slices)| !slices.is_empty())?;
    let published = &generations[at];
    let alone = published.has(slices.len());
    if !alone && at > 0 {
        return None;
    }
    let state = if alone || published.has(published.slices.len()) {
        let invalid = published.invalid.clone().or_else(|| duplicate(&slices));
        invalid.map_or(PoolState::Usable, PoolState::Invalid)
    } else {
        PoolState::Incomplete
    };
    let devices =
        slices.iter().flat_map(|slice| &slice.devices).filter(|device| device.nodes.selection.admits(node));
    Some(VisiblePool { id, published, state, devices: devices.collect() })
}

/// A name that two devices of the slices have.
fn duplicate(slices: &[&PoolSlice]) -> Option<String> {
    let mut names = BTreeSet::new();
    let mut devices = slices.iter().flat_map(|slice| slice.devices.iter().map(move |device| (slice, device)));
    let (slice, device) = devices.find(|(_, device)| !names.insert(&device.id.device))?;
    Some(format!("duplicate device name {} in slice {}", device.id.device, slice.name))
}

impl VisiblePool<'_> {
    /// Driver and pool, as messages name them.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.id.0, self.id.1)
    }

    /// How much of each counter there is.
    pub(super) fn counters(&self) -> &BTreeMap<CounterName, Amount> {
        &self.published.counters
    }

    /// Every device, those of other nodes included.
    pub(super) fn all_devices(&self) -> impl Iterator<Item = &PoolDevice> {
        self.published.slices.iter().flat_map(|slice| &slice.devices)
    }

    fn has_binding_conditions(&self) -> bool {
        self.devices.iter().any(|device| !device.binding.conditions.is_empty())
    }
}
