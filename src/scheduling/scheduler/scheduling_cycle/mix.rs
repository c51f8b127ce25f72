//! Which pods may come: what nodes are worth to them is found out beside the decisions once these have begun.

use super::SchedulingCycle;
use crate::scheduling::{effect::Effect, node_flow::Course};

/// Takes in which pods may come since others are there.
pub(in crate::scheduling::scheduler) fn note(cycle: &mut SchedulingCycle) {
    let weighed = cycle.pods.take_weighed();
    if !weighed.is_empty() {
        cycle.snapshot.packing_mut().weigh(weighed);
    }
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
