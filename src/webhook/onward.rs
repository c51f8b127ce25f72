//! What follows once a new pod is let in: a dry run is told where the pod would go, any other pod is handed on as a hint.
//!
//! Where and to whom is given; nothing here changes whether a pod is let in.

use std::sync::Arc;

use super::{
    metrics::Metrics,
    review::{DryRun, Entrant, ReviewAnswer},
};
use crate::object::Pod;

/// Where a pod would go now and why not elsewhere, a line for each thing to say; nothing where that is not known in time.
pub type Place = Arc<dyn Fn(&Pod) -> Vec<String> + Send + Sync>;

/// Takes a pod that is about to be stored. It must not wait.
pub type Hint = Arc<dyn Fn(Box<Pod>) -> Handed + Send + Sync>;

/// What became of a hint.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Handed {
    /// It was taken.
    Taken,
    /// It was not: there is no room.
    Dropped,
}

/// Whom pods are handed on to.
#[derive(Clone)]
pub struct Onward {
    /// Answers dry runs.
    pub place: Place,
    /// Takes the others.
    pub hint: Hint,
}

/// Reviews up to this length are handed on: hints that wait must not fill the memory.
const HINT_LIMIT: usize = 64 * 1024;

impl Onward {
    /// Goes on with an answer to a review of this length.
    pub(super) fn go_on(&self, answer: &mut ReviewAnswer, length: usize, metrics: &Metrics) {
        let Some(Entrant { pod, dry_run }) = answer.entrant.take() else { return };
        match dry_run {
            DryRun::Yes => answer.warn(&(self.place)(&pod)),
            DryRun::No => {
                let handed = if length <= HINT_LIMIT { (self.hint)(pod) } else { Handed::Dropped };
                metrics.count_hint(handed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
