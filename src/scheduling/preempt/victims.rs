//! Deleting the pods that go for another.

use std::collections::BTreeSet;

use super::{
    Preempting, Preemption, PreemptionStep, input::Need, request::PreemptRequest, view::PreemptView,
};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        outcome::WriteOutcome,
        pod::{Deletion, PodKey},
    },
    node_flow::Course,
    plan::preemption::{mates, whole_group},
    world::ledger::{Charge, Commitment},
};

impl Preempting {
    /// Deletes the victims of a pod that still waits and still fits nowhere. One that is not bound yet is decided anew instead; one that
    /// is just being bound is deleted once it is. Of a group that goes as a whole, pods that were bound since then go too, and those on other nodes
    /// are deleted first: while one is left on the pod's node, a scheduler that is started anew finds that the pod still preempts.
    pub(super) fn confirmed(&mut self, preemptor: &PodKey, need: Need, view: &PreemptView<'_>) {
        let goes_on = need == Need::Still && view.course == Course::Onward;
        let Some(preemption) = self.under_way.get_mut(&preemptor.uid).filter(|_| goes_on) else {
            self.stop(&preemptor.uid);
            return;
        };
        preemption.step = PreemptionStep::Deleting;
        let node = preemption.node.clone();
        let ledger = view.snapshot.ledger();
        let mates = mates(preemption.victims.iter(), view.snapshot);
        preemption.victims.extend(mates);
        let mut victims: Vec<Uid> = preemption.victims.iter().cloned().collect();
        victims.sort_by_key(|victim| ledger.get(victim).is_some_and(|charge| charge.node == node));
        for victim in victims {
            let is_victim = |charge: &&Charge| {
                let goes_with = whole_group(&charge.importance, view.snapshot.objects()).is_some();
                (charge.node == node || goes_with) && charge.importance.deletion == Deletion::None
            };
            let stays = ledger.get(&victim).filter(is_victim);
            let (Some(charge), Some(pod)) = (stays, view.pods.pod(&victim)) else {
                self.note_going(&victim);
                continue;
            };
            match charge.commitment {
                Commitment::Assumed => {
                    self.requests.push(PreemptRequest::BackOffIfNotServed(victim, charge.node.clone()));
                }
                Commitment::Intended | Commitment::Bound => self.delete(&pod.key, preemptor, &node, view),
            }
        }
    }

    /// A pod is bound. If it is to go for another, it is deleted now.
    pub(super) fn delete_if_victim(&mut self, pod: &PodKey, view: &PreemptView<'_>) {
        let awaits = |preemption: &Preemption| {
            preemption.step == PreemptionStep::Deleting
                && preemption.victims.contains(&pod.uid)
                && !preemption.asked.contains(&pod.uid)
        };
        let found = self.under_way.iter().find(|(_, preemption)| awaits(preemption));
        let Some((preemptor, node)) = found.map(|(uid, preemption)| (uid, preemption.node.clone())) else {
            return;
        };
        if let Some(preemptor) = view.pods.pod(preemptor) {
            self.delete(pod, &preemptor.key, &node, view);
        }
    }

    /// Deletes a pod that is left of a group which goes as a whole, unless that was asked for.
    pub(super) fn delete_left_over(
        &mut self,
        pod: &PodKey,
        preemptor: &PodKey,
        node: &NodeName,
        view: &PreemptView<'_>,
    ) {
        let is_asked = self.under_way.values().any(|preemption| preemption.asked.contains(&pod.uid));
        if is_asked || self.rules.is_none() || view.course != Course::Onward {
            return;
        }
        let new = || Preemption {
            node: node.clone(),
            step: PreemptionStep::Deleting,
            victims: BTreeSet::new(),
            asked: BTreeSet::new(),
        };
        let preemption = self.under_way.entry(preemptor.uid.clone()).or_insert_with(new);
        if preemption.step == PreemptionStep::Deleting {
            preemption.victims.insert(pod.uid.clone());
            self.delete(pod, preemptor, node, view);
        }
    }

    fn delete(&mut self, pod: &PodKey, preemptor: &PodKey, node: &NodeName, view: &PreemptView<'_>) {
        if let Some(preemption) = self.under_way.get_mut(&preemptor.uid) {
            if preemption.asked.is_empty() {
                self.vain.begin(&preemptor.uid, node, view.now());
            }
            preemption.asked.insert(pod.uid.clone());
        }
        let (pod, preemptor, node) = (pod.clone(), preemptor.clone(), node.clone());
        self.requests.push(PreemptRequest::Delete { pod, node, preemptor });
    }

    /// What came of deleting a victim.
    pub(super) fn deleted(
        &mut self,
        pod: &PodKey,
        preemptor: &PodKey,
        outcome: &WriteOutcome,
        view: &PreemptView<'_>,
    ) {
        let under_way = self.under_way.get(&preemptor.uid);
        let awaited = under_way.is_some_and(|preemption| preemption.victims.contains(&pod.uid));
        match outcome {
            WriteOutcome::Written { .. } => self.vain.note_deleted(preemptor, view.now()),
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) if awaited => {
                self.preempt_again(&preemptor.uid, view);
            }
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => {}
        }
    }
}
