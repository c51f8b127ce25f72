//! What must hold of Koordinator's devices, read from Devices and pods by the formats' own rules, without any of Berth's code: which machines
//! have them, what users ask, and whether a pod was given it.

#[path = "devices/one.rs"]
mod one;
#[path = "devices/wish.rs"]
mod wish;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth_sandbox::agent::{
    card::Health,
    koordlet::{Gpu, Koordlet, Nic},
    node::Node,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    dice::Dice,
    record::{Pod, text},
    reservation::Reservations,
};
pub(crate) use one::quantity;
use one::{Given, Machine, One, given, read};
pub(crate) use wish::{Wish, ask};

/// The nodes of a story with Koordinator's devices.
pub(crate) const NODES: [&str; 3] = ["koord-0", "koord-1", "koord-2"];

/// The annotation that says what a pod was given.
pub(crate) const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";
/// The group of the kind Device.
pub(crate) const GROUP: &str = "scheduling.koordinator.sh";
const CORE: &str = "koordinator.sh/gpu-core";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";
const MEMORY: &str = "koordinator.sh/gpu-memory";
const RDMA: &str = "koordinator.sh/rdma";

/// The node of this name with its machine of this age: GPUs in pairs, each pair with a NIC of two virtual functions on a PCIe root of its own.
/// An odd machine has one pair, and less memory.
pub(crate) fn machine(name: &str, age: u64) -> Node {
    let (roots, memory) = if age.is_multiple_of(2) { (2, 80 << 30) } else { (1, 40 << 30) };
    let health = Health::Healthy;
    let root = |at: u32| format!("pci0000:{at:02x}");
    let gpu = |minor: u32| Gpu {
        uuid: format!("GPU-{name}-{age}-{minor}"),
        minor,
        memory,
        numa: 0,
        pcie: root(minor / 2),
        health,
    };
    let nic = |minor: u32| {
        let address = |function: u32| format!("{age:04x}:{minor:02x}:00.{function}");
        let functions = vec![address(1), address(2)];
        Nic { bus: address(0), minor, numa: 0, pcie: root(minor), health, functions }
    };
    let (gpus, nics) = ((0..2 * roots).map(gpu).collect(), (0..roots).map(nic).collect());
    Node::new(name).koordlet(Koordlet { gpus, nics, model: "A100-SXM4".to_owned(), ..Koordlet::default() })
}

/// A GPU or a NIC of that machine, by the name that koordlet knows it by.
pub(crate) fn one_of(dice: &mut Dice, name: &str, age: u64) -> String {
    let roots = if age.is_multiple_of(2) { 2 } else { 1 };
    if dice.in_thousand(300) {
        return format!("{age:04x}:{:02x}:00.0", dice.below(roots));
    }
    format!("GPU-{name}-{age}-{}", dice.below(2 * roots))
}

/// A device, by its type and number.
pub(crate) type Key = (String, u64);

/// The devices of all nodes, each with when they were last so.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    reservations: Reservations,
    known: BTreeMap<String, Vec<(Timestamp, Machine)>>,
}

impl Devices {
    /// Takes in the Devices, the Reservations and the pods as they stand.
    pub(crate) fn see(
        &mut self,
        devices: &[Arc<Value>],
        reservations: &[Arc<Value>],
        (pods, now): (&[Arc<Pod>], Timestamp),
    ) {
        self.reservations.see(reservations, pods, now);
        let mut there: BTreeMap<String, Machine> =
            self.known.keys().map(|name| (name.clone(), Machine::new())).collect();
        there.extend(devices.iter().map(|device| (text(device, "/metadata/name").to_owned(), read(device))));
        for (name, machine) in there {
            let known = self.known.entry(name).or_default();
            match known.last_mut() {
                Some((seen, last)) if *last == machine => *seen = now,
                _ => known.push((now, machine)),
            }
        }
    }

    /// The forms that a healthy device of the node has had since then; the newest counts whenever it was seen.
    fn healthy(&self, node: &str, key: &Key, since: Timestamp) -> Vec<&One> {
        let known = self.known.get(node).map(Vec::as_slice).unwrap_or_default();
        let recent =
            known.iter().enumerate().filter(|(at, (seen, _))| at + 1 == known.len() || *seen >= since);
        recent.filter_map(|(_, (_, machine))| machine.get(key)).filter(|one| one.healthy).collect()
    }

    /// What is wrong with the devices that a pod has just been given, beside these pods, by a decision that may rest on what was so since then.
    pub(crate) fn judge_bound(&self, pod: &Pod, living: &[&Pod], since: Timestamp) -> Vec<String> {
        let Some(wish) = &pod.devices else { return Vec::new() };
        let judged = given(pod.record.as_deref().unwrap_or_default())
            .and_then(|given| self.is_right(pod, wish, &given, since).map(|()| given));
        let given = match judged {
            Ok(given) => given,
            Err(error) => return vec![format!("{} asks for {wish:?}: {error}", pod.name)],
        };
        if pod.reservation.is_some() && !pod.owner {
            return vec![format!("{} uses a Reservation that is for others", pod.name)];
        }
        let here: Vec<_> =
            living.iter().filter(|other| other.node == pod.node).map(|other| held(other)).collect();
        let mut violations = Vec::new();
        for (key, own) in &given {
            let of = |held: &Vec<(Key, Given)>| {
                held.iter().filter(|(other, _)| other == key).map(|(_, one)| one.clone()).collect::<Vec<_>>()
            };
            let all: Vec<Given> = here.iter().flat_map(of).collect();
            for function in &own.functions {
                if all.iter().filter(|other| other.functions.contains(function)).count() > 1 {
                    violations
                        .push(format!("{}: function {function} of {} is given twice", pod.name, pod.node));
                }
            }
            for (name, _) in self.reservations.kept_from(pod, since).filter(|(_, gpu)| *gpu == key) {
                violations
                    .push(format!("{} was given {key:?} of {}, which {name} holds", pod.name, pod.node));
            }
            let forms = self.healthy(&pod.node, key, since);
            for name in own.amounts.keys() {
                let used: u64 = all.iter().filter_map(|other| other.amounts.get(name)).sum();
                let total = forms.iter().filter_map(|one| one.total.get(name)).max().copied().unwrap_or(0);
                if used > total {
                    let text = format!(
                        "{key:?} of {} has {total} {name} and {used} are given away, last to {}",
                        pod.node, pod.name
                    );
                    violations.push(text);
                }
            }
        }
        violations
    }

    /// A GPU that works and of which nothing is given away or reserved, by its node and number.
    pub(crate) fn free_gpu(&self, dice: &mut Dice, pods: &[Arc<Pod>]) -> Option<(String, u64)> {
        let mut free = Vec::new();
        for (node, known) in &self.known {
            let here = pods.iter().filter(|pod| pod.is_live() && pod.node == *node);
            let held: BTreeSet<Key> = here.flat_map(|pod| held(pod)).map(|(key, _)| key).collect();
            let gpus = known.last()?.1.iter().filter(|(key, one)| key.0 == "gpu" && one.healthy);
            let unused = gpus.filter(|(key, _)| !held.contains(*key) && !self.reservations.holds(node, key));
            free.extend(unused.map(|(key, _)| (node.clone(), key.1)));
        }
        let at = usize::try_from(dice.below(free.len() as u64)).unwrap();
        free.get(at).cloned()
    }

    /// Whether the pod was given what it asks for, of devices that its node had.
    fn is_right(
        &self,
        pod: &Pod,
        wish: &Wish,
        given: &[(Key, Given)],
        since: Timestamp,
    ) -> Result<(), String> {
        let mut roots: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let distinct: BTreeSet<&Key> = given.iter().map(|(key, _)| key).collect();
        let gpus = given.iter().filter(|((kind, _), _)| kind == "gpu").count() as u64;
        let nics = given.len() as u64 - gpus;
        if distinct.len() != given.len() || gpus != wish.gpus.map_or(0, |(count, _)| count) {
            return Err(format!("{given:?} is another number of devices"));
        }
        if (nics > 0) != wish.nic.is_some() || (nics > 1 && !wish.joint) {
            return Err(format!("{nics} NICs are given"));
        }
        for (key, one) in given {
            let forms = self.healthy(&pod.node, key, since);
            let form = forms.into_iter().find(|form| form.is_given(wish, &key.0, one));
            let form = form.ok_or_else(|| format!("{} had no healthy {key:?} for {one:?}", pod.node))?;
            roots.entry(if key.0 == "gpu" { "gpu" } else { "rdma" }).or_default().insert(&form.pcie);
        }
        if wish.joint && roots.get("gpu") != roots.get("rdma") {
            return Err(format!("{roots:?} are not the same PCIe roots"));
        }
        Ok(())
    }

    /// Whether a plain search finds room for the pod on the node as it stands: if it does, there is some.
    pub(crate) fn would_fit(&self, pod: &Pod, node: &Value, pods: &[Arc<Pod>]) -> bool {
        let (Some(wish), name) = (&pod.devices, text(node, "/metadata/name")) else { return false };
        let there: Vec<&Arc<Pod>> =
            pods.iter().filter(|other| other.is_live() && other.node == name).collect();
        let Some((_, machine)) = self.known.get(name).and_then(|known| known.last()) else { return false };
        if !is_accounted(wish, node, &there) {
            return false;
        }
        let mut held: Vec<_> = there.iter().flat_map(|pod| held(pod)).collect();
        // Whether an owner finds room in a Reservation is left to the fresh look.
        held.extend(self.reservations.left(name, pods, cores).into_iter().map(|(key, percent)| {
            let amounts = [(CORE, percent), (RATIO, percent)];
            let amounts = amounts.into_iter().map(|(name, percent)| (name.to_owned(), percent)).collect();
            (key, Given { id: String::new(), amounts, functions: Vec::new() })
        }));
        let gpus = || {
            machine
                .iter()
                .filter(|(key, one)| key.0 == "gpu" && one.healthy && one.has_room(key, &held, wish))
        };
        let nics = || {
            machine
                .iter()
                .filter(|(key, one)| key.0 == "rdma" && one.healthy && one.has_room(key, &held, wish))
        };
        let count = wish.gpus.map_or(0, |(count, _)| count);
        if !wish.joint {
            return gpus().count() as u64 >= count && (wish.nic.is_none() || nics().next().is_some());
        }
        nics().any(|(_, nic)| gpus().filter(|(_, gpu)| gpu.pcie == nic.pcie).count() as u64 >= count)
    }
}

/// The percent of a GPU that a pod holds.
fn cores(pod: &Pod, gpu: &Key) -> u64 {
    let own = held(pod).into_iter().filter(|(key, _)| key == gpu);
    own.filter_map(|(_, given)| given.amounts.get(CORE).copied()).sum()
}

/// What a pod holds; what is unreadable was judged when it was bound.
fn held(pod: &Pod) -> Vec<(Key, Given)> {
    let record = pod.record.as_deref().filter(|_| pod.devices.is_some());
    record.and_then(|record| given(record).ok()).unwrap_or_default()
}

/// Whether Kubernetes' own account, of which koord-manager advertises the sum of what is healthy, has room.
fn is_accounted(wish: &Wish, node: &Value, there: &[&Arc<Pod>]) -> bool {
    wish.accounted().iter().all(|(name, asked)| {
        let Some(capacity) = node["status"]["allocatable"].get(*name) else { return true };
        let capacity = capacity.as_str().and_then(quantity).unwrap_or_default();
        let others = there.iter().filter_map(|pod| pod.devices).flat_map(|wish| wish.accounted());
        let used: u64 = others.filter(|(other, _)| other == name).map(|(_, amount)| amount).sum();
        used + asked <= capacity
    })
}
