//! The invariants, checked on what the API server holds after every write, without any of Berth's code.

#[path = "checker/end.rs"]
mod end;
#[path = "checker/room.rs"]
mod room;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth::config::{Config, NodeLockPolicy};
use berth_sandbox::{Sandbox, fault::Call};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    device_claims::{self, Claims, Template},
    devices::{self, Devices},
    dice::Dice,
    gang::Gangs,
    groups::{self, Groups},
    kept_room,
    preemption::Preemptions,
    quota::Quotas,
    record::{Amount, Pod, annotation, cards, text},
    rival,
    spread::Spread,
    story::Story,
    time_division::{Division, Windows},
    usage::{self, Usage},
};
use room::{TakenAway, taken_away};

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
    /// What nodes kept for pods and other pods were given.
    taken_away: Vec<TakenAway>,
    gangs: Gangs,
    groups: Groups,
    devices: Devices,
    device_claims: Claims,
    config: Config,
    division: Option<Division>,
    quotas: Quotas,
    spread: Spread,
    usage: Usage,
    /// Which lives of Berth have bound a pod of this name.
    binders: BTreeMap<String, BTreeSet<String>>,
    pub(crate) violations: Vec<String>,
}

impl Checker {
    /// Users are told as much as in this story, and room is kept as there: a fresh look tells them no more, and keeps it on.
    pub(crate) fn telling(&mut self, story: &Story) {
        self.config.messages.details = story.details;
        kept_room::set(&mut self.config, story.rooms);
        rival::set(&mut self.config, story);
    }

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
            taken_away: Vec::new(),
            gangs: Gangs::default(),
            groups: Groups::default(),
            devices: Devices::default(),
            device_claims: Claims::default(),
            quotas: Quotas::default(),
            spread: Spread::default(),
            usage: Usage::default(),
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

    /// A device of this node that the template asks for, whoever has it.
    pub(crate) fn some_device(&self, dice: &mut Dice, template: Template, node: &str) -> Option<String> {
        self.device_claims.some_device(dice, template, node)
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
        let of_claims = |plural| self.sandbox.objects_of(device_claims::GROUP, plural);
        let (slices, claims) = (of_claims("resourceslices"), of_claims("resourceclaims"));
        self.violations.extend(self.device_claims.see((&slices, &claims), writer, (now - MEMORY, now)));
        self.quotas.see(&self.sandbox.objects("resourcequotas"), now);
        let accounts = self.sandbox.objects("configmaps");
        self.violations.extend(self.usage.see(&pods, called(&accounts, usage::NAME), now));
        self.violations.extend(self.preemptions.see(&pods, now));
        self.violations.extend(self.gangs.see(&pods, &of_volcano(&self.sandbox)));
        for lease in self.sandbox.objects_of("coordination.k8s.io", "leases") {
            self.groups.see_leader(text(&lease, "/spec/holderIdentity"), now);
        }
        let groups =
            groups::Kind::BOTH.map(|kind| (kind, self.sandbox.objects_of(groups::API, kind.names()[2])));
        self.violations.extend(self.groups.see(&pods, &groups, &nodes, now));
        self.division.iter_mut().for_each(|division| division.see(&pods, now));
        for pod in living.iter().filter(|pod| pod.ours && !self.bound.contains_key(&pod.uid)) {
            self.taken_away.extend(taken_away(
                pod,
                &self.preemptions,
                &pods,
                (&nodes, &self.device_claims),
                now,
            ));
        }
        self.taken_away.retain(|taken| !taken.is_excused(&pods, &nodes, &self.device_claims));
        let wrong = self.taken_away.extract_if(.., |taken| taken.is_wrong(now));
        self.violations.extend(wrong.map(|taken| taken.words));
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
        if pod.record_node != pod.node && pod.devices.is_none() && pod.device_claims.is_empty() {
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
        self.violations.extend(self.device_claims.judge_bound(pod, &self.groups));
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

    fn judge_cards(&mut self, pod: &Pod, living: &[&Pod], now: Timestamp) {
        // A lock is taken against the very node that was decided on; without one, a decision is as old as a watch may lag.
        let mut since = now - MEMORY;
        if self.leaves_locks_out() && pod.node.starts_with("hami") && !self.is_locked_for(pod) {
            if rival::is_known(&self.sandbox, now) {
                let text = format!(
                    "{} was bound to {} without its lock beside another scheduler",
                    pod.name, pod.node
                );
                self.violations.push(text);
            }
        } else if pod.node.starts_with("hami") {
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

    /// Whether Berth takes no lock while no other scheduler runs.
    fn leaves_locks_out(&self) -> bool {
        self.config.dialects.hami.node_locks.policy == NodeLockPolicy::Auto
    }

    /// Whether the pod's node bears its lock.
    fn is_locked_for(&self, pod: &Pod) -> bool {
        self.locks.get(&pod.node).is_some_and(|lock| lock.ends_with(&format!(",{}", pod.name)))
    }

    /// A foreign lock whose holder may still be served is left alone; and no other scheduler gets a lock while a pod of Berth's is being served
    /// without one.
    fn judge_lock(&mut self, node: &Value, pods: &[Arc<Pod>], writer: Writer, now: Timestamp) {
        let name = text(node, "/metadata/name");
        let lock = annotation(node, LOCK).unwrap_or_default();
        let before = self.locks.insert(name.to_owned(), lock.to_owned()).unwrap_or_default();
        if let Some(holder) = lock.rsplit(',').next().filter(|_| before != lock && writer == Writer::Berth) {
            self.taken.insert((name.to_owned(), holder.to_owned()), now);
        }
        if before.is_empty() && !lock.is_empty() && writer == Writer::Other && self.leaves_locks_out() {
            let served =
                pods.iter().find(|pod| pod.ours && pod.is_live() && pod.node == name && pod.is_awaited());
            let words = |pod: &Arc<Pod>| {
                format!("{} awaits its answer on {name}, which another locks: `{lock}`", pod.name)
            };
            self.violations.extend(served.map(words));
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
        if respected && since + self.config.dialects.hami.node_locks.expire > now {
            self.violations
                .push(format!("the lock `{before}` of {name} became `{lock}` while its holder lives"));
        }
    }
}

fn of_volcano(sandbox: &Sandbox) -> Vec<Arc<Value>> {
    sandbox.objects_of("scheduling.volcano.sh", "podgroups")
}

fn called<'a>(objects: &'a [Arc<Value>], name: &str) -> Option<&'a Arc<Value>> {
    objects.iter().find(|object| text(object, "/metadata/name") == name)
}

fn is_bound(claim: &Value) -> bool {
    annotation(claim, "pv.kubernetes.io/bind-completed").is_some()
        && !text(claim, "/spec/volumeName").is_empty()
}
