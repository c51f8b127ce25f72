//! What a node's device plugin owes, and what becomes of a node whose plugin is silent.
//!
//! A plugin is never asked: what is known of it is what it writes on pods, and how long it has not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    Scheduler,
    blocked::USUAL,
    locks::is_held_by,
    withdraw::{CLEARANCE, Remnant},
};
use crate::{
    device::{Answer, Lock, ProfileName},
    scheduling::{
        effect::Effect,
        model::{
            name::{NodeName, Uid},
            pod::{Placer, PodInfo, Stage},
        },
        world::{
            ledger::{Charge, Commitment},
            node_state::Agent,
        },
    },
};

/// How long a node is held back after its plugin has left its first pod without an answer.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// A plugin that has left a pod without an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Silence {
    /// How many times in a row.
    times: u32,
    /// Until when the node is held back; `None`: it still owes an answer.
    until: Option<Timestamp>,
}

impl Silence {
    /// After this finding: a plugin that owed an answer no longer owes it, or one that was tried again owes another.
    fn next(before: Option<Self>, owes: Owes, expiry: SignedDuration, now: Timestamp) -> Option<Self> {
        match (before, owes) {
            (None, Owes::Nothing) => None,
            (None, Owes::TooLong) => Some(Self { times: 1, until: None }),
            (Some(Self { times, until: Some(_) }), Owes::TooLong) => {
                Some(Self { times: times.saturating_add(1), until: None })
            }
            (Some(Self { times, until: None }), Owes::Nothing) => {
                let until = now.checked_add(pause(times, expiry)).unwrap_or(now);
                Some(Self { times, until: Some(until) })
            }
            (same, _) => same,
        }
    }

    fn holds_back(self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// How long after the silence of a plugin its node is tried again: doubled each time, up to the time that it is given to answer.
fn pause(times: u32, expiry: SignedDuration) -> SignedDuration {
    let longest = expiry.max(FIRST_PAUSE);
    let doubled = 1_i32.checked_shl(times.saturating_sub(1)).filter(|factor| *factor > 0);
    doubled.and_then(|factor| FIRST_PAUSE.checked_mul(factor)).map_or(longest, |pause| pause.min(longest))
}

/// What a plugin owes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Owes {
    /// Nothing, or not for long.
    Nothing,
    /// An answer for too long.
    TooLong,
}

/// What the nodes' device plugins owe.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// Nodes whose plugin has left a pod without an answer, until it answers one.
    pub(super) silences: BTreeMap<NodeName, Silence>,
    /// Until when a node's plugin may be at work for a pod that has gone.
    pub(super) vacated: BTreeMap<NodeName, Timestamp>,
    /// Dead pods whose assignments their nodes' plugins may still take.
    pub(super) remnants: BTreeMap<NodeName, BTreeMap<Uid, Remnant>>,
}

impl Scheduler {
    /// Whether the node's plugin owes an answer for a bound pod, may still be at work for one that was deleted, or could take a dead
    /// one's assignment: no other is bound there meanwhile, since it would mix both up.
    pub(super) fn agent_is_busy(&self, node: &NodeName, now: Timestamp) -> bool {
        let vacated = self.agents.vacated.get(node).is_some_and(|until| *until > now);
        let mut charges = self.snapshot.ledger().on_node(node);
        vacated
            || self.has_remains(node)
            || charges.any(|(uid, charge)| self.is_in_flight(uid, charge) || self.lingers(uid, charge, now))
    }

    /// Whether the node's plugin is busy and its answer can't be expected soon: it may be at work for a pod that is gone or is to go, or has
    /// owed an answer for longer than is usual. A plugin that serves a living pod in the usual time is busy, and not stuck.
    pub(super) fn agent_is_stuck(&self, node: &NodeName, now: Timestamp) -> bool {
        let is_late = |charge: &Charge| charge.since.checked_add(USUAL).is_ok_and(|at| at <= now);
        let leaves = |uid: &Uid| self.pods.get(uid).is_some_and(|entry| entry.info.leaving.is_some());
        let mut charges = self.snapshot.ledger().on_node(node);
        self.agents.vacated.get(node).is_some_and(|until| *until > now)
            || charges.any(|(uid, charge)| {
                let in_flight = self.is_in_flight(uid, charge);
                (in_flight && (is_late(charge) || leaves(uid))) || self.lingers(uid, charge, now)
            })
    }

    /// Whether an agent of the node is at work for this pod, by what the pod says or by what the node's lock does.
    pub(super) fn is_in_flight(&self, uid: &Uid, charge: &Charge) -> bool {
        charge.is_in_flight() || (charge.awaits_unlock() && self.is_locked_for(uid, charge))
    }

    /// What the node's agents have made of the pod, by what it says and by what the node's lock does.
    pub fn answer(&self, uid: &Uid, charge: &Charge) -> Answer {
        let to_come = charge.commitment != Commitment::Bound && charge.has_answer(Answer::ByLock);
        if to_come || self.is_in_flight(uid, charge) { Answer::Awaited } else { charge.answer() }
    }

    /// Whether its node bears this pod's lock, also where that is not seen yet.
    fn is_locked_for(&self, uid: &Uid, charge: &Charge) -> bool {
        let taken = self.locks.held(&charge.node).is_some_and(|held| held.pod.uid == *uid);
        let (Some(entry), Some(state)) = (self.pods.get(uid), self.snapshot.node(&charge.node)) else {
            return taken;
        };
        taken || state.info.locks_of(charge.profiles()).any(|lock| is_held_by(&lock.state, &entry.info.key))
    }

    /// The pods of the node whose agents are to answer by freeing its lock.
    pub(super) fn awaiting_unlock(&self, node: &NodeName) -> Vec<Uid> {
        let charges = self.snapshot.ledger().on_node(node);
        let awaiting =
            charges.filter(|(uid, charge)| charge.awaits_unlock() && self.is_locked_for(uid, charge));
        awaiting.map(|(uid, _)| uid.clone()).collect()
    }

    /// Takes in that the lock of one of these pods is free: so its agent answers, and ends the node's silence.
    pub(super) fn hear_unlock(&mut self, node: &NodeName, awaited: &[Uid]) {
        let ledger = self.snapshot.ledger();
        let is_free = |charge: &Charge| {
            let state = self.snapshot.node(node);
            state.is_some_and(|state| {
                state.info.locks_of(charge.profiles()).all(|lock| lock.state == Lock::Free)
            })
        };
        let answered = |uid: &Uid| {
            let charge = ledger.get(uid).filter(|charge| charge.node == *node);
            charge.is_some_and(|charge| !self.is_in_flight(uid, charge) && is_free(charge))
        };
        if awaited.iter().any(answered) {
            self.agents.silences.remove(node);
        }
    }

    /// A pod is gone. If its node's plugin was at work for it, nobody will say when it is done: it is given time.
    pub(super) fn note_vacancy(&mut self, uid: &Uid, now: Timestamp) {
        let Some(charge) = self.snapshot.ledger().get(uid) else { return };
        let at_work = self.is_in_flight(uid, charge) || self.may_be_bound(&charge.node, uid);
        let cleared = now.checked_add(CLEARANCE).ok().filter(|_| at_work);
        let until = cleared.or_else(|| self.goes_by(uid, charge)).filter(|until| *until > now);
        if let Some(until) = until {
            let node = charge.node.clone();
            self.agents.vacated.retain(|_, until| *until > now);
            self.vacate(&node, until, now);
        }
    }

    /// Takes in until when the node's plugin may be at work for a pod that has gone.
    pub(super) fn vacate(&mut self, node: &NodeName, until: Timestamp, now: Timestamp) {
        self.agents.vacated.insert(node.clone(), until);
        self.pass_over_if_stuck(node, now);
        self.lines.touch(node);
    }

    /// Finds out whether the node's plugin is silent for too long: then it is said, after a pause that doubles each time, and no pod
    /// is sent there until it answers. When the pod that it owes an answer is gone, the node is tried again, each time after a longer
    /// pause.
    pub(super) fn watch_agent(&mut self, node: &NodeName, now: Timestamp) {
        let expiry = self.lock_expiry;
        let expired = |since: &Timestamp| since.checked_add(expiry).is_ok_and(|at| at <= now);
        let awaited = self.owed(node);
        let late = awaited.iter().any(|(_, since)| expired(since))
            || self.remains_since(node).any(|since| expired(&since));
        let owes = if late { Owes::TooLong } else { Owes::Nothing };
        for (uid, since) in awaited {
            self.tell_silence(&uid, node, since, now);
        }
        let silence = Silence::next(self.agents.silences.get(node).copied(), owes, expiry, now);
        if let Some(silence) = silence {
            self.agents.silences.insert(node.clone(), silence);
        }
        let silent = silence.is_some_and(|silence| silence.holds_back(now));
        self.set_agent(node, if silent { Agent::Silent } else { Agent::Answering });
    }

    fn set_agent(&mut self, node: &NodeName, agent: Agent) {
        if self.snapshot.set_agent(node, agent) != agent {
            match agent {
                Agent::Answering => self.wake(node),
                Agent::Silent => self.dismiss(node),
            }
        }
    }

    /// Sends those who wait in the node's line back to the queue: they may have a better place by now.
    pub(super) fn dismiss(&mut self, node: &NodeName) {
        let waiting = self.lines.get(node).map(|line| line.waiting.iter().cloned().collect::<Vec<_>>());
        for uid in waiting.unwrap_or_default() {
            self.forget(&uid);
            self.enqueue_if_wanted(&uid);
        }
    }

    /// Finds out which of the node's plugins have given no sign for too long: no pod is sent to their cards until they do.
    pub(super) fn watch_expiries(&mut self, node: &NodeName, now: Timestamp) {
        if let Some(expired) = self.snapshot.node(node).map(|state| state.info.expired(now)) {
            self.expire(node, &expired);
        }
    }

    /// Takes in which of the node's plugins have given no sign for too long; who waits for one that is back is decided again.
    pub(super) fn expire(&mut self, node: &NodeName, expired: &BTreeSet<ProfileName>) {
        let before = self.snapshot.set_expired(node, expired.clone());
        if !before.is_subset(expired) {
            self.wake(node);
        }
        if !expired.is_subset(&before) {
            self.dismiss(node);
        }
    }

    /// When a plugin of the node has given no sign for too long.
    pub(super) fn expiries(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let expiries = self.snapshot.node(node).map(|state| state.info.expiries.clone()).unwrap_or_default();
        expiries.into_iter().map(|(_, at)| at)
    }

    /// Takes in what has become of a pod's charge: an answer of one of the node's plugins ends the node's silence, and a failure is
    /// reported once.
    pub(super) fn hear_agent(&mut self, pod: &PodInfo, before: Option<&Charge>, charge: &Charge) {
        if charge.commitment != Commitment::Bound {
            return;
        }
        let was = |profile| before.and_then(|before| before.answer_of(profile));
        let answers = || charge.allocations.iter().map(|one| (was(&one.profile), one.answer));
        let is_answer = |answer| matches!(answer, Answer::Succeeded | Answer::Failed);
        if answers().any(|(was, is)| was == Some(Answer::Awaited) && is_answer(is)) {
            self.agents.silences.remove(&charge.node);
        }
        let failed_before = before.is_some_and(|before| before.has_answer(Answer::Failed));
        if !failed_before
            && charge.has_answer(Answer::Failed)
            && pod.stage == Stage::Pending
            && pod.placer == Placer::Berth
        {
            let (pod, node) = (pod.key.clone(), charge.node.clone());
            self.outbox.effects.push(Effect::TellFailedAllocation { pod, node });
        }
    }

    /// Whether a Binding of this pod is under way or in doubt.
    fn may_be_bound(&self, node: &NodeName, uid: &Uid) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        serving.is_some_and(|serving| serving.uid == *uid && serving.bindings > 0)
    }

    fn tell_silence(&mut self, uid: &Uid, node: &NodeName, since: Timestamp, now: Timestamp) {
        let expiry = self.lock_expiry;
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if patience(expiry, entry.silence_told).is_some_and(|patience| since + patience <= now) {
            entry.silence_told += 1;
            self.outbox.effects.push(Effect::TellSilent { pod: entry.info.key.clone(), node: node.clone() });
        }
    }

    fn owed(&self, node: &NodeName) -> Vec<(Uid, Timestamp)> {
        let charges = self.snapshot.ledger().on_node(node);
        let in_flight = charges.filter(|(uid, charge)| self.is_in_flight(uid, charge));
        in_flight.map(|(uid, charge)| (uid.clone(), charge.since)).collect()
    }

    /// When silence is to be said the next time, or the node tried again.
    pub(super) fn agent_deadlines(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let expiry = self.lock_expiry;
        let owed = self.owed(node);
        let late: Vec<_> = owed.iter().filter_map(|(_, since)| since.checked_add(USUAL).ok()).collect();
        let times = owed.into_iter().filter_map(move |(uid, since)| {
            let told = self.pods.get(&uid)?.silence_told;
            since.checked_add(patience(expiry, told)?).ok()
        });
        let charges = self.snapshot.ledger().on_node(node);
        let going = charges.filter_map(|(uid, charge)| self.goes_by(uid, charge));
        let silent = self.remains_since(node).filter_map(move |since| since.checked_add(expiry).ok());
        let cleared = self.agents.vacated.get(node).copied();
        let again = self.agents.silences.get(node).and_then(|silence| silence.until);
        let times = times.chain(late).chain(going).chain(silent).chain(self.withdraw_deadlines(node));
        times.chain(again).chain(cleared).collect::<Vec<_>>().into_iter()
    }
}

fn patience(expiry: SignedDuration, told: u32) -> Option<SignedDuration> {
    expiry.checked_mul(1_i32.checked_shl(told)?)
}
