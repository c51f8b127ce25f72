//! Which devices selectors admit, kept from one attempt to the next: evaluating an expression takes longer than all else.

use std::sync::Arc;

use super::{
    CandidateDevice,
    attempt::Choice,
    solution::Solution,
    toll::{GoOn, before_evaluation},
};
use crate::dra::{
    AllocationError,
    claim::{Alternative, Selector},
    device::{DerivedValues, PoolDevice, Reading},
};

/// What an earlier attempt has chosen.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    /// By claim: each choice, with the device as it was published then.
    pub(super) choices: Vec<Vec<(Choice, Reading)>>,
    pub(super) alternatives: Vec<Vec<usize>>,
}

/// What was computed of a device as it was published then.
type ReadValues = (Reading, Arc<DerivedValues>);

/// Which devices of one node the selectors of some claims admit, as far as they were asked. It holds for claims that ask for the same by
/// the same classes; a device that is published anew is asked about again.
#[derive(Clone, Debug, Default)]
pub struct Selected {
    /// Of each alternative, over all claims and requests in their order: by place among the candidates, the device that stood there and
    /// whether it was admitted.
    by_alternative: Vec<Vec<Option<(Reading, bool)>>>,
    /// In the same places, the attributes that the alternative computes of a device.
    derived: Vec<Vec<Option<ReadValues>>>,
    /// What the last attempt that found devices has chosen.
    earlier: Option<Earlier>,
    /// Which alternatives come next.
    next: usize,
}

impl Selected {
    /// A new attempt begins, with the first alternative of the first request.
    pub(super) fn start_over(&mut self) {
        self.next = 0;
    }

    /// What follows is about the next alternative.
    pub(super) fn turn_to_next(&mut self) {
        self.next += 1;
        if self.by_alternative.len() < self.next {
            self.by_alternative.push(Vec::new());
            self.derived.push(Vec::new());
        }
    }

    /// Whether all selectors admit the device in this place among the candidates. One that they admit and that can't be given is an error.
    pub(super) fn admits(
        &mut self,
        at: usize,
        alternative: &Alternative,
        device: &PoolDevice,
        go_on: GoOn<'_>,
    ) -> Result<bool, AllocationError> {
        match (self.select(at, alternative, device, go_on)?, device.unserved) {
            (true, Some(field)) => {
                Err(AllocationError::UnservedDevice { device: device.id.clone().into(), field })
            }
            (admits, _) => Ok(admits),
        }
    }

    /// The attributes that the alternative computes of the device in this place among the candidates; `None`: it computes none.
    pub(super) fn derived(
        &mut self,
        at: usize,
        alternative: &Alternative,
        device: &PoolDevice,
        go_on: GoOn<'_>,
    ) -> Result<Option<Arc<DerivedValues>>, AllocationError> {
        if alternative.derived.is_empty() {
            return Ok(None);
        }
        let places = &mut self.derived[self.next - 1];
        if let Some(Some((reading, values))) = places.get(at)
            && *reading == device.reading
        {
            return Ok(Some(values.clone()));
        }
        let mut values = DerivedValues::new();
        for derived in &alternative.derived {
            before_evaluation(go_on, derived.cost())?;
            values.extend([derived.of(device)?]);
        }
        let values = Arc::new(values);
        if places.len() <= at {
            places.resize(at + 1, None);
        }
        places[at] = Some((device.reading, values.clone()));
        Ok(Some(values))
    }

    fn select(
        &mut self,
        at: usize,
        alternative: &Alternative,
        device: &PoolDevice,
        go_on: GoOn<'_>,
    ) -> Result<bool, AllocationError> {
        if alternative.class.selectors.is_empty() && alternative.selectors.is_empty() {
            return Ok(true);
        }
        let places = &mut self.by_alternative[self.next - 1];
        if let Some(Some((reading, admits))) = places.get(at)
            && *reading == device.reading
        {
            return Ok(*admits);
        }
        let admits = selected(alternative, device, go_on)?;
        if places.len() <= at {
            places.resize(at + 1, None);
        }
        places[at] = Some((device.reading, admits));
        Ok(admits)
    }

    /// Keeps what was chosen.
    pub(super) fn keep(&mut self, solution: &Solution, candidates: &[CandidateDevice<'_>]) {
        let with_reading = |choice: &Choice| (*choice, candidates[choice.candidate].device.reading);
        let choices = solution.choices.iter().map(|choices| choices.iter().map(with_reading).collect());
        let alternatives = solution.alternatives.clone();
        self.earlier = Some(Earlier { choices: choices.collect(), alternatives });
    }

    /// What the last attempt that found devices has chosen.
    pub(super) fn earlier(&self) -> Option<&Earlier> {
        self.earlier.as_ref()
    }
}

/// Whether all selectors admit the device, those of the class first.
pub(super) fn selected(
    alternative: &Alternative,
    device: &PoolDevice,
    go_on: GoOn<'_>,
) -> Result<bool, AllocationError> {
    for selector in alternative.class.selectors.iter().chain(&alternative.selectors) {
        let selector: &Selector = selector;
        before_evaluation(go_on, selector.cost())?;
        if !selector.admits(device)? {
            return Ok(false);
        }
    }
    Ok(true)
}
