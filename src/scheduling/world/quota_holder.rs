//! The pods that hold most of what is used of a namespace's quotas: whoever is denied by a quota looks for these.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thin_vec::ThinVec;

use super::ledger::Peak;
use crate::device::{Dimension, ProfileName};

/// So many pods are found for each amount of each dialect.
pub const LARGEST: usize = 4;

/// The amounts that a quota bounds.
const DIMENSIONS: [Dimension; 3] = [Dimension::Cards, Dimension::Memory, Dimension::Cores];

/// The pods that hold most, by namespace.
pub type QuotaHolders = BTreeMap<Arc<str>, Vec<QuotaHolder>>;

/// A pod that holds some of its namespace's quotas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuotaHolder {
    /// Its name.
    pub pod: Arc<str>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// What it holds at its peak of each dialect's cards.
    pub held: ThinVec<Peak>,
}

/// How much a pod holds of one amount, its name and its position.
type Ranked<'a> = (Reverse<u64>, &'a str, usize);

/// Of these pods those that hold most: for each amount of each dialect the largest, in order of name.
pub fn largest(pods: Vec<QuotaHolder>) -> Vec<QuotaHolder> {
    // For each amount the positions of the largest, the largest first; of equals the first by name.
    let mut of_amount: BTreeMap<(&ProfileName, Dimension), Vec<Ranked<'_>>> = BTreeMap::new();
    for (at, pod) in pods.iter().enumerate() {
        for (profile, usage) in &pod.held {
            for dimension in DIMENSIONS {
                let amount = dimension.of(*usage);
                if amount == 0 {
                    continue;
                }
                let largest = of_amount.entry((profile, dimension)).or_default();
                let entry = (Reverse(amount), &*pod.pod, at);
                let place = largest.partition_point(|known| *known < entry);
                if place < LARGEST {
                    largest.insert(place, entry);
                    largest.truncate(LARGEST);
                }
            }
        }
    }
    let kept: BTreeSet<usize> = of_amount.into_values().flatten().map(|(_, _, at)| at).collect();
    let mut pods: Vec<_> =
        pods.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, pod)| pod).collect();
    pods.sort_by(|one, other| one.pod.cmp(&other.pod));
    pods
}

#[cfg(test)]
mod tests {
    use thin_vec::thin_vec;

    use super::*;
    use crate::device::{CardUsage, Cores, MiB};

    fn pod(name: &str, memory: u64, cores: u32) -> QuotaHolder {
        let usage = CardUsage { slots: 1, memory: MiB::new(memory), cores: Cores::new(cores) };
        QuotaHolder { pod: name.into(), terminating: false, held: thin_vec![("hami-nvidia".into(), usage)] }
    }

    #[test]
    fn of_many_pods_the_largest_of_each_amount_are_kept() {
        let mut pods: Vec<_> = (0..1000).map(|number| pod(&format!("p{number:04}"), number, 1)).collect();
        pods.push(pod("wide", 1, 90));
        let kept: Vec<_> = largest(pods).into_iter().map(|pod| pod.pod.to_string()).collect();
        let expected = ["p0000", "p0001", "p0002", "p0003", "p0996", "p0997", "p0998", "p0999", "wide"];
        assert_eq!(kept, expected);
    }
}
