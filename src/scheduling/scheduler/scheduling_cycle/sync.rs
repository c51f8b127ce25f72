//! Whether the scheduler may decide: nothing is decided before everything has been listed.

use super::scheduling_queue::Pace;
use crate::scheduling::{
    event::{Event, PodChange},
    node_flow::Course,
};

/// What the scheduler may decide.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Duty {
    /// What has been listed.
    pub(in crate::scheduling::scheduler) synced: Synced,
    /// Which work is still to be done.
    pub(in crate::scheduling::scheduler) course: Course,
    /// Whether kube-scheduler chooses the nodes.
    pub(in crate::scheduling::scheduler) directed: bool,
}

impl Duty {
    /// Of a scheduler that decides pods at this pace, before anything is listed.
    pub(in crate::scheduling::scheduler) fn at(pace: Pace) -> Self {
        let course = if pace == Pace::Standby { Course::Standby } else { Course::Onward };
        Self { course, ..Self::default() }
    }
}

/// Which lists were taken in, and what waits for that of the pods.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Synced {
    pub(in crate::scheduling::scheduler) pods: bool,
    pub(in crate::scheduling::scheduler) nodes: bool,
    pub(in crate::scheduling::scheduler) quotas: bool,
    early: Vec<Event>,
}

impl Synced {
    /// Whether pods, nodes and quotas have been listed.
    pub(in crate::scheduling::scheduler) fn is_complete(&self) -> bool {
        self.pods && self.nodes && self.quotas
    }

    /// The event, if its turn has come: before the pods nothing is taken in. What these hold is then folded once for a node and once
    /// for a namespace, and not again for each pod.
    pub(in crate::scheduling::scheduler) fn admit(&mut self, event: Event) -> Option<Event> {
        if self.pods || matches!(event, Event::Pod(PodChange::Listed(_))) {
            return Some(event);
        }
        self.early.push(event);
        None
    }

    /// What has come before its turn, once that has come.
    pub(in crate::scheduling::scheduler) fn take_early(&mut self) -> Vec<Event> {
        if self.pods { std::mem::take(&mut self.early) } else { Vec::new() }
    }
}
