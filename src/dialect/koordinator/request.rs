//! What a pod asks of a node's devices: as a whole or by container, and the device plugin that kubelet asks for it.

pub use super::hints::{partition_spec, unknown_types};
use super::{
    by_container, names, nccl, plugin,
    pod_level::{self, field},
};
use crate::{
    device::{DeviceType, JointRequest},
    dialect::{Problem, Unreadable},
    object::Pod,
};

/// What the pod asks, as a whole or container by container; `None`: it names none of the resources, or each with 0.
pub fn request(pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
    let by_container = by_container::is_asked(&pod.metadata).map_err(|error| vec![error])?;
    let asked = if by_container { by_container::request(pod) } else { pod_level::request(pod) }?;
    let Some(asked) = asked else { return Ok(None) };
    let nccl = nccl::is_asked(&pod.metadata).map_err(|error| vec![error])?;
    let plugin = asked_plugin(pod, &asked).map_err(|error| vec![error])?;
    Ok(Some(JointRequest { nccl, plugin, ..asked }))
}

/// The vendor whose device plugin kubelet asks for the pod.
fn asked_plugin(pod: &Pod, asked: &JointRequest) -> Result<Option<&'static str>, Unreadable> {
    let Some(vendor) = plugin::asked(pod)? else { return Ok(None) };
    let refuse = |message: String| {
        let first = plugin::resources().map(|name| field(pod, name)).find(|field| field.ends_with(']'));
        Err(Unreadable::new(Problem::Unserved, first.unwrap_or_default(), message))
    };
    if !asked.containers.is_empty() {
        return refuse(format!("{vendor}'s device plugin serves no pod with `{}`", names::BY_CONTAINER));
    }
    if !asked.asks(DeviceType::Gpu) {
        return refuse(format!("makes kubelet call {vendor}'s device plugin, but the pod requests no GPU"));
    }
    Ok(Some(vendor))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::device::DeviceCount;

    fn pod(pod: Value) -> Pod {
        serde_json::from_value(pod).unwrap()
    }

    fn container(limits: &Value) -> Value {
        json!({"resources": {"limits": limits}})
    }

    #[test]
    fn containers_are_summed_as_kubelet_runs_them() {
        let mut sidecar = container(&json!({names::GPU: "100"}));
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "initContainers": [container(&json!({names::GPU: "300"})), sidecar, container(&json!({names::GPU: "100"}))],
            "containers": [container(&json!({names::GPU: "100"})), container(&json!({names::RDMA: "0"}))],
        });
        let asked = request(&pod(json!({"spec": spec}))).unwrap().unwrap();
        assert_eq!(asked.types.keys().collect::<Vec<_>>(), [&DeviceType::Gpu]);
        assert_eq!(asked.types[&DeviceType::Gpu].count, DeviceCount::Exactly(3));
    }

    #[test]
    fn a_pod_that_names_no_device_asks_for_none() {
        let plain = pod(json!({"spec": {"containers": [container(&json!({"cpu": "1"}))]}}));
        assert_eq!(request(&plain), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named_by_field_and_reason() {
        let fault = |limits: Value, annotations: Value| {
            let spec = json!({"containers": [container(&json!({})), container(&limits)]});
            let pod = pod(json!({"metadata": {"annotations": annotations}, "spec": spec}));
            request(&pod).unwrap_err()[0].to_string()
        };
        let at = "spec.containers[1].resources.limits";
        assert_eq!(
            fault(json!({names::GPU: "150"}), json!({})),
            format!("{at}[koordinator.sh/gpu]: 150 is above 100 percent and not a multiple of 100")
        );
        assert_eq!(
            fault(json!({names::GPU: "0.5"}), json!({})),
            format!("{at}[koordinator.sh/gpu]: `0.5` is not a whole number")
        );
        assert_eq!(
            fault(json!({names::GPU_CORE: "50"}), json!({})),
            format!(
                "{at}[koordinator.sh/gpu-core]: `koordinator.sh/gpu-core` alone is no request for a device"
            )
        );
        let one = json!({names::GPU: "100", names::RDMA: "1"});
        for (key, text, reason) in [
            (
                names::HINT,
                r#"{"rdma":{"exclusivePolicy":"Mine"}}"#,
                "rdma: exclusivePolicy `Mine` is neither",
            ),
            (names::HINT, r#"{"gpu":{"requiredTopologyScope":"Rack"}}"#, "gpu: requiredTopologyScope `Rack`"),
            (
                names::HINT,
                r#"{"gpu":{"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}}"#,
                "gpu: a selector for `a` has no values",
            ),
            (
                names::JOINT,
                r#"{"deviceTypes":["gpu","rdma"],"requiredScope":"SameRack"}"#,
                "requiredScope `SameRack`",
            ),
            (names::PARTITION_SPEC, r#"{"ringBusBandwidth":"fast"}"#, "`fast` is not a quantity"),
            (names::JOINT, "[", "EOF"),
        ] {
            let told = fault(one.clone(), json!({key: text}));
            assert!(told.starts_with(&format!("metadata.annotations[{key}]: {reason}")), "{told}");
        }
    }

    #[test]
    fn only_types_that_are_asked_for_and_chosen_are_joined() {
        let joined = |limits: Value, hint: &str| {
            let annotations = json!({names::JOINT: r#"{"deviceTypes":["gpu","rdma"]}"#, names::HINT: hint});
            let spec = json!({"containers": [container(&limits)]});
            let pod = pod(json!({"metadata": {"annotations": annotations}, "spec": spec}));
            request(&pod).unwrap().unwrap().joint.map(|joint| joint.types)
        };
        let both = json!({names::GPU: "100", names::RDMA: "1"});
        assert_eq!(joined(both.clone(), "{}"), Some(vec![DeviceType::Gpu, DeviceType::Rdma]));
        assert_eq!(joined(both, r#"{"rdma":{"allocateStrategy":"ApplyForAll"}}"#), None);
        assert_eq!(joined(json!({names::GPU: "100"}), "null"), None);
    }
}
