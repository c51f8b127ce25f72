//! Quotas of namespaces: taking them in, and waking the pods that wait for one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{Scheduler, alike::Versions};
use crate::{
    device::DeviceRequest,
    scheduling::{
        decide::fit_error::{Awaits, FitError},
        model::{
            name::Uid,
            pod::{Ask, Claim, Deletion, PodKey},
        },
        plan::Plan,
        preempt::PreemptInput,
        world::{
            ledger::Charge,
            quota::{QuotaInfo, QuotaKey},
        },
    },
};

/// Pods by their namespace.
type ByNamespace = BTreeMap<Arc<str>, BTreeSet<Uid>>;

/// Pods that wait for the quota of their namespace.
#[derive(Debug, Default)]
pub(super) struct OverQuota {
    /// For nothing else.
    alone: ByNamespace,
    /// Or for a node to change.
    beside: ByNamespace,
}

impl OverQuota {
    /// The pod waits for this, if that is a quota.
    pub(super) fn join(&mut self, pod: &PodKey, awaits: Awaits) {
        let waiting = match awaits {
            Awaits::Quota => &mut self.alone,
            Awaits::NodeOrQuota => &mut self.beside,
            Awaits::Node | Awaits::Comparison => return,
        };
        waiting.entry(pod.namespace.clone()).or_default().insert(pod.uid.clone());
    }

    /// The pod waits for no quota any more.
    pub(super) fn leave(&mut self, pod: &PodKey) {
        for waiting in [&mut self.alone, &mut self.beside] {
            if let Some(pods) = waiting.get_mut(&pod.namespace) {
                pods.remove(&pod.uid);
                if pods.is_empty() {
                    waiting.remove(&pod.namespace);
                }
            }
        }
    }

    /// Whether the pod waits for nothing but the quota.
    pub(super) fn holds(&self, pod: &PodKey) -> bool {
        self.alone.get(&pod.namespace).is_some_and(|pods| pods.contains(&pod.uid))
    }

    /// How many pods wait for nothing but a quota.
    pub(super) fn len(&self) -> usize {
        self.alone.values().map(BTreeSet::len).sum()
    }

    /// The pods of a namespace.
    fn of(&self, namespace: &Arc<str>) -> impl Iterator<Item = &Uid> {
        [&self.alone, &self.beside].into_iter().filter_map(|waiting| waiting.get(namespace)).flatten()
    }

    /// The namespaces with pods that wait for a quota.
    fn namespaces(&self) -> BTreeSet<Arc<str>> {
        self.alone.keys().chain(self.beside.keys()).cloned().collect()
    }

    fn take(&mut self, namespace: &Arc<str>) -> BTreeSet<Uid> {
        let mut taken = self.alone.remove(namespace).unwrap_or_default();
        taken.extend(self.beside.remove(namespace).unwrap_or_default());
        taken
    }
}

impl Scheduler {
    pub(super) fn resync_quotas(&mut self, quotas: Vec<QuotaInfo>) {
        let live: BTreeSet<QuotaKey> = quotas.iter().map(|quota| quota.key.clone()).collect();
        for gone in self.snapshot.quotas().keys().difference(&live) {
            self.lose_quota(gone);
        }
        for quota in quotas {
            self.see_quota(quota);
        }
        self.duty.synced.quotas = true;
    }

    pub(super) fn see_quota(&mut self, quota: QuotaInfo) {
        let namespace = quota.key.namespace.clone();
        let before = self.snapshot.quotas().version();
        self.snapshot.set_quota(quota);
        // What is used is written to the quota, which is seen too and helps no pod.
        if self.snapshot.quotas().version() != before {
            self.wake_namespace(&namespace);
        }
    }

    pub(super) fn lose_quota(&mut self, key: &QuotaKey) {
        self.snapshot.remove_quota(key);
        self.wake_namespace(&key.namespace);
    }

    /// The pod found no node: it waits for what may make room for it.
    pub(super) fn wait(&mut self, uid: &Uid, ask: &Arc<Ask>, error: &FitError, now: Timestamp) {
        let again = self.preempting.preempts_not_before(uid, &self.preempt_view());
        if let Some(entry) = self.pods.get(uid) {
            self.queue.wait(entry, ask, error, now, again, &mut self.classes);
        }
    }

    /// Withdraws nominations of pods of the namespace that its quota has no room for any more, now that another pod of it holds a place. Pods that
    /// are being deleted, or are to be for a nominated pod, do not count.
    pub(super) fn end_nominations_beyond_quota(&mut self, namespace: &Arc<str>) {
        let nominations = self.snapshot.nominations().clone();
        if !self.snapshot.quotas().bound(namespace) || !nominations.has_of(namespace) {
            return;
        }
        let before = Versions::of(&self.snapshot);
        let goes = |uid: &Uid, charge: &Charge| {
            charge.importance.deletion != Deletion::None || nominations.is_victim(uid)
        };
        let going = self.snapshot.ledger().all();
        let going = going.filter(|(uid, charge)| charge.namespace == *namespace && goes(uid, charge));
        let mut going: Vec<Uid> = going.map(|(uid, _)| uid.clone()).collect();
        going.sort();
        let mut plan = Plan::new(&mut self.snapshot);
        for uid in &going {
            plan.evict(uid);
        }
        let beyond = nominations.beyond(namespace, plan.quotas());
        drop(plan);
        self.queue.rejections.keep(before, &self.snapshot);
        for uid in beyond {
            self.advance_preempt(PreemptInput::Withdrawn(&uid));
            self.decide_waiting_again(&uid);
        }
    }

    /// The namespace's quota is another: pods that wait for it are decided again.
    fn wake_namespace(&mut self, namespace: &Arc<str>) {
        for uid in self.queue.over_quota.take(namespace) {
            self.decide_waiting_again(&uid);
        }
    }

    /// Less of the namespace's quota is used: pods that wait for it and now may be within are decided again. The others are not, since
    /// each would be told anew how much is used.
    pub(super) fn wake_within_quota(&mut self, namespace: &Arc<str>) {
        let quotas = self.snapshot.quotas();
        let within = |uid: &&Uid| match self.pods.get(uid).map(|entry| &entry.info.claim) {
            Some(Claim::Place(ask)) => {
                let exceeded = |device: &DeviceRequest| {
                    quotas.exceeded(namespace, &device.profile.name, device.request.least())
                };
                ask.devices.iter().find_map(exceeded).is_none()
            }
            _ => true,
        };
        let woken: Vec<Uid> = self.queue.over_quota.of(namespace).filter(within).cloned().collect();
        for uid in woken {
            self.decide_waiting_again(&uid);
        }
    }

    /// As [`Self::wake_within_quota`], for every namespace: what slices hold is known by their node's registration.
    pub(super) fn wake_within_quotas(&mut self) {
        for namespace in self.queue.over_quota.namespaces() {
            self.wake_within_quota(&namespace);
        }
    }

    /// As [`Self::wake_within_quota`], for the namespace of this pod.
    pub(super) fn wake_within_quota_of(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            self.wake_within_quota(&entry.info.key.namespace.clone());
        }
    }
}
