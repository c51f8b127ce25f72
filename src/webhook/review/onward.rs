//! What follows the admission of a new pod: a dry run gets a warning with the place that the pod would get, and any other pod becomes a
//! hint for the binder.
//!
//! Both receivers are parameters. Nothing here changes whether a pod is admitted.

use std::sync::Arc;

use super::{DryRun, Entrant, ReviewAnswer};
use crate::object::Pod;

/// Returns the lines that say where a pod would be placed now, and why not elsewhere; empty if there is no answer in time.
pub type Place = Arc<dyn Fn(&Pod) -> Vec<String> + Send + Sync>;

/// Receives a pod that the API server is about to store. It must not block.
pub type Hint = Arc<dyn Fn(Box<Pod>) -> Handed + Send + Sync>;

/// Whether a hint was kept.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Handed {
    /// It was taken.
    Taken,
    /// It was dropped: there is no room.
    Dropped,
}

/// The receivers of admitted pods.
#[derive(Clone)]
pub struct Onward {
    /// Answers dry runs.
    pub place: Place,
    /// Takes the others.
    pub hint: Hint,
}

/// The longest review, in bytes, whose pod becomes a hint, so that waiting hints can't fill the memory.
const HINT_LIMIT: usize = 64 * 1024;

impl Onward {
    /// Adds the warnings of a dry run to the answer, or passes the pod on as a hint, and returns whether that was kept; `length` is that of the
    /// review in bytes.
    pub(in crate::webhook) fn go_on(&self, answer: &mut ReviewAnswer, length: usize) -> Option<Handed> {
        let Entrant { pod, dry_run } = answer.entrant.take()?;
        match dry_run {
            DryRun::Yes => {
                answer.warn(&(self.place)(&pod));
                None
            }
            DryRun::No if length <= HINT_LIMIT => Some((self.hint)(pod)),
            DryRun::No => Some(Handed::Dropped),
        }
    }
}

#[cfg(test)]
mod tests;
