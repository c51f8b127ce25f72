//! What is written for a pod's claims before the pod stands in the line of its node: kube-scheduler's PreBind.
//!
//! A claim is a sequence of writes, each a compare-and-swap, and of what others do between them. No lock is held meanwhile. Where the
//! pod goes elsewhere, what was written is taken back. Nothing is remembered across a restart: what is written leads the pod to the same
//! choice.
//!
//! `Prebinding` holds a `PrebindFlow` for each pod whose claims are being bound. It takes `PrebindInput`s in, reads the cluster through a
//! `PrebindView`, and hands `PrebindRequest`s out; it decides no pod, and knows neither classes nor lines.
//!
//! A pod:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Binding : Decided
//!     Binding --> Binding : Touched / Write
//!     Binding --> Bound : Touched, every claim is bound
//!     Bound --> Binding : Touched, a claim no longer is
//!     Bound --> [*] : Permitted / Join
//!     Binding --> [*] : a claim can't be bound, or not in time / BackOff
//!     Binding --> [*] : Answered, Refused / BackOff
//!     Binding --> [*] : GivenUp
//!     Bound --> [*] : GivenUp
//!     Binding --> Yielding : TimePassed, after half a minute / Tell, WakeForHeld
//!     Yielding --> Bound : Touched, every claim is bound
//!     Yielding --> Parked : PlaceTaken / PutBehind, BackOff
//!     Parked --> Binding : Decided, what was written for its volumes is taken up
//!     Parked --> [*] : PodGone, or bound by another scheduler
//! ```
//!
//! A pod that is `Bound` yields in the same way. Whenever one leaves for another reason than `Permitted`, what was written for it is taken back;
//! of a pod that is `Parked`, all but what was written for volumes.
//!
//! One of its claims:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Unsent
//!     Unsent --> Sent : Touched, a write is due / Write
//!     Unsent --> Written : Touched, it is written already
//!     Sent --> Written : Answered, Written
//!     Sent --> Due : Answered, Failed
//!     Due --> Unsent : Touched, the time has come
//!     Written --> Sent : Touched, seen as it was written, and a further write is due / Write
//!     Written --> Failed : Touched, seen and changed by others
//! ```
//!
//! What is taken back of it:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Unsent : nothing is under way any more
//!     [*] --> Sent : its write is under way
//!     [*] --> Written : it was written
//!     [*] --> Due : its write failed, and may still arrive
//!     Due --> Sent : UndosTouched, the time has come / Write
//!     Unsent --> Sent : UndosTouched / Write
//!     Sent --> Written : Answered, Written
//!     Sent --> Due : Answered, Failed or Refused
//!     Written --> Sent : UndosTouched, seen as it was written, and something is left / Write
//!     Written --> [*] : UndosTouched, seen as it was written, and nothing is left, or it is in use, or after five writes / Linger
//!     Due --> [*] : UndosTouched, the time has come, each write has its answer, and nothing is left, or it is in use, or after five writes / Linger
//! ```

mod advance;
mod devices;
mod extended;
mod flow;
mod held;
mod input;
mod node_resources;
mod reason;
mod request;
mod step;
#[cfg(test)]
mod tests;
mod touched;
mod undo;
mod view;
mod volume;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::model::{
    name::{NodeName, Uid},
    outcome::WriteOutcome,
    pod::PodKey,
    prebind_step::PrebindStep,
    prebind_write::PrebindWrite,
};
use flow::PrebindFlow;
use step::{ClaimState, ClaimStep};
use touched::Touched;
use undo::Undos;

pub(in crate::scheduling) use held::Wanted;
pub(in crate::scheduling) use input::PrebindInput;
pub use reason::PrebindReason;
pub(in crate::scheduling) use request::PrebindRequest;
pub(in crate::scheduling) use view::PrebindView;

/// What is written for claims before their pods stand in line.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Prebinding {
    /// Pods whose claims are being bound.
    flows: BTreeMap<Uid, PrebindFlow>,
    /// What was written for claims of pods that went elsewhere.
    undos: Undos,
    /// What was written for volumes of pods that have lost their places: it stays until they are placed elsewhere or gone.
    parked: BTreeMap<Uid, PrebindFlow>,
    /// Those of the pods whose claims may go further.
    touched: Touched,
    /// How many percent of the cluster's cards the pods of a namespace may hold without a container.
    held_percent: u32,
    /// What the last input led to.
    requests: Vec<PrebindRequest>,
}

impl Prebinding {
    /// No claim is being bound; so many percent of the cluster's cards may be held without a container by the pods of one namespace.
    pub(in crate::scheduling) fn new(held_percent: u32) -> Self {
        Self { held_percent, ..Self::default() }
    }

    /// Takes in what happened. The requests are to be carried out in their order.
    pub(in crate::scheduling) fn handle(
        &mut self,
        input: PrebindInput<'_>,
        view: &PrebindView<'_>,
    ) -> Vec<PrebindRequest> {
        match input {
            PrebindInput::Decided { pod, seen, node, steps } => {
                self.begin((pod, seen), node, steps, view.now());
            }
            PrebindInput::Touched(uid) => self.advance(uid, view),
            PrebindInput::Answered { pod, write, outcome } => self.answered(pod, write, outcome, view.now()),
            PrebindInput::Permitted(pods) => self.end(&pods),
            PrebindInput::UndosTouched => self.settle_undos(view),
            PrebindInput::TimePassed => self.watch_held(view.now()),
            PrebindInput::GivenUp(uid) => {
                if let Some(flow) = self.flows.remove(uid) {
                    self.take_back(flow);
                }
            }
            PrebindInput::PlaceTaken(uid) => self.put_back(uid, view.now()),
            PrebindInput::Unschedulable(uid) => self.give_up_claims(uid, view),
            PrebindInput::ClaimSeen(claim) => self.delete_if_stray(claim, view),
            PrebindInput::PodGone(pod) => self.drop_parked(pod),
        }
        std::mem::take(&mut self.requests)
    }

    fn begin(&mut self, (pod, seen): (PodKey, u64), node: NodeName, steps: Vec<PrebindStep>, now: Timestamp) {
        let uid = pod.uid.clone();
        let written = self.take_up_parked(&uid, &node, &steps);
        let step = |choice| {
            let tries = u32::from(written.contains(&choice));
            ClaimStep::new(choice, tries)
        };
        let flow = PrebindFlow {
            pod,
            seen,
            node,
            since: now,
            steps: steps.into_iter().map(step).collect(),
            bound: false,
            awaited: None,
            is_said: false,
            yields: false,
        };
        self.touched.add(&uid);
        self.flows.insert(uid, flow);
    }

    fn advance(&mut self, uid: &Uid, view: &PrebindView<'_>) {
        let Some(flow) = self.flows.get_mut(uid) else { return };
        let Err(reason) = flow.advance(&self.undos, view, &mut self.requests) else { return };
        let pod = flow.pod.clone();
        let claims = view.snapshot.resource_claims();
        let given_up = reason.given_up().and_then(|claim| claims.claim(&pod.namespace, claim));
        self.fail(uid, reason);
        if let Some(claim) = given_up {
            self.give_up(&pod, claim, view);
            // While others use that claim, the pod would fail in the same way each time, and keep what it has of its other claims.
            self.give_up_claims(uid, view);
        }
    }

    /// The pod can't be placed on its node.
    fn fail(&mut self, uid: &Uid, reason: PrebindReason) {
        if let Some(flow) = self.flows.remove(uid) {
            self.take_back(flow);
            self.requests.push(PrebindRequest::BackOff(uid.clone(), reason));
        }
    }

    fn answered(&mut self, pod: &PodKey, write: &PrebindWrite, outcome: WriteOutcome, now: Timestamp) {
        if self.note_undone(pod, write, &outcome, now) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&pod.uid) else { return };
        self.touched.add(&pod.uid);
        let Some(step) = flow.steps.iter_mut().find(|step| write.is_of(&step.choice)) else { return };
        match outcome {
            WriteOutcome::Written { resource_version } => step.written(resource_version),
            WriteOutcome::Failed(setback) => step.pause(&setback, now),
            WriteOutcome::Refused(answer) => {
                step.state = ClaimState::Unsent;
                let reason = PrebindReason::refused(&step.choice, answer);
                self.fail(&pod.uid, reason);
            }
        }
    }

    /// The pods go on to the lines of their nodes, in the order in which they were seen.
    fn end(&mut self, pods: &[Uid]) {
        let mut flows: Vec<PrebindFlow> = pods.iter().filter_map(|uid| self.flows.remove(uid)).collect();
        flows.sort_by(|one, other| (one.seen, &one.pod.uid).cmp(&(other.seen, &other.pod.uid)));
        let joins = flows.into_iter().map(|flow| PrebindRequest::Join(flow.pod.uid, flow.node));
        self.requests.extend(joins);
    }

    /// The pods all of whose claims are bound.
    pub(in crate::scheduling) fn bound(&self) -> impl Iterator<Item = &Uid> {
        self.flows.iter().filter(|(_, flow)| flow.bound).map(|(uid, _)| uid)
    }

    /// Whether a claim of the pod is still being bound.
    pub(in crate::scheduling) fn is_binding(&self, pod: &Uid) -> bool {
        self.flows.get(pod).is_some_and(|flow| !flow.bound)
    }

    /// Whether claims of the pod are being bound, or it waits for those of its gang.
    pub(in crate::scheduling) fn contains(&self, pod: &Uid) -> bool {
        self.flows.contains_key(pod)
    }

    /// The pods whose claims are being bound.
    pub(in crate::scheduling) fn pods(&self) -> impl ExactSizeIterator<Item = &Uid> {
        self.flows.keys()
    }

    /// When claims are to be looked at again although nothing has happened.
    pub(in crate::scheduling) fn next_deadline(&self) -> Option<Timestamp> {
        let flows = self.flows.values().filter_map(PrebindFlow::next_deadline);
        flows.chain(self.undos.next_deadline()).min()
    }
}
