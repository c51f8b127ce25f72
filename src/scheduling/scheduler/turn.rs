//! What is decided in one turn of the loop: active pods, and where there is none, some pods whose backoff has not ended.
//!
//! v1.36 `pkg/scheduler/backend/queue/active_queue.go` (`PopFromBackoffQ`) takes from the backoff queue where no pod is active. A turn
//! here is one call of [`Scheduler::settle`]; between two of them the loop takes in what has happened. A turn ends after so many steps,
//! and pods of a namespace that has used its share are passed over while pods of others are on their way, so no pods of one
//! namespace hold up those of another.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Course, PodProgress, Scheduler};
use crate::scheduling::model::{measure::Measure, name::Uid, steps::PER_MILLISECOND};

/// So many pods are taken before their backoff ends in one turn at most: one change may have woken any number of them.
const MOST_EARLY: usize = 32;

/// No further pod is decided in a turn that has taken so many steps: about 15 ms.
pub(super) const MOST_STEPS: u64 = 15 * PER_MILLISECOND;

/// What has been decided in this turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    at: Timestamp,
    active: usize,
    early: usize,
    steps: u64,
    /// How many of the steps were for waking pods.
    woken: u64,
    /// Whether pods could be decided at all.
    began: bool,
    /// Whose pods are on their way, once that was asked.
    on_their_way: Option<OnTheirWay>,
    /// What the next deadline is, where pods are active and none was decided for what their namespaces have used.
    passed_over_until: Option<Timestamp>,
}

/// The namespaces of pods that are decided and not bound yet.
#[derive(Clone, Debug, Eq, PartialEq)]
enum OnTheirWay {
    None,
    Of(Arc<str>),
    OfSeveral,
}

impl OnTheirWay {
    /// Whether there is a pod of another namespace.
    fn has_other_than(&self, namespace: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(one) => **one != *namespace,
            Self::OfSeveral => true,
        }
    }
}

impl Scheduler {
    pub(super) fn begin_turn(&mut self, now: Timestamp) {
        self.waiting.turn = Turn { at: now, ..Turn::default() };
        self.waiting.shares.forget_empty(now);
    }

    /// The next pod to decide, those that the last decision has helped among them; `None`: none in this turn.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Uid> {
        self.waiting.turn.began = true;
        self.wake_helped();
        self.wake_moved();
        self.waiting.queue.end_backoffs(now);
        if !self.has_room() {
            return None;
        }
        if !self.waiting.queue.is_empty() {
            let next = self.next_active(now);
            self.waiting.turn.active += usize::from(next.is_some());
            return next;
        }
        if self.waiting.turn.active > 0 || self.waiting.turn.early >= MOST_EARLY {
            return None;
        }
        self.waiting.turn.early += 1;
        let waiting = &mut self.waiting;
        let (queue, shares, turn) = (&mut waiting.queue, &mut waiting.shares, &mut waiting.turn);
        let early = queue.pop_early(|namespace| shares.is_used_up(namespace, now));
        if early.is_none() && queue.has_early() {
            turn.passed_over_until = shares.next(queue.early_namespaces());
        }
        early
    }

    /// The next active pod, of a namespace that has not used its share if there is one. A namespace that has, goes on where no pod of another is
    /// on its way.
    fn next_active(&mut self, now: Timestamp) -> Option<Uid> {
        let waiting = &mut self.waiting;
        let (queue, shares) = (&mut waiting.queue, &mut waiting.shares);
        let within = queue.pop(|namespace| shares.is_used_up(namespace, now));
        if within.is_some() {
            return within;
        }
        let on_their_way = self.waiting.turn.on_their_way.take().unwrap_or_else(|| self.on_their_way());
        let waiting = &mut self.waiting;
        let (queue, shares, turn) = (&mut waiting.queue, &mut waiting.shares, &mut waiting.turn);
        let next = queue.pop(|namespace| on_their_way.has_other_than(namespace));
        turn.on_their_way = Some(on_their_way);
        if next.is_none() {
            turn.passed_over_until = shares.next(queue.namespaces());
        }
        next
    }

    fn on_their_way(&self) -> OnTheirWay {
        let is_on_its_way =
            |progress: &PodProgress| matches!(progress, PodProgress::InLine(_) | PodProgress::Prebinding(_));
        let entries = self.flows.pods().chain(self.prebinding.pods());
        let mut found = OnTheirWay::None;
        for entry in
            entries.filter_map(|uid| self.pods.get(uid)).filter(|entry| is_on_its_way(&entry.progress))
        {
            let namespace = &entry.info.key.namespace;
            if found.has_other_than(namespace) {
                return OnTheirWay::OfSeveral;
            }
            found = OnTheirWay::Of(namespace.clone());
        }
        found
    }

    /// A decision for a pod of the namespace is over: what it took is charged to the turn and to the namespace.
    pub(super) fn charge_steps(&mut self, namespace: &Arc<str>, now: Timestamp) {
        let steps = self.charge_turn();
        self.waiting.shares.charge(namespace, steps, now);
    }

    /// Charges to the turn what was decided since this was last called, and returns how many steps that took.
    pub(super) fn charge_turn(&mut self) -> u64 {
        let steps = self.classes.take_steps();
        self.waiting.turn.steps = self.waiting.turn.steps.saturating_add(steps);
        steps
    }

    /// The turn is over: all that it took is counted.
    pub(super) fn end_turn(&mut self) {
        self.charge_turn();
        let steps = self.waiting.turn.steps;
        // Of one that stands by nobody asks what it measures.
        let counts = steps > 0 && self.duty.course != Course::Standby;
        self.outbox.measures.extend(counts.then_some(Measure::Steps(steps)));
    }

    /// Wakes the pods that changed nodes would have, as many as half of the turn has room for: the rest is woken in the next one.
    pub(super) fn wake_moved(&mut self) {
        while self.waiting.turn.woken < MOST_STEPS / 2
            && let Some((node, held)) = self.waiting.moved.pop_first()
        {
            self.wake_waiting(&node, held);
            let steps = self.charge_turn();
            self.waiting.turn.woken = self.waiting.turn.woken.saturating_add(steps);
        }
    }

    /// Whether the turn has room for another decision.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.turn.steps < MOST_STEPS
    }

    /// When pods are decided although nothing has happened: in the next turn, which comes at once where nothing else happens, or when a namespace
    /// is no longer passed over.
    pub(super) fn turn_deadline(&self) -> Option<Timestamp> {
        let waiting = &self.waiting;
        let (queue, turn, moved) = (&waiting.queue, &waiting.turn, &waiting.moved);
        let unfinished = !moved.is_empty() || self.has_audits();
        let waits = turn.began && (!queue.is_empty() || queue.has_early());
        let next = waits.then(|| turn.passed_over_until.unwrap_or(turn.at));
        next.into_iter().chain(unfinished.then_some(turn.at)).min()
    }
}
