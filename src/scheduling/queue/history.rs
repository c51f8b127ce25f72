//! What came of a pod's attempts to find a place: the last outcomes, those alike as one, as Events are counted.

use jiff::Timestamp;

/// So many outcomes of a pod are kept, the latest ones.
pub const MOST_OUTCOMES: usize = 10;

/// Attempts of a pod that failed alike.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptOutcome<R> {
    /// Why the last of them failed.
    pub reason: R,
    /// When the first of them was.
    pub first: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
    /// How many there were.
    pub count: u32,
}

/// The outcomes of a pod's attempts, by the last attempt of each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptHistory<R>(Vec<AttemptOutcome<R>>);

impl<R> Default for AttemptHistory<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: Clone + PartialEq> AttemptHistory<R> {
    /// Takes in that an attempt has failed. Nothing is allocated where it failed as one before.
    pub fn note(&mut self, reason: &R, now: Timestamp, is_alike: impl Fn(&R, &R) -> bool) {
        let Self(outcomes) = self;
        if let Some(at) = outcomes.iter().rposition(|outcome| is_alike(&outcome.reason, reason)) {
            outcomes[at..].rotate_left(1);
            if let Some(outcome) = outcomes.last_mut() {
                outcome.last = now;
                outcome.count = outcome.count.saturating_add(1);
                if outcome.reason != *reason {
                    outcome.reason = reason.clone();
                }
            }
            return;
        }
        if outcomes.len() == MOST_OUTCOMES {
            outcomes.remove(0);
        }
        // Most pods have one outcome only, and many may wait.
        outcomes.reserve_exact(1);
        outcomes.push(AttemptOutcome { reason: reason.clone(), first: now, last: now, count: 1 });
    }

    /// Forgets the outcome that was seen longest ago, unless it is the only one.
    pub fn forget_earliest(&mut self) {
        let Self(outcomes) = self;
        if outcomes.len() > 1 {
            outcomes.remove(0);
            outcomes.shrink_to_fit();
        }
    }

    /// The outcomes, the latest last.
    pub fn outcomes(&self) -> &[AttemptOutcome<R>] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reason and an amount in it.
    type Reason = (u32, u32);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn note(history: &mut AttemptHistory<Reason>, reason: Reason, second: i64) {
        history.note(&reason, at(second), |one, other| one.0 == other.0);
    }

    fn told(history: &AttemptHistory<Reason>) -> Vec<(Reason, i64, i64, u32)> {
        let row = |outcome: &AttemptOutcome<Reason>| {
            (outcome.reason, outcome.first.as_second(), outcome.last.as_second(), outcome.count)
        };
        history.outcomes().iter().map(row).collect()
    }

    #[test]
    fn attempts_that_fail_alike_are_one_outcome_with_the_latest_amounts() {
        let mut history = AttemptHistory::default();
        note(&mut history, (1, 100), 10);
        note(&mut history, (2, 0), 20);
        note(&mut history, (1, 70), 30);
        assert_eq!(told(&history), [((2, 0), 20, 20, 1), ((1, 70), 10, 30, 2)]);
    }

    #[test]
    fn the_outcome_that_was_last_seen_first_is_forgotten() {
        let mut history = AttemptHistory::default();
        let most = u32::try_from(MOST_OUTCOMES).unwrap();
        for reason in 0..most {
            note(&mut history, (reason, 0), i64::from(reason));
        }
        note(&mut history, (0, 0), 50);
        note(&mut history, (most, 0), 60);
        let reasons: Vec<_> = told(&history).iter().map(|((reason, _), ..)| *reason).collect();
        let kept: Vec<_> = (2..most).chain([0, most]).collect();
        assert_eq!(reasons, kept);
    }
}
