//! Preemptions that came to nothing: a pod that has had others preempted and was not bound gets no others for a time that grows.
//!
//! A pod that is created anew after each attempt would begin at the first pause for ever, so a namespace counts its pods that are gone
//! without having been bound. It is remembered in memory alone, and bounded: a pod is forgotten once it is bound or gone, a namespace once
//! nothing of it has been in vain for a while.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{Preempting, view::PreemptView};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::PodKey,
    },
    plan::preemption,
};

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// How long nothing is preempted after so many preemptions in vain.
fn pause(times: u32) -> SignedDuration {
    let Some(doubled) = times.checked_sub(1) else { return SignedDuration::ZERO };
    FIRST_PAUSE.checked_mul(1 << doubled.min(10)).map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE))
}

/// So many times in vain, the last time then.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    times: u32,
    since: Timestamp,
}

impl Pause {
    fn until(self) -> Timestamp {
        self.since.checked_add(pause(self.times)).unwrap_or(Timestamp::MAX)
    }

    /// Once more in vain; what happens at one time, as for the pods of a gang, counts once.
    fn note(&mut self, now: Timestamp) {
        if self.times == 0 || self.since < now {
            *self = Self { times: self.times.saturating_add(1), since: now };
        }
    }

    fn is_over(self, now: Timestamp) -> bool {
        self.until().checked_add(LONGEST_PAUSE).is_ok_and(|end| end <= now)
    }
}

/// What was preempted for a pod that is not bound yet.
#[derive(Clone, Debug)]
struct Spent {
    /// On which node, the last time.
    node: NodeName,
    pause: Pause,
    /// Whether the deletion of victims was asked for, and none is known to be deleted yet.
    is_asked: bool,
    /// Whether it has lost its room to no fault of its own and preempted again for that without a pause: this is so once.
    is_excused: bool,
    /// Whether the node is kept for it in any case, as far as is known.
    is_kept: bool,
}

/// What was preempted in vain in a namespace.
#[derive(Clone, Copy, Debug, Default)]
struct InNamespace {
    /// For pods that are gone: it keeps all pods of the namespace from preempting others.
    gone: Pause,
    /// More than once for one pod: it keeps those from preempting others for which that was done before.
    again: Pause,
}

/// Preemptions that came to nothing so far.
#[derive(Debug, Default)]
pub(super) struct Vain {
    by_pod: BTreeMap<Uid, Spent>,
    by_namespace: HashMap<Arc<str>, InNamespace>,
}

impl Vain {
    /// The victims of the pod on this node are being deleted.
    pub(super) fn begin(&mut self, pod: &Uid, node: &NodeName, now: Timestamp) {
        let spent = Spent {
            node: node.clone(),
            pause: Pause { times: 0, since: now },
            is_asked: true,
            is_excused: false,
            is_kept: true,
        };
        let known = self.by_pod.entry(pod.clone()).or_insert(spent);
        known.node.clone_from(node);
        (known.is_asked, known.is_kept, known.pause.since) = (true, true, now);
    }

    /// When the deletion of the pod's victims was asked for.
    pub(super) fn asked_at(&self, pod: &Uid) -> Option<Timestamp> {
        self.by_pod.get(pod).map(|spent| spent.pause.since)
    }

    /// The pods for which a node is kept in any case, and since when.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&Uid, Timestamp)> {
        let kept = self.by_pod.iter().filter(|(_, spent)| spent.is_kept);
        kept.map(|(uid, spent)| (uid, spent.pause.since))
    }

    /// Nodes are kept in any case no longer for pods for which that is over; whether there were some.
    pub(super) fn take_kept(&mut self, is_over: impl Fn(Timestamp) -> bool) -> bool {
        let due = self.by_pod.values_mut().filter(|spent| spent.is_kept && is_over(spent.pause.since));
        due.map(|spent| spent.is_kept = false).count() > 0
    }

    /// A victim of the pod is deleted: the first one counts for all that go with it.
    pub(super) fn note_deleted(&mut self, pod: &PodKey, now: Timestamp) {
        let Some(spent) = self.by_pod.get_mut(&pod.uid).filter(|spent| spent.is_asked) else { return };
        spent.is_asked = false;
        spent.pause.times += 1;
        if spent.pause.times > 1 {
            self.in_namespace(&pod.namespace, now).again.note(now);
        }
    }

    /// The pod is bound: nothing was in vain.
    pub(super) fn end(&mut self, pod: &Uid) {
        self.by_pod.remove(pod);
    }

    /// The pod is gone.
    pub(super) fn note_gone(&mut self, pod: &PodKey, now: Timestamp) {
        let spent = self.by_pod.remove(&pod.uid);
        if spent.is_some_and(|spent| spent.is_asked || spent.pause.times > 0) {
            self.in_namespace(&pod.namespace, now).gone.note(now);
        }
    }

    /// Room is made for the pod again. Where that is so before its pause is over, it has lost its room to no fault of its own: what was before does
    /// not count, this once.
    pub(super) fn note_again(&mut self, pod: &PodKey, now: Timestamp) {
        if self.pauses(pod).0 > now
            && let Some(spent) = self.by_pod.get_mut(&pod.uid)
        {
            (spent.is_excused, spent.pause.times) = (true, 0);
        }
    }

    fn in_namespace(&mut self, namespace: &Arc<str>, now: Timestamp) -> &mut InNamespace {
        self.by_namespace.retain(|_, known| !known.gone.is_over(now) || !known.again.is_over(now));
        self.by_namespace.entry(namespace.clone()).or_default()
    }

    /// Until when nothing is preempted for the pod, for what was in vain for itself and for pods that are gone.
    fn pauses(&self, pod: &PodKey) -> (Timestamp, Timestamp) {
        let known = self.by_namespace.get(&pod.namespace).copied().unwrap_or_default();
        let spent = self.by_pod.get(&pod.uid).filter(|spent| spent.pause.times > 0);
        let own = spent.map_or(Timestamp::MIN, |spent| spent.pause.until().max(known.again.until()));
        (own, if known.gone.times > 0 { known.gone.until() } else { Timestamp::MIN })
    }
}

impl Preempting {
    /// Until when no pods are preempted for this one, since some were before and it is not bound, or since that was so for others of its
    /// namespace that are gone; `None`: they may be.
    pub(in crate::scheduling) fn preempts_not_before(
        &self,
        uid: &Uid,
        view: &PreemptView<'_>,
    ) -> Option<Timestamp> {
        let (own, of_namespace) = self.vain.pauses(&view.pods.pod(uid)?.key);
        let now = view.now();
        let own = if own > now && self.is_excused(uid, view) { Timestamp::MIN } else { own };
        Some(own.max(of_namespace)).filter(|until| *until > now)
    }

    /// Whether the pod has lost the room that was made for it to no fault of its own, for the first time: the node is gone or can't have it
    /// any more, or a pod of higher priority has taken it.
    fn is_excused(&self, uid: &Uid, view: &PreemptView<'_>) -> bool {
        let spent = self.vain.by_pod.get(uid).filter(|spent| !spent.is_excused);
        let (Some(spent), Some(demand)) = (spent, view.demand(uid)) else { return false };
        preemption::has_lost_node(&demand, &spent.node, spent.pause.since, view.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn key(name: &str, namespace: &str) -> PodKey {
        PodKey { uid: name.into(), namespace: namespace.into(), name: name.into() }
    }

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let seconds: Vec<_> = (0..8).map(|times| pause(times).as_secs()).collect();
        assert_eq!(seconds, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(pause(u32::MAX).as_secs(), 300);
    }

    #[test]
    fn any_number_of_namespaces_and_pods_is_forgotten_again() {
        let mut vain = Vain::default();
        for second in 0..2000 {
            let pod = key(&format!("p{second}"), &format!("n{second}"));
            vain.begin(&pod.uid, &"n1".into(), at(second));
            vain.note_deleted(&pod, at(second));
            vain.note_gone(&pod, at(second));
        }
        assert_eq!(vain.by_pod.len(), 0);
        assert!(vain.by_namespace.len() < 400, "{}", vain.by_namespace.len());
    }
}
