//! Allocate as MetaX' own device plugin answers it in the mode `sgpu`, on a node of Koordinator's.
//!
//! The plugin is not published. That it reads this annotation, wants this lock and takes it away is said by koordinator a7a1b76
//! `pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go`; that it finds its pod by the lock is taken from why there is one.

use serde::Deserialize;
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::audit::Violation;
use super::koordlet::{CORE, MEMORY, hooks};
use super::view::Pod;

const ALLOCATED: &str = "metax-tech.com/gpu-devices-allocated";
const LOCK: &str = "hami.io/mutex.lock";

/// A share as the plugin reads it.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Share {
    uuid: String,
    /// Percent.
    compute: i128,
    /// MiB.
    v_ram: i128,
}

/// The namespace and the name of the pod that a lock of Koordinator's names.
pub(super) fn holder(lock: &str) -> Option<(&str, &str)> {
    let (since, pod) = lock.split_once(',')?;
    since.parse::<jiff::Timestamp>().ok()?;
    pod.split_once(',')
}

/// Gives the pod that holds the lock its shares, and frees the node. A failure frees nothing.
pub(super) async fn allocate(ask: &Ask<'_>) -> Result<(), Refusal> {
    let node = ask.calls.node(&ask.node.name).await?;
    let lock = node.metadata.annotations.and_then(|mut own| own.remove(LOCK)).unwrap_or_default();
    let Some((namespace, name)) = holder(&lock) else {
        ask.note(Violation::Unlocked { node: ask.node.name.clone(), pod: ask.pod.key(), lock: lock.clone() });
        return Err(Refusal::Unlocked(lock));
    };
    let pod = ask.calls.pod(namespace, name).await?;
    if pod.uid() != ask.pod.uid() {
        let (node, admitting, found) = (ask.node.name.clone(), ask.pod.key(), pod.key());
        ask.note(Violation::WrongPod { node, admitting, found });
    }
    let text = pod.annotation(ALLOCATED).unwrap_or_default();
    judge(ask, &pod, text)?;
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    let unlocked = json!({"metadata": {"annotations": {LOCK: null}}});
    ask.calls.patch_node(&ask.node.name, unlocked).await?;
    Ok(())
}

/// Whether these are shares of the node's cards, and just what the pod was given by the scheduler.
fn judge(ask: &Ask<'_>, pod: &Pod, text: &str) -> Result<(), Refusal> {
    let unreadable = |reason: String| Refusal::Devices(format!("{ALLOCATED} `{text}`: {reason}"));
    let shares: Vec<Vec<Share>> =
        serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let [shares] = &shares[..] else { return Err(unreadable("it is not one list in a list".to_owned())) };
    let gpus = || ask.node.koordlet.iter().flat_map(|koordlet| &koordlet.gpus);
    if shares.is_empty() || shares.iter().any(|share| !gpus().any(|gpu| gpu.uuid == share.uuid)) {
        return Err(unreadable("it names no card, or one that the node has not".to_owned()));
    }
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    let given = hooks::given(&annotations).map_err(Refusal::Devices)?.unwrap_or_default();
    let wanted = hooks::of(&given, "gpu").iter().map(|gpu| {
        let (compute, memory) = (gpu.amount(CORE)?, gpu.amount(MEMORY)?);
        Some(Share { uuid: gpu.id.clone(), compute, v_ram: memory >> 20 })
    });
    let wanted: Option<Vec<Share>> = wanted.collect();
    if wanted.as_ref() != Some(shares) {
        let card = pod.annotation(hooks::ALLOCATED).unwrap_or_default().to_owned();
        ask.note(Violation::WrongTemplate { pod: pod.key(), card, described: text.to_owned() });
    }
    Ok(())
}
