//! kube-scheduler's scheduling queue: how far each pod is that wants a place, and where those wait that are not decided.
//!
//! It owns the progress of every pod, and every list of waiting pods but one: which pods wait for a node to change stands with the verdicts of
//! their class, and is passed in where a pod leaves or joins them. It decides no pod and says nothing.

mod comparisons;
mod initial_lists;
mod over_quota;
mod rejections;
mod requeue;
mod turn;
mod turned_away;
mod unlisted;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use foldhash::fast::RandomState;
use jiff::Timestamp;

use super::pods::Entry;
use crate::scheduling::{
    decide::{
        class::{Classes, HeldChange},
        fit_error::{Awaits, FitError},
    },
    model::{
        name::{NodeName, Uid},
        pod::{Ask, PodInfo, PodKey},
    },
    pending::PendingReason,
    plugin::{Plugin, contract::Reach},
    queue::{AttemptHistories, AttemptHistory, LoopShares, Queue, backoff_end, flush_time},
};
use comparisons::Comparisons;
use initial_lists::InitialLists;
use over_quota::OverQuota;
use requeue::{QueuedRejection, Requeue};
use turn::Turn;
use unlisted::Unlisted;

pub(in crate::scheduling::scheduler) use rejections::Rejections;
pub(in crate::scheduling::scheduler) use turn::MOST_STEPS;

pub use turn::Pace;

/// How far a pod is that wants a place.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling::scheduler) enum PodProgress {
    /// Nothing is to be done for it.
    #[default]
    Idle,
    /// In the queue; after a rejection it may have to wait out its backoff there.
    Queued,
    /// No node would have it; it waits for one to change, or for the quota of its namespace where nodes failed for that.
    Waiting(Arc<Ask>),
    /// It would exceed the quota of its namespace.
    OverQuota,
    /// It can't be decided: pods of its gang are missing, or the gang's PodGroup is, or the gang has its maximum.
    Ungathered,
    /// It has claims, and not all kinds that decide on these are listed.
    Unlisted,
    /// Its claims are compared with devices beside the decisions.
    Comparing,
    /// It waits out a failure.
    BackingOff,
    /// Decided: its claims are being bound on this node.
    Prebinding(NodeName),
    /// Decided: it stands in this node's line or is being served there.
    InLine(NodeName),
}

/// Where a pod comes among others in the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling::scheduler) enum Precedence {
    /// By its priority, then its age.
    Priority,
    /// Before all others: pods of its gang are bound and wait for it.
    First,
}

/// One pod's attempts to find a place.
#[derive(Debug, Default)]
struct Attempts {
    /// How far it is.
    progress: PodProgress,
    /// How often its decision could not be carried out since it was last rejected.
    failures: u32,
    /// How often it was rejected for more than what the nodes are themselves.
    rejections: u32,
    /// Until when it waits after the last of these rejections, where there is other work.
    backoff_until: Option<Timestamp>,
    /// How often it was decided without finding a place or without getting it.
    in_vain: u32,
}

/// How far each pod is that wants a place, and where those wait that are not decided.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct SchedulingQueue {
    /// The pods that want a place or are on their way to it. Most pods of a cluster have theirs.
    attempts: HashMap<Uid, Attempts, RandomState>,
    /// What came of the attempts of each pod that is not bound.
    histories: AttemptHistories<PendingReason>,
    /// By priority, then age; after a failure once their backoff has ended, and after five minutes in any case.
    pub(in crate::scheduling::scheduler) order: Queue,
    /// How much was decided in this turn of the loop.
    pub(in crate::scheduling::scheduler) turn: Turn,
    /// How much of the loop each namespace has used lately.
    shares: LoopShares,
    /// Nodes that have changed and for which waiting pods are to be woken.
    moved: BTreeMap<NodeName, HeldChange>,
    /// Pods that wait for the quota of their namespace.
    pub(in crate::scheduling::scheduler) over_quota: OverQuota,
    /// Pods that a plugin which looks at more than one node has rejected.
    pub(in crate::scheduling::scheduler) requeue: Requeue,
    /// Pods whose claims are compared beside the decisions.
    pub(in crate::scheduling::scheduler) comparisons: Comparisons,
    /// Pods with claims that wait for lists of what decides on these.
    pub(in crate::scheduling::scheduler) unlisted: Unlisted,
    /// How long pods wait for lists after a start.
    pub(in crate::scheduling::scheduler) lists: InitialLists,
    /// Why pods were rejected since the last change.
    pub(in crate::scheduling::scheduler) rejections: Rejections,
}

impl SchedulingQueue {
    /// Of a scheduler that decides pods at this pace.
    pub(in crate::scheduling::scheduler) fn at(pace: Pace) -> Self {
        Self { turn: Turn::at(pace), ..Self::default() }
    }

    /// Takes in a pod that wants a place.
    pub(in crate::scheduling::scheduler) fn add(&mut self, pod: &Uid) {
        if !self.attempts.contains_key(pod) {
            self.attempts.insert(pod.clone(), Attempts::default());
        }
    }

    /// The pod wants no place any more: its attempts are forgotten unless it is still on its way to one.
    pub(in crate::scheduling::scheduler) fn settle(&mut self, pod: &Uid) {
        if matches!(self.progress(pod), PodProgress::Idle) {
            self.attempts.remove(pod);
        }
    }

    /// The pod waits no more, whatever for.
    pub(in crate::scheduling::scheduler) fn end_waits(&mut self, pod: &PodKey, classes: &mut Classes) {
        if let PodProgress::Waiting(ask) = self.progress(&pod.uid).clone() {
            classes.leave(&ask, &pod.uid);
        }
        self.over_quota.leave(pod);
        self.requeue.leave(&pod.uid);
        self.unlisted.leave(&pod.uid);
        self.comparisons.leave(&pod.uid);
        self.order.remove(&pod.uid);
        self.order.end_behind(&pod.uid);
    }

    /// The pod is gone, and waits no more.
    pub(in crate::scheduling::scheduler) fn remove(&mut self, pod: &Uid) {
        self.attempts.remove(pod);
        self.histories.forget(pod);
    }

    /// How far the pod is.
    pub(in crate::scheduling::scheduler) fn progress(&self, pod: &str) -> &PodProgress {
        self.attempts.get(pod).map_or(&PodProgress::Idle, |attempts| &attempts.progress)
    }

    /// How often the pod was decided without finding a place or without getting it.
    pub(in crate::scheduling::scheduler) fn attempts(&self, pod: &str) -> u32 {
        self.attempts.get(pod).map_or(0, |attempts| attempts.in_vain)
    }

    /// Why the pod's attempts failed; `None`: none has.
    pub(in crate::scheduling::scheduler) fn history(
        &self,
        pod: &str,
    ) -> Option<&Arc<AttemptHistory<PendingReason>>> {
        self.histories.of(pod)
    }

    /// An attempt of the pod has failed for this reason.
    pub(in crate::scheduling::scheduler) fn note_refused(
        &mut self,
        pod: &PodKey,
        reason: &PendingReason,
        now: Timestamp,
    ) {
        if self.attempts.contains_key(&pod.uid) {
            self.histories.note(pod, reason, now, PendingReason::is_alike);
        }
    }

    /// The pod is bound: why its attempts failed matters no more.
    pub(in crate::scheduling::scheduler) fn forget_history(&mut self, pod: &Uid) {
        self.histories.forget(pod);
    }

    /// The pod is so far; it leaves the lists of those that wait for something else. The node or the quota that it waited for is left by
    /// [`Self::stop_waiting`].
    pub(in crate::scheduling::scheduler) fn set_progress(&mut self, pod: &Uid, progress: PodProgress) {
        if !matches!(progress, PodProgress::Waiting(_)) {
            self.requeue.leave(pod);
        }
        if progress != PodProgress::Unlisted {
            self.unlisted.leave(pod);
        }
        if progress != PodProgress::Comparing {
            self.comparisons.leave(pod);
        }
        if !matches!(progress, PodProgress::Waiting(_) | PodProgress::OverQuota | PodProgress::Ungathered) {
            self.order.take_back(pod);
        }
        if let Some(attempts) = self.attempts.get_mut(pod) {
            attempts.progress = progress;
        }
    }

    /// The pod is decided as soon as its turn comes, after the backoff of its last rejection where there is other work.
    pub(in crate::scheduling::scheduler) fn enqueue(&mut self, pod: &Entry, precedence: Precedence) {
        let uid = &pod.info.key.uid;
        match self.attempts.get(uid).and_then(|attempts| attempts.backoff_until) {
            _ if precedence == Precedence::First && !self.order.is_behind(uid) => {
                self.order.push_ahead(&pod.info, pod.seen);
            }
            Some(until) => self.order.back_off(&pod.info, pod.seen, until),
            None => self.order.push(&pod.info, pod.seen),
        }
        self.set_progress(uid, PodProgress::Queued);
    }

    /// The pod waits for no node and no quota any more; whether it did.
    pub(in crate::scheduling::scheduler) fn stop_waiting(
        &mut self,
        pod: &PodKey,
        classes: &mut Classes,
    ) -> bool {
        match self.progress(&pod.uid).clone() {
            PodProgress::Waiting(ask) => classes.leave(&ask, &pod.uid),
            PodProgress::OverQuota | PodProgress::Ungathered | PodProgress::Comparing => {}
            _ => return false,
        }
        self.over_quota.leave(pod);
        true
    }

    /// The pod is taken out, wherever it waits.
    pub(in crate::scheduling::scheduler) fn take_out(&mut self, pod: &PodKey, classes: &mut Classes) {
        self.stop_waiting(pod, classes);
        self.order.remove(&pod.uid);
    }

    /// A node would have the pod: no backoff is left of earlier rejections.
    pub(in crate::scheduling::scheduler) fn end_backoff(&mut self, pod: &Uid) {
        if let Some(attempts) = self.attempts.get_mut(pod) {
            attempts.backoff_until = None;
        }
    }

    /// The pod's decision could not be carried out: it is decided again after a backoff.
    pub(in crate::scheduling::scheduler) fn back_off(&mut self, pod: &Entry, now: Timestamp) {
        let Some(attempts) = self.attempts.get_mut(&pod.info.key.uid) else { return };
        attempts.failures += 1;
        attempts.in_vain += 1;
        self.order.wait_out(&pod.info, pod.seen, backoff_end(now, attempts.failures));
        self.set_progress(&pod.info.key.uid, PodProgress::BackingOff);
    }

    /// The pod found no node: it waits for what may make room for it, and is decided again at this time whatever has happened, if it is not
    /// flushed before.
    pub(in crate::scheduling::scheduler) fn wait(
        &mut self,
        pod: &Entry,
        ask: &Arc<Ask>,
        error: &FitError,
        now: Timestamp,
        again: Option<Timestamp>,
        classes: &mut Classes,
    ) {
        let uid = &pod.info.key.uid;
        let awaits = error.awaits();
        let of_cluster: BTreeSet<Plugin> =
            error.plugins().into_iter().filter(|plugin| plugin.reach() == Reach::Cluster).collect();
        // Only a node that would have the pod wakes it; else it is woken by what may help, and may not.
        let surely = of_cluster.is_empty() && !error.is_beside_nominated() && awaits != Awaits::NodeOrQuota;
        let flush = flush_time(now);
        if let Some(attempts) = self.attempts.get_mut(uid) {
            attempts.failures = 0;
            attempts.in_vain += 1;
            attempts.rejections += u32::from(!surely);
            attempts.backoff_until = (!surely).then(|| backoff_end(now, attempts.rejections));
        }
        self.over_quota.join(&pod.info.key, awaits);
        self.order.set_aside(&pod.info, pod.seen, again.map_or(flush, |until| until.min(flush)));
        if awaits == Awaits::Quota {
            self.set_progress(uid, PodProgress::OverQuota);
            return;
        }
        // What a node that is kept, or whose cards are too much for the quota, lacks may come with any change of it.
        let itself = of_cluster.is_empty() || error.is_beside_nominated() || awaits == Awaits::NodeOrQuota;
        let rejected_by = if itself { Reach::Node } else { Reach::Cluster };
        classes.wait(ask, uid.clone(), rejected_by);
        self.requeue.wait(uid, QueuedRejection { plugins: of_cluster, kept: error.is_beside_nominated() });
        self.set_progress(uid, PodProgress::Waiting(ask.clone()));
    }

    /// The pod waits for any node that would have it, since its place may leave room for another of its gang; not too often.
    pub(in crate::scheduling::scheduler) fn wait_for_mates(
        &mut self,
        pod: &Entry,
        ask: &Arc<Ask>,
        now: Timestamp,
        classes: &mut Classes,
    ) {
        let uid = &pod.info.key.uid;
        let Some(attempts) = self.attempts.get_mut(uid) else { return };
        attempts.in_vain += 1;
        if attempts.backoff_until.is_none_or(|until| until <= now) {
            attempts.rejections += 1;
            attempts.backoff_until = Some(backoff_end(now, attempts.rejections));
        }
        if matches!(attempts.progress, PodProgress::Waiting(_) | PodProgress::OverQuota) {
            return;
        }
        self.order.set_aside(&pod.info, pod.seen, flush_time(now));
        classes.wait_known(ask, uid.clone());
        self.set_progress(uid, PodProgress::Waiting(ask.clone()));
    }

    /// The pod can't be decided before something changes of its gang.
    pub(in crate::scheduling::scheduler) fn wait_ungathered(&mut self, pod: &Entry, now: Timestamp) {
        self.order.set_aside(&pod.info, pod.seen, flush_time(now));
        self.set_progress(&pod.info.key.uid, PodProgress::Ungathered);
    }

    /// A pod with claims waits while claims of its namespace are compared; whether it has to.
    pub(in crate::scheduling::scheduler) fn wait_for_comparison(
        &mut self,
        pod: &PodInfo,
        classes: &mut Classes,
    ) -> bool {
        let has_claims = !pod.footprint.resource_claims.is_empty() || pod.footprint.extended.is_some();
        let waits = has_claims && self.comparisons.is_under_way(&pod.key.namespace);
        if waits {
            self.await_comparison(&pod.key, classes);
        }
        waits
    }

    /// The pod waits until a comparison of its namespace's claims ends.
    pub(in crate::scheduling::scheduler) fn await_comparison(&mut self, pod: &PodKey, classes: &mut Classes) {
        self.take_out(pod, classes);
        self.set_progress(&pod.uid, PodProgress::Comparing);
        self.comparisons.wait(&pod.uid, &pod.namespace);
    }

    /// Waiting pods that the node would have now that so much is held of it are to be woken, in this turn or the next.
    pub(in crate::scheduling::scheduler) fn note_moved(&mut self, node: &NodeName, held: HeldChange) {
        if self.turn.pace != Pace::Standby {
            let known = self.moved.entry(node.clone()).or_insert(held);
            *known = (*known).min(held);
        }
    }

    /// Whether the pod stands among those that wait for the same as it does.
    pub(in crate::scheduling::scheduler) fn holds(&self, pod: &PodKey, classes: &Classes) -> bool {
        let set_aside = || self.order.has_set_aside(&pod.uid);
        match self.progress(&pod.uid) {
            PodProgress::Queued | PodProgress::BackingOff => self.order.contains(&pod.uid),
            PodProgress::Waiting(ask) => classes.holds(ask, &pod.uid) && set_aside(),
            PodProgress::OverQuota => self.over_quota.holds(pod) && set_aside(),
            PodProgress::Ungathered => set_aside(),
            PodProgress::Unlisted => self.unlisted.holds(&pod.uid),
            PodProgress::Comparing => self.comparisons.holds(&pod.uid),
            PodProgress::Idle | PodProgress::Prebinding(_) | PodProgress::InLine(_) => false,
        }
    }

    /// How many pods wait for something to change.
    pub(in crate::scheduling::scheduler) fn unschedulable(&self, classes: &Classes) -> usize {
        classes.waiting() + self.over_quota.len() + self.unlisted.len() + self.comparisons.len()
    }
}
