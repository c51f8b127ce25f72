//! What goes on at one node: its line, its locks, its device plugin, and what dead pods have left there.
//!
//! A `NodeFlow` is a state machine for one node. It takes `NodeFlowInput`s in, reads the cluster through a `NodeView`, and hands
//! `NodeFlowRequest`s out; it decides no pod itself, and knows neither queue nor classes. `NodeFlows` holds all of them. Two of the requests,
//! `Decide` and `Judge`, are answered at once, and all others by what the API server answers or the watches show.
//!
//! The pod at the head of the line and the one that is served:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Waiting : Joined
//!     Waiting --> [*] : Left, Dismissed / Requeue
//!     Waiting --> Waiting : the plugin is busy / TellWaiting, FindOtherNodes
//!     Waiting --> Deciding : Touched, at the head, the plugin is free / Decide
//!     Deciding --> [*] : Decided, Rejected / Requeue
//!     Deciding --> Waiting : Decided, Fits, a lock is held / TellWaiting, FindOtherNodes
//!     Deciding --> Locking : Decided, Fits, its locks can be taken / TakeLock
//!     Deciding --> Binding : Decided, Fits, it needs no lock, or one that is left out / Bind
//!     Locking --> Locked : LockAnswered, Taken / Decide
//!     Locking --> DoubtingLock : LockAnswered, Stale or Failed, or Taken after another scheduler / ReadNode
//!     Locking --> Relocking : LockAnswered, Throttled
//!     Locking --> [*] : LockAnswered, Refused / BackOff
//!     Locking --> [*] : LockAnswered, Taken, no place is wanted any more / Forget, ReleaseLock
//!     DoubtingLock --> DoubtingLock : NodeRead, Overtaken / ReadNode
//!     DoubtingLock --> Locked : NodeRead, the locks are its own / Decide
//!     DoubtingLock --> Relocking : NodeRead, the locks are not its own
//!     DoubtingLock --> [*] : NodeRead, no place is wanted any more / Forget
//!     Relocking --> Waiting : Touched, the time has come; put back to the head
//!     Relocking --> [*] : seven times in a row / BackOff
//!     Locked --> Relocking : the locks are lost already
//!     Locked --> [*] : Decided, Rejected / Requeue
//!     Locked --> Binding : Decided, Fits / Bind
//!     Binding --> [*] : BindAnswered, Bound / ConfirmBound
//!     Binding --> [*] : BindAnswered, Refused / BackOff
//!     Binding --> Fencing : BindAnswered, Refused, and an earlier Binding may arrive
//!     Binding --> DoubtingBinding : BindAnswered, Refused, and an earlier Binding may have arrived / ReadPod
//!     Binding --> Rebinding : BindAnswered, Throttled
//!     Binding --> DoubtingBinding : BindAnswered, Doubtful / ReadPod
//!     DoubtingBinding --> [*] : the pod is read and is bound, or is gone / Left
//!     DoubtingBinding --> Rebinding : PodRead, not bound
//!     DoubtingBinding --> Fencing : PodRead, not bound; no place is wanted, or after five Bindings
//!     DoubtingBinding --> [*] : as above, and the read began when no Binding could arrive any more / BackOff
//!     Rebinding --> Binding : Touched, the time has come / Judge; Decided, Fits, the locks are its own / Bind
//!     Rebinding --> Fencing : Decided, Rejected, or its locks are lost, and a Binding may arrive
//!     Rebinding --> DoubtingBinding : as above, and a Binding may have arrived since the last read / ReadPod
//!     Rebinding --> [*] : Decided, Rejected, and none was in doubt / BackOff
//!     Rebinding --> Relocking : its locks are lost, and no Binding was in doubt
//!     Fencing --> DoubtingBinding : Touched, no Binding can arrive any more / ReadPod
//! ```
//!
//! The node's device plugin. While it is not free, no pod is served; while it is silent, the node is given no pods:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Free
//!     Free --> Owing : a bound pod awaits its answer
//!     Owing --> Free : it answers, or frees the lock
//!     Owing --> Silent : for longer than `nodeLockExpire` / SetAgent, TellSilent, Requeue all that wait
//!     Silent --> Free : it answers, or frees the lock / SetAgent
//!     Silent --> Pausing : the pod is gone
//!     Pausing --> Free : it is tried again, each time after twice as long / SetAgent
//!     Owing --> Vacated : PodMissed, the pod is gone unheard
//!     Vacated --> Free : after 15 s
//!     Free --> Withdrawing : HoldingSeen, a dead pod carries what it may take / Withdraw
//!     Withdrawing --> Free : Withdrawn, Done, or PodGone
//!     Withdrawing --> Withdrawing : Withdrawn, Failed / ReadPod; again after a second / Withdraw
//! ```
//!
//! The node's locks. No `NodeRead` gives a pod those that the node bears at the version of a `ReleaseLock` before the answer to it, nor
//! within the time after a `Failed` in which it may still arrive, whatever comes of other requests to give locks back:
//!
//! ```mermaid
//! stateDiagram-v2
//!     Free --> Taken : LockAnswered, Taken, or NodeRead
//!     Taken --> Free : NodeSeen without it / Measure
//!     Free --> Covering : another scheduler may take locks, and a pod is being served without / ReadNode
//!     Covering --> Covering : NodeRead, still so / TakeLock; LockAnswered, Stale / ReadNode, others after a second / ReadNode
//!     Covering --> Taken : LockAnswered, Taken
//!     Covering --> Free : NodeRead, no longer so; LockAnswered, Taken, no longer so / ReleaseLock
//!     Free --> Held : NodeSeen, another pod's
//!     Held --> Held : its holder was never seen / ReadHolder
//!     Held --> Free : NodeSeen without it
//!     Held --> Available : its time is over
//!     Held --> Releasing : its holder is gone, has ended, or is ours and not served / ReleaseLock
//!     Releasing --> Pausing : LockReleased; after Failed / ReadNode
//!     Pausing --> Releasing : Touched after a second, still held / ReleaseLock
//!     Pausing --> Free : NodeSeen without it
//! ```

mod agent;
mod answer;
mod contest;
mod cover;
mod flows;
mod input;
mod line;
mod lock;
mod ranks;
mod reads;
mod reason;
mod remnant;
mod request;
mod serve;
mod surge;
#[cfg(test)]
mod tests;
mod view;
mod wait;

use jiff::Timestamp;

use agent::NodeAgent;
use cover::{cover_answered, cover_read};
use line::Line;
use lock::NodeLocks;
use reads::ListCount;

pub(in crate::scheduling) use flows::NodeFlows;
pub(in crate::scheduling) use input::{Fit, NodeFlowInput};
pub(in crate::scheduling) use lock::owner_of;
pub(in crate::scheduling) use reads::Validity;
pub use reason::{LineWait, LockFailure, NodeFailure};
pub(in crate::scheduling) use request::NodeFlowRequest;
pub(in crate::scheduling) use view::{Course, NodeView};

/// What goes on at one node.
#[derive(Debug, Default)]
struct NodeFlow {
    /// The pods that wait for the node, and the one that it serves.
    line: Line,
    locks: NodeLocks,
    agent: NodeAgent,
    /// Whether the node serves no pod and is not known to begin soon: it comes after all others.
    held_up: bool,
    /// Since when the node is being read.
    reading: Option<ListCount>,
    /// When the flow is to go on although nothing has happened.
    deadline: Option<Timestamp>,
    /// What the last input led to.
    requests: Vec<NodeFlowRequest>,
}

impl NodeFlow {
    /// Takes in what happened.
    fn handle(&mut self, input: NodeFlowInput<'_>, view: &NodeView<'_>) {
        match input {
            NodeFlowInput::Touched => self.go_on(view),
            NodeFlowInput::Joined { pod, since } => self.line.join(pod, since, view.pods),
            NodeFlowInput::Left(pod) => self.line.leave(pod),
            NodeFlowInput::Dismissed => self.dismiss(),
            NodeFlowInput::Decided(pod, fit) => self.decided(&pod, fit, view),
            NodeFlowInput::LockAnswered { pod, locks, outcome } => {
                if !cover_answered(self, pod, &locks, &outcome, view) {
                    self.lock_answered(pod, locks, outcome, view);
                }
            }
            NodeFlowInput::LockReleased { resource_version, locks, outcome } => {
                self.lock_released((resource_version, locks), outcome, view);
            }
            NodeFlowInput::BindAnswered { pod, outcome } => self.bind_answered(pod, outcome, view),
            NodeFlowInput::Withdrawn { pod, outcome } => {
                self.requests.extend(self.agent.withdrawn(pod, outcome, view));
            }
            NodeFlowInput::NodeRead(validity) => {
                cover_read(self, validity, view);
                self.node_read(validity, view);
            }
            NodeFlowInput::PodRead(pod) => self.pod_read(pod, view),
            NodeFlowInput::HolderRead { owner, since, alive } => self.locks.note_read(owner, since, alive),
            NodeFlowInput::HolderSeen(owner) => self.locks.forget_unseen(owner),
            NodeFlowInput::NodeSeen { before } => {
                let awaited = self.locks.awaiting_unlock(before, view);
                let taking = self.line.served.as_ref().and_then(|served| served.lock_since);
                let lost = self.locks.see_node(before, taking, view);
                self.requests.extend(lost.map(NodeFlowRequest::Measure));
                self.agent.hear_unlock(&awaited, &self.locks, view);
            }
            NodeFlowInput::NodeGone => {
                self.locks = NodeLocks::default();
                self.agent.forget_silence();
                self.held_up = false;
                self.dismiss();
            }
            NodeFlowInput::HoldingSeen(uid) => {
                let Some(pod) = view.pods.pod(uid) else { return };
                self.agent.see_holding(pod, view);
                if pod.lifetime.leaving.is_some() {
                    self.pass_over_if_stuck(view);
                }
            }
            NodeFlowInput::Charged { pod, before, charge } => {
                self.requests.extend(self.agent.hear_answers(pod, before, charge));
            }
            NodeFlowInput::PodGone(pod) => self.agent.lose_pod(pod),
            NodeFlowInput::PodMissed(pod) => {
                self.agent.miss_pod(pod, (&self.line, &self.locks), view);
                self.pass_over_if_stuck(view);
            }
            NodeFlowInput::Vacated(until) => {
                self.agent.vacate(until);
                self.pass_over_if_stuck(view);
            }
        }
    }

    /// Sends the pods that wait back to the queue: they may have better places by now.
    fn dismiss(&mut self) {
        self.requests.extend(self.line.dismiss().into_iter().map(NodeFlowRequest::Requeue));
    }

    /// Whether nothing goes on, and nothing is remembered.
    fn is_idle(&self) -> bool {
        let Self { line, locks, agent, held_up, reading, deadline, requests: _ } = self;
        line.length() == 0
            && locks.is_empty()
            && agent.is_empty()
            && !held_up
            && reading.is_none()
            && deadline.is_none()
    }
}
