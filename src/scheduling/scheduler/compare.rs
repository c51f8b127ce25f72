//! Pods whose claims are compared with devices beside the decisions, since that takes longer than a decision may.
//!
//! One comparison of a namespace is under way at a time, and its pods with claims wait for it, so no number of claims of one namespace
//! makes those of another wait. What was found is kept where the claims' verdicts are; here stands only who waits.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::scheduling::{
    decide::{
        comparison::{ClaimComparison, ComparedClaims},
        fit_error::{Awaits, FitError},
        outlook::Outlook,
    },
    effect::Effect,
    model::{
        name::Uid,
        steps::{Allowance, PER_MILLISECOND},
    },
};

/// How long one decision compares claims with devices: about 10 ms. A search of 4,000 steps takes as long.
pub(super) const CLAIM_ALLOWANCE: Allowance = Allowance::of(10 * PER_MILLISECOND);

impl Scheduler {
    /// Has the claims of a pod compared beside the decisions, where the decision that found this error could not; whether it is so.
    pub(super) fn compare_beside(&mut self, uid: &Uid, error: &FitError) -> bool {
        if error.awaits() != Awaits::Comparison {
            return false;
        }
        let Some(demand) = self.demand(uid) else { return false };
        let (world, (counts, weights)) = (self.snapshot.world(), self.classes.counts_and_weights());
        let outlook = || Outlook::new(world.clone(), BTreeMap::new(), weights);
        let Some(comparison) = ClaimComparison::left(&demand, counts, outlook) else { return false };
        if let Some(entry) = self.pods.get(uid) {
            self.queue.await_comparison(&entry.info.key, &mut self.classes);
        }
        self.outbox.effects.push(Effect::CompareClaims(comparison));
        true
    }

    /// A comparison is over: the pods that wait for it are decided again.
    pub(super) fn claims_compared(&mut self, compared: ComparedClaims) {
        let namespace = compared.namespace().clone();
        let (counts, _) = self.classes.counts_and_weights();
        compared.keep(counts, self.snapshot.world());
        for uid in self.queue.comparisons.end(&namespace) {
            self.enqueue(&uid);
        }
    }
}
