//! One pod evicted, and the pod that its controller creates in its place awaited.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, pin_mut};
use kube::{Api, Client};

use crate::{
    cluster::{
        informer::{
            reflector::{ObjectSelection, ReflectorEvent, reflect},
            unread::UnreadObjects,
            wire::Watched,
        },
        write::evict::evict,
    },
    object::Pod,
    scheduling::{EvictionOutcome, PodKey},
};

/// A pod that stands in place of another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Successor {
    pub(super) name: String,
    pub(super) node: String,
}

/// The pods of one controller, as they are watched.
#[derive(Debug, Default)]
struct ControlledPods {
    /// By uid.
    pods: BTreeMap<String, ControlledPod>,
}

#[derive(Clone, Debug)]
struct ControlledPod {
    name: String,
    node: Option<String>,
    is_ready: bool,
    is_leaving: bool,
    /// Why it waits for a node, where a scheduler has said so.
    told: Option<String>,
}

/// Evicts the pod and waits until another one of its controller is ready and it is gone itself; or why that did not come.
///
/// # Errors
///
/// The API server did not answer.
pub(super) async fn move_pod(
    client: &Client,
    pod: &PodKey,
    timeout: Duration,
) -> anyhow::Result<Result<Successor, String>> {
    let api: Api<Watched<Pod>> = Api::namespaced(client.clone(), &pod.namespace);
    let Some(found) = api.get_opt(&pod.name).await.with_context(|| format!("can't read pod {pod}"))? else {
        return Ok(Err("is gone".to_owned()));
    };
    let metadata = &found.object.metadata;
    let Some(controller) = metadata.controller.clone().filter(|_| *metadata.uid == *pod.uid) else {
        return Ok(Err("is another pod by now".to_owned()));
    };
    let of_namespace = ObjectSelection::by_fields(&format!("metadata.namespace={}", pod.namespace));
    let events = reflect(client.clone(), of_namespace, UnreadObjects::default(), |pod: &Pod, _: &[_]| {
        let is_controlled = pod.metadata.is_controlled_by(controller.uid());
        is_controlled.then(|| (pod.metadata.uid.clone(), ControlledPod::of(pod)))
    });
    pin_mut!(events);
    let mut pods = ControlledPods::default();
    let mut known: Option<BTreeSet<String>> = None;
    let waited = tokio::time::timeout(timeout, async {
        while let Some(event) = events.next().await {
            let listed = matches!(event, ReflectorEvent::Listed(_));
            pods.take(event);
            if listed && known.is_none() {
                known = Some(pods.pods.keys().cloned().collect());
                if let Err(why) = evicted(client, pod).await? {
                    return Ok(Err(why));
                }
            }
            if let Some(known) = &known
                && let Some(stands) = pods.successor(known, &pod.uid)
            {
                return Ok(Ok(stands));
            }
        }
        bail!("the watch of pods has ended")
    });
    match waited.await {
        Ok(waited) => waited,
        Err(_) => Ok(Err(pods.lack(known.as_ref(), timeout))),
    }
}

async fn evicted(client: &Client, pod: &PodKey) -> anyhow::Result<Result<(), String>> {
    match evict(client.clone(), pod).await {
        EvictionOutcome::Granted => Ok(Ok(())),
        EvictionOutcome::Gone => Ok(Err("is gone".to_owned())),
        EvictionOutcome::Refused(answer) => Ok(Err(format!("is not evicted: {answer}"))),
        EvictionOutcome::Doubtful => bail!("the API server did not say whether it evicts pod {pod}"),
    }
}

impl ControlledPods {
    /// Takes in the pods of the controller.
    fn take(&mut self, event: ReflectorEvent<Pod, Option<(String, ControlledPod)>>) {
        match event {
            ReflectorEvent::Listed(all) => self.pods = all.into_iter().flatten().collect(),
            ReflectorEvent::Seen(pod) => self.pods.extend(pod),
            ReflectorEvent::Gone(pod) => drop(self.pods.remove(&pod.metadata.uid)),
            ReflectorEvent::Unserved => {}
        }
    }

    /// A pod that is ready and was not there before, once this one is gone.
    fn successor(&self, known: &BTreeSet<String>, gone: &str) -> Option<Successor> {
        if self.pods.contains_key(gone) {
            return None;
        }
        let mut new = self.pods.iter().filter(|(uid, _)| !known.contains(*uid)).map(|(_, pod)| pod);
        let stands = new.find(|pod| pod.is_ready && !pod.is_leaving)?;
        Some(Successor { name: stands.name.clone(), node: stands.node.clone()? })
    }

    /// What has not come within the time.
    fn lack(&self, known: Option<&BTreeSet<String>>, timeout: Duration) -> String {
        let within = format!("within {} s", timeout.as_secs());
        let Some(known) = known else {
            return format!("the pods of the namespace could not be listed {within}");
        };
        let new = self.pods.iter().find(|(uid, pod)| !known.contains(*uid) && !pod.is_leaving);
        match new {
            None => format!("its controller has created no other pod {within}"),
            Some((_, pod)) if pod.is_ready => {
                format!(
                    "{} stands, but the evicted pod is still there after {} s",
                    pod.name,
                    timeout.as_secs()
                )
            }
            Some((_, pod)) => {
                let why = match (&pod.node, &pod.told) {
                    (Some(node), _) => format!("is not ready on {node}"),
                    (None, Some(told)) => format!("has no node: {told}"),
                    (None, None) => "has no node".to_owned(),
                };
                format!("{} does not stand {within}: it {why}", pod.name)
            }
        }
    }
}

impl ControlledPod {
    fn of(pod: &Pod) -> Self {
        let stated = |kind: &str, status: &str| {
            pod.status.condition(kind).filter(|condition| condition.status == status)
        };
        let unscheduled = stated("PodScheduled", "False");
        Self {
            name: pod.metadata.name.clone(),
            node: pod.spec.node_name.clone(),
            is_ready: stated("Ready", "True").is_some(),
            is_leaving: pod.metadata.deletion_timestamp.is_some(),
            told: unscheduled.map(|one| one.message.clone()).filter(|message| !message.is_empty()),
        }
    }
}
