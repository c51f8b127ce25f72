//! What a pod asks for, and why it waits, in words.

use std::fmt::Write as _;

use crate::{
    device::{CoreRequest, MemoryRequest, ProfileRequest, ShareRequest},
    excerpt::{SUMMARY, excerpt},
    scheduling::{
        Details,
        model::pod::Demand,
        pending::{PendingPod, PendingReason},
    },
};

/// The first of the reasons by which waiting pods are counted.
pub(super) fn first_reason(pod: &PendingPod) -> Option<String> {
    pod.reason.as_ref()?.blame().labels().into_iter().next().map(|(_, reason)| reason)
}

/// Why the pod waits, in as much detail as its owner is told.
pub(super) fn message(reason: &PendingReason, details: Details) -> String {
    excerpt(&reason.message().told(details).0, SUMMARY).into_owned()
}

/// What a pod asks for: `2 x 4000 MiB, 30 %`.
pub(super) fn asks(demand: &Demand) -> String {
    let shares = demand.ask.devices.iter().flat_map(|device| {
        let shares = device.request.containers.iter().filter_map(|container| container.share);
        shares.map(move |share| share_words(device, &share))
    });
    let shares: Vec<_> = shares.collect();
    if !shares.is_empty() {
        return shares.join(" + ");
    }
    let mut words = String::new();
    for (resource, unit, divisor) in [("cpu", " cpu", 1000.0), ("memory", " GiB", 1024.0 * 1024.0 * 1024.0)] {
        let asked = demand.footprint.resources.get(resource);
        if asked > 0 {
            let comma = if words.is_empty() { "" } else { ", " };
            #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
            let amount = asked as f64 / divisor;
            write!(words, "{comma}{amount:.1}{unit}").expect("a string takes all");
        }
    }
    words
}

fn share_words(device: &ProfileRequest, share: &ShareRequest) -> String {
    let memory = match share.memory {
        MemoryRequest::Exact(memory) => memory.to_string(),
        MemoryRequest::Part(percent) => format!("{percent} of memory"),
    };
    let cores = match share.cores {
        CoreRequest::Exact(cores) => device.profile.core_budget.unit().words(cores),
        CoreRequest::Part(percent) => percent.to_string(),
    };
    format!("{} x {memory}, {cores}", share.cards)
}
