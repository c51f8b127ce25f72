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
    scheduler::scheduling_cycle::scheduling_queue::PodProgress,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        model::{
            gang::{GroupApi, Member},
            name::Uid,
        },
        scheduler::Pace,
    };

    fn name() -> GangName {
        GangName { api: GroupApi::Volcano, group: "default/training".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Two pods that must run together, of which these are assumed and those bound.
    fn mend(gangs: &mut Gangs, assumed: &[&str], bound: &[&str], now: i64) -> Vec<String> {
        let gang = Gang { min: 2, ..Gang::default() };
        words(gangs.mend(&name(), &gang, &survey(assumed, bound), at(now)))
    }

    fn roll_back(gangs: &mut Gangs, assumed: &[&str], bound: &[&str], now: i64) -> Vec<String> {
        words(gangs.roll_back(&name(), &survey(assumed, bound), at(now)))
    }

    fn survey(assumed: &[&str], bound: &[&str]) -> Survey {
        let mut survey = Survey::default();
        let member = Member { gang: name(), task: None };
        let uids = |uids: &[&str]| uids.iter().map(|uid| Uid::from(*uid)).collect::<Vec<_>>();
        (survey.assumed, survey.evictable) = (uids(assumed), uids(bound));
        for _ in bound {
            survey.bound.count(&member);
        }
        for _ in assumed.iter().chain(bound) {
            survey.placed.count(&member);
        }
        survey
    }

    fn words(requests: Vec<GangRequest>) -> Vec<String> {
        let word = |request| match request {
            GangRequest::Requeue(uid) => format!("requeue {uid}"),
            GangRequest::RollBack(uid, _) => format!("evict {uid}"),
            GangRequest::Measure(Measure::Gang(GangAttempt::RolledBack)) => "count".to_owned(),
            other => format!("{other:?}"),
        };
        requests.into_iter().map(word).collect()
    }

    fn gangs() -> Gangs {
        Gangs::new(Some(SignedDuration::from_secs(60)), Pace::Shared)
    }

    #[test]
    fn a_gang_that_is_not_whole_holds_nothing_until_one_of_its_pods_is_bound() {
        let mut gangs = gangs();
        assert_eq!(mend(&mut gangs, &["a", "b"], &[], 0), [""; 0]);
        assert_eq!(mend(&mut gangs, &["a"], &[], 1), ["requeue a"]);
        assert_eq!(mend(&mut gangs, &[], &["a"], 2), [""; 0]);
        assert!(gangs.comes_first(&name()));
        assert_eq!(gangs.deadline(), Some(at(62)));
    }

    #[test]
    fn bound_pods_are_evicted_again_and_again_and_counted_once() {
        let mut gangs = gangs();
        mend(&mut gangs, &["b"], &["a"], 0);
        assert_eq!(gangs.due(at(59)), []);
        assert_eq!(gangs.due(at(60)), [name()]);
        assert_eq!(roll_back(&mut gangs, &["b"], &["a"], 60), ["count", "requeue b", "evict a"]);
        assert!(gangs.is_rolling_back(&name()));
        assert_eq!(gangs.due(at(89)), []);
        assert_eq!(roll_back(&mut gangs, &[], &["a"], 90), ["evict a"]);
        assert_eq!(roll_back(&mut gangs, &[], &[], 120), [""; 0]);
        assert_eq!(gangs.deadline(), None);
    }

    #[test]
    fn a_gang_that_was_whole_at_one_time_is_not_rolled_back() {
        let mut gangs = gangs();
        mend(&mut gangs, &["b"], &["a"], 0);
        mend(&mut gangs, &[], &["a", "b"], 1);
        mend(&mut gangs, &[], &["a"], 2);
        assert_eq!(gangs.deadline(), None);
    }
}
