//! For which pods room is kept next, and on which nodes: the highest priority first, then the pod that waits longest.
//!
//! Which room is kept since when is not remembered here: it stands in the pods' status, and is known by the nominations.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::{SignedDuration, Timestamp};

use super::{SchedulingCycle, scheduling_queue::PodProgress};
use crate::scheduling::{
    decide::blame::Resolvable,
    model::{
        kept_room::{KeptRoom, RoomCourse, RoomTerms},
        name::{NodeName, Uid},
        pod::{Demand, PodInfo},
    },
    pending::PendingReason,
    queue::Place,
    world::ledger::{Charge, Commitment},
};

/// So long after it was looked for pods that room could be kept for, it is again.
const PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// Of so many percent of the nodes room may be kept at a time; of one node in any case.
const MOST_PERCENT: usize = 3;

/// When pods have ended on a node, the last time.
#[derive(Clone, Copy, Debug)]
struct LastEnds {
    /// Any pod.
    pod: Timestamp,
    /// One that held cards.
    with_cards: Option<Timestamp>,
}

/// What is remembered to choose for which pods room is kept.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct KeptRooms {
    /// From when and for how long room is kept; `None`: none is.
    pub(in crate::scheduling::scheduler) terms: Option<RoomTerms>,
    /// When pods have ended: a node where none does is not kept, since it would not become free.
    ended: BTreeMap<NodeName, LastEnds>,
    /// When it is looked again.
    next: Timestamp,
    /// The first pod for which a turn had no time: the next look begins with it.
    passed: Option<Turn>,
}

/// A pod's place among those that wait for room: its priority, since when it waits, and when it was first seen.
pub(in crate::scheduling::scheduler) type Turn = (Reverse<i32>, Timestamp, u64, Uid);

impl KeptRooms {
    /// With these terms.
    pub(in crate::scheduling::scheduler) fn new(terms: Option<RoomTerms>) -> Self {
        Self { terms, next: Timestamp::MIN, ..Self::default() }
    }

    /// A pod holds nothing any more.
    pub(in crate::scheduling::scheduler) fn note_released(&mut self, charge: &Charge, now: Timestamp) {
        if self.terms.is_none() || charge.commitment != Commitment::Bound {
            return;
        }
        let ended = self.ended.entry(charge.node.clone()).or_insert(LastEnds { pod: now, with_cards: None });
        ended.pod = now;
        if !charge.allocations.is_empty() {
            ended.with_cards = Some(now);
        }
    }

    /// The node is gone.
    pub(in crate::scheduling::scheduler) fn forget(&mut self, node: &NodeName) {
        self.ended.remove(node);
    }

    /// Whether it is time to look for pods that room is kept for; if so, it is not again for a while.
    pub(in crate::scheduling::scheduler) fn begins_look(&mut self, now: Timestamp) -> bool {
        let is_due = self.terms.is_some() && self.next <= now;
        if is_due {
            self.next = now.checked_add(PERIOD).unwrap_or(Timestamp::MAX);
        }
        is_due
    }

    /// There was no time to look at this pod and those after it; `None`: all were looked at, or there is no room for more.
    pub(in crate::scheduling::scheduler) fn note_passed(&mut self, first: Option<Turn>) {
        self.passed = first;
    }

    /// The last time that a pod has ended on the node, one with cards if these count.
    fn last_end(&self, node: &NodeName, with_cards: bool) -> Option<Timestamp> {
        let ends = self.ended.get(node)?;
        if with_cards { ends.with_cards } else { Some(ends.pod) }
    }
}

/// What is read of the cluster to keep room for pods.
#[derive(Clone, Copy)]
pub(in crate::scheduling::scheduler) struct RoomView<'a>(&'a SchedulingCycle);

impl<'a> RoomView<'a> {
    /// Of this cluster.
    pub(in crate::scheduling::scheduler) fn of(cycle: &'a SchedulingCycle) -> Self {
        Self(cycle)
    }

    /// The room that is kept for the pod because it waits long.
    pub(in crate::scheduling::scheduler) fn room(self, uid: &Uid) -> Option<KeptRoom> {
        let nominations = self.0.snapshot.nominations();
        let (node, since) = (nominations.node_of(uid)?.clone(), nominations.room_since(uid)?);
        let until = self.0.kept_rooms.terms.map_or(since, |terms| terms.until(since));
        Some(KeptRoom { node, since, until })
    }

    /// How many rooms are kept.
    pub(in crate::scheduling::scheduler) fn count(self) -> usize {
        self.0.snapshot.nominations().rooms().count()
    }

    /// How many rooms may be kept at a time.
    pub(in crate::scheduling::scheduler) fn most(self) -> usize {
        (self.0.snapshot.nodes.count() * MOST_PERCENT / 100).max(1)
    }

    /// When room is to be looked for, where pods wait, or is given up.
    pub(in crate::scheduling::scheduler) fn deadline(self) -> Option<Timestamp> {
        let KeptRooms { terms, ended, next, .. } = &self.0.kept_rooms;
        let terms = (*terms)?;
        let waits = self.0.queue.order.set_aside_pods().next().is_some();
        let look = (waits && !ended.is_empty()).then_some(*next);
        let rooms = self.0.snapshot.nominations().rooms();
        rooms.map(|(.., since)| terms.until(since)).chain(look).min()
    }

    /// The pods whose room has been kept for as long as any is.
    pub(in crate::scheduling::scheduler) fn overdue(self, now: Timestamp) -> Vec<Uid> {
        let is_over = |since| self.0.kept_rooms.terms.is_none_or(|terms| terms.until(since) <= now);
        let rooms = self.0.snapshot.nominations().rooms().filter(|(.., since)| is_over(*since));
        rooms.map(|(uid, ..)| uid.clone()).collect()
    }

    /// The pods with room of which it is not known who has to end there, as after a restart, or that have lost their cards to pods of higher priority.
    pub(in crate::scheduling::scheduler) fn unsure(self) -> Vec<Uid> {
        let nominations = self.0.snapshot.nominations();
        let is_unsure = |uid: &&Uid| {
            let asks = self.0.demand(uid).is_some_and(|demand| !demand.ask.devices.is_empty());
            nominations.victims(uid).next().is_none() || asks && nominations.cards(uid).is_empty()
        };
        nominations.rooms().map(|(uid, ..)| uid).filter(is_unsure).cloned().collect()
    }

    /// The pods that wait for room, in their order: those that could fit somewhere if others ended, and have waited for long enough. Pods of gangs,
    /// for which `is_in_gang` is true, are not among them.
    pub(in crate::scheduling::scheduler) fn waiting(
        self,
        is_in_gang: impl Fn(&Uid) -> bool,
        now: Timestamp,
    ) -> Vec<Turn> {
        let Self(cycle) = self;
        let Some(terms) = cycle.kept_rooms.terms else { return Vec::new() };
        let old = cycle.queue.order.set_aside_pods().filter(|(_, created, ..)| terms.from(*created) <= now);
        let turn = |(priority, _, seen, uid): &Place| {
            let since = waits_since(&cycle.pods.get(uid)?.info, terms);
            let waits = terms.from(since) <= now && self.could_have_room(uid) && !is_in_gang(uid);
            waits.then(|| (*priority, since, *seen, uid.clone()))
        };
        let mut turns: Vec<Turn> = old.filter_map(turn).collect();
        turns.sort();
        let was_looked_at =
            |turn: &Turn| cycle.kept_rooms.passed.as_ref().is_some_and(|passed| turn < passed);
        turns.retain(|turn| !was_looked_at(turn));
        turns
    }

    fn could_have_room(self, uid: &Uid) -> bool {
        let Self(cycle) = self;
        let is_resolvable = || match cycle.conditions.reason(uid) {
            Some(PendingReason::Fit(error)) => error.blame().resolvable() == Resolvable::Yes,
            _ => false,
        };
        matches!(cycle.queue.progress(uid), PodProgress::Waiting(_))
            && !cycle.snapshot.nominations().holds(uid)
            && !cycle.preempting.is_writing(uid)
            && !cycle.preempting.awaits_victims(uid, &cycle.preempt_view())
            && is_resolvable()
    }

    /// Of the rooms of pods of lower priority, the one of the lowest and then the youngest.
    pub(in crate::scheduling::scheduler) fn least(self, priority: i32) -> Option<Uid> {
        let lower = self.0.snapshot.nominations().rooms().filter(|(_, of, ..)| *of < priority);
        let least = lower.min_by_key(|(uid, of, _, since)| (*of, Reverse(*since), *uid));
        least.map(|(uid, ..)| uid.clone())
    }

    /// The nodes that may be kept for the pod: those on which a pod has ended not longer ago than a room is kept, and that are kept for no other pod.
    pub(in crate::scheduling::scheduler) fn nodes_for(
        self,
        demand: &Demand,
        now: Timestamp,
    ) -> BTreeSet<NodeName> {
        let Self(SchedulingCycle { kept_rooms, snapshot, .. }) = self;
        let with_cards = !demand.ask.devices.is_empty();
        let is_allowed = |node: &&NodeName| {
            let last = kept_rooms.last_end(node, with_cards).zip(kept_rooms.terms);
            last.is_some_and(|(last, terms)| terms.until(last) > now)
                && snapshot.nominations().on_node(node).is_empty()
        };
        snapshot.nodes().map(|state| &state.info.name).filter(is_allowed).cloned().collect()
    }
}

/// Since when the pod waits for room: since it was created, or its last room was given up. Room that its status states although it is not kept counts
/// as given up when it would have been.
fn waits_since(pod: &PodInfo, terms: RoomTerms) -> Timestamp {
    let created = pod.lifetime.created;
    match pod.status.room {
        None => created,
        Some(room) => match room.course {
            RoomCourse::Lost => created,
            RoomCourse::GivenUp => room.since.max(created),
            RoomCourse::Kept => terms.until(room.since).max(created),
        },
    }
}
