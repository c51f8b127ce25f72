//! MIG slices as device plugins make them: what a card can be cut into, and whether a slice is free.
//!
//! It must not choose a slice: the scheduler wrote which one is whose.

use std::collections::BTreeMap;

use kube::api::ListParams;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::audit::Violation;
use super::node::Card;
use super::share::{Share, decode};
use super::view::Pod;
use super::volcano;

/// HAMi v2.10 `pkg/device/nvidia/mig_allocations.go`
const ALLOCATIONS: &str = "hami.io/vgpu-mig-allocations";

/// How a card may be cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Not at all.
    #[default]
    Whole,
    /// Slice by slice, as NVML tells HAMi's plugin.
    Placed(Vec<Profile>),
    /// All at once: the number of slices of each group in the configuration of Volcano's plugin.
    Grouped(BTreeMap<String, u32>),
}

/// One kind of slice, as HAMi's plugin registers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// As `1g.5gb`.
    pub name: String,
    /// MiB.
    #[serde(rename = "memoryMB")]
    pub memory: u64,
    /// Percent of the card, rounded up.
    pub core: u64,
    /// Compute slices.
    pub slice_count: u32,
    /// Where it may lie.
    pub placements: Vec<Place>,
}

/// Where a slice lies, in memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The first one.
    #[serde(default)]
    pub start: u32,
    /// How many.
    pub size: u32,
}

impl Place {
    fn overlaps(self, other: Place) -> bool {
        self.start < other.start + other.size && other.start < self.start + self.size
    }
}

impl Cut {
    /// What HAMi's plugin registers of an A100 of 40 GB, its media extensions left out: memory and places as NVML has them, compute as the
    /// slice's part of 98 multiprocessors, of which each of the 7 compute slices has 14, rounded up (v2.10
    /// `nvinternal/plugin/register.go` `discoverMigProfiles`).
    pub fn a100_40gb() -> Self {
        let profile = |name: &str, memory, core, slice_count, size, starts: &[u32]| Profile {
            name: name.to_owned(),
            memory,
            core,
            slice_count,
            placements: starts.iter().map(|&start| Place { start, size }).collect(),
        };
        Cut::Placed(vec![
            profile("1g.5gb", 4864, 15, 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
            profile("2g.10gb", 9856, 29, 2, 2, &[0, 2, 4]),
            profile("3g.20gb", 19_968, 43, 3, 4, &[0, 4]),
            profile("4g.20gb", 19_968, 58, 4, 4, &[0]),
            profile("7g.40gb", 40_192, 100, 7, 8, &[0]),
        ])
    }
}

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
            let held = decode(other.annotation(volcano::ALLOCATED).unwrap_or_default()).unwrap_or_default();
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

impl Card {
    /// In MIG mode, to be cut like this.
    #[must_use]
    pub fn mig(mut self, cut: Cut) -> Self {
        "mig".clone_into(&mut self.mode);
        self.cut = cut;
        self
    }
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
