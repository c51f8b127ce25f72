//! The clock, whose time the loop passes to the pure layers.
#![expect(clippy::disallowed_methods, reason = "the edge where the time comes in")]

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep_until};

/// The source of the time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The system clock.
    System,
    /// A given start, plus the time of tokio's clock since then, which tests can pause.
    Virtual {
        /// The time at the start.
        start: Timestamp,
        /// Tokio's time at the start.
        began: Instant,
    },
}

impl Clock {
    /// A clock that starts at this time and runs with tokio's clock.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::Virtual { start, began: Instant::now() }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Virtual { start, began } => {
                let run = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(run).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Tokio's time at `at`; a past time becomes the current one.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + std::time::Duration::try_from(ahead).unwrap_or_default()
    }
}

/// Returns at this time; `None`: never.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
