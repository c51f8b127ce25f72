//! What a pod asks in Volcano's vGPU names.
//!
//! Source: Volcano `pkg/scheduler/api/devices/util.go`, without its silent rounding; and what the node's plugin can serve:
//! volcano-vgpu-device-plugin distinguishes pods by their total count alone, so only one container of a pod may request cards.

use super::{Volcano, VolcanoSettings, mark, names};
use crate::{
    device::{
        ContainerRequest, Cores, Marks, MemoryRequest, Mode, Percent, PodRequest, Role, Selection,
        ShareRequest,
    },
    dialect::{MissingCount, Problem, Unreadable, amounts::ResourceReader, segments, share::Terms},
    object::{Container, Pod},
};

/// The count of a container that states none, while its pod is admitted.
pub(super) const DEFAULT_COUNT: u32 = 1;

/// What the pod asks; `None` where no container asks for a virtual card.
pub(super) fn read(
    settings: &VolcanoSettings,
    pod: &Pod,
    missing: MissingCount,
) -> Result<Option<PodRequest>, Vec<Unreadable>> {
    let mut containers = Vec::new();
    let mut troubles = Vec::new();
    for ((path, container), role) in pod.containers().zip(segments::roles(pod)) {
        match share(settings, container, &path, missing) {
            Ok(share) => containers.push((path, ContainerRequest { role, share })),
            Err(trouble) => troubles.push(trouble),
        }
    }
    let asking: Vec<_> = containers.iter().filter(|(_, container)| container.share.is_some()).collect();
    let asks = !asking.is_empty();
    let shuns = mark::shunned(pod, &settings.exclusive_rules).unwrap_or_else(|trouble| {
        troubles.extend(asks.then_some(trouble));
        Marks::default()
    });
    troubles.extend(asking.iter().find(|(_, container)| container.role != Role::App).map(|(path, _)| {
        Unreadable::new(
            Problem::Unserved,
            path,
            "Volcano's vGPU plugin does not serve init containers and sidecars",
        )
    }));
    troubles.extend(asking.get(1).map(|(path, _)| {
        let message =
            "Volcano's vGPU plugin serves one container of a pod; it would fail the second on the node";
        Unreadable::new(Problem::Unserved, path, message)
    }));
    if !troubles.is_empty() {
        return Err(troubles);
    }
    Ok(asks.then(|| PodRequest {
        containers: containers.into_iter().map(|(_, container)| container).collect(),
        selection: selection(pod),
        choice: settings.card_policy.into(),
        node_policy: settings.node_policy,
        marks: mark::borne(pod, &settings.exclusive_rules),
        shuns,
    }))
}

/// For each container in starting order, whether it asks for a virtual card.
pub(super) fn asks(settings: &VolcanoSettings, pod: &Pod) -> Vec<bool> {
    let asks = |(path, container): (String, &Container)| {
        matches!(share(settings, container, &path, MissingCount::Default), Ok(Some(_)))
    };
    pod.containers().map(asks).collect()
}

fn share(
    settings: &VolcanoSettings,
    container: &Container,
    path: &str,
    missing: MissingCount,
) -> Result<Option<ShareRequest>, Unreadable> {
    let terms = Terms {
        count: names::COUNT,
        memory: names::MEMORY,
        memory_percentage: names::MEMORY_PERCENTAGE,
        cores: names::CORES,
        memory_factor: settings.memory_factor,
        default_count: missing.supplied(DEFAULT_COUNT),
        default_memory: MemoryRequest::Part(Percent::WHOLE),
        default_cores: Cores::NONE,
    };
    terms.read(&ResourceReader::new(container, path))
}

fn selection(pod: &Pod) -> Selection {
    let modes = pod.metadata.annotation(names::MODE).map(|mode| match mode {
        "hami-core" => vec![Mode::Soft],
        "mig" => vec![Mode::Mig],
        _ => Vec::new(),
    });
    Selection { models: Volcano::HINTS.models(&pod.metadata), ids: Volcano::HINTS.ids(&pod.metadata), modes }
}
