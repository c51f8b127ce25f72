//! Which MIG slices a pod was given, as HAMi's plugin reads it beside the assignment.
//!
//! Source: HAMi v2.10 `pkg/device/nvidia/mig_allocations.go`. The scheduler writes profile and placement; the plugin adds the ids of
//! the instance that it made, which are kept out of here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::names;
use crate::{
    device::{Assignment, ContainerShares, Cores, MiB, Role, Share, Slice, SlicePlacement},
    dialect::{Problem, Unreadable, segments},
};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct MigEntry {
    container_index: u32,
    device_index: u32,
    #[serde(rename = "gpuUUID")]
    card: String,
    profile: String,
    placement: MigPlace,
    #[serde(rename = "migUUID", default, skip_serializing)]
    instance: String,
    #[serde(rename = "gpuInstanceID", default, skip_serializing)]
    gpu_instance: Option<i64>,
    #[serde(rename = "computeInstanceID", default, skip_serializing)]
    compute_instance: Option<i64>,
}

/// A placement on the wire, here and in registrations; a start of 0 may be left out.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct MigPlace {
    pub(super) start: u32,
    pub(super) size: u32,
}

impl From<MigPlace> for SlicePlacement {
    fn from(MigPlace { start, size }: MigPlace) -> Self {
        Self { start, size }
    }
}

/// The value of the annotation; `None` where no share is a placed slice.
pub(super) fn write(assignment: &Assignment) -> Option<String> {
    let shares = assignment.containers.iter().enumerate().flat_map(|(container, shares)| {
        shares.shares.iter().enumerate().map(move |(device, share)| (container, device, share))
    });
    let entries: Vec<_> =
        shares.filter_map(|(container, device, share)| entry(container, device, share)).collect();
    (!entries.is_empty())
        .then(|| serde_json::to_string(&entries).expect("numbers and strings always serialise"))
}

fn entry(container: usize, device: usize, share: &Share) -> Option<MigEntry> {
    let Some(Slice::Placed { profile, placement }) = share.slice.as_deref() else { return None };
    Some(MigEntry {
        container_index: u32::try_from(container).ok()?,
        device_index: u32::try_from(device).ok()?,
        card: share.card.to_string(),
        profile: profile.to_string(),
        placement: MigPlace { start: placement.start, size: placement.size },
        instance: String::new(),
        gpu_instance: None,
        compute_instance: None,
    })
}

/// Fits the slices of the annotation's value to the shares of the assignment: each to the next share of its card that has none.
///
/// A slice without a share is charged all the same, as an app container's.
pub(super) fn apply(text: &str, assignment: &mut Assignment) -> Result<(), Unreadable> {
    for entry in
        read(text).map_err(|message| Unreadable::annotation(Problem::Assignment, names::MIG, message))?
    {
        let slice = Slice::Placed { profile: entry.profile.into(), placement: entry.placement.into() };
        let mut shares = assignment.containers.iter_mut().flat_map(|container| &mut container.shares);
        let share = shares.find(|share| share.card.as_str() == entry.card && share.slice.is_none());
        if let Some(share) = share {
            share.slice = Some(Box::new(slice));
            continue;
        }
        let card = entry.card.into();
        let share = Share { card, memory: MiB::default(), cores: Cores::NONE, slice: Some(Box::new(slice)) };
        assignment.containers.push(ContainerShares { role: Role::App, shares: vec![share] });
    }
    Ok(())
}

fn read(text: &str) -> Result<Vec<MigEntry>, String> {
    let entries: Vec<MigEntry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let refuse = |what: &str| Err(format!("slice {at} {what}"));
        let known =
            [!entry.instance.is_empty(), entry.gpu_instance.is_some(), entry.compute_instance.is_some()];
        if !segments::can_name(&entry.card) {
            return refuse("names no card");
        }
        if entry.profile.is_empty() {
            return refuse("names no profile");
        }
        if entry.placement.size == 0 {
            return refuse("has no size");
        }
        if known.contains(&true) && known.contains(&false) {
            return refuse("has some ids of its instance, but not all three");
        }
        if !seen.insert((entry.container_index, entry.device_index)) {
            return refuse("is of the same container and device as another");
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_without_a_share_is_charged_all_the_same() {
        let text = r#"[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.5gb","placement":{"start":6,"size":1}}]"#;
        let mut assignment = Assignment::default();
        apply(text, &mut assignment).unwrap();
        let slices: Vec<_> = assignment.shares().filter_map(|share| share.slice.as_ref()).collect();
        assert_eq!(slices.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1g.5gb@6:1"]);
    }

    #[test]
    fn a_card_that_no_segment_could_name_is_refused() {
        let text = r#"[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU,a","profile":"1g.5gb","placement":{"size":1}}]"#;
        let error = apply(text, &mut Assignment::default()).unwrap_err();
        assert_eq!(error.message, "slice 0 names no card");
    }

    #[test]
    fn what_is_written_is_the_schedulers_part_only() {
        let slice =
            Slice::Placed { profile: "2g.10gb".into(), placement: SlicePlacement { start: 2, size: 2 } };
        let share = |slice| Share { card: "GPU-a".into(), memory: MiB::new(1), cores: Cores::NONE, slice };
        let container = |shares| ContainerShares { role: Role::App, shares };
        let containers = vec![container(vec![]), container(vec![share(None), share(Some(Box::new(slice)))])];
        let assignment = Assignment { containers, ..Assignment::default() };
        let wanted = r#"[{"containerIndex":1,"deviceIndex":1,"gpuUUID":"GPU-a","profile":"2g.10gb","placement":{"start":2,"size":2}}]"#;
        assert_eq!(write(&assignment).as_deref(), Some(wanted));
    }
}
