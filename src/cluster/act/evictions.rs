//! Carrying out evictions from nodes of closed zones, and writing Events about them.

use super::{Hands, News, send};
use crate::{
    cluster::{evict, metrics::Written},
    excerpt::{MESSAGE, excerpt},
    scheduling::{Event, EvictionOutcome, PodKey, tdm::eviction::Eviction},
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
                let message = format!("Evicted from {eviction}");
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

    /// Writes an Event about a pod that is not evicted yet.
    pub(super) async fn tell_postponed(&self, pod: PodKey, message: &str) -> Option<Event> {
        self.say(pod, News::EvictionPostponed { message }).await
    }
}
