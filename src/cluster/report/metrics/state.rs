//! The state of the scheduler: pods that wait, agents that do not answer, and whether it knows the cluster.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{
    count,
    labels::{QueueLabel, QueueLabels},
};
use crate::scheduling::Standing;

/// The state; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct StateMetrics {
    pending_pods: Family<QueueLabels, Gauge>,
    kept_rooms: Gauge,
    silent_agents: Gauge,
    synced: Gauge,
}

impl StateMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        scheduler.register("pending_pods", "Pods that wait, by where they wait", self.pending_pods.clone());
        let help = "Nodes on which room is kept for a pod that waits long";
        scheduler.register("kept_rooms", help, self.kept_rooms.clone());
        let help = "Nodes that get no further pods because their device plugin has not answered in time";
        scheduler.register("silent_agents", help, self.silent_agents.clone());
        scheduler.register("synced", "1 once pods, nodes and quotas have been listed", self.synced.clone());
        for queue in [QueueLabel::active, QueueLabel::backoff, QueueLabel::unschedulable, QueueLabel::in_line]
        {
            drop(self.pending_pods.get_or_create(&QueueLabels { queue }));
        }
    }

    pub(super) fn set(&self, standing: &Standing) {
        let depths = [
            (QueueLabel::active, standing.active),
            (QueueLabel::backoff, standing.backing_off),
            (QueueLabel::unschedulable, standing.unschedulable),
            (QueueLabel::in_line, standing.in_line),
        ];
        for (queue, depth) in depths {
            self.pending_pods.get_or_create(&QueueLabels { queue }).set(count(depth));
        }
        self.kept_rooms.set(count(standing.kept_rooms));
        self.silent_agents.set(count(standing.silent_agents));
        self.synced(standing.synced);
    }

    /// Sets whether what is watched has been listed.
    pub(super) fn synced(&self, synced: bool) {
        self.synced.set(i64::from(synced));
    }
}
