//! What a pod asks as a whole: its resources at pod level, and the annotations that say how devices are to be chosen.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/utils.go` (`preparePod`), Kubernetes `PodRequests` for the sum.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    dimension::{card, kind_of, weights, whole},
    hints::{self, Hint, partition_spec},
    names,
    shape::{self, CountStrategy, PerDevice, Requests, ShapeRefusal},
    templates,
};
use crate::{
    device::{DevicePortion, DeviceType, Joint, JointRequest, TypedRequest},
    dialect::{Problem, Unreadable},
    object::{Container, Pod},
};

/// What the pod asks as a whole; `None`: it names none of the resources, or each with 0.
pub(super) fn request(pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
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
    let shares = types.get(&DeviceType::Gpu).is_some_and(|gpu| gpu.portion == DevicePortion::Share);
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
    let all =
        |kind: &DeviceType| hints.get(kind).is_some_and(|hint| hint.strategy == CountStrategy::ApplyForAll);
    joined.retain(|kind| types.contains_key(kind) && !all(kind));
    Ok((joined.len() > 1).then_some(Joint { types: joined, scope }))
}

fn typed(pod: &Pod, kind: DeviceType, requests: &Requests, hint: Hint) -> Result<TypedRequest, Unreadable> {
    let twice = [names::GPU_MEMORY, names::GPU_MEMORY_RATIO].iter().all(|name| requests.contains_key(*name));
    let problem = if twice { Problem::MemoryTwice } else { Problem::Unserved };
    let refuse =
        |ShapeRefusal { resource, message }| Unreadable::new(problem, field(pod, &resource), message);
    let converted = shape::converted(requests).map_err(refuse)?;
    let PerDevice { each, count, portion } =
        shape::per_device(kind, &converted, hint.strategy, hint.exclusive).map_err(refuse)?;
    let gpu = kind == DeviceType::Gpu;
    let partition = if gpu { partition_spec(&pod.metadata)? } else { None };
    let by_template = gpu && portion == DevicePortion::Share && templates::are_needed(&each);
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
        card: gpu.then(card),
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
pub(super) fn field(pod: &Pod, resource: &str) -> String {
    let mut containers = pod.containers();
    let first = containers.find(|(_, container)| container.resources.limit_or_request(resource).is_some());
    first.map_or_else(|| "spec.containers".to_owned(), |(at, container)| path(container, &at, resource))
}
