//! Which pods' claims may go further: looking at all of them each time something happens would cost the square of their number.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Prebind, Prebinding, State};
use crate::scheduling::{
    model::{change::Change, kind::Kind, name::Uid, prebind_step::PrebindStep},
    world::ledger::Ledger,
};

/// Pods for whose claims something has changed.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pods: BTreeSet<Uid>,
    volumes: bool,
    /// A claim that is made for extended resources may have changed: one that is to go is no pod's any more.
    extended: bool,
    all: bool,
}

impl Touched {
    /// Something has changed for this pod.
    pub(super) fn add(&mut self, pod: &Uid) {
        self.pods.insert(pod.clone());
    }

    fn is_about(&self, pod: &Uid, prebind: &Prebind) -> bool {
        let has = |kind: fn(&PrebindStep) -> bool| prebind.steps.iter().any(|step| kind(&step.choice));
        self.all
            || self.pods.contains(pod)
            || (self.volumes && has(|step| step.volume().is_some()))
            || (self.extended && has(|step| step.extended().is_some()))
    }
}

impl Prebinding {
    /// Takes in what has changed; the ledger tells who uses a claim.
    pub(in crate::scheduling::scheduler) fn note(&mut self, changes: &[Change], ledger: &Ledger) {
        if self.pods.is_empty() {
            return;
        }
        for change in changes {
            match change {
                Change::Object(Kind::ResourceClaim, name) if !name.is_empty() => {
                    self.touched.pods.extend(ledger.users_of_claim(name).cloned());
                    self.touched.extended = true;
                }
                Change::Object(Kind::ResourceSlice | Kind::DeviceClass, _)
                | Change::PodAdded(_)
                | Change::Charged(_)
                | Change::CardsClaimed(_)
                | Change::PodRemoved(_)
                | Change::Nomination => {}
                Change::Object(..) => self.touched.volumes = true,
                Change::Node | Change::DevicesFreed => self.touched.all = true,
            }
        }
    }

    /// Takes in that a pod was seen: its status may name its claim now.
    pub(in crate::scheduling::scheduler) fn note_pod(&mut self, pod: &Uid) {
        if self.pods.contains_key(pod) {
            self.touched.pods.insert(pod.clone());
        }
    }

    /// The pods for whose claims something has changed since this was asked last, or a time has come.
    pub(super) fn take_touched(&mut self, now: Timestamp) -> Vec<Uid> {
        let touched = std::mem::take(&mut self.touched);
        let due = |prebind: &Prebind| {
            let mut states = prebind.steps.iter().map(|step| &step.state);
            states.any(|state| matches!(state, State::Due(at) if *at <= now)) || prebind.is_overdue(now)
        };
        let pods = self.pods.iter();
        pods.filter(|(uid, prebind)| touched.is_about(uid, prebind) || due(prebind))
            .map(|(uid, _)| uid.clone())
            .collect()
    }
}
