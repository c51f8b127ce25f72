//! Whether the scheduler may decide: nothing is decided before everything has been listed.

use crate::scheduling::{
    event::{Event, PodChange},
    node_flow::Course,
};

/// What the scheduler may decide.
#[derive(Debug, Default)]
pub(super) struct Duty {
    /// What has been listed.
    pub(super) synced: Synced,
    /// Which work is still to be done.
    pub(super) course: Course,
    /// Whether kube-scheduler chooses the nodes.
    pub(super) directed: bool,
}

/// Which lists were taken in, and what waits for that of the pods.
#[derive(Debug, Default)]
pub(super) struct Synced {
    pub(super) pods: bool,
    pub(super) nodes: bool,
    pub(super) quotas: bool,
    early: Vec<Event>,
}

impl Synced {
    /// Whether pods, nodes and quotas have been listed.
    pub(super) fn is_complete(&self) -> bool {
        self.pods && self.nodes && self.quotas
    }

    /// The event, if its turn has come: before the pods nothing is taken in. What these hold is then folded once for a node and once
    /// for a namespace, and not again for each pod.
    pub(super) fn admit(&mut self, event: Event) -> Option<Event> {
        if self.pods || matches!(event, Event::Pod(PodChange::Listed(_))) {
            return Some(event);
        }
        self.early.push(event);
        None
    }

    /// What has come before its turn, once that has come.
    pub(super) fn take_early(&mut self) -> Vec<Event> {
        if self.pods { std::mem::take(&mut self.early) } else { Vec::new() }
    }
}
