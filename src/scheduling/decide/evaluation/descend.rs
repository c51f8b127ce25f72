//! The best of the nodes found from the highest score down, where no node's score depends on those of others or on a quota: what comes after it is not
//! tested.

use std::sync::Arc;

use super::{Evaluation, Unchosen};
use crate::scheduling::{
    decide::{
        Refusals,
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
        if self.verdicts.are_by_room() {
            self.descend_by_room(is_candidate)
        } else {
            self.first(is_candidate)
        }
    }

    /// The first by name of the candidates with the highest score.
    fn first(
        &self,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
    ) -> Result<&'a Arc<NodeState>, Unchosen<'a>> {
        let mut refusals = Refusals::default();
        let mut descent = self.verdicts.descent();
        while let Some(group) = descent.next_group() {
            self.judged_to(group[0].0)?;
            let slots = group.iter().map(|(_, slot)| *slot).collect();
            if let Some(first) = self.first_of(slots, &is_candidate, &mut refusals)? {
                return Ok(first);
            }
        }
        self.judged_to(UNFIT)?;
        Err(self.refused(refusals))
    }

    /// The best candidate of the shortlist, whose nodes' costs by their rooms are found out exactly.
    fn descend_by_room(
        &self,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
    ) -> Result<&'a Arc<NodeState>, Unchosen<'a>> {
        let mut refusals = Refusals::default();
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
                    let first = self.first_of(slots.clone(), &is_candidate, &mut refusals)?;
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
        best(listed.into_iter().map(exact), |_| 0).ok_or_else(|| self.refused(refusals))
    }

    /// The first by name of the nodes in these slots that are candidates and pass.
    fn first_of(
        &self,
        slots: Vec<usize>,
        is_candidate: impl Fn(&Arc<NodeState>) -> bool,
        refusals: &mut Refusals<'a>,
    ) -> Result<Option<&'a Arc<NodeState>>, Unchosen<'a>> {
        for state in self.filters.world.nodes.in_order_of_name(slots) {
            let Some(fit) = self.verdicts.fit(state.slot) else { continue };
            if is_candidate(state) {
                match self.filters.test(state, &fit.taken) {
                    Ok(_) => return Ok(Some(state)),
                    Err(refusal) => refusals.note(state, refusal),
                }
            }
            if self.verdicts.is_in_front(state.slot) {
                return Err(Unchosen::NeedsMore);
            }
        }
        Ok(None)
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
