//! Taking in pods and nodes as the API server shows them.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::{Scheduler, binding_cycle::kept_rooms::RoomKeeping, scheduling_cycle::mix};
use crate::scheduling::{
    event::PodList,
    model::{
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::{Binding, Claim, Deletion, PodInfo, is_older},
    },
    node_flow::NodeFlowInput,
    prebind::PrebindInput,
    preempt::PreemptInput,
};

impl Scheduler {
    pub(super) fn resync_pods(&mut self, pods: PodList, now: Timestamp) {
        self.binding.flows.note_list();
        if self.binding.cycle.pods.uids().len() > 0 {
            let live: HashSet<&Uid> = pods.iter().map(|pod| &pod.key.uid).collect();
            let known = self.binding.cycle.pods.uids();
            let mut gone: Vec<Uid> = known.filter(|uid| !live.contains(uid)).cloned().collect();
            gone.sort();
            for uid in gone {
                self.miss_pod(&uid);
            }
        }
        let pods = pods.into_pods();
        self.binding.cycle.pods.reserve(pods.len());
        for pod in pods {
            self.take_in(pod, now);
        }
        self.binding.cycle.duty.synced.pods = true;
        self.binding.cycle.queue.lists.begin(now);
        self.audits.begin();
    }

    pub(super) fn resync_nodes(&mut self, nodes: Vec<NodeInfo>, now: Timestamp) {
        let live: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
        let known = self.binding.cycle.snapshot.nodes().map(|state| state.info.name.clone());
        let gone: Vec<NodeName> = known.filter(|name| !live.contains(name)).collect();
        for name in gone {
            self.lose_node(&name);
        }
        for node in nodes {
            self.take_in_node(node, now);
        }
        self.binding.cycle.duty.synced.nodes = true;
    }

    /// Takes in a pod, unless what is known of it is newer: a read may be answered after the watch has gone on.
    pub(super) fn see_pod(&mut self, pod: Box<PodInfo>, now: Timestamp) {
        let known = self.binding.cycle.pods.get(&pod.key.uid).map(|entry| &entry.info.resource_version);
        if known.is_none_or(|known| !is_older(&pod.resource_version, known)) {
            self.take_in(pod, now);
        }
    }

    fn take_in(&mut self, pod: Box<PodInfo>, now: Timestamp) {
        let uid = pod.key.uid.clone();
        self.binding.note_holder(&pod.key);
        self.binding.see_holding(&pod, now);
        self.binding.cycle.snapshot.nominate(&pod);
        if pod.importance.deletion != Deletion::None {
            self.binding.cycle.preempting.note_going(&uid);
        } else if pod.holding.as_ref().is_some_and(|holding| holding.binding == Binding::Bound) {
            self.binding.advance_preempt(PreemptInput::Bound(&pod.key));
        }
        let known = self.binding.cycle.pods.get(&uid).map(|entry| &*entry.info);
        let gang = self.binding.cycle.gangs.note_member(&pod, known);
        let node = pod.holding.as_ref().map(|holding| holding.node.clone());
        let wants = pod.claim != Claim::None;
        let changed = self.binding.cycle.pods.see(pod, now);
        mix::note(&mut self.binding.cycle);
        if wants {
            self.binding.cycle.queue.add(&uid);
        }
        if let Some(node) = node {
            self.binding.advance(&node, NodeFlowInput::HoldingSeen(&uid));
        }
        self.binding.prebinding.note_pod(&uid);
        if let Some(gang) = gang {
            self.binding.cycle.gangs.touch(gang);
        }
        self.binding.go_on_with(&uid, changed);
        if !wants {
            self.binding.cycle.queue.settle(&uid);
        }
    }

    /// A pod is gone, and nobody says that its node is done with it: it may have been deleted by force.
    pub(super) fn miss_pod(&mut self, uid: &Uid) {
        if let Some(node) = self.binding.cycle.snapshot.ledger().get(uid).map(|charge| charge.node.clone()) {
            self.binding.advance(&node, NodeFlowInput::PodMissed(uid));
        }
        self.lose_pod(uid);
    }

    pub(super) fn lose_pod(&mut self, uid: &Uid) {
        self.binding.flows.note_gone(uid);
        let Some(entry) = self.binding.cycle.pods.get(uid) else { return };
        let key = entry.info.key.clone();
        let node = entry.info.holding.as_ref().map(|holding| holding.node.clone());
        self.binding.cycle.queue.end_waits(&key, &mut self.binding.cycle.classes);
        self.binding.cycle.preempting.note_gone(&key, self.binding.cycle.snapshot.now());
        self.binding.cycle.snapshot.end_nomination(uid);
        self.binding.forget(uid);
        self.binding.advance_prebind(PrebindInput::PodGone(&key));
        self.binding.release(uid);
        if let Some(entry) = self.binding.cycle.pods.get(uid) {
            self.binding.cycle.gangs.lose_member(&entry.info);
        }
        self.binding.cycle.pods.remove(uid);
        mix::note(&mut self.binding.cycle);
        self.binding.cycle.conditions.forget(uid);
        self.binding.cycle.queue.remove(uid);
        if let Some(node) = node {
            self.binding.advance(&node, NodeFlowInput::PodGone(uid));
        }
        self.binding.note_holder(&key);
    }

    /// Takes in a node, unless what is known of it is newer.
    pub(super) fn see_node(&mut self, node: NodeInfo, now: Timestamp) {
        let known = self.binding.cycle.snapshot.node(&node.name).map(|state| &state.info.resource_version);
        if known.is_none_or(|known| !is_older(&node.resource_version, known)) {
            self.take_in_node(node, now);
        }
    }

    pub(super) fn take_in_node(&mut self, mut node: NodeInfo, now: Timestamp) {
        let name = node.name.clone();
        self.binding.cycle.snapshot.objects().join_devices(&mut node);
        let before = self.binding.cycle.snapshot.node(&name).map(|state| state.info.clone());
        self.binding.expire(&name, &node.devices.expired(now));
        let same = self.binding.cycle.snapshot.node(&name).is_some_and(|known| known.info.fits_as(&node));
        if same {
            self.binding.cycle.snapshot.refresh_node(node);
        } else {
            let quotas = self.binding.cycle.snapshot.quotas().version();
            self.binding.cycle.snapshot.set_node(node);
            self.binding.wake(&name);
            if self.binding.cycle.snapshot.quotas().version() != quotas {
                self.binding.cycle.wake_within_quotas();
            }
        }
        self.binding.advance(&name, NodeFlowInput::NodeSeen { before: before.as_deref() });
    }

    pub(super) fn lose_node(&mut self, name: &NodeName) {
        let quotas = self.binding.cycle.snapshot.quotas().version();
        self.binding.cycle.snapshot.remove_node(name);
        self.binding.cycle.kept_rooms.forget(name);
        if let Some(mut rooms) = RoomKeeping::of(&mut self.binding) {
            rooms.lose_on(name);
        }
        if self.binding.cycle.snapshot.quotas().version() != quotas {
            self.binding.cycle.wake_within_quotas();
        }
        self.binding.advance(name, NodeFlowInput::NodeGone);
    }
}
