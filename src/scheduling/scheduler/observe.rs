//! Taking in pods and nodes as the API server shows them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{PodProgress, Scheduler};
use crate::scheduling::{
    model::{
        measure::Measure,
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::{Binding, Claim, Deletion, Holding, PodInfo, Stage, is_older},
    },
    node_flow::NodeFlowInput,
    prebind::PrebindInput,
    preempt::PreemptInput,
    world::ledger::{Charge, Commitment},
};

impl Scheduler {
    pub(super) fn resync_pods(&mut self, pods: Vec<PodInfo>, now: Timestamp) {
        self.flows.note_list();
        let live: BTreeSet<Uid> = pods.iter().map(|pod| pod.key.uid.clone()).collect();
        let mut gone: Vec<Uid> = self.pods.uids().filter(|uid| !live.contains(*uid)).cloned().collect();
        gone.sort();
        for uid in gone {
            self.miss_pod(&uid);
        }
        self.pods.reserve(pods.len());
        for pod in pods {
            self.take_in(pod, now);
        }
        self.duty.synced.pods = true;
        self.queue.lists.begin(now);
        self.reports.next_audit = None;
    }

    pub(super) fn resync_nodes(&mut self, nodes: Vec<NodeInfo>, now: Timestamp) {
        let live: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
        let known = self.snapshot.nodes().map(|state| state.info.name.clone());
        let gone: Vec<NodeName> = known.filter(|name| !live.contains(name)).collect();
        for name in gone {
            self.lose_node(&name);
        }
        for node in nodes {
            self.take_in_node(node, now);
        }
        self.duty.synced.nodes = true;
    }

    /// Takes in a pod, unless what is known of it is newer: a read may be answered after the watch has gone on.
    pub(super) fn see_pod(&mut self, pod: PodInfo, now: Timestamp) {
        let known = self.pods.get(&pod.key.uid).map(|entry| &entry.info.resource_version);
        if known.is_none_or(|known| !is_older(&pod.resource_version, known)) {
            self.take_in(pod, now);
        }
    }

    fn take_in(&mut self, pod: PodInfo, now: Timestamp) {
        let uid = pod.key.uid.clone();
        self.note_holder(&pod.key);
        self.see_holding(&pod, now);
        self.snapshot.nominate(&pod);
        if pod.importance.deletion != Deletion::None {
            self.preempting.note_going(&uid);
        } else if pod.holding.as_ref().is_some_and(|holding| holding.binding == Binding::Bound) {
            self.advance_preempt(PreemptInput::Bound(&pod.key));
        }
        let known = self.pods.get(&uid).map(|entry| &entry.info);
        let gang = self.gangs.note_member(&pod, known);
        let node = pod.holding.as_ref().map(|holding| holding.node.clone());
        let changed = self.pods.see(pod, now);
        self.queue.add(&uid);
        if let Some(node) = node {
            self.advance(&node, NodeFlowInput::HoldingSeen(&uid));
        }
        self.prebinding.note_pod(&uid);
        if let Some(gang) = gang {
            self.gangs.touch(gang);
        }
        self.go_on_with(&uid, changed);
    }

    /// What is to be done for a pod that was seen.
    fn go_on_with(&mut self, uid: &Uid, changed: bool) {
        let uid = uid.clone();
        let Some(entry) = self.pods.get(&uid) else { return };
        let held = self.snapshot.ledger().get(&uid);
        let bound = held.is_some_and(|charge| charge.commitment == Commitment::Bound);
        let wants = entry.info.claim != Claim::None && !bound;
        match self.queue.progress(&uid).clone() {
            PodProgress::Idle if wants && changed => self.enqueue(&uid),
            PodProgress::Waiting(ask) if changed => {
                self.classes.leave(&ask, &uid);
                self.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.enqueue(&uid);
                }
            }
            PodProgress::OverQuota if changed => {
                self.queue.over_quota.leave(&entry.info.key);
                self.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.enqueue(&uid);
                }
            }
            PodProgress::Unlisted | PodProgress::Ungathered | PodProgress::Comparing if !wants || changed => {
                self.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.enqueue(&uid);
                }
            }
            PodProgress::InLine(_) if !wants => self.unwanted_in_line(&uid),
            PodProgress::Prebinding(_) if !wants || changed => {
                self.forget(&uid);
                if wants {
                    self.enqueue(&uid);
                }
            }
            PodProgress::Queued | PodProgress::BackingOff if !wants => {
                self.queue.order.remove(&uid);
                self.queue.set_progress(&uid, PodProgress::Idle);
            }
            _ => {}
        }
        if !wants && self.preempting.stop(&uid) {
            self.snapshot.end_nomination(&uid);
        }
        self.tell(&uid);
    }

    /// A pod is gone, and nobody says that its node is done with it: it may have been deleted by force.
    pub(super) fn miss_pod(&mut self, uid: &Uid) {
        if let Some(node) = self.snapshot.ledger().get(uid).map(|charge| charge.node.clone()) {
            self.advance(&node, NodeFlowInput::PodMissed(uid));
        }
        self.lose_pod(uid);
    }

    pub(super) fn lose_pod(&mut self, uid: &Uid) {
        self.flows.note_gone(uid);
        let Some(entry) = self.pods.get(uid) else { return };
        let key = entry.info.key.clone();
        let node = entry.info.holding.as_ref().map(|holding| holding.node.clone());
        self.queue.end_waits(&key, &mut self.classes);
        self.preempting.note_gone(&key, self.snapshot.now());
        self.snapshot.end_nomination(uid);
        self.forget(uid);
        self.advance_prebind(PrebindInput::PodGone(&key));
        self.release(uid);
        if let Some(entry) = self.pods.get(uid) {
            self.gangs.lose_member(&entry.info);
        }
        self.pods.remove(uid);
        self.queue.remove(uid);
        if let Some(node) = node {
            self.advance(&node, NodeFlowInput::PodGone(uid));
        }
        self.note_holder(&key);
    }

    /// Takes in a node, unless what is known of it is newer.
    pub(super) fn see_node(&mut self, node: NodeInfo, now: Timestamp) {
        let known = self.snapshot.node(&node.name).map(|state| &state.info.resource_version);
        if known.is_none_or(|known| !is_older(&node.resource_version, known)) {
            self.take_in_node(node, now);
        }
    }

    pub(super) fn take_in_node(&mut self, mut node: NodeInfo, now: Timestamp) {
        let name = node.name.clone();
        self.snapshot.objects().join_devices(&mut node);
        let before = self.snapshot.node(&name).map(|state| state.info.clone());
        self.expire(&name, &node.devices.expired(now));
        let same = self.snapshot.node(&name).is_some_and(|known| known.info.fits_as(&node));
        if same {
            self.snapshot.refresh_node(node);
        } else {
            let quotas = self.snapshot.quotas().version();
            self.snapshot.set_node(node);
            self.wake(&name);
            if self.snapshot.quotas().version() != quotas {
                self.wake_within_quotas();
            }
        }
        self.advance(&name, NodeFlowInput::NodeSeen { before: before.as_deref() });
    }

    pub(super) fn lose_node(&mut self, name: &NodeName) {
        let quotas = self.snapshot.quotas().version();
        self.snapshot.remove_node(name);
        if self.snapshot.quotas().version() != quotas {
            self.wake_within_quotas();
        }
        self.advance(name, NodeFlowInput::NodeGone);
    }

    /// Brings the ledger in line with what the pod shows.
    pub(super) fn see_holding(&mut self, pod: &PodInfo, now: Timestamp) {
        let uid = &pod.key.uid;
        let held = self.snapshot.ledger().get(uid).cloned();
        match &pod.holding {
            Some(holding) if pod.stage != Stage::Ended => self.confirm(pod, holding, held.as_ref(), now),
            _ => match held {
                // An assumed pod is not bound yet; the event is older than the Binding, or of something else.
                Some(held) if held.commitment == Commitment::Assumed && pod.stage != Stage::Ended => {}
                // The Binding was answered, and this event is older.
                Some(held)
                    if held.commitment == Commitment::Bound && matches!(pod.claim, Claim::Place(_)) => {}
                Some(held) => {
                    self.forget(uid);
                    self.release(uid);
                    self.flows.touch(&held.node);
                }
                None => {}
            },
        }
    }

    fn confirm(&mut self, pod: &PodInfo, holding: &Holding, held: Option<&Charge>, now: Timestamp) {
        let uid = &pod.key.uid;
        let bound = holding.binding == Binding::Bound;
        if bound {
            self.end_marks(uid);
        }
        let since =
            held.filter(|held| bound && held.commitment == Commitment::Bound && held.node == holding.node);
        let before = since.map_or(&[][..], |held| &held.allocations);
        let charge = Charge {
            node: holding.node.clone(),
            namespace: pod.key.namespace.clone(),
            allocations: holding.allocations.iter().map(|one| one.clone().or_known(before)).collect(),
            init: holding.init,
            footprint: pod.footprint.clone(),
            steps: Vec::new(),
            importance: pod.importance,
            placer: pod.placer,
            commitment: if bound { Commitment::Bound } else { Commitment::Intended },
            stage: pod.stage,
            since: since.map_or(now, |held| held.since),
        };
        self.advance(&holding.node, NodeFlowInput::Charged { pod, before: held, charge: &charge });
        if held.is_some_and(|held| bound && held.commitment == Commitment::Assumed) {
            self.measure_bound(uid, now);
        }
        let shrunk = held.is_some_and(|held| !held.holds_as(&charge));
        self.snapshot.charge(uid.clone(), charge);
        match self.queue.progress(uid).clone() {
            PodProgress::InLine(node) => {
                self.advance(&node, NodeFlowInput::Left(uid));
                self.queue.set_progress(uid, PodProgress::Idle);
            }
            PodProgress::Prebinding(_) => {
                // Another scheduler has placed it.
                self.advance_prebind(PrebindInput::GivenUp(uid));
                self.queue.set_progress(uid, PodProgress::Idle);
            }
            _ => {}
        }
        if let Some(held) = held.filter(|_| shrunk) {
            self.wake(&held.node.clone());
            self.wake_within_quota(&held.namespace.clone());
            self.flows.touch(&held.node);
        }
        self.flows.touch(&holding.node);
    }

    /// The pod is bound: neither what was preempted for it nor a place that it has lost counts any more.
    pub(super) fn end_marks(&mut self, uid: &Uid) {
        self.preempting.end(uid);
        self.queue.order.end_behind(uid);
        self.prebinding.end_parked(uid);
    }

    /// A pod that Berth has decided is bound.
    pub(super) fn measure_bound(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(entry) = self.pods.get(uid) {
            self.outbox.measures.push(Measure::Bound(now.duration_since(entry.since)));
        }
    }

    /// A pod in line that no longer wants a place: out, unless a write for it is under way, whose answer settles it.
    fn unwanted_in_line(&mut self, uid: &Uid) {
        let PodProgress::InLine(node) = self.queue.progress(uid).clone() else { return };
        if !self.is_served(&node, uid) {
            self.forget(uid);
        }
    }
}
