//! Room for a gang that is made by evicting pods of lower priority, on trial.

use std::{collections::BTreeMap, fmt};

use super::{
    place::{OUTSIDE, TrialRoom},
    pool::Applicant,
};
use crate::scheduling::{
    decide::{Decision, class::Classes, fit_error::FitError},
    model::{
        name::{NodeName, Uid},
        steps::TRY_POD,
    },
    plan::{
        Plan,
        preemption::{self, Candidate, Rules, Victim},
    },
    world::ledger::Charge,
};

/// At most so many pods go for one pod of a gang: a turn has to take them all off on trial, and to put them back.
const MOST_VICTIMS: usize = 2_000;

/// The node of each pod for which others go, and these.
pub type Candidates = BTreeMap<Uid, Candidate>;

/// A node on which a pod of the gang fits without victims of its own.
pub(super) fn as_it_is(node: NodeName) -> Candidate {
    Candidate { node, victims: Vec::new(), violations: 0 }
}

/// Room that is made by evicting pods of lower priority where there is none.
pub struct MadeRoom<'a, C> {
    classes: &'a mut Classes,
    rules: Rules,
    charge: C,
    /// For which pods others go.
    candidates: Candidates,
}

impl<'a, C: Fn(&Uid, &Decision) -> Charge> MadeRoom<'a, C> {
    /// Nothing is made yet.
    pub fn new(classes: &'a mut Classes, rules: Rules, charge: C) -> Self {
        Self { classes, rules, charge, candidates: Candidates::default() }
    }

    /// As this, in a search that goes on: for these pods others were to go.
    #[must_use]
    pub fn going_on(self, candidates: Candidates) -> Self {
        Self { candidates, ..self }
    }

    /// For which pods others go, for the search to go on with.
    pub fn candidates(self) -> Candidates {
        self.candidates
    }

    /// The node of each pod that was placed in the end, with the pods that go for it, in the same order; none go for one that fits
    /// as it is.
    pub fn nominations(mut self, placed: Vec<(Uid, Decision)>) -> Vec<(Uid, Candidate)> {
        let nominations = placed.into_iter().map(|(uid, decision)| {
            let candidate = self.candidates.remove(&uid).unwrap_or_else(|| as_it_is(decision.node));
            (uid, candidate)
        });
        nominations.collect()
    }
}

impl<C: Fn(&Uid, &Decision) -> Charge> TrialRoom for MadeRoom<'_, C> {
    fn find(
        &mut self,
        applicant: &Applicant,
        plan: &mut Plan<'_>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Result<Decision, Option<FitError>> {
        let demand = &applicant.demand;
        self.candidates.remove(&demand.uid);
        let outside = |node: &NodeName| rank(node) == OUTSIDE;
        let error = match self.classes.decide(demand, plan, rank) {
            Ok(decision) if !outside(&decision.node) => return Ok(decision),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        // A pod that fits outside the domain may preempt others inside.
        if error.as_ref().is_some_and(|error| !preemption::is_tried(demand, error, plan)) {
            return Err(error);
        }
        let (counts, allowed) = (self.classes.counts(), |node: &NodeName| !outside(node));
        let chosen = preemption::choose_among(demand, plan, counts, self.rules, &allowed);
        let Some(candidate) = chosen.ok().filter(|candidate| candidate.victims.len() <= MOST_VICTIMS) else {
            return Err(error);
        };
        self.classes.counts().steps().add(TRY_POD, candidate.victims.len());
        for victim in &candidate.victims {
            plan.end(&victim.pod, demand);
        }
        let there = |node: &NodeName| if *node == candidate.node { 0 } else { OUTSIDE };
        let decision = self.classes.decide(demand, plan, there).map_err(Some)?;
        self.candidates.insert(demand.uid.clone(), candidate);
        Ok(decision)
    }

    /// The pods that went for it must still be on their nodes.
    fn confirm(&mut self, applicant: &Applicant, plan: &mut Plan<'_>, found: &Decision) -> Option<Decision> {
        let victims = self.candidates.get(applicant.uid()).map_or(&[][..], |candidate| &candidate.victims);
        let is_there =
            |victim: &Victim| plan.ledger().get(&victim.pod).is_some_and(|held| held.node == victim.node);
        if !victims.iter().all(is_there) {
            return None;
        }
        let mark = plan.mark();
        for victim in victims {
            plan.end(&victim.pod, &applicant.demand);
        }
        let confirmed = self.classes.confirm(&applicant.demand, &found.node, plan);
        if confirmed.is_none() {
            plan.undo(mark);
        }
        confirmed
    }

    fn classes(&mut self) -> &mut Classes {
        self.classes
    }

    fn charge(&self, uid: &Uid, decision: &Decision) -> Charge {
        (self.charge)(uid, decision)
    }
}

impl<C> fmt::Debug for MadeRoom<'_, C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MadeRoom").field("candidates", &self.candidates).finish_non_exhaustive()
    }
}
