//! Pods whose claims are compared with devices beside the decisions, since that takes longer than a decision may.
//!
//! One comparison of a namespace is under way at a time, and its pods with claims wait for it, so no number of claims of one namespace
//! makes those of another wait. What was found is kept where the claims' verdicts are; here stands only who waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{PodProgress, Scheduler};
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

/// The namespaces with a comparison under way, and the pods that wait for its end.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    under_way: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// The namespace for which each pod waits.
    waiting: BTreeMap<Uid, Arc<str>>,
}

impl Comparisons {
    fn wait(&mut self, uid: &Uid, namespace: &Arc<str>) {
        self.under_way.entry(namespace.clone()).or_default().insert(uid.clone());
        self.waiting.insert(uid.clone(), namespace.clone());
    }

    /// The pod no longer waits; the comparison goes on.
    pub(super) fn leave(&mut self, uid: &Uid) {
        let namespace = self.waiting.remove(uid);
        if let Some(pods) = namespace.and_then(|namespace| self.under_way.get_mut(&namespace)) {
            pods.remove(uid);
        }
    }

    /// Whether the pod waits.
    pub(super) fn holds(&self, uid: &Uid) -> bool {
        self.waiting.contains_key(uid)
    }

    /// How many pods wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn end(&mut self, namespace: &str) -> BTreeSet<Uid> {
        let pods = self.under_way.remove(namespace).unwrap_or_default();
        for uid in &pods {
            self.waiting.remove(uid);
        }
        pods
    }
}

impl Scheduler {
    /// Lets a pod with claims wait while claims of its namespace are compared; whether it has to.
    pub(super) fn wait_for_comparison(&mut self, uid: &Uid) -> bool {
        let Some(entry) = self.pods.get(uid) else { return false };
        let (footprint, namespace) = (&entry.info.footprint, entry.info.key.namespace.clone());
        let has_claims = !footprint.resource_claims.is_empty() || footprint.extended.is_some();
        let waits = has_claims && self.waiting.comparisons.under_way.contains_key(&namespace);
        if waits {
            self.await_comparison(uid, &namespace);
        }
        waits
    }

    /// What earlier decisions have left to be compared is no longer asked for.
    pub(super) fn forget_unfinished(&mut self) {
        self.classes.counts().forget_unfinished();
    }

    /// Has the claims of a pod compared beside the decisions, where the decision that found this error could not; whether it is so.
    pub(super) fn compare_beside(&mut self, uid: &Uid, error: &FitError) -> bool {
        if error.awaits() != Awaits::Comparison {
            return false;
        }
        let Some(demand) = self.demand(uid) else { return false };
        let (world, (counts, weights)) = (self.snapshot.world(), self.classes.counts_and_weights());
        let outlook = || Outlook::new(world.clone(), BTreeMap::new(), weights);
        let Some(comparison) = ClaimComparison::left(&demand, counts, outlook) else { return false };
        let namespace = comparison.namespace().clone();
        self.await_comparison(uid, &namespace);
        self.outbox.effects.push(Effect::CompareClaims(comparison));
        true
    }

    /// The pods of a gang wait for the same comparison.
    pub(super) fn await_comparison(&mut self, uid: &Uid, namespace: &Arc<str>) {
        self.stop_waiting(uid);
        self.waiting.queue.remove(uid);
        self.set_progress(uid, PodProgress::Comparing);
        self.waiting.comparisons.wait(uid, namespace);
    }

    /// A comparison is over: the pods that wait for it are decided again.
    pub(super) fn claims_compared(&mut self, compared: ComparedClaims) {
        let namespace = compared.namespace().clone();
        let (counts, _) = self.classes.counts_and_weights();
        compared.keep(counts, self.snapshot.world());
        for uid in self.waiting.comparisons.end(&namespace) {
            self.set_progress(&uid, PodProgress::Idle);
            self.enqueue(&uid);
        }
    }
}
