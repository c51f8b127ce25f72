//! Every object of a kind, kept as far as somebody reads of it, and told whenever one of them differs.
//!
//! Errors are logged and retried for ever. A kind that the API server does not serve is looked for from time to time: it may be
//! installed later.

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

/// Follows every object of a kind for ever, as far as `read` keeps of it; `publish` is given all of them whenever one of them differs.
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

/// As [`keep`], for a kind that need not be installed: while it is not, there are none of it, and that is no trouble.
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

/// What is known of a kind.
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
    /// Takes in what happened; whether anything differs since. After a list all is taken to differ.
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

    /// There is none any more; whether there was.
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
    /// Says once what was found out.
    fn find(&mut self, found: Self, kind: &str) {
        match (*self, found) {
            (before, found) if before == found => {}
            (_, Self::No) => tracing::info!(kind, "not served here; it is looked for from time to time"),
            (Self::No, _) => tracing::info!(kind, "served from now on"),
            _ => {}
        }
        *self = found;
    }
}

fn key(object: &impl Wire) -> ObjectKey {
    let metadata = object.metadata();
    (metadata.namespace.clone(), metadata.name.clone())
}

/// Whether the API server knows no such kind.
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
