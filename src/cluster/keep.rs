//! Every object of a kind, reduced to what its reader needs, and published when one of them changes.
//!
//! Errors are logged and retried without end. If the API server does not serve a kind, it is asked again from time to time, since the
//! kind may be installed later.

use std::{collections::BTreeMap, fmt::Debug};

use futures::StreamExt;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;

use super::{
    retry::{self, Pauses},
    wire::{Watched, Wire},
};

/// An object's namespace, empty for what is cluster-wide, and its name.
pub type ObjectKey = (String, String);

/// Watches every object of a kind, reduced by `read`, and calls `publish` with all of them when one of them changes; never returns.
pub async fn keep<T, V>(
    client: &Client,
    read: impl Fn(&T) -> V + Send,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = (), Scope = T::Scope>,
    V: PartialEq + Send,
{
    follow(client, watcher::Config::default(), retry::pauses(), read, publish).await;
}

/// As [`keep`], for the objects that this label selector selects.
pub async fn keep_selected<T, V>(
    client: &Client,
    labels: &str,
    read: impl Fn(&T) -> V + Send,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = (), Scope = T::Scope>,
    V: PartialEq + Send,
{
    let selected = watcher::Config::default().labels(labels);
    follow(client, selected, retry::pauses(), read, publish).await;
}

/// As [`keep`], for a kind that may not be installed: until it is, there are no objects of it, and no error is logged.
pub async fn keep_if_served<T, V>(
    client: &Client,
    read: impl Fn(&T) -> V + Send,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = (), Scope = T::Scope>,
    V: PartialEq + Send,
{
    follow(client, watcher::Config::default(), retry::pauses_of_unserved(), read, publish).await;
}

async fn follow<T, V>(
    client: &Client,
    selected: watcher::Config,
    pauses: Pauses,
    read: impl Fn(&T) -> V + Send,
    mut publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = (), Scope = T::Scope>,
    V: PartialEq + Send,
{
    let events = watcher(Api::<Watched<T>>::all(client.clone()), selected);
    let mut events = std::pin::pin!(events.backoff(pauses));
    let mut kept = Kept::default();
    let mut served = Served::Unknown;
    while let Some(event) = events.next().await {
        let differs = match event {
            Ok(event) => {
                if matches!(event, watcher::Event::InitDone) {
                    served.find(Served::Yes, T::KIND);
                }
                kept.take_in(event, &read)
            }
            Err(error) if is_unserved(&error) => {
                served.find(Served::No, T::KIND);
                kept.clear()
            }
            Err(error) => {
                let error = crate::excerpt::brief(&error);
                tracing::warn!(kind = T::KIND, %error, "watch failed, trying again");
                false
            }
        };
        if differs {
            publish(&kept.known);
        }
    }
}

/// The known objects of a kind.
struct Kept<V> {
    known: BTreeMap<ObjectKey, V>,
    listing: BTreeMap<ObjectKey, V>,
}

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), listing: BTreeMap::new() }
    }
}

impl<V: PartialEq> Kept<V> {
    /// Applies an event and returns whether an object changed; after a list, all objects count as changed.
    fn take_in<T: Wire>(&mut self, event: watcher::Event<Watched<T>>, read: impl Fn(&T) -> V) -> bool {
        match event {
            watcher::Event::Init => {
                self.listing.clear();
                false
            }
            watcher::Event::InitApply(Watched { object, .. }) => {
                self.listing.insert(key(&object), read(&object));
                false
            }
            watcher::Event::InitDone => {
                self.known = std::mem::take(&mut self.listing);
                true
            }
            watcher::Event::Apply(Watched { object, .. }) => {
                let (key, value) = (key(&object), read(&object));
                let differs = self.known.get(&key) != Some(&value);
                self.known.insert(key, value);
                differs
            }
            watcher::Event::Delete(Watched { object, .. }) => self.known.remove(&key(&object)).is_some(),
        }
    }

    /// Removes all objects and returns whether there were any.
    fn clear(&mut self) -> bool {
        let differs = !self.known.is_empty();
        self.known.clear();
        differs
    }
}

/// Whether the API server serves a kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Served {
    Unknown,
    Yes,
    No,
}

impl Served {
    /// Logs a change of the answer once.
    fn find(&mut self, found: Self, kind: &str) {
        match (*self, found) {
            (before, found) if before == found => {}
            (_, Self::No) => tracing::info!(
                kind,
                "the API server does not serve this kind; asking again from time to time"
            ),
            (Self::No, _) => tracing::info!(kind, "the API server serves this kind now"),
            _ => {}
        }
        *self = found;
    }
}

fn key(object: &impl Wire) -> ObjectKey {
    let metadata = object.metadata();
    (metadata.namespace.clone(), metadata.name.clone())
}

/// Whether the error says that the API server does not know the kind.
fn is_unserved(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
