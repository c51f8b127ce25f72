//! Every object of a kind, reduced to what its reader needs, and published when one of them changes.
//!
//! Errors are logged and retried without end. If the API server does not serve a kind, it is asked again from time to time, since the
//! kind may be installed later. Of an object that can't be read completely, what can be read counts.

use std::{collections::BTreeMap, fmt::Debug};

use futures::{Stream, StreamExt};
use kube::Client;
use serde::de::DeserializeOwned;

use super::{
    reflector::{ObjectSelection, ReflectorEvent, reflect, reflect_if_served},
    unread::{Unread, UnreadObjects},
    wire::{Watched, Wire},
};

/// An object's namespace, empty for what is cluster-wide, and its name.
pub type ObjectKey = (String, String);

/// Watches every object of a kind, reduced by `read`, and calls `publish` with all of them when one of them changes; never returns.
pub async fn keep<T, V>(
    client: &Client,
    read: impl Fn(&T) -> V + Send + Sync,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
    V: PartialEq + Send,
{
    let told = reflect(client.clone(), ObjectSelection::default(), UnreadObjects::default(), keyed(read));
    follow(told, publish).await;
}

/// As [`keep`], for the objects that this label selector selects.
pub async fn keep_selected<T, V>(
    client: &Client,
    labels: &str,
    read: impl Fn(&T) -> V + Send + Sync,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
    V: PartialEq + Send,
{
    let told =
        reflect(client.clone(), ObjectSelection::by_labels(labels), UnreadObjects::default(), keyed(read));
    follow(told, publish).await;
}

/// As [`keep`], for a kind that may not be installed: until it is, there are no objects of it, and no error is logged.
pub async fn keep_if_served<T, V>(
    client: &Client,
    read: impl Fn(&T) -> V + Send + Sync,
    publish: impl FnMut(&BTreeMap<ObjectKey, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
    V: PartialEq + Send,
{
    let told =
        reflect_if_served(client.clone(), ObjectSelection::default(), UnreadObjects::default(), keyed(read));
    follow(told, publish).await;
}

/// What is kept of an object, and its key.
fn keyed<T: Wire, V>(
    read: impl Fn(&T) -> V + Send + Sync,
) -> impl Fn(&T, &[Unread]) -> (ObjectKey, V) + Send + Sync {
    move |object, _| (key(object), read(object))
}

async fn follow<T: Wire, V: PartialEq>(
    told: impl Stream<Item = ReflectorEvent<T, (ObjectKey, V)>>,
    mut publish: impl FnMut(&BTreeMap<ObjectKey, V>),
) {
    let mut told = std::pin::pin!(told);
    let mut served = Served::Unknown;
    let mut known = BTreeMap::new();
    while let Some(told) = told.next().await {
        // After a list, all objects count as changed.
        let differs = match told {
            ReflectorEvent::Listed(all) => {
                served.find(Served::Yes, T::KIND);
                known = all.into_iter().collect();
                true
            }
            ReflectorEvent::Unserved => {
                served.find(Served::No, T::KIND);
                !std::mem::take(&mut known).is_empty()
            }
            ReflectorEvent::Seen((key, value)) => {
                let differs = known.get(&key) != Some(&value);
                known.insert(key, value);
                differs
            }
            ReflectorEvent::Gone(object) => known.remove(&key(&object)).is_some(),
        };
        if differs {
            publish(&known);
        }
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

#[cfg(test)]
mod tests;
