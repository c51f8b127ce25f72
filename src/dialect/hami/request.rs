//! What a pod asks in HAMi's names.
//!
//! Source: HAMi v2.10 `pkg/device/nvidia/device.go` (`GenerateResourceRequests`), without its silent rounding: what can't be
//! represented is an error that names the field.

use super::{HamiSettings, choice, names};
use crate::{
    device::{
        ContainerRequest, Marks, MemoryRequest, MiB, Mode, NodePolicy, Percent, PodRequest, Selection,
        ShareRequest,
    },
    dialect::{MissingCount, Unreadable, amounts::ResourceReader, segments, share::Terms},
    object::{Container, Pod},
};

/// What the pod asks; `None` where no container asks for a share.
pub(super) fn read(
    settings: &HamiSettings,
    pod: &Pod,
    missing: MissingCount,
) -> Result<Option<PodRequest>, Vec<Unreadable>> {
    let mut containers = Vec::new();
    let mut troubles = Vec::new();
    for ((path, container), role) in pod.containers().zip(segments::roles(pod)) {
        match share(settings, container, &path, missing) {
            Ok(share) => containers.push(ContainerRequest { role, share }),
            Err(trouble) => troubles.push(trouble),
        }
    }
    let asks = containers.iter().any(|container| container.share.is_some());
    if !asks && troubles.is_empty() {
        return Ok(None);
    }
    let choice = choice::read(&settings.card_policies, pod).map_err(|trouble| {
        troubles.push(trouble);
        std::mem::take(&mut troubles)
    })?;
    if !troubles.is_empty() {
        return Err(troubles);
    }
    Ok(Some(PodRequest {
        containers,
        selection: selection(pod),
        choice,
        node_policy: node_policy(settings.node_policy, pod),
        marks: Marks::default(),
        shuns: Marks::default(),
    }))
}

/// For each container in starting order, whether it asks for a share.
pub(super) fn asks(settings: &HamiSettings, pod: &Pod) -> Vec<bool> {
    let asks = |(path, container): (String, &Container)| {
        matches!(share(settings, container, &path, MissingCount::Default), Ok(Some(_)))
    };
    pod.containers().map(asks).collect()
}

fn share(
    settings: &HamiSettings,
    container: &Container,
    path: &str,
    missing: MissingCount,
) -> Result<Option<ShareRequest>, Unreadable> {
    let default_memory = match settings.default_memory {
        memory if memory > MiB::default() => MemoryRequest::Exact(memory),
        _ => MemoryRequest::Part(Percent::WHOLE),
    };
    let terms = Terms {
        count: &settings.count,
        memory: &settings.memory,
        memory_percentage: &settings.memory_percentage,
        cores: &settings.cores,
        memory_factor: settings.memory_factor,
        default_count: missing.supplied(settings.default_count),
        default_memory,
        default_cores: settings.default_cores,
    };
    terms.read(&ResourceReader::new(container, path))
}

/// Which node first, where `default` holds for a pod that does not say.
pub(in crate::dialect) fn node_policy(default: NodePolicy, pod: &Pod) -> NodePolicy {
    match pod.metadata.annotation(names::NODE_POLICY) {
        Some("binpack") => NodePolicy::Binpack,
        Some("spread") => NodePolicy::Spread,
        Some("least-waste") => NodePolicy::LeastWaste,
        _ => default,
    }
}

fn selection(pod: &Pod) -> Selection {
    let known = [("hami-core", Mode::Soft), ("mig", Mode::Mig), ("mps", Mode::Mps)];
    // The card's mode must be a substring of the value (v2.10 `pkg/device/nvidia/device.go` `checkType`).
    let modes = pod.metadata.annotation(names::MODE);
    let modes = modes
        .map(|value| known.iter().filter(|(word, _)| value.contains(word)).map(|&(_, mode)| mode).collect());
    Selection {
        models: super::Hami::HINTS.models(&pod.metadata),
        ids: super::Hami::HINTS.ids(&pod.metadata),
        modes,
    }
}
