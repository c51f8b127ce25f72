//! What a pod asks of a node's devices: its resources at pod level, and the annotations that say how they are to be chosen.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/utils.go` (`preparePod`), Kubernetes `PodRequests` for the sum.

use std::collections::{BTreeMap, BTreeSet};

pub use super::hints::{partition_spec, unknown_types};
use super::{
    by_container,
    dimension::{kind_of, memory, weights, whole},
    hints::{self, Hint},
    names, nccl, plugin,
    shape::{self, PerDevice, Refusal, Requests, Strategy},
    templates,
};
use crate::{
    device::{DeviceType, Joint, JointRequest, Portion, TypedRequest},
    dialect::{Problem, Unreadable},
    object::{Container, Pod},
};

/// What the pod asks, as a whole or container by container; `None`: it names none of the resources, or each with 0.
pub fn request(pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
    let by_container = by_container::is_asked(&pod.metadata).map_err(|error| vec![error])?;
    let asked = if by_container { by_container::request(pod) } else { as_a_whole(pod) }?;
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

/// What the pod asks as a whole.
pub(super) fn as_a_whole(pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
    let sums = sums(pod)?;
    if sums.is_empty() {
        return Ok(None);
    }
    let hints = hints::hints(&pod.metadata).map_err(|error| vec![error])?;
    let mut types = BTreeMap::new();
    let mut faults = Vec::new();
    for (kind, requests) in sums {
        let hint = hints.get(&kind).cloned().unwrap_or_default();
        match typed(pod, kind, &requests, hint) {
            Ok(request) => drop(types.insert(kind, request)),
            Err(error) => faults.push(error),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let joint = joint(pod, &types, &hints).map_err(|error| vec![error])?;
    let shares = types.get(&DeviceType::Gpu).is_some_and(|gpu| gpu.portion == Portion::Share);
    let isolation = pod.metadata.label(names::ISOLATION).filter(|name| shares && !name.is_empty());
    let isolation = isolation.map(str::to_owned);
    Ok(Some(JointRequest { types, joint, weights: weights(), isolation, ..JointRequest::default() }))
}

/// The joined types that the pod asks for; every device of a type needs no choice, so that type is not joined.
fn joint(
    pod: &Pod,
    types: &BTreeMap<DeviceType, TypedRequest>,
    hints: &BTreeMap<DeviceType, Hint>,
) -> Result<Option<Joint>, Unreadable> {
    let Some((mut joined, scope)) = hints::joint(&pod.metadata)? else { return Ok(None) };
    let all = |kind: &DeviceType| hints.get(kind).is_some_and(|hint| hint.strategy == Strategy::ApplyForAll);
    joined.retain(|kind| types.contains_key(kind) && !all(kind));
    Ok((joined.len() > 1).then_some(Joint { types: joined, scope }))
}

fn typed(pod: &Pod, kind: DeviceType, requests: &Requests, hint: Hint) -> Result<TypedRequest, Unreadable> {
    let twice = [names::GPU_MEMORY, names::GPU_MEMORY_RATIO].iter().all(|name| requests.contains_key(*name));
    let problem = if twice { Problem::MemoryTwice } else { Problem::Unserved };
    let refuse = |Refusal { resource, message }| Unreadable::new(problem, field(pod, &resource), message);
    let converted = shape::converted(requests).map_err(refuse)?;
    let PerDevice { each, count, portion } =
        shape::per_device(kind, &converted, hint.strategy, hint.exclusive).map_err(refuse)?;
    let gpu = kind == DeviceType::Gpu;
    let partition = if gpu { partition_spec(&pod.metadata)? } else { None };
    let by_template = gpu && portion == Portion::Share && templates::are_needed(&each);
    Ok(TypedRequest {
        each,
        count,
        portion,
        selector: hint.selector,
        functions: hint.functions,
        scope: hint.scope,
        exclusive: hint.exclusive,
        partition,
        by_template,
        proportion: gpu.then(memory),
    })
}

/// By type, what the pod asks as a whole: its app containers and sidecars together, or an init container and the sidecars before it where that is
/// more. Amounts of 0 are left out.
fn sums(pod: &Pod) -> Result<BTreeMap<DeviceType, Requests>, Vec<Unreadable>> {
    let mut faults = Vec::new();
    let mut sums: BTreeMap<DeviceType, Requests> = BTreeMap::new();
    for name in named(pod) {
        let Some(kind) = kind_of(&name) else { continue };
        match sum(pod, &name) {
            Ok(0) => {}
            Ok(amount) => drop(sums.entry(kind).or_default().insert(name, amount)),
            Err(error) => faults.push(error),
        }
    }
    if faults.is_empty() { Ok(sums) } else { Err(faults) }
}

/// The resources that any container names.
fn named(pod: &Pod) -> BTreeSet<String> {
    pod.containers()
        .flat_map(|(_, container)| container.resources.names().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn sum(pod: &Pod, name: &str) -> Result<u64, Unreadable> {
    let of = |container: &Container, path: String| match container.resources.limit_or_request(name) {
        None => Ok(0),
        Some(quantity) => whole(quantity).map_err(|reason| Unreadable::new(Problem::Quantity, path, reason)),
    };
    let (mut running, mut peak) = (0_u64, 0_u64);
    for (at, container) in pod.spec.init_containers.iter().enumerate() {
        let amount = of(container, path(container, &format!("spec.initContainers[{at}]"), name))?;
        peak = peak.max(running.saturating_add(amount));
        if container.is_sidecar() {
            running = running.saturating_add(amount);
        }
    }
    for (at, container) in pod.spec.containers.iter().enumerate() {
        let amount = of(container, path(container, &format!("spec.containers[{at}]"), name))?;
        running = running.saturating_add(amount);
    }
    Ok(peak.max(running))
}

fn path(container: &Container, container_path: &str, name: &str) -> String {
    let section = if container.resources.limit(name).is_some() { "limits" } else { "requests" };
    format!("{container_path}.resources.{section}[{name}]")
}

/// The first field of the pod that names the resource.
fn field(pod: &Pod, resource: &str) -> String {
    let mut containers = pod.containers();
    let first = containers.find(|(_, container)| container.resources.limit_or_request(resource).is_some());
    first.map_or_else(|| "spec.containers".to_owned(), |(at, container)| path(container, &at, resource))
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
