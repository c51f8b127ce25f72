//! The node that is kept for a pod, and what the pod's status says of it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Nominated, Preempting, Preemption, PreemptionStep, request::PreemptRequest, view::PreemptView};
use crate::scheduling::{
    model::{
        kept_room::{RoomCourse, RoomStatus},
        name::{NodeName, Uid},
        outcome::WriteOutcome,
        pod::{Deletion, PodKey},
    },
    plan::preemption::Candidate,
};

impl Preempting {
    /// Keeps the node for the pod, and has its status say so.
    pub(super) fn nominate(
        &mut self,
        uid: &Uid,
        priority: i32,
        candidate: Candidate,
        view: &PreemptView<'_>,
    ) {
        let Candidate { node, victims, .. } = candidate;
        let Some(pod) = view.pods.pod(uid).map(|pod| &pod.key) else { return };
        let nominations = view.snapshot.nominations();
        let all_go = victims.iter().all(|victim| victim.importance.deletion != Deletion::None);
        if all_go && nominations.node_of(uid) == Some(&node) {
            return;
        }
        let victims: BTreeSet<Uid> = victims.into_iter().map(|victim| victim.pod).collect();
        let room = room_over(uid, RoomCourse::Lost, view);
        let (kept, on) = (victims.clone(), node.clone());
        self.requests.push(PreemptRequest::Keep {
            pod: uid.clone(),
            node: on,
            victims: kept,
            room_since: None,
        });
        self.write(pod.clone(), Nominated { node: Some(node.clone()), room });
        // Pods of lower priority that the node was kept for may find another place sooner.
        for lower in nominations.below(priority, &node) {
            self.withdraw(&lower, view);
            self.requests.push(PreemptRequest::DecideAgain(lower));
        }
        // For another pod of its gang, others may go.
        if victims.is_empty() {
            return;
        }
        self.vain.note_again(pod, view.now());
        let step = PreemptionStep::Nominating;
        let preemption = Preemption { node, step, victims, asked: BTreeSet::new() };
        self.under_way.insert(uid.clone(), preemption);
    }

    /// No node is kept for the pod any more, and its status is to state none, even if it states one that was not kept until now. A node that
    /// is not known may be one that is being made.
    pub(super) fn withdraw(&mut self, uid: &Uid, view: &PreemptView<'_>) {
        let Some(pod) = view.pods.pod(uid) else { return };
        let kept = view.snapshot.nominations().node_of(uid).or(pod.status.nominated.as_ref());
        let keeps_room = view.snapshot.nominations().room_since(uid).is_some();
        if !keeps_room && kept.and_then(|node| view.snapshot.node(node)).is_none() {
            return;
        }
        self.end_room(uid, RoomCourse::Lost, view);
    }

    /// No room is kept for the pod any more, and no other node, as its status is to say.
    pub(super) fn end_room(&mut self, uid: &Uid, course: RoomCourse, view: &PreemptView<'_>) {
        let Some(pod) = view.pods.pod(uid) else { return };
        let room = room_over(uid, course, view);
        self.stop(uid);
        self.requests.push(PreemptRequest::EndNomination(uid.clone()));
        self.write(pod.key.clone(), Nominated { node: None, room });
    }

    /// Keeps room for the pod on the node until these pods have ended, and has its status say so, unless it does.
    pub(super) fn keep_room(
        &mut self,
        uid: &Uid,
        node: NodeName,
        must_end: BTreeSet<Uid>,
        since: Timestamp,
        view: &PreemptView<'_>,
    ) {
        let Some(pod) = view.pods.pod(uid).map(|pod| &pod.key) else { return };
        let nominations = view.snapshot.nominations();
        let is_kept = nominations.node_of(uid) == Some(&node) && nominations.room_since(uid) == Some(since);
        if is_kept && nominations.victims(uid).eq(&must_end) {
            return;
        }
        let keep = PreemptRequest::Keep {
            pod: uid.clone(),
            node: node.clone(),
            victims: must_end,
            room_since: Some(since),
        };
        self.requests.push(keep);
        if !is_kept {
            let room = Some(RoomStatus { course: RoomCourse::Kept, since });
            self.write(pod.clone(), Nominated { node: Some(node), room });
        }
    }

    /// Writes the nominated node of a pod, after the write of it that is under way.
    fn write(&mut self, pod: PodKey, stated: Nominated) {
        if let Some(next) = self.writing.get_mut(&pod.uid) {
            // What became of the room is said even if the node is another by then.
            let room = stated.room.or(next.take().and_then(|next| next.room));
            *next = Some(Nominated { room, ..stated });
            return;
        }
        self.writing.insert(pod.uid.clone(), None);
        self.requests.push(PreemptRequest::Nominate(pod, stated));
    }

    /// A write of the pod's nominated node has ended: the next one follows, if it says anything else than what was written.
    fn write_next(&mut self, pod: &PodKey, written: Option<&Nominated>) {
        let next = self.writing.remove(&pod.uid).flatten();
        let says_more = |next: &Nominated| {
            written.is_none_or(|written| {
                written.node != next.node || next.room.is_some() && written.room != next.room
            })
        };
        if let Some(next) = next.filter(says_more) {
            self.write(pod.clone(), next);
        }
    }

    /// What came of writing a pod's nominated node: once it is written, the victims are deleted, if the pod still waits.
    pub(super) fn nominated(
        &mut self,
        pod: &PodKey,
        stated: &Nominated,
        outcome: &WriteOutcome,
        view: &PreemptView<'_>,
    ) {
        let (uid, node) = (&pod.uid, stated.node.as_ref());
        let is_of = |preemption: &Preemption| {
            preemption.step == PreemptionStep::Nominating && Some(&preemption.node) == node
        };
        let begun = self.under_way.get(uid).is_some_and(is_of);
        let is_written = matches!(outcome, WriteOutcome::Written { .. });
        self.write_next(pod, is_written.then_some(stated));
        match outcome {
            WriteOutcome::Written { resource_version } => {
                let (stated, resource_version) = (stated.clone(), resource_version.clone());
                self.requests.push(PreemptRequest::NoteStated { pod: uid.clone(), stated, resource_version });
                if begun {
                    self.requests.push(PreemptRequest::NoteNominationWritten(uid.clone()));
                    self.requests.push(PreemptRequest::Confirm(pod.clone()));
                }
            }
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) if begun => self.preempt_again(uid, view),
            // The status may state a node that is not kept: the next decision withdraws that again.
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) if node.is_none() => {
                self.requests.push(PreemptRequest::BackOffIfWaiting(uid.clone()));
            }
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => {}
        }
    }

    /// The preemption could not be carried out: nothing is kept for the pod, and it is decided again after a backoff.
    pub(super) fn preempt_again(&mut self, uid: &Uid, view: &PreemptView<'_>) {
        self.withdraw(uid, view);
        self.stop(uid);
        self.requests.push(PreemptRequest::BackOffIfWaiting(uid.clone()));
    }
}

/// What is to be said of the room that was kept for the pod; `None`: none was. Room that only its status states is given up.
fn room_over(uid: &Uid, course: RoomCourse, view: &PreemptView<'_>) -> Option<RoomStatus> {
    let stated = view.pods.pod(uid).and_then(|pod| pod.status.room);
    let is_stated = stated.is_some_and(|room| room.course == RoomCourse::Kept);
    let is_known = view.snapshot.nominations().room_since(uid).is_some();
    let course = if is_known { course } else { RoomCourse::GivenUp };
    (is_known || is_stated).then(|| RoomStatus::at(course, view.now()))
}
