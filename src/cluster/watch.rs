//! Watches: lists and changes of pods, nodes and quotas as the scheduler's events.
//!
//! A list becomes one event, so that what vanished during a gap is seen to be gone. Errors are logged and retried for ever.

use std::{fmt::Debug, sync::Arc};

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;

use super::{
    metrics::Metrics,
    read::{Reader, Reading, quota_key},
    retry,
    wire::{Watched, Wire},
};
use crate::{
    dialect::{Problem, Unreadable},
    object::{Node, Pod, ResourceQuota},
    scheduling::{Event, QuotaKey},
};

/// Pods that ended well hold nothing and were allocated: they arrive as deleted. One that failed may not have been allocated, and what
/// it carries may have to be withdrawn.
pub(super) const PODS: &str = "status.phase!=Succeeded";

/// Everything that the scheduler is to see, as events.
pub fn all(
    client: &Client,
    reader: &Arc<Reader>,
    metrics: &Metrics,
) -> impl Stream<Item = Event> + Send + use<> {
    let pods = pods(client, reader.clone());
    let nodes = nodes(client, reader.clone(), metrics.clone());
    stream::select(stream::select(pods, nodes), quotas(client, reader.clone()))
}

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
    let gone = |pod: &Pod| {
        let uid = pod.metadata.uid.as_str().into();
        if pod.is_terminal() { Event::PodEnded(uid) } else { Event::PodGone(uid) }
    };
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

/// Quotas, as events.
pub fn quotas(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |quota: &ResourceQuota| {
        let (info, troubles) = reader.quota(quota);
        let QuotaKey { namespace, name } = &info.key;
        for trouble in troubles {
            tracing::warn!(resource_quota = %format!("{namespace}/{name}"), field = trouble.field, "{}", trouble.message);
        }
        info
    };
    let config = watcher::Config::default();
    let gone = |quota: &ResourceQuota| Event::QuotaGone(quota_key(quota));
    watch(Api::all(client.clone()), config, read, Event::Quotas, Event::QuotaSeen, gone)
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
