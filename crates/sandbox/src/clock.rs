//! What time the API server writes into objects: a fixed base plus tokio's clock; it never reads the machine's clock.

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock that a paused runtime can hold still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    pub(super) fn starting_at(base: Timestamp) -> Self {
        Self { base, start: Instant::now() }
    }

    /// The present instant of the sandbox.
    pub(super) fn now(&self) -> Timestamp {
        self.base + self.start.elapsed()
    }
}

/// `metav1.Time`: RFC 3339 in whole seconds.
pub(super) fn seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).expect("the second of a valid time is valid").to_string()
}
