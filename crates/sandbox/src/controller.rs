//! What controllers have in common: a round over all objects at each change, and again after a while where it has failed.

use std::{pin::pin, sync::Mutex, time::Duration};

use futures::{Stream, StreamExt as _, stream::BoxStream};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;

use super::agent::Second;

/// After this time a round that failed is tried again although nothing has changed.
const RETRY: Duration = Duration::from_secs(1);

/// As many changes are taken together as have come meanwhile, up to so many.
const AT_ONCE: usize = 256;

/// What a scheduler did that a controller must not find, each once.
#[derive(Debug, Default)]
pub(super) struct Violations(Mutex<Vec<String>>);

impl Violations {
    /// Takes in a violation.
    pub(super) fn note(&self, violation: String) {
        let mut known = self.0.lock().expect("no holder of this lock panics");
        if !known.contains(&violation) {
            known.push(violation);
        }
    }

    /// All of them, in the order in which they were found.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no holder of this lock panics").clone()
    }
}

/// One item for each change of an object of a kind.
pub(super) fn watched<K>(client: &Client) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let all = Api::<K>::all(client.clone());
    watcher(all, watcher::Config::default()).backoff(Second).map(drop).boxed()
}

/// All objects of a kind.
pub(super) async fn all<K>(client: &Client) -> kube::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}

/// Calls `round` for each change and, where it has failed, after a while without one.
pub(super) async fn at_each_change<F>(changes: impl Stream<Item = ()>, mut round: impl FnMut() -> F)
where
    F: Future<Output = kube::Result<()>>,
{
    let mut changes = pin!(changes.ready_chunks(AT_ONCE));
    let mut failed = false;
    loop {
        let pause = if failed { RETRY } else { Duration::MAX };
        // A pause that has passed asks for a round as a change does.
        if let Ok(None) = tokio::time::timeout(pause, changes.next()).await {
            return;
        }
        let outcome = round().await;
        if let Err(error) = &outcome {
            tracing::debug!(%error, "a controller's round is repeated");
        }
        failed = outcome.is_err();
    }
}
