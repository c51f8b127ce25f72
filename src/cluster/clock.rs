//! The present, for the loop to hand down.
#![expect(clippy::disallowed_methods, reason = "the edge where the time comes in")]

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where the time comes from.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A given start and what tokio's clock, which tests can pause, has run since.
    Virtual {
        /// The time at the start.
        start: Timestamp,
        /// Tokio's time at the start.
        began: Instant,
    },
}

impl Clock {
    /// A clock that starts at this time and runs with tokio's.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::Virtual { start, began: Instant::now() }
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Virtual { start, began } => {
                let run = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(run).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Tokio's time at that moment; a moment that has passed is now.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + std::time::Duration::try_from(ahead).unwrap_or_default()
    }
}
