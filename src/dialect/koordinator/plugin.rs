//! Device plugins of vendors that serve one pod of a node at a time, under a lock of the node, on nodes of Koordinator's: what has kubelet ask
//! them, what they can serve, and how they answer.
//!
//! Source: koordinator a7a1b76 `pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go`; its manuals "Device Scheduling - Cambricon MLU" and
//! "Device Scheduling - Metax GPU" and pull request 2734 for the resources that a pod names; cambricon-k8s-device-plugin 3c9ed24
//! `device-plugin/pkg/mlu/{server,podutils}.go` for what the plugin writes. MetaX' plugin is not published: all that is known is that it frees the lock.

use std::sync::Arc;

use jiff::SignedDuration;

use super::{dimension::dimension, names};
use crate::{
    device::{Amounts, Answer, LockNeed, LockingPlugin},
    dialect::{LockForm, LockSpec, Problem, Unreadable},
    object::{Container, Pod},
};

pub(super) const CAMBRICON: &str = "cambricon";
/// On a pod: `false` until the plugin has served it; spelled so by Cambricon's plugin.
pub(super) const CAMBRICON_ASSIGNED: &str = "CAMBRICON_DSMLU_ASSIGHED";
/// On a pod: the share that the plugin cuts.
pub(super) const CAMBRICON_PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";
/// Bytes of the smallest share of memory, the default of the plugin's `min-dsmlu-unit`.
pub(super) const CAMBRICON_UNIT: u64 = 256 << 20;

pub(super) const METAX: &str = "metax";
/// On a pod: what the plugin gives it.
pub(super) const METAX_ALLOCATED: &str = "metax-tech.com/gpu-devices-allocated";
pub(super) const METAX_UNIT: u64 = 1 << 20;

/// How long a holder of a lock that gives no sign is respected.
const LOCK_EXPIRY: SignedDuration = SignedDuration::from_mins(5);

/// One vendor's plugin.
struct VendorPlugin {
    vendor: &'static str,
    /// What it registers with kubelet, which asks it for each of them by itself.
    resources: &'static [&'static str],
    lock: &'static str,
    most: Option<u32>,
    /// Bytes of the smallest share of memory.
    unit: u64,
    answer: Answer,
}

const ROWS: [VendorPlugin; 2] = [
    VendorPlugin {
        vendor: CAMBRICON,
        resources: &["cambricon.com/mlu.smlu.vcore", "cambricon.com/mlu.smlu.vmemory"],
        lock: "cambricon.com/dsmlu.lock",
        most: Some(1),
        unit: CAMBRICON_UNIT,
        answer: Answer::Awaited,
    },
    VendorPlugin {
        vendor: METAX,
        resources: &["metax-tech.com/sgpu"],
        lock: "hami.io/mutex.lock",
        most: None,
        unit: METAX_UNIT,
        answer: Answer::ByLock,
    },
];

/// The locks that the plugins need, of whichever vendor.
pub fn locks() -> Vec<LockSpec> {
    ROWS.iter().map(VendorPlugin::lock).collect()
}

/// The lock that this vendor's plugin needs; `None`: it does without.
pub fn lock(vendor: &str) -> Option<LockSpec> {
    row(vendor).map(VendorPlugin::lock)
}

/// This vendor's plugin; `None`: it needs no lock.
pub fn of_vendor(vendor: &str) -> Option<Arc<LockingPlugin>> {
    let &VendorPlugin { vendor, lock, most, unit, answer, .. } = row(vendor)?;
    let least = [(dimension(names::GPU_CORE), 1), (dimension(names::GPU_MEMORY), unit)];
    let least = Amounts::from_iter(least);
    Some(Arc::new(LockingPlugin { vendor, lock: lock.into(), most, least, answer }))
}

/// The resources by which kubelet asks the plugins.
pub fn resources() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| row.resources).copied()
}

fn row(vendor: &str) -> Option<&'static VendorPlugin> {
    const { &ROWS }.iter().find(|row| row.vendor == vendor)
}

impl VendorPlugin {
    fn lock(&self) -> LockSpec {
        LockSpec {
            key: self.lock.to_owned(),
            form: LockForm::Comma,
            expiry: LOCK_EXPIRY,
            need: LockNeed::Always,
        }
    }

    /// Those of the plugin's resources that the container asks for, and those that it does not.
    fn asked_by(&self, container: &Container) -> (Vec<&'static str>, Vec<&'static str>) {
        let asked =
            |name: &&str| container.resources.limit_or_request(name).is_some_and(|amount| !amount.is_zero());
        self.resources.iter().copied().partition(asked)
    }
}

/// The vendor whose plugin the pod has kubelet ask; `None`: it names no plugin's resources.
pub fn asked(pod: &Pod) -> Result<Option<&'static str>, Unreadable> {
    let mut found: Option<&VendorPlugin> = None;
    for (path, container) in pod.containers() {
        for row in const { &ROWS } {
            let (named, missing) = row.asked_by(container);
            let Some(first) = named.first() else { continue };
            let refuse = |message: String| {
                let field = format!("{path}.resources.limits[{first}]");
                Err(Unreadable::new(Problem::Unserved, field, message))
            };
            let vendor = row.vendor;
            if path.starts_with("spec.initContainers") {
                return refuse(format!("{vendor}'s device plugin serves no init container"));
            }
            if found.is_some() {
                return refuse("such a device plugin serves only one container of a pod".to_owned());
            }
            if let Some(missing) = missing.first() {
                return refuse(format!("{vendor}'s device plugin needs both resources; add `{missing}`"));
            }
            found = Some(row);
        }
    }
    Ok(found.map(|row| row.vendor))
}

/// What the plugin that the pod has kubelet ask has made of it; of a pod for which none is asked, nothing is awaited.
pub fn answer(pod: &Pod) -> Answer {
    let says = |key| pod.metadata.annotation(key);
    match asked(pod) {
        Ok(Some(CAMBRICON)) if says(CAMBRICON_PROFILE).is_some() => match says(CAMBRICON_ASSIGNED) {
            Some("true") => Answer::Succeeded,
            _ => Answer::Awaited,
        },
        Ok(Some(METAX)) if says(METAX_ALLOCATED).is_some() => Answer::ByLock,
        _ => Answer::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CORE: &str = "cambricon.com/mlu.smlu.vcore";
    const MEMORY: &str = "cambricon.com/mlu.smlu.vmemory";
    const SGPU: &str = "metax-tech.com/sgpu";

    fn pod(containers: &[Value], annotations: &Value) -> Pod {
        let containers: Vec<_> =
            containers.iter().map(|limits| json!({"resources": {"limits": limits}})).collect();
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn the_plugin_is_asked_by_all_of_its_resources_in_one_container() {
        let both = json!({CORE: "10", MEMORY: "4"});
        let vendor = |containers: &[Value]| asked(&pod(containers, &json!({})));
        assert_eq!(vendor(std::slice::from_ref(&both)), Ok(Some(CAMBRICON)));
        assert_eq!(vendor(&[json!({}), json!({SGPU: "1"})]), Ok(Some(METAX)));
        assert_eq!(vendor(&[json!({SGPU: "0"})]), Ok(None));
        for (containers, reason) in [
            (
                vec![json!({CORE: "10"})],
                "spec.containers[0].resources.limits[cambricon.com/mlu.smlu.vcore]: cambricon's device plugin needs both resources; add `cambricon.com/mlu.smlu.vmemory`",
            ),
            (
                vec![both.clone(), both.clone()],
                "spec.containers[1].resources.limits[cambricon.com/mlu.smlu.vcore]: such a device plugin serves",
            ),
            (
                vec![both, json!({SGPU: "1"})],
                "spec.containers[1].resources.limits[metax-tech.com/sgpu]: such a device plugin serves",
            ),
        ] {
            let refusal = vendor(&containers).unwrap_err().to_string();
            assert!(refusal.starts_with(reason), "{refusal}");
        }
        let mut early = pod(&[], &json!({}));
        early.spec.init_containers = pod(&[json!({SGPU: "1"})], &json!({})).spec.containers;
        assert!(asked(&early).unwrap_err().to_string().contains("serves no init container"));
    }

    #[test]
    fn cambricons_plugin_answers_on_the_pod_and_metax_by_the_lock() {
        let answer = |limits: Value, annotations: Value| super::answer(&pod(&[limits], &annotations));
        let mlu = || json!({CORE: "10", MEMORY: "4"});
        assert_eq!(
            answer(mlu(), json!({CAMBRICON_PROFILE: "0_10_4", CAMBRICON_ASSIGNED: "false"})),
            Answer::Awaited
        );
        assert_eq!(
            answer(mlu(), json!({CAMBRICON_PROFILE: "0_10_4", CAMBRICON_ASSIGNED: "true"})),
            Answer::Succeeded
        );
        assert_eq!(answer(json!({SGPU: "1"}), json!({METAX_ALLOCATED: "[[]]"})), Answer::ByLock);
        // A scheduler that does nothing for plugins has placed it, or no plugin is asked for it: nobody would ever answer.
        assert_eq!(answer(mlu(), json!({})), Answer::Succeeded);
        assert_eq!(
            answer(json!({}), json!({CAMBRICON_PROFILE: "0_10_4", METAX_ALLOCATED: "[[]]"})),
            Answer::Succeeded
        );
    }
}
