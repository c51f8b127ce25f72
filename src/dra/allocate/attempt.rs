//! What an attempt has chosen so far, and how the last choice is taken back.

use std::{collections::BTreeMap, sync::Arc};

use super::CandidateDevice;
use crate::{
    dra::{
        HeldDevices, WaitingClaim,
        claim::{Alternative, ClaimRequest},
        constraint::{ComparedDevices, Constraint},
        counters::Counters,
        device::DerivedValues,
        pool::VisiblePool,
    },
    object::Amount,
};

/// A device that was chosen for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Choice {
    /// The device's place among the candidates.
    pub(super) candidate: usize,
    /// The request's place in its claim.
    pub(super) request: usize,
    /// The alternative's place in its request.
    pub(super) alternative: usize,
}

/// Why a device could not be chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Conflict {
    /// Another request of the attempt has it, or too much of it.
    Taken,
    /// Its pool has too little of a counter.
    Counters,
    /// A constraint of the claim refuses it.
    Constraint,
}

/// Where a choice is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoicePlace<'a> {
    pub(super) claim: usize,
    pub(super) request: (usize, &'a ClaimRequest),
    pub(super) alternative: (usize, &'a Alternative),
    /// By candidate, the attributes that the alternative computes of it.
    pub(super) derived: &'a BTreeMap<usize, Arc<DerivedValues>>,
}

/// The choices of an attempt.
pub(super) struct AllocationAttempt<'a> {
    claims: &'a [&'a WaitingClaim],
    candidates: &'a [CandidateDevice<'a>],
    /// By claim, in the order of their requests.
    pub(super) choices: Vec<Vec<Choice>>,
    /// By claim and constraint.
    compared: Vec<Vec<ComparedDevices>>,
    /// By candidate: the claims that have the device as a whole.
    whole: Vec<Vec<usize>>,
    /// By candidate: the shares of the attempt, and how much they take of each capacity.
    shares: Vec<(usize, BTreeMap<String, Amount>)>,
    counters: Vec<Counters>,
}

impl<'a> AllocationAttempt<'a> {
    pub(super) fn new(
        claims: &'a [&'a WaitingClaim],
        candidates: &'a [CandidateDevice<'a>],
        pools: &[VisiblePool<'_>],
        held: &HeldDevices,
    ) -> Self {
        Self {
            claims,
            candidates,
            choices: vec![Vec::new(); claims.len()],
            compared: claims
                .iter()
                .map(|claim| vec![ComparedDevices::default(); claim.constraints.len()])
                .collect(),
            whole: vec![Vec::new(); candidates.len()],
            shares: vec![(0, BTreeMap::new()); candidates.len()],
            counters: pools.iter().map(|pool| Counters::of(pool, held)).collect(),
        }
    }

    /// Whether the attempt has chosen the device already, for whichever request.
    pub(super) fn uses(&self, candidate: usize) -> bool {
        !self.whole[candidate].is_empty() || self.shares[candidate].0 > 0
    }

    /// How much the attempt takes of a shared device's capacity.
    pub(super) fn shared(&self, candidate: usize, capacity: &str) -> Amount {
        self.shares[candidate].1.get(capacity).copied().unwrap_or_default()
    }

    /// Chooses a device; nothing is changed where there is a conflict.
    pub(super) fn choose(&mut self, place: ChoicePlace<'a>, candidate: usize) -> Result<(), Conflict> {
        if !self.is_available(place, candidate) {
            return Err(Conflict::Taken);
        }
        if !self.take_counters(candidate) {
            return Err(Conflict::Counters);
        }
        if !self.compare(place, candidate) {
            self.give_back_counters(candidate);
            return Err(Conflict::Constraint);
        }
        self.occupy(place, candidate);
        let (request, alternative) = (place.request.0, place.alternative.0);
        self.choices[place.claim].push(Choice { candidate, request, alternative });
        Ok(())
    }

    /// Takes the last choice of the claim back.
    pub(super) fn take_back(&mut self, place: ChoicePlace<'a>, candidate: usize) {
        self.choices[place.claim].pop();
        if self.candidates[candidate].device.shareable {
            self.shares[candidate].0 -= 1;
            self.change_shares(place.alternative.1, candidate, Amount::minus);
        } else {
            self.whole[candidate].pop();
        }
        for (constraint, compared) in about(self.claims, &mut self.compared, place) {
            let _: &Constraint = constraint;
            Constraint::remove_last(compared);
        }
        self.give_back_counters(candidate);
    }

    /// Whether nothing else of the attempt keeps the request from the device. A device that only one can have is had once in a claim,
    /// by an administrator too; of a shared one, enough must be left.
    fn is_available(&self, place: ChoicePlace<'_>, candidate: usize) -> bool {
        let CandidateDevice { device, shares_left, .. } = self.candidates[candidate];
        let alternative = place.alternative.1;
        let whole = &self.whole[candidate];
        if !device.shareable {
            return if alternative.is_admin() { !whole.contains(&place.claim) } else { whole.is_empty() };
        }
        let taken = |left: u32| usize::try_from(left).is_ok_and(|left| self.shares[candidate].0 >= left);
        if !alternative.is_admin() && shares_left.is_some_and(taken) {
            return false;
        }
        let consumed = |name: &str| self.candidates[candidate].consumed(name);
        device.capacity.iter().all(|(name, capacity)| {
            let taken = capacity.taken(alternative.capacity.get(name)).amount;
            consumed(name).plus(self.shared(candidate, name)).plus(taken) <= capacity.value.amount
        })
    }

    /// A shared device that is in use has taken its counters already.
    fn has_counters_already(&self, candidate: usize) -> bool {
        let CandidateDevice { device, is_claimed, .. } = self.candidates[candidate];
        device.shareable && (is_claimed || self.shares[candidate].0 > 0)
    }

    fn take_counters(&mut self, candidate: usize) -> bool {
        let CandidateDevice { device, pool, .. } = self.candidates[candidate];
        device.consumes.is_empty()
            || self.has_counters_already(candidate)
            || self.counters[pool].take(&device.consumes)
    }

    /// Called once the choice itself is taken back.
    fn give_back_counters(&mut self, candidate: usize) {
        let CandidateDevice { device, pool, .. } = self.candidates[candidate];
        if !self.has_counters_already(candidate) {
            self.counters[pool].give_back(&device.consumes);
        }
    }

    /// Puts the device to each constraint; `false`: one refuses it, and none has taken it in.
    fn compare(&mut self, place: ChoicePlace<'a>, candidate: usize) -> bool {
        let device = self.candidates[candidate].device;
        let derived = place.derived.get(&candidate).map(|derived| &**derived);
        let mut added = 0;
        let mut fits = true;
        for (constraint, compared) in about(self.claims, &mut self.compared, place) {
            if !constraint.add(compared, device, derived) {
                fits = false;
                break;
            }
            added += 1;
        }
        if !fits {
            let taken_in = about(self.claims, &mut self.compared, place).take(added);
            taken_in.for_each(|(_, compared)| Constraint::remove_last(compared));
        }
        fits
    }

    fn occupy(&mut self, place: ChoicePlace<'a>, candidate: usize) {
        if self.candidates[candidate].device.shareable {
            self.shares[candidate].0 += 1;
            self.change_shares(place.alternative.1, candidate, Amount::plus);
        } else {
            self.whole[candidate].push(place.claim);
        }
    }

    fn change_shares(
        &mut self,
        alternative: &Alternative,
        candidate: usize,
        change: fn(Amount, Amount) -> Amount,
    ) {
        for (name, capacity) in &self.candidates[candidate].device.capacity {
            let taken = capacity.taken(alternative.capacity.get(name)).amount;
            let shared = self.shares[candidate].1.entry(name.clone()).or_default();
            *shared = change(*shared, taken);
        }
    }
}

/// The constraints of the claim that are about the alternative, and what each has compared.
fn about<'a: 'b, 'b>(
    claims: &'a [&'a WaitingClaim],
    compared: &'b mut [Vec<ComparedDevices>],
    place: ChoicePlace<'a>,
) -> impl Iterator<Item = (&'a Constraint, &'b mut ComparedDevices)> {
    let constraints = claims[place.claim].constraints.iter().zip(compared[place.claim].iter_mut());
    constraints.filter(move |(constraint, _)| {
        constraint.is_about(&place.request.1.name, &place.alternative.1.full_name)
    })
}
