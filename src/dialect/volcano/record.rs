//! A pod's assignment, as Volcano's vGPU plugin reads it.
//!
//! Source: Volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go`, `device_info.go`. Segments are joined by `;` without a trailing one; an empty
//! segment stands for a container that asked nothing, so that the plugin's index hits the right container.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{VolcanoSettings, mark, names};
use crate::{
    device::{Assignment, MiB, Role},
    dialect::{Carried, Record, Unreadable, segments},
    object::Pod,
};

/// The assignment that a pod carries.
pub(super) fn read(
    pod: &Pod,
    asks: &[bool],
    settings: &VolcanoSettings,
) -> Result<Option<Carried>, Unreadable> {
    let Some(text) = pod.metadata.annotation(names::IDS) else {
        return Ok(None);
    };
    // Our own segments name app containers only; without init containers that is every container.
    let node = pod.metadata.annotation(names::NODE).map(str::to_owned);
    let mut carried = segments::carried((names::IDS, text), pod, asks, node)?;
    scale(&mut carried.assignment, |units| units.saturating_mul(settings.memory_factor.max(1).into()));
    carried.assignment.marks = mark::borne(pod, &settings.exclusive_rules);
    carried.assignment.written = written(pod);
    Ok(Some(carried))
}

/// The annotations of an assignment.
pub(super) fn write(assignment: &Assignment, node: &str, now: Timestamp, memory_factor: u32) -> Record {
    let mut assignment = assignment.clone();
    scale(&mut assignment, |mib| mib / u64::from(memory_factor.max(1)));
    let apps = assignment.containers.iter().filter(|container| container.role == Role::App);
    let devices: Vec<_> =
        apps.map(|container| segments::encode_container(container, segments::NVIDIA)).collect();
    let devices = devices.join(";");
    let now = assignment.written.map_or(now, |earliest| earliest.max(now));
    let seconds = now.as_second().to_string();
    let annotations = [
        (names::NODE, node.to_owned()),
        (names::TIME, seconds.clone()),
        (names::IDS, devices.clone()),
        (names::TO_ALLOCATE, devices),
        (names::BIND_PHASE, "allocating".to_owned()),
        (names::BIND_TIME, seconds),
    ];
    let annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Record { annotations, labels: BTreeMap::new() }
}

/// When the assignment was written; the plugin sets the time of a pod that it is done with to 2^64 − 1, which is none.
fn written(pod: &Pod) -> Option<Timestamp> {
    Timestamp::from_second(pod.metadata.annotation(names::TIME)?.parse().ok()?).ok()
}

fn scale(assignment: &mut Assignment, convert: impl Fn(u64) -> u64) {
    for share in assignment.containers.iter_mut().flat_map(|container| &mut container.shares) {
        share.memory = MiB::new(convert(share.memory.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_never_dated_before_the_last_on_its_node() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let time = |written, now| {
            let assignment = Assignment { written, ..Assignment::default() };
            write(&assignment, "node", now, 1).annotations[names::TIME].clone()
        };
        assert_eq!(time(None, at(100)), "100");
        assert_eq!(time(Some(at(51)), at(100)), "100");
        assert_eq!(time(Some(at(101)), at(100)), "101");
    }

    #[test]
    fn the_time_of_a_pod_that_is_done_is_none() {
        let pod = |time: &str| -> Pod {
            let annotations = serde_json::json!({names::TIME: time});
            serde_json::from_value(serde_json::json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        assert_eq!(written(&pod("1700000000")), Timestamp::from_second(1_700_000_000).ok());
        assert_eq!(written(&pod("18446744073709551615")), None);
        assert_eq!(written(&pod("soon")), None);
    }
}
