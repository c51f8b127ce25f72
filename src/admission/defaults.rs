//! The defaults that admission sets: counts, the compute of whole cards, the runtime class, the environment of HAMi's limiter.
//!
//! It changes nothing that a pod states. Source: HAMi v2.10 `pkg/device/nvidia/device.go` (`MutateAdmission`).

use super::{
    draft::{ContainerList, Draft},
    facts::Facts,
    settings::{Bystanders, ResourceNames},
};
use crate::{
    device::DeviceType,
    dialect::{
        Additions, Dialect, SharingMode,
        koordinator::{self, by_container, completion},
    },
    object::{Amount, Container},
};

/// The priority of a container's kernels, read by HAMi's limiter.
const TASK_PRIORITY: &str = "CUDA_TASK_PRIORITY";
/// Whether HAMi's limiter limits compute.
const CORE_POLICY: &str = "GPU_CORE_UTILIZATION_POLICY";
/// The cards that the container runtime gives access to.
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// The cards that CUDA shows a program, among those that the container has access to.
const CUDA_DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// Adds the default count to each container that requests memory or compute without a count: without it kubelet asks no device plugin.
pub fn add_counts(draft: &mut Draft, facts: &Facts) {
    for dialect in facts.dialects.asked(draft.pod()) {
        let Some((count, amount)) = dialect.default_count() else { continue };
        for (list, at) in chosen(draft, |container| lacks_count(container, dialect.as_ref(), count)) {
            draft.add_limit(list, at, count, amount);
        }
    }
}

/// Sets what HAMi's webhook sets, in a pod of its mode.
pub fn add_hami(draft: &mut Draft, facts: &Facts) {
    let Some(names) = facts.settings.resources.get(&SharingMode::Hami) else { return };
    // Where HAMi's plugin serves no card, and in pods for whole cards, the name may be another dialect's.
    if facts.dialects.in_pod(draft.pod()).mode_of(&names.count) != Some(&SharingMode::Hami) {
        return;
    }
    let shares = chosen(draft, |container| counts(container, names));
    if shares.is_empty() {
        return;
    }
    for (list, at) in chosen(draft, |container| takes_whole_cards(container, names)) {
        draft.add_limit(list, at, &names.cores, 100);
    }
    let defaults = &facts.settings.hami;
    for &(list, at) in &shares {
        let priority = list.of(draft.pod())[at].resources.limit(&defaults.priority);
        let priority = priority.and_then(|value| value.amount().ok()?.whole()).map(|value| value.to_string());
        if let Some(priority) = priority {
            draft.add_variable(list, at, TASK_PRIORITY, &priority);
        }
        if let Some(policy) = defaults.core_policy {
            draft.add_variable(list, at, CORE_POLICY, policy);
        }
    }
    if defaults.bystanders == Bystanders::Blind {
        for (list, at) in chosen(draft, |container| !counts(container, names)) {
            draft.add_variable(list, at, VISIBLE_DEVICES, "none");
        }
    }
    if let Some(class) = &defaults.runtime_class
        && draft.pod().spec.runtime_class_name.is_none()
    {
        draft.set_runtime_class(class);
    }
}

/// Sets what HAMi's webhook sets in pods of other vendors' modes.
pub fn add_vendors(draft: &mut Draft, facts: &Facts) {
    for dialect in facts.dialects.asked(draft.pod()) {
        let Additions { runtime_class, name_variable } = dialect.additions();
        if let Some((variable, count)) = name_variable {
            for (list, at) in chosen(draft, |container| asks_for_some(container, count)) {
                let name = list.of(draft.pod())[at].name.clone();
                draft.add_variable(list, at, variable, &name);
            }
        }
        if let Some(class) = runtime_class
            && draft.pod().spec.runtime_class_name.is_none()
        {
            draft.set_runtime_class(class);
        }
    }
}

/// Writes out what containers ask by Koordinator's names, as Koordinator's webhook does, so that its node side and its quotas find the same
/// resources. Its scheduler sums containers: where the sum would then ask for something else, the pod stays as it is. Only Ascend's units, which are no
/// request without `gpu.shared`, become one.
pub fn complete_koordinator(draft: &mut Draft, facts: &Facts) {
    if !completion::is_due(draft.pod()) {
        return;
    }
    let Some(dialect) = facts.dialects.named(&koordinator::NAME.into()) else { return };
    let asked = dialect.joint_request(draft.pod());
    let mut completed = draft.clone();
    for (list, at) in chosen(draft, |_| true) {
        completed.complete(list, at);
    }
    let in_full = dialect.joint_request(completed.pod());
    if in_full.is_ok() && (asked == in_full || completion::asks_for_units(draft.pod())) {
        *draft = completed;
    }
}

/// Shows each container its own GPUs alone, where containers have devices of their own: koordlet makes all GPUs of the pod visible in every
/// container. CUDA takes uuids, and shows nothing behind a number that there is not.
pub fn show_own_gpus(draft: &mut Draft, facts: &Facts) {
    if by_container::is_asked(&draft.pod().metadata) != Ok(true) {
        return;
    }
    let Some(dialect) = facts.dialects.named(&koordinator::NAME.into()) else { return };
    let Ok(Some(asked)) = dialect.joint_request(draft.pod()) else { return };
    if asked.containers.is_empty() {
        return;
    }
    let asks = |name: &str| {
        let mut containers = asked.containers.iter().filter(|one| one.container == name);
        containers.any(|one| one.request.types.contains_key(&DeviceType::Gpu))
    };
    for (list, at) in chosen(draft, |_| true) {
        let name = list.of(draft.pod())[at].name.clone();
        if asks(&name) {
            let key = by_container::visible_devices(&name);
            draft.add_variable_of_annotation(list, at, CUDA_DEVICES, &key);
        } else {
            draft.add_variable(list, at, CUDA_DEVICES, "-1");
        }
    }
}

fn chosen(draft: &Draft, wanted: impl Fn(&Container) -> bool) -> Vec<(ContainerList, usize)> {
    let lists = [ContainerList::Init, ContainerList::App].into_iter();
    let all = lists.flat_map(|list| list.of(draft.pod()).iter().enumerate().map(move |at| (list, at)));
    all.filter(|(_, (_, container))| wanted(container)).map(|(list, (at, _))| (list, at)).collect()
}

fn lacks_count(container: &Container, dialect: &dyn Dialect, count: &str) -> bool {
    let stated = |name: &str| container.resources.limit_or_request(name);
    let requested = |name: &str| stated(name).is_some_and(|amount| !amount.is_zero());
    stated(count).is_none() && dialect.share_resources().into_iter().any(requested)
}

/// Whether the container asks for at least one card.
fn counts(container: &Container, names: &ResourceNames) -> bool {
    asks_for_some(container, &names.count)
}

fn asks_for_some(container: &Container, resource: &str) -> bool {
    let count = container.resources.limit_or_request(resource);
    count.and_then(|count| count.amount().ok()).and_then(Amount::whole).is_some_and(|count| count > 0)
}

/// Whether the container asks for whole cards: a count without memory, or with all of it. No other pod then shares their compute.
fn takes_whole_cards(container: &Container, names: &ResourceNames) -> bool {
    let stated = |name: &str| container.resources.limit_or_request(name);
    if !counts(container, names) || stated(&names.cores).is_some() {
        return false;
    }
    match stated(&names.memory_percentage) {
        Some(part) => part.amount().ok().and_then(Amount::whole) == Some(100),
        None => stated(&names.memory).is_none(),
    }
}
