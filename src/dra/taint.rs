//! Taints of devices, and requests that tolerate them (kubernetes `dynamic-resource-allocation/resourceclaim/tolerations.go`).

mod rules;

use crate::object::{resource_claim::DeviceToleration, resource_slice::DeviceTaint};

pub use rules::MOST_RULED;
pub(super) use rules::{PoolTaints, RuledTaints, TaintRules, TaintedDevices};

/// The taints of a device.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct DeviceTaints {
    /// Those that its driver publishes.
    pub(super) published: Vec<DeviceTaint>,
    /// Those that rules add.
    pub(super) ruled: RuledTaints,
}

impl DeviceTaints {
    /// Those that a driver publishes.
    pub(super) fn published(taints: &[DeviceTaint]) -> Self {
        Self { published: taints.to_vec(), ruled: RuledTaints::default() }
    }

    /// Whether one of them keeps the request away from the device.
    pub(super) fn keep_away(&self, tolerations: &[DeviceToleration]) -> bool {
        let RuledTaints::Known(ruled) = &self.ruled else { return true };
        let mut counting = self.published.iter().filter(|taint| counts(taint)).chain(&**ruled);
        counting.any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
    }
}

/// Whether the taint keeps requests away at all: `None` is for administrators to look at, and other effects are not known.
fn counts(taint: &DeviceTaint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
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
