//! What follows when something has changed of a gang: one that lost a place is decided anew or completed, and in the end rolled back.
//!
//! Until a Binding is sent, a gang that is no longer whole holds nothing. Once a pod is bound, the others keep their places and the missing
//! ones are decided before all other pods. If that takes too long, the bound pods are evicted, unless the gang was whole at one time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{GangProgress, GangRequest, GangView, Gangs, view::Survey};
use crate::scheduling::{
    model::{
        gang::{Gang, GangName},
        measure::{GangAttempt, Measure},
    },
    scheduler::scheduling_queue::PodProgress,
};

/// A pod that was to be evicted and is still there is evicted again after so long.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Gangs {
    /// Something has changed of a gang whose pods are placed together and hold this.
    pub(in crate::scheduling::scheduler) fn mend(
        &mut self,
        name: &GangName,
        gang: &Gang,
        survey: &Survey,
        now: Timestamp,
    ) -> Vec<GangRequest> {
        self.note_progress(name, gang, survey, now);
        if gang.is_whole(&survey.placed) || survey.is_committed() {
            return Vec::new();
        }
        survey.assumed.iter().cloned().map(GangRequest::Requeue).collect()
    }

    /// Keeps in mind how far the gang is.
    fn note_progress(&mut self, name: &GangName, gang: &Gang, survey: &Survey, now: Timestamp) {
        let Some(timeout) = self.timeout_of(gang) else { return };
        let known = self.progress.get(name).copied();
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
        self.set_progress(name, progress, timeout);
    }

    /// The gangs that could not be completed in time.
    pub(in crate::scheduling::scheduler) fn due(&self, now: Timestamp) -> Vec<GangName> {
        let due = self.deadlines.iter().filter(|(_, at)| **at <= now);
        due.map(|(gang, _)| gang.clone()).collect()
    }

    /// The gang could not be completed in time, and its pods hold this: those that are bound are evicted.
    pub(in crate::scheduling::scheduler) fn roll_back(
        &mut self,
        name: &GangName,
        survey: &Survey,
        now: Timestamp,
    ) -> Vec<GangRequest> {
        let known = self.progress.get(name).copied();
        if let Some(GangProgress::FoundPartlyBound(_)) = known {
            self.set_progress(name, Some(GangProgress::Complete), AGAIN);
            return Vec::new();
        }
        let again = GangProgress::RollingBack(now.checked_add(AGAIN).unwrap_or(now));
        let progress = (survey.bound.total() > 0).then_some(again);
        let first = !matches!(known, Some(GangProgress::RollingBack(_)));
        self.set_progress(name, progress, AGAIN);
        let measure = GangRequest::Measure(Measure::Gang(GangAttempt::RolledBack));
        let measure = (first && progress.is_some()).then_some(measure);
        let assumed = survey.assumed.iter().cloned().map(GangRequest::Requeue);
        let evicted = survey.evictable.iter().map(|uid| GangRequest::RollBack(uid.clone(), name.clone()));
        measure.into_iter().chain(assumed).chain(evicted).collect()
    }
}

impl GangView<'_> {
    /// The pods of a gang that something has changed for, now that its pods hold this.
    pub(in crate::scheduling::scheduler) fn helped(
        self,
        name: &GangName,
        found: Option<&(Arc<Gang>, Survey)>,
    ) -> Vec<GangRequest> {
        // The last pod of the gang may have left the domain to which the others were tied.
        let open = found.is_some_and(|(gang, survey)| gang.topology.is_some() && survey.placed.total() == 0);
        let first = self.gangs.comes_first(name);
        let helped = self.gangs.members(name).filter_map(|uid| match self.queue.progress(uid) {
            PodProgress::Ungathered => Some(GangRequest::DecideAgain(uid.clone())),
            PodProgress::Waiting(_) if open => Some(GangRequest::DecideAgain(uid.clone())),
            // It was queued before it was known that others of its gang are bound.
            PodProgress::Queued if first => Some(GangRequest::Reorder(uid.clone())),
            _ => None,
        });
        helped.collect()
    }
}
