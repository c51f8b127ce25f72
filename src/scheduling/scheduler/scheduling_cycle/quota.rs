//! Quotas of namespaces: taking them in, and waking the pods that wait for one.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::SchedulingCycle;
use crate::{
    device::ProfileRequest,
    scheduling::{
        decide::fit_error::FitError,
        model::{
            name::Uid,
            pod::{Ask, Claim},
        },
        world::quota::{QuotaInfo, QuotaKey},
    },
};

impl SchedulingCycle {
    pub(in crate::scheduling::scheduler) fn resync_quotas(&mut self, quotas: Vec<QuotaInfo>) {
        let live: BTreeSet<QuotaKey> = quotas.iter().map(|quota| quota.key.clone()).collect();
        for gone in self.snapshot.quotas().keys().difference(&live) {
            self.lose_quota(gone);
        }
        for quota in quotas {
            self.see_quota(quota);
        }
        self.duty.synced.quotas = true;
    }

    pub(in crate::scheduling::scheduler) fn see_quota(&mut self, quota: QuotaInfo) {
        let namespace = quota.key.namespace.clone();
        let before = self.snapshot.quotas().version();
        self.snapshot.set_quota(quota);
        // What is used is written to the quota, which is seen too and helps no pod.
        if self.snapshot.quotas().version() != before {
            self.wake_namespace(&namespace);
        }
    }

    pub(in crate::scheduling::scheduler) fn lose_quota(&mut self, key: &QuotaKey) {
        self.snapshot.remove_quota(key);
        self.wake_namespace(&key.namespace);
    }

    /// The pod found no node: it waits for what may make room for it.
    pub(in crate::scheduling::scheduler) fn wait(
        &mut self,
        uid: &Uid,
        ask: &Arc<Ask>,
        error: &FitError,
        now: Timestamp,
    ) {
        let again = self.preempting.preempts_not_before(uid, &self.preempt_view());
        if let Some(entry) = self.pods.get(uid) {
            self.queue.wait(entry, ask, error, now, again, &mut self.classes);
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
    pub(in crate::scheduling::scheduler) fn wake_within_quota(&mut self, namespace: &Arc<str>) {
        let quotas = self.snapshot.quotas();
        let within = |uid: &&Uid| match self.pods.get(uid).map(|entry| &entry.info.claim) {
            Some(Claim::Place(ask)) => {
                let exceeded = |device: &ProfileRequest| {
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
    pub(in crate::scheduling::scheduler) fn wake_within_quotas(&mut self) {
        for namespace in self.queue.over_quota.namespaces() {
            self.wake_within_quota(&namespace);
        }
    }
}
