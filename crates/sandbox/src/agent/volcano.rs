//! Allocate as volcano-vgpu-device-plugin answers it.
//!
//! It must not know what Berth would do: it stands for another project's program (`pkg/plugin/server.go`, after v1.12).

use std::time::Duration;

use kube::api::ListParams;
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::api::code;
use super::audit::{Grant, Violation};
use super::mig;
use super::plugin::Plugin;
use super::share::{Share, decode, encode_segment};
use super::view::Pod;

const TO_ALLOCATE: &str = "volcano.sh/devices-to-allocate";
const ASSIGNED_NODE: &str = "volcano.sh/vgpu-node";
const ASSIGNED_TIME: &str = "volcano.sh/vgpu-time";
const BIND_PHASE: &str = "volcano.sh/bind-phase";
const LOCK: &str = "hamivgpu";
const VENDOR: &str = "NVIDIA";
/// The plugin takes a pod for done when what is left does not hold this text.
const DEVICE_MARK: &str = "GPU";
/// 2^64 - 1: later than any pod that still waits.
const DONE: &str = "18446744073709551615";
const RELEASE_TRIES: u32 = 5;
const RELEASE_BACKOFF: Duration = Duration::from_millis(100);

/// One container's Allocate. Every failure frees the node, whoever's lock it is.
pub(super) async fn allocate(ask: &Ask<'_>) -> Result<(), Refusal> {
    let outcome = match pending_pod(ask).await {
        Err(refusal) => Err(refusal),
        Ok(pod) => {
            if pod.uid() != ask.pod.uid() {
                let (node, admitting, found) = (ask.node.name.clone(), ask.pod.key(), pod.key());
                ask.note(Violation::WrongPod { node, admitting, found });
            }
            let outcome = serve(ask, &pod).await;
            if outcome.is_err() {
                let closed = json!({BIND_PHASE: "failed", ASSIGNED_TIME: DONE});
                ask.settle(ask.calls.annotate_pod(&pod, closed).await.map(drop));
            }
            outcome
        }
    };
    if outcome.is_err() {
        free_lock(ask, LOCK).await;
    }
    outcome
}

/// Of all pods of the cluster that name this node and have as many devices left as were asked for, the oldest: pods that are being
/// deleted, failed or were served too (`pkg/util/util.go` `getOldestPod`). One without a readable time is the youngest.
async fn pending_pod(ask: &Ask<'_>) -> Result<Pod, Refusal> {
    let pods = ask.calls.pods(&ListParams::default()).await?;
    let left = |pod: &Pod| {
        let text = pod.annotation(TO_ALLOCATE)?;
        Some(decode(text).ok()?.iter().map(Vec::len).sum::<usize>())
    };
    let since =
        |pod: &Pod| pod.annotation(ASSIGNED_TIME).and_then(|time| time.parse().ok()).unwrap_or(u64::MAX);
    let of_node = pods.into_iter().filter(|pod| pod.annotation(ASSIGNED_NODE) == Some(&ask.node.name));
    let fitting = of_node.filter(|pod| left(pod) == Some(ask.wanted));
    fitting.min_by_key(since).ok_or(Refusal::NoPod)
}

async fn serve(ask: &Ask<'_>, pod: &Pod) -> Result<(), Refusal> {
    let text = pod.annotation(TO_ALLOCATE).unwrap_or_default();
    let mut segments = decode(text).map_err(Refusal::Devices)?;
    let ours = |segment: &Vec<Share>| segment.iter().any(|share| share.kind == VENDOR);
    let next = segments.iter().position(ours).ok_or(Refusal::NothingLeft)?;
    let shares = std::mem::take(&mut segments[next]);
    judge(ask, pod, next, &shares);
    if shares.len() != ask.wanted {
        return Err(Refusal::Count { wanted: ask.wanted, found: shares.len() });
    }
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    mig::number(ask, pod, &shares).await?;
    let left: Vec<String> = segments.iter().map(|segment| encode_segment(segment)).collect();
    ask.calls.annotate_pod(pod, json!({TO_ALLOCATE: left.join(";")})).await?;
    finish(ask, pod).await
}

fn judge(ask: &Ask<'_>, pod: &Pod, segment: usize, shares: &[Share]) {
    if pod.uid() != ask.pod.uid() {
        return;
    }
    let container = ask.container();
    if shares.len() != ask.wanted {
        let (pod, container) = (pod.key(), container.name.clone());
        ask.note(Violation::WrongCount { pod, container, asked: ask.wanted, given: shares.len() });
    }
    let grant = Grant { pod, container, segment, shares };
    for violation in grant.judge(ask.node, Plugin::Volcano) {
        ask.note(violation);
    }
}

async fn finish(ask: &Ask<'_>, pod: &Pod) -> Result<(), Refusal> {
    let now = ask.calls.pod(pod.namespace(), pod.name()).await?;
    if now.annotation(TO_ALLOCATE).unwrap_or_default().contains(DEVICE_MARK) {
        return Ok(());
    }
    ask.calls.annotate_pod(pod, json!({BIND_PHASE: "success", ASSIGNED_TIME: DONE})).await?;
    free_lock(ask, LOCK).await;
    Ok(())
}

/// The lock does not say whose it is, and the plugin does not ask.
pub(super) async fn free_lock(ask: &Ask<'_>, lock: &str) {
    let mut last = Ok(());
    for _ in 0..RELEASE_TRIES {
        last = try_free(ask, lock).await;
        if last.is_ok() {
            return;
        }
        tokio::time::sleep(RELEASE_BACKOFF).await;
    }
    ask.settle(last);
}

async fn try_free(ask: &Ask<'_>, lock: &str) -> kube::Result<()> {
    let node = match ask.calls.node(&ask.node.name).await {
        Err(error) if code(&error) == Some(404) => return Ok(()),
        node => node?,
    };
    if !node.metadata.annotations.is_some_and(|annotations| annotations.contains_key(lock)) {
        return Ok(());
    }
    let version = node.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {lock: null}}});
    ask.calls.patch_node(&ask.node.name, patch).await.map(drop)
}
