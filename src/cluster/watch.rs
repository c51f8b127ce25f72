//! Watches: lists and changes of pods and nodes as the scheduler's events.
//!
//! A list becomes one event, so that what vanished during a gap is seen to be gone. Errors are logged and retried for ever.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;

use super::{
    metrics::Metrics,
    read::{Reader, Reading},
    retry,
    wire::{Watched, Wire},
};
use crate::{
    dialect::{Problem, Unreadable},
    object::{Node, Pod},
    scheduling::Event,
};

/// Pods that ended well hold nothing and were allocated: they arrive as deleted. One that failed may not have been allocated, and what
/// it carries may have to be withdrawn.
const PODS: &str = "status.phase!=Succeeded";

/// Pods, as events.
pub fn pods(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let config = watcher::Config::default().fields(PODS);
    let read = move |pod: &Pod| {
        let (info, troubles) = reader.pod(pod);
        for trouble in troubles {
            tracing::warn!(pod = %info.key, field = trouble.field, "{}", trouble.message);
        }
        info
    };
    let listed = |pods: Vec<_>| Event::Pods(pods);
    let gone = |pod: &Pod| Event::PodGone(pod.metadata.uid.as_str().into());
    watch(Api::all(client.clone()), config, read, listed, |pod| Event::PodSeen(Box::new(pod)), gone)
}

/// Nodes, as events.
pub fn nodes(
    client: &Client,
    reader: Arc<Reader>,
    metrics: Metrics,
) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |node: &Node| {
        let (info, troubles): Reading<_> = reader.node(node);
        report(&node.metadata.name, &troubles, &metrics);
        info
    };
    let listed = |nodes: Vec<_>| Event::Nodes(nodes);
    let gone = |node: &Node| Event::NodeGone(node.metadata.name.as_str().into());
    let config = watcher::Config::default();
    watch(Api::all(client.clone()), config, read, listed, |node| Event::NodeSeen(Box::new(node)), gone)
}

/// Follows every object of a kind for ever, as far as `read` keeps of it; `publish` is given all of them whenever one of them differs.
pub async fn keep<T, V>(
    client: &Client,
    read: impl Fn(&T) -> V + Send,
    mut publish: impl FnMut(&BTreeMap<String, V>) + Send,
) where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = (), Scope = T::Scope>,
    V: PartialEq + Send,
{
    let events = watcher(Api::<Watched<T>>::all(client.clone()), watcher::Config::default());
    let mut events = std::pin::pin!(events.backoff(retry::pauses()));
    let mut known = BTreeMap::new();
    let mut listing = BTreeMap::new();
    while let Some(event) = events.next().await {
        let differs = match event {
            Ok(watcher::Event::Init) => {
                listing.clear();
                false
            }
            Ok(watcher::Event::InitApply(watched)) => {
                listing.insert(watched.object.metadata().name.clone(), read(&watched.object));
                false
            }
            Ok(watcher::Event::InitDone) => {
                known = std::mem::take(&mut listing);
                true
            }
            Ok(watcher::Event::Apply(watched)) => {
                let kept = read(&watched.object);
                let name = &watched.object.metadata().name;
                let differs = known.get(name) != Some(&kept);
                known.insert(name.clone(), kept);
                differs
            }
            Ok(watcher::Event::Delete(watched)) => known.remove(&watched.object.metadata().name).is_some(),
            Err(error) => {
                tracing::warn!(kind = T::KIND, %error, "watch failed, trying again");
                false
            }
        };
        if differs {
            publish(&known);
        }
    }
}

fn report(node: &str, troubles: &[Unreadable], metrics: &Metrics) {
    for trouble in troubles {
        tracing::warn!(node, field = trouble.field, "{}", trouble.message);
    }
    let unreadable = troubles.iter().any(|trouble| trouble.problem == Problem::Registration);
    metrics.node_registration(
        node,
        if unreadable { super::metrics::Readable::No } else { super::metrics::Readable::Yes },
    );
}

fn watch<T, I>(
    api: Api<Watched<T>>,
    config: watcher::Config,
    read: impl Fn(&T) -> I + Send + 'static,
    listed: impl Fn(Vec<I>) -> Event + Send + 'static,
    seen: impl Fn(I) -> Event + Send + 'static,
    gone: impl Fn(&T) -> Event + Send + 'static,
) -> impl Stream<Item = Event> + Send
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
    I: Send + 'static,
{
    let events = watcher(api, config).backoff(retry::pauses());
    events
        .scan(Vec::new(), move |listing, event| {
            let event = match event {
                Ok(watcher::Event::Init) => {
                    listing.clear();
                    None
                }
                Ok(watcher::Event::InitApply(watched)) => {
                    listing.push(read(&watched.object));
                    None
                }
                Ok(watcher::Event::InitDone) => Some(listed(std::mem::take(listing))),
                Ok(watcher::Event::Apply(watched)) => Some(seen(read(&watched.object))),
                Ok(watcher::Event::Delete(watched)) => Some(gone(&watched.object)),
                Err(error) => {
                    tracing::warn!(kind = T::KIND, %error, "watch failed, trying again");
                    None
                }
            };
            std::future::ready(Some(event))
        })
        .flat_map(stream::iter)
}
