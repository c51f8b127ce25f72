//! What the pods of one namespace hold of each dialect's cards, as quotas count it.
//!
//! It is folded from the pods, in segments: after a change only the pods of one segment are read again, however many the namespace has.

use std::collections::BTreeMap;

use thin_vec::ThinVec;

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
    /// With what each holds at its peak, once that was asked for; until then, and where it holds nothing, it is empty.
    pods: BTreeMap<Uid, ThinVec<Peak>>,
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

    /// By uid.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Uid> {
        self.segments.iter().flat_map(|segment| segment.pods.keys())
    }

    /// What they hold together, if each holds so much at its peak. Only pods that have come or changed since the last time are asked about.
    pub(super) fn held(&mut self, peaks: impl Fn(&Uid) -> ThinVec<Peak>) -> Held {
        let mut held = Held::default();
        for segment in &mut self.segments {
            let pods = &mut segment.pods;
            let of_segment = segment.held.get_or_insert_with(|| {
                let mut held = Held::default();
                for (pod, known) in pods {
                    if known.is_empty() {
                        *known = peaks(pod);
                    }
                    add(&mut held, known.iter().map(|(profile, peak)| (profile, peak)));
                }
                held
            });
            add(&mut held, of_segment.iter());
        }
        held
    }

    /// Takes in a pod, or that it holds something else than before.
    pub(super) fn insert(&mut self, uid: Uid) {
        let at = self.place_of(&uid);
        let segment = &mut self.segments[at];
        segment.held = None;
        segment.pods.insert(uid, ThinVec::new());
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
    use thin_vec::thin_vec;

    use super::*;
    use crate::device::{Cores, MiB};

    /// Pods with the slots that each holds.
    type Slots = BTreeMap<Uid, u32>;

    fn peaks(pods: &Slots) -> impl Fn(&Uid) -> ThinVec<Peak> {
        |pod| {
            let slots = pods[pod];
            let usage = CardUsage { slots, memory: MiB::new(slots.into()), cores: Cores::new(slots) };
            thin_vec![("hami".into(), usage)]
        }
    }

    /// The slots that all pods hold, by the fold and one by one.
    fn slots(pods: &mut NamespacePods, each: &Slots) -> [u32; 2] {
        let one_by_one = pods.iter().map(|pod| each[pod]).sum();
        [pods.held(peaks(each)).values().map(|usage| usage.slots).sum(), one_by_one]
    }

    #[test]
    fn the_fold_is_that_of_all_pods_whatever_comes_and_goes() {
        let (mut pods, mut each) = (NamespacePods::default(), Slots::new());
        let uid = |number: u32| -> Uid { format!("{:08x}", number.wrapping_mul(2_654_435_761)).into() };
        for number in 0..5_000 {
            pods.insert(uid(number));
            each.insert(uid(number), number % 7);
            if number % 3 == 0 {
                pods.remove(&uid(number / 2));
            }
            if number % 11 == 0 {
                pods.insert(uid(number / 3));
                each.insert(uid(number / 3), number % 5);
            }
            if number % 50 == 0 {
                let [folded, one_by_one] = slots(&mut pods, &each);
                assert_eq!(folded, one_by_one, "{number}");
            }
        }
        assert!(pods.segments.len() > 4, "they are in segments");
        assert!(pods.segments.iter().all(|segment| segment.pods.len() <= FULL));
        for number in 0..5_000 {
            pods.remove(&uid(number));
        }
        assert!(pods.is_empty() && pods.segments.len() == 1);
        assert_eq!(slots(&mut pods, &each), [0, 0]);
    }

    #[test]
    fn after_a_change_only_the_pods_of_one_segment_are_folded_anew() {
        let (mut pods, mut each) = (NamespacePods::default(), Slots::new());
        for number in 0..4_000 {
            pods.insert(format!("{number:05}").into());
            each.insert(format!("{number:05}").into(), 1);
        }
        pods.held(peaks(&each));
        assert!(
            pods.segments.iter().flat_map(|segment| segment.pods.values()).all(|peaks| !peaks.is_empty())
        );
        pods.insert("02000".into());
        each.insert("02000".into(), 2);
        let outdated = pods.segments.iter().filter(|segment| segment.held.is_none());
        let outdated: usize = outdated.map(|segment| segment.pods.len()).sum();
        assert!((1..=FULL).contains(&outdated), "{outdated}");
        let unknown = pods.segments.iter().flat_map(|segment| &segment.pods);
        assert_eq!(
            unknown.filter(|(_, peaks)| peaks.is_empty()).count(),
            1,
            "of the others it is kept what they hold"
        );
        assert_eq!(slots(&mut pods, &each), [4_001, 4_001]);
    }
}
