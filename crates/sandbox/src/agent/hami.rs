//! Allocate as HAMi's device plugins answer it: NVIDIA's, and those of other vendors that are built on the same code.
//!
//! It must not know what Berth would do: it stands for other projects' programs (`pkg/device-plugin`, v2.10;
//! Project-HAMi/ascend-device-plugin, dcu-vgpu-device-plugin, amd-device-plugin and biren-device-plugin).

use std::time::Duration;

use kube::api::ListParams;
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::api::code;
use super::audit::{Grant, Violation};
use super::plugin::Plugin;
use super::share::{Share, decode, encode_segment};
use super::view::Pod;
use super::wire::{Manner, Release, Wire};
use super::{amd, ascend, mig};

pub(super) const LINKS: &str = "hami.io/node-nvidia-score";
const ASSIGNED_NODE: &str = "hami.io/vgpu-node";
const BIND_TIME: &str = "hami.io/bind-time";
const BIND_PHASE: &str = "hami.io/bind-phase";
const LOCK: &str = "hami.io/mutex.lock";
const RELEASE_TRIES: u32 = 5;
const RELEASE_BACKOFF: Duration = Duration::from_millis(100);

/// One container's Allocate: everything that goes wrong once the pod is known fails the pod and frees the node.
pub(super) async fn allocate(ask: &Ask<'_>, release: Release, wire: &Wire) -> Result<(), Refusal> {
    let release = wire.manner.release(release);
    let pod = match wire.manner {
        Manner::Lockless(_) => first_allocating(ask, wire).await?,
        _ => pending_pod(ask, release).await?,
    };
    if pod.uid() != ask.pod.uid() {
        let (node, admitting, found) = (ask.node.name.clone(), ask.pod.key(), pod.key());
        ask.note(Violation::WrongPod { node, admitting, found });
    }
    let outcome = serve(ask, release, wire, &pod).await;
    if let Err(refusal) = &outcome {
        give_up(ask, wire, &pod, refusal).await;
    }
    outcome
}

/// What the plugin leaves behind where it could not serve the pod.
async fn give_up(ask: &Ask<'_>, wire: &Wire, pod: &Pod, refusal: &Refusal) {
    let biren = wire.manner == Manner::Biren;
    if biren && !matches!(refusal, Refusal::Count { .. } | Refusal::NothingLeft) {
        return;
    }
    ask.settle(ask.calls.annotate_pod(pod, json!({BIND_PHASE: "failed"})).await.map(drop));
    if !biren || matches!(refusal, Refusal::NothingLeft) {
        free_node(ask, wire, pod).await;
    }
}

/// The lock names the pod; without a lock that names one, the first that looks bound and not yet allocated.
async fn pending_pod(ask: &Ask<'_>, release: Release) -> Result<Pod, Refusal> {
    let node = ask.calls.node(&ask.node.name).await?;
    let lock = node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(LOCK));
    if let Some(lock) = lock.filter(|lock| lock.contains(',')) {
        let parts: Vec<&str> = lock.split(',').collect();
        let [_, namespace, name] = parts[..] else {
            return Err(Refusal::Lock(lock.clone()));
        };
        return Ok(ask.calls.pod(namespace, name).await?);
    }
    let of_node = ListParams::default().fields(&format!("spec.nodeName={}", ask.node.name));
    let pods = ask.calls.pods(&of_node).await?;
    pods.into_iter().find(|pod| awaits(pod, &ask.node.name, release)).ok_or(Refusal::NoPod)
}

/// Of all pods of the cluster, in the order in which the API server lists them; neither phase nor deletion counts.
async fn first_allocating(ask: &Ask<'_>, wire: &Wire) -> Result<Pod, Refusal> {
    let pods = ask.calls.pods(&ListParams::default()).await?;
    let here = |pod: &Pod| {
        pod.annotation(BIND_TIME).is_some()
            && pod.annotation(BIND_PHASE) == Some("allocating")
            && pod.annotation(ASSIGNED_NODE) == Some(&ask.node.name)
    };
    let pod = pods.into_iter().find(here);
    if pod.is_none() {
        free_node(ask, wire, ask.pod).await;
    }
    pod.ok_or(Refusal::NoPod)
}

fn awaits(pod: &Pod, node: &str, release: Release) -> bool {
    let phase = match pod.annotation(BIND_PHASE) {
        Some("allocating") => true,
        Some("success") => release >= Release::V2_9,
        _ => false,
    };
    phase
        && pod.is_pending()
        && pod.annotation(BIND_TIME).is_some()
        && pod.annotation(ASSIGNED_NODE) == Some(node)
}

async fn serve(ask: &Ask<'_>, release: Release, wire: &Wire, pod: &Pod) -> Result<(), Refusal> {
    let text = pod.annotation(wire.to_allocate).unwrap_or_default();
    let mut segments = decode(text).map_err(Refusal::Devices)?;
    let next = segments.iter().position(|segment| !segment.is_empty()).ok_or(Refusal::NothingLeft)?;
    let origin = origin(pod, release, wire, &segments, next);
    let shares = std::mem::take(&mut segments[next]);
    judge(ask, pod, origin, &shares);
    if shares.len() != ask.wanted {
        return Err(Refusal::Count { wanted: ask.wanted, found: shares.len() });
    }
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    mig::place(ask, pod, origin, &shares).await?;
    if release < Release::V2_9 {
        segments.retain(|segment| !segment.is_empty());
    }
    let left: String = segments.iter().map(|segment| encode_segment(segment) + ";").collect();
    ask.calls.annotate_pod(pod, json!({wire.to_allocate: left})).await?;
    if wire.manner == Manner::Amd {
        amd::mask(ask, pod, &shares, LOCK).await?;
    }
    finish(ask, wire, pod).await
}

/// The place that segment `next` had when the scheduler wrote it: plugins up to v2.8 close the gaps on each call.
fn origin(pod: &Pod, release: Release, wire: &Wire, segments: &[Vec<Share>], next: usize) -> usize {
    if release >= Release::V2_9 {
        return next;
    }
    let left = segments.iter().filter(|segment| !segment.is_empty()).count();
    let record = decode(pod.annotation(wire.allocated).unwrap_or_default()).unwrap_or_default();
    let (places, _): (Vec<usize>, Vec<_>) =
        record.iter().enumerate().filter(|(_, segment)| !segment.is_empty()).unzip();
    places.len().checked_sub(left).and_then(|done| places.get(done).copied()).unwrap_or(next)
}

/// Of another pod's segment nothing more is to be said than that it is another's.
fn judge(ask: &Ask<'_>, pod: &Pod, segment: usize, shares: &[Share]) {
    if pod.uid() != ask.pod.uid() {
        return;
    }
    let container = ask.container();
    let (key, name) = (pod.key(), container.name.clone());
    if segment != ask.place {
        ask.note(Violation::WrongContainer { pod: key.clone(), container: name.clone(), segment });
    }
    if shares.len() != ask.wanted {
        let (asked, given) = (ask.wanted, shares.len());
        ask.note(Violation::WrongCount { pod: key, container: name, asked, given });
    }
    let grant = Grant { pod, container, segment, shares };
    let Some(plugin) = ask.node.plugin else { return };
    for violation in grant.judge(ask.node, plugin) {
        ask.note(violation);
    }
    if plugin == Plugin::Ascend {
        ascend::judge(ask, pod, shares);
    }
}

/// Whether the pod is done is told by what it still has to allocate.
async fn finish(ask: &Ask<'_>, wire: &Wire, pod: &Pod) -> Result<(), Refusal> {
    let now = ask.calls.pod(pod.namespace(), pod.name()).await?;
    let left = now.annotation(wire.to_allocate).unwrap_or_default();
    let goes_on = match wire.manner {
        Manner::Word(word) | Manner::Lockless(word) => left.contains(word),
        Manner::Amd => left.contains(pod.annotation(wire.allocated).unwrap_or_default()),
        Manner::Biren => left.contains(','),
    };
    if goes_on {
        return Ok(());
    }
    if wire.manner != Manner::Biren {
        ask.calls.annotate_pod(pod, json!({BIND_PHASE: "success"})).await?;
    }
    free_node(ask, wire, pod).await;
    Ok(())
}

/// Takes the lock away if it is this pod's or does not say whose it is; a plugin that heeds no lock takes away any.
async fn free_node(ask: &Ask<'_>, wire: &Wire, pod: &Pod) {
    let mut last = Ok(());
    for attempt in 0..RELEASE_TRIES {
        last = try_free(ask, wire, pod).await;
        if last.is_ok() {
            return;
        }
        tokio::time::sleep(RELEASE_BACKOFF * 2_u32.pow(attempt)).await;
    }
    ask.settle(last);
}

async fn try_free(ask: &Ask<'_>, wire: &Wire, pod: &Pod) -> kube::Result<()> {
    let node = match ask.calls.node(&ask.node.name).await {
        Err(error) if code(&error) == Some(404) => return Ok(()),
        node => node?,
    };
    let lock = node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(LOCK));
    let own = format!(",{},{}", pod.namespace(), pod.name());
    let lockless = matches!(wire.manner, Manner::Lockless(_));
    if !lock.is_some_and(|lock| lockless || !lock.contains(',') || lock.ends_with(&own)) {
        return Ok(());
    }
    let version = node.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {LOCK: null}}});
    ask.calls.patch_node(&ask.node.name, patch).await.map(drop)
}
