//! Taking in pods and nodes that were read to settle a doubt.

use jiff::Timestamp;

use super::{Scheduler, scheduling_cycle::scheduling_queue::PodProgress};
use crate::{
    device::LockOwner,
    scheduling::{
        model::{
            name::NodeName,
            node::NodeInfo,
            pod::{PodInfo, PodKey},
        },
        node_flow::{NodeFlowInput, Validity},
    },
};

impl Scheduler {
    /// A node was read, and these pods after it: they are taken in, unless what is known of them is newer.
    pub(super) fn node_read(
        &mut self,
        node: &NodeName,
        found: Option<Box<NodeInfo>>,
        pods: Vec<PodInfo>,
        now: Timestamp,
    ) {
        let (validity, pods) = self.binding.flows.end_node_read(node, pods);
        for pod in pods {
            self.see_pod(Box::new(pod), now);
        }
        match found {
            Some(found) => self.see_node(*found, now),
            None => self.lose_node(node),
        }
        self.binding.advance(node, NodeFlowInput::NodeRead(validity));
    }

    /// A pod was read: what it holds is adopted, whoever bound it.
    pub(super) fn pod_read(&mut self, pod: &PodKey, found: Option<Box<PodInfo>>, now: Timestamp) {
        if !self.binding.cycle.pods.contains(&pod.uid) {
            // It was seen to go after it was read.
            return;
        }
        let Some(found) = found.filter(|found| found.key.uid == pod.uid) else {
            self.miss_pod(&pod.uid);
            return;
        };
        self.see_pod(found, now);
        if let PodProgress::InLine(node) = self.binding.cycle.queue.progress(&pod.uid).clone() {
            self.binding.advance(&node, NodeFlowInput::PodRead(&pod.uid));
        }
    }

    /// The holder of a lock was read, of which nothing was seen.
    pub(super) fn holder_read(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        found: Option<Box<PodInfo>>,
        now: Timestamp,
    ) {
        let pods = found.into_iter().map(|pod| *pod).collect();
        let (validity, pods) = self.binding.flows.end_holder_read(owner, since, pods);
        let alive = !pods.is_empty();
        // What it holds counts from now on: its lock may be gone before the watch shows it.
        for pod in pods {
            self.see_pod(Box::new(pod), now);
        }
        for node in self.binding.flows.locked_by(owner) {
            let input = match validity {
                Validity::Fresh => NodeFlowInput::HolderRead { owner, since, alive },
                Validity::Overtaken => NodeFlowInput::HolderSeen(owner),
            };
            self.binding.advance(&node, input);
        }
    }
}
