//! Questions to the loop that owns the scheduler, which answers them between two decisions.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// The most questions that wait for an answer; further ones are refused.
const WAITING: usize = 8;

/// The channel to ask a loop; clones ask the same loop.
#[derive(Debug)]
pub struct Questions<Q>(Arc<Mutex<Option<mpsc::Sender<Q>>>>);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NoAnswer {
    /// No loop of this process answers such questions now. The ledger is with the leader.
    #[error("this replica does not lead, so it has no ledger")]
    NotLeading,
    /// Too many requests wait.
    #[error("too many ask for the ledger")]
    Busy,
}

impl<Q> Default for Questions<Q> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<Q> Clone for Questions<Q> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q> Questions<Q> {
    /// Asks, and waits for the answer.
    pub(in crate::cluster) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Q,
    ) -> Result<T, NoAnswer> {
        let asked =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(NoAnswer::NotLeading)?;
        let (answer, answered) = oneshot::channel();
        asked.try_send(question(answer)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NoAnswer::Busy,
            mpsc::error::TrySendError::Closed(_) => NoAnswer::NotLeading,
        })?;
        answered.await.map_err(|_| NoAnswer::NotLeading)
    }

    /// The holder of the returned value answers the questions from now on; after it is dropped, questions are refused.
    pub(super) fn open(&self) -> mpsc::Receiver<Q> {
        let (asked, questions) = mpsc::channel(WAITING);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
        questions
    }
}
