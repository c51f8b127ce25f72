//! Carries out the scheduler's effects: each effect is one task, and its answer, if it has one, is an event.

mod evictions;
mod locks;
mod preempt;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Api, Client, api::ListParams};

use super::{
    bind,
    fence::Fence,
    prebind,
    send::{self, SendError},
    tell::{self, News},
    withdraw,
};
use crate::{
    cluster::{
        clock::Clock,
        compare::Comparer,
        informer::{watch::PODS, wire::Watched},
        read::Reader,
        report::metrics::{Metrics, Written},
    },
    device::{LockOwner, ProfileName},
    dialect::{Dialect, Record},
    excerpt::{MESSAGE, SUMMARY, brief, excerpt},
    object::{Node, Pod},
    scheduling::{
        AgentFailure, BindOutcome, Computed, Concern, Details, Effect, Event, Finding, NodeFindings,
        NodeName, PendingReason, PodInfo, PodKey, ReadAnswer, ReadRequest, Setback, TellOutcome,
        WithdrawOutcome, WriteOutcome,
        effect::PrebindWrite,
        model::{group_statement::GroupStatement, message::Message},
    },
};

/// The reason of a write that was cut off.
const CUT: &str = "the claim to lead became too short on the way";

/// The longest time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// The longest pause between reads after a write whose result is unknown.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The most attempts for an Event or a condition that the API server fails to write.
const TRIES: u32 = 3;

/// The pause before the next attempt, if the API server asks for none.
const PAUSE: Duration = Duration::from_secs(1);

/// The values that effects are carried out with.
#[derive(Clone)]
pub struct Hands {
    /// The client for writes; it must not retry by itself.
    pub client: Client,
    /// Reads pods and nodes after a write whose result is unknown.
    pub reader: Arc<Reader>,
    /// The clock.
    pub clock: Clock,
    /// The binder's metrics.
    pub metrics: Metrics,
    /// Holds back writes that could outlast the claim to lead.
    pub fence: Fence,
    /// Compares claims with devices.
    pub comparer: Comparer,
    /// How much the users of a namespace are told.
    pub details: Details,
}

impl Hands {
    /// Carries out one effect and returns the event that answers it, if it has one.
    pub async fn act(self, effect: Effect) -> Option<Event> {
        self.account(&effect);
        match effect {
            Effect::TakeLock { pod, node, resource_version, locks, since } => {
                let outcome = self.take_locks(&pod, &node, &resource_version, &locks, since).await;
                Some(Event::LockAnswered { pod, node, locks, outcome })
            }
            Effect::ReleaseLock { node, resource_version, locks } => {
                let outcome = self.release_locks(&node, &resource_version, &locks).await;
                Some(Event::LockReleased { node, resource_version, locks, outcome })
            }
            Effect::Bind { pod, node, allocations, devices, zone } => {
                let given = (&*allocations, devices.as_ref());
                let now = self.clock.now();
                let record = bind::record(self.reader.dialects(), given, &node, zone.as_deref(), now);
                let outcome = self.bind(&pod, &node, record).await;
                Some(Event::BindAnswered { pod, node, outcome })
            }
            Effect::Prebind { pod, write } => {
                let outcome = self.prebind(&pod, &write).await;
                Some(Event::Prebound { pod, write, outcome })
            }
            Effect::Nominate { pod, node, room } => Some(self.nominate(pod, node, room).await),
            Effect::Preempt { pod, node, preemptor } => Some(self.preempt(pod, &node, preemptor).await),
            Effect::Withdraw { pod, node, profiles } => {
                let outcome = self.withdraw(&pod, &node, &profiles).await;
                Some(Event::Withdrawn { pod, node, outcome })
            }
            Effect::RollBack { pod, gang } => self.roll_back(pod, &gang).await,
            Effect::EvictFromZone { eviction } => Some(self.evict(eviction).await),
            Effect::TellEvictionPostponed { postponed } => self.tell_postponed(postponed).await,
            Effect::CompareClaims(comparison) => {
                Some(Event::Computed(Computed::Claims(self.comparer.compare(comparison).await)))
            }
            Effect::RenewMix(renewal) => {
                Some(Event::Computed(Computed::Mix(self.comparer.renew(renewal).await)))
            }
            Effect::Read(ReadRequest::Pod(pod)) => Some(self.read_pod(pod).await),
            Effect::Read(ReadRequest::Node(node)) => Some(self.read_node(node).await),
            Effect::Read(ReadRequest::Holder { owner, since }) => Some(self.read_holder(owner, since).await),
            Effect::TellUnschedulable { pod, resource_version, told, first, reason } => {
                let told = (told.as_deref(), first);
                Some(self.tell_unschedulable(pod, &resource_version, told, &reason).await)
            }
            Effect::TellScheduled { pod, node } => self.say(pod, News::Scheduled { node: &node }).await,
            Effect::TellAgent { pod, node, failure: AgentFailure::Allocation } => {
                self.tell_failed_allocation(pod, &node).await
            }
            Effect::TellGroup(statement) => self.tell_group(&statement).await,
            Effect::TellWaiting { pod, wait } => {
                let message = self.worded(&pod, wait.message());
                self.say(pod, News::Waiting { message: &message }).await
            }
            Effect::TellAgent { pod, node, failure: AgentFailure::Silence } => {
                tracing::warn!(%pod, %node, "the node's device plugin has not answered");
                self.say(pod, News::SilentAgent { node: &node }).await
            }
            Effect::ReportFinding { of, finding } => self.report_finding(&of, &finding).await,
            // Accounted for above.
            Effect::CountFindings { .. } => None,
        }
    }

    /// Keeps the gauges of what is found on nodes.
    fn account(&self, effect: &Effect) {
        if let Effect::CountFindings { node, findings } = effect {
            self.count_findings(node, findings);
        }
    }

    fn count_findings(&self, node: &str, findings: &NodeFindings) {
        for overcommitment in findings.overcommitted.values() {
            tracing::warn!(%node, "{}", excerpt(&overcommitment.to_string(), MESSAGE));
        }
        self.metrics.findings(node, findings.counts());
    }

    /// The text of a pod's Event. What it leaves out is logged for administrators.
    fn worded(&self, pod: &PodKey, message: Message) -> String {
        let (message, left_out) = message.told(self.details);
        if let Some(full) = left_out {
            report_details(pod, &full);
        }
        message
    }

    /// Writes the Event for a finding. With [`Details::Own`], it leaves out what is not the pod's owner's.
    async fn report_finding(&self, of: &Concern, finding: &Finding) -> Option<Event> {
        let message = match of {
            Concern::Pod(pod) => self.worded(pod, finding.message()),
            Concern::Node(_) | Concern::Namespace(_) => finding.message().full,
        };
        let message = &*message;
        match finding {
            Finding::Overcommitted(_) => self.tell(of, News::Excess { message }).await,
            Finding::DoubleAllocation(_) => self.tell(of, News::DoubleAllocation { message }).await,
            Finding::Unread(_) => self.tell(of, News::Unread { message }).await,
            Finding::Unassigned(_) => self.tell(of, News::Unassigned { message }).await,
            Finding::Drift(_) => self.report_drift(of, message).await,
        }
        None
    }

    async fn report_drift(&self, of: &Concern, what: &str) {
        let what = excerpt(what, MESSAGE);
        tracing::error!(?of, what = &*what, "the ledger was wrong and has been corrected");
        self.metrics.drift();
        // It may be about other pods and about nodes: administrators have the log and the metric.
        if self.details == Details::Full {
            self.tell(of, News::Drift { what: &what }).await;
        }
    }

    async fn bind(&self, pod: &PodKey, node: &str, record: Result<Record, String>) -> BindOutcome {
        let record = match record {
            Ok(record) => record,
            Err(reason) => return BindOutcome::Refused(reason),
        };
        let bound = async {
            let started = tokio::time::Instant::now();
            self.metrics.write(Written::binding);
            let outcome = bind::bind(self.client.clone(), pod, node, record).await;
            self.metrics.binding(&outcome, started.elapsed());
            outcome
        };
        let cut = || BindOutcome::Doubtful(cut_off());
        let outcome = self.fence.within(send::REACH, bound).await.unwrap_or_else(cut);
        warn_of_refused_binding(pod, node, &outcome);
        outcome
    }

    async fn prebind(&self, pod: &PodKey, write: &PrebindWrite) -> WriteOutcome {
        self.metrics.write(if write.is_of_devices() { Written::claim } else { Written::volume });
        let written = prebind::write(self.client.clone(), pod, write, self.clock.now());
        let outcome = self.fence.within(send::REACH, written).await;
        let outcome = outcome.unwrap_or_else(|| WriteOutcome::Failed(cut_off()));
        if let WriteOutcome::Refused(answer) = &outcome {
            tracing::warn!(%pod, answer, "the API server refused a write for a claim");
        }
        outcome
    }

    async fn withdraw(&self, pod: &PodKey, node: &str, profiles: &[ProfileName]) -> WithdrawOutcome {
        let annotations = profiles.iter().flat_map(|profile| self.dialect(profile).withdrawal()).collect();
        self.metrics.write(Written::withdrawal);
        let written = withdraw::withdraw(self.client.clone(), pod, &annotations);
        match self.fence.within(send::REACH, written).await {
            Some(Ok(())) => {
                tracing::info!(%pod, %node, "withdrew the assignment of a pod that ended before its allocation");
                WithdrawOutcome::Done
            }
            Some(Err(error)) => {
                let error = brief(&error);
                tracing::warn!(%pod, %node, %error, "withdrawing the assignment of an ended pod failed, trying again");
                WithdrawOutcome::Failed
            }
            None => WithdrawOutcome::Failed,
        }
    }

    /// Writes an Event about a pod; there is no answer for the scheduler.
    async fn say(&self, pod: PodKey, news: News<'_>) -> Option<Event> {
        self.tell(&Concern::Pod(pod), news).await;
        None
    }

    /// Writes an Event. A lost Event does no harm: the condition of a pending pod has the same message.
    async fn tell(&self, of: &Concern, news: News<'_>) {
        let (reporter, now) = (self.reader.scheduler_name(), self.clock.now());
        let said = || {
            self.metrics.write(Written::event);
            tell::event(self.client.clone(), (reporter, self.details), of, news, now)
        };
        if let Err(error) = try_again(said).await {
            tracing::warn!(?of, %error, "writing an Event failed");
        }
    }

    /// Says why a pod waits: its condition says this from now on, and an Event does. Where the condition says just this already, nothing is written.
    /// What the text leaves out is logged for administrators.
    async fn tell_unschedulable(
        &self,
        pod: PodKey,
        resource_version: &str,
        (told, first): (Option<&str>, bool),
        reason: &PendingReason,
    ) -> Event {
        let (message, left_out) = tell::condition_text(reason, self.details);
        let is_said = told == Some(&*message);
        let outcome = if is_said {
            TellOutcome::Done
        } else {
            self.write_unschedulable(&pod, resource_version, &message).await
        };
        let is_new = first || !is_said;
        if let Some(full) = left_out.filter(|_| is_new && outcome == TellOutcome::Done) {
            report_details(&pod, &full);
        }
        Event::Told { pod, message, outcome }
    }

    async fn write_unschedulable(&self, pod: &PodKey, resource_version: &str, message: &str) -> TellOutcome {
        let (client, now) = (self.client.clone(), self.clock.now());
        self.metrics.write(Written::condition);
        match tell::unschedulable(client, pod, resource_version, message, now).await {
            Ok(()) => {
                self.tell(&Concern::Pod(pod.clone()), News::FailedScheduling { message }).await;
                TellOutcome::Done
            }
            Err(error) if error.code() == Some(404) => TellOutcome::Done,
            Err(error) => {
                tracing::debug!(%pod, %error, "setting PodScheduled failed, trying again");
                TellOutcome::Failed { wait: error.wait() }
            }
        }
    }

    /// Writes the condition of a PodGroup. If that fails, it is said again with the next change, or by the next leader.
    async fn tell_group(&self, statement: &GroupStatement) -> Option<Event> {
        let now = self.clock.now();
        let said = || {
            self.metrics.write(Written::condition);
            tell::group(self.client.clone(), statement, now)
        };
        match try_again(said).await {
            Err(error) if !matches!(error.code(), Some(404 | 409)) => {
                tracing::warn!(group = &*statement.group, %error, "setting a condition of a PodGroup failed");
            }
            _ => {}
        }
        None
    }

    async fn tell_failed_allocation(&self, pod: PodKey, node: &NodeName) -> Option<Event> {
        tracing::warn!(%pod, %node, "the node's device plugin could not allocate the pod's cards");
        let now = self.clock.now();
        let said = || {
            self.metrics.write(Written::condition);
            tell::failed_allocation(self.client.clone(), &pod, (node, self.details), now)
        };
        match try_again(said).await {
            Err(error) if error.code() != Some(404) => {
                tracing::warn!(%pod, %error, "setting a condition failed");
            }
            _ => {}
        }
        self.tell(&Concern::Pod(pod), News::FailedAllocation { node }).await;
        None
    }

    async fn read_pod(&self, pod: PodKey) -> Event {
        let pods: Api<Watched<Pod>> = Api::namespaced(self.client.clone(), &pod.namespace);
        let found = insist(|| pods.get_opt(&pod.name)).await;
        Event::Read(ReadAnswer::Pod { found: found.map(|found| Box::new(self.info(&found.object))), pod })
    }

    async fn read_node(&self, node: NodeName) -> Event {
        let nodes: Api<Watched<Node>> = Api::all(self.client.clone());
        let found = insist(|| nodes.get_opt(&node)).await;
        let found = found.map(|found| Box::new(self.reader.node(&found.object).0));
        // After the node, so that they are no older.
        let on_it = ListParams::default().fields(&format!("{PODS},spec.nodeName={node}"));
        let pods: Api<Watched<Pod>> = Api::all(self.client.clone());
        let listed = insist(|| async { pods.list(&on_it).await.map(Some) }).await;
        let pods = listed.iter().flat_map(|pods| &pods.items).map(|pod| self.info(&pod.object)).collect();
        Event::Read(ReadAnswer::Node { node, found, pods })
    }

    async fn read_holder(&self, owner: LockOwner, since: Timestamp) -> Event {
        let pods: Api<Watched<Pod>> = Api::namespaced(self.client.clone(), &owner.namespace);
        let found = insist(|| pods.get_opt(&owner.name)).await;
        let found = found.map(|found| Box::new(self.info(&found.object)));
        Event::Read(ReadAnswer::Holder { owner, since, found })
    }

    fn info(&self, pod: &Pod) -> PodInfo {
        self.reader.pod(pod).0
    }

    fn dialect(&self, profile: &ProfileName) -> &Arc<dyn Dialect> {
        self.reader.dialects().named(profile).expect("an effect names one of the dialects that were read")
    }
}

/// Logs for administrators what the message of a pod leaves out.
fn report_details(pod: &PodKey, message: &str) {
    tracing::info!(%pod, "in full: {}", excerpt(message, SUMMARY));
}

/// Logs a refusal that only an administrator can resolve, such as a missing right, with the API server's message and the HTTP status.
fn warn_of_refused_binding(pod: &PodKey, node: &str, outcome: &BindOutcome) {
    if let BindOutcome::Refused(answer) = outcome {
        let answer = &*excerpt(answer, 2 * MESSAGE);
        tracing::warn!(%pod, %node, answer, "the API server refused the Binding");
    }
}

fn cut_off() -> Setback {
    Setback { why: CUT.to_owned(), ..Setback::default() }
}

/// Repeats a write a few times if the API server answers with an error of its own; a write without an answer is not repeated.
async fn try_again<R>(write: impl Fn() -> R) -> Result<(), SendError>
where
    R: Future<Output = Result<(), SendError>>,
{
    let mut tried = 1;
    loop {
        match write().await {
            // It was written the last time.
            Err(error) if tried > 1 && error.code() == Some(409) => return Ok(()),
            Err(error) if tried < TRIES && error.code().is_some_and(|code| code == 429 || code >= 500) => {
                tried += 1;
                tokio::time::sleep(Duration::try_from(error.wait()).unwrap_or_default().max(PAUSE)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Reads until there is an answer. `None` if the object does not exist; a request that can't be built counts as that.
async fn insist<T, R>(read: impl Fn() -> R) -> Option<T>
where
    R: Future<Output = kube::Result<Option<T>>>,
{
    let mut pause = Duration::from_millis(100);
    loop {
        match tokio::time::timeout(PATIENCE, read()).await {
            Ok(Ok(found)) => return found,
            Ok(Err(error @ (kube::Error::BuildRequest(_) | kube::Error::HttpError(_)))) => {
                tracing::warn!(
                    error = brief(&error),
                    "can't send a read after a write whose result is unknown"
                );
                return None;
            }
            Ok(Err(error)) => {
                let said = brief(&error);
                tracing::warn!(
                    error = said,
                    "reading after a write whose result is unknown failed, trying again"
                );
                pause = pause.max(asked_for(&error));
            }
            Err(_) => {
                tracing::warn!("reading after a write whose result is unknown took too long, trying again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The `Retry-After` of the API server, as far as kube's client keeps it.
fn asked_for(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into()).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
