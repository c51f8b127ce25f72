//! What came of the attempts of all pods that wait, and how much of it is kept.
//!
//! The latest outcome of each pod is kept, and of earlier ones so many of all pods together. Over that, the namespace whose pods have the most loses the
//! one that was seen longest ago, so that nobody's pods push out what is kept of another namespace with fewer.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use super::history::AttemptHistory;
use crate::scheduling::model::{name::Uid, pod::PodKey};

/// So many outcomes of all pods together are kept beside the latest one of each pod.
pub const MOST_EARLIER_OUTCOMES: usize = 20_000;

/// What came of the attempts of each pod.
#[derive(Debug)]
pub struct AttemptHistories<R> {
    of_pods: HashMap<Uid, Arc<AttemptHistory<R>>>,
    earlier: EarlierOutcomes,
}

/// Which pods have more outcomes than their latest one. Pods with one alone, which are most, take no room here.
#[derive(Debug, Default)]
struct EarlierOutcomes {
    pods: HashMap<Uid, EarlierPlace>,
    /// Of each namespace: when the earliest outcome of a pod was seen last, and the pod.
    by_namespace: HashMap<Arc<str>, NamespaceOutcomes>,
    /// How many each namespace has.
    by_count: BTreeSet<(usize, Arc<str>)>,
    len: usize,
}

/// A pod with more than one outcome.
#[derive(Clone, Debug, Eq, PartialEq)]
struct EarlierPlace {
    namespace: Arc<str>,
    /// When the earliest of its outcomes was seen last.
    since: Timestamp,
    count: usize,
}

/// The pods of a namespace with more than one outcome.
#[derive(Debug, Default)]
struct NamespaceOutcomes {
    oldest: BTreeSet<(Timestamp, Uid)>,
    count: usize,
}

impl<R> Default for AttemptHistories<R> {
    fn default() -> Self {
        Self { of_pods: HashMap::new(), earlier: EarlierOutcomes::default() }
    }
}

impl<R: Clone + PartialEq> AttemptHistories<R> {
    /// Takes in that an attempt of the pod has failed.
    pub fn note(&mut self, pod: &PodKey, reason: &R, now: Timestamp, is_alike: impl Fn(&R, &R) -> bool) {
        if !self.of_pods.contains_key(&pod.uid) {
            self.of_pods.insert(pod.uid.clone(), Arc::default());
        }
        let Some(history) = self.of_pods.get_mut(&pod.uid) else { return };
        let history = Arc::make_mut(history);
        history.note(reason, now, is_alike);
        self.earlier.set(&pod.uid, &pod.namespace, history);
        while let Some((uid, namespace)) = self.earlier.excess() {
            let Some(history) = self.of_pods.get_mut(&uid) else { return };
            let history = Arc::make_mut(history);
            history.forget_earliest();
            self.earlier.set(&uid, &namespace, history);
        }
    }

    /// Why the pod's attempts failed; `None`: none has.
    pub fn of(&self, pod: &str) -> Option<&Arc<AttemptHistory<R>>> {
        self.of_pods.get(pod)
    }

    /// Why the pod's attempts failed matters no more.
    pub fn forget(&mut self, pod: &Uid) {
        self.of_pods.remove(pod);
        self.earlier.remove(pod);
    }
}

impl EarlierOutcomes {
    /// The pod has this history now.
    fn set<R: Clone + PartialEq>(&mut self, uid: &Uid, namespace: &Arc<str>, history: &AttemptHistory<R>) {
        let (count, since) = match history.outcomes() {
            [] | [_] => return self.remove(uid),
            [earliest, others @ ..] => (others.len(), earliest.last),
        };
        if self.pods.get(uid).is_some_and(|place| (place.count, place.since) == (count, since)) {
            return;
        }
        self.remove(uid);
        self.change(namespace, |outcomes| {
            outcomes.oldest.insert((since, uid.clone()));
            outcomes.count += count;
        });
        self.pods.insert(uid.clone(), EarlierPlace { namespace: namespace.clone(), since, count });
    }

    fn remove(&mut self, uid: &Uid) {
        let Some(EarlierPlace { namespace, since, count }) = self.pods.remove(uid) else { return };
        self.change(&namespace, |outcomes| {
            outcomes.oldest.remove(&(since, uid.clone()));
            outcomes.count -= count;
        });
    }

    fn change(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut NamespaceOutcomes)) {
        let outcomes = self.by_namespace.entry(namespace.clone()).or_default();
        let before = outcomes.count;
        change(outcomes);
        let after = outcomes.count;
        self.len = self.len - before + after;
        self.by_count.remove(&(before, namespace.clone()));
        if after == 0 {
            self.by_namespace.remove(namespace);
        } else {
            self.by_count.insert((after, namespace.clone()));
        }
    }

    /// The pod whose earliest outcome is forgotten next, and its namespace, where there are too many.
    fn excess(&self) -> Option<(Uid, Arc<str>)> {
        let (_, namespace) = self.by_count.last().filter(|_| self.len > MOST_EARLIER_OUTCOMES)?;
        let (_, uid) = self.by_namespace.get(namespace)?.oldest.first()?;
        Some((uid.clone(), namespace.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::queue::MOST_OUTCOMES;

    fn pod(namespace: &str, number: usize) -> PodKey {
        let name = format!("{namespace}-{number}");
        PodKey { uid: name.as_str().into(), namespace: namespace.into(), name: name.into() }
    }

    /// Attempts of the pod that fail for so many reasons, one each second.
    fn fail(histories: &mut AttemptHistories<usize>, pod: &PodKey, from: i64, reasons: usize) {
        for (second, reason) in (from..).zip(0..reasons) {
            histories.note(pod, &reason, Timestamp::from_second(second).unwrap(), PartialEq::eq);
        }
    }

    fn reasons(histories: &AttemptHistories<usize>, pod: &PodKey) -> Vec<usize> {
        let history = histories.of(&pod.uid);
        history.iter().flat_map(|history| history.outcomes()).map(|outcome| outcome.reason).collect()
    }

    /// What is counted is what is there.
    fn earlier(histories: &AttemptHistories<usize>) -> usize {
        let kept: usize = histories.of_pods.values().map(|history| history.outcomes().len() - 1).sum();
        assert_eq!(kept, histories.earlier.len);
        let counted: usize = histories.earlier.by_count.iter().map(|(count, _)| count).sum();
        assert_eq!(kept, counted);
        kept
    }

    #[test]
    fn of_all_pods_together_so_many_outcomes_are_kept_and_the_latest_of_each_pod() {
        let mut histories = AttemptHistories::default();
        let pods: Vec<_> = (0..MOST_EARLIER_OUTCOMES).map(|number| pod("team", number)).collect();
        for pod in &pods {
            fail(&mut histories, pod, 0, 3);
        }
        assert_eq!(earlier(&histories), MOST_EARLIER_OUTCOMES);
        assert!(pods.iter().all(|pod| reasons(&histories, pod).last() == Some(&2)));
        for pod in &pods {
            histories.forget(&pod.uid);
        }
        assert_eq!(earlier(&histories), 0);
        assert!(histories.earlier.pods.is_empty() && histories.earlier.by_namespace.is_empty());
    }

    #[test]
    fn what_was_seen_longest_ago_is_forgotten_first() {
        let mut histories = AttemptHistories::default();
        let each = MOST_OUTCOMES - 1;
        let pods: Vec<_> =
            (0..MOST_EARLIER_OUTCOMES.div_ceil(each)).map(|number| pod("team", number)).collect();
        // The later in the list, the longer ago.
        for (pod, from) in pods.iter().zip((0..).step_by(MOST_OUTCOMES)) {
            fail(&mut histories, pod, 1_000_000 - from, MOST_OUTCOMES);
        }
        let (latest, oldest) = (pods.first().unwrap(), pods.last().unwrap());
        assert_eq!(earlier(&histories), MOST_EARLIER_OUTCOMES);
        let over = pods.len() * each - MOST_EARLIER_OUTCOMES;
        assert_eq!(reasons(&histories, oldest), (over..MOST_OUTCOMES).collect::<Vec<_>>());
        assert_eq!(reasons(&histories, latest).len(), MOST_OUTCOMES);
    }

    #[test]
    fn pods_of_one_namespace_push_out_nothing_of_another_that_keeps_less() {
        let mut histories = AttemptHistories::default();
        let victim = pod("victim", 0);
        fail(&mut histories, &victim, 0, MOST_OUTCOMES);
        for number in 0..MOST_EARLIER_OUTCOMES {
            fail(&mut histories, &pod("attack", number), 100, 2);
        }
        assert_eq!(earlier(&histories), MOST_EARLIER_OUTCOMES);
        assert_eq!(reasons(&histories, &victim).len(), MOST_OUTCOMES);
    }
}
