//! Rounds of evictions from nodes whose zones are closed: when they come, and what is remembered between them.
//!
//! A round comes when a zone closes, and again after each period, counted from the time at which a zone closed last. So a scheduler that has
//! just been started knows when the next one is due, and a restart brings none forward.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::scheduling_cycle::{SchedulingCycle, pods::Pods};
use crate::scheduling::{
    effect::{Effect, REACH},
    event::EvictionOutcome,
    model::{
        kind::{Kind, PodGroupKind},
        name::{NodeName, Uid},
    },
    node_flow::Course,
    plan::eviction::{Eviction, Postponed, Postponement, Round, round},
    snapshot::Snapshot,
};

/// The shortest time between two rounds: what the API server has just refused it refuses again.
const SHORTEST_PERIOD: SignedDuration = SignedDuration::from_secs(1);

/// Objects without which it is not known how many pods may go.
const BUDGETS: &[Kind] = &[Kind::PodDisruptionBudget, Kind::PodGroup(PodGroupKind::Volcano)];

/// How far the eviction of a pod is that has not been seen to leave.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asked {
    /// The API server has been asked.
    UnderWay,
    /// It has agreed.
    Granted,
    /// There was no answer: the request may take effect until then.
    Doubtful(Timestamp),
}

/// Pods that leave nodes of closed zones.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// When the next round is due; `None`: that is yet to be found out.
    next: Option<Timestamp>,
    asked: BTreeMap<Uid, Asked>,
    /// Why pods stay, as their Events say.
    postponed: BTreeMap<Uid, Postponed>,
}

/// What a round of evictions reads.
#[derive(Clone, Copy)]
pub(super) struct EvictionView<'a> {
    pods: &'a Pods,
    snapshot: &'a Snapshot,
    course: Course,
}

impl<'a> EvictionView<'a> {
    /// Of these pods on these nodes.
    pub(super) fn of(SchedulingCycle { pods, snapshot, duty, .. }: &'a SchedulingCycle) -> Self {
        Self { pods, snapshot, course: duty.course }
    }

    /// The first round after now; `None`: there is nothing to evict from, or no right to decide yet.
    fn next_round(self, now: Timestamp) -> Option<Timestamp> {
        let zones = self.snapshot.zones().settings();
        let ready = self.course == Course::Onward && self.snapshot.objects().are_listed(BUDGETS);
        if zones.is_off() || !ready {
            return None;
        }
        let period = zones.evict_period.max(SHORTEST_PERIOD).as_nanos();
        let since = now.duration_since(self.snapshot.zones().last_closed()?).as_nanos();
        let left = i64::try_from(period - since.rem_euclid(period)).ok()?;
        now.checked_add(SignedDuration::from_nanos(left)).ok()
    }
}

impl Evictions {
    /// A zone has closed: a round is due.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.next = Some(now);
    }

    /// When the next round is due.
    pub(super) fn deadline(&self, view: EvictionView<'_>) -> Option<Timestamp> {
        self.next.filter(|_| view.next_round(view.snapshot.now()).is_some())
    }

    /// Begins a round if one is due: what is to be done and said.
    pub(super) fn when_due(&mut self, view: EvictionView<'_>, now: Timestamp) -> Vec<Effect> {
        let Some(next) = view.next_round(now) else { return Vec::new() };
        if *self.next.get_or_insert(next) > now {
            return Vec::new();
        }
        self.next = Some(next);
        let Round { evictions, postponed } = self.round(view, now);
        let asked = evictions.iter().map(|eviction| (eviction.pod.uid.clone(), Asked::UnderWay));
        self.asked.extend(asked);
        let evicted = evictions.into_iter().map(|eviction| Effect::EvictFromZone { eviction });
        let told: Vec<Effect> = postponed.into_iter().filter_map(|postponed| self.told(postponed)).collect();
        evicted.chain(told).collect()
    }

    fn round(&mut self, view: EvictionView<'_>, now: Timestamp) -> Round {
        let EvictionView { pods, snapshot, .. } = view;
        let stays = |uid: &Uid| pods.get(uid).is_some_and(|entry| entry.info.lifetime.leaving.is_none());
        let holds = |asked: &Asked| !matches!(asked, Asked::Doubtful(until) if *until <= now);
        self.asked.retain(|uid, asked| stays(uid) && holds(asked));
        self.postponed.retain(|uid, _| stays(uid));
        let zone = |node: &NodeName| snapshot.node(node)?.zone.clone();
        let pods = pods.all().map(|entry| &*entry.info);
        round(pods, zone, snapshot.objects(), |uid| self.asked.contains_key(uid))
    }

    /// Takes in what came of an eviction; what is to be said for it.
    pub(super) fn answered(
        &mut self,
        eviction: Eviction,
        outcome: EvictionOutcome,
        now: Timestamp,
    ) -> Option<Effect> {
        let asked = match outcome {
            EvictionOutcome::Granted => Some(Asked::Granted),
            EvictionOutcome::Doubtful => now.checked_add(REACH).ok().map(Asked::Doubtful),
            EvictionOutcome::Gone | EvictionOutcome::Refused(_) => None,
        };
        match asked {
            Some(asked) => drop(self.asked.insert(eviction.pod.uid.clone(), asked)),
            None => drop(self.asked.remove(&eviction.pod.uid)),
        }
        let EvictionOutcome::Refused(answer) = outcome else { return None };
        self.told(Postponed { eviction, why: Postponement::Refused(answer) })
    }

    /// Says why a pod stays for now, unless that was said.
    fn told(&mut self, postponed: Postponed) -> Option<Effect> {
        let said = self.postponed.insert(postponed.eviction.pod.uid.clone(), postponed.clone());
        (said.as_ref() != Some(&postponed)).then_some(Effect::TellEvictionPostponed { postponed })
    }
}
