//! How HAMi's scheduler counts and chooses, as far as pods of one container with one card need it.
//!
//! Source: HAMi v2.10.0 `pkg/scheduler/scheduler.go`, `pkg/device/pods.go`: a pod counts by its annotations, bound or not.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::take_over::chart::{self, MEMORY, SLOTS};

const NODE: &str = "hami.io/vgpu-node";
const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";

/// What is used of a card.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Used {
    pub(crate) slots: u64,
    pub(crate) memory: u64,
}

/// Adds up devices strings by card; a share that names no card holds nothing.
pub(crate) fn used<'a>(devices: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, Used> {
    let mut used: BTreeMap<String, Used> = BTreeMap::new();
    for share in devices.into_iter().flat_map(|text| text.split([';', ':'])) {
        let fields: Vec<&str> = share.split(',').collect();
        let (false, Some(memory)) = (fields[0].is_empty(), fields.get(2)) else { continue };
        let card = used.entry(fields[0].to_owned()).or_default();
        card.slots += 1;
        card.memory += memory.parse::<u64>().unwrap_or_else(|error| panic!("{share}: {error}"));
    }
    used
}

/// The devices string of a pod that has been placed.
pub(crate) fn devices(pod: &Pod) -> Option<&str> {
    pod.annotations().get(ALLOCATED).map(String::as_str)
}

/// MiB that a pod asks for: of one card, all of it where it does not say.
fn asked(pod: &Pod) -> u64 {
    let limits =
        pod.spec.as_ref().unwrap().containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap();
    limits.get("nvidia.com/gpumem").map_or(MEMORY, |memory| memory.0.parse().unwrap())
}

/// What all pods but this one use.
fn used_by_others(pod: &Pod, pods: &[Pod]) -> BTreeMap<String, Used> {
    let ended = |pod: &&Pod| !matches!(crate::take_over::seen::phase(pod), "Succeeded" | "Failed");
    let others = pods.iter().filter(ended).filter(|other| other.uid() != pod.uid());
    used(others.filter(|other| other.annotations().contains_key(NODE)).filter_map(devices))
}

fn fits(uuid: &str, memory: u64, used: &BTreeMap<String, Used>) -> bool {
    let card = used.get(uuid).copied().unwrap_or_default();
    card.slots < SLOTS && card.memory + memory <= MEMORY
}

/// Node and devices string for a pod among all pods; `None` where no card has room.
pub(crate) fn choose(pod: &Pod, pods: &[Pod]) -> Option<(&'static str, String)> {
    let (used, memory) = (used_by_others(pod, pods), asked(pod));
    let cards = chart::cards().into_iter();
    let mut cards = cards.flat_map(|(node, uuids)| uuids.into_iter().map(move |uuid| (node, uuid)));
    let (node, uuid) = cards.find(|(_, uuid)| fits(uuid, memory, &used))?;
    Some((node, format!("{uuid},NVIDIA,{memory},0:;")))
}

/// Whether the card of a devices string still has room for the pod.
pub(crate) fn still_fits(pod: &Pod, devices: &str, pods: &[Pod]) -> bool {
    let uuid = devices.split(',').next().unwrap_or_default();
    fits(uuid, asked(pod), &used_by_others(pod, pods))
}
