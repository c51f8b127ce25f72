//! Bringing ledger, queue and lines in line with what a pod shows.

use jiff::Timestamp;
use thin_vec::ThinVec;

use super::BindingCycle;
use crate::scheduling::{
    model::{
        name::Uid,
        pod::{Binding, Claim, Holding, PodInfo, Stage},
    },
    node_flow::NodeFlowInput,
    prebind::PrebindInput,
    scheduler::scheduling_cycle::{conditions::ConditionInput, scheduling_queue::PodProgress},
    world::ledger::{Charge, Commitment},
};

impl BindingCycle {
    /// What is to be done for a pod that was seen.
    pub(in crate::scheduling::scheduler) fn go_on_with(&mut self, uid: &Uid, changed: bool) {
        let uid = uid.clone();
        let Some(entry) = self.cycle.pods.get(&uid) else { return };
        let held = self.cycle.snapshot.ledger().get(&uid);
        let bound = held.is_some_and(|charge| charge.commitment == Commitment::Bound);
        let wants = entry.info.claim != Claim::None && !bound;
        match self.cycle.queue.progress(&uid).clone() {
            PodProgress::Idle if wants && changed => self.cycle.enqueue(&uid),
            PodProgress::Waiting(ask) if changed => {
                self.cycle.classes.leave(&ask, &uid);
                self.cycle.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.cycle.enqueue(&uid);
                }
            }
            PodProgress::OverQuota if changed => {
                self.cycle.queue.over_quota.leave(&entry.info.key);
                self.cycle.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.cycle.enqueue(&uid);
                }
            }
            PodProgress::Unlisted | PodProgress::Ungathered | PodProgress::Comparing if !wants || changed => {
                self.cycle.queue.set_progress(&uid, PodProgress::Idle);
                if wants {
                    self.cycle.enqueue(&uid);
                }
            }
            // Where a write for it is under way, its answer settles it.
            PodProgress::InLine(node) if !wants && !self.flows.serves(&node, &uid) => self.forget(&uid),
            PodProgress::Prebinding(_) if !wants || changed => {
                self.forget(&uid);
                if wants {
                    self.cycle.enqueue(&uid);
                }
            }
            PodProgress::Queued | PodProgress::BackingOff if !wants => {
                self.cycle.queue.order.remove(&uid);
                self.cycle.queue.set_progress(&uid, PodProgress::Idle);
            }
            _ => {}
        }
        if !wants && self.cycle.preempting.stop(&uid) {
            self.cycle.snapshot.end_nomination(&uid);
        }
        self.cycle.advance_conditions(ConditionInput::Freed(&uid));
    }

    /// Brings the ledger in line with what the pod shows.
    pub(in crate::scheduling::scheduler) fn see_holding(&mut self, pod: &PodInfo, now: Timestamp) {
        let uid = &pod.key.uid;
        let held = self.cycle.snapshot.ledger().get(uid).cloned();
        match &pod.holding {
            Some(holding) if pod.stage != Stage::Ended => self.confirm(pod, holding, held.as_ref(), now),
            _ => match held {
                // An assumed pod is not bound yet; the event is older than the Binding, or of something else.
                Some(held) if held.commitment == Commitment::Assumed && pod.stage != Stage::Ended => {}
                // The Binding was answered, and this event is older.
                Some(held)
                    if held.commitment == Commitment::Bound && matches!(pod.claim, Claim::Place(_)) => {}
                Some(held) => {
                    self.forget(uid);
                    self.release(uid);
                    self.flows.touch(&held.node);
                }
                None => {}
            },
        }
    }

    fn confirm(&mut self, pod: &PodInfo, holding: &Holding, held: Option<&Charge>, now: Timestamp) {
        let uid = &pod.key.uid;
        let bound = holding.binding == Binding::Bound;
        if bound {
            self.end_marks(uid);
        }
        let since =
            held.filter(|held| bound && held.commitment == Commitment::Bound && held.node == holding.node);
        let before = since.map_or(&[][..], |held| &held.allocations);
        let all_is_read = holding.allocations.iter().all(|one| one.unread.is_none());
        let or_known = || holding.allocations.iter().map(|one| one.clone().or_known(before)).collect();
        let charge = Charge {
            node: holding.node.clone(),
            pod: pod.key.clone(),
            // What a pod holds is kept once where it was read as it is.
            allocations: if all_is_read { holding.allocations.clone() } else { or_known() },
            init: holding.init,
            footprint: pod.footprint.clone(),
            steps: ThinVec::new(),
            importance: pod.importance.clone(),
            placer: pod.placer,
            commitment: if bound { Commitment::Bound } else { Commitment::Intended },
            stage: pod.stage,
            since: since.map_or(now, |held| held.since),
            tenure: holding.tenure.clone(),
        };
        self.advance(&holding.node, NodeFlowInput::Charged { pod, before: held, charge: &charge });
        if held.is_some_and(|held| bound && held.commitment == Commitment::Assumed) {
            self.cycle.measure_bound(uid, now);
        }
        let shrunk = held.is_some_and(|held| !held.holds_as(&charge));
        if let Some(held) = held.filter(|_| shrunk) {
            self.cycle.outbox.ended.push(held.clone(), now);
        }
        self.cycle.snapshot.charge(uid.clone(), charge);
        match self.cycle.queue.progress(uid).clone() {
            PodProgress::InLine(node) => {
                self.advance(&node, NodeFlowInput::Left(uid));
                self.cycle.queue.set_progress(uid, PodProgress::Idle);
            }
            PodProgress::Prebinding(_) => {
                // Another scheduler has placed it.
                self.advance_prebind(PrebindInput::GivenUp(uid));
                self.cycle.queue.set_progress(uid, PodProgress::Idle);
            }
            _ => {}
        }
        if let Some(held) = held.filter(|_| shrunk) {
            self.wake(&held.node.clone());
            self.cycle.wake_within_quota(&held.pod.namespace.clone());
            self.flows.touch(&held.node);
        }
        self.flows.touch(&holding.node);
    }

    /// The pod is bound: neither what was preempted for it nor a place that it has lost counts any more.
    pub(in crate::scheduling::scheduler) fn end_marks(&mut self, uid: &Uid) {
        self.cycle.preempting.end(uid);
        self.cycle.queue.order.end_behind(uid);
        self.prebinding.end_parked(uid);
    }
}
