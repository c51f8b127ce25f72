//! What a pod asks in HAMi's names.
//!
//! Source: HAMi v2.10 `pkg/device/nvidia/device.go` (`GenerateResourceRequests`), without its silent rounding: what can't be
//! represented is an error that names the field.

use std::collections::BTreeSet;

use super::{Settings, choice, names};
use crate::{
    device::{
        ContainerRequest, MemoryRequest, MiB, Mode, NodePolicy, Percent, PodRequest, Selection, ShareRequest,
    },
    dialect::{MissingCount, Problem, Unreadable, amounts::Reader, count, segments},
    object::{Container, Pod},
};

/// What the pod asks; `None` where no container asks for a share.
pub(super) fn read(
    settings: &Settings,
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
        marks: BTreeSet::new(),
        shuns: BTreeSet::new(),
    }))
}

/// For each container in starting order, whether it asks for a share.
pub(super) fn asks(settings: &Settings, pod: &Pod) -> Vec<bool> {
    let asks = |(path, container): (String, &Container)| {
        matches!(share(settings, container, &path, MissingCount::Default), Ok(Some(_)))
    };
    pod.containers().map(asks).collect()
}

fn share(
    settings: &Settings,
    container: &Container,
    path: &str,
    missing: MissingCount,
) -> Result<Option<ShareRequest>, Unreadable> {
    let read = Reader::new(container, path);
    let memory = read.number(&settings.memory, "MiB", settings.memory_factor)?;
    let percentage = read.percentage(&settings.memory_percentage)?;
    let cores = read.percentage(&settings.cores)?;
    let shares = [&settings.memory, &settings.memory_percentage, &settings.cores].map(String::as_str);
    let default = missing.supplied(settings.default_count);
    let Some(cards) = count::cards(&read, &settings.count, shares, default)? else { return Ok(None) };
    if memory.is_some_and(|memory| memory > 0) && percentage.is_some_and(|percentage| percentage > 0) {
        let message =
            format!("memory is given twice: `{}` and `{}`", settings.memory, settings.memory_percentage);
        return Err(Unreadable::new(Problem::MemoryTwice, read.field(&settings.memory), message));
    }
    let memory = memory_request(settings, memory, percentage);
    let cores = cores.map_or(settings.default_cores, Percent::new);
    Ok(Some(ShareRequest { cards, memory, cores }))
}

fn memory_request(settings: &Settings, memory: Option<u32>, percentage: Option<u32>) -> MemoryRequest {
    let exact = memory.filter(|&memory| memory > 0).map(|memory| {
        MemoryRequest::Exact(MiB::new(u64::from(memory) * u64::from(settings.memory_factor.max(1))))
    });
    let part = percentage.filter(|&part| part > 0).map(|part| MemoryRequest::Part(Percent::new(part)));
    let default =
        Some(settings.default_memory).filter(|&memory| memory > MiB::default()).map(MemoryRequest::Exact);
    exact.or(part).or(default).unwrap_or(MemoryRequest::Part(Percent::WHOLE))
}

/// Which node first, where `default` holds for a pod that does not say.
pub(in crate::dialect) fn node_policy(default: NodePolicy, pod: &Pod) -> NodePolicy {
    match pod.metadata.annotation(names::NODE_POLICY) {
        Some("binpack") => NodePolicy::Binpack,
        Some("spread") => NodePolicy::Spread,
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
