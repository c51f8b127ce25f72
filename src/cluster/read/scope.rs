//! How much of pods a reader reads, and whose pods it reads as ones that want a place.

/// Whether nodes are divided by time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Division {
    /// They are: what evictions read of pods is kept.
    On,
    /// They are not.
    Off,
}

/// What a waiting pod is read for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadPurpose {
    /// All that decides where it may go.
    Everything,
    /// Its cards: kube-scheduler decides the rest.
    Cards,
}

/// Whose pods are read as pods that want a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClaimingPods {
    /// Those that name this scheduler.
    Own,
    /// Those that request a share, whichever scheduler they name.
    Every,
}
