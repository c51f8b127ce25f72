//! Which pods may come: what nodes are worth to them is found out beside the decisions once these have begun.

use jiff::Timestamp;

use super::{SchedulingCycle, scheduling_queue::MOST_STEPS};
use crate::scheduling::{effect::Effect, node_flow::Course};

/// Takes in which pods may come since others are there.
pub(in crate::scheduling::scheduler) fn note(cycle: &mut SchedulingCycle) {
    let weighed = cycle.pods.take_weighed();
    if !weighed.is_empty() {
        cycle.snapshot.packing_mut().weigh(weighed);
    }
}

/// Counts pods anew of whose claims, or of what decides on these, something has changed, as many as the turn has time for.
pub(in crate::scheduling::scheduler) fn count_claims(cycle: &mut SchedulingCycle) {
    let mut has_counted = false;
    while cycle.queue.steps() < MOST_STEPS / 4 {
        let Some(steps) = cycle.pods.count_claims(cycle.snapshot.world()) else { break };
        cycle.queue.charge_turn(steps);
        has_counted = true;
    }
    if has_counted {
        note(cycle);
    }
}

/// When pods are counted anew that the turn had no time for: in the next one, at once.
pub(in crate::scheduling::scheduler) fn deadline(cycle: &SchedulingCycle) -> Option<Timestamp> {
    let is_left = cycle.pods.has_claims_to_count(cycle.snapshot.world());
    is_left.then(|| cycle.queue.turn_began())
}

/// Has rooms valued for the pods that may come by now, unless that is under way. Until pods are decided, and where none are, another mix counts at once.
pub(in crate::scheduling::scheduler) fn renew(cycle: &mut SchedulingCycle) {
    if cycle.duty.course == Course::Standby {
        return;
    }
    if !cycle.snapshot.packing().is_renewed_beside() {
        cycle.snapshot.packing_mut().renew_beside();
    }
    if cycle.snapshot.packing().needs_renewal() {
        let renewal = cycle.snapshot.packing_mut().begin_renewal();
        cycle.outbox.effects.extend(renewal.map(Effect::RenewMix));
    }
}
