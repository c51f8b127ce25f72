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

/// How far a gang is, or a group in one.
#[derive(Clone, Copy)]
struct Standing {
    /// How many of its pods are bound.
    bound: usize,
    /// Whether these are enough.
    whole: bool,
    /// Whether enough hold a place.
    placed: bool,
    started: bool,
}

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
        let broken = survey.assumed.iter().filter(|(_, member)| survey.is_broken(gang, member));
        broken.map(|(uid, _)| GangRequest::Requeue(uid.clone())).collect()
    }

    /// Keeps in mind how far the gang is, and each group in it.
    fn note_progress(&mut self, name: &GangName, gang: &Gang, survey: &Survey, now: Timestamp) {
        let Some(timeout) = self.timeout_of(gang) else { return };
        let Survey { placed, bound, started, .. } = survey;
        let Some(tree) = &gang.groups else {
            let standing = Standing {
                bound: bound.total(),
                whole: gang.is_whole(bound),
                placed: gang.is_whole(placed),
                started: started.total() > 0,
            };
            return self.note_standing(name, standing, timeout, now);
        };
        let (wholes, placed) = (tree.wholes(bound), tree.wholes(placed));
        let (bound, started) = (tree.sums(bound), tree.sums(started));
        for (at, node) in tree.nodes().iter().enumerate() {
            let standing = Standing {
                bound: bound[at],
                whole: wholes[at],
                placed: placed[at],
                started: started[at] > 0,
            };
            self.note_standing(&node.name, standing, timeout, now);
        }
    }

    fn note_standing(
        &mut self,
        name: &GangName,
        standing: Standing,
        timeout: SignedDuration,
        now: Timestamp,
    ) {
        let known = self.progress.get(name).copied();
        let progress = match known {
            _ if standing.bound == 0 => None,
            Some(GangProgress::RollingBack(_)) => known,
            _ if standing.whole => Some(GangProgress::Complete),
            Some(_) => known,
            None if standing.started && !standing.placed => Some(GangProgress::FoundPartlyBound(now)),
            None => Some(GangProgress::PartlyBound(now)),
        };
        self.set_progress(name, progress, timeout);
    }

    /// A group that could not be completed in time is in one that is rolled back, and its pods go with that.
    pub(in crate::scheduling::scheduler) fn roll_back_with_others(
        &mut self,
        name: &GangName,
        now: Timestamp,
    ) {
        let again = GangProgress::RollingBack(now.checked_add(AGAIN).unwrap_or(now));
        self.set_progress(name, Some(again), AGAIN);
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
        let assumed = survey.assumed.iter().map(|(uid, _)| GangRequest::Requeue(uid.clone()));
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
        // The last pod of the gang, or of a group in it, may have left the domain to which the others were tied.
        let open = found.map_or_else(Vec::new, |(gang, survey)| match &gang.groups {
            Some(tree) => {
                let placed = tree.sums(&survey.placed);
                let is_open = |at: &usize| tree.node(*at).topology.is_some() && placed[*at] == 0;
                (0..placed.len()).filter(is_open).map(|at| tree.node(at).name.clone()).collect()
            }
            None if gang.topology.is_some() && survey.placed.total() == 0 => vec![name.clone()],
            None => Vec::new(),
        });
        let leaves = self.snapshot.objects().groups().leaves(name);
        let of_leaf = |leaf: GangName| {
            let first = self.gangs.comes_first(&leaf);
            let lineage = self.snapshot.objects().groups().lineage(&leaf);
            let open = lineage.iter().any(|group| open.contains(group));
            self.gangs.members(&leaf).filter_map(move |uid| match self.queue.progress(uid) {
                PodProgress::Ungathered => Some(GangRequest::DecideAgain(uid.clone())),
                PodProgress::Waiting(_) if open => Some(GangRequest::DecideAgain(uid.clone())),
                // It was queued before it was known that others of its gang are bound.
                PodProgress::Queued if first => Some(GangRequest::Reorder(uid.clone())),
                _ => None,
            })
        };
        leaves.into_iter().flat_map(of_leaf).collect()
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
        survey.assumed = assumed.iter().map(|uid| (Uid::from(*uid), member.clone())).collect();
        survey.evictable = bound.iter().map(|uid| Uid::from(*uid)).collect();
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
