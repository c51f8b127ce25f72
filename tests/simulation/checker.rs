//! The invariants, checked on what the API server holds after every write, without any of Berth's code.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth::{
    config::Config,
    sandbox::{Sandbox, fault::Call},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    devices::{self, Devices},
    dice::Dice,
    fresh,
    gang::Gangs,
    preemption::Preemptions,
    quota::Quotas,
    record::{Amount, Family, Pod, Wish, annotation, cards, text},
    spread::{self, Spread},
    time_division::{Division, Windows},
};

/// A foreign lock is respected for so long.
const FOREIGN: SignedDuration = SignedDuration::from_mins(5);
/// For so long may a decision rest on cards that a node no longer has.
const MEMORY: SignedDuration = SignedDuration::from_mins(2);
pub(crate) const LOCK: &str = "hami.io/mutex.lock";

/// Who wrote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Writer {
    Berth,
    Other,
}

#[derive(Debug)]
struct Bound {
    node: String,
    record: Option<String>,
}

/// The cards of a node, and when they were last seen to be these.
type Inventory = (Timestamp, BTreeMap<String, Amount>);

/// Keeps what it must to compare.
#[derive(Debug)]
pub(crate) struct Checker {
    sandbox: Sandbox,
    revision: u64,
    /// Pods as last read, with what they were read from.
    read: BTreeMap<String, (Arc<Value>, Arc<Pod>)>,
    bound: BTreeMap<String, Bound>,
    inventories: BTreeMap<String, Vec<Inventory>>,
    locks: BTreeMap<String, String>,
    /// When Berth took which node's lock for which pod.
    taken: BTreeMap<(String, String), Timestamp>,
    preemptions: Preemptions,
    gangs: Gangs,
    devices: Devices,
    config: Config,
    division: Option<Division>,
    quotas: Quotas,
    spread: Spread,
    /// Which lives of Berth have bound a pod of this name.
    binders: BTreeMap<String, BTreeSet<String>>,
    pub(crate) violations: Vec<String>,
}

impl Checker {
    pub(crate) fn new(sandbox: Sandbox, windows: Option<&Windows>) -> Self {
        Self {
            config: windows.map(Windows::config).unwrap_or_default(),
            division: windows.map(|windows| Division::new(windows, sandbox.now())),
            sandbox,
            revision: 0,
            read: BTreeMap::new(),
            bound: BTreeMap::new(),
            inventories: BTreeMap::new(),
            locks: BTreeMap::new(),
            taken: BTreeMap::new(),
            preemptions: Preemptions::default(),
            gangs: Gangs::default(),
            devices: Devices::default(),
            quotas: Quotas::default(),
            spread: Spread::default(),
            binders: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub(crate) fn pods(&mut self) -> Vec<Arc<Pod>> {
        let mut before = std::mem::take(&mut self.read);
        for object in self.sandbox.objects("pods") {
            let uid = text(&object, "/metadata/uid");
            let known = before.remove(uid).filter(|(from, _)| Arc::ptr_eq(from, &object));
            let pod = known.map_or_else(|| Arc::new(Pod::read(&object)), |(_, pod)| pod);
            self.read.insert(uid.to_owned(), (object.clone(), pod));
        }
        self.read.values().map(|(_, pod)| pod.clone()).collect()
    }

    /// A GPU that works and of which nothing is given away or reserved, by its node and number.
    pub(crate) fn free_gpu(&mut self, dice: &mut Dice) -> Option<(String, u64)> {
        let pods = self.pods();
        self.devices.free_gpu(dice, &pods)
    }

    /// Looks at everything, if anything was written.
    pub(crate) fn look(&mut self, writer: Writer) {
        let revision = self.sandbox.resource_version();
        if revision == self.revision {
            return;
        }
        self.revision = revision;
        let (pods, nodes) = (self.pods(), self.sandbox.objects("nodes"));
        let now = self.sandbox.now();
        for node in &nodes {
            self.take_inventory(node, now);
            self.judge_lock(node, &pods, writer, now);
        }
        let living: Vec<&Pod> =
            pods.iter().map(AsRef::as_ref).filter(|pod| pod.is_live() && !pod.node.is_empty()).collect();
        let of_koordinator = |plural| self.sandbox.objects_of(devices::GROUP, plural);
        let (devices, reservations) = (of_koordinator("devices"), of_koordinator("reservations"));
        self.devices.see(&devices, &reservations, (&pods, now));
        self.quotas.see(&self.sandbox.objects("resourcequotas"), now);
        self.violations.extend(self.preemptions.see(&pods, now));
        self.violations.extend(self.gangs.see(&pods, &groups(&self.sandbox)));
        self.division.iter_mut().for_each(|division| division.see(&pods, now));
        for pod in living.iter().filter(|pod| pod.ours && !self.bound.contains_key(&pod.uid)) {
            self.violations.extend(taken_away(pod, &self.preemptions, &pods, &nodes, now));
        }
        for pod in &living {
            self.judge_bound(pod, &living, now);
        }
    }

    /// Who binds holds the Lease, or nobody else does.
    pub(crate) fn judge_binder(&mut self, who: &str, call: &Call) {
        let pod = call.path.rsplit('/').nth(1).unwrap_or_default();
        self.binders.entry(format!("default/{pod}")).or_default().insert(who.to_owned());
        for lease in self.sandbox.objects_of("coordination.k8s.io", "leases") {
            let holder = text(&lease, "/spec/holderIdentity");
            if !holder.is_empty() && holder != who {
                self.violations.push(format!("{who} was served {call} while {holder} leads"));
            }
        }
    }

    /// The API server has evicted a pod.
    pub(crate) fn judge_eviction(&mut self, call: &Call) {
        let pods: Vec<_> = self.read.values().map(|(_, pod)| pod.clone()).collect();
        let pod = call.path.rsplit('/').nth(1).unwrap_or_default();
        let now = self.sandbox.now();
        let division = self.division.as_mut();
        self.violations.extend(division.and_then(|division| division.judge_eviction(pod, &pods, now)));
    }

    /// Whether no life of Berth has bound pods of both names, so that the second can't have known of the first, which was gone.
    pub(crate) fn bound_in_different_lives(&self, one: &str, other: &str) -> bool {
        match (self.binders.get(one), self.binders.get(other)) {
            (Some(one), Some(other)) => one.is_disjoint(other),
            _ => false,
        }
    }

    fn take_inventory(&mut self, node: &Value, now: Timestamp) {
        let known = self.inventories.entry(text(node, "/metadata/name").to_owned()).or_default();
        let Some((_, cards)) = cards(node) else { return };
        if let Some(last) = known.last_mut()
            && last.1 == cards
        {
            last.0 = now;
            return;
        }
        known.push((now, cards));
    }

    /// The most that the node has had of a card since then; the newest counts whenever it was seen.
    fn capacity(&self, node: &str, card: &str, since: Timestamp) -> Option<Amount> {
        let known = self.inventories.get(node)?;
        let newest = known.len().checked_sub(1)?;
        let recent = known.iter().enumerate().filter(|(at, (seen, _))| *at == newest || *seen >= since);
        recent.filter_map(|(_, (_, cards))| cards.get(card).copied()).reduce(Amount::most)
    }

    fn judge_bound(&mut self, pod: &Pod, living: &[&Pod], now: Timestamp) {
        if let Some(before) = self.bound.get(&pod.uid) {
            if before.node != pod.node || before.record != pod.record {
                self.violations.push(format!("{} was bound twice: {before:?}, {}", pod.name, pod.node));
            }
            return;
        }
        let bound = Bound { node: pod.node.clone(), record: pod.record.clone() };
        self.bound.insert(pod.uid.clone(), bound);
        if !pod.ours {
            return;
        }
        if pod.record_node != pod.node && pod.devices.is_none() {
            self.violations
                .push(format!("{} is on {} and recorded on {}", pod.name, pod.node, pod.record_node));
        }
        if let Err(error) = pod.is_given_its_wish() {
            self.violations.push(format!("{}: {error}", pod.name));
        }
        if pod.gated {
            self.violations.push(format!("{} was bound behind its gate", pod.name));
        }
        self.judge_cards(pod, living, now);
        self.violations.extend(self.devices.judge_bound(pod, living, now - MEMORY));
        self.judge_claims(pod);
        let division = self.division.as_ref();
        self.violations.extend(division.and_then(|division| division.judge_bound(pod, now)));
        let near = living.iter().filter(|other| other.node == pod.node && other.uid != pod.uid);
        for other in near.filter(|other| other.apart && pod.apart) {
            self.violations.push(format!("{} was bound to {} beside {}", pod.name, pod.node, other.name));
        }
        if let Err(error) = self.quotas.judge(pod, living, now - MEMORY) {
            self.violations.push(format!("{} was bound beyond the quota: {error}", pod.name));
        }
        let others = living.iter().filter(|other| other.node == pod.node && other.uid != pod.uid);
        for other in others.filter(|other| other.is_awaited()) {
            let text = format!(
                "{} was bound to {} while {} awaits its answer there",
                pod.name, pod.node, other.name
            );
            self.violations.push(text);
        }
    }

    /// A pod's claims are bound before it is, to volumes of its node.
    fn judge_claims(&mut self, pod: &Pod) {
        let (claims, volumes) =
            (self.sandbox.objects("persistentvolumeclaims"), self.sandbox.objects("persistentvolumes"));
        for name in &pod.claims {
            let claim = called(&claims, name).filter(|claim| is_bound(claim));
            let volume = claim.and_then(|claim| called(&volumes, text(claim, "/spec/volumeName")));
            let place = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0";
            if volume.is_none_or(|volume| text(volume, place) != pod.node) {
                let text = format!("{} was bound to {} without its claim {name}", pod.name, pod.node);
                self.violations.push(text);
            }
        }
    }

    /// Once faults have stopped and no volume is made: a claim is selected for a node only while a pod is to go there with it.
    pub(crate) fn judge_selected_claims(&mut self) {
        let pods = self.pods();
        for claim in self.sandbox.objects("persistentvolumeclaims").iter().filter(|claim| !is_bound(claim)) {
            let name = text(claim, "/metadata/name");
            let selected = annotation(claim, "volume.kubernetes.io/selected-node");
            let used = pods.iter().any(|pod| pod.is_live() && pod.claims.iter().any(|used| used == name));
            if let Some(node) = selected.filter(|_| !used) {
                self.violations.push(format!("{name} is left selected for {node}, and no pod uses it"));
            }
        }
    }

    /// While all is calm: pods that are spread stand where they may, and none waits that could stand somewhere.
    pub(crate) fn judge_spread(&mut self) {
        let (pods, nodes) = (self.pods(), self.sandbox.objects("nodes"));
        self.violations.extend(self.spread.judge(&nodes, &pods));
        self.judge_the_end();
    }

    fn judge_cards(&mut self, pod: &Pod, living: &[&Pod], now: Timestamp) {
        // A lock is taken against the very node that was decided on; without one, a decision is as old as a watch may lag.
        let mut since = now - MEMORY;
        if pod.node.starts_with("hami") {
            let Some(taken) = self.taken.get(&(pod.node.clone(), pod.name.clone())) else {
                self.violations.push(format!("{} was bound to {} without its lock", pod.name, pod.node));
                return;
            };
            since = *taken;
        }
        for card in pod.holds().keys() {
            let Some(capacity) = self.capacity(&pod.node, card, since) else {
                self.violations.push(format!("{}: node {} has no healthy card {card}", pod.name, pod.node));
                continue;
            };
            let here = living.iter().filter(|other| other.node == pod.node);
            let used = here
                .filter_map(|other| other.holds().get(card).copied())
                .fold(Amount::default(), Amount::plus);
            if !used.within(capacity) {
                let text =
                    format!("card {card} has {capacity:?} and {used:?} is given away, last to {}", pod.name);
                self.violations.push(text);
            }
        }
    }

    /// A foreign lock whose holder may still be served is left alone.
    fn judge_lock(&mut self, node: &Value, pods: &[Arc<Pod>], writer: Writer, now: Timestamp) {
        let name = text(node, "/metadata/name");
        let lock = annotation(node, LOCK).unwrap_or_default();
        let before = self.locks.insert(name.to_owned(), lock.to_owned()).unwrap_or_default();
        if let Some(holder) = lock.rsplit(',').next().filter(|_| before != lock && writer == Writer::Berth) {
            self.taken.insert((name.to_owned(), holder.to_owned()), now);
        }
        if before == lock || before.is_empty() || writer != Writer::Berth {
            return;
        }
        let fields: Vec<&str> = before.split(',').collect();
        let Ok(since) = fields[0].parse::<Timestamp>() else { return };
        let respected = match fields[..] {
            [_] => true,
            [_, _, holder] => pods.iter().any(|pod| pod.name == holder && pod.is_live() && !pod.ours),
            _ => false,
        };
        if respected && since + FOREIGN > now {
            self.violations
                .push(format!("the lock `{before}` of {name} became `{lock}` while its holder lives"));
        }
    }

    /// Once faults have stopped and time has run: nothing waits that would fit, and no lock is left behind.
    pub(crate) fn judge_the_end(&mut self) {
        let pods = self.pods();
        let nodes = self.sandbox.objects("nodes");
        for pod in
            pods.iter().filter(|pod| pod.ours && pod.is_live() && pod.node.is_empty() && !pod.terminating)
        {
            match &pod.waits_because {
                _ if pod.gated => {}
                None => self.violations.push(format!("{} is neither bound nor told why", pod.name)),
                Some(reason) => self.judge_waiting(pod, reason, &pods, &nodes),
            }
        }
        for pod in pods.iter().filter(|pod| pod.is_live() && !pod.node.is_empty()) {
            if pod.waits_because.is_some() {
                self.violations.push(format!("{} is bound, and its condition says that it waits", pod.name));
            }
            if pod.is_awaited() && nodes.iter().any(|node| text(node, "/metadata/name") == pod.node) {
                self.violations.push(format!("{} is bound and never answered", pod.name));
            }
        }
        self.violations.extend(self.gangs.judge_the_end(&pods, &groups(&self.sandbox)));
        self.violations.extend(fresh::look(&self.sandbox, &self.config));
        let now = self.sandbox.now();
        self.violations.extend(self.division.iter().flat_map(|division| division.judge_the_end(&pods, now)));
        for node in &nodes {
            let lock = annotation(node, LOCK).unwrap_or_default();
            if lock.contains(",default,pod-") {
                self.violations
                    .push(format!("the lock `{lock}` of {} is left", text(node, "/metadata/name")));
            }
        }
    }

    fn judge_waiting(&mut self, pod: &Pod, reason: &str, pods: &[Arc<Pod>], nodes: &[Arc<Value>]) {
        // Whether a gang has room is left to the fresh look.
        if pod.group.as_ref().is_some_and(|group| reason.starts_with(&format!("PodGroup default/{group}: ")))
        {
            return;
        }
        let told = format!("0/{} nodes are available: ", nodes.len());
        let unreadable = reason.starts_with("Pod's GPU request can't be read: ");
        let holders: Vec<&Pod> =
            pods.iter().map(AsRef::as_ref).filter(|pod| pod.is_live() && !pod.node.is_empty()).collect();
        let surely_over = self.quotas.exceeds(pod, &holders, Pod::takes);
        let maybe_over = self.quotas.exceeds(pod, &holders, Pod::may_take);
        let true_of_it = (reason.starts_with(&told) && (!surely_over || !pod.readable))
            || (unreadable && !pod.readable)
            || (maybe_over && reason.starts_with("exceeded quota: "));
        if !true_of_it {
            self.violations.push(format!("{} waits for a reason that is not true: {reason}", pod.name));
        }
        if (!pod.readable && pod.devices.is_none()) || maybe_over {
            return;
        }
        // Pods of lower priority would go for it.
        let staying: Vec<_> = pods.iter().filter(|other| other.priority >= pod.priority).cloned().collect();
        let now = self.sandbox.now();
        let open = |node: &&Arc<Value>| {
            let name = text(node, "/metadata/name");
            self.division.as_ref().is_none_or(|division| division.takes(pod, name, now))
        };
        let open: Vec<_> = nodes.iter().filter(open).collect();
        for node in open {
            if node["spec"]["unschedulable"] != true
                && (would_fit(pod, node, nodes, &staying) || self.devices.would_fit(pod, node, &staying))
            {
                let text = format!(
                    "{} waits though {} would have it: {reason}",
                    pod.name,
                    text(node, "/metadata/name")
                );
                self.violations.push(text);
            }
        }
    }
}

fn groups(sandbox: &Sandbox) -> Vec<Arc<Value>> {
    sandbox.objects_of("scheduling.volcano.sh", "podgroups")
}

fn called<'a>(objects: &'a [Arc<Value>], name: &str) -> Option<&'a Arc<Value>> {
    objects.iter().find(|object| text(object, "/metadata/name") == name)
}

fn is_bound(claim: &Value) -> bool {
    annotation(claim, "pv.kubernetes.io/bind-completed").is_some()
        && !text(claim, "/spec/volumeName").is_empty()
}

/// The pods for which a node is kept and that have no room any more since this pod has been bound there.
fn taken_away(
    bound: &Pod,
    preemptions: &Preemptions,
    pods: &[Arc<Pod>],
    nodes: &[Arc<Value>],
    now: Timestamp,
) -> Vec<String> {
    let Some(node) = called(nodes, &bound.node) else { return Vec::new() };
    let with: Vec<_> = pods.iter().filter(|pod| !pod.terminating && !pod.preempted).cloned().collect();
    let without: Vec<_> = with.iter().filter(|pod| pod.uid != bound.uid).cloned().collect();
    let kept = preemptions.kept_before(bound, pods, now);
    let robbed =
        kept.filter(|pod| would_fit(pod, node, nodes, &without) && !would_fit(pod, node, nodes, &with));
    let words =
        |pod: &Arc<Pod>| format!("{} was given what {} is kept for {}", bound.name, bound.node, pod.name);
    robbed.map(words).collect()
}

/// Whether a plain search, container by container, finds room: if it does, there is some.
fn would_fit(pod: &Pod, node: &Value, nodes: &[Arc<Value>], pods: &[Arc<Pod>]) -> bool {
    let name = text(node, "/metadata/name");
    let Some((family, capacity)) = cards(node) else { return false };
    // Where these may go is left to the fresh look.
    if pod.apart || !pod.claims.is_empty() {
        return false;
    }
    let skewed = |zone| !spread::admits(&spread::counts(nodes, pods), zone);
    if pod.spreads && spread::zone(node).is_none_or(skewed) {
        return false;
    }
    if pod.family != Some(family) || pod.wishes.iter().filter(|wish| wish.cards > 0).count() != 1 {
        return false;
    }
    let mut used: BTreeMap<String, Amount> = BTreeMap::new();
    for other in pods.iter().filter(|other| other.is_live() && other.node == name) {
        for (card, amount) in other.may_hold() {
            let used = used.entry(card).or_default();
            *used = used.plus(amount);
        }
    }
    if !kubelet_would(pod, name, &capacity, pods) {
        return false;
    }
    let wish = pod.wishes.iter().find(|wish| wish.cards > 0).copied().unwrap_or_default();
    let free = capacity
        .iter()
        .filter(|(card, has)| takes(used.get(*card).copied().unwrap_or_default(), **has, &wish));
    free.count() >= wish.cards
}

/// Whether Kubernetes' own account of extended resources, which knows no cards, has room.
fn kubelet_would(pod: &Pod, node: &str, capacity: &BTreeMap<String, Amount>, pods: &[Arc<Pod>]) -> bool {
    let there = pods.iter().filter(|other| other.is_live() && other.node == node);
    let asked = there.map(|pod| pod.asks()).fold(pod.asks(), Amount::plus);
    let has = capacity.values().copied().fold(Amount::default(), Amount::plus);
    let counted = if pod.family == Some(Family::Hami) {
        Amount { slots: asked.slots, ..Amount::default() }
    } else {
        asked
    };
    counted.within(has)
}

fn takes(used: Amount, has: Amount, wish: &Wish) -> bool {
    let more = Amount { slots: 1, memory: wish.memory, cores: wish.cores };
    let exclusive = wish.cores >= 100 && used.slots > 0;
    used.plus(more).within(has) && !exclusive && used.cores < has.cores
}
