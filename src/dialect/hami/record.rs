//! A pod's assignment, as HAMi's device plugin reads it.
//!
//! Source: HAMi v2.10 `pkg/device/devices.go`, `pkg/scheduler/scheduler.go` (`Filter`, `Bind`). We write a padded segment for
//! each container, init containers first, which every plugin since v2.4 reads; v2.10.0's own scheduler loses that padding.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{mig, names};
use crate::{
    device::{Assignment, ContainerShares},
    dialect::{Carried, Record, Unreadable, segments},
    object::Pod,
};

/// The largest label value; a longer node name is left out, since the API server would take the Binding and then refuse every
/// later status update of the pod.
const LONGEST_LABEL: usize = 63;

/// The assignment that a pod carries.
pub(super) fn read(pod: &Pod, asks: &[bool]) -> Result<Option<Carried>, Unreadable> {
    let Some(text) = pod.metadata.annotation(names::ALLOCATED) else {
        return Ok(None);
    };
    let mut carried = segments::carried((names::ALLOCATED, text), pod, asks, node(pod))?;
    if let Some(slices) = pod.metadata.annotation(names::MIG) {
        let applied = mig::apply(slices, &mut carried.assignment);
        carried.unread.extend(applied.err());
    }
    Ok(Some(carried))
}

/// The node that HAMi's scheduler, whichever the vendor, has chosen for a pod.
pub(in crate::dialect) fn node(pod: &Pod) -> Option<String> {
    pod.metadata.annotation(names::NODE).map(str::to_owned)
}

/// The pod devices string: a segment for each container, each ended by `;`.
pub(in crate::dialect) fn devices(assignment: &Assignment, word: &str) -> String {
    let terminated = |container: &ContainerShares| segments::encode_container(container, word) + ";";
    assignment.containers.iter().map(terminated).collect()
}

/// The annotations and the label of an assignment.
pub(super) fn write(assignment: &Assignment, node: &str, now: Timestamp, word: &str) -> Record {
    let devices = devices(assignment, word);
    let own = [(names::TO_ALLOCATE, devices.clone()), (names::ALLOCATED, devices)];
    let slices = mig::write(assignment).map(|slices| (names::MIG, slices));
    around(node, now, own.into_iter().chain(slices))
}

/// What is written for every vendor, and the annotations of one.
pub(in crate::dialect) fn around<'a>(
    node: &str,
    now: Timestamp,
    own: impl IntoIterator<Item = (&'a str, String)>,
) -> Record {
    let seconds = now.as_second().to_string();
    let annotations = [
        (names::NODE, node.to_owned()),
        (names::TIME, seconds.clone()),
        (names::BIND_PHASE, "allocating".to_owned()),
        (names::BIND_TIME, seconds),
    ];
    let fits = node.len() <= LONGEST_LABEL;
    let labels = fits.then(|| (names::NODE.to_owned(), node.to_owned()));
    Record {
        annotations: annotations.into_iter().chain(own).map(|(key, value)| (key.to_owned(), value)).collect(),
        labels: labels.into_iter().collect::<BTreeMap<_, _>>(),
    }
}
