//! Carrying out what the scheduler wants done: each effect is one task, and its answer, if it has one, an event.

use std::sync::Arc;

use kube::{Api, Client};

use super::{
    bind,
    clock::Clock,
    lock,
    metrics::Metrics,
    read::Reader,
    tell::{self, News},
    wire::Watched,
};
use crate::device::ProfileName;
use crate::{
    dialect::{Dialect, LockSpec},
    object::Pod,
    scheduling::{Effect, Event, PodInfo, PodKey},
};

/// What is needed to carry out effects.
#[derive(Clone)]
pub struct Hands {
    /// The client for writes; it must not retry by itself.
    pub client: Client,
    /// Reads pods that are in doubt.
    pub reader: Arc<Reader>,
    /// The present.
    pub clock: Clock,
    /// Counts what is done.
    pub metrics: Metrics,
}

impl Hands {
    /// Carries out an effect.
    pub async fn act(self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::TakeLock { pod, node, resource_version, profile } => {
                let (client, now) = (self.client.clone(), self.clock.now());
                let outcome =
                    lock::take(client, self.lock_spec(profile), &node, &pod, &resource_version, now).await;
                self.metrics.lock(&outcome);
                Some(Event::LockAnswered { pod, node, outcome })
            }
            Effect::ReleaseLock { pod, node, resource_version, profile } => {
                let released =
                    lock::release(self.client.clone(), self.lock_spec(profile), &node, &resource_version);
                complain(released.await, "giving back the node lock failed", &pod);
                None
            }
            Effect::Bind { pod, node, profile, assignment } => {
                let started = tokio::time::Instant::now();
                let record = self.dialect(profile).record(&assignment, &node, self.clock.now());
                let outcome = bind::bind(self.client.clone(), &pod, &node, record).await;
                self.metrics.binding(&outcome, started.elapsed());
                Some(Event::BindAnswered { pod, node, outcome })
            }
            Effect::ReadPod { pod } => self.read(pod).await,
            Effect::TellScheduled { pod, node } => {
                self.tell(&pod, News::Scheduled { node: &node }).await;
                None
            }
            Effect::TellUnschedulable { pod, message } => {
                let (client, now) = (self.client.clone(), self.clock.now());
                complain(
                    tell::unschedulable(client, &pod, &message, now).await,
                    "setting PodScheduled failed",
                    &pod,
                );
                self.tell(&pod, News::FailedScheduling { message: &message }).await;
                None
            }
            Effect::TellSilent { pod, node } => {
                tracing::warn!(%pod, %node, "the node's device plugin has not answered");
                self.tell(&pod, News::SilentAgent { node: &node }).await;
                None
            }
        }
    }

    async fn tell(&self, pod: &PodKey, news: News<'_>) {
        let event =
            tell::event(self.client.clone(), self.reader.scheduler_name(), pod, news, self.clock.now());
        complain(event.await, "writing an Event failed", pod);
    }

    /// Reads a pod until there is an answer.
    async fn read(&self, pod: PodKey) -> Option<Event> {
        let pods: Api<Watched<Pod>> = Api::namespaced(self.client.clone(), &pod.namespace);
        let mut pause = std::time::Duration::from_millis(100);
        loop {
            match pods.get_opt(&pod.name).await {
                Ok(found) => {
                    let found = found.map(|found| Box::new(self.info(&found.object)));
                    return Some(Event::PodRead { pod, found });
                }
                Err(error) => {
                    tracing::warn!(%pod, %error, "reading a pod failed, trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(std::time::Duration::from_secs(5));
                }
            }
        }
    }

    fn info(&self, pod: &Pod) -> PodInfo {
        self.reader.pod(pod).0
    }

    fn dialect(&self, profile: ProfileName) -> &Arc<dyn Dialect> {
        self.reader.dialects().named(profile).expect("an effect names one of the dialects that were read")
    }

    fn lock_spec(&self, profile: ProfileName) -> &LockSpec {
        self.dialect(profile).lock().expect("a lock is only asked for where the dialect has one")
    }
}

fn complain(outcome: Result<(), kube::Error>, what: &str, pod: &PodKey) {
    if let Err(error) = outcome {
        tracing::warn!(%pod, %error, "{what}");
    }
}
