//! Watches: lists and changes of pods, nodes and quotas as the scheduler's events.
//!
//! A list becomes one event, so that what vanished during a gap is seen to be gone.

use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use kube::Client;

use super::{
    read::{Reader, Reading, quota_key},
    reflector::{Told, reflect},
};
use crate::{
    object::{Node, Pod, ResourceQuota},
    scheduling::{Event, QuotaKey},
};

/// Pods that ended well hold nothing and were allocated: they arrive as deleted. One that failed may not have been allocated, and what
/// it carries may have to be withdrawn.
pub(super) const PODS: &str = "status.phase!=Succeeded";

/// Everything that the scheduler is to see, as events.
pub fn all(client: &Client, reader: &Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let pods = pods(client, reader.clone());
    let nodes = nodes(client, reader.clone());
    stream::select(stream::select(pods, nodes), quotas(client, reader.clone()))
}

/// Pods, as events.
pub fn pods(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |pod: &Pod| {
        let (info, troubles) = reader.pod(pod);
        for trouble in troubles {
            tracing::warn!(pod = %info.key, field = trouble.field, "{}", trouble.message);
        }
        info
    };
    let gone = |pod: &Pod| {
        let uid = pod.metadata.uid.as_str().into();
        if pod.is_terminal() { Event::PodEnded(uid) } else { Event::PodGone(uid) }
    };
    let told = reflect(client.clone(), Some(PODS), read);
    events(told, Event::Pods, |pod| Event::PodSeen(Box::new(pod)), gone)
}

/// Nodes, as events.
pub fn nodes(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |node: &Node| {
        let (info, troubles): Reading<_> = reader.node(node);
        for trouble in troubles {
            tracing::warn!(node = node.metadata.name, field = trouble.field, "{}", trouble.message);
        }
        info
    };
    let gone = |node: &Node| Event::NodeGone(node.metadata.name.as_str().into());
    let told = reflect(client.clone(), None, read);
    events(told, Event::Nodes, |node| Event::NodeSeen(Box::new(node)), gone)
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
    let gone = |quota: &ResourceQuota| Event::QuotaGone(quota_key(quota));
    events(reflect(client.clone(), None, read), Event::Quotas, Event::QuotaSeen, gone)
}

/// What is told of a kind, as the scheduler's events.
fn events<T, I>(
    told: impl Stream<Item = Told<T, I>> + Send,
    listed: impl Fn(Vec<I>) -> Event + Send,
    seen: impl Fn(I) -> Event + Send,
    gone: impl Fn(&T) -> Event + Send,
) -> impl Stream<Item = Event> + Send {
    told.map(move |told| match told {
        Told::Listed(all) => listed(all),
        Told::Seen(one) => seen(one),
        Told::Gone(one) => gone(&one),
    })
}
