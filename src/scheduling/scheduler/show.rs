//! What others may see of the scheduler: how things stand, what was measured, the cluster as it sees it.
//!
//! Nothing is decided or changed here.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::device::{CardUsage, ProfileName};
use crate::scheduling::{
    decide::{blame::Resolvable, outlook::Outlook},
    event::{Event, NodeChange, PodChange, QuotaChange},
    model::{
        measure::{Measure, Standing, Waiting},
        message::Details,
        name::Uid,
        node::NodeInfo,
        pod::{Claim, Deletion, PodKey, is_older},
    },
    world::{
        ledger::Charge,
        quota_holder::{QuotaHolder, QuotaHolders, largest},
    },
};

impl Scheduler {
    /// How the pods that were seen are named, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.all().map(|entry| &entry.info.key)
    }

    /// Whether this pod was seen at this version or a later one.
    pub fn has_seen_pod(&self, uid: &str, version: &str) -> bool {
        self.pods.get(uid).is_some_and(|entry| !is_older(&entry.info.resource_version, version))
    }

    /// Whether this node was seen at this version or a later one.
    pub fn has_seen_node(&self, name: &str, version: &str) -> bool {
        self.snapshot.node(name).is_some_and(|state| !is_older(&state.info.resource_version, version))
    }

    /// Whether this claim of devices was seen at this version or a later one.
    pub fn has_seen_claim(&self, namespace: &str, name: &str, version: &str) -> bool {
        let claim = self.snapshot.resource_claims().claim(namespace, name);
        claim.is_some_and(|claim| !is_older(&claim.metadata.resource_version, version))
    }

    /// Everything that was seen, in the events that would let another see the same; pods in the order in which they were first seen.
    pub fn recount(&self) -> Vec<Event> {
        let nodes = self.snapshot.nodes().map(|state| NodeInfo::clone(&state.info)).collect();
        let quotas = self.snapshot.quotas().infos().collect();
        let mut entries: Vec<_> = self.pods.all().collect();
        entries.sort_by_key(|entry| entry.seen);
        let pods = entries.into_iter().map(|entry| entry.info.clone()).collect();
        let vacated = self.flows.vacated().map(|(node, until)| Event::Vacated { node: node.clone(), until });
        let listed = [
            Event::Pod(PodChange::Listed(pods)),
            Event::Node(NodeChange::Listed(nodes)),
            Event::Quota(QuotaChange::Listed(quotas)),
        ];
        listed.into_iter().chain(self.objects()).chain(vacated).collect()
    }

    /// How things stand.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let waits_since = self.flows.longest_wait_since();
        Standing {
            synced: self.is_synced(),
            active: self.queue.order.len(),
            backing_off: self.queue.order.backing_off(),
            unschedulable: self.queue.unschedulable(&self.classes),
            in_line: self.flows.in_line() + self.prebinding.pods().len(),
            silent_agents: self.snapshot.silent_agents(),
            longest_lock_wait: waits_since.map_or(SignedDuration::ZERO, |since| now.duration_since(since)),
        }
    }

    /// The names of the pods in a node's line, the one that is being served first.
    pub fn line(&self, node: &str) -> Vec<&str> {
        let entries = self.flows.line(node).filter_map(|uid| self.pods.get(uid));
        entries.map(|entry| &*entry.info.key.name).collect()
    }

    /// Each pod that holds shares of cards, and what it holds, in no order.
    pub fn holders(&self) -> impl Iterator<Item = (&PodKey, &Charge)> {
        let holders = self.snapshot.ledger().all().filter(|(_, charge)| charge.shares().next().is_some());
        holders.filter_map(|(uid, charge)| Some((&self.pods.get(uid)?.info.key, charge)))
    }

    /// The pods that hold most of what is used of each namespace's quotas.
    pub fn quota_holders(&self) -> QuotaHolders {
        let holder = |(uid, held): (&Uid, &[(ProfileName, CardUsage)])| {
            let info = &self.pods.get(uid)?.info;
            let terminating = info.importance.deletion != Deletion::None;
            Some(QuotaHolder { pod: info.key.name.clone(), terminating, held: held.to_vec() })
        };
        let of = |namespace: &Arc<str>| {
            let pods = self.snapshot.ledger().peaks_in(namespace).filter_map(holder);
            (namespace.clone(), largest(pods.collect()))
        };
        self.snapshot.quotas().used().keys().map(of).collect()
    }

    /// How much of a message stands where the users of a namespace read it.
    pub fn details(&self) -> Details {
        self.reports.details
    }

    /// Why pods wait that were refused and have found no place since.
    pub fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for entry in self.pods.all().filter(|entry| entry.info.claim != Claim::None) {
            let Some(blame) = &entry.blame else { continue };
            for labels in blame.labels() {
                *waiting.reasons.entry(labels).or_default() += 1;
            }
            waiting.unplaceable += usize::from(blame.resolvable() == Resolvable::No);
        }
        waiting
    }

    /// What was measured since this was last asked.
    pub fn take_measures(&mut self) -> Vec<Measure> {
        std::mem::take(&mut self.outbox.measures)
    }

    /// The cluster as it stands, for others to judge by while this goes on.
    pub fn outlook(&self) -> Outlook {
        Outlook::new(self.snapshot.world().clone(), self.flows.passed_over(), self.classes.weights())
    }

    /// Grows whenever [`Self::outlook`] may have become another.
    pub fn changes(&self) -> u64 {
        self.snapshot.generation()
            + self.snapshot.quotas().version()
            + self.snapshot.objects().version()
            + self.snapshot.nodes.images().version()
            + self.flows.changes()
    }
}
