//! What must hold of room that is kept for pods that wait long: it is kept on few nodes, and not for longer than is set.

use std::sync::Arc;

use berth::config::Config;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::record::{Pod, text};

const AFTER: SignedDuration = SignedDuration::from_secs(20);
const LENGTH: SignedDuration = SignedDuration::from_mins(2);
/// A write of it may take so long.
const LATE: SignedDuration = SignedDuration::from_secs(30);

/// Room is kept in a story that says so.
pub(crate) fn set(config: &mut Config, is_kept: bool) {
    let pods = &mut config.scheduling.pods;
    (pods.keep_room_after, pods.keep_room_for) = (if is_kept { AFTER } else { SignedDuration::ZERO }, LENGTH);
}

/// Since when room is kept for the pod, as its status says.
pub(crate) fn since(pod: &Value) -> Option<Timestamp> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let is_kept = |one: &&Value| one["type"] == json!("berth.dev/RoomKept") && one["status"] == json!("True");
    text(conditions.iter().find(is_kept)?, "/lastTransitionTime").parse().ok()
}

fn rooms(pods: &[Arc<Pod>]) -> impl Iterator<Item = (&Arc<Pod>, Timestamp)> {
    let waits = |pod: &&Arc<Pod>| pod.is_live() && pod.node.is_empty() && !pod.terminating;
    let kept = pods.iter().filter(waits).filter(|pod| !pod.nominated.is_empty());
    kept.filter_map(|pod| Some((pod, pod.room_since?)))
}

/// Whether the node is kept for another pod of no lower priority.
pub(crate) fn is_kept(node: &str, pod: &Pod, pods: &[Arc<Pod>]) -> bool {
    let is_before = |other: &Pod| other.uid != pod.uid && other.priority >= pod.priority;
    rooms(pods).any(|(other, _)| other.nominated == node && is_before(other))
}

/// Once faults have stopped and time has run: what is kept wrongly.
pub(crate) fn judge_the_end(pods: &[Arc<Pod>], nodes: usize, now: Timestamp) -> Vec<String> {
    let overdue = rooms(pods).filter(|(_, since)| *since + LENGTH + LATE < now);
    let mut wrong: Vec<String> =
        overdue.map(|(pod, since)| format!("room is kept for {} since {since}", pod.name)).collect();
    let settled = rooms(pods).filter(|(_, since)| *since + LATE < now).count();
    if settled > (nodes * 3 / 100).max(1) {
        wrong.push(format!("room is kept on {settled} of {nodes} nodes"));
    }
    wrong
}
