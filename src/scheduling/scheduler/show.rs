//! What others may see of the scheduler: how things stand, what was measured, the cluster as it sees it.
//!
//! Nothing is decided or changed here.

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::scheduling::{
    measure::{Measure, Standing},
    outlook::Outlook,
    pod::PodKey,
};

impl Scheduler {
    /// How the pods that were seen are named, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.values().map(|entry| &entry.info.key)
    }

    /// How things stand.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let blocked = self.lines.blocked_since();
        Standing {
            synced: self.is_synced(),
            active: self.queue.len(),
            backing_off: self.queue.backing_off(),
            unschedulable: self.classes.waiting() + self.over_quota.len(),
            in_line: self.lines.total(),
            silent_agents: self.snapshot.silent_agents(),
            longest_lock_wait: blocked.map_or(SignedDuration::ZERO, |since| now.duration_since(since)),
        }
    }

    /// What was measured since this was last asked.
    pub fn take_measures(&mut self) -> Vec<Measure> {
        std::mem::take(&mut self.measures)
    }

    /// The cluster as it stands, for others to judge by while this goes on.
    pub fn outlook(&self) -> Outlook {
        let nodes = self.snapshot.nodes().cloned().collect();
        let (passed_over, quotas) = (self.lines.passed_over(), self.snapshot.quotas().clone());
        Outlook::new(nodes, passed_over, quotas, self.settings.device_resources.clone())
    }

    /// Grows whenever [`Self::outlook`] may have become another.
    pub fn changes(&self) -> u64 {
        self.snapshot.generation() + self.snapshot.quotas().version() + self.lines.changes()
    }
}
