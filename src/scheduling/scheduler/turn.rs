//! What is decided in one turn of the loop: every active pod, and where there is none, some pods whose backoff has not ended.
//!
//! v1.36 `pkg/scheduler/backend/queue/active_queue.go` (`PopFromBackoffQ`) takes from the backoff queue where no pod is active. A turn
//! here is one call of [`Scheduler::settle`]; between two of them the loop takes in what has happened.

use jiff::Timestamp;

use super::Scheduler;
use crate::scheduling::pod::Uid;

/// So many pods are taken before their backoff ends in one turn at most: one change may have woken any number of them.
const MOST_EARLY: usize = 32;

/// What has been decided in this turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    at: Timestamp,
    active: usize,
    early: usize,
}

impl Scheduler {
    pub(super) fn begin_turn(&mut self, now: Timestamp) {
        self.waiting.turn = Turn { at: now, active: 0, early: 0 };
    }

    /// The next pod to decide, those that the last decision has helped among them.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Uid> {
        self.wake_helped();
        self.waiting.queue.end_backoffs(now);
        if let Some(uid) = self.waiting.queue.pop() {
            self.waiting.turn.active += 1;
            return Some(uid);
        }
        if self.waiting.turn.active > 0 || self.waiting.turn.early >= MOST_EARLY {
            return None;
        }
        self.waiting.turn.early += 1;
        self.waiting.queue.pop_early()
    }

    /// When pods are taken before their backoff ends: in the next turn, which comes at once where nothing else happens.
    pub(super) fn early_deadline(&self) -> Option<Timestamp> {
        self.waiting.queue.has_early().then_some(self.waiting.turn.at)
    }
}
