//! Unknown policies and modes: an unknown policy is a warning, since it has no effect; an unknown mode is a denial, since no card matches
//! it.
//!
//! Source of the words: HAMi v2.10 `pkg/util/types.go`, volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go`.

use std::collections::BTreeSet;

use super::{findings::ReviewFindings, modes::Ways, rules};
use crate::{
    device::DeviceType,
    dialect::{SharingMode, go_bool, hami, koordinator, unreadable::annotation_path, volcano},
    excerpt::{VALUE, excerpt},
    object::Metadata,
};

/// Unknown words of one list that are named.
const MOST_NAMED: usize = 8;

/// The longest JSON about devices: the values of its selectors are compared with the labels of each device of a cluster.
const LONGEST_JSON: usize = 16 * 1024;

const CARD_POLICIES: [&str; 6] = ["binpack", "spread", "topology-aware", "mutex", "numa", "least-waste"];
const NODE_POLICIES: [&str; 3] = ["binpack", "spread", "least-waste"];
const CARD_MODES: [&str; 3] = ["hami-core", "mig", "mps"];
const NODE_MODES: [&str; 2] = ["hami-core", "mig"];

/// Judges the words of the modes that the pod asks in.
pub fn judge(findings: &mut ReviewFindings, metadata: &Metadata, ways: &Ways) {
    for mode in ways.modes() {
        match mode {
            SharingMode::Hami => of_hami(findings, metadata),
            SharingMode::Vgpu => of_volcano(findings, metadata),
            SharingMode::Vendor(name) if name.as_str() == koordinator::NAME => {
                of_koordinator(findings, metadata);
            }
            SharingMode::Vendor(_) => policies(findings, metadata),
            SharingMode::GpuShare | SharingMode::GpuNumber => {}
        }
    }
}

/// What HAMi's scheduler reads for every vendor.
fn policies(findings: &mut ReviewFindings, metadata: &Metadata) {
    use hami::names;
    let parts = |key| metadata.annotation(key).into_iter().flat_map(|value| value.split(',')).map(str::trim);
    let unknown: BTreeSet<_> =
        parts(names::CARD_POLICY).filter(|part| !CARD_POLICIES.contains(part)).collect();
    for part in unknown.iter().take(MOST_NAMED) {
        ignored(findings, names::CARD_POLICY, part, &CARD_POLICIES);
    }
    if let Some(rest) = unknown.len().checked_sub(MOST_NAMED).filter(|rest| *rest > 0) {
        let message = format!("{rest} more values are not known policies");
        findings.warn(rules::HINT_VALUE, annotation_path(names::CARD_POLICY), message);
    }
    if let Some(value) =
        metadata.annotation(names::NODE_POLICY).filter(|value| !NODE_POLICIES.contains(value))
    {
        ignored(findings, names::NODE_POLICY, value, &NODE_POLICIES);
    }
}

fn of_hami(findings: &mut ReviewFindings, metadata: &Metadata) {
    use hami::names;
    policies(findings, metadata);
    if let Some(value) = metadata.annotation(names::NUMA_BIND).filter(|value| go_bool(value).is_none()) {
        let value = excerpt(value, VALUE);
        let message = format!("`{value}` is neither true nor false; write `true` or `false`");
        findings.deny(rules::HINT_VALUE, annotation_path(names::NUMA_BIND), message);
    }
    // The card's mode must be a substring of the value.
    let mode = metadata.annotation(names::MODE);
    if let Some(value) = mode.filter(|value| !CARD_MODES.iter().any(|mode| value.contains(mode))) {
        nothing_left(findings, names::MODE, value, &CARD_MODES);
    }
}

fn of_volcano(findings: &mut ReviewFindings, metadata: &Metadata) {
    use volcano::names;
    if let Some(value) = metadata.annotation(names::MODE).filter(|value| !NODE_MODES.contains(value)) {
        nothing_left(findings, names::MODE, value, &NODE_MODES);
    }
}

/// Its words are refused where the request is read; a type that is not known is passed over there.
fn of_koordinator(findings: &mut ReviewFindings, metadata: &Metadata) {
    use koordinator::names;
    for key in [names::HINT, names::JOINT, names::PARTITION_SPEC] {
        let bytes = metadata.annotation(key).map_or(0, str::len);
        if bytes > LONGEST_JSON {
            let message = format!("has {bytes} bytes; it may have {LONGEST_JSON} bytes");
            findings.deny(rules::HINT_LENGTH, annotation_path(key), message);
        }
    }
    let known = DeviceType::ALL.map(DeviceType::name).join(", ");
    for (key, name) in koordinator::request::unknown_types(metadata).iter().take(MOST_NAMED) {
        let name = excerpt(name, VALUE);
        let message = format!("`{name}` is no type of devices and has no effect; the types are {known}");
        findings.warn(rules::HINT_VALUE, annotation_path(key), message);
    }
}

fn ignored(findings: &mut ReviewFindings, key: &str, value: &str, known: &[&str]) {
    let value = excerpt(value, VALUE);
    let message =
        format!("`{value}` is not a known policy and has no effect; known policies: {}", known.join(", "));
    findings.warn(rules::HINT_VALUE, annotation_path(key), message);
}

fn nothing_left(findings: &mut ReviewFindings, key: &str, value: &str, known: &[&str]) {
    let value = excerpt(value, VALUE);
    let message = format!(
        "`{value}` is not a known mode, and no card would match it; known modes: {}",
        known.join(", ")
    );
    findings.deny(rules::HINT_VALUE, annotation_path(key), message);
}
