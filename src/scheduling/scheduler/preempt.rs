//! Preempting pods for one that no node would have: the node is kept for it, its status says so, and then its victims are deleted.
//!
//! In this order nothing is deleted for a pod whose nomination is not written, and a binder that ends in between leaves a nominated pod
//! that preempts again. Until every victim is seen to go the pod preempts no others; after a restart the victims' own conditions tell. After a
//! preemption in vain there is a pause (`vain`).

mod kept;
mod vain;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Course, PodProgress, Scheduler};
use crate::scheduling::{
    decide::{fit_error::FitError, no_room::NoRoom},
    effect::Effect,
    event::WriteOutcome,
    model::{
        kind::Kind,
        measure::Measure,
        name::{NodeName, Uid},
        pod::{Deletion, Demand, PodKey, is_older},
    },
    plan::preemption::{self, Candidate, Rules},
    world::ledger::Commitment,
};
use vain::Vain;

/// How far a preemption is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// The pod's status is being written.
    Nominating,
    /// The victims are being deleted.
    Deleting,
}

/// A preemption under way.
#[derive(Debug)]
struct Preemption {
    node: NodeName,
    step: Step,
    /// Pods that have not been seen to go yet.
    victims: BTreeSet<Uid>,
    /// Those of them whose deletion has been asked for.
    asked: BTreeSet<Uid>,
}

/// The preemptions under way, by the pod that they are for.
#[derive(Debug)]
pub(super) struct Preempting {
    /// By which victims are chosen; `None`: no pod is preempted.
    rules: Option<Rules>,
    under_way: BTreeMap<Uid, Preemption>,
    /// Pods whose nominated node is being written, with what is to be written after that: two writes at a time could arrive in any order.
    writing: BTreeMap<Uid, Option<Nominated>>,
    /// Preemptions that came to nothing so far.
    pub(super) vain: Vain,
}

/// The node that a pod's status is to state; `None`: it is to state none.
type Nominated = Option<NodeName>;

impl Preempting {
    pub(super) fn new(rules: Option<Rules>) -> Self {
        Self { rules, under_way: BTreeMap::new(), writing: BTreeMap::new(), vain: Vain::default() }
    }

    /// By which rules victims are chosen; `None`: no pod is preempted.
    pub(super) fn rules(&self) -> Option<Rules> {
        self.rules
    }

    /// Whether pods are preempted for this one.
    pub(super) fn is_under_way(&self, pod: &Uid) -> bool {
        self.under_way.contains_key(pod)
    }

    /// Whether the status of the pod is being written.
    pub(super) fn is_nominating(&self, pod: &Uid) -> bool {
        self.under_way.get(pod).is_some_and(|preemption| preemption.step == Step::Nominating)
    }

    /// Nothing more is deleted for the pod; whether there was a preemption for it.
    pub(super) fn stop(&mut self, pod: &Uid) -> bool {
        self.under_way.remove(pod).is_some()
    }

    /// A pod is being deleted, is gone, or holds nothing any more.
    pub(super) fn note_going(&mut self, pod: &Uid) {
        self.under_way.retain(|_, preemption| {
            preemption.victims.remove(pod);
            !preemption.victims.is_empty()
        });
    }
}

impl Scheduler {
    /// Looks for pods of lower priority that can go for a pod that fits nowhere, and begins to preempt them. The error says where that
    /// makes no room.
    pub(super) fn preempt(&mut self, uid: &Uid, error: FitError) -> FitError {
        match self.choose_victims(uid, &error) {
            None => {
                self.withdraw_vain_nomination(uid);
                error
            }
            Some(Ok((priority, candidate))) => {
                self.outbox.measures.push(Measure::Preemption(candidate.victims.len()));
                self.nominate(uid, priority, candidate);
                error
            }
            Some(Err(no_room)) => {
                let tried = no_room.was_tried().then_some(Measure::Preemption(0));
                self.outbox.measures.extend(tried);
                self.withdraw_vain_nomination(uid);
                error.beside_preemption(no_room)
            }
        }
    }

    /// Why the pod still waits, with what preemption makes of it; `None`: it could preempt others by now, and is to be decided again.
    /// A nomination that makes no room any more is withdrawn.
    pub(super) fn still_waits(&mut self, uid: &Uid, error: FitError) -> Option<FitError> {
        let error = match self.choose_victims(uid, &error) {
            None => error,
            Some(Ok(_)) => return None,
            Some(Err(no_room)) => error.beside_preemption(no_room),
        };
        self.withdraw_vain_nomination(uid);
        Some(error)
    }

    /// Withdraws the nomination of a pod that fits nowhere, unless pods that were deleted for it are still ending. kube-scheduler clears
    /// `nominatedNodeName` when an attempt at preemption finds no node (v1.36 `framework/preemption/preemption.go`).
    fn withdraw_vain_nomination(&mut self, uid: &Uid) {
        if self.knows_budgets() && !self.awaits_victims(uid) {
            self.withdraw_nomination(uid);
        }
    }

    /// Whether victims of the pod are still to be deleted, or to end.
    pub(super) fn awaits_victims(&self, uid: &Uid) -> bool {
        let awaits = |demand: Demand| preemption::awaits_victims(&demand, &self.snapshot);
        self.preempting.is_under_way(uid) || self.demand(uid).is_some_and(awaits)
    }

    /// Decides the pods again that this node is kept for and whose victims are gone: after a change of the node, it may make no room for them.
    pub(super) fn wake_nominated(&mut self, node: &NodeName) {
        for uid in self.snapshot.nominations().on_node(node) {
            if !self.awaits_victims(&uid) {
                self.decide_waiting_again(&uid);
            }
        }
    }

    /// Whether the PodDisruptionBudgets are listed, without which no victim is chosen.
    pub(super) fn knows_budgets(&self) -> bool {
        self.snapshot.objects().are_listed(&[Kind::PodDisruptionBudget])
    }

    /// The pods that could go for a pod that fits nowhere, with its priority; `None`: it may preempt none now, or that is known already.
    fn choose_victims(&mut self, uid: &Uid, error: &FitError) -> Option<Result<(i32, Candidate), NoRoom>> {
        let rules = self.preempting.rules?;
        if !self.knows_budgets() || self.preempting.is_under_way(uid) {
            return None;
        }
        let demand = self.demand(uid)?;
        if !preemption::is_tried(&demand, error, &self.snapshot) {
            return None;
        }
        if let Some(until) = self.preempts_not_before(uid) {
            return Some(Err(NoRoom::Paused(until)));
        }
        let pods = &self.pods;
        let name = |pod: &Uid| pods.get(pod).map(|entry| entry.info.key.name.clone());
        let before = self.versions();
        let counts = self.classes.counts();
        let chosen = preemption::choose(&demand, &mut self.snapshot, counts, rules, &name);
        self.keep_rejections(before);
        let why = |hopeless| match preemption::exceeded_beside_nominated(&demand, &self.snapshot) {
            Some(exceeded) => NoRoom::Quota(exceeded),
            None => NoRoom::Hopeless(hopeless),
        };
        Some(chosen.map(|candidate| (demand.priority, candidate)).map_err(why))
    }

    /// Keeps the node for the pod, and has its status say so.
    pub(super) fn nominate(&mut self, uid: &Uid, priority: i32, candidate: Candidate) {
        let Candidate { node, victims, .. } = candidate;
        let Some(entry) = self.pods.get(uid) else { return };
        let all_go = victims.iter().all(|victim| victim.importance.deletion != Deletion::None);
        if all_go && self.snapshot.nominations().node_of(uid) == Some(&node) {
            return;
        }
        let victims: BTreeSet<Uid> = victims.into_iter().map(|victim| victim.pod).collect();
        self.snapshot.keep_for(&entry.info, &node, victims.clone());
        let pod = entry.info.key.clone();
        self.write_nomination(pod, Some(node.clone()));
        // Pods of lower priority that the node was kept for may find another place sooner.
        for lower in self.snapshot.nominations().below(priority, &node) {
            self.withdraw_nomination(&lower);
            self.decide_waiting_again(&lower);
        }
        // For another pod of its gang, others may go.
        if victims.is_empty() {
            return;
        }
        self.note_preemption_again(uid);
        let preemption = Preemption { node, step: Step::Nominating, victims, asked: BTreeSet::new() };
        self.preempting.under_way.insert(uid.clone(), preemption);
    }

    /// No node is kept for the pod any more, and its status is to state none, even if it states one that was not kept until now. A node that
    /// is not known may be one that is being made.
    pub(super) fn withdraw_nomination(&mut self, uid: &Uid) {
        let Some(entry) = self.pods.get(uid) else { return };
        let stated = entry.info.status.nominated.as_ref();
        let Some(node) = self.snapshot.nominations().node_of(uid).or(stated) else { return };
        if self.snapshot.node(node).is_none() {
            return;
        }
        let pod = entry.info.key.clone();
        self.preempting.stop(uid);
        self.snapshot.end_nomination(uid);
        self.write_nomination(pod, None);
    }

    /// Writes the nominated node of a pod, after the write of it that is under way.
    fn write_nomination(&mut self, pod: PodKey, node: Nominated) {
        if let Some(next) = self.preempting.writing.get_mut(&pod.uid) {
            *next = Some(node);
            return;
        }
        self.preempting.writing.insert(pod.uid.clone(), None);
        self.outbox.effects.push(Effect::Nominate { pod, node });
    }

    /// A write of the pod's nominated node has ended: the next one follows, if it says anything else than what was written.
    fn write_next_nomination(&mut self, pod: &PodKey, written: Option<&Nominated>) {
        let next = self.preempting.writing.remove(&pod.uid).flatten();
        if let Some(next) = next.filter(|next| written != Some(next)) {
            self.write_nomination(pod.clone(), next);
        }
    }

    /// What came of writing a pod's nominated node: once it is written, the victims are deleted, if the pod still waits.
    pub(super) fn nominated(
        &mut self,
        pod: &PodKey,
        node: Option<&NodeName>,
        outcome: &WriteOutcome,
        now: Timestamp,
    ) {
        let uid = &pod.uid;
        let is_of =
            |preemption: &Preemption| preemption.step == Step::Nominating && Some(&preemption.node) == node;
        let begun = self.preempting.under_way.get(uid).is_some_and(is_of);
        let is_written = matches!(outcome, WriteOutcome::Written { .. });
        self.write_next_nomination(pod, is_written.then(|| node.cloned()).as_ref());
        match outcome {
            WriteOutcome::Written { resource_version } => {
                self.note_written(uid, node, resource_version);
                if begun {
                    self.snapshot.note_nomination_written(uid);
                    self.delete_victims(pod, now);
                }
            }
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) if begun => self.preempt_again(uid, now),
            // The status may state a node that is not kept: the next decision withdraws that again.
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_)
                if node.is_none() && self.stop_waiting(uid) =>
            {
                self.back_off(uid, now);
            }
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => {}
        }
        self.tell(uid);
    }

    /// The pod's status states this node, or none, since this version.
    fn note_written(&mut self, uid: &Uid, node: Option<&NodeName>, resource_version: &str) {
        let entry = self.pods.get_mut(uid);
        if let Some(entry) = entry.filter(|entry| is_older(&entry.info.resource_version, resource_version)) {
            resource_version.clone_into(&mut entry.info.resource_version);
            entry.info.status.nominated = node.cloned();
        }
    }

    /// Deletes the victims of a pod that still waits and still fits nowhere. One that is not bound yet is decided anew instead; one that
    /// is just being bound is deleted once it is.
    fn delete_victims(&mut self, preemptor: &PodKey, now: Timestamp) {
        let waits = self.pods.get(&preemptor.uid).is_some_and(|entry| {
            matches!(
                entry.progress,
                PodProgress::Waiting(_)
                    | PodProgress::OverQuota
                    | PodProgress::Queued
                    | PodProgress::BackingOff
            )
        });
        let waits = waits && self.decide(&preemptor.uid).is_err();
        let under_way = self.preempting.under_way.get_mut(&preemptor.uid);
        let Some(preemption) = under_way.filter(|_| waits && self.duty.course == Course::Onward) else {
            self.preempting.stop(&preemptor.uid);
            return;
        };
        preemption.step = Step::Deleting;
        let (node, victims) = (preemption.node.clone(), preemption.victims.clone());
        for victim in victims {
            let stays = self.snapshot.ledger().get(&victim).filter(|charge| charge.node == node);
            let stays = stays.filter(|charge| charge.importance.deletion == Deletion::None);
            let known = self.pods.get(&victim).map(|entry| entry.info.key.clone());
            let (Some(charge), Some(pod)) = (stays, known) else {
                self.preempting.note_going(&victim);
                continue;
            };
            match charge.commitment {
                Commitment::Assumed if self.is_served(&node, &victim) => {}
                Commitment::Assumed => {
                    self.preempting.note_going(&victim);
                    self.back_off(&victim, now);
                }
                Commitment::Intended | Commitment::Bound => self.delete(pod, preemptor, &node),
            }
        }
    }

    /// A pod is bound. If it is to go for another, it is deleted now.
    pub(super) fn delete_if_victim(&mut self, pod: &PodKey) {
        let awaits = |preemption: &Preemption| {
            preemption.step == Step::Deleting
                && preemption.victims.contains(&pod.uid)
                && !preemption.asked.contains(&pod.uid)
        };
        let found = self.preempting.under_way.iter().find(|(_, preemption)| awaits(preemption));
        let Some((preemptor, node)) = found.map(|(uid, preemption)| (uid.clone(), preemption.node.clone()))
        else {
            return;
        };
        if let Some(preemptor) = self.pods.get(&preemptor).map(|entry| entry.info.key.clone()) {
            self.delete(pod.clone(), &preemptor, &node);
        }
    }

    fn delete(&mut self, pod: PodKey, preemptor: &PodKey, node: &NodeName) {
        let now = self.snapshot.now();
        if let Some(preemption) = self.preempting.under_way.get_mut(&preemptor.uid) {
            if preemption.asked.is_empty() {
                self.preempting.vain.begin(&preemptor.uid, node, now);
            }
            preemption.asked.insert(pod.uid.clone());
        }
        let (preemptor, node) = (preemptor.clone(), node.clone());
        self.outbox.effects.push(Effect::Preempt { pod, node, preemptor });
    }

    /// What came of deleting a victim. That it goes is seen by itself.
    pub(super) fn preempted(
        &mut self,
        pod: &PodKey,
        preemptor: &PodKey,
        outcome: &WriteOutcome,
        now: Timestamp,
    ) {
        let under_way = self.preempting.under_way.get(&preemptor.uid);
        let awaited = under_way.is_some_and(|preemption| preemption.victims.contains(&pod.uid));
        match outcome {
            WriteOutcome::Written { .. } => self.preempting.vain.note_deleted(preemptor, now),
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) if awaited => {
                self.preempt_again(&preemptor.uid, now);
            }
            _ => {}
        }
    }

    /// The preemption could not be carried out: nothing is kept for the pod, and it is decided again after a backoff.
    fn preempt_again(&mut self, uid: &Uid, now: Timestamp) {
        self.withdraw_nomination(uid);
        self.preempting.stop(uid);
        if self.stop_waiting(uid) {
            self.back_off(uid, now);
        }
    }

    /// Decides pods again that may preempt others, now that it is known which budgets there are.
    pub(super) fn end_wait_for_budgets(&mut self) {
        let waiting = self.pods.uids().filter(|uid| self.waiting.queue.has_set_aside(uid));
        let mut waiting: Vec<Uid> = waiting.cloned().collect();
        waiting.sort();
        for uid in waiting {
            self.decide_waiting_again(&uid);
        }
    }
}
