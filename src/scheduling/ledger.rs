//! Who holds what on which node: one charge a pod, whatever its dialect and whoever bound it.
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
    pod::{Stage, Uid},
    quota,
};
use crate::device::{Answer, Assignment, CardUsage, Cuts, InitPhase, ProfileName, Usage, usage};

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
    /// In which dialect its shares are written.
    pub profile: Option<ProfileName>,
    /// Shares of cards.
    pub assignment: Option<Arc<Assignment>>,
    /// Whether its init containers still count.
    pub init: InitPhase,
    /// What it is to the plugins beside its cards.
    pub footprint: Arc<Footprint>,
    /// What binds its claims, until they are bound.
    pub volumes: Vec<VolumeChoice>,
    /// How firm it is.
    pub commitment: Commitment,
    /// How far the pod is.
    pub stage: Stage,
    /// What the agent has made of it.
    pub answer: Answer,
    /// Since when the agent owes an answer.
    pub since: Timestamp,
}

impl Charge {
    /// Whether the node's agent is at work for this pod: no other may be bound there meanwhile.
    pub fn is_in_flight(&self) -> bool {
        let shares = self.assignment.as_ref().is_some_and(|assignment| assignment.shares().next().is_some());
        shares
            && self.commitment == Commitment::Bound
            && self.answer == Answer::Awaited
            && self.stage == Stage::Pending
    }

    /// Whether the pod was given just these cards.
    pub fn gives(&self, assignment: &Assignment) -> bool {
        self.assignment.as_deref() == Some(assignment)
    }

    /// Why nobody can tell some of the cards that it holds, in words; `None`: all are known.
    pub fn unread(&self) -> Option<String> {
        let assignment = self.assignment.as_ref().filter(|assignment| !assignment.unread.is_empty())?;
        Some(assignment.unread.values().map(String::as_str).collect::<Vec<_>>().join("; "))
    }

    /// What it holds at its peak over all its cards, and in which dialect.
    fn peak(&self, cuts: Option<&Cuts>) -> Peak {
        let (profile, assignment) = (self.profile.clone()?, self.assignment.as_deref()?);
        let sized = cuts.map_or(Cow::Borrowed(assignment), |cuts| cuts.sized(assignment));
        Some((profile, usage::total(&sized, self.init)))
    }

    /// Whether both hold the same.
    pub fn holds_as(&self, other: &Self) -> bool {
        let same = match (&self.assignment, &other.assignment) {
            (Some(own), Some(other)) => own.holds_as(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        let Self { node, profile, init, footprint, volumes, .. } = other;
        let own = (&self.node, &self.profile, &self.init, &self.footprint, &self.volumes);
        same && own == (node, profile, init, footprint, volumes)
    }
}

/// What a pod holds at its peak over all its cards, and in which dialect; `None`: no cards.
type Peak = Option<(ProfileName, CardUsage)>;

/// Every charge, by pod, by node and by namespace.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    charges: HashMap<Uid, Charge>,
    by_node: BTreeMap<NodeName, BTreeSet<Uid>>,
    /// With what each pod holds at its peak over all its cards, as quotas count it.
    by_namespace: BTreeMap<Arc<str>, BTreeMap<Uid, Peak>>,
    /// Those that have chosen volumes for their claims.
    choosing: BTreeSet<Uid>,
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
        namespace.insert(uid.clone(), charge.peak(self.cuts.get(&charge.node)));
        self.charges.insert(uid, charge);
        before
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
            namespace.insert(uid.clone(), charge.peak(cuts));
            namespaces.insert(charge.namespace.clone());
        }
        namespaces
    }

    /// Forgets what a pod holds, and returns it.
    pub fn release(&mut self, uid: &Uid) -> Option<Charge> {
        let charge = self.charges.remove(uid)?;
        self.choosing.remove(uid);
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
        self.usage_by(node, |_| true)
    }

    /// What is in use of each card of a node by these charges.
    pub(super) fn usage_by(&self, node: &NodeName, counts: impl Fn(&Charge) -> bool) -> Usage {
        let held = |charge: &'_ Charge| charge.assignment.clone().map(|assignment| (assignment, charge.init));
        let charges = self.on_node(node).map(|(_, charge)| charge).filter(|charge| counts(charge));
        let held: Vec<_> = charges.filter_map(held).collect();
        let Some(cuts) = self.cuts.get(node) else {
            return Usage::of(held.iter().map(|(assignment, init)| (assignment.as_ref(), *init)));
        };
        let sized: Vec<_> = held.iter().map(|(assignment, init)| (cuts.sized(assignment), *init)).collect();
        Usage::of(sized.iter().map(|(assignment, init)| (assignment.as_ref(), *init)))
    }

    /// What the pods of a namespace hold of the cards of each dialect, as quotas count it.
    pub fn held_in(&self, namespace: &str) -> quota::Held {
        let mut held = quota::Held::default();
        let peaks = self.by_namespace.get(namespace).into_iter().flatten();
        for (profile, peak) in peaks.filter_map(|(_, peak)| peak.as_ref()) {
            let total = held.entry(profile.clone()).or_default();
            *total = total.and(*peak);
        }
        held
    }

    /// The assignment, to be written a second after the last on the node, where its agents serve the earliest first: some read
    /// whole seconds.
    pub fn dated(&self, assignment: Arc<Assignment>, node: &NodeName) -> Arc<Assignment> {
        let last = self.on_node(node).filter_map(|(_, charge)| charge.assignment.as_ref()?.written).max();
        match last.and_then(|last| last.checked_add(SignedDuration::from_secs(1)).ok()) {
            None => assignment,
            written => Arc::new(Assignment { written, ..Assignment::clone(&assignment) }),
        }
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
        self.on_node(node).map(|(_, charge)| charge.footprint.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_assignment_on_a_node_is_dated_after_the_last() {
        let at = |second| Timestamp::from_second(second).ok();
        let written = |second| Arc::new(Assignment { written: at(second), ..Assignment::default() });
        let charge = |node: &str, second| Charge {
            node: node.into(),
            namespace: "default".into(),
            profile: None,
            assignment: Some(written(second)),
            init: InitPhase::Done,
            footprint: Arc::default(),
            volumes: Vec::new(),
            commitment: Commitment::Bound,
            stage: Stage::Pending,
            answer: Answer::Awaited,
            since: Timestamp::UNIX_EPOCH,
        };
        let mut ledger = Ledger::default();
        for (uid, node, second) in [("a", "n1", 100), ("b", "n1", 300), ("c", "n2", 900)] {
            ledger.charge(uid.into(), charge(node, second));
        }
        let new = Arc::new(Assignment::default());
        assert_eq!(ledger.dated(new.clone(), &"n1".into()).written, at(301));
        assert_eq!(ledger.dated(new, &"n3".into()).written, None);
    }
}
