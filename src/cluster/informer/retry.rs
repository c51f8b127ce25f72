//! The pauses before a broken watch is opened again.
//!
//! They are not random, so that a run can be repeated; the few replicas need not be spread.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);
/// The longest pause before asking again for a kind that the API server does not serve.
const LONGEST_OF_UNSERVED: Duration = Duration::from_mins(1);

/// After this time without a failure, the pauses start again with the shortest one.
const CALM: Duration = Duration::from_mins(1);

/// The pauses of one watch: a quarter of a second, doubled each time up to ten.
pub fn pauses() -> Pauses {
    Pauses { next: FIRST, longest: LONGEST, failed: None }
}

/// The pauses of a watch of what may not be served at all: doubled up to a minute.
pub fn pauses_of_unserved() -> Pauses {
    Pauses { longest: LONGEST_OF_UNSERVED, ..pauses() }
}

/// Pauses that double.
#[derive(Clone, Debug)]
pub struct Pauses {
    next: Duration,
    longest: Duration,
    /// The time and the pause of the last failure.
    failed: Option<Instant>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.failed.is_some_and(|failed| now > failed + CALM) {
            self.next = FIRST;
        }
        let pause = self.next;
        self.failed = Some(now + pause);
        self.next = (pause * 2).min(self.longest);
        Some(pause)
    }
}

impl Backoff for Pauses {
    /// That something was received says nothing: a watch says that its list begins before the list fails.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_doubles_until_there_is_calm() {
        let mut pauses = pauses();
        for expected in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            let pause = pauses.next().unwrap();
            assert_eq!(pause.as_millis(), expected);
            advance(pause).await;
            // The list begins anew, and fails anew.
            pauses.reset();
        }
        advance(CALM + FIRST).await;
        assert_eq!(pauses.next(), Some(FIRST));
    }
}
