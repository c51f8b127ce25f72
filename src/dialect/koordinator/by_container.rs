//! Devices of containers of their own, which a pod asks for by an annotation of Berth's; upstream knows the pod as a whole alone.
//!
//! koordlet reads what the pod has as a whole and makes all of its GPUs visible in every container (koordinator a7a1b76
//! `pkg/koordlet/runtimehooks/hooks/gpu/gpu.go`: it replaces `NVIDIA_VISIBLE_DEVICES`). Which of them a container has is written beside that.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{hints, names, pod_level, record};
use crate::{
    device::{ContainerDeviceRequest, ContainerDevices, DeviceType, JointRequest},
    dialect::{Problem, Unreadable},
    object::{Container, Metadata, Pod},
};

/// The most containers that ask, since each is read on its own.
const MOST: usize = 32;
/// The longest name behind a key's domain that the API server takes, in bytes.
const LONGEST_NAME: usize = 63;
/// What keeps pods on one card apart by limits that koordlet gives every container alike.
const HAMI_CORE: &str = "HAMi-core";

/// Whether the pod asks for devices by container; an error: the annotation is neither true nor false.
pub fn is_asked(pod: &Metadata) -> Result<bool, Unreadable> {
    hints::flag(pod, names::BY_CONTAINER)
}

/// What each container asks; `None`: none asks for anything.
pub fn request(pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
    let mut one = Pod { metadata: pod.metadata.clone(), ..Pod::default() };
    let (mut containers, mut faults) = (Vec::new(), Vec::new());
    for (path, container) in pod.containers() {
        one.spec.containers = vec![Arc::new(container.clone())];
        match pod_level::request(&one) {
            Ok(None) => {}
            Ok(Some(asked)) => {
                faults.extend(refusal(&path, container, &asked));
                let container = container.name.to_string();
                containers.push(ContainerDeviceRequest { container, request: asked });
            }
            Err(found) => faults.extend(found.into_iter().map(|fault| at(&path, fault))),
        }
        if containers.len() > MOST {
            let message = format!("more than {MOST} containers ask for devices of their own");
            return Err(vec![Unreadable::annotation(Problem::Unserved, names::BY_CONTAINER, message)]);
        }
        if faults.len() > MOST {
            break;
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let Some(first) = containers.first() else { return Ok(None) };
    let weights = first.request.weights.clone();
    Ok(Some(JointRequest { weights, containers, ..JointRequest::default() }))
}

/// The same fault, which was found in a pod of this container alone.
fn at(path: &str, fault: Unreadable) -> Unreadable {
    let field = match fault.field.strip_prefix("spec.containers[0]") {
        Some(rest) => format!("{path}{rest}"),
        None => fault.field.clone(),
    };
    Unreadable { field, ..fault }
}

/// Why what the container asks can't be its own.
fn refusal(path: &str, container: &Container, asked: &JointRequest) -> Option<Unreadable> {
    let refuse = |field: &str, message: String| {
        Some(Unreadable::new(Problem::Unserved, format!("{path}{field}"), message))
    };
    if path.starts_with("spec.initContainers") && !container.is_sidecar() {
        let message = format!(
            "an init container has no devices of its own; it asks for some beside `{}`",
            names::BY_CONTAINER
        );
        return refuse(".resources", message);
    }
    if asked.types.values().any(|typed| typed.by_template) {
        let message = "Ascend's device plugin serves one share for a pod, not one for each container";
        return refuse(".resources", message.to_owned());
    }
    if asked.isolation.as_deref() == Some(HAMI_CORE) {
        let message = "koordlet gives every container the limits of the pod's first card: containers can't have limits of their own with HAMi-core";
        return refuse(".resources", message.to_owned());
    }
    let longest = LONGEST_NAME - (names::VISIBLE_DEVICES.len() - "berth.dev/".len());
    if container.name.len() > longest {
        let message = format!(
            "has {} bytes; a container with devices of its own may have {longest}, as its name is part of an annotation's",
            container.name.len()
        );
        return refuse(".name", message);
    }
    None
}

/// The annotation that holds the uuids of a container's GPUs.
pub fn visible_devices(container: &str) -> String {
    format!("{}{container}", names::VISIBLE_DEVICES)
}

/// What is written of the containers' devices; none where the pod has its devices as a whole.
pub fn annotations(containers: &[ContainerDevices]) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let mut all = Map::new();
    for ContainerDevices { container, devices } in containers {
        let written = serde_json::from_str(&record::encode(devices)).expect("what is encoded is JSON");
        all.insert(container.clone(), written);
        if let Some(gpus) = devices.get(&DeviceType::Gpu) {
            let uuids: Vec<&str> = gpus.iter().filter_map(|gpu| gpu.id.as_deref()).collect();
            annotations.insert(visible_devices(container), uuids.join(","));
        }
    }
    if !all.is_empty() {
        annotations.insert(names::ALLOCATED_BY_CONTAINER.to_owned(), Value::Object(all).to_string());
    }
    annotations
}

/// Which devices each container of the pod has; none where that is not written, or can't be read: what is held is the pod's as a whole.
pub fn carried(pod: &Pod) -> Vec<ContainerDevices> {
    let text = pod.metadata.annotation(names::ALLOCATED_BY_CONTAINER).unwrap_or("{}");
    let all: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let read = |(container, devices): (String, Value)| {
        let devices = record::decode(&devices.to_string()).ok()?;
        Some(ContainerDevices { container, devices })
    };
    all.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::device::{DeviceCount, DevicePortion};

    fn pod(value: &str, containers: &Value, init: &Value) -> Pod {
        let pod = json!({
            "metadata": {"annotations": {names::BY_CONTAINER: value}, "labels": {names::ISOLATION: ""}},
            "spec": {"containers": containers, "initContainers": init},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn container(name: &str, limits: &Value) -> Value {
        json!({"name": name, "resources": {"limits": limits}})
    }

    fn fault(pod: &Pod) -> String {
        super::super::request::request(pod).unwrap_err()[0].to_string()
    }

    #[test]
    fn each_container_asks_for_itself() {
        let containers = json!([
            container("share", &json!({names::GPU: "50"})),
            container("plain", &json!({"cpu": "1"})),
            container("whole", &json!({names::GPU: "200"})),
        ]);
        let asked = super::super::request::request(&pod("true", &containers, &json!([]))).unwrap().unwrap();
        let gpu = |at: usize| &asked.containers[at].request.types[&DeviceType::Gpu];
        assert_eq!(asked.types.len(), 0);
        assert_eq!((asked.containers[0].container.as_str(), gpu(0).portion), ("share", DevicePortion::Share));
        assert_eq!(
            (asked.containers[1].container.as_str(), gpu(1).count),
            ("whole", DeviceCount::Exactly(2))
        );
        // As a whole they ask for 250 percent, which is no request.
        assert!(fault(&pod("false", &containers, &json!([]))).contains("250 is above 100 percent"));
    }

    #[test]
    fn what_a_container_can_not_have_of_its_own_is_named_by_field_and_reason() {
        let one = |limits: Value| json!([container("a", &json!({"cpu": "1"})), container("b", &limits)]);
        let of = |limits: Value| fault(&pod("true", &one(limits), &json!([])));
        let at = "spec.containers[1].resources";
        assert_eq!(
            of(json!({names::GPU: "150"})),
            format!("{at}.limits[koordinator.sh/gpu]: 150 is above 100 percent and not a multiple of 100")
        );
        let share = json!({names::GPU_SHARED: "1", names::NPU_CORE: "2", names::NPU_CPU: "2", names::GPU_MEMORY: "6Gi"});
        assert!(of(share).starts_with(&format!("{at}: Ascend's device plugin serves one share")));
        let whole = json!({names::GPU: "100"});
        let init = json!([container("first", &whole)]);
        let told = fault(&pod("true", &json!([]), &init));
        assert!(
            told.starts_with("spec.initContainers[0].resources: an init container has no devices"),
            "{told}"
        );
        let long = json!([container(&"n".repeat(48), &whole)]);
        let told = fault(&pod("true", &long, &json!([])));
        assert!(told.starts_with("spec.containers[0].name: has 48 bytes;"), "{told}");
        let told = fault(&pod("perhaps", &one(whole.clone()), &json!([])));
        assert!(told.contains("`perhaps` is neither true nor false"), "{told}");
        let mut isolated = pod("true", &one(json!({names::GPU: "50"})), &json!([]));
        isolated.metadata.labels.as_mut().unwrap().insert(names::ISOLATION.to_owned(), HAMI_CORE.to_owned());
        assert!(fault(&isolated).starts_with(&format!("{at}: koordlet gives every container the limits")));
        let many: Vec<_> = (0..40).map(|at| container(&format!("c{at}"), &whole)).collect();
        assert!(fault(&pod("true", &json!(many), &json!([]))).contains("more than 32 containers"));
    }

    #[test]
    fn what_is_written_by_container_reads_as_the_same() {
        let devices = record::decode(
            r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50"},"id":"GPU-1"}]}"#,
        );
        let given = vec![ContainerDevices { container: "main".to_owned(), devices: devices.unwrap() }];
        let written = annotations(&given);
        assert_eq!(written["berth.dev/visible-devices.main"], "GPU-1");
        let mut pod = Pod::default();
        pod.metadata.annotations = Some(written);
        assert_eq!(carried(&pod), given);
        assert_eq!(annotations(&[]), BTreeMap::new());
    }
}
