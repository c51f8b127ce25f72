//! The objects of the world: pods that ask for one share, and what they hold.

use jiff::Timestamp;

use super::NODE;
use crate::{
    device::{Answer, LockName},
    scheduling::{
        fixtures::{self, PROFILE},
        model::pod::{Ask, Holding, PodInfo, Stage},
        world::ledger::{Charge, Commitment},
    },
};

pub(super) fn lock_name() -> LockName {
    LockName { profile: PROFILE.into(), key: "lock".into() }
}

pub(super) fn ask() -> Ask {
    fixtures::ask(1, 1, 0)
}

pub(super) fn holding(answer: Answer) -> Holding {
    fixtures::holding(NODE, vec![fixtures::allocation(PROFILE, fixtures::share("GPU-0", 1, 0), answer)])
}

pub(super) fn charge(pod: &PodInfo, commitment: Commitment, since: Timestamp) -> Charge {
    let allocations = match &pod.holding {
        Some(holding) => holding.allocations.clone(),
        None => holding(Answer::Awaited).allocations,
    };
    Charge {
        pod: pod.key.clone(),
        footprint: pod.footprint.clone(),
        importance: pod.importance.clone(),
        placer: pod.placer,
        commitment,
        stage: pod.stage,
        since,
        ..fixtures::charge(NODE, allocations.to_vec())
    }
}

/// Whether a plugin that is told by no lock which pod to serve may take this one.
pub(super) fn is_taken_without_lock(pod: &PodInfo) -> bool {
    let waits = |answer| matches!(answer, Answer::Awaited | Answer::Succeeded);
    let holding = pod.holding.as_ref().filter(|_| pod.stage == Stage::Pending);
    holding.is_some_and(|holding| holding.allocations.iter().any(|one| waits(one.answer)))
}

pub(super) fn is_awaited(pod: &PodInfo) -> bool {
    let holding = pod.holding.as_ref();
    holding.is_some_and(|holding| holding.allocations.iter().any(|one| one.answer == Answer::Awaited))
}
