//! The budget of work of a review, counted in steps and not in time, so that equal pods get equal answers.
//!
//! Checks that decide about a pod always run, and cost about as much as the pod is long. Help for the user, such as the nearest
//! spelling, runs only while there are steps left. The budget decides nothing by itself.

/// The steps of one review. A step is one comparison: of two texts, of two characters in an edit distance, of a share with a kind of
/// card.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Work {
    spent: usize,
    left: usize,
}

/// Steps for what is optional: some milliseconds.
const OPTIONAL: usize = 1_000_000;

impl Default for Work {
    fn default() -> Self {
        Self::of(OPTIONAL)
    }
}

impl Work {
    /// This many steps for what is optional.
    pub const fn of(optional: usize) -> Self {
        Self { spent: 0, left: optional }
    }

    /// Steps so far, decisions included.
    pub const fn spent(self) -> usize {
        self.spent
    }

    /// Counts steps of a decision, which is made whatever it costs.
    pub fn count(&mut self, steps: usize) {
        self.spent = self.spent.saturating_add(steps);
    }

    /// Takes these steps for something optional; `false`: there are not so many left, and it must be left out.
    #[must_use]
    pub fn afford(&mut self, steps: usize) -> bool {
        let Some(left) = self.left.checked_sub(steps) else { return false };
        self.left = left;
        self.count(steps);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_optional_is_left_out_once_the_steps_are_used_up_and_decisions_are_only_counted() {
        let mut work = Work::of(10);
        assert!(work.afford(6));
        work.count(100);
        assert!(!work.afford(5), "4 are left");
        assert!(work.afford(4));
        assert!(!work.afford(1));
        assert_eq!(work.spent(), 110);
    }
}
