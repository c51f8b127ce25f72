//! What a pod requests that its node may have resized in place: the most of what is wanted, what is running and what the node has set aside. A resize
//! that the node can never carry out is not wanted.
//!
//! Up to v1.36 the most of each container is taken, and then the sum; from v1.37 on the most of the three sums, of which the node may state two
//! itself.

use super::{
    Amounts, Trouble, add, amounts, is_of_whole_pod, of_bound_claims, of_containers as sum, of_spec, raise,
};
use crate::{
    object::{Container, Pod, container::ResourceMap, pod::ContainerStatus},
    scheduling::model::kube_scheduler::KubeScheduler,
};

/// What the containers request together at any moment of the pod's life; `unsaid` is what each requests of a resource of which it says nothing.
pub(super) fn of_containers(
    pod: &Pod,
    followed: KubeScheduler,
    unsaid: &Amounts,
) -> Result<Amounts, Trouble> {
    match followed {
        KubeScheduler::V1_36 => {
            let mut most = sum(pod, unsaid, |container| of_container(pod, container))?;
            add(&mut most, of_bound_claims(pod)?);
            Ok(most)
        }
        KubeScheduler::V1_37 => most_of_sums(pod, unsaid),
    }
}

/// A container's requests. An init container that ends can't be resized.
fn of_container(pod: &Pod, container: &Container) -> Result<Amounts, Trouble> {
    let spec = of_spec(container)?;
    let is_app = pod.spec.containers.iter().any(|app| std::ptr::eq(app.as_ref(), container));
    if !is_app && !container.is_sidecar() {
        return Ok(spec);
    }
    let mut statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    // Upstream keeps the last status of a name.
    let named = statuses.rfind(|status| status.name == container.name);
    let Some((status, actual)) = named.and_then(|status| Some((status, status.resources.as_ref()?))) else {
        return Ok(spec);
    };
    effective(pod, spec, actual.requests.as_ref(), status.allocated_resources.as_ref())
}

fn most_of_sums(pod: &Pod, unsaid: &Amounts) -> Result<Amounts, Trouble> {
    let is_infeasible = is_infeasible(pod);
    let status = |container: &Container| {
        let mut statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        statuses.find(|status| status.name == container.name)
    };
    // Without a status, what is wanted counts as running too, unless it can never run.
    let stated = |container: &Container, stated: Option<&ResourceMap>| match stated {
        Some(stated) => amounts(stated),
        None if is_infeasible => Ok(Amounts::new()),
        None => of_spec(container),
    };
    let of_pod = pod.status.resources.as_ref().and_then(|actual| actual.requests.as_ref());
    let (allocated, actual) =
        if let (Some(allocated), Some(actual)) = (&pod.status.allocated_resources, of_pod) {
            (amounts(allocated)?, amounts(actual)?)
        } else {
            let allocated = |container: &Container| stated(container, set_aside(status(container)));
            let actual = |container: &Container| {
                let status = status(container);
                stated(container, running(status).or_else(|| set_aside(status)))
            };
            let mut allocated = sum(pod, unsaid, allocated)?;
            // What claims take is no part of what a container's status says, and of the sums that the node states it is.
            add(&mut allocated, of_bound_claims(pod)?);
            (allocated, sum(pod, unsaid, actual)?)
        };
    let mut most = allocated;
    raise(&mut most, actual);
    if !is_infeasible {
        let mut wanted = sum(pod, unsaid, of_spec)?;
        add(&mut wanted, of_bound_claims(pod)?);
        raise(&mut most, wanted);
    }
    Ok(most)
}

/// What the node has set aside for a container; `None`: it has not said.
fn set_aside(status: Option<&ContainerStatus>) -> Option<&ResourceMap> {
    status?.allocated_resources.as_ref()
}

/// What a container runs with; `None`: the node has not said.
fn running(status: Option<&ContainerStatus>) -> Option<&ResourceMap> {
    status?.resources.as_ref()?.requests.as_ref()
}

/// What the pod requests as a whole, which replaces the sum over its containers: cpu, memory and huge pages only.
pub(super) fn of_whole_pod(pod: &Pod, followed: KubeScheduler) -> Result<Amounts, Trouble> {
    let mut spec = amounts(pod.spec.resources.requests.iter().flatten())?;
    spec.retain(|name, _| is_of_whole_pod(name));
    let Some(actual) = pod.status.resources.as_ref().filter(|_| !spec.is_empty()) else { return Ok(spec) };
    let mut effective =
        effective(pod, spec.clone(), actual.requests.as_ref(), pod.status.allocated_resources.as_ref())?;
    match followed {
        KubeScheduler::V1_36 => {
            for (name, amount) in &mut spec {
                *amount = effective.get(name).copied().unwrap_or_default();
            }
            Ok(spec)
        }
        KubeScheduler::V1_37 => {
            effective.retain(|name, _| is_of_whole_pod(name));
            Ok(effective)
        }
    }
}

/// The most of what is wanted, what is running and what the node has set aside.
fn effective(
    pod: &Pod,
    spec: Amounts,
    actual: Option<&ResourceMap>,
    allocated: Option<&ResourceMap>,
) -> Result<Amounts, Trouble> {
    let mut most = if is_infeasible(pod) { Amounts::new() } else { spec };
    raise(&mut most, amounts(actual.into_iter().flatten())?);
    raise(&mut most, amounts(allocated.into_iter().flatten())?);
    Ok(most)
}

/// Whether the node has said that it can never carry out the pod's resize.
fn is_infeasible(pod: &Pod) -> bool {
    let pending = pod.status.condition("PodResizePending");
    pending.is_some_and(|condition| condition.reason == "Infeasible")
}
