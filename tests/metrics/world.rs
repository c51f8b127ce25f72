//! A small cluster whose metrics are known by heart, and its page as a scraper gets it.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use berth::{
    admission::Verdict,
    app::{build_info, settings::Reloads},
    cluster::{
        self, Clock,
        read::devices,
        report::{metrics::Leads, scrape::Holdings},
    },
    config::Config,
    scheduling::{Event, FindingCounts, NodeChange, ObjectChange, QuotaChange, world::object::Object},
    webhook::{self, ServerReadiness, Webhook},
};
use http::{Request, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::metrics::machine::{Machine, bound, node, parsed, pod};

pub(crate) const HAMI: &str = "metrics: {hamiNames: true}";

pub(crate) fn config(text: &str) -> Config {
    Config::parse(text, "berth.yaml").unwrap().0
}

pub(crate) fn gpu_node(name: &str, cards: &[&str], model: &str) -> Value {
    let card = |(index, id): (usize, &&str)| json!({"id": id, "index": index, "count": 10, "devmem": 16000, "devcore": 100, "type": model, "mode": "hami-core", "health": true});
    let cards: Vec<_> = cards.iter().enumerate().map(card).collect();
    node(name, &json!({"hami.io/node-nvidia-register": json!(cards).to_string()}))
}

pub(crate) fn holder(namespace: &str, name: &str, node: &str, devices: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["metadata"]["namespace"] = namespace.into();
    let annotations = json!({
        "hami.io/vgpu-node": node, "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": devices,
    });
    bound(pod, node, annotations)
}

/// One node with two cards, of which two pods of two namespaces hold a part; a quota; a pod that waits.
pub(crate) fn cluster(config: &Config) -> Machine {
    let nodes = [gpu_node("n1", &["GPU-a", "GPU-b"], "NVIDIA A100")];
    let pods = [
        holder("default", "train", "n1", "GPU-a,NVIDIA,4000,30:;"),
        holder("team", "serve", "n1", "GPU-a,NVIDIA,2000,0:;"),
    ];
    let mut machine = Machine::new(config, &nodes, &pods);
    let quota = json!({
        "metadata": {"name": "gpus", "namespace": "default", "uid": "q", "resourceVersion": "1"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "8000", "limits.nvidia.com/gpucores": "100"}},
    });
    let quota = machine.reader().quota(&parsed(&quota)).0;
    machine.tell(Event::Quota(QuotaChange::Seen(quota)));
    // Two pods wait, of which the second is older.
    for (name, created) in [("large", "2036-01-01T00:10:00Z"), ("older", "2036-01-01T00:00:00Z")] {
        let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"}));
        pod["metadata"]["creationTimestamp"] = created.into();
        machine.show_pod(&pod);
    }
    machine.run();
    machine
}

/// The same, with a node of Koordinator's devices: half of a GPU and one of two virtual functions of a NIC are given away, and an FPGA does not work.
pub(crate) fn cluster_with_devices(config: &Config) -> Machine {
    let mut machine = cluster(config);
    machine.show_node(&node("n2", &json!({})));
    let device = json!({"metadata": {"name": "n2"}, "spec": {"devices": [
        {"type": "gpu", "id": "GPU-c", "minor": 3, "health": true, "resources":
            {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}},
        {"type": "rdma", "id": "0000:01:00.0", "health": true, "resources": {"koordinator.sh/rdma": "100"},
            "vfGroups": [{"vfs": [{"busID": "0000:01:00.1"}, {"busID": "0000:01:00.2"}]}]},
        {"type": "fpga", "id": "f\"\n", "health": false, "resources": {"koordinator.sh/fpga": "100"}},
    ]}});
    machine.show_device(&device);
    // Koordinator's scheduler may write memory in percent alone.
    let given = json!({
        "gpu": [{"minor": 3, "resources": {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}}],
        "rdma": [{"minor": 0, "resources": {"koordinator.sh/rdma": "1"}, "extension": {"vfs": [{"minor": -1, "busID": "0000:01:00.2"}]}}],
    });
    let pod = pod("joint", &json!({"koordinator.sh/gpu": "50", "koordinator.sh/rdma": "1"}));
    machine.show_pod(&bound(
        pod,
        "n2",
        json!({"scheduling.koordinator.sh/device-allocated": given.to_string()}),
    ));
    machine.run();
    machine
}

/// Whether the replica has found anything wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Findings {
    None,
    One,
}

/// The page of a replica that leads this cluster and is well.
pub(crate) async fn page(machine: &Machine, config: &Config, accept: &str) -> String {
    page_with(machine, config, accept, Findings::None).await
}

/// The page of a replica that leads this cluster: with a finding of each kind, metrics show that otherwise list nothing.
pub(crate) async fn page_with(
    machine: &Machine,
    config: &Config,
    accept: &str,
    findings: Findings,
) -> String {
    let mut registry = Registry::default();
    let metrics = webhook::WebhookMetrics::register(&mut registry);
    metrics.certificate_ends(Timestamp::from_second(10_000_000).unwrap());
    let binder = cluster::Metrics::default();
    binder.register(&mut registry);
    binder.standing(&machine.scheduler().view().standing(machine.now()));
    binder.leader(Leads::Yes);
    if findings == Findings::One {
        binder.findings(
            "n1",
            FindingCounts { overcommitted: 1, double_allocations: 1, unread: 1, unassigned: 1 },
        );
        binder.eviction("rz1", &berth::scheduling::EvictionOutcome::Granted);
        binder.unread_objects.add("PodGroup", 1);
        let broken = node("n1", &json!({"hami.io/node-nvidia-register": "[{"}));
        binder.registrations(&Event::Node(NodeChange::Seen(Box::new(
            machine.reader().node(&parsed(&broken)).0,
        ))));
        let unreadable = json!({"spec": {"devices": [{"type": "gpu", "minor": -1}]}});
        let offer = devices(&parsed(&unreadable)).0;
        binder.registrations(&Event::Object(ObjectChange::Seen(Object::Device(
            "n1".into(),
            std::sync::Arc::new(offer),
        ))));
    }
    build_info::register(&mut registry);
    Reloads::register(&mut registry, Clock::System);
    let holdings = Holdings::of(machine.scheduler(), &config.dialects()).unwrap();
    let scraped = Mutex::new(Some(holdings.registry(config.shown())));
    let (_ready, readiness) = watch::channel(ServerReadiness::Ready);
    let router = webhook::router(Webhook {
        scrape: Some(Arc::new(move |_| {
            let scraped = scraped.lock().unwrap().take();
            Box::pin(async move { scraped })
        })),
        ..Webhook::new(Arc::new(|_| Verdict::Ignored), metrics, Arc::new(registry), readiness)
    });
    let request = Request::get("/metrics").header(header::ACCEPT, accept).body(Body::empty()).unwrap();
    let body = router.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.into()).unwrap()
}

/// The samples of a page: a series and its value.
pub(crate) fn samples(page: &str) -> Vec<(&str, &str)> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap()).collect()
}

/// Those whose name starts so, as lines.
pub(crate) fn lines<'a>(page: &'a str, prefix: &str) -> Vec<&'a str> {
    page.lines().filter(|line| line.starts_with(prefix)).collect()
}
