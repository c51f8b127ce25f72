//! Taking and giving back a node's locks, within the time in which such a write may still arrive.

use jiff::{SignedDuration, Timestamp};

use super::{Hands, cut_off};
use crate::{
    cluster::{
        report::metrics::Written,
        write::{lock, send},
    },
    device::LockName,
    dialect::LockSpec,
    excerpt::{MESSAGE, excerpt},
    scheduling::{LockOutcome, PodKey, ReleaseOutcome},
};

impl Hands {
    pub(super) async fn take_locks(
        &self,
        pod: &PodKey,
        node: &str,
        resource_version: &str,
        locks: &[LockName],
        since: Timestamp,
    ) -> LockOutcome {
        let taken = async {
            self.metrics.write(Written::lock);
            let client = self.client.clone();
            lock::take(client, &self.lock_specs(locks), node, pod, resource_version, since).await
        };
        let cut = || LockOutcome::Failed(cut_off());
        let outcome = self.fence.within(send::REACH, taken).await.unwrap_or_else(cut);
        self.metrics.lock(&outcome);
        warn_of_refused_lock(pod, node, &outcome);
        outcome
    }

    pub(super) async fn release_locks(
        &self,
        node: &str,
        resource_version: &str,
        locks: &[LockName],
    ) -> ReleaseOutcome {
        let released = async {
            self.metrics.write(Written::unlock);
            lock::release(self.client.clone(), &self.lock_specs(locks), node, resource_version).await
        };
        match self.fence.within(send::REACH, released).await {
            Some(Ok(())) => ReleaseOutcome::Done,
            Some(Err(error)) => {
                tracing::warn!(%node, %error, "releasing the node lock failed");
                ReleaseOutcome::Failed { wait: error.wait() }
            }
            None => ReleaseOutcome::Failed { wait: SignedDuration::ZERO },
        }
    }

    fn lock_specs(&self, locks: &[LockName]) -> Vec<&LockSpec> {
        let spec = |name| self.reader.dialects().lock(name);
        let specs = locks.iter().map(spec);
        specs.map(|spec| spec.expect("a lock is only asked for where the dialect has one")).collect()
    }
}

/// Logs a refusal that only an administrator can resolve, such as a missing right, with the API server's message and the HTTP status.
pub(super) fn warn_of_refused_lock(pod: &PodKey, node: &str, outcome: &LockOutcome) {
    if let LockOutcome::Refused(answer) = outcome {
        let answer = &*excerpt(answer, 2 * MESSAGE);
        tracing::warn!(%pod, %node, answer, "the API server refused the node lock");
    }
}
