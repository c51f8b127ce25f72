//! What a shadow has found out since its process began: counts, the workloads concerned, and the last divergences in full.
//!
//! A fixed number of workloads and of divergences is kept. It must not decide what diverges.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::metrics::ShadowMetrics;
use crate::{
    device::Share,
    excerpt::{FIELD, MESSAGE, shortened},
    scheduling::{
        PodKey, Uid,
        model::workload::Workload,
        shadow::{
            ShadowFinding,
            comparison::{ComparedPlacement, Outcome},
        },
    },
};

/// Divergences that are kept.
const KEPT: usize = 256;
/// Cards that are listed of one placement.
const CARDS: usize = 64;
/// Pairs of outcome and reason that are counted apart: reasons may name resources, and users make those up.
const PAIRS: usize = 100;
/// The reason under which further pairs are counted.
const OTHER: &str = "other";
/// Entries of workloads that are kept: users make those up too.
const WORKLOADS: usize = 1000;
/// The outcome of a pod that is left pending.
pub const LEFT_PENDING: &str = "left_pending";

/// The report; clones are the same.
#[derive(Clone, Debug)]
pub struct Board {
    metrics: ShadowMetrics,
    report: Arc<Mutex<Report>>,
}

#[derive(Debug)]
struct Report {
    since: Timestamp,
    synced: bool,
    waiting: usize,
    decisions: BTreeMap<(Outcome, String), u64>,
    left_pending: u64,
    /// By the workload, what was found of its pods, and why.
    workloads: BTreeMap<WorkloadOutcome, WorkloadPods>,
    further_workloads: u64,
    /// The newest first.
    divergences: VecDeque<Divergence>,
    /// The pods that a shadow which has ended had found to be left pending.
    counted: HashSet<Uid>,
}

/// A workload of which pods were decided so.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct WorkloadOutcome {
    namespace: Arc<str>,
    workload: Workload,
    outcome: &'static str,
    reason: String,
}

/// The pods of a workload.
#[derive(Debug)]
struct WorkloadPods {
    count: u64,
    last: Timestamp,
}

/// The report as it is served.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Since when it counts.
    pub since: Timestamp,
    /// When it was asked for.
    pub until: Timestamp,
    /// Whether pods and nodes are known.
    pub synced: bool,
    /// Pods that wait.
    pub waiting: usize,
    /// Decisions by outcome and reason.
    pub decisions: Vec<DecisionCount>,
    /// Pods that were left pending although Berth would have placed them.
    pub left_pending: u64,
    /// The workloads whose pods Berth would not have placed as they were, or would have placed at all.
    pub workloads: Vec<WorkloadEntry>,
    /// How many pods of further workloads were decided so.
    pub further_workloads: u64,
    /// The last divergences, the newest first. Who reads a report needs only what is above.
    #[serde(skip_deserializing)]
    pub divergences: Vec<Divergence>,
}

/// Pods of one workload that were decided alike.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WorkloadEntry {
    /// The workload's namespace.
    pub namespace: String,
    /// The workload's kind; `Pod`: no controller made the pod.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// The outcome, or `left_pending`.
    pub outcome: String,
    /// The reason; empty where there is none.
    pub reason: String,
    /// How many pods.
    pub pods: u64,
    /// When the last of them was seen.
    pub last: Timestamp,
}

/// How many decisions had this outcome for this reason.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DecisionCount {
    /// The outcome.
    pub outcome: String,
    /// The reason; empty where there is none.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// One decision that was not Berth's.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// When it was seen.
    pub time: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The outcome, or `left_pending`.
    pub outcome: &'static str,
    /// The reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the other scheduler decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Placed>,
    /// What Berth would have decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub berth: Option<Placed>,
    /// The place of the chosen node among the feasible ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// How many nodes Berth holds feasible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feasible: Option<usize>,
    /// Since when the pod waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<String>,
}

/// A node and cards of it.
#[derive(Clone, Debug, Serialize)]
pub struct Placed {
    /// The node.
    pub node: String,
    /// The shares, the first of many.
    pub cards: Vec<PlacedShare>,
}

/// A share of a card.
#[derive(Clone, Debug, Serialize)]
pub struct PlacedShare {
    /// The card.
    pub card: String,
    /// Memory, MiB.
    pub memory: u64,
    /// Compute, in percent of the card or in its own units.
    pub cores: u32,
}

impl Board {
    /// A report that begins now.
    pub fn new(metrics: ShadowMetrics, now: Timestamp) -> Self {
        let report = Report {
            since: now,
            synced: false,
            waiting: 0,
            decisions: BTreeMap::new(),
            left_pending: 0,
            workloads: BTreeMap::new(),
            further_workloads: 0,
            divergences: VecDeque::new(),
            counted: HashSet::new(),
        };
        Self { metrics, report: Arc::new(Mutex::new(report)) }
    }

    /// The report as it is now.
    pub fn page(&self, now: Timestamp) -> Page {
        let report = self.report();
        let counts = report.decisions.iter().map(|((outcome, reason), count)| DecisionCount {
            outcome: outcome.name().to_owned(),
            reason: reason.clone(),
            count: *count,
        });
        Page {
            since: report.since,
            until: now,
            synced: report.synced,
            waiting: report.waiting,
            decisions: counts.collect(),
            left_pending: report.left_pending,
            workloads: report.workloads.iter().map(entry).collect(),
            further_workloads: report.further_workloads,
            divergences: report.divergences.iter().cloned().collect(),
        }
    }

    /// Takes in a finding.
    pub(super) fn note(&self, finding: &ShadowFinding, now: Timestamp) {
        let mut report = self.report();
        match finding {
            ShadowFinding::Decided(found) => {
                let outcome = found.outcome();
                let reason = report.count(outcome, &found.reason.name());
                self.metrics.decided(outcome, &reason, found.rank);
                if matters(outcome) {
                    report.concern(&found.pod, found.workload.as_ref(), (outcome.name(), reason), now);
                }
            }
            ShadowFinding::LeftPending(found) => {
                report.left_pending += 1;
                self.metrics.left_pending();
                report.concern(&found.pod, found.workload.as_ref(), (LEFT_PENDING, String::new()), now);
            }
        }
        if let Some(divergence) = divergence(finding, now) {
            report.divergences.truncate(KEPT - 1);
            report.divergences.push_front(divergence);
        }
    }

    /// Takes in how things stand.
    pub(super) fn stand(&self, synced: bool, waiting: usize) {
        self.metrics.stand(synced, waiting);
        let mut report = self.report();
        (report.synced, report.waiting) = (synced, waiting);
    }

    /// Takes over from a shadow that has ended which pods it has counted as left pending.
    pub(super) fn leave(&self, counted: HashSet<Uid>) {
        self.report().counted = counted;
    }

    /// The pods that the last shadow has counted.
    pub(super) fn take_counted(&self) -> HashSet<Uid> {
        std::mem::take(&mut self.report().counted)
    }

    /// Logs the counts.
    pub(super) fn log_summary(&self) {
        let report = self.report();
        let total: u64 = report.decisions.values().sum();
        let counts = report.decisions.iter().map(|((outcome, reason), count)| {
            if reason.is_empty() {
                format!("{outcome}: {count}")
            } else {
                format!("{outcome} ({reason}): {count}")
            }
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        tracing::info!(
            decisions = total, left_pending = report.left_pending, waiting = report.waiting,
            since = %report.since, "compared with the current scheduler: {counts}"
        );
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    /// Counts a decision; returns the reason under which it is counted.
    fn count(&mut self, outcome: Outcome, reason: &str) -> String {
        let reason = shortened(reason, FIELD);
        let known = self.decisions.contains_key(&(outcome, reason.clone()));
        let reason = if known || self.decisions.len() < PAIRS { reason } else { OTHER.to_owned() };
        *self.decisions.entry((outcome, reason.clone())).or_insert(0) += 1;
        reason
    }

    /// Counts a pod of a workload.
    fn concern(
        &mut self,
        pod: &PodKey,
        workload: Option<&Workload>,
        (outcome, reason): (&'static str, String),
        now: Timestamp,
    ) {
        let bare = || Workload { kind: "Pod".into(), name: pod.name.clone() };
        let workload = workload.cloned().unwrap_or_else(bare);
        let concerned = WorkloadOutcome { namespace: pod.namespace.clone(), workload, outcome, reason };
        if self.workloads.len() >= WORKLOADS && !self.workloads.contains_key(&concerned) {
            self.further_workloads += 1;
            return;
        }
        let pods = self.workloads.entry(concerned).or_insert(WorkloadPods { count: 0, last: now });
        pods.count += 1;
        pods.last = now;
    }
}

/// Whether pods of this outcome would be worse off with Berth: of the others the counts say enough.
fn matters(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Infeasible | Outcome::WouldWait | Outcome::Unreadable)
}

fn entry((concerned, pods): (&WorkloadOutcome, &WorkloadPods)) -> WorkloadEntry {
    let WorkloadOutcome { namespace, workload, outcome, reason } = concerned;
    WorkloadEntry {
        namespace: namespace.to_string(),
        kind: workload.kind.to_string(),
        name: workload.name.to_string(),
        outcome: (*outcome).to_owned(),
        reason: reason.clone(),
        pods: pods.count,
        last: pods.last,
    }
}

/// What is kept of a finding; `None`: nothing diverged, or nothing was compared.
fn divergence(finding: &ShadowFinding, now: Timestamp) -> Option<Divergence> {
    match finding {
        ShadowFinding::Decided(found) if matches!(found.outcome(), Outcome::Same | Outcome::NotCompared) => {
            None
        }
        ShadowFinding::Decided(found) => Some(Divergence {
            reason: shortened(found.reason.name(), FIELD),
            message: shortened(found.reason.to_string(), MESSAGE),
            chosen: Some(placed(&found.chosen)),
            berth: found.own.as_ref().map(placed),
            rank: found.rank,
            feasible: Some(found.feasible),
            ..bare(&found.pod, found.outcome().name(), now)
        }),
        ShadowFinding::LeftPending(found) => Some(Divergence {
            message: shortened(found.told.as_deref().unwrap_or_default(), MESSAGE),
            berth: Some(placed(&found.own)),
            waiting_since: Some(found.since.to_string()),
            ..bare(&found.pod, LEFT_PENDING, now)
        }),
    }
}

fn bare(pod: &PodKey, outcome: &'static str, now: Timestamp) -> Divergence {
    Divergence {
        time: now.to_string(),
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        outcome,
        reason: String::new(),
        message: String::new(),
        chosen: None,
        berth: None,
        rank: None,
        feasible: None,
        waiting_since: None,
    }
}

fn placed(placement: &ComparedPlacement) -> Placed {
    let share = |share: &Share| PlacedShare {
        card: shortened(share.card.to_string(), FIELD),
        memory: share.memory.get(),
        cores: share.cores.get(),
    };
    Placed {
        node: placement.node.to_string(),
        cards: placement.shares.iter().take(CARDS).map(share).collect(),
    }
}

#[cfg(test)]
mod tests;
