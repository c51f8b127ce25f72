//! In which order the pods of a gang are tried where they do not all find room in the order of the queue.
//!
//! A small pod that goes first can take the card that a large one needs. So as few and as small pods as are enough are taken, and of these the
//! most demanding first. Not every order is tried: where the sizes of pods do not divide each other, a way to place them all can be missed.

use std::cmp::Reverse;

use super::pool::{Applicant, Pool};
use crate::{device::MemoryRequest, scheduling::model::pod::Ask};

/// How much a pod asks for: the largest part of a card's memory in percent, MiB, compute, cards, and cpu in thousandths. The first that
/// differs counts.
pub(super) type Size = [u64; 5];

pub(super) fn size(ask: &Ask) -> Size {
    let shares = ask.devices.iter().flat_map(|device| &device.request.containers);
    let parts = shares.filter_map(|container| match container.share?.memory {
        MemoryRequest::Part(percent) => Some(u64::from(percent.get())),
        MemoryRequest::Exact(_) => None,
    });
    let part = parts.max().unwrap_or(0);
    let least = || ask.devices.iter().map(|device| device.request.least());
    let cpu = u64::try_from(ask.resources.get("cpu")).unwrap_or(0);
    [
        part,
        least().map(|usage| usage.memory.get()).sum(),
        least().map(|usage| u64::from(usage.cores.get())).sum(),
        least().map(|usage| u64::from(usage.slots)).sum(),
        cpu,
    ]
}

/// The least demanding pods that make the gang whole, the most demanding of them first, and then all others. `None`: all ask for as much, so
/// that no order helps more than another.
pub(super) fn by_size<'a>(pool: &'a Pool<'_>) -> Option<Vec<&'a Applicant>> {
    let mut sized: Vec<_> =
        pool.applicants.iter().map(|applicant| (size(&applicant.demand.ask), applicant)).collect();
    if sized.windows(2).all(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    sized.sort_by_key(|(size, _)| *size);
    let mut tally = pool.placed.clone();
    let (mut first, mut others): (Vec<_>, Vec<_>) = sized.into_iter().partition(|(_, applicant)| {
        let lacks = pool.gang.lacks_of_task(&tally, &applicant.member);
        if lacks {
            tally.count(&applicant.member);
        }
        lacks
    });
    let rest = others.split_off(pool.gang.lacks(&tally).min(others.len()));
    first.append(&mut others);
    first.sort_by_key(|(size, _)| Reverse(*size));
    Some(first.into_iter().chain(rest).map(|(_, applicant)| applicant).collect())
}
