//! What each pod holds on which node: one charge for a pod, whatever its dialects and whichever scheduler bound it.
//!
//! Nothing is added or subtracted here: what is in use of a node is folded from the charges on it.

mod charge;
pub mod ended;
mod namespace;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use foldhash::fast::FixedState;
use jiff::SignedDuration;
use thin_vec::ThinVec;

use self::{charge::sized, namespace::NamespacePods};
use super::{resource_claims::ClaimCharge, volume_reservations::Reservations};
use crate::{
    device::{Allocation, CardUsage, Cuts, ProfileName, UnknownCards, Usage},
    scheduling::model::{
        name::{NodeName, Uid, full_name},
        prebind_step::{PrebindStep, VolumeChoice},
    },
};

pub use self::charge::{Charge, Commitment};
pub use self::ended::{EndedCharge, EndedCharges};

/// What a pod holds at its peak over all cards of one dialect.
pub type Peak = (ProfileName, CardUsage);

/// The charges of the pods on one node.
type NodeCharges = BTreeMap<Uid, Arc<Charge>>;

/// The charges at one moment, for those who look at them meanwhile. A copy holds one reference for each node.
#[derive(Clone, Debug, Default)]
pub struct Charges(Vec<Arc<NodeCharges>>);

impl Charges {
    /// The charges of the pods that hold shares of cards, by node in order of name.
    pub fn of_shares(&self) -> impl Iterator<Item = &Arc<Charge>> {
        let charges = self.0.iter().filter_map(|node| Some((&node.first_key_value()?.1.node, node)));
        let mut by_name: Vec<_> = charges.collect();
        by_name.sort_unstable_by_key(|(name, _)| *name);
        let charges = by_name.into_iter().flat_map(|(_, charges)| charges.values());
        charges.filter(|charge| charge.shares().next().is_some())
    }
}

/// Every charge, by pod, by node and by namespace.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    charges: HashMap<Uid, Arc<Charge>>,
    by_node: HashMap<NodeName, Arc<NodeCharges>, FixedState>,
    /// With what the pods of each hold together, as quotas count it.
    by_namespace: BTreeMap<Arc<str>, NamespacePods>,
    /// Those that have chosen volumes for their claims.
    choosing: BTreeSet<Uid>,
    /// By full name of a claim of devices, the pods that use it.
    claimed: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// The pods of each PodGroup of Kubernetes, by its full name.
    by_group: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// How many pods there are of each priority.
    priorities: BTreeMap<i32, usize>,
    /// How the cards of each node are cut, where some are: a slice holds its own size.
    cuts: BTreeMap<NodeName, Cuts>,
}

impl Ledger {
    /// Charges a pod; what it held before is replaced and returned.
    pub fn charge(&mut self, uid: Uid, charge: impl Into<Arc<Charge>>) -> Option<Arc<Charge>> {
        let (before, charge) = (self.release(&uid), charge.into());
        if charge.steps.iter().any(|step| step.volume().is_some()) {
            self.choosing.insert(uid.clone());
        }
        for claim in charge.claims_of_devices() {
            self.claimed.entry(claim).or_default().insert(uid.clone());
        }
        let namespace = self.by_namespace.entry(charge.pod.namespace.clone()).or_default();
        namespace.insert(uid.clone());
        *self.priorities.entry(charge.importance.priority).or_default() += 1;
        if let Some(group) = &charge.importance.group {
            self.by_group.entry(group.clone()).or_default().insert(uid.clone());
        }
        self.put(uid, charge);
        before
    }

    fn put(&mut self, uid: Uid, charge: Arc<Charge>) {
        let node = self.by_node.entry(charge.node.clone()).or_default();
        Arc::make_mut(node).insert(uid.clone(), charge.clone());
        self.charges.insert(uid, charge);
    }

    /// The lowest priority of a pod that holds something.
    pub(in crate::scheduling) fn lowest_priority(&self) -> Option<i32> {
        self.priorities.first_key_value().map(|(priority, _)| *priority)
    }

    /// Whether a pod of a PodGroup of Kubernetes holds something.
    pub(in crate::scheduling) fn has_groups(&self) -> bool {
        !self.by_group.is_empty()
    }

    /// The charges of the pods of a PodGroup of Kubernetes, by uid.
    pub(in crate::scheduling) fn of_group(&self, group: &str) -> impl Iterator<Item = (&Uid, &Charge)> {
        let pods = self.by_group.get(group).into_iter().flatten();
        pods.filter_map(|uid| Some((uid, self.get(uid)?)))
    }

    /// Takes in how the cards of a node are cut; returns the namespaces of its pods where that has changed.
    pub(in crate::scheduling) fn set_cuts(&mut self, node: &NodeName, cuts: Cuts) -> BTreeSet<Arc<str>> {
        let before =
            if cuts.is_empty() { self.cuts.remove(node) } else { self.cuts.insert(node.clone(), cuts) };
        if before.as_ref() == self.cuts.get(node) {
            return BTreeSet::new();
        }
        let mut namespaces = BTreeSet::new();
        for (uid, charge) in self.by_node.get(node).into_iter().flat_map(|node| node.iter()) {
            let namespace = self.by_namespace.entry(charge.pod.namespace.clone()).or_default();
            namespace.insert(uid.clone());
            namespaces.insert(charge.pod.namespace.clone());
        }
        namespaces
    }

    /// Forgets what a pod holds, and returns it.
    pub fn release(&mut self, uid: &Uid) -> Option<Arc<Charge>> {
        let charge = self.charges.remove(uid)?;
        self.choosing.remove(uid);
        for claim in charge.claims_of_devices() {
            if let Some(pods) = self.claimed.get_mut(&claim) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.claimed.remove(&claim);
                }
            }
        }
        if let Some(pods) = self.priorities.get_mut(&charge.importance.priority) {
            *pods -= 1;
            if *pods == 0 {
                self.priorities.remove(&charge.importance.priority);
            }
        }
        if let Some(group) = &charge.importance.group
            && let Some(pods) = self.by_group.get_mut(group)
        {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_group.remove(group);
            }
        }
        if let Some(pods) = self.by_node.get_mut(&charge.node) {
            let pods = Arc::make_mut(pods);
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&charge.node);
            }
        }
        if let Some(pods) = self.by_namespace.get_mut(&charge.pod.namespace) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_namespace.remove(&charge.pod.namespace);
            }
        }
        Some(charge)
    }

    /// What a pod holds.
    pub fn get(&self, uid: &Uid) -> Option<&Charge> {
        self.charges.get(uid).map(Arc::as_ref)
    }

    /// The same, to be kept.
    pub(in crate::scheduling) fn get_shared(&self, uid: &Uid) -> Option<&Arc<Charge>> {
        self.charges.get(uid)
    }

    /// Charges a pod with what it holds already, of which no fold takes what differs.
    pub(in crate::scheduling) fn renew(&mut self, uid: Uid, charge: Arc<Charge>) {
        self.put(uid, charge);
    }

    /// Every charge, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&Uid, &Charge)> {
        self.charges.iter().map(|(uid, charge)| (uid, charge.as_ref()))
    }

    /// Every charge, to be kept by others: one that changes is replaced.
    pub fn shared(&self) -> Charges {
        Charges(self.by_node.values().cloned().collect())
    }

    /// Every charge on a node, by uid.
    pub fn on_node(&self, node: &NodeName) -> impl Iterator<Item = (&Uid, &Charge)> {
        self.shared_on_node(node).map(|(uid, charge)| (uid, charge.as_ref()))
    }

    /// The same, to be kept.
    pub(in crate::scheduling) fn shared_on_node(
        &self,
        node: &NodeName,
    ) -> impl Iterator<Item = (&Uid, &Arc<Charge>)> {
        self.by_node.get(node).into_iter().flat_map(|charges| charges.iter())
    }

    /// What is in use of each card of a node.
    pub fn usage(&self, node: &NodeName) -> Usage {
        let charges: Vec<_> = self.on_node(node).map(|(_, charge)| charge).collect();
        self.usage_by(node, &charges)
    }

    /// What is in use of each card of a node by these charges on it.
    pub(in crate::scheduling) fn usage_by(&self, node: &NodeName, charges: &[&Charge]) -> Usage {
        let allocations =
            || charges.iter().flat_map(|charge| charge.allocations.iter().map(move |one| (one, charge.init)));
        let cuts = self.cuts.get(node);
        let usage = if cuts.is_some() {
            let sized = allocations().map(|(one, init)| (sized(&one.assignment, cuts), init));
            let sized: Vec<_> = sized.collect();
            Usage::of(sized.iter().map(|(assignment, init)| (assignment.as_ref(), *init)))
        } else {
            Usage::of(allocations().map(|(one, init)| (&*one.assignment, init)))
        };
        allocations().fold(usage, |usage, (one, init)| match &one.unknown {
            None => usage,
            Some(UnknownCards::Asked(request)) => {
                usage.with_asked(one.profile.clone(), request.clone(), init)
            }
            Some(UnknownCards::Everything) => usage.with_unread([one.profile.clone()]),
        })
    }

    /// What the pods of a namespace hold of the cards of each dialect, as quotas count it.
    pub fn held_in(&mut self, namespace: &str) -> Held {
        let Self { charges, by_namespace, cuts, .. } = self;
        let peaks = |uid: &Uid| {
            let charge = charges.get(uid);
            charge.map(|charge| charge.peaks(cuts.get(&charge.node))).unwrap_or_default()
        };
        by_namespace.get_mut(namespace).map(|pods| pods.held(peaks)).unwrap_or_default()
    }

    /// What each pod of a namespace holds of each dialect's cards at its peak, as quotas count it.
    pub fn peaks_in(&self, namespace: &str) -> impl Iterator<Item = (&Uid, ThinVec<Peak>)> {
        let pods = self.by_namespace.get(namespace).into_iter().flat_map(NamespacePods::iter);
        let charged = pods.filter_map(|uid| Some((uid, self.charges.get(uid)?)));
        charged.map(|(uid, charge)| (uid, charge.peaks(self.cuts.get(&charge.node))))
    }

    /// The allocations, to be written a second after the last on the node, where its agents serve the earliest first: some read
    /// whole seconds.
    pub fn dated(&self, new: &[Allocation], node: &NodeName) -> Vec<Allocation> {
        let allocations = self.on_node(node).flat_map(|(_, charge)| charge.allocations.iter());
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
            for choice in charge.steps.iter().filter_map(PrebindStep::volume) {
                let claim = full_name(&charge.pod.namespace, choice.claim());
                if let VolumeChoice::Bind { volume, .. } = choice {
                    reservations.volumes.insert(volume.clone(), claim.clone());
                }
                reservations.claims.insert(claim, (charge.node.clone(), choice.clone()));
            }
        }
        reservations
    }

    /// The pods that use a claim of devices, by the claim's full name.
    pub(in crate::scheduling) fn users_of_claim(&self, claim: &str) -> impl Iterator<Item = &Uid> {
        self.claimed.get(claim).into_iter().flatten()
    }

    /// What pods that are placed have of a claim of devices, by the claim's full name.
    pub(in crate::scheduling) fn claim_charge(&self, claim: &str) -> ClaimCharge {
        let Some(users) = self.claimed.get(claim) else { return ClaimCharge::default() };
        // All of them are of the claim's namespace, and may be many: no name is put together for each.
        let name = claim.split_once('/').map_or(claim, |(_, name)| name);
        let steps = |uid: &Uid| self.charges.get(uid).into_iter().flat_map(|charge| &charge.steps);
        let chosen = users.iter().flat_map(steps).filter_map(PrebindStep::given);
        let chosen =
            chosen.filter(|(given, _)| ***given == *name).map(|(_, allocation)| allocation.clone()).next();
        let consumer = |uid: &Uid| {
            let mut choices = steps(uid).filter_map(PrebindStep::devices);
            let own = choices.find(|choice| *choice.claim == *name)?;
            Some(own.consumer.uid(uid).clone())
        };
        ClaimCharge { chosen, users: users.clone(), reserving: users.iter().filter_map(consumer).collect() }
    }

    /// The assignments with each hardware slice holding its own size, as far as it is known how the node's cards are cut.
    pub(in crate::scheduling) fn sized(
        &self,
        allocations: Vec<Allocation>,
        node: &NodeName,
    ) -> Vec<Allocation> {
        let Some(cuts) = self.cuts.get(node) else { return allocations };
        let sized = |one: Allocation| Allocation {
            assignment: Arc::new(cuts.sized(&one.assignment).into_owned()),
            ..one
        };
        allocations.into_iter().map(sized).collect()
    }
}

/// What the pods of a namespace hold, by dialect.
pub type Held = BTreeMap<ProfileName, CardUsage>;

/// What the pods of each namespace with a quota hold.
pub type Used = BTreeMap<Arc<str>, Held>;

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        device::{Answer, Assignment, CardId, ContainerShares, Cores, InitPhase, MiB, Role, Share},
        scheduling::model::pod::{Importance, Placer, PodKey, Stage},
    };

    fn charge(node: &str, allocations: Vec<Allocation>) -> Charge {
        Charge {
            node: node.into(),
            pod: PodKey { uid: "p".into(), namespace: "default".into(), name: "p".into() },
            allocations: allocations.into(),
            init: InitPhase::Done,
            footprint: Arc::default(),
            steps: ThinVec::new(),
            importance: Importance::default(),
            placer: Placer::Berth,
            commitment: Commitment::Bound,
            stage: Stage::Pending,
            since: Timestamp::UNIX_EPOCH,
            tenure: None,
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
        let of_b = &mut Arc::make_mut(&mut charge.allocations)[1];
        of_b.unread = Some("no card".to_owned().into());
        of_b.unknown = Some(UnknownCards::Everything);
        assert_eq!(charge.unread().as_deref(), Some("no card"));
        ledger.charge("a".into(), charge);
        let usage = ledger.usage(&"n1".into());
        assert_eq!(usage.unread().iter().map(ProfileName::as_str).collect::<Vec<_>>(), ["hami-mlu"]);
    }
}
