//! Allocate as Cambricon's own device plugin answers it in the mode `dynamic-smlu`.
//!
//! It must not know what Berth would do: it stands for another project's program (Cambricon/cambricon-k8s-device-plugin
//! `device-plugin/pkg/mlu/server.go` `allocateDynamicSmlu`, `podutils.go`; `pkg/dsmlu/dsmlu.go` `fixNodeLock`).

use jiff::Timestamp;
use kube::api::ListParams;
use serde_json::json;

use super::allocate::{Ask, CutForPod, Refusal};
use super::api::{Calls, code};
use super::audit::{Grant, Violation};
use super::keys::{CAMBRICON_RECORD, CAMBRICON_UNIT};
use super::koordlet::hooks;
use super::metax;
use super::plugin::Spelling;
use super::record::held;
use super::share::{Share, decode};
use super::view::{Container, Pod};

const PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";
const INSTANCE: &str = "CAMBRICON_DSMLU_PROFILE_INSTANCE";
const LOCK: &str = "cambricon.com/dsmlu.lock";

/// One resource's Allocate: the first of a pod cuts the card, the second says so and frees the node. A failure does neither.
pub(super) async fn allocate(ask: &Ask<'_>, spelling: Spelling) -> Result<(), Refusal> {
    let candidate = candidate(ask, spelling).await;
    let made = held(ask.cut).take();
    let pod = candidate?;
    if pod.uid() != ask.pod.uid() {
        let (node, admitting, found) = (ask.node.name.clone(), ask.pod.key(), pod.key());
        ask.note(Violation::WrongPod { node, admitting, found });
    }
    match made.filter(|made| made.pod == pod.name()) {
        Some(made) => finish(ask, &pod, spelling, made).await,
        None => cut(ask, &pod).await,
    }
}

/// The one pod of the node that waits to be served; several are none.
async fn candidate(ask: &Ask<'_>, spelling: Spelling) -> Result<Pod, Refusal> {
    let here = format!("spec.nodeName={},status.phase=Pending", ask.node.name);
    let pods = ask.calls.pods(&ListParams::default().fields(&here)).await?;
    let awaits =
        |pod: &Pod| pod.annotation(spelling.key()) == Some("false") && pod.spec.containers.iter().any(shares);
    let mut waiting: Vec<Pod> = pods.into_iter().filter(awaits).collect();
    let pod = waiting.pop().ok_or(Refusal::NoPod)?;
    if !waiting.is_empty() || pod.spec.containers.iter().filter(|container| shares(container)).count() > 1 {
        return Err(Refusal::Several(waiting.len() + 1));
    }
    Ok(pod)
}

/// Whether the plugin takes the container for one that wants a part of a card: it looks at limits alone.
fn shares(container: &Container) -> bool {
    let limits = container.resources.limits.keys();
    let mut parts =
        limits.filter_map(|name| Some((name, name.strip_prefix("cambricon.com/")?.rsplit('.').next()?)));
    parts.any(|(name, part)| matches!(part, "vcore" | "vmemory") && container.amount(name).is_some())
}

async fn cut(ask: &Ask<'_>, pod: &Pod) -> Result<(), Refusal> {
    let text = pod.annotation(PROFILE).unwrap_or_default();
    let unreadable = || Refusal::Devices(format!("{PROFILE} `{text}`"));
    let numbers: Result<Vec<u64>, _> = text.split('_').map(str::parse).collect();
    let Ok([slot, cores, units]) = numbers.as_deref() else { return Err(unreadable()) };
    if !ask.node.cards.iter().any(|card| u64::from(card.index) == *slot) {
        return Err(unreadable());
    }
    judge(ask, pod, (*slot, *cores, *units), text).await?;
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    let instance = format!("1_{}_{slot}_1", 256 + slot);
    *held(ask.cut) = Some(CutForPod { pod: pod.name().to_owned(), instance });
    Ok(())
}

/// Whether the profile is the pod's recorded share, the share what its container asks for, and the node locked as HAMi's scheduler
/// reads it.
async fn judge(
    ask: &Ask<'_>,
    pod: &Pod,
    (slot, cores, units): (u64, u64, u64),
    text: &str,
) -> Result<(), Refusal> {
    if pod.uid() != ask.pod.uid() {
        return Ok(());
    }
    if pod.annotation(hooks::ALLOCATED).is_some() {
        return judge_koordinators(ask, pod, text).await;
    }
    let record = decode(pod.annotation(CAMBRICON_RECORD).unwrap_or_default()).map_err(Refusal::Devices)?;
    let shares = record.get(ask.place).cloned().unwrap_or_default();
    let described = |share: &Share| {
        let card = ask.node.cards.iter().find(|card| card.uuid == share.uuid);
        card.is_some_and(|card| u64::from(card.index) == slot)
            && u64::try_from(share.cores) == Ok(cores)
            && u64::try_from(share.memory) == Ok(units * CAMBRICON_UNIT)
    };
    if let [share] = &shares[..] {
        if !described(share) {
            let (pod, card, described) = (pod.key(), share.uuid.clone(), text.to_owned());
            ask.note(Violation::WrongTemplate { pod, card, described });
        }
    } else {
        let (pod, container) = (pod.key(), ask.container().name.clone());
        ask.note(Violation::WrongCount { pod, container, asked: 1, given: shares.len() });
    }
    let Some(plugin) = ask.node.plugin else { return Ok(()) };
    let grant = Grant { pod, container: ask.container(), segment: ask.place, shares: &shares };
    grant.judge(ask.node, plugin).into_iter().for_each(|violation| ask.note(violation));
    let lock = lock(ask.calls, &ask.node.name).await?.map(|(value, _)| value).unwrap_or_default();
    if lock.parse::<Timestamp>().is_err() {
        ask.note(Violation::Unlocked { node: ask.node.name.clone(), pod: pod.key(), lock });
    }
    Ok(())
}

/// Whether the profile is what Koordinator's scheduler, or another in its place, has given the pod, and the lock the pod's.
async fn judge_koordinators(ask: &Ask<'_>, pod: &Pod, text: &str) -> Result<(), Refusal> {
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    let given = hooks::given(&annotations).map_err(Refusal::Devices)?.unwrap_or_default();
    if hooks::cambricon(&given, i128::from(CAMBRICON_UNIT) << 20).as_deref() != Some(text) {
        let card = pod.annotation(hooks::ALLOCATED).unwrap_or_default().to_owned();
        ask.note(Violation::WrongTemplate { pod: pod.key(), card, described: text.to_owned() });
    }
    let lock = lock(ask.calls, &ask.node.name).await?.map(|(value, _)| value).unwrap_or_default();
    if metax::holder(&lock) != Some((pod.namespace(), pod.name())) {
        ask.note(Violation::Unlocked { node: ask.node.name.clone(), pod: pod.key(), lock });
    }
    Ok(())
}

async fn finish(ask: &Ask<'_>, pod: &Pod, spelling: Spelling, made: CutForPod) -> Result<(), Refusal> {
    if ask.is_faulty() {
        return Err(Refusal::Told);
    }
    ask.calls.annotate_pod(pod, json!({spelling.key(): "true", INSTANCE: made.instance})).await?;
    if lock(ask.calls, &ask.node.name).await?.is_some() {
        ask.settle(ask.calls.patch_node(&ask.node.name, unlocked(None)).await.map(drop));
    }
    Ok(())
}

/// A pod is gone that was never served: its node is freed, whoever's lock that is.
pub(super) async fn mourn(calls: &Calls, node: &str, pod: &Pod, spelling: Spelling) -> kube::Result<()> {
    let unserved = pod.annotation(spelling.key()) == Some("false") && pod.annotation(PROFILE).is_some();
    if !unserved || !(pod.is_pending() || pod.has_failed()) {
        return Ok(());
    }
    let Some((_, version)) = lock(calls, node).await? else { return Ok(()) };
    match calls.patch_node(node, unlocked(Some(&version))).await {
        // It tries once.
        Err(error) if code(&error) == Some(409) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// The lock's value, and the version of the node that bears it; a node that is gone has none.
async fn lock(calls: &Calls, node: &str) -> kube::Result<Option<(String, String)>> {
    let node = match calls.node(node).await {
        Err(error) if code(&error) == Some(404) => return Ok(None),
        node => node?,
    };
    let value = node.metadata.annotations.and_then(|mut annotations| annotations.remove(LOCK));
    Ok(value.zip(node.metadata.resource_version))
}

fn unlocked(version: Option<&str>) -> serde_json::Value {
    json!({"metadata": {"resourceVersion": version, "annotations": {LOCK: null}}})
}
