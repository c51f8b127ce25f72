//! What the API server shows of pods, nodes and Events, and waiting until it does.

use std::{pin::pin, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::ListParams,
    runtime::{WatchStreamExt as _, wait::await_condition, watcher},
};
use serde_json::{Value, json};

use super::{LIMIT, World};

impl World {
    /// The pod, once it is as wanted; a pod that is not in time is printed.
    pub(crate) async fn pod_when(&self, name: &str, wanted: impl Fn(&core::Pod) -> bool) -> core::Pod {
        let condition = |pod: Option<&core::Pod>| pod.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.pods(), name, condition)).await {
            Ok(found) => found.unwrap().expect("the condition asks for a pod"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.pods().get_opt(name).await),
        }
    }

    /// The pod, once it runs.
    pub(crate) async fn running(&self, name: &str) -> core::Pod {
        self.pod_when(name, |pod| phase(pod) == "Running").await
    }

    /// The node, once it is as wanted.
    pub(crate) async fn node_when(&self, name: &str, wanted: impl Fn(&core::Node) -> bool) -> core::Node {
        let condition = |node: Option<&core::Node>| node.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.nodes(), name, condition)).await {
            Ok(found) => found.unwrap().expect("the condition asks for a node"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.nodes().get_opt(name).await),
        }
    }

    /// Writes an annotation of a node; null takes it away.
    pub(crate) async fn annotate_node(&self, name: &str, key: &str, value: Value) {
        self.patch_node(name, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    /// The message of the pod's condition, once it says why the pod waits.
    pub(crate) async fn why_it_waits(&self, name: &str) -> String {
        let pod = self.pod_when(name, |pod| waits_because(pod).is_some()).await;
        waits_because(&pod).expect("the condition was just seen")
    }

    /// As [`Self::why_it_waits`], without the nearest miss.
    pub(crate) async fn unschedulable(&self, name: &str) -> String {
        without_nearest(&self.why_it_waits(name).await).to_owned()
    }

    /// Until the pod's condition gives this reason; another one may come first.
    pub(crate) async fn unschedulable_with(&self, name: &str, message: &str) {
        self.waits_with(name, |why| without_nearest(why) == message).await;
    }

    /// Until the message of the pod's condition, which says why the pod waits, is as wanted.
    pub(crate) async fn waits_with(&self, name: &str, wanted: impl Fn(&str) -> bool) {
        self.pod_when(name, |pod| waits_because(pod).is_some_and(|why| wanted(&why))).await;
    }

    /// An Event of that reason about the pod, once there is one.
    pub(crate) async fn event(&self, pod: &str, reason: &str) -> core::Event {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let found = async {
            loop {
                again.tick().await;
                if let Some(event) = self.events(pod, reason).await.pop() {
                    return event;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the event is written in time")
    }

    /// Every Event of that reason about the pod.
    pub(crate) async fn events(&self, pod: &str, reason: &str) -> Vec<core::Event> {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let about = |event: &core::Event| event.involved_object.name.as_deref() == Some(pod);
        events.filter(about).filter(|event| event.reason.as_deref() == Some(reason)).collect()
    }

    /// The reasons of all Events about the pod.
    pub(crate) async fn reasons(&self, pod: &str) -> Vec<String> {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let about = |event: &core::Event| event.involved_object.name.as_deref() == Some(pod);
        events.filter(about).filter_map(|event| event.reason).collect()
    }

    /// The first Event of that reason about the pod, once it is there.
    pub(crate) async fn event_when(&self, pod: &str, reason: &str) -> core::Event {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let wanted = |event: &core::Event| {
            event.involved_object.name.as_deref() == Some(pod) && event.reason.as_deref() == Some(reason)
        };
        let mut seen = pin!(watcher(events, watcher::Config::default()).applied_objects());
        let found = async {
            loop {
                if let Some(event) = seen.next().await.unwrap().ok().filter(wanted) {
                    return event;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap_or_else(|_| panic!("no Event {reason} about {pod}"))
    }
}

pub(crate) fn phase(pod: &core::Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node_of(pod: &core::Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn annotation<'a>(pod: &'a core::Pod, key: &str) -> &'a str {
    pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)).map_or("", String::as_str)
}

/// A message without the nearest miss that follows the counted reasons.
pub(crate) fn without_nearest(message: &str) -> &str {
    message.split_once(" nearest: ").map_or(message, |(counted, _)| counted)
}

fn waits_because(pod: &core::Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    let waits = scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable");
    waits.then(|| scheduled.message.clone().unwrap_or_default())
}
