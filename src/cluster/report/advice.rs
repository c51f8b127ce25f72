//! What moving pods would win: looked for from time to time on a copy of what the leader's loop holds, and told by metrics and an Event.
//!
//! It moves nothing.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::{Client, api::ListParams};
use tokio::sync::watch;

use super::{ledger::LedgerQuestion, metrics::Metrics};
use crate::{
    cluster::{
        binder::{questions::Questions, view::BinderView},
        clock::Clock,
        informer::list::{ListError, ListForm, Strange, list},
        read::Reader,
        write::tell::{self, News},
    },
    object::Pod,
    scheduling::{
        Concern, Details, PodKey, Snapshot,
        decide::class::Classes,
        plan::moves::{self, MovablePods, MoveGoal, MovePlan},
    },
};

/// How long after one look the next follows.
pub const ADVICE_PERIOD: Duration = Duration::from_mins(10);

/// The shortest time between two Events.
const EVENTS: SignedDuration = SignedDuration::from_hours(24);

/// Pods in one page of their list.
const PAGE: u32 = 500;

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
enum AdviceError {
    /// The pods could not be listed.
    #[error("can't list pods: {0}")]
    List(#[from] ListError),
    /// The plan panicked.
    #[error("planning the moves failed")]
    Plan(#[from] tokio::task::JoinError),
}

/// Says what moving pods would win.
pub struct Advisor {
    /// The client.
    pub client: Client,
    /// The clock.
    pub clock: Clock,
    /// What the binder publishes: how pods are read.
    pub views: watch::Receiver<Option<BinderView>>,
    /// Where the leader's loop is asked for what it holds.
    pub questions: Questions<LedgerQuestion>,
    /// The binder's metrics.
    pub metrics: Metrics,
    /// How Berth is called in Events.
    pub controller: String,
    /// The pod that Events are about; `None`: there are none.
    pub own_pod: Option<PodKey>,
}

impl Advisor {
    /// Looks at each period, for ever.
    pub async fn advise(self, period: Duration) {
        let mut period = tokio::time::interval(period);
        period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut told: Option<Timestamp> = None;
        loop {
            period.tick().await;
            let found = match self.look().await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "it is not known what moving pods would win");
                    None
                }
            };
            let (gpus, pods) = found.map_or((0, 0), |plan| (plan.won, plan.moves.len()));
            self.metrics.advice().found(gpus, pods);
            let now = self.clock.now();
            let is_due = told.is_none_or(|told| now.duration_since(told) >= EVENTS);
            if gpus > 0 && is_due && self.tell(gpus, pods, now).await {
                told = Some(now);
            }
        }
    }

    /// The moves that pay; `None`: this process does not lead, or does not know the cluster yet.
    async fn look(&self) -> Result<Option<MovePlan>, AdviceError> {
        let reader = self.views.borrow().as_ref().map(|view| view.reader.clone());
        let (Some(reader), Ok(Some(snapshot))) = (reader, self.questions.snapshot().await) else {
            return Ok(None);
        };
        let pods = bound_pods(&self.client).await?;
        let plan = tokio::task::spawn_blocking(move || plan(&reader, &pods, snapshot));
        Ok(Some(plan.await?))
    }

    /// Writes the Event; whether that is done.
    async fn tell(&self, gpus: usize, pods: usize, now: Timestamp) -> bool {
        let message = message(gpus, pods);
        tracing::info!("{message}");
        let Some(pod) = self.own_pod.clone() else { return true };
        let (of, news) = (Concern::Pod(pod), News::Advice { message: &message });
        let written =
            tell::event(self.client.clone(), (&self.controller, Details::Full), &of, news, now).await;
        if let Err(error) = &written {
            tracing::warn!(%error, "the Event about moves was not written");
        }
        written.is_ok()
    }
}

/// Every pod that is bound.
///
/// # Errors
///
/// The API server does not give the list.
pub async fn bound_pods(client: &Client) -> Result<Vec<Pod>, ListError> {
    let mut pods = Vec::new();
    let take = |pod: Result<Pod, Strange<'_>>| match pod {
        Ok(pod) => pods.extend(pod.spec.node_name.is_some().then_some(pod)),
        // Where it stands, it stays.
        Err(error) => tracing::debug!(%error, "a pod can't be read"),
    };
    let page = ListParams::default().limit(PAGE);
    list(client, "/api/v1/pods", ListForm::Whole, page, take).await?;
    Ok(pods)
}

fn plan(reader: &Arc<Reader>, pods: &[Pod], mut snapshot: Snapshot) -> MovePlan {
    let pods: MovablePods = reader.movable_pods(pods);
    moves::plan(&mut snapshot, &mut Classes::new(*reader.weights()), &pods, &MoveGoal::default())
}

/// `Moving 3 pods would free 4 GPUs: run berth moves to see which`.
fn message(gpus: usize, pods: usize) -> String {
    let pods = if pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") };
    let gpus = if gpus == 1 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") };
    format!("Moving {pods} would free {gpus}: run berth moves to see which")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_counts_pods_and_gpus() {
        assert_eq!(message(4, 3), "Moving 3 pods would free 4 GPUs: run berth moves to see which");
        assert_eq!(message(1, 1), "Moving 1 pod would free 1 GPU: run berth moves to see which");
    }
}
