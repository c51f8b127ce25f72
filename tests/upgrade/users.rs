//! Users at work: each creates a pod, waits until it has run to its end, and creates the next; each asks for something wrong in between.
//!
//! Whatever the API server refuses is a fault that the test reads. A review whose connection is being closed is counted apart: HTTP/1.1 lets no
//! server close an idle connection so that no request can meet it, and the API server does not repeat a POST. A user then tries again.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::PostParams,
    runtime::wait::{Condition, await_condition},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use crate::support::server::pause;

const USERS: usize = 8;
/// After this time a pod that has not run is lost.
const PATIENCE: Duration = Duration::from_mins(1);

/// Users who work until they are told to stop.
pub(crate) struct Users {
    stopping: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    faults: Arc<Mutex<Vec<Fault>>>,
    tasks: JoinSet<()>,
}

/// What came of the users' work.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How often a user had a pod served and something wrong denied.
    pub(crate) rounds: usize,
    /// Reviews that met a connection that was being closed.
    pub(crate) cut: Vec<String>,
    /// Whatever else went wrong.
    pub(crate) wrong: Vec<String>,
}

enum Fault {
    Cut(String),
    Wrong(String),
}

impl Fault {
    fn of(what: &str, error: &kube::Error) -> Self {
        let text = error.to_string();
        let closing = ["EOF", "connection reset by peer", "broken pipe", "server closed idle connection"];
        let cut = text.contains("failed calling webhook") && closing.iter().any(|end| text.contains(end));
        let text = format!("{what}: {text}");
        if cut { Self::Cut(text) } else { Self::Wrong(text) }
    }
}

impl Users {
    pub(crate) fn start(client: &Client) -> Self {
        let mut users = Self {
            stopping: Arc::default(),
            served: Arc::default(),
            faults: Arc::default(),
            tasks: JoinSet::new(),
        };
        for number in 0..USERS {
            let pods = Api::default_namespaced(client.clone());
            let (stopping, served) = (Arc::clone(&users.stopping), Arc::clone(&users.served));
            let faults = Arc::clone(&users.faults);
            users.tasks.spawn(async move {
                let mut at = 0;
                while !stopping.load(Ordering::Relaxed) {
                    let found = [reviewed(&pods).await, ran(&pods, &format!("pod-{number}-{at}")).await];
                    faults.lock().unwrap().extend(found.into_iter().filter_map(Result::err));
                    served.fetch_add(1, Ordering::Relaxed);
                    at += 1;
                }
            });
        }
        users
    }

    /// Until each user has had another two pods served, so that whatever was done before has been met by each.
    pub(crate) async fn go_on(&self) {
        let wanted = self.served.load(Ordering::Relaxed) + 2 * USERS;
        while self.served.load(Ordering::Relaxed) < wanted {
            pause().await;
        }
    }

    /// Until all have stopped.
    pub(crate) async fn stop(mut self) -> Tally {
        self.stopping.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let mut tally = Tally { rounds: self.served.load(Ordering::Relaxed), ..Tally::default() };
        for fault in std::mem::take(&mut *self.faults.lock().unwrap()) {
            match fault {
                Fault::Cut(text) => tally.cut.push(text),
                Fault::Wrong(text) => tally.wrong.push(text),
            }
        }
        tally
    }
}

/// A pod without a scheduler's name: the webhook sets it.
fn pod(name: &str, limits: &Value) -> Pod {
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 1});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// A pod that asks for more than a card has is denied by the webhook, which nothing but a review does.
async fn reviewed(pods: &Api<Pod>) -> Result<(), Fault> {
    let wrong = pod("wrong", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "101"}));
    match pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &wrong).await {
        Err(kube::Error::Api(status)) if status.message.contains("denied the request") => Ok(()),
        Err(error) => Err(Fault::of("a review without an answer", &error)),
        Ok(_) => Err(Fault::Wrong("a pod that is wrong was admitted without a review".to_owned())),
    }
}

async fn ran(pods: &Api<Pod>, name: &str) -> Result<(), Fault> {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "10"});
    let created = pods.create(&PostParams::default(), &pod(name, &limits)).await;
    let created = created.map_err(|error| Fault::of(name, &error))?;
    let scheduler = created.spec.and_then(|spec| spec.scheduler_name);
    if scheduler.as_deref() != Some("berth") {
        return Err(Fault::Wrong(format!("{name} was stored without a review, for {scheduler:?}")));
    }
    match timeout(PATIENCE, await_condition(pods.clone(), name, has_ended())).await {
        Ok(Ok(Some(pod))) if phase(&pod) == Some("Succeeded") => Ok(()),
        Ok(ended) => Err(Fault::Wrong(format!("{name} did not run: {ended:?}"))),
        Err(_) => Err(Fault::Wrong(format!("{name} was lost: {:?}", pods.get(name).await))),
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn has_ended() -> impl Condition<Pod> {
    |pod: Option<&Pod>| pod.is_some_and(|pod| matches!(phase(pod), Some("Succeeded" | "Failed")))
}
