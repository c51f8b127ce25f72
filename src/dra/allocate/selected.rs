//! Which devices selectors admit, kept from one attempt to the next: evaluating an expression takes longer than all else.

use crate::dra::{
    AllocationError,
    claim::{Alternative, Selector},
    device::{Device, Reading},
};

/// Which devices of one node the selectors of some claims admit, as far as they were asked. It holds for claims that ask for the same by
/// the same classes; a device that is published anew is asked about again.
#[derive(Clone, Debug, Default)]
pub struct Selected {
    /// Of each alternative, over all claims and requests in their order: by place among the candidates, the device that stood there and
    /// whether it was admitted.
    by_alternative: Vec<Vec<Option<(Reading, bool)>>>,
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
        }
    }

    /// Whether all selectors admit the device in this place among the candidates.
    pub(super) fn admits(
        &mut self,
        at: usize,
        alternative: &Alternative,
        device: &Device,
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
        let admits = selected(alternative, device)?;
        if places.len() <= at {
            places.resize(at + 1, None);
        }
        places[at] = Some((device.reading, admits));
        Ok(admits)
    }
}

/// Whether all selectors admit the device, those of the class first.
fn selected(alternative: &Alternative, device: &Device) -> Result<bool, AllocationError> {
    let mut selectors = alternative.class.selectors.iter().chain(&alternative.selectors);
    let refused: Option<Result<bool, AllocationError>> = selectors
        .find_map(|selector: &Selector| Some(selector.admits(device)).filter(|admits| *admits != Ok(true)));
    refused.unwrap_or(Ok(true))
}
