//! The best of the nodes found from the highest score down, where no node's score depends on those of others or on a quota: what comes after it is not
//! tested.

use std::sync::Arc;

use super::{Evaluation, Unchosen};
use crate::scheduling::{
    decide::{
        Refusals,
        descent::{Descent, scores_of},
        shortlist::{LISTED, UNFIT},
        verdict::{FittingNode, best},
        verdicts::AlikeNodes,
    },
    world::node_state::NodeState,
};

impl<'a> Evaluation<'a, '_> {
    /// The best of the candidates, whatever their rank.
    pub(super) fn descend(
        &self,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
    ) -> Result<&'a Arc<NodeState>, Unchosen<'a>> {
        if let Some(first) = self.first_of_all(&is_candidate)? {
            return Ok(first);
        }
        if let Some(may_pass) = self.may_pass()
            && let Some(best) = self.best_among(Some(&may_pass), &is_candidate, &mut Refusals::default())?
        {
            return Ok(best);
        }
        let mut refusals = Refusals::default();
        let best = self.best_among(None, &is_candidate, &mut refusals)?;
        best.ok_or_else(|| self.refused(refusals))
    }

    /// The first by name of the nodes with the highest score, if that one passes: mostly it does. Where nodes are scored by rooms, several have to be compared.
    fn first_of_all(
        &self,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        if self.verdicts.are_by_room() {
            return Ok(None);
        }
        let mut descent = Descent::new(self.verdicts.scores());
        let Some(equals) = descent.next_group() else { return Ok(None) };
        self.judged_to(equals.score)?;
        let Some(first) = equals.in_order_of_name(&self.filters.world.nodes).next() else { return Ok(None) };
        Ok(self.passes(first, is_candidate, &mut Refusals::default())?.then_some(first))
    }

    /// By slot, whether the node may pass, by what plugins know of all nodes at once; `None`: nothing is known. A node in front of others is always tested, as
    /// these have to be judged where it fails.
    fn may_pass(&self) -> Option<Vec<bool>> {
        let mut may_pass = self.filters.may_pass(self.verdicts.slots())?;
        for front in self.verdicts.fronts() {
            may_pass[front] = true;
        }
        Some(may_pass)
    }

    /// The best candidate of all nodes, or of those that may pass; `None`: none passes.
    fn best_among(
        &self,
        may_pass: Option<&[bool]>,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        if self.verdicts.are_by_room() {
            return self.best_by_room(may_pass, is_candidate, refusals);
        }
        let scores = self.verdicts.scores();
        let narrowed = may_pass.map(|may_pass| scores_of(scores, may_pass));
        self.first(narrowed.as_deref().unwrap_or(scores), is_candidate, refusals)
    }

    /// The first by name of the candidates with the highest score, of nodes with these scores by slot.
    fn first(
        &self,
        scores: &[f64],
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        let mut descent = Descent::new(scores);
        while let Some(equals) = descent.next_group() {
            self.judged_to(equals.score)?;
            let equals = equals.in_order_of_name(&self.filters.world.nodes);
            let first = self.first_of(equals, &is_candidate, refusals)?;
            if first.is_some() {
                return Ok(first);
            }
        }
        self.judged_to(UNFIT)?;
        Ok(None)
    }

    /// The best candidate of the shortlist, whose nodes' costs by their rooms are found out exactly.
    fn best_by_room(
        &self,
        may_pass: Option<&[bool]>,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        let is_left = |slot: &usize| may_pass.is_none_or(|may_pass| may_pass[*slot]);
        let (mut listed, mut scores, mut below) = (Vec::new(), 0, f64::INFINITY);
        let mut count = LISTED;
        while scores < LISTED {
            let alike = self.verdicts.alike(below, count);
            let Some(AlikeNodes { score: least, .. }) = alike.last() else { break };
            below = *least;
            // Each pass looks at every node, and all candidates may be far down.
            count *= 2;
            for equals in alike.chunk_by(|one, other| one.score.total_cmp(&other.score).is_eq()) {
                if scores == LISTED {
                    break;
                }
                self.judged_to(equals[0].score)?;
                let before = listed.len();
                for AlikeNodes { fit, slots, .. } in equals {
                    // These cost the same, so the first by name is the best of them.
                    let left = slots.iter().copied().filter(is_left).collect();
                    let left = self.filters.world.nodes.in_order_of_name(left);
                    let first = self.first_of(left, &is_candidate, refusals)?;
                    listed.extend(first.map(|node| (node, *fit)));
                }
                scores += usize::from(listed.len() > before);
            }
        }
        if scores < LISTED {
            self.judged_to(UNFIT)?;
        }
        let packing = self.filters.world.packing();
        let exact = |(node, fit): (_, &FittingNode)| (node, fit.scores.exact(packing).total(&self.weights));
        Ok(best(listed.into_iter().map(exact), |_| 0))
    }

    /// The first of these nodes that is a candidate and passes.
    fn first_of(
        &self,
        nodes: impl Iterator<Item = &'a Arc<NodeState>>,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        for state in nodes {
            if self.passes(state, &is_candidate, refusals)? {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Whether this node fits, is a candidate and passes. Where it does not, and others stand behind it, these have to be judged.
    fn passes(
        &self,
        state: &'a Arc<NodeState>,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<bool, Unchosen<'a>> {
        let Some(fit) = self.verdicts.fit(state.slot) else { return Ok(false) };
        if is_candidate(state) {
            match self.filters.test(state, &fit.taken) {
                Ok(_) => return Ok(true),
                Err(refusal) => refusals.note(state, refusal),
            }
        }
        if self.verdicts.is_in_front(state.slot) { Err(Unchosen::NeedsMore) } else { Ok(false) }
    }

    /// That no node with this score or a higher one is still to be judged.
    fn judged_to(&self, score: f64) -> Result<(), Unchosen<'a>> {
        let is_below = self.verdicts.highest_deferred().is_none_or(|deferred| deferred < score);
        if is_below { Ok(()) } else { Err(Unchosen::NeedsMore) }
    }

    fn refused(&self, refusals: Refusals<'a>) -> Unchosen<'a> {
        let is_complete = self.verdicts.are_complete();
        if is_complete { Unchosen::Refused(refusals.in_order_of_slots()) } else { Unchosen::NeedsAll }
    }
}

#[cfg(test)]
mod tests;
