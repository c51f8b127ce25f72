//! The writes that wait and those that are under way: which goes first, and how many at once.
//!
//! What frees a node goes first, then what leads to a Binding, then what only reports. Within each of the last two, namespaces take
//! turns, and few reports are under way at a time: no number of pods of one namespace that are reported or bound holds up a
//! pod of another. It does not know what a write does.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::act::Hands;
use crate::{
    cluster::binder::ClusterError,
    scheduling::{
        AgentFailure, Concern, Effect, Event, Finding, LockOutcome, ReadRequest, plan::eviction::Postponed,
    },
};

/// So many reports are written at a time. The API server takes up to 0.2 s of a processor for one of a pod of 400 KB, and every request of anybody waits
/// behind those that are under way. kube-scheduler writes one condition after another, too.
const MOST_REPORTS: usize = 2;

/// How many reports may be under way beside so many writes for which pods wait: fewer than without any, but never so few that reports come to nothing
/// in a cluster that always binds.
fn most_reports(at_once: usize, awaited: usize) -> usize {
    let most = if awaited == 0 { MOST_REPORTS } else { 1 + awaited / 4 };
    most.min(at_once.div_ceil(2))
}

/// A report that the API server answers within this time is followed by the next at once.
const EASY: Duration = Duration::from_millis(25);

/// For how long no other report takes the place of one that took the API server so long. A condition of a pod of 400 KB costs it more than 0.1 s of a
/// processor, and the requests of all users wait meanwhile.
fn rest_after(took: Duration) -> Duration {
    if took <= EASY { Duration::ZERO } else { (took * 4).min(Duration::from_secs(1)) }
}

/// How soon a write is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Urgency {
    /// A locked node serves no pod before it is answered.
    FreesNode,
    /// A pod waits for it.
    Binds,
    /// It reports.
    Reports,
    /// It writes nothing.
    Compares,
}

/// The writes of one term.
pub(in crate::cluster) struct Writes {
    hands: Hands,
    /// Writes that free a node.
    freeing: VecDeque<Effect>,
    /// Writes for which a pod waits.
    binding: ByNamespace,
    reporting: ByNamespace,
    under_way: JoinSet<(Urgency, Option<Event>)>,
    /// How many of those under way report.
    reports: usize,
    /// How many of them are comparisons, which have room of their own.
    comparisons: usize,
    at_once: usize,
}

impl Writes {
    pub(in crate::cluster) fn new(hands: Hands, at_once: usize) -> Self {
        Self {
            hands,
            freeing: VecDeque::new(),
            binding: ByNamespace::default(),
            reporting: ByNamespace::default(),
            under_way: JoinSet::new(),
            reports: 0,
            comparisons: 0,
            at_once,
        }
    }

    /// Starts the writes that have room, and lets the others wait.
    pub(in crate::cluster) fn start(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match urgency(&effect) {
                Urgency::FreesNode => self.freeing.push_back(effect),
                Urgency::Binds => self.binding.push(effect),
                Urgency::Reports => self.reporting.push(effect),
                Urgency::Compares => self.spawn(Urgency::Compares, effect),
            }
        }
        while self.under_way.len() - self.comparisons < self.at_once {
            let Some((urgency, effect)) = self.next() else { return };
            self.spawn(urgency, effect);
        }
    }

    fn spawn(&mut self, urgency: Urgency, effect: Effect) {
        self.reports += usize::from(urgency == Urgency::Reports);
        self.comparisons += usize::from(urgency == Urgency::Compares);
        let act = self.hands.clone().act(effect);
        self.under_way.spawn(async move {
            let began = Instant::now();
            let event = act.await;
            if urgency == Urgency::Reports {
                sleep(rest_after(began.elapsed())).await;
            }
            (urgency, event)
        });
    }

    fn next(&mut self) -> Option<(Urgency, Effect)> {
        if let Some(effect) = self.freeing.pop_front() {
            return Some((Urgency::FreesNode, effect));
        }
        if let Some(effect) = self.binding.pop() {
            return Some((Urgency::Binds, effect));
        }
        let awaited = self.under_way.len() - self.comparisons - self.reports;
        let has_room = self.reports < most_reports(self.at_once, awaited);
        has_room.then(|| self.reporting.pop()).flatten().map(|effect| (Urgency::Reports, effect))
    }

    /// The next answer; `None`: no write is under way.
    pub(in crate::cluster) async fn answer(&mut self) -> Option<Result<Option<Event>, ClusterError>> {
        let answer = self.under_way.join_next().await?;
        Some(answer.map_err(ClusterError::Write).map(|answer| self.ended(answer)))
    }

    /// The answers that have already arrived.
    pub(in crate::cluster) fn answered(&mut self) -> Result<Vec<Event>, ClusterError> {
        let mut events = Vec::new();
        while let Some(answer) = self.under_way.try_join_next() {
            let answer = answer.map_err(ClusterError::Write)?;
            events.extend(self.ended(answer));
        }
        Ok(events)
    }

    fn ended(&mut self, (urgency, event): (Urgency, Option<Event>)) -> Option<Event> {
        self.reports -= usize::from(urgency == Urgency::Reports);
        self.comparisons -= usize::from(urgency == Urgency::Compares);
        event
    }

    /// Drops waiting writes that would begin something new. A dropped lock is answered as `Stale`.
    pub(in crate::cluster) fn withdraw(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for effect in self.binding.take().into_iter().chain(self.reporting.take()) {
            match effect {
                Effect::TakeLock { pod, node, locks, .. } => {
                    events.push(Event::LockAnswered { pod, node, locks, outcome: LockOutcome::Stale });
                }
                // The next leader reports, preempts or evicts again.
                Effect::Nominate { .. }
                | Effect::Preempt { .. }
                | Effect::EvictFromZone { .. }
                | Effect::TellEvictionPostponed { .. }
                | Effect::TellUnschedulable { .. }
                | Effect::TellAgent { failure: AgentFailure::Silence, .. }
                | Effect::TellGroup(_)
                | Effect::TellWaiting { .. } => {}
                Effect::ReportFinding { ref finding, .. } if !matches!(finding, Finding::Drift(_)) => {}
                effect if urgency(&effect) == Urgency::Reports => self.reporting.push(effect),
                effect => self.binding.push(effect),
            }
        }
        events
    }

    /// Whether no write waits or is under way.
    pub(in crate::cluster) fn is_empty(&self) -> bool {
        let none_waits = self.freeing.is_empty() && self.binding.is_empty() && self.reporting.is_empty();
        none_waits && self.under_way.len() == self.comparisons
    }
}

impl Drop for Writes {
    /// A thread can't be aborted from outside.
    fn drop(&mut self) {
        self.hands.comparer.end();
    }
}

/// Waiting writes by the namespace of their pods; namespaces take turns.
#[derive(Debug, Default)]
struct ByNamespace {
    waiting: HashMap<Arc<str>, VecDeque<Effect>>,
    /// The namespaces with writes that wait, the next one first.
    turns: VecDeque<Arc<str>>,
}

impl ByNamespace {
    fn push(&mut self, effect: Effect) {
        let namespace = namespace_of(&effect);
        let waiting = self.waiting.entry(namespace.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(namespace);
        }
        waiting.push_back(effect);
    }

    fn pop(&mut self) -> Option<Effect> {
        let namespace = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let effect = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        effect
    }

    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Every write, in the order in which they would be sent.
    fn take(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

fn urgency(effect: &Effect) -> Urgency {
    match effect {
        Effect::Bind { .. }
        | Effect::Read(ReadRequest::Pod(_) | ReadRequest::Node(_))
        | Effect::ReleaseLock { .. }
        | Effect::Withdraw { .. } => Urgency::FreesNode,
        Effect::TakeLock { .. }
        | Effect::Prebind { .. }
        | Effect::Nominate { .. }
        | Effect::Preempt { .. }
        | Effect::EvictFromZone { .. }
        | Effect::RollBack { .. }
        | Effect::Read(ReadRequest::Holder { .. }) => Urgency::Binds,
        Effect::TellEvictionPostponed { .. }
        | Effect::TellScheduled { .. }
        | Effect::TellUnschedulable { .. }
        | Effect::TellAgent { .. }
        | Effect::TellGroup(_)
        | Effect::TellWaiting { .. }
        | Effect::ReportFinding { .. }
        | Effect::CountFindings { .. } => Urgency::Reports,
        Effect::CompareClaims(_) | Effect::RenewMix(_) => Urgency::Compares,
    }
}

/// The namespace whose user caused the write; empty: the cluster's own.
fn namespace_of(effect: &Effect) -> Arc<str> {
    match effect {
        Effect::TakeLock { pod, .. }
        | Effect::Bind { pod, .. }
        | Effect::Prebind { pod, .. }
        | Effect::Nominate { pod, .. }
        | Effect::Preempt { preemptor: pod, .. }
        | Effect::Withdraw { pod, .. }
        | Effect::RollBack { pod, .. }
        | Effect::Read(ReadRequest::Pod(pod))
        | Effect::TellScheduled { pod, .. }
        | Effect::TellUnschedulable { pod, .. }
        | Effect::TellAgent { pod, .. }
        | Effect::TellWaiting { pod, .. }
        | Effect::ReportFinding { of: Concern::Pod(pod), .. } => pod.namespace.clone(),
        Effect::CompareClaims(comparison) => comparison.namespace().clone(),
        Effect::TellGroup(statement) => {
            statement.group.split_once('/').map_or_else(Arc::default, |(namespace, _)| namespace.into())
        }
        Effect::EvictFromZone { eviction }
        | Effect::TellEvictionPostponed { postponed: Postponed { eviction, .. } } => {
            eviction.pod.namespace.clone()
        }
        Effect::ReportFinding { of: Concern::Namespace(namespace), .. } => namespace.clone(),
        Effect::ReleaseLock { .. }
        | Effect::RenewMix(_)
        | Effect::Read(ReadRequest::Node(_) | ReadRequest::Holder { .. })
        | Effect::CountFindings { .. }
        | Effect::ReportFinding { of: Concern::Node(_), .. } => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{PendingReason, PodKey};

    fn reports(namespace: &str, name: &str) -> Effect {
        let pod = PodKey { namespace: namespace.into(), name: name.into(), uid: name.into() };
        Effect::TellUnschedulable {
            pod,
            resource_version: "1".to_owned(),
            told: None,
            first: true,
            reason: PendingReason::Lists(Vec::new()),
        }
    }

    #[test]
    fn reports_leave_the_api_server_to_the_writes_for_which_pods_wait() {
        let with = |at_once| [0, 1, 3, 4, 16, 64].map(|awaited| most_reports(at_once, awaited));
        assert_eq!(with(128), [2, 1, 1, 2, 5, 17]);
        assert_eq!(with(2), [1; 6], "half of the places at most");
        assert_eq!(with(1), [1; 6], "and one at least");
    }

    #[test]
    fn reports_that_cost_the_api_server_much_are_sent_less_often() {
        let after = |took: u64| rest_after(Duration::from_millis(took)).as_millis();
        assert_eq!([0, 5, 25].map(after), [0; 3]);
        assert_eq!([26, 100, 250, 10_000].map(after), [104, 400, 1_000, 1_000]);
    }

    #[test]
    fn a_namespace_with_many_writes_holds_up_no_other() {
        let mut waiting = ByNamespace::default();
        for at in 0..1000 {
            waiting.push(reports("many", &format!("m{at}")));
        }
        waiting.push(reports("one", "probe"));
        let sent = waiting.take();
        let place = |name: &str| {
            let is_of = |effect: &Effect| matches!(effect, Effect::TellUnschedulable { pod, .. } if &*pod.name == name);
            sent.iter().position(is_of)
        };
        assert_eq!((sent.len(), place("probe")), (1001, Some(1)));
        assert!(place("m0") < place("m1") && place("m1") < place("m999"), "each namespace in order");
        assert!(
            waiting.is_empty() && waiting.waiting.is_empty(),
            "nothing is left of namespaces without writes"
        );
    }
}
