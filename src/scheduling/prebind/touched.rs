//! Which pods' claims may go further: looking at all of them each time something happens would cost the square of their number.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Prebinding, flow::PrebindFlow};
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

    /// Something has changed that may concern every pod.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    fn is_about(&self, pod: &Uid, flow: &PrebindFlow) -> bool {
        self.all
            || self.pods.contains(pod)
            || (self.volumes && flow.has(PrebindStep::volume))
            || (self.extended && flow.has(PrebindStep::extended))
    }
}

impl Prebinding {
    /// Takes in what has changed; the ledger tells who uses a claim.
    pub(in crate::scheduling) fn note(&mut self, changes: &[Change], ledger: &Ledger) {
        if self.flows.is_empty() {
            return;
        }
        for change in changes {
            match change {
                Change::Object(Kind::ResourceClaim, name) if !name.is_empty() => {
                    self.touched.pods.extend(ledger.users_of_claim(name).cloned());
                    self.touched.extended = true;
                }
                Change::Object(Kind::ResourceSlice | Kind::DeviceClass | Kind::DeviceTaintRule(_), _)
                | Change::PodAdded(_)
                | Change::Charged(_)
                | Change::CardsClaimed(_)
                | Change::PodRemoved(_)
                | Change::ResourcesFreed
                | Change::Nomination => {}
                Change::Object(..) => self.touched.volumes = true,
                Change::Node | Change::DevicesFreed => self.touched.all = true,
            }
        }
    }

    /// Takes in that a pod was seen: its status may name its claim now.
    pub(in crate::scheduling) fn note_pod(&mut self, pod: &Uid) {
        if self.flows.contains_key(pod) {
            self.touched.add(pod);
        }
    }

    /// The pods for whose claims something has changed since this was asked last, or a time has come.
    pub(in crate::scheduling) fn take_touched(&mut self, now: Timestamp) -> Vec<Uid> {
        let touched = std::mem::take(&mut self.touched);
        let flows = self.flows.iter();
        let touched = flows.filter(|(uid, flow)| touched.is_about(uid, flow) || flow.is_due(now));
        touched.map(|(uid, _)| uid.clone()).collect()
    }
}
