//! What Berth would have decided where another scheduler did: each of its decisions is compared with Berth's own on the cluster as it
//! was just before, and pods that it leaves pending are looked at after a time.
//!
//! Nothing is decided or held here. A pod is remembered only while it waits.

pub mod comparison;

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    event::{Event, PodChange, PodList},
    model::{
        name::Uid,
        pod::{Binding, Claim, Demand, Holding, PodInfo, PodKey, Stage},
        workload::Workload,
    },
    plugin::score::weights::ScoreWeights,
    scheduler::Scheduler,
};
use comparison::{ComparedPlacement, Comparison, ComparisonReason, compare, prospect};

/// Pending pods that are judged in one turn at most: each costs as much as a decision.
const LOOKS: usize = 16;
/// A shorter time would have a pod looked at without end.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// A pod that another scheduler leaves pending although Berth would place it.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftPending {
    /// The pod.
    pub pod: PodKey,
    /// What made it; `None`: nothing did.
    pub workload: Option<Workload>,
    /// When it was first seen waiting.
    pub since: Timestamp,
    /// Where Berth would place it now.
    pub own: ComparedPlacement,
    /// The reason of the other scheduler for which it waits, where the pod's condition has one.
    pub told: Option<String>,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowFinding {
    /// A decision of another scheduler, beside Berth's.
    Decided(Box<Comparison>),
    /// A pod that should not have to wait.
    LeftPending(Box<LeftPending>),
}

/// What the pod asks for, or why that can't be read.
type Asked = Result<Demand, String>;

#[derive(Debug)]
struct UnscheduledPod {
    key: PodKey,
    workload: Option<Workload>,
    asked: Asked,
    since: Timestamp,
    told: Option<String>,
    /// The last decision that was announced for it and is not bound yet.
    intended: Option<Comparison>,
    /// Since when each look has found a place for it.
    fits_since: Option<Timestamp>,
    /// When it is looked at next; `None`: there is nothing more to find out.
    due: Option<Timestamp>,
}

/// Compares the decisions of another scheduler with Berth's.
#[derive(Debug)]
pub struct Shadow {
    weights: ScoreWeights,
    settle: SignedDuration,
    waiting: HashMap<Uid, UnscheduledPod>,
    due: BTreeSet<(Timestamp, Uid)>,
    /// The pods that were found to be left pending and may still wait.
    counted: HashSet<Uid>,
    findings: Vec<ShadowFinding>,
}

impl Shadow {
    /// Compares nodes by these weights. A pod is left pending when it has waited for `settle` and Berth would have placed it at two
    /// looks, half as far apart.
    pub fn new(weights: ScoreWeights, settle: SignedDuration) -> Self {
        Self {
            weights,
            settle: settle.max(SHORTEST),
            waiting: HashMap::new(),
            due: BTreeSet::new(),
            counted: HashSet::new(),
            findings: Vec::new(),
        }
    }

    /// The same shadow in place of another one, which had found these pods to be left pending: they are not found once more.
    #[must_use]
    pub fn after(self, counted: HashSet<Uid>) -> Self {
        Self { counted, ..self }
    }

    /// The pods that were found to be left pending and may still wait.
    pub fn into_counted(self) -> HashSet<Uid> {
        self.counted
    }

    /// Takes in what happened. Call it before the scheduler observes the event: what a decision is compared on is the cluster as the
    /// scheduler still knows it.
    pub fn observe(&mut self, scheduler: &Scheduler, event: &Event, now: Timestamp) {
        match event {
            Event::Pod(PodChange::Seen(pod)) => self.see(scheduler, pod, now),
            Event::Pod(PodChange::Gone(uid) | PodChange::Ended(uid)) => {
                self.forget(uid);
                self.counted.remove(uid);
            }
            Event::Pod(PodChange::Listed(pods)) => self.list(pods, now),
            _ => {}
        }
    }

    /// Looks at the pods whose time has come, a few in one turn.
    pub fn settle(&mut self, scheduler: &Scheduler, now: Timestamp) {
        if !scheduler.view().is_synced() {
            return;
        }
        for _ in 0..LOOKS {
            match self.due.first().cloned() {
                Some((at, uid)) if at <= now => self.look(scheduler, &uid, now),
                _ => return,
            }
        }
    }

    /// When [`Self::settle`] has something to do next.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many pods wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What was found out since this was last asked.
    pub fn take_findings(&mut self) -> Vec<ShadowFinding> {
        std::mem::take(&mut self.findings)
    }

    /// Every pod that there is. What was bound between two lists was not seen when it was decided, so it can't be compared.
    fn list(&mut self, pods: &PodList, now: Timestamp) {
        let live: HashSet<&Uid> = pods.iter().map(|pod| &pod.key.uid).collect();
        let gone: Vec<Uid> = self.waiting.keys().filter(|uid| !live.contains(uid)).cloned().collect();
        for uid in &gone {
            self.forget(uid);
        }
        self.counted.retain(|uid| live.contains(uid));
        for pod in pods.iter() {
            match held(pod) {
                Some(holding) => self.unseen(pod, holding),
                None => self.wait(pod, now),
            }
        }
    }

    fn see(&mut self, scheduler: &Scheduler, pod: &PodInfo, now: Timestamp) {
        match held(pod) {
            Some(holding) => self.decided(scheduler, pod, holding),
            None => self.wait(pod, now),
        }
    }

    /// A pod that waits, or that has nothing to wait for.
    fn wait(&mut self, pod: &PodInfo, now: Timestamp) {
        let asked = match &pod.claim {
            Claim::Unreadable(why) => Err(why.0.clone()),
            Claim::Place(_) | Claim::None => match pod.demand() {
                Some(demand) => Ok(demand),
                None => return self.forget(&pod.key.uid),
            },
        };
        let known = self.waiting.get_mut(&pod.key.uid);
        if let Some(known) = known.filter(|known| asks_the_same(&known.asked, &asked)) {
            (known.asked, known.told, known.intended) = (asked, pod.status.told.clone(), None);
            return;
        }
        let since = self.waiting.get(&pod.key.uid).map_or(now, |known| known.since);
        self.forget(&pod.key.uid);
        let waiting = UnscheduledPod {
            key: pod.key.clone(),
            workload: Workload::of(pod.origin.as_deref(), &pod.footprint.labels),
            asked,
            since,
            told: pod.status.told.clone(),
            intended: None,
            fits_since: None,
            due: None,
        };
        let to_judge = waiting.asked.is_ok() && !self.counted.contains(&pod.key.uid);
        self.waiting.insert(pod.key.uid.clone(), waiting);
        self.set_due(&pod.key.uid, to_judge.then(|| after(now, self.settle / 2)));
    }

    /// A decision for a pod that was seen waiting. One that a pod was made with is no scheduler's.
    fn decided(&mut self, scheduler: &Scheduler, pod: &PodInfo, holding: &Holding) {
        let uid = &pod.key.uid;
        let Some(waiting) = self.waiting.get_mut(uid) else { return };
        let same = |known: &Comparison| {
            let cards_are_new = holding.binding == Binding::Intended && !known.is_of(holding);
            known.chosen.node == holding.node && !cards_are_new
        };
        if !waiting.intended.as_ref().is_some_and(same) {
            let key = waiting.key.clone();
            waiting.intended = Some(match &waiting.asked {
                Err(message) => {
                    let reason = ComparisonReason::Unreadable(message.clone());
                    Comparison::bare(key, holding, reason)
                }
                Ok(_) if !scheduler.view().is_synced() => {
                    Comparison::bare(key, holding, ComparisonReason::NotSynced)
                }
                Ok(demand) => {
                    // A decision that takes back an earlier one is compared without it.
                    let mut before = std::borrow::Cow::Borrowed(scheduler.snapshot());
                    if before.ledger().get(uid).is_some() {
                        before.to_mut().release(uid);
                    }
                    compare(&key, demand, &before, &self.weights, holding)
                }
            });
        }
        if holding.binding == Binding::Bound {
            let (found, workload) = (waiting.intended.take(), waiting.workload.clone());
            let found = found.map(|found| ShadowFinding::Decided(Box::new(Comparison { workload, ..found })));
            self.findings.extend(found);
            self.forget(uid);
            self.counted.remove(uid);
        }
    }

    /// A pod that a list shows placed. An announced decision was compared when it came.
    fn unseen(&mut self, pod: &PodInfo, holding: &Holding) {
        let uid = &pod.key.uid;
        if holding.binding == Binding::Intended {
            return;
        }
        let Some(waiting) = self.waiting.get_mut(uid) else { return };
        let known = waiting.intended.take().filter(|known| known.chosen.node == holding.node);
        let key = waiting.key.clone();
        let found = known.unwrap_or_else(|| Comparison::bare(key, holding, ComparisonReason::WatchGap));
        let workload = waiting.workload.clone();
        self.findings.push(ShadowFinding::Decided(Box::new(Comparison { workload, ..found })));
        self.forget(uid);
        self.counted.remove(uid);
    }

    /// Whether Berth would place a pod now, and has for long enough.
    fn look(&mut self, scheduler: &Scheduler, uid: &Uid, now: Timestamp) {
        let next = after(now, self.settle / 2);
        let mut due = Some(next);
        if let Some(waiting) = self.waiting.get_mut(uid)
            && let Ok(demand) = &waiting.asked
            && waiting.intended.is_none()
        {
            let found = prospect(demand, scheduler.snapshot(), &self.weights);
            let since = found.as_ref().map(|_| waiting.fits_since.unwrap_or(now));
            let long = since.is_some_and(|since| since < now);
            waiting.fits_since = since;
            if let Some(own) = found.filter(|_| long) {
                due = None;
                self.counted.insert(uid.clone());
                self.findings.push(ShadowFinding::LeftPending(Box::new(LeftPending {
                    pod: waiting.key.clone(),
                    workload: waiting.workload.clone(),
                    since: waiting.since,
                    own,
                    told: waiting.told.clone(),
                })));
            }
        }
        self.set_due(uid, due);
    }

    fn set_due(&mut self, uid: &Uid, due: Option<Timestamp>) {
        let Some(waiting) = self.waiting.get_mut(uid) else { return };
        if let Some(before) = std::mem::replace(&mut waiting.due, due) {
            self.due.remove(&(before, uid.clone()));
        }
        self.due.extend(due.map(|at| (at, uid.clone())));
    }

    fn forget(&mut self, uid: &Uid) {
        self.set_due(uid, None);
        self.waiting.remove(uid);
    }
}

/// Whether a pod wants the same place as before. The node that is kept for it and the claim of its extended resources are no wishes of its own:
/// kube-scheduler sets and clears them at each attempt.
fn asks_the_same(before: &Asked, now: &Asked) -> bool {
    match (before, now) {
        (Ok(before), Ok(now)) => {
            let own = |asked: &Demand| Demand { nominated: None, served: None, ..asked.clone() };
            own(before) == own(now)
        }
        (before, now) => before == now,
    }
}

/// What a pod that has not ended holds.
fn held(pod: &PodInfo) -> Option<&Holding> {
    pod.holding.as_ref().filter(|_| pod.stage != Stage::Ended)
}

fn after(now: Timestamp, time: SignedDuration) -> Timestamp {
    now.checked_add(time).unwrap_or(Timestamp::MAX)
}
