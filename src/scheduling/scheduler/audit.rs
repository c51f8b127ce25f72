//! The audit: whether ledger, lines and queue are what the pods say; what is not is reported and put right.
//!
//! It runs after each list of pods and every minute, and compares with a fold over all pods. Nothing here ought ever to be found. Waiting pods
//! are decided on trial, which takes long where they are many: these are looked at after all else, and as many in a turn as it has room for.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    mem::take,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    PodProgress, Scheduler,
    alike::{Alike, Versions},
};
use crate::scheduling::{
    decide::fit_error::{Awaits, FitError},
    effect::{Concern, Effect},
    finding::{Drift, Finding},
    model::{
        gang::GangName,
        name::{NodeName, Uid},
        pod::{Binding, Claim, Holding, Stage},
    },
    snapshot::Check,
    world::ledger::{Charge, Commitment},
};

/// How long until the next audit.
const PERIOD: SignedDuration = SignedDuration::from_mins(1);
/// A Binding that was answered is seen within this time, or the pod is read.
const UNSEEN: SignedDuration = SignedDuration::from_secs(30);

/// What becomes of a pod that waits, were it decided now.
#[derive(Clone, Debug)]
enum Audited {
    /// A node would have it.
    Fits,
    /// Other pods could go for it.
    Preempts,
    /// It waits, for this reason.
    Waits(FitError),
    /// To find out would take longer than a decision may.
    Undecided,
}

/// What is still to be decided on trial.
#[derive(Debug, Default)]
pub(super) struct Audits {
    pods: VecDeque<Uid>,
    gangs: VecDeque<GangName>,
    /// What was found for pods that are decided alike, as long as nothing has changed since.
    found: HashMap<Alike, Audited>,
    versions: Versions,
}

impl Audits {
    /// The pods are decided on trial, unless they are to be already.
    fn add_pods(&mut self, uids: impl IntoIterator<Item = Uid>) {
        let mut known: HashSet<Uid> = self.pods.iter().cloned().collect();
        self.pods.extend(uids.into_iter().filter(|uid| known.insert(uid.clone())));
    }
}

impl Scheduler {
    /// Audits if it is time.
    pub(super) fn audit_when_due(&mut self, now: Timestamp) {
        match self.reports.next_audit {
            Some(at) if at > now => {}
            _ => {
                self.audit(now);
                self.reports.next_audit = now.checked_add(PERIOD).ok();
            }
        }
    }

    fn audit(&mut self, now: Timestamp) {
        let mut uids: Vec<Uid> = self.pods.uids().cloned().collect();
        uids.sort();
        for uid in &uids {
            self.audit_holding(uid, now);
            self.audit_work(uid);
        }
        self.audit_charges(now);
        let nodes: Vec<NodeName> = self.snapshot.nodes().map(|state| state.info.name.clone()).collect();
        for node in nodes {
            if self.snapshot.check(&node) == Check::Wrong {
                self.drift(Concern::Node(node.clone()), Drift::NodeUse);
                self.wake(&node);
            }
        }
        self.audit_quotas();
        self.reports.audits.add_pods(uids);
        self.reports.audits.gangs = self.gangs.names().cloned().collect();
    }

    /// Decides waiting pods and gangs on trial, as many as the turn has room for.
    pub(super) fn go_on_auditing(&mut self) {
        while self.has_room()
            && let Some(uid) = self.reports.audits.pods.pop_front()
        {
            self.audit_reason(&uid);
            self.charge_turn();
        }
        while self.has_room()
            && let Some(gang) = self.reports.audits.gangs.pop_front()
        {
            self.audit_gang(&gang);
            self.charge_turn();
        }
        if !self.has_audits() {
            take(&mut self.reports.audits.found);
        }
    }

    /// Whether waiting pods or gangs are still to be decided on trial.
    pub(super) fn has_audits(&self) -> bool {
        !self.reports.audits.pods.is_empty() || !self.reports.audits.gangs.is_empty()
    }

    /// What is used of a quota is the sum of what its namespace's pods hold.
    fn audit_quotas(&mut self) {
        let namespaces: Vec<_> = self.snapshot.quotas().used().keys().cloned().collect();
        for namespace in namespaces {
            if self.snapshot.check_quota(&namespace) == Check::Wrong {
                self.drift(Concern::Namespace(namespace.clone()), Drift::QuotaUse);
                self.wake_within_quota(&namespace);
            }
        }
    }

    fn drift(&mut self, of: Concern, drift: Drift) {
        self.outbox.effects.push(Effect::ReportFinding { of, finding: Finding::Drift(drift) });
    }

    /// What a pod shows that it holds is what it is charged with.
    fn audit_holding(&mut self, uid: &Uid, now: Timestamp) {
        let Some(info) = self.pods.get(uid).map(|entry| entry.info.clone()) else { return };
        let Some(holding) = info.holding.as_ref().filter(|_| info.stage != Stage::Ended) else { return };
        let right = |charge: &Charge| is_of(charge, holding) && charge.footprint == info.footprint;
        if !self.snapshot.ledger().get(uid).is_some_and(right) {
            self.drift(Concern::Pod(info.key.clone()), Drift::Uncharged);
            self.see_holding(&info, now);
        }
    }

    /// Nobody is charged who shows nothing and is not being decided.
    fn audit_charges(&mut self, now: Timestamp) {
        let mut wrong = Vec::new();
        let mut unseen = Vec::new();
        for (uid, charge) in self.snapshot.ledger().all() {
            let Some(entry) = self.pods.get(uid) else {
                wrong.push((uid.clone(), Concern::Node(charge.node.clone())));
                continue;
            };
            let in_line = matches!(&entry.progress, PodProgress::InLine(node) | PodProgress::Prebinding(node) if *node == charge.node);
            match charge.commitment {
                Commitment::Assumed if !in_line => {
                    wrong.push((uid.clone(), Concern::Pod(entry.info.key.clone())));
                }
                Commitment::Bound if entry.info.holding.is_none() && charge.since + UNSEEN <= now => {
                    unseen.push(entry.info.key.clone());
                }
                _ => {}
            }
        }
        wrong.sort_by(|(one, _), (other, _)| one.cmp(other));
        unseen.sort();
        for (uid, of) in wrong {
            self.drift(of, Drift::Overcharged(uid.clone()));
            self.release(&uid);
        }
        self.outbox.effects.extend(unseen.into_iter().map(|pod| Effect::ReadPod { pod }));
    }

    /// A pod that wants a place is where its work says.
    fn audit_work(&mut self, uid: &Uid) {
        let Some(entry) = self.pods.get(uid) else { return };
        let held = self.snapshot.ledger().get(uid);
        let bound = held.is_some_and(|charge| charge.commitment == Commitment::Bound);
        let wants = matches!(&entry.info.claim, Claim::Place(_));
        let right = match &entry.progress {
            PodProgress::Idle => !wants || bound,
            PodProgress::Queued | PodProgress::BackingOff => self.waiting.queue.contains(uid),
            PodProgress::Waiting(ask) => {
                self.classes.holds(ask, uid) && self.waiting.queue.has_set_aside(uid)
            }
            PodProgress::OverQuota => {
                self.waiting.over_quota.holds(&entry.info.key) && self.waiting.queue.has_set_aside(uid)
            }
            PodProgress::Ungathered => {
                entry.info.groups.gang.is_some() && self.waiting.queue.has_set_aside(uid)
            }
            PodProgress::Unlisted => self.waiting.unlisted.holds(uid),
            PodProgress::Comparing => self.waiting.comparisons.holds(uid),
            PodProgress::Prebinding(_) => held.is_some() && self.prebinding.contains(uid),
            PodProgress::InLine(node) => held.is_some() && self.flows.line(node).any(|pod| pod == uid),
        };
        if !right {
            self.drift(Concern::Pod(entry.info.key.clone()), Drift::Forgotten);
            self.forget(uid);
            self.enqueue(uid);
        }
    }

    /// What pods wait for that ask for devices which have changed by an object of their own: a change that helps no pod wakes none, and its
    /// message would say until the next audit what is no longer so.
    pub(super) fn refresh_reasons(&mut self) {
        let changed = std::mem::take(&mut self.reports.changed_devices);
        if !changed.is_empty() {
            let waiting = self.classes.waiting_for(&changed);
            self.reports.audits.add_pods(waiting);
        }
    }

    /// What is said of a pod that waits is still true, and no node would have it.
    fn audit_reason(&mut self, uid: &Uid) {
        let Some(entry) = self.pods.get(uid).filter(|_| !self.is_in_gang(uid)) else { return };
        let waits = matches!(&entry.progress, PodProgress::Waiting(_) | PodProgress::OverQuota);
        if !waits || !matches!(&entry.info.claim, Claim::Place(_)) {
            return;
        }
        let reason = entry.reason.clone().unwrap_or_default();
        match self.audit_as_alike(uid) {
            Audited::Waits(error) if error.repeats(&reason) => {}
            Audited::Waits(error) => {
                self.tell_unschedulable(uid, error.blame(), error.message(self.reports.details));
            }
            Audited::Fits => self.end_needless_wait(uid),
            Audited::Preempts => self.decide_waiting_again(uid),
            Audited::Undecided => {}
        }
    }

    fn audit_as_alike(&mut self, uid: &Uid) -> Audited {
        let Some(alike) = self.alike(uid) else { return self.audit_wait(uid) };
        let versions = self.versions();
        if self.reports.audits.versions != versions {
            (self.reports.audits.versions, self.reports.audits.found) = (versions, HashMap::new());
        }
        if let Some(found) = self.reports.audits.found.get(&alike) {
            return found.clone();
        }
        let found = self.audit_wait(uid);
        // What was tried was undone: nothing has changed.
        self.reports.audits.versions = self.versions();
        self.reports.audits.found.insert(alike, found.clone());
        found
    }

    fn audit_wait(&mut self, uid: &Uid) -> Audited {
        let Err(error) = self.decide(uid) else { return Audited::Fits };
        if error.awaits() == Awaits::Comparison {
            return Audited::Undecided;
        }
        self.still_waits(uid, error).map_or(Audited::Preempts, Audited::Waits)
    }

    pub(super) fn end_needless_wait(&mut self, uid: &Uid) {
        if let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
            self.drift(Concern::Pod(key), Drift::NeedlessWait);
        }
        self.decide_waiting_again(uid);
    }
}

fn is_of(charge: &Charge, holding: &Holding) -> bool {
    let commitment = if holding.binding == Binding::Bound { Commitment::Bound } else { Commitment::Intended };
    (&charge.node, &charge.allocations, charge.init, charge.commitment)
        == (&holding.node, &holding.allocations, holding.init, commitment)
}
