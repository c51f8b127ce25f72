//! MIG slices as device plugins make them: whether a slice can be cut, and whether it is free.
//!
//! It must not choose a slice: the scheduler wrote which one is whose.

use kube::api::ListParams;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::audit::Violation;
use super::cut::{Cut, Place};
use super::keys::VOLCANO_ALLOCATED;
use super::share::{Share, decode};
use super::view::Pod;

/// HAMi v2.10 `pkg/device/nvidia/mig_allocations.go`
const ALLOCATIONS: &str = "hami.io/vgpu-mig-allocations";

/// One slice of a pod in the annotation: the scheduler's part, and the instance's ids once the plugin has made it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    container_index: usize,
    device_index: usize,
    #[serde(rename = "gpuUUID")]
    card: String,
    profile: String,
    placement: Place,
    #[serde(rename = "migUUID", default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(rename = "gpuInstanceID", default, skip_serializing_if = "Option::is_none")]
    gpu_instance: Option<u32>,
    #[serde(rename = "computeInstanceID", default, skip_serializing_if = "Option::is_none")]
    compute_instance: Option<u32>,
}

/// Makes the slices that HAMi's scheduler placed for one segment, and writes their ids beside them.
pub(super) async fn place(ask: &Ask<'_>, pod: &Pod, segment: usize, shares: &[Share]) -> Result<(), Refusal> {
    let sliced = |share: &Share| matches!(ask.node.cut(share.card()), Some(Cut::Placed(_)));
    if !shares.iter().any(sliced) {
        return Ok(());
    }
    let mut entries = entries(pod)?;
    let of_node = ListParams::default().fields(&format!("spec.nodeName={}", ask.node.name));
    let neighbours: Vec<Pod> = others(ask.calls.pods(&of_node).await?, pod);
    for (position, share) in shares.iter().enumerate().filter(|(_, share)| sliced(share)) {
        let own = |entry: &&mut Entry| entry.container_index == segment && entry.device_index == position;
        let missing = || Refusal::Slice(format!("segment {segment} has no slice for device {position}"));
        let entry = entries.iter_mut().find(own).ok_or_else(missing)?;
        check(entry, share, ask.node.cut(share.card()))?;
        if let Some(holder) = neighbours.iter().find(|other| holds(other, entry)) {
            return Err(taken(ask, pod, holder, &format!("{} of {}", entry.profile, entry.card)));
        }
        let id = entry.placement.start + 1;
        entry.instance = Some(format!("MIG-{}-{id}", entry.card));
        (entry.gpu_instance, entry.compute_instance) = (Some(id), Some(0));
    }
    let text = serde_json::to_string(&entries).expect("strings and numbers are always JSON");
    ask.calls.annotate_pod(pod, json!({ALLOCATIONS: text})).await?;
    Ok(())
}

fn entries(pod: &Pod) -> Result<Vec<Entry>, Refusal> {
    let text = pod.annotation(ALLOCATIONS).unwrap_or("[]");
    serde_json::from_str(text).map_err(|error| Refusal::Slice(format!("`{text}`: {error}")))
}

/// Pods that may still hold what the plugin gave them.
fn others(pods: Vec<Pod>, pod: &Pod) -> Vec<Pod> {
    pods.into_iter().filter(|other| other.uid() != pod.uid() && !other.is_terminal()).collect()
}

fn check(entry: &Entry, share: &Share, cut: Option<&Cut>) -> Result<(), Refusal> {
    let Some(Cut::Placed(profiles)) = cut.filter(|_| entry.card == share.card()) else {
        return Err(Refusal::Slice(format!("the slice lies on {}, the share on {}", entry.card, share.uuid)));
    };
    let known = profiles.iter().find(|profile| profile.name == entry.profile);
    let known = known.filter(|profile| profile.placements.contains(&entry.placement));
    let fits = known.filter(|profile| u64::try_from(share.memory) == Ok(profile.memory));
    let unknown = || Refusal::Slice(format!("{} cannot be cut as {entry:?} for {share:?}", entry.card));
    fits.map(drop).ok_or_else(unknown)
}

/// Whether another pod has an instance where this slice is to lie.
fn holds(other: &Pod, wanted: &Entry) -> bool {
    let there = |entry: Entry| {
        entry.instance.is_some() && entry.card == wanted.card && entry.placement.overlaps(wanted.placement)
    };
    entries(other).unwrap_or_default().into_iter().any(there)
}

/// Finds the slices that Volcano's scheduler numbered for one segment; a card that others use is not cut anew.
pub(super) async fn number(ask: &Ask<'_>, pod: &Pod, shares: &[Share]) -> Result<(), Refusal> {
    let sliced = |share: &&Share| matches!(ask.node.cut(share.card()), Some(Cut::Grouped(_)));
    if !shares.iter().any(|share| sliced(&share)) {
        return Ok(());
    }
    let neighbours = others(ask.calls.pods(&ListParams::default()).await?, pod);
    for share in shares.iter().filter(sliced) {
        let unknown = || Refusal::Slice(format!("{} is no slice of its card", share.uuid));
        let (group, position) = share.slice().ok_or_else(unknown)?;
        let Some(Cut::Grouped(groups)) = ask.node.cut(share.card()) else { return Err(unknown()) };
        groups.get(group).filter(|&&slices| position < slices).ok_or_else(unknown)?;
        let in_the_way = |other: &&Pod| {
            let held = decode(other.annotation(VOLCANO_ALLOCATED).unwrap_or_default()).unwrap_or_default();
            let beside = held.iter().flatten().filter(|held| held.card() == share.card());
            beside.filter_map(Share::slice).any(|held| held.0 != group || held.1 == position)
        };
        if let Some(holder) = neighbours.iter().find(in_the_way) {
            return Err(taken(ask, pod, holder, &share.uuid));
        }
    }
    Ok(())
}

fn taken(ask: &Ask<'_>, pod: &Pod, holder: &Pod, slice: &str) -> Refusal {
    let (pod, holder, slice) = (pod.key(), holder.key(), slice.to_owned());
    ask.note(Violation::SliceTaken { pod: pod.clone(), slice: slice.clone(), holder: holder.clone() });
    Refusal::Slice(format!("{slice} is held by {holder}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_must_be_one_that_the_card_can_be_cut_into() {
        let share = |memory| Share { uuid: "GPU-a".to_owned(), kind: "NVIDIA".to_owned(), memory, cores: 15 };
        let entry = |profile: &str, start| -> Entry {
            let placement = json!({"start": start, "size": 1});
            serde_json::from_value(json!({
                "containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-a", "profile": profile, "placement": placement,
            }))
            .unwrap()
        };
        let cut = Cut::a100_40gb();
        check(&entry("1g.5gb", 6), &share(4864), Some(&cut)).unwrap();
        check(&entry("1g.5gb", 7), &share(4864), Some(&cut)).unwrap_err();
        check(&entry("1g.6gb", 6), &share(4864), Some(&cut)).unwrap_err();
        check(&entry("1g.5gb", 6), &share(4000), Some(&cut)).unwrap_err();
        check(&entry("1g.5gb", 6), &share(4864), Some(&Cut::Whole)).unwrap_err();
    }
}
