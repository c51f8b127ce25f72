//! Preempting pods for one that no node would have: the node is kept for it, its status says so, and then its victims are deleted.
//!
//! In this order nothing is deleted for a pod whose nomination is not written, and a binder that ends in between leaves a nominated pod
//! that preempts again. Until every victim is seen to go the pod preempts no others; after a restart the victims' own conditions tell. After a
//! preemption in vain there is a pause (`vain`).
//!
//! `Preempting` holds the preemptions under way. It takes `PreemptInput`s in, reads the cluster through a `PreemptView`, and hands
//! `PreemptRequest`s out; victims are chosen in [`plan::preemption`](crate::scheduling::plan::preemption). The request `Confirm` is answered at
//! once, and all others by what the API server answers or the watches show.
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Nominating : Chosen / Keep, Nominate; EndNomination, Nominate none and DecideAgain for pods of lower priority
//!     [*] --> Kept : Chosen, without victims / Keep, Nominate
//!     Nominating --> Deleting : Nominated, Written / NoteStated, NoteNominationWritten, Confirm; Confirmed, Still / Delete, BackOffIfNotServed
//!     Nominating --> [*] : as above; Confirmed, NoLonger
//!     Nominating --> [*] : Nominated, Failed or Refused / EndNomination, Nominate none, BackOffIfWaiting
//!     Deleting --> Deleting : Bound, a victim whose Binding was under way / Delete
//!     [*] --> Deleting : LeftOver / Delete
//!     Deleting --> Deleting : LeftOver, unless that was asked for / Delete
//!     Deleting --> [*] : every victim is seen to go
//!     Deleting --> [*] : Deleted, Failed or Refused / EndNomination, Nominate none, BackOffIfWaiting
//!     Nominating --> [*] : Withdrawn / EndNomination, Nominate none
//!     Deleting --> [*] : Withdrawn / EndNomination, Nominate none
//!     Kept --> [*] : Withdrawn / EndNomination, Nominate none
//!     [*] --> Room : RoomChosen / Keep, Nominate
//!     Room --> Room : RoomChosen, on the same node since the same time / Keep
//!     Room --> [*] : RoomEnded or Withdrawn / EndNomination, Nominate none
//!     Room --> Nominating : Chosen / as above
//! ```
//!
//! A node is `Kept`, and a pod has `Room`, by the nomination alone: nothing of it is remembered here. One write of a pod's nomination is under way at a time: the
//! next one follows its answer.

mod input;
mod kept;
mod nominate;
mod request;
#[cfg(test)]
mod tests;
mod vain;
mod victims;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    decide::{fit_error::FitError, no_room::NoRoom},
    model::{
        kept_room::RoomStatus,
        name::{NodeName, Uid},
        pod::{Demand, PodKey},
    },
    plan::preemption::{self, Rules},
};
use vain::Vain;

pub(in crate::scheduling) use input::{Need, PreemptInput};
pub(in crate::scheduling) use request::PreemptRequest;
pub(in crate::scheduling) use view::PreemptView;

/// How far a preemption is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PreemptionStep {
    /// The pod's status is being written.
    Nominating,
    /// The victims are being deleted.
    Deleting,
}

/// A preemption under way.
#[derive(Debug)]
struct Preemption {
    node: NodeName,
    step: PreemptionStep,
    /// Pods that have not been seen to go yet.
    victims: BTreeSet<Uid>,
    /// Those of them whose deletion has been asked for.
    asked: BTreeSet<Uid>,
}

/// The preemptions under way, by the pod that they are for.
#[derive(Debug)]
pub(in crate::scheduling) struct Preempting {
    /// By which victims are chosen; `None`: no pod is preempted.
    rules: Option<Rules>,
    under_way: BTreeMap<Uid, Preemption>,
    /// Pods whose nominated node is being written, with what is to be written after that: two writes at a time could arrive in any order.
    writing: BTreeMap<Uid, Option<Nominated>>,
    /// Preemptions that came to nothing so far.
    vain: Vain,
    /// What the last input led to.
    requests: Vec<PreemptRequest>,
}

/// What a pod's status is to state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) struct Nominated {
    /// The node that is kept for the pod; `None`: none is.
    pub(in crate::scheduling) node: Option<NodeName>,
    /// What became of the room that is kept for it because it waits long; `None`: that is left as it is.
    pub(in crate::scheduling) room: Option<RoomStatus>,
}

impl Preempting {
    /// No preemption is under way; victims are chosen by these rules, if there are any.
    pub(in crate::scheduling) fn new(rules: Option<Rules>) -> Self {
        let (under_way, writing) = (BTreeMap::new(), BTreeMap::new());
        Self { rules, under_way, writing, vain: Vain::default(), requests: Vec::new() }
    }

    /// Takes in what happened. The requests are to be carried out in their order.
    pub(in crate::scheduling) fn handle(
        &mut self,
        input: PreemptInput<'_>,
        view: &PreemptView<'_>,
    ) -> Vec<PreemptRequest> {
        match input {
            PreemptInput::Chosen { pod, priority, candidate } => {
                self.nominate(pod, priority, candidate, view);
            }
            PreemptInput::RoomChosen { pod, node, must_end, since } => {
                self.keep_room(pod, node, must_end, since, view);
            }
            PreemptInput::RoomEnded(uid, course) => self.end_room(uid, course, view),
            PreemptInput::NoneChosen(uid) => {
                let keeps_room = view.snapshot.nominations().room_since(uid).is_some();
                // Pods that were deleted for it may be ending still.
                if view.knows_budgets() && !keeps_room && !self.awaits_victims(uid, view) {
                    self.withdraw(uid, view);
                }
            }
            PreemptInput::Withdrawn(uid) => self.withdraw(uid, view),
            PreemptInput::Nominated { pod, stated, outcome } => self.nominated(pod, stated, outcome, view),
            PreemptInput::Confirmed(pod, need) => self.confirmed(&pod, need, view),
            PreemptInput::LeftOver { pod, preemptor, node } => {
                self.delete_left_over(pod, preemptor, node, view);
            }
            PreemptInput::Bound(pod) => self.delete_if_victim(pod, view),
            PreemptInput::Deleted { pod, preemptor, outcome } => self.deleted(pod, preemptor, outcome, view),
            PreemptInput::TimePassed => self.watch_kept(view.now()),
        }
        std::mem::take(&mut self.requests)
    }

    /// By which rules victims are chosen; `None`: no pod is preempted.
    pub(in crate::scheduling) fn rules(&self) -> Option<Rules> {
        self.rules
    }

    /// By which rules victims are chosen for a pod that fits nowhere for this reason, or why none are; `None`: it may preempt none now, or it is
    /// known already that this makes no room.
    pub(in crate::scheduling) fn rules_for(
        &self,
        demand: &Demand,
        error: &FitError,
        view: &PreemptView<'_>,
    ) -> Option<Result<Rules, NoRoom>> {
        let rules = self.rules?;
        if !view.knows_budgets()
            || self.under_way.contains_key(&demand.uid)
            || !preemption::is_tried(demand, error, view.snapshot)
        {
            return None;
        }
        let pause = self.preempts_not_before(&demand.uid, view);
        Some(pause.map_or(Ok(rules), |until| Err(NoRoom::Paused(until))))
    }

    /// Whether victims of the pod are still to be deleted, or to end.
    pub(in crate::scheduling) fn awaits_victims(&self, pod: &Uid, view: &PreemptView<'_>) -> bool {
        let awaits = |demand: Demand| preemption::awaits_victims(&demand, view.snapshot);
        self.under_way.contains_key(pod) || view.demand(pod).is_some_and(awaits)
    }

    /// Whether the status of the pod is being written.
    pub(in crate::scheduling) fn is_nominating(&self, pod: &Uid) -> bool {
        self.under_way.get(pod).is_some_and(|preemption| preemption.step == PreemptionStep::Nominating)
    }

    /// Whether a write of the pod's nominated node is under way.
    pub(in crate::scheduling) fn is_writing(&self, pod: &Uid) -> bool {
        self.writing.contains_key(pod)
    }

    /// Nothing more is deleted for the pod; whether there was a preemption for it.
    pub(in crate::scheduling) fn stop(&mut self, pod: &Uid) -> bool {
        self.under_way.remove(pod).is_some()
    }

    /// A pod is being deleted, or holds nothing any more.
    pub(in crate::scheduling) fn note_going(&mut self, pod: &Uid) {
        self.under_way.retain(|_, preemption| {
            preemption.victims.remove(pod);
            !preemption.victims.is_empty()
        });
    }

    /// A pod is gone: nothing is preempted for it any more, and it need not go for another.
    pub(in crate::scheduling) fn note_gone(&mut self, pod: &PodKey, now: Timestamp) {
        self.vain.note_gone(pod, now);
        self.stop(&pod.uid);
        self.note_going(&pod.uid);
    }

    /// The pod is bound: nothing was preempted for it in vain.
    pub(in crate::scheduling) fn end(&mut self, pod: &Uid) {
        self.vain.end(pod);
    }
}
