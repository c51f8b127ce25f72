//! Whether another scheduler may take the locks of nodes. While none may, a lock is left out whose dialect allows that
//! ([`LockNeed::WhereContested`](crate::device::LockNeed)).
//!
//! What is not known counts as possible: before anything was reported, once the last report is too old, and for as long after a lock of
//! another scheduler was seen as such a lock is respected. It must not know how schedulers are recognised.

use jiff::Timestamp;

use crate::scheduling::model::other_schedulers::OtherSchedulers;

/// Whether another scheduler may take a lock now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum LockContest {
    /// One may.
    Possible,
    /// None does.
    Excluded,
}

/// What is known of other schedulers that take locks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContestReport {
    /// What was reported last.
    others: OtherSchedulers,
    /// Until then the lock of another scheduler counts that was seen on a node.
    foreign_until: Option<Timestamp>,
    /// Whether a contest was possible when that was last asked.
    was_possible: bool,
}

impl ContestReport {
    /// Takes in what was reported of other schedulers.
    pub(super) fn report(&mut self, others: OtherSchedulers) {
        self.others = others;
    }

    /// The lock of another scheduler was seen on a node, and counts until then.
    pub(super) fn see_foreign_lock(&mut self, until: Timestamp) {
        self.foreign_until = self.foreign_until.max(Some(until));
    }

    /// Whether another scheduler may take a lock.
    pub(super) fn at(&self, now: Timestamp) -> LockContest {
        let none = matches!(self.others, OtherSchedulers::NoneUntil(until) if until > now);
        let foreign = self.foreign_until.is_some_and(|until| until > now);
        if none && !foreign { LockContest::Excluded } else { LockContest::Possible }
    }

    /// Whether a contest has become possible since this was last asked.
    pub(super) fn opens(&mut self, now: Timestamp) -> bool {
        let possible = self.at(now) == LockContest::Possible;
        std::mem::replace(&mut self.was_possible, possible) != possible && possible
    }

    /// When a contest becomes possible although nothing has happened.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self.others {
            OtherSchedulers::NoneUntil(until) if !self.was_possible => Some(until),
            _ => None,
        }
    }
}
