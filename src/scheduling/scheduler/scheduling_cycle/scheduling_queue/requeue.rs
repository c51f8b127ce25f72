//! Waiting pods that a plugin which looks at more than one node has rejected, and the changes that could help them: kube-scheduler's
//! queueing hints.

use std::collections::{BTreeMap, BTreeSet};

use crate::scheduling::{
    model::{change::Change, footprint::Footprint, name::Uid},
    plugin::Plugin,
    world::object::Objects,
};

/// Why a pod waits for more than a change of the one node that would have it.
#[derive(Debug)]
pub(super) struct QueuedRejection {
    /// The plugins that rejected it and that look at more than one node.
    pub(super) plugins: BTreeSet<Plugin>,
    /// Whether a node is kept for other pods.
    pub(super) kept: bool,
}

impl QueuedRejection {
    /// Whether one of the changes could help the pod.
    fn is_helped(&self, pod: &Footprint, changes: &[Change], objects: &Objects) -> bool {
        let freed = self.kept && changes.iter().any(|change| matches!(change, Change::Nomination));
        let helps = |plugin: &Plugin| changes.iter().any(|change| plugin.helps(pod, change, objects));
        freed || self.plugins.iter().any(helps)
    }
}

/// Pods that wait for more than a change of the one node that would have them.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Requeue(BTreeMap<Uid, QueuedRejection>);

impl Requeue {
    /// The pod waits for this reason.
    pub(super) fn wait(&mut self, uid: &Uid, rejection: QueuedRejection) {
        if rejection.kept || !rejection.plugins.is_empty() {
            self.0.insert(uid.clone(), rejection);
        }
    }

    /// The pod no longer waits.
    pub(super) fn leave(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }

    /// The pods that one of the changes could help; `footprint` is what each is to others.
    pub(in crate::scheduling::scheduler) fn helped<'a>(
        &self,
        changes: &[Change],
        objects: &Objects,
        footprint: impl Fn(&Uid) -> Option<&'a Footprint>,
    ) -> Vec<Uid> {
        if changes.is_empty() {
            return Vec::new();
        }
        let helped = self.0.iter().filter(|(uid, rejection)| {
            footprint(uid).is_some_and(|pod| rejection.is_helped(pod, changes, objects))
        });
        helped.map(|(uid, _)| uid.clone()).collect()
    }

    /// The pods for which a node had no room beside those that it is kept for.
    pub(in crate::scheduling::scheduler) fn kept(&self) -> Vec<Uid> {
        let kept = self.0.iter().filter(|(_, rejection)| rejection.kept);
        kept.map(|(uid, _)| uid.clone()).collect()
    }
}
