//! What a node's device plugin owes, and what becomes of a node whose plugin is silent.
//!
//! A plugin is never asked: what is known of it is what it writes on pods, and how long it has not.

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::{
    device::Answer,
    scheduling::{
        effect::Effect,
        ledger::{Charge, Commitment},
        node::NodeName,
        pod::{Placer, PodInfo, Stage, Uid},
        snapshot::Agent,
    },
};

/// How long a node is held back after its plugin has left its first pod without an answer.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// So long after a pod is gone its node's plugin may still be at work for it: it gives some containers their cards, each in
/// seconds, and finds its pod by the node's lock or by its annotations, which by then would be the next pod's.
const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);

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

impl Scheduler {
    /// Whether the node's plugin owes an answer for a bound pod, or may still be at work for one that was deleted: no other is bound
    /// there meanwhile, since it would mix both up.
    pub(super) fn agent_is_busy(&self, node: &NodeName, now: Timestamp) -> bool {
        let vacated = self.vacated.get(node).is_some_and(|until| *until > now);
        vacated || self.snapshot.ledger().on_node(node).any(|(_, charge)| charge.is_in_flight())
    }

    /// A pod is gone. If its node's plugin was at work for it, nobody will say when it is done: it is given time.
    pub(super) fn note_vacancy(&mut self, uid: &Uid, now: Timestamp) {
        let charge = self.snapshot.ledger().get(uid);
        let charge = charge.filter(|charge| charge.is_in_flight() || self.may_be_bound(&charge.node, uid));
        let until = now.checked_add(CLEARANCE).ok();
        if let (Some(charge), Some(until)) = (charge, until) {
            self.vacated.retain(|_, until| *until > now);
            self.vacated.insert(charge.node.clone(), until);
        }
    }

    /// Finds out whether the node's plugin is silent for too long: then it is said, after a pause that doubles each time, and no pod
    /// is sent there until it answers. When the pod that it owes an answer is gone, the node is tried again, each time after a longer
    /// pause.
    pub(super) fn watch_agent(&mut self, node: &NodeName, now: Timestamp) {
        let expiry = self.settings.lock_expiry;
        let mut owes = Owes::Nothing;
        for (uid, since) in self.owed(node) {
            if since.checked_add(expiry).is_ok_and(|at| at <= now) {
                owes = Owes::TooLong;
            }
            self.tell_silence(&uid, node, since, now);
        }
        let silence = Silence::next(self.silences.get(node).copied(), owes, expiry, now);
        if let Some(silence) = silence {
            self.silences.insert(node.clone(), silence);
        }
        let silent = silence.is_some_and(|silence| silence.holds_back(now));
        self.set_agent(node, if silent { Agent::Silent } else { Agent::Answering });
    }

    fn set_agent(&mut self, node: &NodeName, agent: Agent) {
        if self.snapshot.set_agent(node, agent) != agent && agent == Agent::Answering {
            self.wake(node);
        }
    }

    /// Takes in what has become of a pod's charge: an answer ends its plugin's silence, and a failure is said.
    pub(super) fn hear_agent(&mut self, pod: &PodInfo, before: Option<&Charge>, charge: &Charge) {
        let was = |answer| before.is_some_and(|before| before.answer == answer);
        if charge.commitment != Commitment::Bound || charge.answer == Answer::Awaited {
            return;
        }
        if was(Answer::Awaited) {
            self.silences.remove(&charge.node);
        }
        let fresh = charge.answer == Answer::Failed && !was(Answer::Failed);
        if fresh && pod.stage == Stage::Pending && pod.placer == Placer::Berth {
            let (pod, node) = (pod.key.clone(), charge.node.clone());
            self.effects.push(Effect::TellFailedAllocation { pod, node });
        }
    }

    /// Whether a Binding of this pod is under way or in doubt.
    fn may_be_bound(&self, node: &NodeName, uid: &Uid) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        serving.is_some_and(|serving| serving.uid == *uid && serving.bindings > 0)
    }

    fn tell_silence(&mut self, uid: &Uid, node: &NodeName, since: Timestamp, now: Timestamp) {
        let expiry = self.settings.lock_expiry;
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if patience(expiry, entry.silence_told).is_some_and(|patience| since + patience <= now) {
            entry.silence_told += 1;
            self.effects.push(Effect::TellSilent { pod: entry.info.key.clone(), node: node.clone() });
        }
    }

    fn owed(&self, node: &NodeName) -> Vec<(Uid, Timestamp)> {
        let in_flight = self.snapshot.ledger().on_node(node).filter(|(_, charge)| charge.is_in_flight());
        in_flight.map(|(uid, charge)| (uid.clone(), charge.since)).collect()
    }

    /// When silence is to be said the next time, or the node tried again.
    pub(super) fn agent_deadlines(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let expiry = self.settings.lock_expiry;
        let times = self.owed(node).into_iter().filter_map(move |(uid, since)| {
            let told = self.pods.get(&uid)?.silence_told;
            since.checked_add(patience(expiry, told)?).ok()
        });
        let cleared = self.vacated.get(node).copied();
        let again = self.silences.get(node).and_then(|silence| silence.until);
        times.chain(again).chain(cleared).collect::<Vec<_>>().into_iter()
    }
}

fn patience(expiry: SignedDuration, told: u32) -> Option<SignedDuration> {
    expiry.checked_mul(1_i32.checked_shl(told)?)
}
