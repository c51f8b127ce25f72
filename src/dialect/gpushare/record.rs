//! The cards that a pod was given, by number.
//!
//! Source: Volcano `gpushare/share.go` (`GetGPUIndex`, `AddGPUIndexPatch`): indices joined with `,`, and the time in nanoseconds, the
//! smallest of which the plugin serves first.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{GpuShareSettings, request};
use crate::{
    device::{Assignment, ContainerShares, Cores, MiB, Share},
    dialect::{Carried, Problem, Record, Unreadable, segments, volcano::names},
    object::Pod,
};

/// The assignment that a pod carries. Memory of whole cards is not known here: they are taken by slot and compute.
pub(super) fn read(
    settings: &GpuShareSettings,
    resource: &str,
    pod: &Pod,
) -> Result<Option<Carried>, Unreadable> {
    let Some(text) = pod.metadata.annotation(names::GPU_INDEX).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let refuse = |message| Unreadable::annotation(Problem::Card, names::GPU_INDEX, message);
    let (indices, unread): (Vec<_>, Vec<_>) = text.split(',').map(index).partition(Result::is_ok);
    let indices: Vec<u32> = indices.into_iter().flatten().collect();
    let mut unread: Vec<_> = unread.into_iter().filter_map(Result::err).map(refuse).collect();
    let mut containers = Vec::new();
    for ((path, container), role) in pod.containers().zip(segments::roles(pod)) {
        let shares = match request::share(settings, resource, container, &path) {
            Ok(ask) => {
                ask.map(|ask| shares(&indices, ask.memory.of(MiB::default()), ask.cores.of(Cores::WHOLE)))
            }
            Err(trouble) => {
                unread.push(trouble);
                Some(shares(&indices, MiB::UNREAD, Cores::UNREAD))
            }
        };
        containers.push(ContainerShares { role, shares: shares.unwrap_or_default() });
    }
    let written = pod.metadata.annotation(names::PREDICATE_TIME).and_then(|time| time.parse().ok());
    let written = written.and_then(|nanoseconds| Timestamp::from_nanosecond(nanoseconds).ok());
    let assignment = Assignment { containers, written, ..Assignment::default() };
    if assignment.shares().next().is_none() {
        return unread.into_iter().next().map_or(Ok(None), Err);
    }
    Ok(Some(Carried { assignment, node: None, unread }))
}

fn index(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("`{}` is not the number of a card", segments::shown(text)))
}

fn shares(indices: &[u32], memory: MiB, cores: Cores) -> Vec<Share> {
    let share = |index: &u32| Share { card: index.to_string().into(), memory, cores, slice: None };
    indices.iter().map(share).collect()
}

/// The annotations of an assignment.
pub(super) fn write(assignment: &Assignment, now: Timestamp) -> Record {
    let now = assignment.written.map_or(now, |earliest| earliest.max(now));
    let indices: Vec<_> = assignment.shares().map(|share| share.card.as_str()).collect();
    let annotations =
        [(names::GPU_INDEX, indices.join(",")), (names::PREDICATE_TIME, now.as_nanosecond().to_string())];
    let annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Record { annotations, labels: BTreeMap::new() }
}
