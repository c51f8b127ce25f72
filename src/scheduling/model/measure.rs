//! What can be counted of the scheduler's work: how often, how long, how many.
//!
//! Values only: it does not know where they are counted, and under which names.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// What came of deciding a pod once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Attempt {
    /// A node would have it.
    Scheduled,
    /// No node would.
    Unschedulable,
    /// It was decided, and could not be locked or bound.
    Failed,
}

/// What came of deciding a gang once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GangAttempt {
    /// Enough of its pods found room together.
    Scheduled,
    /// They did not.
    Unschedulable,
    /// It could not be bound as a whole in time.
    RolledBack,
}

/// One thing that was measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    /// A pod was decided, or its decision could not be carried out.
    Attempt(Attempt),
    /// So long after it had joined the line of its node, a pod had the node's lock.
    LockWait(SignedDuration),
    /// A lock that was taken is no longer that pod's after so long.
    LockHold(SignedDuration),
    /// Pods were tried that could be preempted, and so many must go; 0: preemption makes no room.
    Preemption(usize),
    /// The pods of a gang were decided together.
    Gang(GangAttempt),
    /// A pod that no node would have is decided again since it has waited for five minutes.
    Flushed,
    /// So long after it was first seen, a pod was bound.
    Bound(SignedDuration),
    /// Room that was kept for a pod was given up: the pod did not find its place in time.
    RoomGivenUp,
    /// So much work was counted in a turn of the loop, in steps.
    Steps(u64),
}

/// Why pods wait that are not being placed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Waiting {
    /// How many pods were refused for each plugin and reason; a pod counts once for each of its reasons.
    pub reasons: BTreeMap<(&'static str, String), usize>,
    /// When the oldest of these pods was created.
    pub oldest: BTreeMap<(&'static str, String), Timestamp>,
    /// Pods that can't be placed before they or the nodes are changed.
    pub unplaceable: usize,
}

/// How things stand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    /// Whether pods and nodes have been listed.
    pub synced: bool,
    /// Pods that wait to be decided.
    pub active: usize,
    /// Pods that wait out a failure.
    pub backing_off: usize,
    /// Pods that wait for a change or for lists.
    pub unschedulable: usize,
    /// Pods that stand in the lines of nodes or are being served.
    pub in_line: usize,
    /// Nodes on which room is kept for a pod that waits long.
    pub kept_rooms: usize,
    /// Nodes whose device plugin owes an answer for too long.
    pub silent_agents: usize,
    /// For how long the pod that has waited longest has stood at the head of a line without being served.
    pub longest_lock_wait: SignedDuration,
}
