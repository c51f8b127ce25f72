//! What is decided in one turn of the loop: active pods, and where there is none, some pods whose backoff has not ended.
//!
//! v1.36 `pkg/scheduler/backend/queue/active_queue.go` (`PopFromBackoffQ`) takes from the backoff queue where no pod is active. A turn
//! here is one call of [`Scheduler::settle`](crate::scheduling::Scheduler::settle); between two of them the loop takes in what has happened. A
//! turn ends after so many steps, and pods of a namespace that has used its share are passed over while pods of others are on their way, so no
//! pods of one namespace hold up those of another.

use std::sync::Arc;

use jiff::Timestamp;

use super::{PodProgress, SchedulingQueue, turned_away::TurnedAway};
use crate::scheduling::{
    decide::class::HeldChange,
    model::{
        name::{NodeName, Uid},
        steps::PER_MILLISECOND,
    },
    scheduler::scheduling_cycle::pods::Pods,
};

/// So many pods are taken before their backoff ends in one turn at most: one change may have woken any number of them.
const MOST_EARLY: usize = 32;

/// So many pods are flushed in one turn at most.
const MOST_FLUSHED: usize = 64;

/// No further pod is decided in a turn that has taken so many steps: about 15 ms.
pub(in crate::scheduling::scheduler) const MOST_STEPS: u64 = 15 * PER_MILLISECOND;

/// Which pods a turn decides.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Pace {
    /// Those for which the turn has time, of namespaces that have not used their share before others.
    #[default]
    Shared,
    /// One pod, or one gang, in the order of the queue, once all that was decided before is bound; none before its backoff has ended. For a
    /// scheduler that runs without a cluster.
    OneByOne,
    /// None.
    Standby,
}

/// What has been decided in this turn.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Turn {
    /// Which pods each turn decides.
    pub(super) pace: Pace,
    at: Timestamp,
    active: usize,
    early: usize,
    steps: u64,
    /// How many of the steps were for waking pods.
    woken: u64,
    /// Pods that nodes have turned away.
    pub(in crate::scheduling::scheduler) turned_away: TurnedAway,
    /// Whether pods could be decided at all.
    began: bool,
    /// Whose pods are on their way, once that was asked.
    on_their_way: Option<OnTheirWay>,
    /// What the next deadline is, where pods are active and none was decided for what their namespaces have used.
    passed_over_until: Option<Timestamp>,
}

impl Turn {
    /// The first turn of a scheduler that decides pods at this pace.
    pub(super) fn at(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }
}

/// The namespaces of pods that are decided and not bound yet.
#[derive(Clone, Debug, Eq, PartialEq)]
enum OnTheirWay {
    None,
    Of(Arc<str>),
    OfSeveral,
}

impl OnTheirWay {
    /// Of the pods with these namespaces.
    fn of<'a>(namespaces: impl Iterator<Item = &'a Arc<str>>) -> Self {
        let mut found = Self::None;
        for namespace in namespaces {
            if found.has_other_than(namespace) {
                return Self::OfSeveral;
            }
            found = Self::Of(namespace.clone());
        }
        found
    }

    /// Whether there is a pod of another namespace.
    fn has_other_than(&self, namespace: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(one) => **one != *namespace,
            Self::OfSeveral => true,
        }
    }
}

impl SchedulingQueue {
    /// Which pods each turn decides.
    pub(in crate::scheduling::scheduler) fn pace(&self) -> Pace {
        self.turn.pace
    }

    /// A turn begins.
    pub(in crate::scheduling::scheduler) fn begin_turn(&mut self, now: Timestamp) {
        self.turn = Turn { at: now, ..Turn::at(self.turn.pace) };
        self.shares.forget_empty(now);
    }

    /// The next pod to decide; `None`: none in this turn. `decided` are the pods that are decided and may not be bound yet.
    pub(in crate::scheduling::scheduler) fn pop<'a>(
        &mut self,
        now: Timestamp,
        pods: &Pods,
        decided: impl Iterator<Item = &'a Uid>,
    ) -> Option<Uid> {
        self.turn.began = true;
        self.order.end_backoffs(now);
        if !self.has_room() {
            return None;
        }
        if self.turn.pace == Pace::OneByOne {
            return self.next_of_all(decided);
        }
        if !self.order.is_empty() {
            let next = self.next_active(now, pods, decided);
            self.turn.active += usize::from(next.is_some());
            return next;
        }
        if self.turn.active > 0 || self.turn.early >= MOST_EARLY {
            return None;
        }
        self.turn.early += 1;
        let Self { order, shares, turn, .. } = self;
        let early = order.pop_early(|namespace| shares.is_used_up(namespace, now));
        if early.is_none() && order.has_early() {
            turn.passed_over_until = shares.next(order.early_namespaces());
        }
        early
    }

    /// The first pod of the queue, unless this turn had one or another is on its way.
    fn next_of_all<'a>(&mut self, mut decided: impl Iterator<Item = &'a Uid>) -> Option<Uid> {
        if self.turn.active > 0 || decided.any(|uid| self.is_on_its_way(uid)) {
            return None;
        }
        let next = self.order.pop(|_| false);
        self.turn.active += usize::from(next.is_some());
        next
    }

    /// Whether the pod is decided and not bound yet.
    pub(in crate::scheduling::scheduler) fn is_on_its_way(&self, pod: &Uid) -> bool {
        matches!(self.progress(pod), PodProgress::InLine(_) | PodProgress::Prebinding(_))
    }

    /// The next active pod, of a namespace that has not used its share if there is one. A namespace that has, goes on where no pod of another is
    /// on its way.
    fn next_active<'a>(
        &mut self,
        now: Timestamp,
        pods: &Pods,
        decided: impl Iterator<Item = &'a Uid>,
    ) -> Option<Uid> {
        let Self { order, shares, .. } = self;
        let within = order.pop(|namespace| shares.is_used_up(namespace, now));
        if within.is_some() {
            return within;
        }
        let on_their_way = self.turn.on_their_way.take().unwrap_or_else(|| {
            let entries = decided.filter(|uid| self.is_on_its_way(uid)).filter_map(|uid| pods.get(uid));
            OnTheirWay::of(entries.map(|entry| &entry.info.key.namespace))
        });
        let Self { order, shares, turn, .. } = self;
        let next = order.pop(|namespace| on_their_way.has_other_than(namespace));
        turn.on_their_way = Some(on_their_way);
        if next.is_none() {
            turn.passed_over_until = shares.next(order.namespaces());
        }
        next
    }

    /// A decision for a pod of the namespace took so many steps.
    pub(in crate::scheduling::scheduler) fn charge(
        &mut self,
        namespace: &Arc<str>,
        steps: u64,
        now: Timestamp,
    ) {
        self.charge_turn(steps);
        self.shares.charge(namespace, steps, now);
    }

    /// What was decided took so many steps of the turn.
    pub(in crate::scheduling::scheduler) fn charge_turn(&mut self, steps: u64) {
        self.turn.steps = self.turn.steps.saturating_add(steps);
    }

    /// How many steps the turn has taken.
    pub(in crate::scheduling::scheduler) fn steps(&self) -> u64 {
        self.turn.steps
    }

    /// Whether the turn has room for another decision.
    pub(in crate::scheduling::scheduler) fn has_room(&self) -> bool {
        self.turn.steps < MOST_STEPS
    }

    /// The next node that has changed and for which waiting pods are to be woken; `None`: none in this turn, of which half may go into that.
    pub(in crate::scheduling::scheduler) fn pop_moved(&mut self) -> Option<(NodeName, HeldChange)> {
        if self.turn.woken < MOST_STEPS / 2 { self.moved.pop_first() } else { None }
    }

    /// To wake pods took so many steps of the turn.
    pub(in crate::scheduling::scheduler) fn charge_woken(&mut self, steps: u64) {
        self.charge_turn(steps);
        self.turn.woken = self.turn.woken.saturating_add(steps);
    }

    /// The pods that have waited for so long that they are decided again whatever has happened: kube-scheduler's
    /// `flushUnschedulablePodsLeftover`. What is left of them at the end of a turn is next turn's.
    pub(in crate::scheduling::scheduler) fn overdue(&self, now: Timestamp) -> Vec<Uid> {
        self.order.overdue(now, MOST_FLUSHED)
    }

    /// When pods are decided although nothing has happened.
    pub(in crate::scheduling::scheduler) fn deadline(&self) -> Option<Timestamp> {
        let deadlines = [self.order.next_deadline(), self.next_turn(), self.unlisted.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// When pods are decided next: in the next turn, which comes at once where nothing else happens, or when a namespace is no longer passed over.
    fn next_turn(&self) -> Option<Timestamp> {
        let Self { order, turn, moved, .. } = self;
        // A turn at this pace that decides none waits for what becomes of a pod that is on its way.
        let is_held_up = turn.pace == Pace::OneByOne && turn.active == 0;
        let waits = turn.began && !is_held_up && (!order.is_empty() || order.has_early());
        let next = waits.then(|| turn.passed_over_until.unwrap_or(turn.at));
        next.into_iter().chain((!moved.is_empty()).then_some(turn.at)).min()
    }

    /// When the turn began.
    pub(in crate::scheduling::scheduler) fn turn_began(&self) -> Timestamp {
        self.turn.at
    }
}
