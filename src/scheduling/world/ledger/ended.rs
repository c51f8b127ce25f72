//! What pods held before they ended, or before they held something else: kept for those who count hours.

use std::{collections::VecDeque, sync::Arc};

use jiff::Timestamp;

use super::{Charge, Commitment};

/// So many are kept: where nobody takes them, the oldest are dropped.
pub const KEPT: usize = 10_000;

/// What a bound pod held until it ended, or until it held something else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EndedCharge {
    /// What it held.
    pub charge: Arc<Charge>,
    /// When that was seen to be over.
    pub until: Timestamp,
}

/// Charges that have ended, the oldest first; a bounded number.
#[derive(Clone, Debug, Default)]
pub struct EndedCharges(VecDeque<EndedCharge>);

impl EndedCharges {
    /// Keeps what a pod held until now, where it was seen to be bound with shares of cards.
    pub fn push(&mut self, charge: impl Into<Arc<Charge>>, until: Timestamp) {
        let charge = charge.into();
        let counts = charge.commitment == Commitment::Bound && charge.tenure.is_some();
        if counts && charge.shares().next().is_some() {
            self.keep(EndedCharge { charge, until });
        }
    }

    /// Keeps these too, after those that are kept.
    pub fn extend(&mut self, ended: impl IntoIterator<Item = EndedCharge>) {
        ended.into_iter().for_each(|ended| self.keep(ended));
    }

    fn keep(&mut self, ended: EndedCharge) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(ended);
    }

    /// Forgets those that were over by then.
    pub fn forget(&mut self, by: Timestamp) {
        self.0.retain(|ended| ended.until > by);
    }

    /// The oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &EndedCharge> {
        self.0.iter()
    }
}

impl IntoIterator for EndedCharges {
    type Item = EndedCharge;
    type IntoIter = std::collections::vec_deque::IntoIter<EndedCharge>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        device::Answer,
        scheduling::{
            fixtures,
            model::{tenure::Tenure, workload::Workload},
        },
    };

    fn at(second: usize) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    fn charge(tenure: Option<Arc<Tenure>>) -> Charge {
        let share = fixtures::share("GPU-0", 1000, 10);
        Charge {
            tenure,
            ..fixtures::charge("n", vec![fixtures::allocation("hami-nvidia", share, Answer::Succeeded)])
        }
    }

    #[test]
    fn only_pods_that_were_seen_bound_with_shares_are_kept_and_the_newest_of_them() {
        let workload = Arc::new(Workload { kind: "Job".into(), name: "train".into() });
        let tenure = Some(Arc::new(Tenure { workload, since: at(0) }));
        let mut ended = EndedCharges::default();
        ended.push(charge(None), at(1));
        ended.push(Charge { commitment: Commitment::Assumed, ..charge(tenure.clone()) }, at(1));
        ended.push(Charge { allocations: Vec::new().into(), ..charge(tenure.clone()) }, at(1));
        assert_eq!(ended.iter().count(), 0);
        (0..KEPT + 2).for_each(|second| ended.push(charge(tenure.clone()), at(second)));
        assert_eq!((ended.iter().count(), ended.iter().next().unwrap().until), (KEPT, at(2)));
        ended.forget(at(KEPT));
        assert_eq!(ended.iter().map(|ended| ended.until).collect::<Vec<_>>(), [at(KEPT + 1)]);
    }
}
