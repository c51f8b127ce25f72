//! The pods that wait, in the order in which they would be decided.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    fleet::CountedFleet,
    viewer::Viewer,
    words::{asks, first_reason, message},
};
use crate::{cluster::report::overview::Overview, scheduling::pending::PendingPod};

/// So many pods are shown at most, the first ones.
const MOST_PODS: usize = 1000;

/// The pods that wait.
#[derive(Debug, Serialize)]
pub(super) struct QueuePage<'a> {
    at: Timestamp,
    /// How many wait.
    of: usize,
    pods: Vec<QueuedPod<'a>>,
}

/// A pod that waits; what the viewer may not see is absent.
#[derive(Debug, Serialize)]
struct QueuedPod<'a> {
    position: usize,
    since: Timestamp,
    priority: i32,
    attempts: u32,
    asks: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The queue as one viewer sees it.
pub(super) fn queue<'a>(fleet: &'a CountedFleet, viewer: &Viewer) -> QueuePage<'a> {
    let Overview { at, pending, details, .. } = &fleet.overview;
    let row = |(at, pod): (usize, &'a PendingPod)| {
        let seen = viewer.sees(&pod.key.namespace);
        QueuedPod {
            position: at + 1,
            since: pod.created,
            priority: pod.priority,
            attempts: pod.attempts,
            asks: pod.demand.as_ref().map(asks).unwrap_or_default(),
            reason: first_reason(pod),
            namespace: seen.then_some(&pod.key.namespace),
            pod: seen.then_some(&pod.key.name),
            message: pod.reason.as_ref().filter(|_| seen).map(|reason| message(reason, *details)),
        }
    };
    let pods = pending.iter().enumerate().take(MOST_PODS).map(row).collect();
    QueuePage { at: *at, of: pending.len(), pods }
}
