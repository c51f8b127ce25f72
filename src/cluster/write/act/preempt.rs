//! Carrying out a preemption: the nominated node, and the victims.

use super::{Hands, cut_off};
use crate::{
    cluster::{
        report::metrics::Written,
        write::{preempt, send, tell::News},
    },
    scheduling::{Concern, Event, NodeName, PodKey, Setback, WriteOutcome, model::kept_room::RoomStatus},
};

impl Hands {
    pub(super) async fn nominate(
        &self,
        pod: PodKey,
        node: Option<NodeName>,
        room: Option<RoomStatus>,
    ) -> Event {
        self.metrics.write(Written::nomination);
        let written = preempt::nominate(self.client.clone(), &pod, node.as_deref(), room);
        let outcome = self.fence.within(send::REACH, written).await;
        let outcome = outcome.unwrap_or_else(|| WriteOutcome::Failed(cut_off()));
        if let WriteOutcome::Refused(answer) | WriteOutcome::Failed(Setback { why: answer, .. }) = &outcome {
            tracing::warn!(%pod, answer, "writing the nominated node failed");
        }
        Event::Nominated { pod, node, room, outcome }
    }

    pub(super) async fn preempt(&self, pod: PodKey, node: &str, preemptor: PodKey) -> Event {
        self.metrics.write(Written::preemption);
        let (scheduler, now) = (self.reader.scheduler_name(), self.clock.now());
        let written = preempt::preempt(self.client.clone(), &pod, scheduler, now);
        let outcome = self.fence.within(send::REACH, written).await;
        let outcome = outcome.unwrap_or_else(|| WriteOutcome::Failed(cut_off()));
        match &outcome {
            WriteOutcome::Written { .. } => {
                tracing::info!(%pod, %node, %preemptor, "preempted a pod");
                let news = News::Preempted { node, preemptor: &preemptor };
                self.tell(&Concern::Pod(pod.clone()), news).await;
            }
            WriteOutcome::Refused(answer) | WriteOutcome::Failed(Setback { why: answer, .. }) => {
                tracing::warn!(%pod, %node, %preemptor, answer, "preempting a pod failed");
            }
        }
        Event::Preempted { pod, preemptor, outcome }
    }
}
