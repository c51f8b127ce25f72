//! A pod's assignment, as Volcano's vGPU plugin reads it.
//!
//! Source: Volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go`, `device_info.go`. Segments are joined by `;` without a trailing one; an empty
//! segment stands for a container that asked nothing, so that the plugin's index hits the right container.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Settings, mark, names};
use crate::{
    device::{Assignment, MiB, Role},
    dialect::{Carried, Problem, Record, Unreadable, segments},
    object::Pod,
};

/// Microseconds in Unix time from which assignments are dated backwards, in the year 2096: far above the seconds that others write.
const LATEST: i64 = 4_000_000_000_000_000;
/// What is below this is seconds, by another scheduler.
const SECONDS_BELOW: i64 = 1_000_000_000_000;

/// The assignment that a pod carries.
pub(super) fn read(pod: &Pod, asks: &[bool], settings: &Settings) -> Result<Option<Carried>, Unreadable> {
    let Some(text) = pod.metadata.annotation(names::IDS) else {
        return Ok(None);
    };
    // Our own segments name app containers only; without init containers that is every container.
    let mut assignment = segments::decode(text, pod, asks)
        .map_err(|message| Unreadable::annotation(Problem::Assignment, names::IDS, message))?;
    scale(&mut assignment, |units| units.saturating_mul(settings.memory_factor.max(1).into()));
    assignment.marks = mark::borne(pod, &settings.exclusive_rules);
    assignment.written = written(pod);
    let node = pod.metadata.annotation(names::NODE).map(str::to_owned);
    Ok(Some(Carried { assignment, node }))
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
        (names::TIME, rank(now).to_string()),
        (names::IDS, devices.clone()),
        (names::TO_ALLOCATE, devices),
        (names::BIND_PHASE, "allocating".to_owned()),
        (names::BIND_TIME, seconds),
    ];
    let annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Record { annotations, labels: BTreeMap::new() }
}

/// What the plugin serves the pods of a node by, the smallest first: it shrinks as time goes on.
///
/// The plugin looks at pods that have ended as well, and at those whose Allocate has failed (volcano-vgpu-device-plugin v1.12
/// `pkg/plugin/util/util.go` `GetPendingPod`): dated by the clock, one such pod would be served in place of the next, that one in
/// place of the one after it, and so on for ever. Dated backwards, the pod that was bound last comes first, and no other of ours is
/// on its way.
fn rank(now: Timestamp) -> i64 {
    LATEST.saturating_sub(now.as_microsecond()).max(SECONDS_BELOW)
}

/// When the assignment was written; the plugin sets the time of a pod that it is done with to 2^64 − 1, which is none.
fn written(pod: &Pod) -> Option<Timestamp> {
    let rank: i64 = pod.metadata.annotation(names::TIME)?.parse().ok()?;
    if rank < SECONDS_BELOW {
        return Timestamp::from_second(rank).ok();
    }
    Timestamp::from_microsecond(LATEST - rank).ok()
}

fn scale(assignment: &mut Assignment, convert: impl Fn(u64) -> u64) {
    for share in assignment.containers.iter_mut().flat_map(|container| &mut container.shares) {
        share.memory = MiB::new(convert(share.memory.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(microsecond: i64) -> Timestamp {
        Timestamp::from_microsecond(1_700_000_000_000_000 + microsecond).unwrap()
    }

    /// What the plugin compares.
    fn ranked(written: Option<Timestamp>, now: Timestamp) -> u64 {
        let assignment = Assignment { written, ..Assignment::default() };
        write(&assignment, "node", now, 1).annotations[names::TIME].parse().unwrap()
    }

    #[test]
    fn what_is_written_later_is_served_before_what_an_ended_pod_has_left() {
        assert!(ranked(None, at(1)) < ranked(None, at(0)), "also within one second");
        let last = Some(at(51));
        assert_eq!(ranked(last, at(100)), ranked(None, at(100)), "the clock has gone on");
        assert!(ranked(last, at(0)) < ranked(None, at(50)), "the clock of another replica is behind");
        assert!(ranked(None, at(0)) < u64::MAX, "a pod that the plugin is done with comes last");
    }

    #[test]
    fn a_time_is_read_as_it_was_written() {
        let read = |time: String| {
            let annotations = serde_json::json!({names::TIME: time});
            let pod = serde_json::json!({"metadata": {"annotations": annotations}});
            written(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(read(ranked(None, at(7)).to_string()), Some(at(7)));
        let of_another_scheduler = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(read("1700000000".to_owned()), Some(of_another_scheduler));
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
