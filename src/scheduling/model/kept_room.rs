//! Room that is kept on a node for a pod that waits long: for how long, and what the pod's status says of it.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::name::NodeName;

/// From when room is kept for pods that fit nowhere, and for how long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoomTerms {
    /// So long after its creation, or after its last room was given up, room is kept for a pod.
    pub after: SignedDuration,
    /// So long it is kept at most. A node where nothing has ended for that time is not kept.
    pub length: SignedDuration,
}

impl RoomTerms {
    /// When room that is kept since then is given up.
    pub fn until(self, since: Timestamp) -> Timestamp {
        since.checked_add(self.length).unwrap_or(Timestamp::MAX)
    }

    /// When room may be kept for a pod that waits since then.
    pub fn from(self, waits_since: Timestamp) -> Timestamp {
        waits_since.checked_add(self.after).unwrap_or(Timestamp::MAX)
    }
}

/// What became of the room of a pod.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RoomCourse {
    /// It is kept.
    Kept,
    /// It was kept for as long as any room is, and the pod did not find its place in that time.
    GivenUp,
    /// The node is gone, can't have the pod any more, or is needed for a pod of higher priority.
    Lost,
}

/// What a pod's status says of its room: its condition `berth.dev/RoomKept`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RoomStatus {
    /// What became of it.
    pub course: RoomCourse,
    /// Since when that is so, in whole seconds.
    pub since: Timestamp,
}

impl RoomStatus {
    /// From now on, which conditions state in whole seconds.
    pub fn at(course: RoomCourse, now: Timestamp) -> Self {
        let since = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Self { course, since }
    }
}

/// Room that is kept for a pod, as people are told of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeptRoom {
    /// On which node.
    pub node: NodeName,
    /// Since when.
    pub since: Timestamp,
    /// Until when, unless the pod finds its place before.
    pub until: Timestamp,
}

impl KeptRoom {
    /// What the pod's owner is told where messages name no object of others: all but the node.
    pub fn own_words(&self) -> String {
        let Self { since, until, .. } = self;
        format!("room is kept for the pod since {since}, until {until} at the latest")
    }
}

impl fmt::Display for KeptRoom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, since, until } = self;
        write!(
            formatter,
            "room is kept for the pod on node {node} since {since}, until {until} at the latest"
        )
    }
}
