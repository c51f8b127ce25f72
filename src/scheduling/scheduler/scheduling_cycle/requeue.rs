//! Putting pods into the queue and taking them out.

use std::sync::Arc;

use super::{SchedulingCycle, scheduling_queue::Precedence};
use crate::scheduling::model::{
    gang::{GangName, GroupApi},
    kind::{Kind, PodGroupKind},
    name::Uid,
};

impl SchedulingCycle {
    /// Decides a pod again that no node would have, or that its namespace's quota kept out.
    pub(in crate::scheduling::scheduler) fn decide_waiting_again(&mut self, uid: &Uid) {
        if self.stop_waiting(uid) {
            self.enqueue(uid);
        }
    }

    /// The pod waits for no node and no quota any more; whether it did.
    pub(in crate::scheduling::scheduler) fn stop_waiting(&mut self, uid: &Uid) -> bool {
        let Some(entry) = self.pods.get(uid) else { return false };
        self.queue.stop_waiting(&entry.info.key, &mut self.classes)
    }

    /// The pod is taken out of the queue, wherever it waits.
    pub(in crate::scheduling::scheduler) fn take_out(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            self.queue.take_out(&entry.info.key, &mut self.classes);
        }
    }

    /// The pod is decided as soon as its turn comes.
    pub(in crate::scheduling::scheduler) fn enqueue(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            let first = self.gangs.is_partly_bound(&entry.info);
            let precedence = if first { Precedence::First } else { Precedence::Priority };
            self.queue.enqueue(entry, precedence);
        }
    }

    /// Whether lists are still to come without which no pod is decided: those of PodGroups, and of claims, as far as pods use any. Where the
    /// lists of claims do not come, the cards of nodes with pods that use claims are not given (`snapshot/claims`).
    pub(in crate::scheduling::scheduler) fn awaits_lists(&self) -> bool {
        let gangs = || self.gangs.has_timeout() && !self.snapshot.objects().are_listed(Kind::POD_GROUPS);
        let uses_claims = || self.pods.all().any(|entry| !entry.info.footprint.resource_claims.is_empty());
        !self.queue.lists.is_overdue() && (gangs() || self.snapshot.awaits_claims() && uses_claims())
    }

    /// A PodGroup or a CompositePodGroup has changed, or all of its kind for want of a name: the pods of its gang that wait are decided again.
    pub(in crate::scheduling::scheduler) fn wake_gangs(&mut self, kind: Kind, name: Option<&Arc<str>>) {
        let Kind::PodGroup(kind) = kind else { return };
        let objects = self.snapshot.objects();
        let groups = if let Some(group) = name {
            let group = GangName { api: kind.api(), group: group.clone() };
            let mut groups = objects.groups().leaves(&objects.groups().root(&group));
            groups.extend((kind != PodGroupKind::Composite).then_some(group));
            groups
        } else {
            let api = if kind == PodGroupKind::Composite { GroupApi::Kubernetes } else { kind.api() };
            self.gangs.names().filter(|group| group.api == api).cloned().collect()
        };
        for uid in self.gangs.note_groups(groups) {
            self.decide_waiting_again(&uid);
        }
    }
}
