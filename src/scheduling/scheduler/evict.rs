//! Rounds of evictions from nodes whose zones are closed: when they come, and what is remembered between them.
//!
//! A round comes when a zone closes, and again after each period, counted from the time at which a zone closed last. So a scheduler that has
//! just been started knows when the next one is due, and a restart brings none forward.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Course, Scheduler};
use crate::scheduling::{
    effect::{Effect, REACH},
    event::EvictionOutcome,
    model::{
        kind::Kind,
        message::Message,
        name::{NodeName, Uid},
    },
    plan::eviction::{Eviction, Postponed, Round, round},
};

/// The shortest time between two rounds: what the API server has just refused it refuses again.
const SHORTEST_PERIOD: SignedDuration = SignedDuration::from_secs(1);

/// Objects without which it is not known how many pods may go.
const BUDGETS: &[Kind] = &[Kind::PodDisruptionBudget, Kind::PodGroup];

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
    postponed: BTreeMap<Uid, String>,
}

impl Scheduler {
    /// A zone has closed: a round is due.
    pub(super) fn begin_evictions(&mut self, now: Timestamp) {
        self.evictions.next = Some(now);
    }

    /// Begins a round if one is due.
    pub(super) fn evict_when_due(&mut self, now: Timestamp) {
        let Some(next) = self.next_round(now) else { return };
        let due = *self.evictions.next.get_or_insert(next);
        if due > now {
            return;
        }
        self.evictions.next = Some(next);
        let round = self.round(now);
        for eviction in round.evictions {
            self.evictions.asked.insert(eviction.pod.uid.clone(), Asked::UnderWay);
            self.outbox.effects.push(Effect::EvictFromZone { eviction });
        }
        for Postponed { eviction, why } in round.postponed {
            self.tell_postponed(&eviction, &why.to_string());
        }
    }

    /// The first round after now; `None`: there is nothing to evict from, or no right to decide yet.
    fn next_round(&self, now: Timestamp) -> Option<Timestamp> {
        let zones = self.snapshot.zones().settings();
        let ready = self.duty.course == Course::Onward && self.snapshot.objects().are_listed(BUDGETS);
        if zones.is_off() || !ready {
            return None;
        }
        let period = zones.evict_period.max(SHORTEST_PERIOD).as_nanos();
        let since = now.duration_since(self.snapshot.zones().last_closed()?).as_nanos();
        let left = i64::try_from(period - since.rem_euclid(period)).ok()?;
        now.checked_add(SignedDuration::from_nanos(left)).ok()
    }

    fn round(&mut self, now: Timestamp) -> Round {
        let pods = &self.pods;
        let stays = |uid: &Uid| pods.get(uid).is_some_and(|entry| entry.info.lifetime.leaving.is_none());
        let holds = |asked: &Asked| !matches!(asked, Asked::Doubtful(until) if *until <= now);
        self.evictions.asked.retain(|uid, asked| stays(uid) && holds(asked));
        self.evictions.postponed.retain(|uid, _| stays(uid));
        let zone = |node: &NodeName| self.snapshot.node(node)?.zone.clone();
        let pods = self.pods.all().map(|entry| &entry.info);
        round(pods, zone, self.snapshot.objects(), |uid| self.evictions.asked.contains_key(uid))
    }

    pub(super) fn eviction_answered(
        &mut self,
        eviction: &Eviction,
        outcome: EvictionOutcome,
        now: Timestamp,
    ) {
        let uid = &eviction.pod.uid;
        let asked = match outcome {
            EvictionOutcome::Granted => Some(Asked::Granted),
            EvictionOutcome::Doubtful => now.checked_add(REACH).ok().map(Asked::Doubtful),
            EvictionOutcome::Gone => None,
            EvictionOutcome::Refused(message) => {
                self.tell_postponed(eviction, &message);
                None
            }
        };
        match asked {
            Some(asked) => drop(self.evictions.asked.insert(uid.clone(), asked)),
            None => drop(self.evictions.asked.remove(uid)),
        }
    }

    /// Says once why a pod stays for now.
    fn tell_postponed(&mut self, eviction: &Eviction, why: &str) {
        let closed = eviction.closed();
        let message = Message::with_own(
            format!("Not evicted yet from {eviction}; {why}"),
            format!("Not evicted yet: {closed}; {why}"),
        );
        let (message, left_out) = message.told(self.reports.details);
        let said = self.evictions.postponed.insert(eviction.pod.uid.clone(), message.clone());
        if said.as_ref() != Some(&message) {
            let pod = eviction.pod.clone();
            self.outbox.effects.extend(left_out.map(|message| Effect::ReportDetails { pod, message }));
            self.outbox.effects.push(Effect::TellEvictionPostponed { pod: eviction.pod.clone(), message });
        }
    }

    /// When the next round is due.
    pub(super) fn eviction_deadline(&self) -> Option<Timestamp> {
        self.evictions.next.filter(|_| self.next_round(self.snapshot.now()).is_some())
    }
}
