//! For which pods room is kept next, and on which nodes: the highest priority first, then the pod that waits longest.
//!
//! Which room is kept since when is not remembered here: it stands in the pods' status, and is known by the nominations.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::{SignedDuration, Timestamp};

use super::{SchedulingCycle, alike::Versions, scheduling_queue::PodProgress};
use crate::scheduling::{
    decide::blame::Resolvable,
    model::{
        kept_room::{KeptRoom, RoomCourse, RoomTerms},
        name::{NodeName, Uid},
        pod::PodInfo,
    },
    pending::PendingReason,
    plan::kept_room::{self, RoomPlace},
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
    /// The last pod for which there was no node, if the turn had no time for those after it.
    passed: Option<Turn>,
}

/// A pod's place among those that wait for room: its priority, since when it waits, and when it was first seen.
type Turn = (Reverse<i32>, Timestamp, u64, Uid);

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

    /// When room is to be looked for, where pods wait, or is given up.
    pub(in crate::scheduling::scheduler) fn deadline(
        &self,
        since: impl Iterator<Item = Timestamp>,
        waits: bool,
    ) -> Option<Timestamp> {
        let terms = self.terms?;
        let look = (waits && !self.ended.is_empty()).then_some(self.next);
        since.map(|since| terms.until(since)).chain(look).min()
    }
}

impl SchedulingCycle {
    /// When room is to be looked for, or is given up.
    pub(in crate::scheduling::scheduler) fn rooms_deadline(&self) -> Option<Timestamp> {
        let waits = self.queue.order.set_aside_pods().next().is_some();
        self.kept_rooms.deadline(self.snapshot.nominations().rooms().map(|(.., since)| since), waits)
    }

    /// The room that is kept for the pod because it waits long.
    pub(in crate::scheduling::scheduler) fn kept_room(&self, uid: &Uid) -> Option<KeptRoom> {
        let nominations = self.snapshot.nominations();
        let (node, since) = (nominations.node_of(uid)?.clone(), nominations.room_since(uid)?);
        let until = self.kept_rooms.terms.map_or(since, |terms| terms.until(since));
        Some(KeptRoom { node, since, until })
    }

    /// The pods whose room has been kept for as long as any is.
    pub(in crate::scheduling::scheduler) fn overdue_rooms(&self, now: Timestamp) -> Vec<Uid> {
        let is_over = |since| self.kept_rooms.terms.is_none_or(|terms| terms.until(since) <= now);
        let rooms = self.snapshot.nominations().rooms().filter(|(.., since)| is_over(*since));
        rooms.map(|(uid, ..)| uid.clone()).collect()
    }

    /// The pods with room of which it is not known who has to end there, as after a restart, or that have lost their cards to pods of higher priority.
    pub(in crate::scheduling::scheduler) fn unsure_rooms(&self) -> Vec<Uid> {
        let nominations = self.snapshot.nominations();
        let is_unsure = |uid: &&Uid| {
            let asks = self.demand(uid).is_some_and(|demand| !demand.ask.devices.is_empty());
            nominations.victims(uid).next().is_none() || asks && nominations.cards(uid).is_empty()
        };
        nominations.rooms().map(|(uid, ..)| uid).filter(is_unsure).cloned().collect()
    }

    /// Whether it is time to look for pods that room is kept for; if so, it is not again for a while.
    pub(in crate::scheduling::scheduler) fn begins_look(&mut self, now: Timestamp) -> bool {
        let rooms = &mut self.kept_rooms;
        let is_due = rooms.terms.is_some() && rooms.next <= now;
        if is_due {
            rooms.next = now.checked_add(PERIOD).unwrap_or(Timestamp::MAX);
        }
        is_due
    }

    /// The pods that wait for room, in their order: those that could fit somewhere if others ended, and have waited for long enough. Pods of gangs,
    /// for which `is_in_gang` is true, are not among them.
    pub(in crate::scheduling::scheduler) fn waiting_for_room(
        &self,
        is_in_gang: impl Fn(&Uid) -> bool,
        now: Timestamp,
    ) -> Vec<Uid> {
        let Some(terms) = self.kept_rooms.terms else { return Vec::new() };
        let old = self.queue.order.set_aside_pods().filter(|(_, created, ..)| terms.from(*created) <= now);
        let turn = |place: &Place| {
            let (priority, _, seen, uid) = place;
            let info = &self.pods.get(uid)?.info;
            let since = waits_since(info, terms);
            let waits = terms.from(since) <= now && self.could_have_room(uid) && !is_in_gang(uid);
            waits.then(|| (*priority, since, *seen, uid.clone()))
        };
        let mut turns: Vec<Turn> = old.filter_map(turn).collect();
        turns.sort();
        let passed = |turn: &Turn| self.kept_rooms.passed.as_ref().is_some_and(|passed| turn <= passed);
        turns.into_iter().filter(|turn| !passed(turn)).map(|(.., uid)| uid).collect()
    }

    fn could_have_room(&self, uid: &Uid) -> bool {
        let is_resolvable = || match self.conditions.reason(uid) {
            Some(PendingReason::Fit(error)) => error.blame().resolvable() == Resolvable::Yes,
            _ => false,
        };
        matches!(self.queue.progress(uid), PodProgress::Waiting(_))
            && !self.snapshot.nominations().holds(uid)
            && !self.preempting.is_writing(uid)
            && !self.preempting.awaits_victims(uid, &self.preempt_view())
            && is_resolvable()
    }

    /// There was no time to look further than this pod, for which there was no node; `None`: all were looked at, or the first find room.
    pub(in crate::scheduling::scheduler) fn note_passed(&mut self, pod: Option<&Uid>) {
        let turn = |uid: &Uid| {
            let (entry, terms) = (self.pods.get(uid)?, self.kept_rooms.terms?);
            let priority = Reverse(entry.info.importance.priority);
            Some((priority, waits_since(&entry.info, terms), entry.seen, uid.clone()))
        };
        self.kept_rooms.passed = pod.and_then(turn);
    }

    /// How many rooms may be kept at a time.
    pub(in crate::scheduling::scheduler) fn most_rooms(&self) -> usize {
        (self.snapshot.nodes().count() * MOST_PERCENT / 100).max(1)
    }

    /// Of the rooms of pods of lower priority, the one of the lowest and then the youngest.
    pub(in crate::scheduling::scheduler) fn least_room(&self, priority: i32) -> Option<Uid> {
        let lower = self.snapshot.nominations().rooms().filter(|(_, of, ..)| *of < priority);
        lower.min_by_key(|(uid, of, _, since)| (*of, Reverse(*since), *uid)).map(|(uid, ..)| uid.clone())
    }

    /// Where room is kept for the pod: on a node where a pod has ended not longer ago than a room is kept, and for no other pod.
    pub(in crate::scheduling::scheduler) fn choose_room(
        &mut self,
        uid: &Uid,
        now: Timestamp,
    ) -> Option<RoomPlace> {
        let demand = self.demand(uid)?;
        let KeptRooms { terms, ended, .. } = &self.kept_rooms;
        let terms = (*terms)?;
        let nominations = self.snapshot.nominations().clone();
        let is_allowed = |node: &NodeName| {
            let ends = ended.get(node);
            let last =
                ends.and_then(
                    |ends| if demand.ask.devices.is_empty() { Some(ends.pod) } else { ends.with_cards },
                );
            last.is_some_and(|last| terms.until(last) > now) && nominations.on_node(node).is_empty()
        };
        let before = Versions::of(&self.snapshot);
        let counts = self.classes.counts();
        let chosen = kept_room::choose(&demand, &mut self.snapshot, counts, &is_allowed);
        self.queue.rejections.keep(before, &self.snapshot);
        chosen
    }

    /// The room of the pod as its node stands now, with the time since when it is kept; `None`: that node can't have it any more.
    pub(in crate::scheduling::scheduler) fn room_as_it_stands(
        &mut self,
        uid: &Uid,
    ) -> Option<(RoomPlace, Timestamp)> {
        let demand = self.demand(uid)?;
        let KeptRoom { node, since, .. } = self.kept_room(uid)?;
        let before = Versions::of(&self.snapshot);
        let counts = self.classes.counts();
        let must_end = kept_room::must_end(&demand, &node, &mut self.snapshot, counts);
        self.queue.rejections.keep(before, &self.snapshot);
        must_end.map(|must_end| (RoomPlace { node, must_end }, since))
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
