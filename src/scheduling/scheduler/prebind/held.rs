//! Places that pods hold while their claims are being bound: no container runs there, and others may wait for them.
//!
//! A pod holds its place for as long as it likes while nobody else needs it. After [`HELD`] it goes to a pod of no lower priority that fits
//! nowhere and would fit there; the holder is decided again after that one, and its volumes are made meanwhile. A namespace may hold only a part of
//! the cluster's cards in this way, beside one pod or one gang.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{PodProgress, Prebind, Scheduler, State, Step};
use crate::{
    device::{Allocation, CardId, DeviceType, Inventory, Minor, ProfileName},
    scheduling::{
        decide::{
            Decision, Filters,
            blame::{Blame, Resolvable},
            class::{Classes, Held},
            fit_error::{Awaits, FitError},
            verdict::NodeVerdict,
        },
        model::{
            gang::GangName,
            message::Message,
            name::{NodeName, Uid},
            pod::{Demand, PodKey},
            prebind_step::PrebindStep,
            steps::JUDGE,
        },
        plan::Plan,
        world::ledger::Charge,
    },
};

/// After so long a place is given to others that need it. A volume is mostly made in less.
const HELD: SignedDuration = SignedDuration::from_secs(30);

/// After so long the pod says what it waits for.
const SAID: SignedDuration = SignedDuration::from_secs(10);

/// Taking a place on trial and giving it back, in steps.
const TAKE: u64 = 16 * JUDGE;

/// On so many nodes places are looked for at most.
const MOST_NODES: usize = 100;

/// A pod that gives its place to others, by its priority and since when it holds that.
pub(in crate::scheduling::scheduler) type Holder = (i32, Timestamp, Uid);

/// A card or a device by type, on its node.
pub(in crate::scheduling::scheduler) type HeldCard = (NodeName, ProfileName, Result<CardId, Minor>);

impl Prebind {
    /// Since when it holds its place for so long.
    fn after(&self, time: SignedDuration) -> Timestamp {
        self.since.checked_add(time).unwrap_or(Timestamp::MAX)
    }

    /// When the pod says what it waits for, or gives its place to others.
    pub(super) fn held_deadline(&self) -> Option<Timestamp> {
        let said = (!self.is_said).then(|| self.after(SAID));
        said.into_iter().chain((!self.yields).then(|| self.after(HELD))).min()
    }

    /// Whether the pod waits for others than Berth: a volume that is to be bound or made, or anything that takes that long.
    fn waits_for_others(&self) -> bool {
        self.is_said || self.steps.iter().any(|step| step.choice.volume().is_some())
    }
}

impl Scheduler {
    /// Has pods say what they wait for on their nodes, and decides those again that would have a place which is given to others from now on.
    pub(in crate::scheduling::scheduler) fn watch_held(&mut self, now: Timestamp) {
        let due = |prebind: &Prebind| prebind.held_deadline().is_some_and(|at| at <= now);
        let due = self.prebinding.pods.iter().filter(|(_, prebind)| due(prebind));
        let due: Vec<Uid> = due.map(|(uid, _)| uid.clone()).collect();
        let mut nodes = BTreeSet::new();
        for uid in due {
            let Some(prebind) = self.prebinding.pods.get_mut(&uid) else { continue };
            if prebind.after(HELD) <= now {
                prebind.yields = true;
                nodes.insert(prebind.node.clone());
            }
            if !std::mem::replace(&mut prebind.is_said, true) {
                let message = held(prebind);
                self.tell_unschedulable(&uid, Blame::Claims, message);
            }
        }
        for node in nodes {
            self.wake_for_held(&node);
        }
    }

    /// Decides pods again that would have the node, were it not for pods that give their places there to others.
    pub(in crate::scheduling::scheduler) fn wake_for_held(&mut self, node: &NodeName) {
        let yields = |prebind: &Prebind| prebind.yields && prebind.node == *node;
        if !self.prebinding.pods.values().any(yields) {
            return;
        }
        let Some(slot) = self.snapshot.nodes.slot(node) else { return };
        let before = self.versions();
        let holders = self.yielding(i32::MAX, None).remove(node).unwrap_or_default();
        let mut plan = Plan::new(&mut self.snapshot);
        for (.., uid) in &holders {
            plan.evict(uid);
        }
        let state = plan.node(node).cloned();
        drop(plan);
        self.keep_rejections(before);
        let Some(state) = state else { return };
        let (resources, now) = (self.snapshot.device_resources(), self.snapshot.now());
        for uid in self.classes.wake(slot, &state, resources, (Held::Less, now)) {
            self.set_progress(&uid, PodProgress::Idle);
            self.enqueue(&uid);
        }
    }

    /// The pods of no higher priority than this that give their places to others, by node, in the order in which they go; not those of the gang of
    /// this pod. One that would hold such a place again takes none of its own namespace's while pods of others are to be decided: else the pods of
    /// one namespace would pass their places on to each other.
    pub(in crate::scheduling::scheduler) fn yielding(
        &self,
        priority: i32,
        pod: Option<&Uid>,
    ) -> BTreeMap<NodeName, Vec<Holder>> {
        let own = pod.and_then(|uid| self.gang_name(uid));
        // A pod that would hold a place for a volume itself takes none of its own namespace while pods of other namespaces are to be decided.
        let left_to_others = pod.filter(|uid| self.lacks_volume(uid)).and_then(|uid| {
            let own = &self.pods.get(uid)?.info.key.namespace;
            let queue = &self.waiting.queue;
            let comes_first = queue.namespaces().chain(queue.early_namespaces()).any(|other| other != own);
            comes_first.then_some(own)
        });
        let mut holders: BTreeMap<NodeName, Vec<Holder>> = BTreeMap::new();
        for (uid, prebind) in self.prebinding.pods.iter().filter(|(_, prebind)| prebind.yields) {
            let Some(charge) = self.snapshot.ledger().get(uid) else { continue };
            let its = charge.importance.priority;
            let is_left = left_to_others == Some(&charge.namespace);
            if its <= priority && !is_left && (own.is_none() || self.gang_name(uid) != own) {
                holders.entry(prebind.node.clone()).or_default().push((its, prebind.since, uid.clone()));
            }
        }
        for holders in holders.values_mut() {
            holders.sort();
        }
        holders
    }

    /// Puts back as few pods as make room for one that fits nowhere, of those that give their places to others; whether there is room now.
    pub(in crate::scheduling::scheduler) fn take_held(
        &mut self,
        uid: &Uid,
        error: &FitError,
        now: Timestamp,
    ) -> bool {
        if matches!(error.awaits(), Awaits::Quota | Awaits::Comparison)
            || !self.prebinding.pods.values().any(|prebind| prebind.yields)
        {
            return false;
        }
        let Some(demand) = self.demand(uid) else { return false };
        let mut nodes: Vec<_> = self.yielding(demand.priority, Some(uid)).into_iter().collect();
        nodes.sort_by(|(_, one), (_, other)| one.cmp(other));
        let before = self.versions();
        let mut search = Search { demand: &demand, classes: &mut self.classes };
        let mut plan = Plan::new(&mut self.snapshot);
        let nodes = nodes.iter().filter(|(node, _)| search.may_help(&plan, node));
        let nodes: Vec<_> = nodes.take(MOST_NODES).collect();
        let mut found = nodes.into_iter().filter_map(|(node, holders)| {
            let mark = plan.mark();
            let put_back = search.on_node(&mut plan, node, holders);
            plan.undo(mark);
            put_back
        });
        let put_back = found.next();
        drop(plan);
        self.keep_rejections(before);
        for holder in put_back.iter().flatten() {
            self.put_back(holder, now);
        }
        put_back.is_some()
    }

    /// Gives the place of a pod whose claims are being bound to others. What was written for its volumes stays, as kube-scheduler's Unreserve
    /// leaves it: they are made meanwhile.
    pub(in crate::scheduling::scheduler) fn put_back(&mut self, uid: &Uid, now: Timestamp) {
        let Some(mut prebind) = self.prebinding.pods.remove(uid) else { return };
        let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) else { return };
        let message = lost(&prebind);
        let is_volume = |step: &mut Step| step.choice.volume().is_some();
        let volumes = prebind.steps.extract_if(.., is_volume).collect();
        self.park(uid, Prebind { steps: volumes, node: prebind.node.clone(), ..prebind }, now);
        self.undo(&key, prebind);
        for mate in self.unbound_mates(uid) {
            self.waiting.queue.put_behind(&mate, now);
        }
        self.waiting.queue.put_behind(uid, now);
        self.back_off(uid, now);
        self.tell_unschedulable(uid, Blame::Claims, message);
    }

    /// Keeps in mind what was written for volumes of a pod that has lost its place.
    fn park(&mut self, uid: &Uid, mut parked: Prebind, now: Timestamp) {
        for step in parked.steps.iter_mut().filter(|step| step.state == State::Sent) {
            // Its answer is not heard any more.
            step.state = State::Due(now);
        }
        self.prebinding.parked.insert(uid.clone(), parked);
    }

    /// The pod has a place again: what was written for its volumes and is no part of that is taken back. Returns what is part of it.
    pub(super) fn take_up_parked(
        &mut self,
        uid: &Uid,
        node: &NodeName,
        steps: &[PrebindStep],
    ) -> Vec<PrebindStep> {
        let Some(mut parked) = self.prebinding.parked.remove(uid) else { return Vec::new() };
        let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) else { return Vec::new() };
        let stays = |step: &mut Step| parked.node == *node && steps.contains(&step.choice) && step.tries > 0;
        let taken: Vec<Step> = parked.steps.extract_if(.., stays).collect();
        self.undo(&key, parked);
        taken.into_iter().map(|step| step.choice).collect()
    }

    /// The pod is gone: what was written for its volumes while it had a place is taken back.
    pub(in crate::scheduling::scheduler) fn drop_parked(&mut self, pod: &PodKey) {
        if let Some(parked) = self.prebinding.parked.remove(&pod.uid) {
            self.undo(pod, parked);
        }
    }

    /// Has a pod wait that would hold a place until its volumes are bound, while its namespace holds as much of the cluster's cards so as it may;
    /// whether it is so. One pod may hold more, and a pod that takes a share of cards that are held already holds no more.
    pub(in crate::scheduling::scheduler) fn waits_for_part(
        &mut self,
        uid: &Uid,
        decision: &Decision,
        now: Timestamp,
    ) -> bool {
        let Decision { node, allocations, steps } = decision;
        if !steps.iter().any(|step| step.volume().is_some()) {
            return false;
        }
        let (held, wanted) = (self.held_beside(uid), cards(node, allocations));
        let more = wanted.difference(&held).count();
        if held.is_empty() || more == 0 || self.is_within_part(held.len() + more) {
            return false;
        }
        self.wait_for_part(uid, now);
        true
    }

    /// As [`Self::waits_for_part`], for a gang of this pod, which may hold more as a whole.
    pub(in crate::scheduling::scheduler) fn gang_waits_for_part(
        &mut self,
        uid: &Uid,
        now: Timestamp,
    ) -> bool {
        if !self.is_in_gang(uid) || !self.lacks_volume(uid) {
            return false;
        }
        let held = self.held_beside(uid).len();
        if held == 0 || self.is_within_part(held + 1) {
            return false;
        }
        self.wait_for_part(uid, now);
        true
    }

    fn wait_for_part(&mut self, uid: &Uid, now: Timestamp) {
        let Some(namespace) = self.pods.get(uid).map(|entry| entry.info.key.namespace.clone()) else {
            return;
        };
        self.back_off(uid, now);
        let message = format!(
            "pods of namespace {namespace} hold {}% of the cluster's cards while they wait for volumes \
             (scheduling.volumes.heldPercent); the pod waits until some of them are bound",
            self.prebinding.held_percent
        );
        self.tell_unschedulable(uid, Blame::Claims, message);
    }

    /// Whether a claim of the pod is still to be bound to a volume.
    fn lacks_volume(&self, uid: &Uid) -> bool {
        let Some(entry) = self.pods.get(uid) else { return false };
        let (objects, footprint) = (self.snapshot.objects(), &entry.info.footprint);
        let claim = |name: &str| objects.claim(&footprint.namespace, name);
        footprint.claims.iter().any(|used| claim(&used.name).is_some_and(|claim| !claim.is_bound()))
    }

    /// The cards that other pods of the pod's namespace hold while they wait for volumes; those of its gang do not count.
    fn held_beside(&self, uid: &Uid) -> BTreeSet<HeldCard> {
        let Some(namespace) = self.pods.get(uid).map(|entry| &entry.info.key.namespace) else {
            return BTreeSet::new();
        };
        let own = self.gang_name(uid);
        let others = self.prebinding.pods.iter().filter(|(_, prebind)| prebind.waits_for_others());
        let others = others.filter(|(uid, _)| own.is_none() || self.gang_name(uid) != own);
        let charges = others.filter_map(|(uid, _)| self.snapshot.ledger().get(uid));
        let charges = charges.filter(|charge| charge.namespace == *namespace);
        charges.flat_map(|charge| cards(&charge.node, &charge.allocations)).collect()
    }

    /// Whether so many cards are no more than the pods of a namespace may hold while they wait for volumes.
    fn is_within_part(&self, cards: usize) -> bool {
        let inventories = self.snapshot.nodes().flat_map(|node| &node.info.offers);
        let inventories = inventories.filter_map(|offer| offer.inventory.as_ref());
        let of =
            |inventory: &Inventory| inventory.cards().len() + inventory.devices().of(DeviceType::Gpu).count();
        let all: usize = inventories.map(of).sum();
        cards * 100 <= all * usize::try_from(self.prebinding.held_percent).unwrap_or(usize::MAX)
    }

    fn gang_name(&self, uid: &Uid) -> Option<&GangName> {
        self.pods.get(uid).and_then(|entry| entry.info.groups.gang.as_ref()).map(|member| &member.gang)
    }
}

/// The cards of the node on which a pod with these allocations holds something.
pub(in crate::scheduling::scheduler) fn cards(
    node: &NodeName,
    allocations: &[Allocation],
) -> BTreeSet<HeldCard> {
    let of = |allocation: &Allocation| {
        let shares = allocation.assignment.shares().map(|share| Ok(share.card.clone()));
        let devices = allocation.assignment.devices.get(&DeviceType::Gpu).into_iter().flatten();
        let devices = devices.map(|device| Err(device.minor));
        let cards: Vec<Result<CardId, Minor>> = shares.chain(devices).collect();
        let profile = allocation.profile.clone();
        cards.into_iter().map(move |card| (node.clone(), profile.clone(), card))
    };
    allocations.iter().flat_map(of).collect()
}

/// What the pod says while it holds its place.
fn held(prebind: &Prebind) -> Message {
    let Prebind { node, since, .. } = prebind;
    let (what, until) = (awaited(prebind), prebind.after(HELD));
    let on = |node: &str| {
        format!(
            "waiting on {node} since {since} for {what}; the place goes to another pod that needs it from {until} on"
        )
    };
    Message::with_own(on(&format!("node {node}")), on("a node"))
}

/// What the pod says once its place is another's.
fn lost(prebind: &Prebind) -> Message {
    let Prebind { node, since, .. } = prebind;
    let what = awaited(prebind);
    let on = |node: &str| {
        format!(
            "the place on {node} was given to another pod: this one had waited there for {what} since {since}"
        )
    };
    Message::with_own(on(&format!("node {node}")), on("its node"))
}

fn awaited(prebind: &Prebind) -> String {
    let step = prebind.awaited.and_then(|at| prebind.steps.get(at)).map(|step| &step.choice);
    match step {
        Some(PrebindStep::Volume(choice)) => format!("persistentvolumeclaim {:?}", choice.claim()),
        Some(step) => format!("resourceclaim {:?}", step.claim()),
        None => "the claims of its gang".to_owned(),
    }
}

/// Looks for places of pods that give them to others.
struct Search<'a> {
    demand: &'a Demand,
    classes: &'a mut Classes,
}

impl Search<'_> {
    /// Whether the node could have the pod if fewer pods were there.
    fn may_help(&self, plan: &Plan<'_>, node: &NodeName) -> bool {
        let Some(state) = plan.node(node) else { return false };
        match NodeVerdict::of(&self.demand.ask, state, plan.device_resources()) {
            NodeVerdict::Fits(..) => true,
            NodeVerdict::Fails(reasons) => Resolvable::on_node(&reasons) == Resolvable::Yes,
        }
    }

    /// The pods that go so that the node has room, as few as do; `None`: it has none without them either.
    fn on_node(&mut self, plan: &mut Plan<'_>, node: &NodeName, holders: &[Holder]) -> Option<BTreeSet<Uid>> {
        self.classes.counts().steps().add(TAKE, holders.len());
        let mut held: Vec<(Uid, Charge)> = Vec::new();
        for (.., uid) in holders {
            held.push((uid.clone(), plan.evict(uid)?));
        }
        if !self.fits(plan, node) {
            return None;
        }
        let mut put_back = BTreeSet::new();
        // Those of the highest priority keep their places first, and of these those that have held theirs for the shortest time.
        for (uid, charge) in held.into_iter().rev() {
            plan.place(&uid, charge);
            if !self.fits(plan, node) {
                plan.evict(&uid);
                put_back.insert(uid);
            }
        }
        Some(put_back)
    }

    fn fits(&mut self, plan: &Plan<'_>, node: &NodeName) -> bool {
        let counts = self.classes.counts();
        counts.steps().add(JUDGE + self.demand.ask.cost(), 1);
        let filters = Filters::prepare(self.demand, plan.world(), counts);
        filters.rejected().is_none() && plan.node(node).is_some_and(|state| filters.passes(state))
    }
}
