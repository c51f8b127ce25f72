//! Why preemption makes no room for a pod.

use jiff::Timestamp;

use crate::scheduling::world::quota::Exceeded;

/// Why preemption makes no room on any node, in kube-scheduler's words.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Hopeless {
    /// Nodes without a pod that may be preempted.
    pub without_victims: usize,
    /// Nodes that would not have the pod without such pods either.
    pub not_helpful: usize,
    /// Nodes of which it was not found out, since comparing claims with devices takes longer than the search for victims may.
    pub unfinished: usize,
    /// Nodes with pods of groups that go as a whole and have more pods than the search for victims may look through.
    pub too_large: usize,
}

impl Hopeless {
    /// Whether a node has pods that may be preempted.
    pub fn was_tried(&self) -> bool {
        self.not_helpful > 0 || self.unfinished > 0 || self.too_large > 0
    }
}

/// Why no pod is preempted for one that fits nowhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoRoom {
    /// That makes no room on any node.
    Hopeless(Hopeless),
    /// It would be beyond the quota of its namespace beside what is kept for the namespace's nominated pods.
    Quota(Exceeded),
    /// Pods were preempted for it, or for others of its namespace, that were not bound: it is tried again then.
    Paused(Timestamp),
}

impl NoRoom {
    /// Whether it was tried, and a node has pods that may be preempted.
    pub fn was_tried(&self) -> bool {
        matches!(self, Self::Hopeless(hopeless) if hopeless.was_tried())
    }

    /// Whether it is said to people: where no node has a pod that may be preempted, there is nothing to say.
    pub fn is_said(&self) -> bool {
        !matches!(self, Self::Hopeless(hopeless) if !hopeless.was_tried())
    }
}

impl From<Hopeless> for NoRoom {
    fn from(hopeless: Hopeless) -> Self {
        Self::Hopeless(hopeless)
    }
}

impl std::fmt::Display for NoRoom {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hopeless(hopeless) => hopeless.fmt(formatter),
            Self::Quota(exceeded) => {
                write!(formatter, "preemption: {exceeded}; used is with what is kept for nominated pods.")
            }
            Self::Paused(until) => write!(
                formatter,
                "preemption: none before {until}, since pods were preempted for this pod, or for others of its namespace, that was not bound \
                 afterwards."
            ),
        }
    }
}

impl std::fmt::Display for Hopeless {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { without_victims, not_helpful, unfinished, too_large } = *self;
        write!(
            formatter,
            "preemption: 0/{} nodes are available: ",
            without_victims + not_helpful + unfinished + too_large
        )?;
        let counted = [
            (without_victims, "No preemption victims found for incoming pod"),
            (not_helpful, "Preemption is not helpful for scheduling"),
            (unfinished, "Comparing claims with devices takes longer than a search for victims may"),
            (too_large, "Looking through groups of pods takes longer than a search for victims may"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<_> = counted.map(|(count, reason)| format!("{count} {reason}")).collect();
        write!(formatter, "{}.", counted.join(", "))
    }
}
