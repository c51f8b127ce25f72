//! What the pods of one namespace hold of each dialect's cards, as quotas count it.
//!
//! It is folded from the pods, in segments: after a change only the pods of one segment are read again, however many the namespace has.

use std::collections::BTreeMap;

use super::{Held, Peak};
use crate::{
    device::{CardUsage, ProfileName},
    scheduling::model::name::Uid,
};

/// A segment with more pods than this is split.
const FULL: usize = 512;

/// The pods of one namespace.
#[derive(Clone, Debug)]
pub(super) struct NamespacePods {
    /// One after the other; there is at least one.
    segments: Vec<Segment>,
}

/// Pods whose uids follow each other.
#[derive(Clone, Debug, Default)]
struct Segment {
    /// No uid of its pods comes before this; `None`: the segment is the first.
    first: Option<Uid>,
    pods: BTreeMap<Uid, Box<[Peak]>>,
    /// What they hold together; `None`: that is to be folded anew.
    held: Option<Held>,
}

impl Default for NamespacePods {
    fn default() -> Self {
        Self { segments: vec![Segment::default()] }
    }
}

impl NamespacePods {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.pods.is_empty())
    }

    /// Each pod with what it holds at its peak, by uid.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Uid, &[Peak])> {
        let pods = self.segments.iter().flat_map(|segment| &segment.pods);
        pods.map(|(uid, peaks)| (uid, &**peaks))
    }

    /// What they hold together.
    pub(super) fn held(&mut self) -> Held {
        let mut held = Held::default();
        for segment in &mut self.segments {
            let pods = &segment.pods;
            let of_segment = segment.held.get_or_insert_with(|| {
                let mut held = Held::default();
                add(&mut held, pods.values().flatten().map(|(profile, peak)| (profile, peak)));
                held
            });
            add(&mut held, of_segment.iter());
        }
        held
    }

    pub(super) fn insert(&mut self, uid: Uid, peaks: Vec<Peak>) {
        let at = self.place_of(&uid);
        let segment = &mut self.segments[at];
        segment.held = None;
        segment.pods.insert(uid, peaks.into());
        if segment.pods.len() > FULL {
            let middle = segment.pods.keys().nth(FULL / 2).expect("it has more").clone();
            let pods = segment.pods.split_off(&middle);
            self.segments.insert(at + 1, Segment { first: Some(middle), pods, held: None });
        }
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        let at = self.place_of(uid);
        let segment = &mut self.segments[at];
        segment.held = None;
        segment.pods.remove(uid);
        // Pods that come later where it was belong to the segment before.
        if segment.pods.is_empty() && at > 0 {
            self.segments.remove(at);
        }
    }

    /// The place of the segment to which the pod belongs.
    fn place_of(&self, uid: &Uid) -> usize {
        let begins = |segment: &Segment| segment.first.as_ref().is_none_or(|first| first <= uid);
        self.segments.partition_point(begins) - 1
    }
}

fn add<'a>(held: &mut Held, peaks: impl Iterator<Item = (&'a ProfileName, &'a CardUsage)>) {
    for (profile, peak) in peaks {
        match held.get_mut(profile) {
            Some(total) => *total = total.and(*peak),
            None => drop(held.insert(profile.clone(), *peak)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Cores, MiB};

    fn peak(slots: u32) -> Peak {
        ("hami".into(), CardUsage { slots, memory: MiB::new(slots.into()), cores: Cores::new(slots) })
    }

    /// The slots that all pods hold, by the fold and one by one.
    fn slots(pods: &mut NamespacePods) -> [u32; 2] {
        let one_by_one = pods.iter().flat_map(|(_, peaks)| peaks).map(|(_, usage)| usage.slots).sum();
        [pods.held().values().map(|usage| usage.slots).sum(), one_by_one]
    }

    #[test]
    fn the_fold_is_that_of_all_pods_whatever_comes_and_goes() {
        let mut pods = NamespacePods::default();
        let uid = |number: u32| -> Uid { format!("{:08x}", number.wrapping_mul(2_654_435_761)).into() };
        for number in 0..5_000 {
            pods.insert(uid(number), vec![peak(number % 7)]);
            if number % 3 == 0 {
                pods.remove(&uid(number / 2));
            }
            if number % 50 == 0 {
                let [folded, one_by_one] = slots(&mut pods);
                assert_eq!(folded, one_by_one, "{number}");
            }
        }
        assert!(pods.segments.len() > 4, "they are in segments");
        assert!(pods.segments.iter().all(|segment| segment.pods.len() <= FULL));
        for number in 0..5_000 {
            pods.remove(&uid(number));
        }
        assert!(pods.is_empty() && pods.segments.len() == 1);
        assert_eq!(slots(&mut pods), [0, 0]);
    }

    #[test]
    fn after_a_change_only_the_pods_of_one_segment_are_folded_anew() {
        let mut pods = NamespacePods::default();
        for number in 0..4_000 {
            pods.insert(format!("{number:05}").into(), vec![peak(1)]);
        }
        pods.held();
        pods.insert("02000".into(), vec![peak(2)]);
        let outdated = pods.segments.iter().filter(|segment| segment.held.is_none());
        let outdated: usize = outdated.map(|segment| segment.pods.len()).sum();
        assert!((1..=FULL).contains(&outdated), "{outdated}");
        assert_eq!(slots(&mut pods), [4_001, 4_001]);
    }
}
