//! Taints of devices, and requests that tolerate them (kubernetes `dynamic-resource-allocation/resourceclaim/tolerations.go`).

use crate::object::{resource_claim::DeviceToleration, resource_slice::DeviceTaint};

/// Whether a taint keeps the request away from the device.
pub(super) fn keep_away(taints: &[DeviceTaint], tolerations: &[DeviceToleration]) -> bool {
    let counts = |taint: &&DeviceTaint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints
        .iter()
        .filter(counts)
        .any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let given = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let effect = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let key = given(&toleration.key).is_none_or(|key| key == taint.key);
    let value = match toleration.operator.as_str() {
        "Exists" => true,
        "Equal" => toleration.value.as_deref().unwrap_or_default() == taint.value,
        _ => false,
    };
    effect && key && value
}
