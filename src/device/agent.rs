//! What a node's agent has made of an assignment, and may make of one whose pod is dead.

/// What the node's agent has made of a bound pod.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    /// Nothing yet.
    Awaited,
    /// What the node's lock tells, and nothing on the pod: the agent frees it once every container has its cards.
    ByLock,
    /// Every container has its cards.
    Succeeded,
    /// The agent could not do what the assignment says.
    Failed,
    /// The assignment was withdrawn, since the pod died first: the agent serves no pod with it.
    Withdrawn,
}

/// What an assignment is to the node's agent once its pod is dead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remains {
    /// Nothing: the agent passes it over.
    Harmless,
    /// One that still waits: the agent may serve the next pod with it.
    Takeable,
}
