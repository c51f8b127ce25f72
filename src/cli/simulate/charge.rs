//! What pods of a simulation hold.

use jiff::Timestamp;

use crate::{
    device::{Allocation, Answer, InitPhase},
    scheduling::{
        PodInfo, Stage,
        decide::Decision,
        model::pod::Binding,
        world::ledger::{Charge, Commitment},
    },
};

/// What a pod of the input holds; nothing once it has ended.
pub(in crate::cli) fn held(info: &PodInfo, now: Timestamp) -> Option<Charge> {
    let holding = info.holding.as_ref().filter(|_| info.stage != Stage::Ended)?;
    Some(Charge {
        node: holding.node.clone(),
        namespace: info.key.namespace.clone(),
        allocations: holding.allocations.clone(),
        init: holding.init,
        footprint: info.footprint.clone(),
        steps: Vec::new(),
        importance: info.importance,
        placer: info.placer,
        commitment: match holding.binding {
            Binding::Bound => Commitment::Bound,
            Binding::Intended => Commitment::Intended,
        },
        stage: info.stage,
        since: now,
    })
}

/// What a pod holds that has just been placed: its agent has allocated at once.
pub(super) fn placed(info: &PodInfo, decision: Decision, now: Timestamp) -> Charge {
    let Decision { node, allocations, steps } = decision;
    let succeeded = |one| Allocation { answer: Answer::Succeeded, ..one };
    Charge {
        node,
        namespace: info.key.namespace.clone(),
        allocations: allocations.into_iter().map(succeeded).collect(),
        init: InitPhase::Ahead,
        footprint: info.footprint.clone(),
        steps,
        importance: info.importance,
        placer: info.placer,
        commitment: Commitment::Bound,
        stage: Stage::Pending,
        since: now,
    }
}
