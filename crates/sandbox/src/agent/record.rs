//! What the agents of a fleet saw and did, for tests to read.
//!
//! It must not change what the agents do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::audit::Violation;

/// Filled by many tasks.
#[derive(Debug, Default)]
pub(super) struct Record {
    violations: Mutex<Vec<Violation>>,
    troubles: Mutex<Vec<String>>,
    admitted: AtomicU64,
    rejected: AtomicU64,
    answered: Notify,
}

impl Record {
    pub(super) fn violation(&self, violation: Violation) {
        held(&self.violations).push(violation);
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        held(&self.violations).clone()
    }

    pub(super) fn trouble(&self, trouble: String) {
        held(&self.troubles).push(trouble);
    }

    pub(super) fn troubles(&self) -> Vec<String> {
        held(&self.troubles).clone()
    }

    pub(super) fn count_admitted(&self) {
        self.admitted.fetch_add(1, Ordering::Relaxed);
        self.answered.notify_waiters();
    }

    pub(super) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        self.answered.notify_waiters();
    }

    pub(super) fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed)
    }

    pub(super) fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Returns once this many pods were admitted or rejected.
    pub(super) async fn answered(&self, pods: u64) {
        loop {
            let next = self.answered.notified();
            if self.admitted() + self.rejected() >= pods {
                return;
            }
            next.await;
        }
    }
}

/// Another task's panic leaves these values whole.
pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
