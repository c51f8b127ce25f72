//! What others may see of the scheduler: how things stand, the cluster as it sees it.
//!
//! Nothing is decided or changed here.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    binding_cycle::BindingCycle,
    scheduling_cycle::{
        SchedulingCycle, direct::direction, directed::Directed, kept_rooms::RoomView, pods::Entry,
        views::node_view,
    },
};
use crate::{
    device::Answer,
    scheduling::{
        decide::{blame::Resolvable, outlook::Outlook},
        event::{Event, NodeChange, ObjectChange, PodChange, QuotaChange},
        model::{
            kept_room::KeptRoom,
            kind::Kind,
            measure::{Standing, Waiting},
            name::Uid,
            node::NodeInfo,
            pod::{Claim, Deletion, PodInfo, PodKey, is_older},
        },
        node_flow::NodeFlows,
        pending::{PendingPod, PendingReason},
        prebind::Prebinding,
        world::{
            ledger::{Charge, Commitment},
            quota_holder::{QuotaHolder, QuotaHolders, largest},
        },
    },
};

/// What others may see of a scheduler: the cluster as it sees it, how far pods are, and why they wait.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerView<'a> {
    cycle: &'a SchedulingCycle,
    prebinding: &'a Prebinding,
    flows: &'a NodeFlows,
}

impl<'a> SchedulerView<'a> {
    pub(super) fn of(binding: &'a BindingCycle) -> Self {
        let BindingCycle { cycle, prebinding, flows } = binding;
        Self { cycle, prebinding, flows }
    }

    /// Whether pods, nodes and quotas have been listed: the ledger is complete.
    pub fn is_synced(self) -> bool {
        self.cycle.is_synced()
    }

    /// Whether nothing is half done. Only a scheduler that drains stays so.
    pub fn is_drained(self) -> bool {
        self.flows.serve_none()
    }

    /// How the pods that were seen are named, in no order.
    pub fn keys(self) -> impl Iterator<Item = &'a PodKey> {
        self.cycle.pods.all().map(|entry| &entry.info.key)
    }

    /// The pods as they were last seen, in no order.
    pub fn pods(self) -> impl Iterator<Item = &'a PodInfo> {
        self.cycle.pods.all().map(|entry| &*entry.info)
    }

    /// The pod as it was last seen.
    pub fn pod(self, uid: &str) -> Option<&'a PodInfo> {
        self.cycle.pods.get(uid).map(|entry| &*entry.info)
    }

    /// Whether this pod was seen at this version or a later one.
    pub fn has_seen_pod(self, uid: &str, version: &str) -> bool {
        self.cycle.pods.get(uid).is_some_and(|entry| !is_older(&entry.info.resource_version, version))
    }

    /// Whether this node was seen at this version or a later one.
    pub fn has_seen_node(self, name: &str, version: &str) -> bool {
        self.cycle.snapshot.node(name).is_some_and(|state| !is_older(&state.info.resource_version, version))
    }

    /// Whether this claim of devices was seen at this version or a later one.
    pub fn has_seen_claim(self, namespace: &str, name: &str, version: &str) -> bool {
        let claim = self.cycle.snapshot.resource_claims().claim(namespace, name);
        claim.is_some_and(|claim| !is_older(&claim.metadata.resource_version, version))
    }

    /// Everything that was seen, in the events that would let another see the same; pods in the order in which they were first seen.
    pub fn recount(self) -> Vec<Event> {
        let nodes = self.cycle.snapshot.nodes().map(|state| NodeInfo::clone(&state.info)).collect();
        let quotas = self.cycle.snapshot.quotas().infos().collect();
        let mut entries: Vec<_> = self.cycle.pods.all().collect();
        entries.sort_by_key(|entry| entry.seen);
        let pods = entries.into_iter().map(|entry| PodInfo::clone(&entry.info)).collect();
        let vacated = self.flows.vacated().map(|(node, until)| Event::Vacated { node: node.clone(), until });
        let listed = [
            Event::Pod(PodChange::Listed(pods)),
            Event::Node(NodeChange::Listed(nodes)),
            Event::Quota(QuotaChange::Listed(quotas)),
        ];
        listed.into_iter().chain(self.objects()).chain(vacated).collect()
    }

    /// How things stand.
    pub fn standing(self, now: Timestamp) -> Standing {
        let waits_since = self.flows.longest_wait_since();
        Standing {
            synced: self.cycle.is_synced(),
            active: self.cycle.queue.order.len(),
            backing_off: self.cycle.queue.order.backing_off(),
            unschedulable: self.cycle.queue.unschedulable(&self.cycle.classes),
            in_line: self.flows.in_line() + self.prebinding.pods().len(),
            kept_rooms: RoomView::of(self.cycle).count(),
            silent_agents: self.cycle.snapshot.silent_agents(),
            longest_lock_wait: waits_since.map_or(SignedDuration::ZERO, |since| now.duration_since(since)),
        }
    }

    /// The names of the pods in a node's line, the one that is being served first.
    pub fn line(self, node: &str) -> Vec<&'a str> {
        let entries = self.flows.line(node).filter_map(|uid| self.cycle.pods.get(uid));
        entries.map(|entry| &*entry.info.key.name).collect()
    }

    /// The pod that is decided next at [`Pace::OneByOne`](super::Pace::OneByOne); `None`: no pod is in the queue, or one is on its way.
    pub fn next_pod(self) -> Option<&'a Uid> {
        let mut decided = self.flows.pods().chain(self.prebinding.pods());
        let is_held_up = decided.any(|uid| self.cycle.queue.is_on_its_way(uid));
        self.cycle.queue.order.first().filter(|_| !is_held_up)
    }

    /// Why the pod waits, where it was refused and has found no place since.
    pub fn reason(self, pod: &str) -> Option<&'a PendingReason> {
        self.cycle.conditions.reason(pod)
    }

    /// The pods that go, or have to go, so that the pod fits on the node that is kept for it; the most important first.
    pub fn victims(self, pod: &Uid) -> Vec<&'a PodKey> {
        let nominations = self.cycle.snapshot.world().nominations();
        let victims = nominations.victims(pod).filter(|_| nominations.room_since(pod).is_none());
        let mut infos: Vec<_> = victims.filter_map(|uid| Some(&self.cycle.pods.get(uid)?.info)).collect();
        let rules = self.cycle.preempting.rules().unwrap_or_default();
        infos.sort_by_key(|info| rules.place(&info.importance));
        infos.into_iter().map(|info| &info.key).collect()
    }

    /// The room that is kept for the pod because it waits long.
    pub fn kept_room(self, pod: &Uid) -> Option<KeptRoom> {
        RoomView::of(self.cycle).room(pod)
    }

    /// The pods that hold most of what is used of each namespace's quotas.
    pub fn quota_holders(self) -> QuotaHolders {
        let holder = |(uid, held): (&Uid, _)| {
            let info = &self.cycle.pods.get(uid)?.info;
            let terminating = info.importance.deletion != Deletion::None;
            Some(QuotaHolder { pod: info.key.name.clone(), terminating, held })
        };
        let of = |namespace: &Arc<str>| {
            let pods = self.cycle.snapshot.ledger().peaks_in(namespace).filter_map(holder);
            (namespace.clone(), largest(pods.collect()))
        };
        self.cycle.snapshot.quotas().used().keys().map(of).collect()
    }

    /// The pods that want a place and have none, in the order in which they would be decided if each could be decided now.
    pub fn pending(self) -> Vec<PendingPod> {
        let SchedulingCycle { pods, queue, conditions, snapshot, .. } = self.cycle;
        let is_pending = |entry: &&Entry| {
            let key = &entry.info.key;
            entry.info.claim != Claim::None && snapshot.ledger().get(&key.uid).is_none()
        };
        let mut pending: Vec<_> = pods.all().filter(is_pending).collect();
        pending.sort_by_cached_key(|entry| queue.order.place(&entry.info, entry.seen));
        let row = |entry: &Entry| {
            let info = &entry.info;
            PendingPod {
                key: info.key.clone(),
                priority: info.importance.priority,
                created: info.lifetime.created,
                demand: snapshot.nominations().demand(info),
                attempts: queue.attempts(&info.key.uid),
                reason: conditions.reason(&info.key.uid).cloned(),
                history: queue.history(&info.key.uid).cloned(),
            }
        };
        pending.into_iter().map(row).collect()
    }

    /// Why pods wait that were refused and have found no place since.
    pub fn waiting(self) -> Waiting {
        let mut waiting = Waiting::default();
        for (pod, reason) in self.cycle.conditions.reasons() {
            let entry = self.cycle.pods.get(pod).filter(|entry| entry.info.claim != Claim::None);
            let Some(entry) = entry else { continue };
            let blame = reason.blame();
            for labels in blame.labels() {
                let created = entry.info.lifetime.created;
                let oldest = waiting.oldest.entry(labels.clone()).or_insert(created);
                *oldest = created.min(*oldest);
                *waiting.reasons.entry(labels).or_default() += 1;
            }
            waiting.unplaceable += usize::from(blame.resolvable() == Resolvable::No);
        }
        waiting
    }

    /// The cluster as it stands, for others to judge by while this goes on.
    pub fn outlook(self) -> Outlook {
        Outlook::new(
            self.cycle.snapshot.world().clone(),
            self.flows.passed_over(),
            self.cycle.classes.weights(),
        )
    }

    /// Grows whenever [`Self::outlook`] may have become another.
    pub fn changes(self) -> u64 {
        self.cycle.snapshot.generation()
            + self.cycle.snapshot.quotas().version()
            + self.cycle.snapshot.objects().version()
            + self.cycle.snapshot.nodes.images().version()
            + self.flows.changes()
    }

    /// Everything that was seen of these kinds, as the lists that would let another see the same.
    fn objects(self) -> Vec<Event> {
        let objects = self.cycle.snapshot.objects();
        let listed = Kind::ALL.iter().filter(|kind| objects.are_listed(&[**kind]));
        let as_listed = |kind: &Kind| {
            if objects.is_unserved(*kind) {
                Event::Object(ObjectChange::Unserved(*kind))
            } else {
                Event::Object(ObjectChange::Listed(*kind, objects.of_kind(*kind).cloned().collect()))
            }
        };
        listed.map(as_listed).collect()
    }

    /// How far a pod is whose node kube-scheduler chooses.
    pub fn direction(self, pod: &Uid) -> Directed {
        direction(self.cycle, pod)
    }

    /// What the node's device plugins have made of the pod, by what it says and by what the node's lock does.
    pub fn answer(self, uid: &Uid, charge: &Charge) -> Answer {
        let view = node_view(self.cycle, &charge.node, self.flows);
        let to_come = charge.commitment != Commitment::Bound && charge.has_answer(Answer::ByLock);
        let in_flight = || self.flows.is_in_flight(uid, charge, &view);
        if to_come || in_flight() { Answer::Awaited } else { charge.answer() }
    }
}
