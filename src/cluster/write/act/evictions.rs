//! Carrying out evictions from nodes of closed zones, and writing Events about them.

use super::{Hands, News, send};
use crate::{
    cluster::{report::metrics::Written, write::evict},
    excerpt::{MESSAGE, excerpt},
    scheduling::{
        Details, Event, EvictionOutcome, PodKey,
        model::gang::GangName,
        plan::eviction::{Eviction, Postponed},
    },
};

impl Hands {
    /// Evicts a pod, and writes an Event if the API server agrees.
    pub(super) async fn evict(&self, eviction: Eviction) -> Event {
        self.metrics.write(Written::eviction);
        let asked = evict::evict(self.client.clone(), &eviction.pod);
        let outcome = self.fence.within(send::REACH, asked).await.unwrap_or(EvictionOutcome::Doubtful);
        self.metrics.eviction(&eviction.zone, &outcome);
        let Eviction { pod, node, zone, .. } = &eviction;
        match &outcome {
            EvictionOutcome::Granted => {
                tracing::info!(%pod, %node, %zone, "evicted a pod since the revocable zone is closed");
                let message = match self.details {
                    Details::Full => format!("Evicted from {eviction}"),
                    Details::Own => format!("Evicted: {}", eviction.closed()),
                };
                self.say(pod.clone(), News::Evicted { message: &message }).await;
            }
            EvictionOutcome::Refused(answer) => {
                let answer = &*excerpt(answer, MESSAGE);
                tracing::info!(%pod, %node, %zone, answer, "the API server does not evict a pod now");
            }
            EvictionOutcome::Gone | EvictionOutcome::Doubtful => {}
        }
        Event::EvictionAnswered { eviction, outcome }
    }

    /// Evicts a bound pod of a gang that could not be bound as a whole, and writes an Event if the API server agrees. What comes of it is seen
    /// by watching the pod.
    pub(super) async fn roll_back(&self, pod: PodKey, gang: &GangName) -> Option<Event> {
        self.metrics.write(Written::eviction);
        let asked = evict::evict(self.client.clone(), &pod);
        let outcome = self.fence.within(send::REACH, asked).await.unwrap_or(EvictionOutcome::Doubtful);
        match &outcome {
            EvictionOutcome::Granted => {
                tracing::warn!(%pod, %gang, "evicted a pod since its gang could not be bound as a whole");
                let message = format!("Evicted: {gang} could not be bound as a whole in time");
                self.say(pod, News::RolledBack { message: &message }).await
            }
            EvictionOutcome::Refused(answer) => {
                let answer = &*excerpt(answer, MESSAGE);
                tracing::warn!(%pod, %gang, answer, "the API server does not evict a pod of a partly bound gang now");
                None
            }
            EvictionOutcome::Gone | EvictionOutcome::Doubtful => None,
        }
    }

    /// Writes an Event about a pod that is not evicted yet.
    pub(super) async fn tell_postponed(&self, postponed: Postponed) -> Option<Event> {
        let pod = postponed.eviction.pod.clone();
        let message = self.worded(&pod, postponed.message());
        self.say(pod, News::EvictionPostponed { message: &message }).await
    }
}
