//! What each pod holds on which node: one charge for a pod, whatever its dialects and whichever scheduler bound it.
//!
//! Nothing is added or subtracted here: what is in use of a node is folded from the charges on it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    footprint::Footprint,
    node::NodeName,
    object::full_name,
    plugin::volume_binding::{Reservations, VolumeChoice},
    pod::{Importance, Placer, Stage, Uid},
    quota,
};
use crate::device::{
    Allocation, Answer, Assignment, CardUsage, Cuts, InitPhase, ProfileName, Share, Usage, usage,
};

/// How firm a charge is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Commitment {
    /// Decided here and not yet bound: confirmed or forgotten, never expired by a timer.
    Assumed,
    /// Meant by another scheduler.
    Intended,
    /// Bound.
    Bound,
}

/// What one pod holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Charge {
    /// On which node.
    pub node: NodeName,
    /// On whose quota.
    pub namespace: Arc<str>,
    /// Shares of cards, one allocation for each dialect.
    pub allocations: Vec<Allocation>,
    /// Whether its init containers still count.
    pub init: InitPhase,
    /// What it is to the plugins beside its cards.
    pub footprint: Arc<Footprint>,
    /// What binds its claims, until they are bound.
    pub volumes: Vec<VolumeChoice>,
    /// Whether, and in which order, it is a victim of preemption.
    pub importance: Importance,
    /// Who placed it.
    pub placer: Placer,
    /// How firm it is.
    pub commitment: Commitment,
    /// How far the pod is.
    pub stage: Stage,
    /// Since when the node's agents owe an answer.
    pub since: Timestamp,
}

impl Charge {
    /// Whether an agent of the node is at work for this pod: no other may be bound there meanwhile.
    pub fn is_in_flight(&self) -> bool {
        self.commitment == Commitment::Bound
            && self.stage == Stage::Pending
            && self.allocations.iter().any(Allocation::is_awaited)
    }

    /// Whether the pod was given just these cards by a decision of Berth's own.
    pub fn gives(&self, allocations: &[Allocation]) -> bool {
        let shares = |one| {
            let Allocation { profile, assignment, .. }: &Allocation = one;
            (profile, assignment)
        };
        self.allocations.iter().map(shares).eq(allocations.iter().map(shares))
    }

    /// What the agents have made of the pod as a whole: `Awaited` while one has not answered, else the worst answer; `Succeeded` where it
    /// holds no cards.
    pub fn answer(&self) -> Answer {
        let mut worst_first = [Answer::Awaited, Answer::Failed, Answer::Withdrawn].into_iter();
        worst_first.find(|answer| self.has_answer(*answer)).unwrap_or(Answer::Succeeded)
    }

    /// Whether an agent has answered so.
    pub fn has_answer(&self, answer: Answer) -> bool {
        self.allocations.iter().any(|allocation| allocation.answer == answer)
    }

    /// What the agent of this dialect has made of the pod; `None`: it holds none of its cards.
    pub fn answer_of(&self, profile: &ProfileName) -> Option<Answer> {
        let mut allocations = self.allocations.iter();
        allocations.find(|allocation| allocation.profile == *profile).map(|allocation| allocation.answer)
    }

    /// The uid of the Reservation that it uses.
    pub fn reservation(&self) -> Option<&str> {
        let written = self.footprint.reservation.as_ref().and_then(|pod| pod.uses.as_deref());
        let mut chosen = self.allocations.iter().filter_map(|one| one.assignment.reservation.as_ref());
        written.or_else(|| chosen.next().map(|reservation| reservation.uid.as_str()))
    }

    /// The dialects whose cards it holds.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileName> {
        self.allocations.iter().map(|allocation| &allocation.profile)
    }

    /// Every share, whichever dialect's and container's.
    pub fn shares(&self) -> impl Iterator<Item = &Share> {
        self.allocations.iter().flat_map(|allocation| allocation.assignment.shares())
    }

    /// Why some of the cards that it holds are unknown, in words; `None`: all are known.
    pub fn unread(&self) -> Option<String> {
        let unread: Vec<_> =
            self.allocations.iter().filter_map(|allocation| allocation.unread.as_deref()).collect();
        (!unread.is_empty()).then(|| unread.join("; "))
    }

    /// What it holds of each dialect's cards at its peak.
    fn peaks(&self, cuts: Option<&Cuts>) -> Vec<Peak> {
        let peak = |allocation: &Allocation| {
            let sized = sized(&allocation.assignment, cuts);
            (allocation.profile.clone(), usage::total(&sized, self.init))
        };
        self.allocations.iter().map(peak).collect()
    }

    /// Whether both hold the same, with the same priority.
    pub fn holds_as(&self, other: &Self) -> bool {
        let Self { node, allocations, init, footprint, volumes, importance, .. } = other;
        let own = (&self.node, &self.init, &self.footprint, &self.volumes, self.importance.priority);
        let mut pairs = self.allocations.iter().zip(allocations);
        own == (node, init, footprint, volumes, importance.priority)
            && self.allocations.len() == allocations.len()
            && pairs.all(|(own, other)| own.holds_as(other))
    }
}

/// The assignment with each hardware slice holding its own size, where the node's cards are known to be cut.
fn sized<'a>(assignment: &'a Assignment, cuts: Option<&Cuts>) -> Cow<'a, Assignment> {
    cuts.map_or(Cow::Borrowed(assignment), |cuts| cuts.sized(assignment))
}

/// What a pod holds at its peak over all cards of one dialect.
type Peak = (ProfileName, CardUsage);

/// Every charge, by pod, by node and by namespace.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    charges: HashMap<Uid, Charge>,
    by_node: BTreeMap<NodeName, BTreeSet<Uid>>,
    /// With what each pod holds of each dialect's cards at its peak, as quotas count it.
    by_namespace: BTreeMap<Arc<str>, BTreeMap<Uid, Vec<Peak>>>,
    /// Those that have chosen volumes for their claims.
    choosing: BTreeSet<Uid>,
    /// How many pods there are of each priority.
    priorities: BTreeMap<i32, usize>,
    /// How the cards of each node are cut, where some are: a slice holds its own size.
    cuts: BTreeMap<NodeName, Cuts>,
}

impl Ledger {
    /// Charges a pod; what it held before is replaced and returned.
    pub fn charge(&mut self, uid: Uid, charge: Charge) -> Option<Charge> {
        let before = self.release(&uid);
        self.by_node.entry(charge.node.clone()).or_default().insert(uid.clone());
        if !charge.volumes.is_empty() {
            self.choosing.insert(uid.clone());
        }
        let namespace = self.by_namespace.entry(charge.namespace.clone()).or_default();
        namespace.insert(uid.clone(), charge.peaks(self.cuts.get(&charge.node)));
        *self.priorities.entry(charge.importance.priority).or_default() += 1;
        self.charges.insert(uid, charge);
        before
    }

    /// The lowest priority of a pod that holds something.
    pub(super) fn lowest_priority(&self) -> Option<i32> {
        self.priorities.first_key_value().map(|(priority, _)| *priority)
    }

    /// Takes in how the cards of a node are cut; returns the namespaces of its pods where that has changed.
    pub(super) fn set_cuts(&mut self, node: &NodeName, cuts: Cuts) -> BTreeSet<Arc<str>> {
        let before =
            if cuts.is_empty() { self.cuts.remove(node) } else { self.cuts.insert(node.clone(), cuts) };
        let cuts = self.cuts.get(node);
        if before.as_ref() == cuts {
            return BTreeSet::new();
        }
        let mut namespaces = BTreeSet::new();
        for uid in self.by_node.get(node).into_iter().flatten() {
            let Some(charge) = self.charges.get(uid) else { continue };
            let namespace = self.by_namespace.entry(charge.namespace.clone()).or_default();
            namespace.insert(uid.clone(), charge.peaks(cuts));
            namespaces.insert(charge.namespace.clone());
        }
        namespaces
    }

    /// Forgets what a pod holds, and returns it.
    pub fn release(&mut self, uid: &Uid) -> Option<Charge> {
        let charge = self.charges.remove(uid)?;
        self.choosing.remove(uid);
        if let Some(pods) = self.priorities.get_mut(&charge.importance.priority) {
            *pods -= 1;
            if *pods == 0 {
                self.priorities.remove(&charge.importance.priority);
            }
        }
        if let Some(pods) = self.by_node.get_mut(&charge.node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&charge.node);
            }
        }
        if let Some(pods) = self.by_namespace.get_mut(&charge.namespace) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_namespace.remove(&charge.namespace);
            }
        }
        Some(charge)
    }

    /// What a pod holds.
    pub fn get(&self, uid: &Uid) -> Option<&Charge> {
        self.charges.get(uid)
    }

    /// What a pod holds, to change what does not move it.
    pub(super) fn get_mut(&mut self, uid: &Uid) -> Option<&mut Charge> {
        self.charges.get_mut(uid)
    }

    /// Every charge, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&Uid, &Charge)> {
        self.charges.iter()
    }

    /// Every charge on a node, by uid.
    pub fn on_node(&self, node: &NodeName) -> impl Iterator<Item = (&Uid, &Charge)> {
        let uids = self.by_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| Some((uid, self.charges.get(uid)?)))
    }

    /// What is in use of each card of a node.
    pub fn usage(&self, node: &NodeName) -> Usage {
        self.usage_by(node, |_, _| true)
    }

    /// What is in use of each card of a node by these charges.
    pub(super) fn usage_by(&self, node: &NodeName, counts: impl Fn(&Uid, &Charge) -> bool) -> Usage {
        let charges = || {
            let counted = self.on_node(node).filter(|(uid, charge)| counts(uid, charge));
            counted.map(|(_, charge)| charge)
        };
        let allocations =
            || charges().flat_map(|charge| charge.allocations.iter().map(move |one| (one, charge.init)));
        let cuts = self.cuts.get(node);
        let held: Vec<_> = allocations().map(|(one, init)| (sized(&one.assignment, cuts), init)).collect();
        let unread = allocations().filter(|(one, _)| one.unread.is_some());
        Usage::of(held.iter().map(|(assignment, init)| (assignment.as_ref(), *init)))
            .with_unread(unread.map(|(one, _)| one.profile.clone()))
    }

    /// What the pods of a namespace hold of the cards of each dialect, as quotas count it.
    pub fn held_in(&self, namespace: &str) -> quota::Held {
        let mut held = quota::Held::default();
        let peaks = self.by_namespace.get(namespace).into_iter().flatten();
        for (profile, peak) in peaks.flat_map(|(_, peaks)| peaks) {
            let total = held.entry(profile.clone()).or_default();
            *total = total.and(*peak);
        }
        held
    }

    /// The allocations, to be written a second after the last on the node, where its agents serve the earliest first: some read
    /// whole seconds.
    pub fn dated(&self, new: &[Allocation], node: &NodeName) -> Vec<Allocation> {
        let allocations = self.on_node(node).flat_map(|(_, charge)| &charge.allocations);
        let last = allocations.filter_map(|allocation| allocation.assignment.written).max();
        let written = last.and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok());
        let mut dated = new.to_vec();
        if written.is_some() {
            for one in &mut dated {
                Arc::make_mut(&mut one.assignment).written = written;
            }
        }
        dated
    }

    /// What pods that are being placed have chosen for their claims.
    pub fn reservations(&self) -> Reservations {
        let mut reservations = Reservations::default();
        for charge in self.choosing.iter().filter_map(|uid| self.charges.get(uid)) {
            for choice in &charge.volumes {
                let claim = full_name(&charge.namespace, choice.claim());
                if let VolumeChoice::Bind { volume, .. } = choice {
                    reservations.volumes.insert(volume.clone(), claim.clone());
                }
                reservations.claims.insert(claim, (charge.node.clone(), choice.clone()));
            }
        }
        reservations
    }

    /// Every pod on a node, by uid.
    pub fn pods(&self, node: &NodeName) -> Vec<Arc<Footprint>> {
        self.pods_by(node, |_, _| true)
    }

    /// These pods on a node, by uid.
    pub(super) fn pods_by(
        &self,
        node: &NodeName,
        counts: impl Fn(&Uid, &Charge) -> bool,
    ) -> Vec<Arc<Footprint>> {
        let counted = self.on_node(node).filter(|(uid, charge)| counts(uid, charge));
        counted.map(|(_, charge)| charge.footprint.clone()).collect()
    }

    /// The assignments with each hardware slice holding its own size, as far as it is known how the node's cards are cut.
    pub(super) fn sized(&self, allocations: Vec<Allocation>, node: &NodeName) -> Vec<Allocation> {
        let Some(cuts) = self.cuts.get(node) else { return allocations };
        let sized = |one: Allocation| Allocation {
            assignment: Arc::new(cuts.sized(&one.assignment).into_owned()),
            ..one
        };
        allocations.into_iter().map(sized).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{CardId, ContainerShares, Cores, MiB, Role};

    fn charge(node: &str, allocations: Vec<Allocation>) -> Charge {
        Charge {
            node: node.into(),
            namespace: "default".into(),
            allocations,
            init: InitPhase::Done,
            footprint: Arc::default(),
            volumes: Vec::new(),
            importance: Importance::default(),
            placer: Placer::Berth,
            commitment: Commitment::Bound,
            stage: Stage::Pending,
            since: Timestamp::UNIX_EPOCH,
        }
    }

    fn allocation(profile: &str, card: impl Into<CardId>, memory: u64, answer: Answer) -> Allocation {
        let share = Share { card: card.into(), memory: MiB::new(memory), cores: Cores::new(10), slice: None };
        let containers = vec![ContainerShares { role: Role::App, shares: vec![share] }];
        let assignment = Assignment { containers, ..Assignment::default() };
        Allocation::new(profile.into(), Arc::new(assignment), answer)
    }

    /// A pod with a card of NVIDIA's and one of Cambricon's.
    fn of_two_vendors(answers: [Answer; 2]) -> Charge {
        let nvidia = allocation("hami-nvidia", "GPU-a", 8000, answers[0]);
        charge("n1", vec![nvidia, allocation("hami-mlu", "MLU-a", 256, answers[1])])
    }

    #[test]
    fn the_next_assignment_on_a_node_is_dated_after_the_last() {
        let at = |second| Timestamp::from_second(second).ok();
        let written = |second| Arc::new(Assignment { written: at(second), ..Assignment::default() });
        let vgpu = |second| Allocation::new("volcano-vgpu".into(), written(second), Answer::Awaited);
        let mut ledger = Ledger::default();
        for (uid, node, second) in [("a", "n1", 100), ("b", "n1", 300), ("c", "n2", 900)] {
            ledger.charge(uid.into(), charge(node, vec![vgpu(second)]));
        }
        let new = [Allocation::new("volcano-vgpu".into(), Arc::default(), Answer::Awaited)];
        let dated = |node: &str| ledger.dated(&new, &node.into())[0].assignment.written;
        assert_eq!((dated("n1"), dated("n3")), (at(301), None));
    }

    #[test]
    fn each_allocation_counts_on_its_own_cards_and_in_the_quotas_of_its_own_dialect() {
        let mut ledger = Ledger::default();
        ledger.charge("a".into(), of_two_vendors([Answer::Succeeded; 2]));
        ledger.charge(
            "b".into(),
            charge("n2", vec![allocation("hami-nvidia", "GPU-b", 1000, Answer::Succeeded)]),
        );
        let held: Vec<_> = ledger.held_in("default").into_iter().collect();
        let held: Vec<_> =
            held.iter().map(|(profile, held)| (profile.as_str(), held.slots, held.memory.get())).collect();
        assert_eq!(held, [("hami-mlu", 1, 256), ("hami-nvidia", 2, 9000)]);
        let usage = ledger.usage(&"n1".into());
        assert_eq!(["GPU-a", "MLU-a"].map(|card| usage.card(&card.into()).memory.get()), [8000, 256]);
    }

    #[test]
    fn a_pod_is_in_flight_while_one_of_its_agents_owes_an_answer() {
        use Answer::{Awaited, Failed, Succeeded, Withdrawn};
        for (answers, in_flight, whole) in [
            ([Awaited, Awaited], true, Awaited),
            ([Succeeded, Awaited], true, Awaited),
            ([Awaited, Failed], true, Awaited),
            ([Succeeded, Succeeded], false, Succeeded),
            ([Succeeded, Failed], false, Failed),
            ([Withdrawn, Succeeded], false, Withdrawn),
        ] {
            let charge = of_two_vendors(answers);
            assert_eq!((charge.is_in_flight(), charge.answer()), (in_flight, whole), "{answers:?}");
        }
        assert!(!charge("n1", Vec::new()).is_in_flight());
    }

    #[test]
    fn unknown_cards_of_one_allocation_are_of_its_own_dialect() {
        let mut ledger = Ledger::default();
        let mut charge = of_two_vendors([Answer::Succeeded; 2]);
        charge.allocations[1].unread = Some("no card".to_owned());
        assert_eq!(charge.unread().as_deref(), Some("no card"));
        ledger.charge("a".into(), charge);
        let usage = ledger.usage(&"n1".into());
        assert_eq!(usage.unread().iter().map(ProfileName::as_str).collect::<Vec<_>>(), ["hami-mlu"]);
    }
}
