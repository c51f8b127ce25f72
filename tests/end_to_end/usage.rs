//! What was used, over two replicas that follow each other: each goes on where the other stopped, and a pod has just the time that it has held
//! its share.

use std::{sync::Arc, time::Duration};

use berth::{
    cluster::{
        self, Binder, Clock, Handoff, Leadership, Metrics, UsageSettings,
        election::candidate::ElectionSettings,
    },
    config::Config,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinSet};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{LIMIT, World, pod},
};

/// MiB of the pod's share.
const MEMORY: i64 = 8000;

/// A process that binds while it leads.
struct Replica {
    metrics: Metrics,
    stop: oneshot::Sender<()>,
    running: JoinSet<()>,
}

impl Replica {
    fn start(world: &World, clock: Clock, who: &str) -> Self {
        let (config, metrics) = (Config::default(), Metrics::default());
        let binder = Binder {
            client: world.cluster.client.clone(),
            settings: config.scheduler_settings(),
            details: config.messages.details,
            reader: Arc::new(config.reader()),
            clock,
            metrics: metrics.clone(),
            writes_at_once: 64,
            leadership: Leadership::Elected(ElectionSettings::new("default", "berth", who)),
            usage: Some(UsageSettings {
                namespace: "default".to_owned(),
                name: "berth-usage".to_owned(),
                labels: vec!["team".into()],
            }),
            handoff: Handoff::default(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let told = async { drop(stopped.await) };
            cluster::run(binder, told).await.unwrap();
        });
        Self { metrics, stop, running }
    }

    /// Tells it to end, and waits until it has.
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.join_all().await;
    }

    /// What is scraped of it.
    fn page(&self) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        self.metrics.register(&mut registry);
        encode(&mut page, &registry).unwrap();
        page
    }

    /// The value of the series, which is a whole number, once this replica leads and shows it.
    async fn shown(&self, series: &str) -> i64 {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let value = |line: &str| line.strip_prefix(series)?.trim().trim_end_matches(".0").parse().ok();
        let found = async {
            loop {
                again.tick().await;
                if let Some(value) = self.page().lines().find_map(value) {
                    return value;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the series is shown in time")
    }
}

/// The account that is stored.
async fn account(world: &World) -> Value {
    let maps: Api<core::ConfigMap> = Api::default_namespaced(world.cluster.client.clone());
    let map = maps.get("berth-usage").await.unwrap();
    serde_json::from_str(&map.data.unwrap()["account.json"]).unwrap()
}

/// MiB-seconds of the row of these names.
fn row(account: &Value, rows: &str, names: &[&str]) -> Option<i64> {
    let rows = account[rows].as_array()?;
    let row = rows.iter().find(|row| names.iter().enumerate().all(|(at, name)| row[at] == *name))?;
    row[names.len()].as_i64()
}

fn until(account: &Value) -> i64 {
    account["countedUntil"].as_str().unwrap().parse::<Timestamp>().unwrap().as_second()
}

fn bound(pod: &core::Pod) -> i64 {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut scheduled = conditions.filter(|condition| condition.type_ == "PodScheduled");
    scheduled.next().unwrap().last_transition_time.as_ref().unwrap().0.as_second()
}

/// What the leader shows from the beginning.
const UNTIL: &str = "berth_usage_counted_until_timestamp_seconds ";
const SERIES: &str = "berth_usage_gpu_memory_byte_seconds_total{namespace=\"default\"}";

pub(crate) async fn a_leader_counts_on_where_the_last_one_stopped(floor: Floor) {
    let Some(world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let clock = clock(&world).await;
    let first = Replica::start(&world, clock, "first");
    first.shown(UNTIL).await;
    let second = Replica::start(&world, clock, "second");
    let mut share = pod("one", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": MEMORY.to_string()}));
    share["metadata"]["labels"] = json!({"team": "vision"});
    world.create(share).await;
    let bound = bound(&world.running("one").await);
    let one = ["default", "Pod", "one"];

    // Its last write is made before it gives the Lease back.
    first.stop().await;
    let stored = account(&world).await;
    assert_eq!(row(&stored, "workloads", &one).unwrap_or(0), MEMORY * (until(&stored) - bound).max(0));

    // The next one counts on from there, even where somebody has deleted the account meanwhile.
    second.shown(UNTIL).await;
    let maps: Api<core::ConfigMap> = Api::default_namespaced(world.cluster.client.clone());
    maps.delete("berth-usage", &DeleteParams::default()).await.unwrap();
    world.create(pod("two", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": MEMORY.to_string()}))).await;
    world.running("two").await;
    until_second(clock, bound + 2).await;
    second.stop().await;
    let stored = account(&world).await;
    let counted = row(&stored, "workloads", &one).unwrap();
    assert_eq!(counted, MEMORY * (until(&stored) - bound));
    assert_eq!(row(&stored, "labels", &["team", "vision"]), Some(counted));
    let all = row(&stored, "namespaces", &["default"]).unwrap();
    assert_eq!(all - counted, row(&stored, "workloads", &["default", "Pod", "two"]).unwrap_or(0));

    // A process that is started anew shows it as it was, and counts what ends to its end.
    let third = Replica::start(&world, clock, "third");
    assert_eq!(third.shown(SERIES).await, all * 1_048_576);
    world.delete_and_await(&["one"]).await;
    third.stop().await;
    let ended = clock.now().as_second();
    let counted_before = counted;
    let counted = row(&account(&world).await, "workloads", &one).unwrap();
    assert!((counted_before..=MEMORY * (ended - bound)).contains(&counted), "{counted} MiB s");
    assert_eq!(counted % MEMORY, 0, "whole seconds");
    world.agents_are_content();
}

pub(crate) async fn an_account_that_cannot_be_read_is_left_as_it_is_and_pods_are_placed(floor: Floor) {
    let Some(world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let maps: Api<core::ConfigMap> = Api::default_namespaced(world.cluster.client.clone());
    let odd = json!({"metadata": {"name": "berth-usage"}, "data": {"account.json": "{\"countedUntil\": 7}"}});
    let odd: core::ConfigMap = serde_json::from_value(odd).unwrap();
    let odd = maps.create(&PostParams::default(), &odd).await.unwrap();
    let replica = Replica::start(&world, clock(&world).await, "one");
    world.create(pod("one", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": MEMORY.to_string()}))).await;
    world.running("one").await;
    let page = replica.page();
    assert!(!page.lines().any(|line| line.starts_with("berth_usage_")), "{page}");
    replica.stop().await;
    assert_eq!(maps.get("berth-usage").await.unwrap(), odd);
    world.agents_are_content();
}

/// A clock that shows what the API server's shows.
async fn clock(world: &World) -> Clock {
    let maps: Api<core::ConfigMap> = Api::default_namespaced(world.cluster.client.clone());
    let map: core::ConfigMap = serde_json::from_value(json!({"metadata": {"name": "now"}})).unwrap();
    let created = maps.create(&PostParams::default(), &map).await.unwrap().metadata.creation_timestamp;
    Clock::starting_at(created.unwrap().0)
}

/// Returns once the clock shows this second.
async fn until_second(clock: Clock, second: i64) {
    tokio::time::sleep_until(clock.instant(Timestamp::from_second(second).unwrap())).await;
}
