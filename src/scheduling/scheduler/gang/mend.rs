//! What follows when something has changed of a gang: one that lost a place is decided anew or completed, and in the end rolled back.
//!
//! Until a Binding is sent, a gang that is no longer whole holds nothing. Once a pod is bound, the others keep their places and the missing
//! ones are decided before all other pods. If that takes too long, the bound pods are evicted, unless the gang was whole at one time.

use jiff::{SignedDuration, Timestamp};

use super::{GangProgress, PodProgress, Scheduler, Survey};
use crate::scheduling::{
    effect::Effect,
    model::{
        gang::{Gang, GangName, Membership, Policy},
        measure::{GangAttempt, Measure},
        name::Uid,
    },
};

/// A pod that was to be evicted and is still there is evicted again after so long.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Scheduler {
    /// Goes on with every gang of which something has changed.
    pub(in crate::scheduling::scheduler) fn mend_gangs(&mut self, now: Timestamp) {
        while let Some(gang) = self.gangs.touched.pop_first() {
            self.mend_gang(&gang, now);
        }
    }

    fn mend_gang(&mut self, name: &GangName, now: Timestamp) {
        let mut open = false;
        if let Membership::Policy(Policy::Gang(gang)) = self.snapshot.objects().membership(name) {
            let survey = self.survey(name);
            self.note_progress(name, &gang, &survey, now);
            // The last pod of the gang may have left the domain to which the others were tied.
            open = gang.topology.is_some() && survey.placed.total() == 0;
            if !gang.is_whole(&survey.placed) && !survey.is_committed() {
                for uid in &survey.assumed {
                    self.forget(uid);
                    self.enqueue_if_wanted(uid);
                }
            }
        }
        let first = self.gangs.comes_first(name);
        let members: Vec<Uid> = self.gangs.members(name).cloned().collect();
        for uid in members {
            match self.queue.progress(&uid) {
                PodProgress::Ungathered => self.decide_waiting_again(&uid),
                PodProgress::Waiting(_) if open => self.decide_waiting_again(&uid),
                // It was queued before it was known that others of its gang are bound.
                PodProgress::Queued if first => self.enqueue(&uid),
                _ => {}
            }
        }
    }

    /// Keeps in mind how far the gang is.
    fn note_progress(&mut self, name: &GangName, gang: &Gang, survey: &Survey, now: Timestamp) {
        let Some(timeout) = self.gangs.timeout_of(gang) else { return };
        let known = self.gangs.progress.get(name).copied();
        let progress = match known {
            _ if survey.bound.total() == 0 => None,
            Some(GangProgress::RollingBack(_)) => known,
            _ if gang.is_whole(&survey.bound) => Some(GangProgress::Complete),
            Some(_) => known,
            None if survey.has_started && !gang.is_whole(&survey.placed) => {
                Some(GangProgress::FoundPartlyBound(now))
            }
            None => Some(GangProgress::PartlyBound(now)),
        };
        self.gangs.set_progress(name, progress, timeout);
    }

    /// Evicts the bound pods of gangs that could not be completed in time.
    pub(in crate::scheduling::scheduler) fn roll_back_gangs(&mut self, now: Timestamp) {
        let due = self.gangs.deadlines.iter().filter(|(_, at)| **at <= now);
        let due: Vec<GangName> = due.map(|(gang, _)| gang.clone()).collect();
        for name in due {
            if let Some(GangProgress::FoundPartlyBound(_)) = self.gangs.progress.get(&name) {
                self.gangs.set_progress(&name, Some(GangProgress::Complete), AGAIN);
                continue;
            }
            let survey = self.survey(&name);
            let again = GangProgress::RollingBack(now.checked_add(AGAIN).unwrap_or(now));
            let progress = (survey.bound.total() > 0).then_some(again);
            let first = !matches!(self.gangs.progress.get(&name), Some(GangProgress::RollingBack(_)));
            if first && progress.is_some() {
                self.outbox.measures.push(Measure::Gang(GangAttempt::RolledBack));
            }
            self.gangs.set_progress(&name, progress, AGAIN);
            for uid in &survey.assumed {
                self.forget(uid);
                self.enqueue_if_wanted(uid);
            }
            for uid in &survey.evictable {
                let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) else { continue };
                self.outbox.effects.push(Effect::RollBack { pod: key, gang: name.clone() });
            }
        }
    }
}
