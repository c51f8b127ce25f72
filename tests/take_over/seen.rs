//! What the API server shows of all pods: what is held of each card at each version, who has run and who has failed.
//!
//! It must not ask Berth or HAMi.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    support::server::say,
    take_over::{
        chart::{MEMORY, SLOTS},
        filter,
        people::People,
    },
};

/// After this time something that should have happened has not.
const LIMIT: Duration = Duration::from_mins(2);

/// What was seen so far.
#[derive(Default)]
struct Known {
    pods: BTreeMap<String, Pod>,
    /// The uids of the pods that have run, by namespace.
    ran: BTreeMap<String, BTreeSet<String>>,
    overcommitted: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// The uids of a list that is under way.
    listed: BTreeSet<String>,
}

/// A watch of all pods; ends when dropped.
pub(crate) struct Seen {
    known: watch::Receiver<Known>,
    pods: Api<Pod>,
    _task: JoinSet<()>,
}

/// A pod's phase.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// A pod with its scheduler, its phase, the messages of its status and its annotations.
fn line(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default().into_iter();
    let says: Vec<_> =
        status.message.into_iter().chain(conditions.filter_map(|condition| condition.message)).collect();
    let named = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.clone()).unwrap_or_default();
    let (space, name, annotations) = (pod.namespace().unwrap(), pod.name_any(), pod.annotations());
    format!("{space}/{name} of {named} on {:?}, {}: {says:?} {annotations:?}", node(pod), phase(pod))
}

/// Whether a kubelet of the test should run the pod and it does not run.
fn waits(pod: &Pod) -> bool {
    phase(pod) != "Running" && node(pod) != Some(crate::take_over::hami::CONTROL_PLANE)
}

impl Known {
    fn take_in(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap();
        match phase(&pod) {
            "Running" => {
                self.ran.entry(pod.namespace().unwrap()).or_default().insert(uid.clone());
            }
            "Failed" => {
                let message =
                    pod.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
                self.failed.insert(format!("{}: {message}", pod.name_any()));
            }
            _ => {}
        }
        self.pods.insert(uid, pod);
        self.judge();
    }

    /// What bound pods hold, by what is written on them.
    fn judge(&mut self) {
        let holds = |pod: &&Pod| node(pod).is_some() && matches!(phase(pod), "Pending" | "Running");
        let used = filter::used(self.pods.values().filter(holds).filter_map(filter::devices));
        for (card, used) in used {
            if used.memory > MEMORY || used.slots > SLOTS {
                let of_card =
                    |pod: &&Pod| filter::devices(pod).is_some_and(|devices| devices.contains(&card));
                let holders: Vec<_> = self.pods.values().filter(holds).filter(of_card).map(line).collect();
                self.overcommitted.insert(format!("{card}: {used:?}: {holders:#?}"));
            }
        }
    }

    /// The pods of a team that come and go, but for those that are being deleted.
    fn of_team(&self, team: &str) -> impl Iterator<Item = &Pod> {
        let lives = move |pod: &&Pod| {
            pod.namespace().as_deref() == Some(team) && pod.metadata.deletion_timestamp.is_none()
        };
        self.pods
            .values()
            .filter(lives)
            .filter(|pod| pod.name_any().starts_with(crate::take_over::people::PREFIX))
    }

    fn count(&self, team: &str) -> usize {
        self.ran.get(team).map_or(0, BTreeSet::len)
    }

    /// Pods that wait or have failed, with what they say of it.
    fn waiting(&self) -> Vec<String> {
        self.pods.values().filter(|pod| waits(pod)).map(line).collect()
    }
}

impl Seen {
    pub(crate) fn follow(client: Client) -> Self {
        let (sender, known) = watch::channel(Known::default());
        let pods = Api::<Pod>::all(client);
        let all = pods.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut events = pin!(watcher(all, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                sender.send_modify(|known| match event {
                    Ok(watcher::Event::Apply(pod)) => known.take_in(pod),
                    Ok(watcher::Event::Delete(pod)) => {
                        known.pods.remove(&pod.uid().unwrap());
                    }
                    Ok(watcher::Event::Init) => known.listed.clear(),
                    Ok(watcher::Event::InitApply(pod)) => {
                        known.listed.insert(pod.uid().unwrap());
                        known.take_in(pod);
                    }
                    // A pod that was deleted while the watch was broken has no event.
                    Ok(watcher::Event::InitDone) => {
                        let listed = std::mem::take(&mut known.listed);
                        known.pods.retain(|uid, _| listed.contains(uid));
                    }
                    Err(error) => say(&format!("take-over: the watch of pods broke: {error}")),
                });
            }
        });
        Self { known, pods, _task: task }
    }

    /// Returns once so many more pods of each team have begun to run.
    pub(crate) async fn more_run(&mut self, teams: &[&str], pods: usize, phase: &str, people: &People) {
        let before: Vec<usize> = teams.iter().map(|team| self.known.borrow().count(team)).collect();
        let met = |known: &Known| {
            teams.iter().zip(&before).all(|(team, before)| known.count(team) >= before + pods)
        };
        self.until(phase, met).await;
        people.are_at_work();
    }

    /// Returns once each pod that exists runs.
    pub(crate) async fn all_run(&mut self) {
        self.until("each pod runs", |known| known.waiting().is_empty()).await;
    }

    async fn until(&mut self, what: &str, met: impl Fn(&Known) -> bool) {
        let waited = tokio::time::timeout(LIMIT, self.known.wait_for(met)).await.map(drop);
        if waited.is_err() {
            let waiting = self.known.borrow().waiting();
            let listed = self.pods.list(&ListParams::default()).await.unwrap();
            let listed: Vec<_> = listed.iter().filter(|pod| waits(pod)).map(line).collect();
            panic!("{what}: not after {LIMIT:?}; waiting: {waiting:#?}, and as listed now: {listed:#?}");
        }
    }

    /// How many pods of a team come and go at present.
    pub(crate) fn count_of(&self, team: &str) -> usize {
        self.known.borrow().of_team(team).count()
    }

    /// The oldest pod of a team that runs, if the team has at least so many pods.
    pub(crate) fn oldest_of(&self, team: &str, pods: usize) -> Option<String> {
        let known = self.known.borrow();
        let running = known.of_team(team).filter(|pod| phase(pod) == "Running");
        let oldest = running.min_by_key(|pod| pod.metadata.creation_timestamp.clone());
        oldest.filter(|_| known.of_team(team).count() >= pods).map(kube::ResourceExt::name_any)
    }

    /// Another view of the same watch.
    pub(crate) fn again(&self) -> Self {
        Self { known: self.known.clone(), pods: self.pods.clone(), _task: JoinSet::new() }
    }

    /// Cards of which at any version more was held than there is.
    pub(crate) fn overcommitted(&self) -> Vec<String> {
        self.known.borrow().overcommitted.iter().cloned().collect()
    }

    /// Pods that failed, with the reason.
    pub(crate) fn failed(&self) -> Vec<String> {
        self.known.borrow().failed.iter().cloned().collect()
    }
}
