//! Users: teams that create and delete share pods all the time, and what they are told.
//!
//! It must not name a scheduler for a team, but for the one of kube-system, which admission never covers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::{
    core::v1::Pod,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    support::{controlplane::ControlPlane, server::pause},
    take_over::{LABELLED, SYSTEM, UNLABELLED, USER, chart::create, seen::Seen},
};

/// How the pods are called that come and go.
pub(crate) const PREFIX: &str = "train-";
/// A team deletes its oldest running pod when it has so many.
const LIVE: usize = 4;
/// It creates none when it has so many: all pods together must fit.
const MOST: usize = 5;
/// MiB, which are written as they stand here: the API server shortens 2000 to `2k`.
const MEMORIES: [u32; 4] = [2048, 5120, 3072, 6144];

/// Every team.
pub(crate) struct People {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    created: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl People {
    pub(crate) fn start(client: &Client, seen: &Seen) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (created, refused) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let mut tasks = JoinSet::new();
        for team in [LABELLED, UNLABELLED, SYSTEM] {
            let pods = Api::namespaced(client.clone(), team);
            let counts = (created.clone(), refused.clone());
            tasks.spawn(come_and_go(team, pods, seen.again(), stopped.clone(), counts));
        }
        Self { tasks, stop, created, refused }
    }

    /// How many pods were created, and how many attempts were refused.
    pub(crate) fn count(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        format!("{} pods created, {} attempts refused", count(&self.created), count(&self.refused))
    }

    /// No team has given up.
    pub(crate) fn are_at_work(&self) {
        assert_eq!(self.tasks.len(), 3);
    }

    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

async fn come_and_go(
    team: &'static str,
    pods: Api<Pod>,
    seen: Seen,
    stopped: watch::Receiver<bool>,
    (created, refused): (Arc<AtomicUsize>, Arc<AtomicUsize>),
) {
    let mut number = 0;
    while !*stopped.borrow() {
        if seen.count_of(team) < MOST {
            let pod = share(&format!("{PREFIX}{number}"), MEMORIES[number % MEMORIES.len()], team);
            match pods.create(&PostParams::default(), &pod).await {
                Ok(_) => {
                    number += 1;
                    created.fetch_add(1, Ordering::Relaxed);
                }
                // As a controller does, it tries again. A refusal has a reason.
                Err(kube::Error::Api(status)) => {
                    assert!(!status.message.is_empty(), "{status:?}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
        if let Some(name) = seen.oldest_of(team, LIVE) {
            pods.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        for _ in 0..4 {
            pause().await;
        }
    }
}

fn share(name: &str, memory: u32, team: &str) -> Pod {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()});
    let containers = json!([{"name": "main", "image": "none", "resources": {"limits": limits}}]);
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
    if team == SYSTEM {
        pod["spec"]["schedulerName"] = "hami-scheduler".into();
    }
    parsed(pod)
}

fn parsed(pod: Value) -> Pod {
    serde_json::from_value(pod).unwrap()
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Returns once a pod that the team creates names that scheduler.
pub(crate) async fn until_named(client: &Client, team: &str, scheduler: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), team);
    let named = async || {
        let pod = pods.create(&dry_run(), &share("probe", 1, team)).await.ok()?;
        pod.spec?.scheduler_name
    };
    let found = async {
        while named().await.as_deref() != Some(scheduler) {
            pause().await;
        }
    };
    let limit = std::time::Duration::from_mins(1);
    tokio::time::timeout(limit, found).await.unwrap_or_else(|_| panic!("{team}: no pod names {scheduler}"));
}

/// A user is refused a share pod that no scheduler counts, and a forged assignment, with what to do.
pub(crate) async fn are_refused(plane: &ControlPlane, admin: &Client) {
    for team in [SYSTEM, UNLABELLED] {
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "patch"]}]);
        let metadata = json!({"name": USER});
        create::<Role>(&Api::namespaced(admin.clone(), team), json!({"metadata": metadata, "rules": rules}))
            .await;
        let binding = json!({
            "metadata": metadata, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}],
        });
        create::<RoleBinding>(&Api::namespaced(admin.clone(), team), binding).await;
    }
    let mut unmanaged = share("unmanaged", 1024, SYSTEM);
    unmanaged.spec.as_mut().unwrap().scheduler_name = Some("default-scheduler".to_owned());
    let pods: Api<Pod> = Api::namespaced(plane.client(USER), SYSTEM);
    let words = until_refused(async || pods.create(&dry_run(), &unmanaged).await, "no known scheduler").await;
    assert!(words.ends_with("set spec.schedulerName to berth"), "{words}");
    let pods: Api<Pod> = Api::namespaced(plane.client(USER), UNLABELLED);
    let forged = Patch::Merge(json!({"metadata": {"annotations": {"hami.io/vgpu-node": "elsewhere"}}}));
    let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = async || pods.patch("served-on-v2-10", &parameters, &forged).await;
    until_refused(patch, "alice may not write hami.io/vgpu-node").await;
}

/// The words of the refusal; a policy acts a moment after it was written.
async fn until_refused(attempt: impl AsyncFn() -> kube::Result<Pod>, words: &str) -> String {
    let refused = async {
        loop {
            match attempt().await {
                Err(kube::Error::Api(status)) if status.message.contains(words) => return status.message,
                _ => pause().await,
            }
        }
    };
    let limit = std::time::Duration::from_mins(1);
    tokio::time::timeout(limit, refused).await.unwrap_or_else(|_| panic!("never refused with `{words}`"))
}

/// Pods that name this scheduler and are not bound: `kubectl get pods -A --field-selector`.
async fn unbound(scheduler: &str, client: &Client) -> Vec<Pod> {
    let pods: Api<Pod> = Api::all(client.clone());
    let selector = format!("spec.schedulerName={scheduler},spec.nodeName=");
    pods.list(&ListParams::default().fields(&selector)).await.unwrap().items
}

/// Returns once no pod waits for this scheduler.
pub(crate) async fn wait_for_pods_of(scheduler: &str, client: &Client) {
    while !unbound(scheduler, client).await.is_empty() {
        pause().await;
    }
}

/// A pod that names Berth is created too late, and waits with whoever else does.
pub(crate) async fn forsaken(client: &Client) -> Vec<Pod> {
    let mut late = share("late", 1024, UNLABELLED);
    late.spec.as_mut().unwrap().scheduler_name = Some("berth".to_owned());
    let pods: Api<Pod> = Api::namespaced(client.clone(), UNLABELLED);
    pods.create(&PostParams::default(), &late).await.unwrap();
    unbound("berth", client).await
}

/// Deletes these pods and creates them without a scheduler's name, as the page says for pods that no controller makes.
pub(crate) async fn create_again(client: &Client, pods: &[Pod]) {
    assert!(!pods.is_empty());
    for pod in pods {
        let of_team: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
        of_team.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.unwrap();
        let mut again = Pod { spec: pod.spec.clone(), ..Pod::default() };
        again.metadata.name = pod.metadata.name.clone();
        again.spec.as_mut().unwrap().scheduler_name = None;
        of_team.create(&PostParams::default(), &again).await.unwrap();
    }
}
