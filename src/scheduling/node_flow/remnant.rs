//! Pods that died before their node's device plugin served them: what they carry is withdrawn before the node serves any other.
//!
//! A plugin that tells pods apart by their assignments alone would serve the next pod with a dead one's. This file must not know how
//! an assignment is withdrawn; the dialect does.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{
    device::ProfileName,
    scheduling::model::{name::Uid, outcome::WithdrawOutcome, pod::PodKey},
};

/// How long to wait before an assignment that could not be withdrawn is withdrawn again.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How far withdrawing has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Withdrawal {
    Due,
    UnderWay,
    /// It may have failed; it is tried again then.
    Pausing(Timestamp),
    Done,
}

/// A dead pod that still carries what the plugin may take.
#[derive(Clone, Debug)]
struct Remnant {
    pod: PodKey,
    /// The dialects of what it carries.
    profiles: Vec<ProfileName>,
    since: Timestamp,
    withdrawal: Withdrawal,
}

/// The dead pods of one node.
#[derive(Debug, Default)]
pub(super) struct Remnants(BTreeMap<Uid, Remnant>);

impl Remnants {
    /// Whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A dead pod carries assignments of these dialects.
    pub(super) fn note(&mut self, pod: &PodKey, profiles: &[ProfileName], now: Timestamp) {
        let new = Remnant {
            pod: pod.clone(),
            profiles: profiles.to_vec(),
            since: now,
            withdrawal: Withdrawal::Due,
        };
        let known = self.0.entry(pod.uid.clone()).or_insert_with(|| new.clone());
        if new.profiles.iter().any(|profile| !known.profiles.contains(profile)) {
            *known = Remnant { since: known.since, ..new };
        }
    }

    /// A pod is gone, or carries nothing that could be taken.
    pub(super) fn remove(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }

    /// What is to be withdrawn now, and is under way from now on.
    pub(super) fn begin_due(&mut self, now: Timestamp) -> Vec<(PodKey, Vec<ProfileName>)> {
        let mut due = Vec::new();
        for remnant in self.0.values_mut() {
            let is_due = match remnant.withdrawal {
                Withdrawal::Due => true,
                Withdrawal::Pausing(until) => until <= now,
                Withdrawal::UnderWay | Withdrawal::Done => false,
            };
            if is_due {
                remnant.withdrawal = Withdrawal::UnderWay;
                due.push((remnant.pod.clone(), remnant.profiles.clone()));
            }
        }
        due
    }

    /// What came of a withdrawal; returns whether the pod is known.
    pub(super) fn answered(&mut self, uid: &Uid, outcome: WithdrawOutcome, now: Timestamp) -> bool {
        let Some(remnant) = self.0.get_mut(uid) else { return false };
        remnant.withdrawal = match outcome {
            WithdrawOutcome::Done => Withdrawal::Done,
            WithdrawOutcome::Failed => Withdrawal::Pausing(now.checked_add(PAUSE).unwrap_or(now)),
        };
        true
    }

    /// Since when each dead pod has waited to be withdrawn; while there is one, the plugin could serve another with what it carries.
    pub(super) fn pending_since(&self) -> impl Iterator<Item = Timestamp> {
        let pending = self.0.values().filter(|remnant| remnant.withdrawal != Withdrawal::Done);
        pending.map(|remnant| remnant.since)
    }

    /// When an assignment is to be withdrawn again.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Timestamp> {
        self.0.values().filter_map(|remnant| match remnant.withdrawal {
            Withdrawal::Pausing(until) => Some(until),
            Withdrawal::Due | Withdrawal::UnderWay | Withdrawal::Done => None,
        })
    }
}
