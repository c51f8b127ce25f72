//! What a claim can't say: what makes a claim impossible, and what it leaves out.

use super::{MOST_REQUESTS, PodReading, Unexpressed};
use crate::{
    device::{Cores, LinkChoice, MemoryRequest, Mode, NumaBinding, Percent, Sharing},
    dialect::{Dialect, SharingMode, hami, unreadable::annotation_path, volcano},
};

/// Why no claim would give the pod what it asks; nothing where one may.
pub(super) fn impossible(reading: &PodReading<'_>) -> Vec<Unexpressed> {
    if !reading.is_of_nvidia() {
        let field = reading.asking().next().map(|asking| format!("{}.resources", asking.path));
        let reason = format!("the driver publishes no cards of {}", reading.dialect.name());
        return vec![Unexpressed::new(field.unwrap_or_else(|| "spec".to_owned()), reason)];
    }
    let mut reasons = Vec::new();
    let selection = &reading.request.selection;
    if selection.modes.as_ref().is_some_and(|modes| !modes.contains(&Mode::Soft)) {
        let reason = "asks for cards that are sliced in another way than by amounts of memory and compute";
        reasons.push(annotation(mode_key(reading.dialect), reason));
    }
    let requests = reading.asking().count();
    if requests > MOST_REQUESTS {
        let reason =
            format!("{requests} containers ask for shares, and a claim has {MOST_REQUESTS} requests at most");
        reasons.push(Unexpressed::new("spec.containers", reason));
    }
    reasons
}

fn mode_key(dialect: &dyn Dialect) -> &'static str {
    match dialect.mode() {
        SharingMode::Vgpu => volcano::names::MODE,
        _ => hami::names::MODE,
    }
}

/// What the claim leaves out of what the pod asks.
pub(super) fn left_out(reading: &PodReading<'_>) -> Vec<Unexpressed> {
    let request = reading.request;
    let mut reasons = Vec::new();
    if request.choice.sharing == Sharing::Alone {
        reasons.push(annotation(
            hami::names::CARD_POLICY,
            "a claim can't ask for a card that no other pod uses",
        ));
    }
    if request.choice.links == LinkChoice::Closest {
        reasons.push(annotation(hami::names::CARD_POLICY, "a claim can't ask for the best-linked cards"));
    }
    if request.choice.numa == NumaBinding::OneNode && request.widest() > 1 {
        let reason = "the driver publishes no NUMA node by which a claim could bind its cards";
        reasons.push(annotation(hami::names::NUMA_BIND, reason));
    }
    reasons.extend(request.shuns.iter().map(|mark| {
        let reason = format!("a claim can't keep off cards that pods of {mark} use");
        Unexpressed::new("metadata", reason)
    }));
    reasons.extend(of_containers(reading));
    reasons
}

fn of_containers(reading: &PodReading<'_>) -> Vec<Unexpressed> {
    let mut reasons = Vec::new();
    let cores = reading.dialect.share_resources().pop().unwrap_or_default();
    for asking in reading.asking() {
        let whole = asking.share.cores.of(Cores::WHOLE) >= Cores::WHOLE;
        let memory = asking.share.memory;
        if whole && !matches!(memory, MemoryRequest::Part(part) if part >= Percent::WHOLE) {
            let reason = "all compute of a card keeps every other share off it; beside a claim, shares without compute still fit";
            reasons.push(Unexpressed::new(asking.field(cores), reason));
        }
        let qualifies = |name: &&str| reading.dialect.qualifies(name);
        reasons.extend(asking.container.resources.names().filter(qualifies).map(|name| {
            Unexpressed::new(asking.field(name), "a claim has no priority for the container's limiter")
        }));
    }
    reasons
}

fn annotation(key: &str, reason: &str) -> Unexpressed {
    Unexpressed::new(annotation_path(key), reason)
}
