//! The changes of a Lease that another replica holds.
//!
//! It decides nothing: a change may be old, and the candidate reads the Lease before it acts.

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api,
    runtime::{WatchStreamExt, watcher},
};

use crate::cluster::informer::retry;

/// The Lease of that name each time that it changes; the stream never ends. A deleted Lease counts as free.
///
/// RBAC needs `list` and `watch` on that one name only, since the watch selects it by `metadata.name`.
pub fn of(leases: Api<Lease>, name: &str) -> impl Stream<Item = LeaseSpec> + Send + use<> {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(leases, config).backoff(retry::pauses()).filter_map(|event| std::future::ready(seen(event)))
}

fn seen(event: Result<watcher::Event<Lease>, watcher::Error>) -> Option<LeaseSpec> {
    match event {
        Ok(watcher::Event::InitApply(lease) | watcher::Event::Apply(lease)) => {
            Some(lease.spec.unwrap_or_default())
        }
        Ok(watcher::Event::Delete(_)) => Some(LeaseSpec::default()),
        Ok(watcher::Event::Init | watcher::Event::InitDone) => None,
        Err(error) => {
            let error = crate::excerpt::brief(&error);
            tracing::warn!(%error, "watching the Lease failed; reading it periodically instead");
            None
        }
    }
}
