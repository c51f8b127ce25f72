//! Why a pod's attempts to find a place failed, as JSON.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::words::message;
use crate::scheduling::{
    Details,
    pending::{PendingPod, PendingReason},
    queue::AttemptOutcome,
};

/// Attempts that failed alike.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HistoryRow {
    /// By which waiting pods are counted, each once.
    pub reasons: Vec<String>,
    /// What was said of the last of them.
    pub message: String,
    /// When the first of them was.
    pub first: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
    /// How many there were.
    pub count: u32,
}

/// The outcomes of a pod's attempts, the latest first, in as much detail as its owner is told.
pub(super) fn history(pod: &PendingPod, details: Details) -> Vec<HistoryRow> {
    let row = |outcome: &AttemptOutcome<PendingReason>| HistoryRow {
        reasons: outcome.reason.blame().labels().into_iter().map(|(_, reason)| reason).collect(),
        message: message(&outcome.reason, details),
        first: outcome.first,
        last: outcome.last,
        count: outcome.count,
    };
    let outcomes = pod.history.iter().flat_map(|history| history.outcomes().iter().rev());
    outcomes.map(row).collect()
}
