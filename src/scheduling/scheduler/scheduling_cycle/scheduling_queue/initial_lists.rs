//! The wait for lists after a start: of PodGroups, since a pod that is decided earlier could take the room that a gang of which some pods are
//! bound needs, and of claims, since a card could be given that a claim holds.
//!
//! Where a list does not come, as without the permission, pods do not wait for long.

use jiff::{SignedDuration, Timestamp};

/// For so long pods wait for lists after they were listed themselves.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// How long pods wait for lists after they were listed themselves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling::scheduler) enum InitialLists {
    /// The pods are still to be listed.
    #[default]
    Ahead,
    /// Until then.
    AwaitedUntil(Timestamp),
    /// No longer.
    Overdue,
}

impl InitialLists {
    /// The pods are listed: for some time from now on they wait for other lists.
    pub(in crate::scheduling::scheduler) fn begin(&mut self, now: Timestamp) {
        if *self == Self::Ahead {
            *self = Self::AwaitedUntil(now.checked_add(PATIENCE).unwrap_or(now));
        }
    }

    /// Ends the wait when its time is over.
    pub(in crate::scheduling::scheduler) fn watch(&mut self, now: Timestamp) {
        if matches!(self, Self::AwaitedUntil(at) if *at <= now) {
            *self = Self::Overdue;
        }
    }

    /// Whether pods are decided whatever is missing.
    pub(in crate::scheduling::scheduler) fn is_overdue(self) -> bool {
        self == Self::Overdue
    }

    /// When pods are decided although lists are missing.
    pub(in crate::scheduling::scheduler) fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::AwaitedUntil(at) => Some(at),
            Self::Ahead | Self::Overdue => None,
        }
    }
}
