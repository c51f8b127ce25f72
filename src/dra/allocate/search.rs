//! The search: depth first over requests, their alternatives and devices, with everything undone on the way back.

mod twins;

use super::{
    CandidateDevice, MOST_STEPS, MOST_STEPS_FOR_SCORE,
    attempt::{AllocationAttempt, Choice, ChoicePlace, Conflict},
    options::{self, DeviceOptions},
    score::AllocationScore,
    selected::Earlier,
    solution::Solution,
    toll::{GoOn, STEPS_AT_ONCE, Toll},
};
use crate::dra::{AllocationError, HeldDevices, WaitingClaim, error::MOST_RESULTS, pool::VisiblePool};

use twins::Twins;

/// A search under way.
pub(super) struct AllocationSearch<'a> {
    claims: &'a [&'a WaitingClaim],
    options: &'a [Vec<Vec<DeviceOptions>>],
    candidates: &'a [CandidateDevice<'a>],
    attempt: AllocationAttempt<'a>,
    alternatives: Vec<Vec<usize>>,
    twins: Twins,
    best: Option<Solution>,
    aim: Aim,
    /// By claim and request, the one alternative that may be taken; `None`: each.
    only: Vec<Vec<Option<usize>>>,
    steps: u64,
    /// At how many steps it ends.
    limit: u64,
    /// Whether the caller has ended it.
    interrupted: bool,
    /// A constraint that refuses one of all devices.
    refusal: Option<AllocationError>,
}

/// What the search looks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Aim {
    /// Any solution.
    First,
    /// The solution with the best score.
    Best,
}

/// The search is over: what it looks for was found, it has taken all of its steps, or the caller has ended it.
struct Over;

/// A request under way.
#[derive(Clone, Copy)]
struct SearchStep<'a> {
    place: ChoicePlace<'a>,
    options: &'a DeviceOptions,
}

impl<'a> AllocationSearch<'a> {
    pub(super) fn new(
        claims: &'a [&'a WaitingClaim],
        options: &'a [Vec<Vec<DeviceOptions>>],
        candidates: &'a [CandidateDevice<'a>],
        pools: &[VisiblePool<'_>],
        held: &HeldDevices,
    ) -> Self {
        Self {
            claims,
            options,
            candidates,
            attempt: AllocationAttempt::new(claims, candidates, pools, held),
            alternatives: claims.iter().map(|claim| vec![0; claim.requests.len()]).collect(),
            twins: Twins::of(claims, options, candidates),
            best: None,
            aim: Aim::First,
            only: claims.iter().map(|claim| vec![None; claim.requests.len()]).collect(),
            steps: 0,
            limit: MOST_STEPS,
            interrupted: false,
            refusal: None,
        }
    }

    /// The best of the solutions with the earliest alternatives; `None`: there is none.
    ///
    /// An interrupted search finds nothing, even where it has a solution: a longer one could find another.
    pub(super) fn run(&mut self, go_on: GoOn<'_>) -> Result<Option<Solution>, AllocationError> {
        let over = self.request(0, 0, go_on).is_err();
        if let Some(first) = self.best.take().filter(|_| !self.interrupted) {
            self.limit = self.steps + MOST_STEPS;
            self.best = Some(self.earliest(first, go_on));
            self.aim = Aim::Best;
            self.limit = self.steps + MOST_STEPS_FOR_SCORE;
            // Whether it took all steps or not makes no difference: there is a solution.
            let _: Result<(), Over> = self.request(0, 0, go_on);
        }
        match self.best.take() {
            _ if self.interrupted => Err(AllocationError::Interrupted),
            None if over => Err(AllocationError::SearchLimit(MOST_STEPS)),
            best => Ok(best),
        }
    }

    /// What an earlier attempt has chosen, if it can be chosen again. A search may find one with a better score by now.
    pub(super) fn repeat(&mut self, earlier: &Earlier) -> Option<Solution> {
        let (claims, options) = (self.claims, self.options);
        if earlier.choices.len() != claims.len() {
            return None;
        }
        for (at, (claim, choices)) in claims.iter().zip(&earlier.choices).enumerate() {
            for (number, request) in claim.requests.iter().enumerate() {
                let chosen = *earlier.alternatives.get(at)?.get(number)?;
                let (alternative, options) =
                    (request.alternatives.get(chosen)?, options[at][number].get(chosen)?);
                let mut own = choices.iter().filter(|(choice, _)| choice.request == number);
                if own.clone().count() != options.count {
                    return None;
                }
                let place = ChoicePlace {
                    claim: at,
                    request: (number, request),
                    alternative: (chosen, alternative),
                    derived: &options.derived,
                };
                let is_chosen = own.all(|(Choice { candidate, .. }, reading)| {
                    let device = self.candidates.get(*candidate).filter(|one| one.device.reading == *reading);
                    device.is_some_and(|one| options::is_free(alternative, one))
                        && options.devices.binary_search(candidate).is_ok()
                        && self.attempt.choose(place, *candidate).is_ok()
                });
                if !is_chosen {
                    return None;
                }
            }
        }
        let score = AllocationScore::of(&self.attempt, self.candidates);
        let (choices, alternatives) = (self.attempt.choices.clone(), earlier.alternatives.clone());
        Some(Solution { choices, alternatives, score })
    }

    /// A solution that has, from the first request on, the earliest alternative with which there is one. From then on these alone may
    /// be taken.
    fn earliest(&mut self, mut solution: Solution, go_on: GoOn<'_>) -> Solution {
        for claim in 0..self.claims.len() {
            for request in 0..self.claims[claim].requests.len() {
                for earlier in 0..solution.alternatives[claim][request] {
                    self.only[claim][request] = Some(earlier);
                    let _: Result<(), Over> = self.request(0, 0, go_on);
                    if let Some(better) = self.best.take() {
                        solution = better;
                        break;
                    }
                }
                self.only[claim][request] = Some(solution.alternatives[claim][request]);
            }
        }
        solution
    }

    /// Why one of all devices of a request could not be given, where that kept the search from a solution.
    pub(super) fn refusal(&mut self) -> Option<AllocationError> {
        self.refusal.take()
    }

    /// Serves this request and all that follow.
    fn request(&mut self, claim: usize, request: usize, go_on: GoOn<'_>) -> Result<(), Over> {
        let Some(known) = self.claims.get(claim) else { return self.found() };
        let Some(asked) = known.requests.get(request) else { return self.request(claim + 1, 0, go_on) };
        for (at, alternative) in asked.alternatives.iter().enumerate() {
            if self.only[claim][request].is_some_and(|only| only != at) {
                continue;
            }
            let options = &self.options[claim][request][at];
            let place = ChoicePlace {
                claim,
                request: (request, asked),
                alternative: (at, alternative),
                derived: &options.derived,
            };
            let many = self.attempt.choices[claim].len() + options.count > MOST_RESULTS;
            if many || options.devices.len() < options.count || options.devices.is_empty() {
                continue;
            }
            self.alternatives[claim][request] = at;
            let step = SearchStep { place, options };
            if options.all { self.all(step, 0, go_on)? } else { self.counted(step, 0, 0, go_on)? }
        }
        Ok(())
    }

    /// Chooses the devices from this one on, of which all are needed.
    fn all(&mut self, step: SearchStep<'a>, next: usize, go_on: GoOn<'_>) -> Result<(), Over> {
        let Some(&candidate) = step.options.devices.get(next) else {
            return self.request(step.place.claim, step.place.request.0 + 1, go_on);
        };
        self.count_step(go_on)?;
        if !options::is_free(step.place.alternative.1, &self.candidates[candidate]) {
            return Ok(());
        }
        match self.attempt.choose(step.place, candidate) {
            Ok(()) => {
                let result = self.all(step, next + 1, go_on);
                self.attempt.take_back(step.place, candidate);
                result
            }
            Err(Conflict::Constraint) => {
                self.refusal.get_or_insert_with(|| AllocationError::Constraint {
                    claim: self.claims[step.place.claim].name.clone(),
                    request: step.place.alternative.1.name.clone(),
                    device: self.candidates[candidate].device.id.clone().into(),
                });
                Ok(())
            }
            Err(Conflict::Taken | Conflict::Counters) => Ok(()),
        }
    }

    /// Chooses as many devices as are still needed, from the option at this place on: the order of a request's devices makes no
    /// difference.
    fn counted(
        &mut self,
        step: SearchStep<'a>,
        chosen: usize,
        from: usize,
        go_on: GoOn<'_>,
    ) -> Result<(), Over> {
        let needed = step.options.count - chosen;
        if needed == 0 {
            return self.request(step.place.claim, step.place.request.0 + 1, go_on);
        }
        let mut failed = Vec::new();
        let last = step.options.devices.len() - needed;
        for at in from..=last {
            let candidate = step.options.devices[at];
            let kind = (!self.attempt.uses(candidate)).then(|| self.twins.kind(candidate));
            if kind.is_some_and(|kind| failed.contains(&kind)) {
                // A device that is the same in all that counts has led to nothing, or to as good a solution.
                continue;
            }
            self.count_step(go_on)?;
            if self.attempt.choose(step.place, candidate).is_ok() {
                let result = self.counted(step, chosen + 1, at + 1, go_on);
                self.attempt.take_back(step.place, candidate);
                result?;
            }
            failed.extend(kind);
        }
        Ok(())
    }

    fn count_step(&mut self, go_on: GoOn<'_>) -> Result<(), Over> {
        if self.steps.is_multiple_of(STEPS_AT_ONCE) {
            self.interrupted |= go_on(Toll::Search { steps: STEPS_AT_ONCE }).is_break();
        }
        if self.interrupted {
            return Err(Over);
        }
        self.steps += 1;
        if self.steps > self.limit { Err(Over) } else { Ok(()) }
    }

    /// Takes in a solution. One that was found before is kept unless this one has a better score.
    fn found(&mut self) -> Result<(), Over> {
        let score = AllocationScore::of(&self.attempt, self.candidates);
        if self.best.as_ref().is_none_or(|best| score < best.score) {
            let (choices, alternatives) = (self.attempt.choices.clone(), self.alternatives.clone());
            self.best = Some(Solution { choices, alternatives, score });
        }
        if self.aim == Aim::First || score.is_ideal() { Err(Over) } else { Ok(()) }
    }
}
