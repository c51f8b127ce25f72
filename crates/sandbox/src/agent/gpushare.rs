//! Allocate as Volcano's older device plugin answers it, which gives cards by number.
//!
//! It must not know what Berth would do: it stands for another project's program (volcano-sh/devices `pkg/plugin/nvidia/server.go`, 95b591b).

use kube::api::ListParams;
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::audit::Violation;
use super::node::Node;
use super::strategy::{INDEX, Strategy, indices};
use super::view::{Container, Pod};
use super::volcano::free_lock;

pub(super) const UNHEALTHY: &str = "volcano.sh/gpu-unhealthy-ids";
const TIME: &str = "volcano.sh/predicate-time";
const ASSIGNED: &str = "volcano.sh/gpu-assigned";
const LOCK: &str = "gpu";

/// One container's Allocate. The node is freed however it ends.
pub(super) async fn allocate(ask: &Ask<'_>, strategy: Strategy) -> Result<(), Refusal> {
    let pod = pending_pod(ask, strategy).await?;
    let outcome = match pod {
        None => Err(Refusal::NoPod),
        Some(pod) => serve(ask, strategy, &pod).await,
    };
    free_lock(ask, LOCK).await;
    outcome
}

/// Of the node's pods that wait and are neither served nor on their way out, the oldest with a container of just so many.
async fn pending_pod(ask: &Ask<'_>, strategy: Strategy) -> Result<Option<Pod>, Refusal> {
    let here = format!("spec.nodeName={},status.phase=Pending", ask.node.name);
    let pods = ask.calls.pods(&ListParams::default().fields(&here)).await?;
    let fits = |container: &Container| {
        container
            .amount(strategy.names().count)
            .is_some_and(|amount| usize::try_from(amount) == Ok(ask.wanted))
    };
    let awaits = |pod: &Pod| {
        let served = !matches!(pod.annotation(ASSIGNED), None | Some("false"));
        !served && !pod.is_terminating() && pod.spec.containers.iter().any(fits)
    };
    let since = |pod: &Pod| pod.annotation(TIME).and_then(|time| time.parse().ok()).unwrap_or(u64::MAX);
    Ok(pods.into_iter().filter(awaits).min_by_key(since))
}

async fn serve(ask: &Ask<'_>, strategy: Strategy, pod: &Pod) -> Result<(), Refusal> {
    if pod.uid() != ask.pod.uid() {
        let (node, admitting, found) = (ask.node.name.clone(), ask.pod.key(), pod.key());
        ask.note(Violation::WrongPod { node, admitting, found });
    }
    let indices = indices(pod.annotation(INDEX).unwrap_or_default()).map_err(Refusal::Devices)?;
    if let Some(unknown) = indices.iter().find(|index| !is_known(ask.node, **index)) {
        return Err(Refusal::Devices(format!("no card {unknown}")));
    }
    let given = if strategy == Strategy::Cards { ask.wanted } else { 1 };
    if indices.len() != given {
        let (pod, container) = (pod.key(), ask.container().name.clone());
        ask.note(Violation::WrongCount { pod, container, asked: given, given: indices.len() });
    }
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    ask.calls.annotate_pod(pod, json!({ASSIGNED: "true"})).await?;
    Ok(())
}

fn is_known(node: &Node, index: u32) -> bool {
    node.cards.iter().any(|card| card.index == index)
}
