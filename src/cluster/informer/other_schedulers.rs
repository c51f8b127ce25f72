//! Which schedulers of HAMi and Volcano run, by their own pods: a name that is still served by one is not served by Berth too, and while one
//! runs, it may take the locks of nodes.
//!
//! A pod that is being deleted counts until it is gone, since its process may still write. Whoever may create pods in a namespace can make one look
//! like a scheduler, so pods count in namespaces that the settings name. It must not decide what follows from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{
    FutureExt, Stream,
    future::{BoxFuture, join_all},
    stream,
};
use jiff::{SignedDuration, Timestamp};
use kube::{Client, api::ListParams};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::{
    keep::keep_selected,
    list::{ListForm, Strange, list},
    wire::{Watched, Wire},
};
use crate::{
    cluster::clock::Clock,
    dialect::schedulers::{INSTALLED, Installed},
    object::Metadata,
    scheduling::model::other_schedulers::OtherSchedulers,
};

/// A namespace, and a name that a pod in it serves.
type Served = (String, String);

/// What pods that look like schedulers serve, by the selector of their pods; a selector is missing until its pods are listed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Running {
    by_selector: BTreeMap<&'static str, BTreeSet<Served>>,
}

impl Running {
    /// Every name that is served in one of these namespaces; `None` until the pods of all schedulers are listed.
    pub fn names(&self, namespaces: &[String]) -> Option<BTreeSet<&str>> {
        let counts = |(namespace, _): &&Served| namespaces.contains(namespace);
        self.is_known().then(|| self.served().filter(counts).map(|(_, name)| name.as_str()).collect())
    }

    /// The other namespaces in which a pod looks like a scheduler that serves this name.
    pub fn elsewhere(&self, name: &str, namespaces: &[String]) -> BTreeSet<&str> {
        let others = self.served().filter(|(namespace, _)| !namespaces.contains(namespace));
        others.filter(|(_, served)| served == name).map(|(namespace, _)| namespace.as_str()).collect()
    }

    /// Whether a scheduler runs, in whichever namespace; `None` until the pods of all schedulers are listed.
    fn any(&self) -> Option<bool> {
        self.is_known().then(|| self.served().next().is_some())
    }

    /// Whether the pods of all schedulers are listed.
    fn is_known(&self) -> bool {
        INSTALLED.iter().all(|installed| self.by_selector.contains_key(installed.selector))
    }

    fn served(&self) -> impl Iterator<Item = &Served> {
        self.by_selector.values().flatten()
    }
}

/// Publishes which schedulers run, whenever that changes. It never ends.
pub async fn follow(client: &Client, running: &watch::Sender<Running>) {
    join_all(INSTALLED.iter().map(|installed| follow_one(client, *installed, running))).await;
}

async fn follow_one(client: &Client, installed: Installed, running: &watch::Sender<Running>) {
    let read = |pod: &SchedulerPod| pod.serves(installed);
    keep_selected(client, installed.selector, read, |pods| {
        let served = pods.iter().flat_map(|((namespace, _), names)| {
            names.iter().map(move |name| (namespace.clone(), name.clone()))
        });
        let served: BTreeSet<Served> = served.collect();
        running.send_if_modified(|running| {
            running.by_selector.insert(installed.selector, served.clone()).as_ref() != Some(&served)
        });
    })
    .await;
}

/// How often it is confirmed that no scheduler runs: a watch that has lost its connection is noticed late.
const LOOK: Duration = Duration::from_secs(2);
/// A list that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(2);
/// For so long after the beginning of a list its answer is relied on.
const VALIDITY: SignedDuration = SignedDuration::from_secs(6);

/// What is known of schedulers that take locks.
struct SchedulerReporter<'a> {
    client: Client,
    clock: Clock,
    running: watch::Receiver<Running>,
    following: BoxFuture<'a, ()>,
    /// For how long one counts after it was last seen: what it has written may be seen late.
    settle: SignedDuration,
    /// When one was last seen, or nothing was known before anything was.
    seen: Option<Timestamp>,
    /// When it is confirmed again.
    look: Instant,
    reported: Option<OtherSchedulers>,
}

/// Reports whether schedulers run that take node locks, again and again without end. A scheduler counts from when its pod is created until
/// `settle` after it was last seen, in whichever namespace its pod is.
pub fn reports(
    client: &Client,
    clock: Clock,
    settle: SignedDuration,
) -> impl Stream<Item = OtherSchedulers> + Send + use<> {
    let (publishes, running) = watch::channel(Running::default());
    let following = {
        let client = client.clone();
        async move { follow(&client, &publishes).await }.boxed()
    };
    let reporter = SchedulerReporter {
        client: client.clone(),
        clock,
        running,
        following,
        settle,
        seen: None,
        look: Instant::now(),
        reported: None,
    };
    stream::unfold(reporter, async |mut reporter| Some((reporter.next().await, reporter)))
}

impl SchedulerReporter<'_> {
    /// The next report.
    async fn next(&mut self) -> OtherSchedulers {
        loop {
            let looked = tokio::select! {
                biased;
                () = &mut self.following => return std::future::pending().await,
                Ok(()) = self.running.changed() => None,
                () = sleep_until(self.look) => Some(self.clock.now()),
            };
            let Some(report) = (match looked {
                None => self.judge(None),
                Some(began) => {
                    let found = {
                        let (client, following) = (&self.client, &mut self.following);
                        tokio::select! {
                            biased;
                            () = following => return std::future::pending().await,
                            found = timeout(PATIENCE, look(client)) => found.ok().flatten(),
                        }
                    };
                    self.look = Instant::now() + LOOK;
                    self.judge(Some((began, found)))
                }
            }) else {
                continue;
            };
            self.log(report);
            self.reported = Some(report);
            return report;
        }
    }

    /// What is known now; `looked`: since when, and whether, a list has shown a scheduler. `None`: nothing new.
    fn judge(&mut self, looked: Option<(Timestamp, Option<bool>)>) -> Option<OtherSchedulers> {
        let now = self.clock.now();
        let watched = self.running.borrow_and_update().any();
        let found = looked.and_then(|(_, found)| found);
        let unknown_from_the_start = looked.is_some() && found.is_none() && self.reported.is_none();
        if watched == Some(true) || found == Some(true) || unknown_from_the_start {
            self.seen = Some(now);
            return Some(OtherSchedulers::MayRun);
        }
        let (began, _) = looked.filter(|(_, found)| *found == Some(false) && watched == Some(false))?;
        let settled =
            self.seen.is_none_or(|seen| seen.checked_add(self.settle).is_ok_and(|until| until <= now));
        let until = began.checked_add(VALIDITY).ok().filter(|_| settled);
        Some(until.map_or(OtherSchedulers::MayRun, OtherSchedulers::NoneUntil))
    }

    /// Logs a change of what is reported.
    fn log(&self, report: OtherSchedulers) {
        let may_run = |report: &OtherSchedulers| *report == OtherSchedulers::MayRun;
        if self.reported.as_ref().map(may_run) == Some(may_run(&report)) {
            return;
        }
        match report {
            OtherSchedulers::MayRun => {
                tracing::info!("another scheduler may take node locks: every pod gets one that needs it");
            }
            OtherSchedulers::NoneUntil(_) => {
                tracing::info!(
                    "no other scheduler takes node locks: they are left out where the device plugin does without"
                );
            }
        }
    }
}

/// Whether a scheduler runs, as the API server's cache shows it, which costs little; `None`: it could not be listed.
async fn look(client: &Client) -> Option<bool> {
    let path = kube::Api::<Watched<SchedulerPod>>::all(client.clone()).resource_url().to_owned();
    let mut found = false;
    for installed in INSTALLED {
        let parameters = ListParams::default().labels(installed.selector).match_any();
        let each = |pod: Result<SchedulerPod, Strange<'_>>| {
            // One that can't be read may be one that runs.
            found |= pod.map_or(true, |pod| !pod.serves(installed).is_empty());
        };
        if let Err(error) = list(client, &path, ListForm::Whole, parameters, each).await {
            tracing::debug!(%error, "other schedulers can't be listed");
            return None;
        }
    }
    Some(found)
}

/// A pod of a scheduler, as far as it tells what the scheduler serves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SchedulerPod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Process>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Process {
    command: Vec<String>,
    args: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

impl SchedulerPod {
    /// The names that it serves; none once it has ended.
    fn serves(&self, installed: Installed) -> BTreeSet<String> {
        if matches!(self.status.phase.as_str(), "Succeeded" | "Failed") {
            return BTreeSet::new();
        }
        let words =
            self.spec.containers.iter().flat_map(|process| process.command.iter().chain(&process.args));
        installed.names(words.map(String::as_str))
    }
}

impl Wire for SchedulerPod {
    type Scope = k8s_openapi::NamespaceResourceScope;
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{Arc, Mutex},
    };

    use futures::StreamExt as _;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_that_looks_like_a_scheduler_counts_where_the_settings_say_so() {
        let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let mut running = Running::default();
        let trusted = ["kube-system".to_owned(), "gpu".to_owned()];
        assert_eq!(running.names(&trusted), None, "no pods are listed yet");
        let served = [pair("team-a", "hami-scheduler"), pair("gpu", "other"), pair("team-b", "other")];
        running.by_selector.insert(INSTALLED[0].selector, served.into());
        running.by_selector.insert(INSTALLED[1].selector, [pair("kube-system", "volcano")].into());
        assert_eq!(running.names(&trusted), Some(["other", "volcano"].into()));
        assert_eq!(running.names(&trusted[..1]), Some(["volcano"].into()));
        assert_eq!(running.elsewhere("hami-scheduler", &trusted), ["team-a"].into());
        assert_eq!(running.elsewhere("other", &trusted), ["team-b"].into());
        assert_eq!(running.elsewhere("volcano", &trusted), [].into());
    }

    /// What an API server answers to lists of schedulers' pods. Its watches are silent, as those that have lost their connection are.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Shown {
        None,
        One,
        Error,
    }

    fn api(shown: Arc<Mutex<Shown>>) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let shown = shown.clone();
            async move {
                if request.uri().query().unwrap_or_default().contains("watch=true") {
                    std::future::pending::<()>().await;
                }
                let pod = json!({"metadata": {"name": "hami-scheduler-0", "namespace": "team-a"}});
                let (status, items) = match *shown.lock().unwrap() {
                    Shown::None => (200, vec![]),
                    Shown::One => (200, vec![pod]),
                    Shown::Error => (500, vec![]),
                };
                let body = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items});
                let body = Body::from(serde_json::to_vec(&body).unwrap());
                Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn that_none_runs_is_reported_while_it_is_confirmed_and_long_enough_after_the_last() {
        let start: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let shown = Arc::new(Mutex::new(Shown::None));
        let settle = SignedDuration::from_secs(60);
        let mut reports = pin!(reports(&api(shown.clone()), clock, settle));
        assert_eq!(reports.next().await, Some(OtherSchedulers::NoneUntil(start + VALIDITY)));
        let next = reports.next().await;
        assert_eq!(next, Some(OtherSchedulers::NoneUntil(start + SignedDuration::from_secs(2) + VALIDITY)));

        *shown.lock().unwrap() = Shown::One;
        assert_eq!(reports.next().await, Some(OtherSchedulers::MayRun), "in whichever namespace it is");
        let last = clock.now();

        *shown.lock().unwrap() = Shown::None;
        let until = loop {
            match reports.next().await.unwrap() {
                OtherSchedulers::MayRun => {}
                OtherSchedulers::NoneUntil(until) => break until,
            }
        };
        assert!(until - VALIDITY >= last + settle, "{until} is less than {settle} after {last}");

        *shown.lock().unwrap() = Shown::Error;
        let silent = timeout(Duration::from_mins(5), reports.next()).await;
        assert!(silent.is_err(), "what is not known is not reported: {silent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_may_run_if_none_can_be_listed_at_the_start_and_for_long_after() {
        let clock = Clock::starting_at("2026-11-21T12:00:00Z".parse().unwrap());
        let shown = Arc::new(Mutex::new(Shown::Error));
        let mut reports = pin!(reports(&api(shown.clone()), clock, SignedDuration::from_secs(60)));
        assert_eq!(reports.next().await, Some(OtherSchedulers::MayRun));
        let failed = clock.now();
        *shown.lock().unwrap() = Shown::None;
        while reports.next().await == Some(OtherSchedulers::MayRun) {}
        assert!(clock.now().duration_since(failed) >= SignedDuration::from_secs(60));
    }
}
