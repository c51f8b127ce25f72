//! Whether the loop of the binder goes on: a process whose loop stands still is restarted, and must not keep the lead.
//!
//! Each turn of the loop says when it begins and ends. A loop that waits for an event does not stand still.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A turn that takes this long stands still: all that a turn may do is bounded to a fraction of it.
pub const LONGEST_TURN: Duration = Duration::from_secs(5);

/// When the turn under way began; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<Instant>>>);

/// A turn under way, which ends when it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when it is dropped"]
pub struct PulseTurn(Pulse);

impl Pulse {
    /// A turn begins.
    pub fn begin(&self) -> PulseTurn {
        self.set(Some(Instant::now()));
        PulseTurn(self.clone())
    }

    /// Whether the turn under way has taken too long.
    pub fn has_stopped(&self) -> bool {
        let began = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        began.is_some_and(|began| began.elapsed() >= LONGEST_TURN)
    }

    fn set(&self, began: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }
}

impl Drop for PulseTurn {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_takes_too_long_has_stopped_the_loop_until_it_ends() {
        let pulse = Pulse::default();
        assert!(!pulse.has_stopped(), "no turn is under way");
        let turn = pulse.begin();
        tokio::time::advance(Duration::from_millis(4_999)).await;
        assert!(!pulse.has_stopped());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(pulse.clone().has_stopped());
        drop(turn);
        assert!(!pulse.has_stopped());
        drop(pulse.begin());
        tokio::time::advance(LONGEST_TURN).await;
        assert!(!pulse.has_stopped(), "the loop waits for an event");
    }
}
