//! Placing the pods of a gang in one plan, and what it is if they find no room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::pool::{Applicant, Pool};
use crate::scheduling::{
    decide::{Decision, class::Classes, fit_error::FitError},
    model::name::{NodeName, Uid},
    plan::Plan,
    snapshot::Snapshot,
    world::ledger::Charge,
};

/// A node with this rank is not taken at all.
pub(super) const OUTSIDE: usize = usize::MAX;

/// A node outside the preferred domain comes after every node inside.
pub(super) const LAST: usize = usize::MAX / 4 * 3;

/// The nodes with each value of a label.
pub(super) type NodesByValue = BTreeMap<Arc<str>, BTreeSet<NodeName>>;

impl Applicant {
    /// The pod.
    pub fn uid(&self) -> &Uid {
        &self.demand.uid
    }
}

/// What one pod needs to be placed on trial, beside the plan itself.
pub trait TrialRoom {
    /// Where the pod goes, by the cluster as the plan has it: a node with a smaller `rank` comes first. It may evict others in the plan.
    ///
    /// # Errors
    ///
    /// No node would have it; `None`: only nodes outside the domain would.
    fn find(
        &mut self,
        applicant: &Applicant,
        plan: &mut Plan<'_>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Result<Decision, Option<FitError>>;

    /// The pod's place on the same node again, if that still has room for it.
    fn confirm(&mut self, applicant: &Applicant, plan: &mut Plan<'_>, found: &Decision) -> Option<Decision>;

    /// What is known of pods with equal asks, where steps are counted.
    fn classes(&mut self) -> &mut Classes;

    /// What the decision charges to the pod.
    fn charge(&self, uid: &Uid, decision: &Decision) -> Charge;
}

/// Why a gang is not placed.
#[derive(Clone, Debug)]
pub struct GangShortfall {
    /// How many pods find a place together at most, those that hold one included.
    pub fitting: usize,
    /// The pods that find none beside the others, and why; `None`: they would outside the domain.
    pub failed: Vec<(Uid, Option<FitError>)>,
    /// The node label of which no value has room for enough pods, with the best value.
    pub domain: Option<(Arc<str>, Option<Arc<str>>)>,
}

impl GangShortfall {
    /// Why this pod finds no place; `None`: it does, or was not tried. The error is none where it would outside the domain.
    pub fn failure_of(&self, uid: &Uid) -> Option<Option<&FitError>> {
        let failed = self.failed.iter().find(|(failed, _)| failed == uid);
        failed.map(|(_, error)| error.as_ref())
    }
}

impl Pool<'_> {
    /// The values of the node label in which the gang may be placed: that of the pods which are placed, else each.
    pub(super) fn domains(&self, key: &str, snapshot: &Snapshot, nodes: &NodesByValue) -> Vec<Arc<str>> {
        let value = |node: &NodeName| {
            let state = snapshot.node(node)?;
            state.info.labels.get(key).map(Into::into)
        };
        if let Some(taken) = self.nodes.iter().find_map(|(_, node)| value(node)) {
            return vec![taken];
        }
        let mut domains: Vec<_> = nodes.iter().map(|(value, nodes)| (nodes.len(), value.clone())).collect();
        // The smallest domain that has room leaves the larger ones whole.
        domains.sort();
        domains.into_iter().map(|(_, value)| value).collect()
    }

    /// What the trial lacks to make the gang whole: so many pods were placed, and these found no place; with the domain that had room for most.
    pub(super) fn shortfall(
        &self,
        placed: usize,
        failed: Vec<(Uid, Option<FitError>)>,
        domain: Option<(Arc<str>, Option<Arc<str>>)>,
    ) -> GangShortfall {
        GangShortfall { fitting: self.placed.total() + placed, failed, domain }
    }
}

/// A gang is placed where its pods fit, and no pod is evicted.
#[derive(Debug)]
pub struct AsItIs<'a, C> {
    /// What is known of pods with equal asks.
    pub classes: &'a mut Classes,
    /// What a decision charges.
    pub charge: C,
}

impl<C: Fn(&Uid, &Decision) -> Charge> TrialRoom for AsItIs<'_, C> {
    fn find(
        &mut self,
        applicant: &Applicant,
        plan: &mut Plan<'_>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Result<Decision, Option<FitError>> {
        self.classes.decide(&applicant.demand, plan, rank).map_err(Some)
    }

    fn confirm(&mut self, applicant: &Applicant, plan: &mut Plan<'_>, found: &Decision) -> Option<Decision> {
        self.classes.confirm(&applicant.demand, &found.node, plan)
    }

    fn classes(&mut self) -> &mut Classes {
        self.classes
    }

    fn charge(&self, uid: &Uid, decision: &Decision) -> Charge {
        (self.charge)(uid, decision)
    }
}
