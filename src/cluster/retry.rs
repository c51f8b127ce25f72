//! How long a watch that broke waits before it is opened again.
//!
//! Without chance, so that a run can be repeated: the clients of this watch are a few replicas, which need not be spread.

use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// After this time without a failure the pauses begin anew. That something was received does not do it: a list begins before it fails.
const CALM: Duration = Duration::from_mins(1);

/// The pauses of one watch.
pub fn pauses() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses::default(), CALM)
}

/// A quarter of a second, doubled each time up to ten.
#[derive(Clone, Debug)]
pub struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_until_something_is_received() {
        let mut pauses = Pauses::default();
        let millis: Vec<_> = pauses.by_ref().take(7).map(|pause| pause.as_millis()).collect();
        assert_eq!(millis, [250, 500, 1000, 2000, 4000, 8000, 10_000]);
        pauses.reset();
        assert_eq!(pauses.next(), Some(FIRST));
    }
}
