//! Pods whose claims are compared with devices beside the decisions, since that takes longer than a decision may.
//!
//! One comparison of a namespace is under way at a time, and its pods with claims wait for it, so no number of claims of one namespace
//! makes those of another wait. What was found is kept where the claims' verdicts are; here stands only who waits.

use std::collections::BTreeMap;

use super::SchedulingCycle;
use crate::scheduling::{
    decide::{
        class::Classes,
        comparison::{ClaimComparison, ComparedClaims},
        fit_error::{Awaits, FitError},
        outlook::Outlook,
    },
    effect::Effect,
    model::{
        name::Uid,
        pod::Demand,
        steps::{Allowance, PER_MILLISECOND},
    },
    snapshot::Snapshot,
};

/// How long one decision compares claims with devices: about 10 ms. A search of 4,000 steps takes as long.
pub(in crate::scheduling::scheduler) const CLAIM_ALLOWANCE: Allowance = Allowance::of(10 * PER_MILLISECOND);

/// What the last decision for the pod has left to be compared, where it could not say more than this error; `None`: nothing.
pub(in crate::scheduling::scheduler) fn left_to_compare(
    demand: impl FnOnce() -> Option<Demand>,
    error: &FitError,
    snapshot: &Snapshot,
    classes: &mut Classes,
) -> Option<ClaimComparison> {
    if error.awaits() != Awaits::Comparison {
        return None;
    }
    let demand = demand()?;
    let (counts, weights) = classes.counts_and_weights();
    let outlook = || Outlook::new(snapshot.world().clone(), BTreeMap::new(), weights);
    ClaimComparison::left(&demand, counts, outlook)
}

impl SchedulingCycle {
    /// Has claims compared beside the decisions; these pods wait for that.
    pub(in crate::scheduling::scheduler) fn compare_beside<'a>(
        &mut self,
        comparison: ClaimComparison,
        pods: impl IntoIterator<Item = &'a Uid>,
    ) {
        for entry in pods.into_iter().filter_map(|uid| self.pods.get(uid)) {
            self.queue.await_comparison(&entry.info.key, &mut self.classes);
        }
        self.outbox.effects.push(Effect::CompareClaims(comparison));
    }

    /// A comparison is over: the pods that wait for it are decided again.
    pub(in crate::scheduling::scheduler) fn claims_compared(&mut self, compared: ComparedClaims) {
        let namespace = compared.namespace().clone();
        let (counts, _) = self.classes.counts_and_weights();
        compared.keep(counts, self.snapshot.world());
        for uid in self.queue.comparisons.end(&namespace) {
            self.enqueue(&uid);
        }
    }
}
