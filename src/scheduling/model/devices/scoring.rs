//! How devices are compared: by how much of them is left, or by how much is used.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/scoring.go`. Upstream swaps what a GPU has with what is left of it where it
//! walks the topology; here it does not.

use std::sync::Arc;

use crate::device::{Amounts, NamedDimension};

const MOST: u64 = 100;

/// Which devices are better.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Strategy {
    /// Those with more left.
    LeastAllocated,
    /// Those with less left.
    MostAllocated,
}

/// How devices are compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scoring {
    /// Which are better.
    pub strategy: Strategy,
    /// The dimensions that count, and how much.
    pub weights: Arc<[(NamedDimension, u64)]>,
}

impl Scoring {
    /// A device's score, 0 to 100, with the request on it: the weighted mean over the dimensions that it has.
    pub fn of_one(&self, request: &Amounts, total: &Amounts, free: &Amounts) -> u64 {
        self.of_all(request, &std::iter::once((total, free)))
    }

    /// The score of several devices as if they were one.
    pub fn of_all<'a>(
        &self,
        request: &Amounts,
        devices: &(impl Iterator<Item = (&'a Amounts, &'a Amounts)> + Clone),
    ) -> u64 {
        let (mut sum, mut weights) = (0, 0);
        for (dimension, weight) in &*self.weights {
            let add = |sum: u64, of: &Amounts| sum.saturating_add(of.get(dimension).unwrap_or(0));
            let sums = |(all, left), (total, free)| (add(all, total), add(left, free));
            let (total, free) = devices.clone().fold((0, 0), sums);
            if total > 0 {
                let asked = request.get(dimension).unwrap_or(0);
                let taken = total.checked_sub(free).map_or(total, |used| used.saturating_add(asked));
                sum += weight * self.strategy.of(taken, total);
                weights += weight;
            }
        }
        sum.checked_div(weights).unwrap_or(0)
    }
}

impl Strategy {
    /// The score of so much taken of so much.
    fn of(self, taken: u64, total: u64) -> u64 {
        let part = |amount: u64| {
            if let Some(amount) = amount.checked_mul(MOST) {
                return amount / total;
            }
            let part = u128::from(amount) * u128::from(MOST) / u128::from(total);
            u64::try_from(part).unwrap_or(MOST)
        };
        match self {
            Self::LeastAllocated => part(total.saturating_sub(taken)),
            Self::MostAllocated => part(taken.min(total)),
        }
    }
}

/// Scores of nodes in percent of the greatest.
pub fn normalized(scores: &[u64]) -> Vec<u64> {
    let most = scores.iter().copied().max().unwrap_or(0);
    scores.iter().map(|score| (score * MOST).checked_div(most).unwrap_or(0)).collect()
}
