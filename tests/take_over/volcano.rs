//! From Volcano to Berth and back, while Volcano's scheduler goes on placing pods without cards: the section `Volcano` of
//! `docs/take-over.md`.

use std::{sync::Arc, time::Duration};

use berth_sandbox::agent::{Fleet, card::Card, node::Node};
use k8s_openapi::api::core::v1::{Event, Namespace, Node as StoredNode, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{
    support::{controlplane::ControlPlane, installed, server::pause},
    take_over::{
        LABELLED, UNLABELLED, chart,
        deviceshare::{self, MEMORY, Scheduler, Sharing},
        installation::Installation,
        seen,
    },
};

const LIMIT: Duration = Duration::from_mins(1);
const BESIDE: &str = "dialects: {volcano: {lockValue: bare}}\n";
const TAKING_OVER: &str = "scope: opt-out\nadoptSchedulers: [volcano]\nschedulerNamespaces: [volcano-system]\ndialects: {volcano: {lockValue: bare}}\n";
const GIVING_BACK: &str = "scope: opt-out\ndialects: {volcano: {lockValue: bare}}\n";

/// A cluster, and what its users do.
struct Cluster {
    client: Client,
}

impl Cluster {
    fn pods(&self, team: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), team)
    }

    /// Creates a pod with these limits; a scheduler is named where its manifest names one.
    async fn create(&self, team: &str, name: &str, limits: Value, scheduler: Option<&str>) -> Pod {
        let container = json!({"name": "main", "image": "none", "resources": {"limits": limits}});
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
        if let Some(scheduler) = scheduler {
            pod["spec"]["schedulerName"] = scheduler.into();
        }
        let pod = serde_json::from_value(pod).unwrap();
        // The webhook of a Berth that has just been restarted may not answer yet, and fails closed.
        let created = async {
            loop {
                match self.pods(team).create(&PostParams::default(), &pod).await {
                    Ok(pod) => return pod,
                    Err(error) => assert!(error.to_string().contains("failed calling webhook"), "{error}"),
                }
                pause().await;
            }
        };
        tokio::time::timeout(LIMIT, created).await.expect("the webhook answers in time")
    }

    /// As [`Self::create`], with a share of this many MiB, which the API server does not shorten (`2k`) for powers of two, once the pod's scheduler is `named`.
    async fn share(&self, team: &str, name: &str, memory: u64, scheduler: Option<&str>, named: &str) {
        let limits = json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory.to_string()});
        let created = async {
            loop {
                let pod = self.create(team, name, limits.clone(), scheduler).await;
                if pod.spec.unwrap().scheduler_name.as_deref() == Some(named) {
                    return;
                }
                // The API server learns of changed webhook configurations by a watch.
                self.delete(team, name).await;
            }
        };
        let named_in_time = tokio::time::timeout(LIMIT, created).await;
        named_in_time.unwrap_or_else(|_| panic!("{team}/{name} does not name {named}"));
    }

    async fn delete(&self, team: &str, name: &str) {
        self.pods(team).delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
        let gone = |pod: Option<&Pod>| pod.is_none();
        tokio::time::timeout(LIMIT, await_condition(self.pods(team), name, gone)).await.unwrap().unwrap();
    }

    /// The node that the pod runs on.
    async fn runs_on(&self, team: &str, name: &str) -> String {
        let runs = |pod: Option<&Pod>| pod.is_some_and(|pod| seen::phase(pod) == "Running");
        let pod = tokio::time::timeout(LIMIT, await_condition(self.pods(team), name, runs)).await;
        let pod = pod.unwrap_or_else(|_| panic!("{team}/{name} does not run")).unwrap().unwrap();
        let all: Api<Pod> = Api::all(self.client.clone());
        for (card, held) in deviceshare::held(&all.list(&ListParams::default()).await.unwrap().items) {
            assert!(held <= MEMORY, "{held} MiB of {card} are held");
        }
        pod.spec.unwrap().node_name.unwrap()
    }

    async fn label(&self, team: &str, value: Option<&str>) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let label = Patch::Merge(json!({"metadata": {"labels": {"berth.dev/admission": value}}}));
        namespaces.patch(team, &PatchParams::default(), &label).await.unwrap();
    }

    /// No lock and no trace of Berth is left on a node.
    async fn nodes_are_clean(&self) {
        let nodes: Api<StoredNode> = Api::all(self.client.clone());
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            let left =
                node.annotations().keys().find(|key| key.contains("hamivgpu") || key.contains("berth"));
            assert_eq!(left, None, "{}", node.name_any());
        }
    }
}

fn node(name: &str) -> Node {
    let node =
        Node::new(name).allocatable("cpu", "8").allocatable("memory", "32Gi").allocatable("pods", "110");
    node.card(Card::new(&format!("GPU-{name}"), 0, MEMORY).slots(10)).volcano()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn share_pods_move_from_volcano_to_berth_and_back_while_volcano_keeps_the_others() {
    let Some(plane) = ControlPlane::start(installed::options()).await else { return };
    let plane = Arc::new(plane);
    let cluster = Cluster { client: plane.admin() };
    for team in [LABELLED, UNLABELLED] {
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        chart::create(&namespaces, json!({"metadata": {"name": team}})).await;
    }
    let fleet = Fleet::start(plane.admin(), ["v1", "v2"].map(node).into()).await.unwrap();
    let nodes = ["v1", "v2"].map(|name| (name.to_owned(), format!("GPU-{name}")));
    let volcano = Scheduler::start(&plane, nodes.into()).await;
    cluster.share(LABELLED, "early", 6144, Some("volcano"), "volcano").await;
    assert_eq!(cluster.runs_on(LABELLED, "early").await, "v1", "Volcano alone");

    let mut berth = Installation::start(&plane).await;
    berth.set(BESIDE).await;
    cluster.label(LABELLED, Some("enabled")).await;
    cluster.share(LABELLED, "ours", 12_288, None, "berth").await;
    assert_eq!(cluster.runs_on(LABELLED, "ours").await, "v2", "what Volcano has placed on v1 counts");
    cluster.share(UNLABELLED, "theirs", 10_240, Some("volcano"), "volcano").await;
    assert_eq!(cluster.runs_on(UNLABELLED, "theirs").await, "v1", "and Volcano counts what Berth has placed");
    cluster.share(UNLABELLED, "stuck", 15_360, Some("volcano"), "volcano").await;

    berth.set(TAKING_OVER).await;
    volcano.set(Sharing::Off);
    cluster.share(UNLABELLED, "renamed", 4096, Some("volcano"), "berth").await;
    assert_eq!(cluster.runs_on(UNLABELLED, "renamed").await, "v2");
    let plain = cluster.create(UNLABELLED, "plain", json!({"cpu": "1"}), Some("volcano")).await;
    assert_eq!(plain.spec.unwrap().scheduler_name.as_deref(), Some("volcano"), "it asks for no card");
    cluster.runs_on(UNLABELLED, "plain").await;
    cluster.delete(LABELLED, "early").await;
    cluster.delete(UNLABELLED, "theirs").await;
    // There is room for it now, and Volcano's scheduler, which still runs, has its name.
    cluster.share(UNLABELLED, "next", 512, Some("volcano"), "berth").await;
    assert_eq!(cluster.runs_on(UNLABELLED, "next").await, "v1");
    let stuck = cluster.pods(UNLABELLED).get("stuck").await.unwrap();
    assert_eq!(stuck.spec.unwrap().node_name, None);
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), UNLABELLED);
    let about = ListParams::default().fields("involvedObject.name=stuck");
    assert_eq!(events.list(&about).await.unwrap().items.len(), 0, "Berth leaves it alone");
    cluster.delete(UNLABELLED, "stuck").await;
    cluster.share(UNLABELLED, "stuck", 15_360, Some("volcano"), "berth").await;
    assert_eq!(cluster.runs_on(UNLABELLED, "stuck").await, "v1", "it was created again");

    berth.set(GIVING_BACK).await;
    volcano.set(Sharing::On);
    berth.set(BESIDE).await;
    cluster.label(LABELLED, None).await;
    cluster.delete(LABELLED, "ours").await;
    cluster.share(LABELLED, "back", 12_288, Some("volcano"), "volcano").await;
    assert_eq!(cluster.runs_on(LABELLED, "back").await, "v2", "Volcano counts what Berth has left on v1");
    berth.remove().await;
    cluster.delete(UNLABELLED, "stuck").await;
    cluster.share(UNLABELLED, "last", 15_360, Some("volcano"), "volcano").await;
    assert_eq!(cluster.runs_on(UNLABELLED, "last").await, "v1", "Volcano alone again");
    cluster.nodes_are_clean().await;
    volcano.stop().await;
    assert_eq!(fleet.violations(), []);
    assert!(fleet.troubles().is_empty(), "{:?}", fleet.troubles());
}
