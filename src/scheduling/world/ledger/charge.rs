//! What one pod holds, and how firm that is.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use thin_vec::ThinVec;

use super::Peak;
use crate::{
    device::{Allocation, Answer, Assignment, Cuts, InitPhase, ProfileName, Share, usage},
    scheduling::model::{
        footprint::Footprint,
        name::{NodeName, full_name},
        pod::{Importance, Placer, PodKey, Stage},
        prebind_step::PrebindStep,
        tenure::Tenure,
    },
};

/// How firm a charge is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Commitment {
    /// Decided here and not yet bound: confirmed or forgotten, never expired by a timer.
    Assumed,
    /// Meant by another scheduler.
    Intended,
    /// Bound.
    Bound,
}

/// What one pod holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Charge {
    /// On which node.
    pub node: NodeName,
    /// Which pod, whose namespace's quotas count it.
    pub pod: PodKey,
    /// Shares of cards, one allocation for each dialect.
    pub allocations: Arc<[Allocation]>,
    /// Whether its init containers still count.
    pub init: InitPhase,
    /// What it is to the plugins beside its cards.
    pub footprint: Arc<Footprint>,
    /// What is to be written for its claims, until it is.
    pub steps: ThinVec<PrebindStep>,
    /// Whether, and in which order, it is a victim of preemption.
    pub importance: Importance,
    /// Who placed it.
    pub placer: Placer,
    /// How firm it is.
    pub commitment: Commitment,
    /// How far the pod is.
    pub stage: Stage,
    /// Since when the node's agents owe an answer.
    pub since: Timestamp,
    /// Since when the pod holds that, and whose it is; `None` until it is seen to be bound.
    pub tenure: Option<Arc<Tenure>>,
}

impl Charge {
    /// Whether an agent of the node is at work for this pod: no other may be bound there meanwhile.
    pub fn is_in_flight(&self) -> bool {
        self.commitment == Commitment::Bound
            && self.stage == Stage::Pending
            && self.allocations.iter().any(Allocation::is_awaited)
    }

    /// Whether the lock of its node tells when an agent has served it.
    pub fn awaits_unlock(&self) -> bool {
        self.commitment == Commitment::Bound
            && self.stage == Stage::Pending
            && self.allocations.iter().any(Allocation::is_told_by_lock)
    }

    /// Whether the pod was given just these cards by a decision of Berth's own.
    pub fn gives(&self, allocations: &[Allocation]) -> bool {
        let shares = |one| {
            let Allocation { profile, assignment, .. }: &Allocation = one;
            (profile, assignment)
        };
        self.allocations.iter().map(shares).eq(allocations.iter().map(shares))
    }

    /// What the agents have made of the pod as a whole: `Awaited` while one has not answered, else the worst answer; `Succeeded` where it
    /// holds no cards.
    pub fn answer(&self) -> Answer {
        let mut worst_first = [Answer::Awaited, Answer::Failed, Answer::Withdrawn].into_iter();
        worst_first.find(|answer| self.has_answer(*answer)).unwrap_or(Answer::Succeeded)
    }

    /// Whether an agent has answered so.
    pub fn has_answer(&self, answer: Answer) -> bool {
        self.allocations.iter().any(|allocation| allocation.answer == answer)
    }

    /// What the agent of this dialect has made of the pod; `None`: it holds none of its cards.
    pub fn answer_of(&self, profile: &ProfileName) -> Option<Answer> {
        let mut allocations = self.allocations.iter();
        allocations.find(|allocation| allocation.profile == *profile).map(|allocation| allocation.answer)
    }

    /// The uid of the Reservation that it uses.
    pub fn reservation(&self) -> Option<&str> {
        let written = self.footprint.reservation.as_ref().and_then(|pod| pod.uses.as_deref());
        let mut chosen = self.allocations.iter().filter_map(|one| one.assignment.reservation.as_ref());
        written.or_else(|| chosen.next().map(|reservation| reservation.uid.as_str()))
    }

    /// The full names of the claims of devices that it uses, one that is made for it included.
    pub(in crate::scheduling) fn claims_of_devices(&self) -> Vec<Arc<str>> {
        let made = self.steps.iter().filter_map(PrebindStep::extended);
        let made = made
            .filter(|choice| choice.made.is_some())
            .map(|choice| full_name(&self.pod.namespace, &choice.claim));
        self.footprint.claims_of_devices().chain(made).collect()
    }

    /// Whether it uses a claim of devices, one that is made for it included.
    pub(in crate::scheduling) fn uses_devices(&self) -> bool {
        self.footprint.may_use_devices() || self.steps.iter().any(|step| step.extended().is_some())
    }

    /// The dialects whose cards it holds.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileName> {
        self.allocations.iter().map(|allocation| &allocation.profile)
    }

    /// Every share, whichever dialect's and container's.
    pub fn shares(&self) -> impl Iterator<Item = &Share> {
        self.allocations.iter().flat_map(|allocation| allocation.assignment.shares())
    }

    /// Why some of the cards that it holds are unknown, in words; `None`: all are known.
    pub fn unread(&self) -> Option<String> {
        let unread: Vec<_> =
            self.allocations.iter().filter_map(|allocation| allocation.unread.as_deref()).collect();
        (!unread.is_empty()).then(|| unread.join("; "))
    }

    /// What it holds of each dialect's cards at its peak; of shares that a claim serves, what the pod says.
    pub(super) fn peaks(&self, cuts: Option<&Cuts>) -> ThinVec<Peak> {
        let peak = |allocation: &Allocation| {
            let sized = sized(&allocation.assignment, cuts);
            (allocation.profile.clone(), usage::total(&sized, self.init))
        };
        let by_claim = self.footprint.extended.as_ref().and_then(|extended| extended.shares.as_ref());
        let by_claim = by_claim.filter(|shares| self.answer_of(&shares.profile).is_none());
        let by_claim = by_claim.map(|shares| (shares.profile.clone(), shares.least));
        self.allocations.iter().map(peak).chain(by_claim).collect()
    }

    /// Whether both hold the same, with the same priority.
    pub fn holds_as(&self, other: &Self) -> bool {
        let Self { node, allocations, init, footprint, steps, importance, .. } = other;
        let own = (&self.node, &self.init, &self.footprint, &self.steps, self.importance.priority);
        let mut pairs = self.allocations.iter().zip(allocations.iter());
        own == (node, init, footprint, steps, importance.priority)
            && self.allocations.len() == allocations.len()
            && pairs.all(|(own, other)| own.holds_as(other))
    }
}

/// The assignment with each hardware slice holding its own size, where the node's cards are known to be cut.
pub(super) fn sized<'a>(assignment: &'a Assignment, cuts: Option<&Cuts>) -> Cow<'a, Assignment> {
    cuts.map_or(Cow::Borrowed(assignment), |cuts| cuts.sized(assignment))
}
