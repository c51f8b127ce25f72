//! The wait for the lists of claims after a start: a card could be given that a claim holds.

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;

/// For so long pods wait for the lists of claims after a start.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// How long pods wait for the lists of claims after they were listed themselves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum ClaimLists {
    /// The pods are still to be listed.
    #[default]
    Ahead,
    /// Until then.
    AwaitedUntil(Timestamp),
    /// No longer.
    Overdue,
}

impl Scheduler {
    /// Whether it is known what claims hold, as far as pods use any. Where the lists do not come, as without the permission, pods do not
    /// wait for long; the cards of nodes with pods that use claims are not given then (`snapshot/claims`).
    pub(super) fn knows_claims(&self) -> bool {
        !self.snapshot.awaits_claims()
            || self.waiting.claim_lists == ClaimLists::Overdue
            || self.pods.all().all(|entry| entry.info.footprint.resource_claims.is_empty())
    }

    /// The pods are listed: for some time from now on they wait for claims.
    pub(super) fn await_claim_lists(&mut self, now: Timestamp) {
        if self.waiting.claim_lists == ClaimLists::Ahead {
            let until = now.checked_add(PATIENCE).unwrap_or(now);
            self.waiting.claim_lists = ClaimLists::AwaitedUntil(until);
        }
    }

    /// When pods are decided although claims are not listed.
    pub(super) fn claim_lists_deadline(&self) -> Option<Timestamp> {
        match self.waiting.claim_lists {
            ClaimLists::AwaitedUntil(at) if !self.knows_claims() => Some(at),
            ClaimLists::Ahead | ClaimLists::AwaitedUntil(_) | ClaimLists::Overdue => None,
        }
    }

    /// Ends the wait for claims when its time is over.
    pub(super) fn watch_claim_lists(&mut self, now: Timestamp) {
        if matches!(self.waiting.claim_lists, ClaimLists::AwaitedUntil(at) if at <= now) {
            self.waiting.claim_lists = ClaimLists::Overdue;
        }
    }
}
