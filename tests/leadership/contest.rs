//! A cluster with several binders that stand for the lead, on a clock that only moves when all wait.
//!
//! It must not assert who wins: the cases do.

use std::{sync::Arc, time::Duration};

use berth::{
    cluster::{
        self, Binder, BinderView, Clock, ClusterError, Handoff, Leadership, Metrics,
        election::candidate::ElectionSettings,
    },
    config::Config,
};
use berth_sandbox::{
    Options, Sandbox,
    agent::{Answer, Behaviour, Fleet, card::Card, node::Node as AgentNode, wire::Release},
};
use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::json;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use super::link::{Carried, Link, Log};

/// After this time something that should have happened has not.
const LIMIT: Duration = Duration::from_mins(5);

/// The cluster.
pub(crate) struct Contest {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
    pub(crate) fleet: Fleet,
    log: Log,
}

/// One binder.
pub(crate) struct Contestant {
    pub(crate) link: Link,
    who: &'static str,
    metrics: Metrics,
    pub(crate) handoff: Handoff,
    pub(crate) views: watch::Receiver<Option<BinderView>>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<Result<(), ClusterError>>,
}

impl Contest {
    /// Nodes with two cards each.
    pub(crate) async fn of_nodes(count: usize) -> Self {
        let sandbox = Sandbox::new(Options::default());
        let client = sandbox.client();
        let nodes = (0..count).map(|index| node(&format!("node-{index}"))).collect();
        let fleet = Fleet::start(client.clone(), nodes).await.unwrap();
        Self { sandbox, client, fleet, log: Log::default() }
    }

    /// A binder that stands for the lead.
    pub(crate) fn stand(&self, who: &'static str) -> Contestant {
        self.start(who, Leadership::Elected(ElectionSettings::new("default", "berth", who)))
    }

    /// A binder without others.
    pub(crate) fn start(&self, who: &'static str, leadership: Leadership) -> Contestant {
        let link = Link::new(who, &self.sandbox, self.log.clone());
        let config = Config::default();
        let (metrics, handoff) = (Metrics::default(), Handoff::default());
        let binder = Binder {
            client: link.client(),
            settings: config.scheduler_settings(),
            details: config.messages.details,
            reader: Arc::new(config.reader()),
            clock: Clock::starting_at(self.sandbox.now()),
            metrics: metrics.clone(),
            writes_at_once: 64,
            leadership,
            usage: None,
            handoff: handoff.clone(),
        };
        let views = handoff.views();
        let (stop, stopped) = oneshot::channel();
        let mut running = JoinSet::new();
        running.spawn(cluster::run(binder, async { stopped.await.unwrap() }));
        Contestant { link, who, metrics, handoff, views, stop: Some(stop), running }
    }

    /// What every node's agent does from now on.
    pub(crate) fn agents(&self, nodes: usize, answer: &Answer, runs_for: Option<Duration>) {
        for index in 0..nodes {
            let behaviour = Behaviour { answer: answer.clone(), runs_for, ..Behaviour::default() };
            self.fleet.behave(&format!("node-{index}"), behaviour).unwrap();
        }
    }

    /// A pod that wants 6000 MiB of a card.
    pub(crate) async fn create(&self, name: &str) {
        let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "6000"});
        let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
        let spec = json!({"schedulerName": "berth", "containers": [container]});
        let pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// Writes somebody else's name into the Lease, for so many seconds.
    pub(crate) async fn usurp(&self, seconds: u32) {
        let leases: Api<Lease> = Api::default_namespaced(self.client.clone());
        let usurp = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": seconds}});
        leases.patch("berth", &PatchParams::default(), &Patch::Merge(usurp)).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &now).await.unwrap();
    }

    /// Creates a pod again and again.
    pub(crate) async fn keep_creating(&self, prefix: &str, every: Duration, total: usize) {
        for index in 0..total {
            self.create(&format!("{prefix}-{index}")).await;
            tokio::time::sleep(every).await;
        }
    }

    /// The pod's node, once it is bound.
    pub(crate) async fn bound(&self, name: &str) -> String {
        let bound = |pod: Option<&Pod>| pod.and_then(node_of).is_some();
        let found = tokio::time::timeout(LIMIT, await_condition(self.pods(), name, bound)).await;
        found.expect("the pod is bound in time").unwrap().as_ref().and_then(node_of).unwrap()
    }

    /// The Lease, once that binder holds it.
    pub(crate) async fn led_by(&self, who: &str) -> LeaseSpec {
        self.lease_when(|spec| spec.holder_identity.as_deref() == Some(who)).await
    }

    pub(crate) async fn lease_when(&self, wanted: impl Fn(&LeaseSpec) -> bool) -> LeaseSpec {
        let leases: Api<Lease> = Api::default_namespaced(self.client.clone());
        let condition =
            |lease: Option<&Lease>| lease.and_then(|lease| lease.spec.as_ref()).is_some_and(&wanted);
        let found = tokio::time::timeout(LIMIT, await_condition(leases, "berth", condition)).await;
        found.expect("the Lease is so in time").unwrap().unwrap().spec.unwrap()
    }

    pub(crate) fn carried(&self) -> Vec<Carried> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        self.pods().list(&ListParams::default()).await.unwrap().items
    }

    /// The pods that the nodes' locks name.
    pub(crate) async fn locked(&self) -> Vec<String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.unwrap().items;
        let lock = |node: Node| node.metadata.annotations?.remove("hami.io/mutex.lock");
        let name = |lock: String| lock.rsplit(',').next().unwrap().to_owned();
        nodes.into_iter().filter_map(lock).map(name).collect()
    }

    pub(crate) fn agents_are_content(&self) {
        assert_eq!(self.fleet.violations(), []);
        assert!(self.fleet.troubles().is_empty(), "{:?}", self.fleet.troubles());
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }
}

impl Contestant {
    /// Asks it to end, and waits for that.
    pub(crate) async fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        let ended = tokio::time::timeout(LIMIT, self.running.join_next()).await;
        ended.expect("it ends in time").unwrap().unwrap().unwrap();
    }

    /// Ends it as `kill -9` does.
    pub(crate) async fn kill(&mut self) {
        self.running.shutdown().await;
    }

    /// Whether its metrics say that it leads, and how often that has changed.
    pub(crate) fn leads(&self) -> (bool, u32) {
        let transitions = self.metric("leader_transitions_total");
        (self.metric("leader") == 1, transitions.try_into().expect("a small number"))
    }

    /// One of its metrics.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let name = format!("berth_scheduler_{name}");
        let line = text.lines().find(|line| line.split(' ').next() == Some(&*name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect(&name)
    }

    /// Its Bindings that have come before the API server, taken or refused.
    pub(crate) fn tried(&self, contest: &Contest) -> Vec<Carried> {
        contest.carried().into_iter().filter(|carried| carried.by == self.who).collect()
    }

    /// Its Bindings that the API server took.
    pub(crate) fn bindings(&self, contest: &Contest) -> Vec<Carried> {
        self.tried(contest).into_iter().filter(|carried| carried.answer.is_success()).collect()
    }
}

/// A pod that wants so much memory of a card and is never created.
pub(crate) fn hint(memory: u32) -> berth::object::Pod {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()});
    let spec = json!({"schedulerName": "berth", "containers": [{"resources": {"limits": limits}}]});
    serde_json::from_value(json!({"metadata": {"name": "hint"}, "spec": spec})).unwrap()
}

/// A node with HAMi's plugin and two cards of 16 GiB.
fn node(name: &str) -> AgentNode {
    let sized = [("cpu", "32"), ("memory", "128Gi"), ("pods", "110")];
    let node = sized.iter().fold(AgentNode::new(name), |node, (what, amount)| node.allocatable(what, amount));
    let card = |index| Card::new(&format!("GPU-{name}-{index}"), index, 16_384).slots(10);
    node.card(card(0)).card(card(1)).hami(Release::V2_10)
}

pub(crate) fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}
