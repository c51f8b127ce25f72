//! Carrying out what the scheduler wants done: each effect is one task, and its answer, if it has one, an event.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Api, Client};

use super::{
    bind,
    clock::Clock,
    fence::Fence,
    lock,
    metrics::Metrics,
    read::Reader,
    tell::{self, News},
    wire::Watched,
    withdraw,
};
use crate::{
    device::{Assignment, LockOwner, ProfileName},
    dialect::{Dialect, LockSpec},
    object::{Node, Pod},
    scheduling::{
        BindOutcome, Effect, Event, LockOutcome, NodeName, PodInfo, PodKey, ReleaseOutcome, TellOutcome,
        WithdrawOutcome,
    },
};

/// Why a write was cut off.
const CUT: &str = "the claim to lead became too short on the way";

/// After this time nobody waits for an answer any more.
const PATIENCE: Duration = Duration::from_secs(8);

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
    /// Holds back what must not outlast a claim to lead.
    pub fence: Fence,
}

impl Hands {
    /// Carries out an effect.
    pub async fn act(self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::TakeLock { pod, node, resource_version, profile } => {
                let outcome = self.take_lock(&pod, &node, &resource_version, profile).await;
                self.metrics.lock(&outcome);
                Some(Event::LockAnswered { pod, node, profile, outcome })
            }
            Effect::ReleaseLock { node, resource_version, profile } => {
                let outcome = self.release_lock(&node, &resource_version, profile).await;
                Some(Event::LockReleased { node, outcome })
            }
            Effect::Bind { pod, node, profile, assignment } => {
                let outcome = self.bind(&pod, &node, profile, &assignment).await;
                Some(Event::BindAnswered { pod, node, outcome })
            }
            Effect::Withdraw { pod, node, profile } => {
                let outcome = self.withdraw(&pod, &node, profile).await;
                Some(Event::Withdrawn { pod, node, outcome })
            }
            Effect::ReadPod { pod } => Some(self.read_pod(pod).await),
            Effect::ReadNode { node } => Some(self.read_node(node).await),
            Effect::ReadHolder { owner, since } => Some(self.read_holder(owner, since).await),
            Effect::TellScheduled { pod, node } => {
                self.tell(&pod, News::Scheduled { node: &node }).await;
                None
            }
            Effect::TellUnschedulable { pod, resource_version, message } => {
                let outcome = self.tell_unschedulable(&pod, &resource_version, &message).await;
                Some(Event::Told { pod, message, outcome })
            }
            Effect::TellSilent { pod, node } => {
                tracing::warn!(%pod, %node, "the node's device plugin has not answered");
                self.tell(&pod, News::SilentAgent { node: &node }).await;
                None
            }
            Effect::TellExcess { pod, message } => {
                self.tell(&pod, News::Excess { message: &message }).await;
                None
            }
            Effect::ReportExcess { node, cards } => {
                for card in &cards {
                    tracing::warn!(%node, "{card}");
                }
                self.metrics.overcommitted(&node, cards.len());
                None
            }
            Effect::ReportDrift { what } => {
                tracing::error!(what, "what was remembered was wrong and has been put right");
                self.metrics.drift();
                None
            }
        }
    }

    async fn take_lock(
        &self,
        pod: &PodKey,
        node: &str,
        resource_version: &str,
        profile: ProfileName,
    ) -> LockOutcome {
        let taken = async {
            let (client, now) = (self.client.clone(), self.clock.now());
            lock::take(client, self.lock_spec(profile), node, pod, resource_version, now).await
        };
        let cut = || LockOutcome::Failed(CUT.to_owned());
        self.fence.within(bind::REACH, taken).await.unwrap_or_else(cut)
    }

    async fn release_lock(&self, node: &str, resource_version: &str, profile: ProfileName) -> ReleaseOutcome {
        let released = lock::release(self.client.clone(), self.lock_spec(profile), node, resource_version);
        match self.fence.within(bind::REACH, released).await {
            Some(Ok(())) => ReleaseOutcome::Done,
            Some(Err(error)) => {
                tracing::warn!(%node, %error, "giving back the node lock failed");
                ReleaseOutcome::Failed
            }
            None => ReleaseOutcome::Failed,
        }
    }

    async fn bind(
        &self,
        pod: &PodKey,
        node: &str,
        profile: ProfileName,
        assignment: &Assignment,
    ) -> BindOutcome {
        let bound = async {
            let started = tokio::time::Instant::now();
            let record = self.dialect(profile).record(assignment, node, self.clock.now());
            let outcome = bind::bind(self.client.clone(), pod, node, record).await;
            self.metrics.binding(&outcome, started.elapsed());
            outcome
        };
        let cut = || BindOutcome::Doubtful(CUT.to_owned());
        self.fence.within(bind::REACH, bound).await.unwrap_or_else(cut)
    }

    async fn withdraw(&self, pod: &PodKey, node: &str, profile: ProfileName) -> WithdrawOutcome {
        let annotations = self.dialect(profile).withdrawal();
        let written = withdraw::withdraw(self.client.clone(), pod, &annotations);
        match self.fence.within(bind::REACH, written).await {
            Some(Ok(())) => {
                tracing::info!(%pod, %node, "the assignment of a pod that died before its allocation is withdrawn");
                WithdrawOutcome::Done
            }
            Some(Err(error)) => {
                tracing::warn!(%pod, %node, %error, "withdrawing the assignment of a dead pod failed, trying again");
                WithdrawOutcome::Failed
            }
            None => WithdrawOutcome::Failed,
        }
    }

    async fn tell(&self, pod: &PodKey, news: News<'_>) {
        let event =
            tell::event(self.client.clone(), self.reader.scheduler_name(), pod, news, self.clock.now());
        match tokio::time::timeout(PATIENCE, event).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%pod, %error, "writing an Event failed"),
            Err(_) => tracing::warn!(%pod, "writing an Event took too long"),
        }
    }

    async fn tell_unschedulable(&self, pod: &PodKey, resource_version: &str, message: &str) -> TellOutcome {
        let (client, now) = (self.client.clone(), self.clock.now());
        let told = tell::unschedulable(client, pod, resource_version, message, now);
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(())) => {
                self.tell(pod, News::FailedScheduling { message }).await;
                TellOutcome::Done
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => TellOutcome::Done,
            Ok(Err(error)) => {
                tracing::debug!(%pod, %error, "setting PodScheduled failed, trying again");
                TellOutcome::Failed
            }
            Err(_) => TellOutcome::Failed,
        }
    }

    async fn read_pod(&self, pod: PodKey) -> Event {
        let pods: Api<Watched<Pod>> = Api::namespaced(self.client.clone(), &pod.namespace);
        let found = insist(|| pods.get_opt(&pod.name)).await;
        Event::PodRead { found: found.map(|found| Box::new(self.info(&found.object))), pod }
    }

    async fn read_node(&self, node: NodeName) -> Event {
        let nodes: Api<Watched<Node>> = Api::all(self.client.clone());
        let found = insist(|| nodes.get_opt(&node)).await;
        Event::NodeRead { found: found.map(|found| Box::new(self.reader.node(&found.object).0)), node }
    }

    async fn read_holder(&self, owner: LockOwner, since: Timestamp) -> Event {
        let pods: Api<Watched<Pod>> = Api::namespaced(self.client.clone(), &owner.namespace);
        let found = insist(|| pods.get_opt(&owner.name)).await;
        let found = found.map(|found| Box::new(self.info(&found.object)));
        Event::HolderRead { owner, since, found }
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

/// Reads until there is an answer.
async fn insist<T, R>(read: impl Fn() -> R) -> Option<T>
where
    R: Future<Output = kube::Result<Option<T>>>,
{
    let mut pause = Duration::from_millis(100);
    loop {
        match tokio::time::timeout(PATIENCE, read()).await {
            Ok(Ok(found)) => return found,
            Ok(Err(error)) => tracing::warn!(%error, "a read that is to settle a doubt failed, trying again"),
            Err(_) => tracing::warn!("a read that is to settle a doubt took too long, trying again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}
