//! Taking the claims of a pod as far as they go.

use super::{
    flow::PrebindFlow,
    reason::{DevicesFailure, PrebindReason},
    request::PrebindRequest,
    step::{ClaimProgress, ClaimStep},
    undo::Undos,
    view::PrebindView,
    {devices, extended, node_resources, volume},
};
use crate::scheduling::model::prebind_step::PrebindStep;

/// A claim of devices for which so much was written, and that still is not as it should be, is given up.
const MOST_WRITES: u32 = 20;

impl PrebindFlow {
    /// Takes every claim as far as it goes, and requests the writes for that.
    pub(super) fn advance(
        &mut self,
        undos: &Undos,
        view: &PrebindView<'_>,
        requests: &mut Vec<PrebindRequest>,
    ) -> Result<(), PrebindReason> {
        let now = view.now();
        let overdue = self.is_overdue(now);
        self.awaited = None;
        for at in 0..self.steps.len() {
            self.steps[at].state.come_due(now);
            let progress = self.progress(&self.steps[at], undos, view);
            let step = &mut self.steps[at];
            match progress {
                ClaimProgress::Bound => continue,
                ClaimProgress::Awaited if overdue => {
                    return Err(PrebindReason::timed_out(&step.choice, &self.node));
                }
                ClaimProgress::Awaited => {}
                ClaimProgress::Adopted(version) => step.written(version),
                ClaimProgress::Write(write) => {
                    step.send(&write);
                    requests.push(PrebindRequest::Write(self.pod.clone(), write));
                }
                ClaimProgress::Failed(reason) => return Err(reason),
            }
            self.awaited = self.awaited.or(Some(at));
        }
        self.bound = self.awaited.is_none();
        Ok(())
    }

    /// What is to be done for one claim, as everything is known now.
    fn progress(&self, step: &ClaimStep, undos: &Undos, view: &PrebindView<'_>) -> ClaimProgress {
        let Some(node) = view.snapshot.node(&self.node) else {
            return ClaimProgress::Failed(PrebindReason::NodeGone(self.node.clone()));
        };
        match &step.choice {
            PrebindStep::Volume(choice) => volume::progress(&self.pod, node, (choice, &step.state), view),
            PrebindStep::Devices(_) | PrebindStep::Extended(_) | PrebindStep::NodeResources(_)
                if step.tries > MOST_WRITES =>
            {
                let failure = DevicesFailure::ChangesTooOften;
                ClaimProgress::Failed(PrebindReason::devices(step.choice.claim(), failure))
            }
            // The pod's status is written once its claims have their devices.
            PrebindStep::NodeResources(_)
                if self.awaited.is_some() || undos.state_node_resources(&self.pod) =>
            {
                ClaimProgress::Awaited
            }
            PrebindStep::NodeResources(choice) => {
                node_resources::progress(&self.pod, (choice, &step.state), view)
            }
            step if undos.are_releasing(&self.pod, step.claim(), view) => ClaimProgress::Awaited,
            PrebindStep::Devices(choice) => devices::progress(&self.pod, node, (choice, &step.state), view),
            PrebindStep::Extended(choice) => extended::progress(&self.pod, node, (choice, step), view),
        }
    }
}
