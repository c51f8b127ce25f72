//! The locks of a node, and which of them its devices need.

use jiff::{SignedDuration, Timestamp};

use crate::device::{Lock, LockName, LockNeed, ProfileName};

/// What a lock that is taken here says of whose it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signature {
    /// Its pod.
    Pod,
    /// Since when it is held, and nothing else.
    Time,
}

/// A lock of a node and what stands under it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeLock {
    /// Which lock.
    pub name: LockName,
    /// Who holds it.
    pub state: Lock,
    /// What it says when it is taken here.
    pub signature: Signature,
    /// After this time a holder that gives no sign may be taken over.
    pub expiry: SignedDuration,
    /// When a pod needs it.
    pub need: LockNeed,
}

impl NodeLock {
    /// When a holder that gives no sign may be taken over; `None`: there is no holder.
    pub fn expires(&self) -> Option<Timestamp> {
        match self.state {
            Lock::Held { since, .. } => since.checked_add(self.expiry).ok(),
            Lock::Free | Lock::Malformed { .. } => None,
        }
    }

    /// Whether a holder that gives no sign may be taken over by now. A lock that is dated further ahead than its time says nothing: no
    /// clock is so wrong.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let latest = now.checked_add(self.expiry).ok();
        let ahead =
            matches!(self.state, Lock::Held { since, .. } if latest.is_some_and(|latest| since > latest));
        ahead || self.expires().is_some_and(|at| at <= now)
    }
}

/// The locks that pods of a node need.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequiredLocks {
    /// Those of the dialects that need one.
    pub needed: Vec<NodeLock>,
    /// Those of which each is needed only where the node's devices are of the vendor whose device plugin needs it.
    pub of_vendors: Vec<NodeLock>,
}

impl RequiredLocks {
    /// The lock of this dialect; `None`: it needs none.
    pub fn of(&self, profile: &ProfileName) -> Option<&NodeLock> {
        self.needed.iter().find(|lock| lock.name.profile == *profile)
    }

    /// Takes in that the devices of this dialect are of the vendor whose device plugin takes the lock of this key.
    pub(super) fn require(&mut self, profile: &ProfileName, key: &str) {
        let required = |lock: &&NodeLock| lock.name.profile == *profile && *lock.name.key == *key;
        self.needed.extend(self.of_vendors.iter().filter(required).cloned());
    }

    /// Takes in that no device of this dialect needs the lock of a vendor.
    pub(super) fn drop_vendors(&mut self, profile: &ProfileName) {
        let Self { needed, of_vendors } = self;
        needed.retain(|lock| {
            !of_vendors.iter().any(|own| own.name == lock.name) || lock.name.profile != *profile
        });
    }
}
