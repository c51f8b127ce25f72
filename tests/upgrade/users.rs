//! Users at work: each creates a pod, waits until it has run to its end, and creates the next; each asks for something wrong in between.
//!
//! Whatever the API server refuses is a fault that the test reads.

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

/// Users who work until they are stopped.
pub(crate) struct Users {
    stopping: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    faults: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

/// What came of the users' work.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How often a user had a pod served and something wrong denied.
    pub(crate) rounds: usize,
    /// Reviews without an answer, and pods that did not run.
    pub(crate) faults: Vec<String>,
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
        let faults = std::mem::take(&mut *self.faults.lock().unwrap());
        Tally { rounds: self.served.load(Ordering::Relaxed), faults }
    }
}

/// A pod without a scheduler's name: the webhook sets it.
fn pod(name: &str, limits: &Value) -> Pod {
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 1});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// A pod that asks for more than a card has is denied by the webhook, which nothing but a review does.
async fn reviewed(pods: &Api<Pod>) -> Result<(), String> {
    let wrong = pod("wrong", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "101"}));
    match pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &wrong).await {
        Err(kube::Error::Api(status)) if status.message.contains("denied the request") => Ok(()),
        Err(error) => Err(format!("a review without an answer: {error}")),
        Ok(_) => Err("a pod that is wrong was admitted without a review".to_owned()),
    }
}

async fn ran(pods: &Api<Pod>, name: &str) -> Result<(), String> {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "10"});
    let created = pods.create(&PostParams::default(), &pod(name, &limits)).await;
    let created = created.map_err(|error| format!("{name}: {error}"))?;
    let scheduler = created.spec.and_then(|spec| spec.scheduler_name);
    if scheduler.as_deref() != Some("berth") {
        return Err(format!("{name} was stored without a review, for {scheduler:?}"));
    }
    match timeout(PATIENCE, await_condition(pods.clone(), name, has_ended())).await {
        Ok(Ok(Some(pod))) if phase(&pod) == Some("Succeeded") => Ok(()),
        Ok(ended) => Err(format!("{name} did not run: {ended:?}")),
        Err(_) => Err(format!("{name} was lost: {:?}", pods.get(name).await)),
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn has_ended() -> impl Condition<Pod> {
    |pod: Option<&Pod>| pod.is_some_and(|pod| matches!(phase(pod), Some("Succeeded" | "Failed")))
}
