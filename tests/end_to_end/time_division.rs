//! Nodes of revocable zones: pods are placed while a zone is open, and leave within their budgets when it has closed.
//!
//! No window closes while a case runs: Berth is started with settings by which the zone is open, and again with others.

#![allow(clippy::disallowed_methods, reason = "a window that is closed depends on the time of the day")]

use berth::config::Config;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::api::{core::v1 as core, policy::v1::PodDisruptionBudget};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    deaths::{Death, Moment, Write},
    groups::{VOLCANO, pod_group},
    machines::hami_node,
    support::floor::Floor,
    world::{World, node_of, pod},
};

/// The zone is always open.
const OPEN: &str = "0:00-0:00";

fn config(window: &str) -> Config {
    let file = json!({"dialects": {"volcano": {"arguments": {
        "tdm.revocable-zone.rz1": window, "tdm.evict.period": "1s",
    }}}});
    Config::parse(&file.to_string(), "berth.yaml").unwrap().0
}

/// A window that opens some hours from now.
fn closed() -> String {
    let hour = |hours| {
        let time = Timestamp::now() + SignedDuration::from_hours(hours);
        time.to_zoned(TimeZone::UTC).strftime("%H:00").to_string()
    };
    format!("{}-{}", hour(6), hour(8))
}

/// A cluster of one node, which is in zone `rz1`; Berth is yet to start.
async fn lent(floor: Floor) -> Option<World> {
    let world = World::without_berth(floor, vec![hami_node("n1", 1)]).await?;
    let zone = json!({"metadata": {"labels": {"volcano.sh/revocable-zone": "rz1"}}});
    world.patch_node("n1", zone).await;
    Some(world)
}

fn share(name: &str, annotations: &Value) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["metadata"]["annotations"] = annotations.clone();
    pod["metadata"]["labels"] = json!({"app": name});
    pod
}

fn leaves(pod: &core::Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Who is neither gone nor on the way out.
async fn staying(world: &World, names: &[&str]) -> Vec<String> {
    let mut staying = Vec::new();
    for name in names {
        if world.pods().get_opt(name).await.unwrap().is_some_and(|pod| !leaves(&pod)) {
            staying.push((*name).to_owned());
        }
    }
    staying
}

pub(crate) async fn pods_leave_a_closed_zone_within_the_budget_of_their_job_across_a_kill(floor: Floor) {
    for moment in [Moment::Before, Moment::After] {
        let Some(mut world) = lent(floor).await else { return };
        world.start_berth_with(&config(OPEN));
        let groups = world.serve_groups(floor, VOLCANO).await;
        groups.create(&PostParams::default(), &pod_group(VOLCANO, "train", &json!({}))).await.unwrap();
        let job = json!({
            "volcano.sh/preemptable": "true", "scheduling.k8s.io/group-name": "train",
            "volcano.sh/jdb-min-available": "2",
        });
        let names = ["a", "b", "c"];
        for name in names {
            world.create(share(name, &job)).await;
            world.running(name).await;
        }
        // A pod that says nothing of preemption stays; it was there before the node was lent out.
        let mut agent = share("agent", &json!({}));
        agent["spec"]["nodeName"] = json!("n1");
        agent["spec"]["containers"][0]["resources"] = json!({});
        world.create(agent).await;
        world.kill_berth().await;

        let closed = config(&closed());
        let death = Death::at(world.cluster.client.clone(), Write::Eviction, moment);
        world.start_binder(death.client(), &closed);
        death.reached().await;
        world.kill_berth().await;
        let expected = if moment == Moment::Before { 3 } else { 2 };
        assert_eq!(staying(&world, &names).await.len(), expected, "{moment:?}");

        world.start_binder(world.cluster.client.clone(), &closed);
        if moment == Moment::Before {
            // The round that was cut off comes again.
            let mut again = tokio::time::interval(std::time::Duration::from_millis(20));
            while staying(&world, &names).await.len() == 3 {
                again.tick().await;
            }
        }
        let left = staying(&world, &names).await;
        assert_eq!(left.len(), 2, "{moment:?}");
        // Both have been looked at in a round of the restarted binder, and their job spares no more.
        for name in &left {
            let event = world.event_when(name, "EvictionPostponed").await;
            let note = event.message.unwrap();
            assert!(
                note.starts_with("Not evicted yet from node n1: revocable zone rz1 is closed until "),
                "{note}"
            );
        }
        assert_eq!(staying(&world, &names).await, left, "{moment:?}");
        assert_eq!(staying(&world, &["agent"]).await.len(), 1);
        world.agents_are_content();
    }
}

pub(crate) async fn a_disruption_budget_keeps_a_pod_until_it_allows_its_eviction(floor: Floor) {
    let Some(mut world) = lent(floor).await else { return };
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.cluster.client.clone());
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    // On neither floor a controller keeps the budget's status.
    let allow = async |disruptions: i32| {
        let status = json!({"status": {
            "observedGeneration": 1, "disruptionsAllowed": disruptions, "expectedPods": 1,
            "currentHealthy": 1, "desiredHealthy": 1,
        }});
        budgets.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    };
    allow(0).await;
    world.start_berth_with(&config(OPEN));
    world.create(share("web", &json!({"volcano.sh/preemptable": "true"}))).await;
    world.running("web").await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    world.pods().patch_status("web", &PatchParams::default(), &Patch::Strategic(ready)).await.unwrap();
    world.kill_berth().await;
    world.start_berth_with(&config(&closed()));
    let event = world.event_when("web", "EvictionPostponed").await;
    let note = event.message.unwrap();
    assert!(note.ends_with("; PodDisruptionBudget web does not allow another eviction now"), "{note}");
    assert_eq!(staying(&world, &["web"]).await.len(), 1);

    allow(1).await;
    let event = world.event_when("web", "RevocableZoneClosed").await;
    assert!(event.message.unwrap().starts_with("Evicted from node n1: revocable zone rz1 is closed until "));
    assert_eq!(staying(&world, &["web"]).await, Vec::<String>::new());
    world.agents_are_content();
}

/// A pod that names the controller of this kind and uid.
fn owned(mut pod: Value, (version, kind): (&str, &str), uid: &str) -> Value {
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": version, "kind": kind, "name": "n1", "uid": uid, "controller": true}]);
    pod
}

/// Four pods of another namespace name the controller of a job that can spare one of its own.
pub(crate) async fn pods_of_another_user_spend_no_budget_of_a_job(floor: Floor) {
    let Some(mut world) = lent(floor).await else { return };
    let namespaces: Api<core::Namespace> = Api::all(world.cluster.client.clone());
    let tenant = serde_json::from_value(json!({"metadata": {"name": "tenant"}})).unwrap();
    namespaces.create(&PostParams::default(), &tenant).await.unwrap();
    let theirs: Api<core::Pod> = Api::namespaced(world.cluster.client.clone(), "tenant");
    world.start_berth_with(&config(OPEN));
    let marked = json!({"volcano.sh/preemptable": "true"});
    let job = json!({"volcano.sh/preemptable": "true", "volcano.sh/jdb-min-available": "2"});
    let names = ["a", "b", "c"];
    let forged = ["t1", "t2", "t3", "t4"];
    let mut all = Vec::new();
    for name in names {
        world.create(owned(share(name, &job), ("batch/v1", "Job"), "uid-of-train")).await;
        all.push((world.pods(), name));
    }
    for name in forged {
        let pod = owned(share(name, &marked), ("batch/v1", "Job"), "uid-of-train");
        theirs.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        all.push((theirs.clone(), name));
    }
    let mut again = tokio::time::interval(std::time::Duration::from_millis(20));
    for (pods, name) in &all {
        while pods.get(name).await.unwrap().status.and_then(|status| status.phase).as_deref()
            != Some("Running")
        {
            again.tick().await;
        }
    }
    world.kill_berth().await;
    world.start_berth_with(&config(&closed()));
    // A job without a budget loses one pod in a round, until none is left.
    for name in forged {
        while theirs.get_opt(name).await.unwrap().is_some_and(|pod| !leaves(&pod)) {
            again.tick().await;
        }
    }
    assert_eq!(staying(&world, &names).await.len(), 2);
    world.agents_are_content();
}

/// What a user writes on a pod that runs in an open zone does not keep it there.
pub(crate) async fn a_pod_that_takes_back_its_mark_leaves_a_closed_zone(floor: Floor) {
    let Some(mut world) = lent(floor).await else { return };
    world.start_berth_with(&config(OPEN));
    let changes = [
        ("mark", json!({"annotations": {"volcano.sh/preemptable": "false"}})),
        ("no-mark", json!({"annotations": {"volcano.sh/preemptable": null}})),
        ("budget", json!({"annotations": {"volcano.sh/jdb-min-available": "100%"}})),
        ("daemon", owned(json!({"metadata": {}}), ("apps/v1", "DaemonSet"), "u1")["metadata"].clone()),
        ("node", owned(json!({"metadata": {}}), ("v1", "Node"), "u2")["metadata"].clone()),
    ];
    for (name, change) in &changes {
        world.create(share(name, &json!({"volcano.sh/preemptable": "true"}))).await;
        let pod = world.running(name).await;
        let zone = pod.metadata.annotations.unwrap().remove("assigned.berth.dev/revocable-zone");
        assert_eq!(zone.as_deref(), Some("rz1"));
        let change = Patch::Merge(json!({"metadata": change}));
        world.pods().patch(name, &PatchParams::default(), &change).await.unwrap();
    }
    world.kill_berth().await;
    world.start_berth_with(&config(&closed()));
    for (name, _) in &changes {
        let event = world.event_when(name, "RevocableZoneClosed").await;
        assert!(
            event.message.unwrap().starts_with("Evicted from node n1: revocable zone rz1 is closed until ")
        );
    }
    assert_eq!(staying(&world, &changes.map(|(name, _)| name)).await, Vec::<String>::new());
    world.agents_are_content();
}

pub(crate) async fn a_zone_that_opens_takes_the_pod_that_waits_for_it(floor: Floor) {
    let Some(mut world) = lent(floor).await else { return };
    world.start_berth_with(&config(&closed()));
    world.create(share("p", &json!({"volcano.sh/preemptable": "true"}))).await;
    let why = world.unschedulable("p").await;
    assert!(
        why.starts_with("0/1 nodes are available: 1 node(s) in revocable zone rz1 closed until "),
        "{why}"
    );
    world.kill_berth().await;
    world.start_berth_with(&config(OPEN));
    assert_eq!(node_of(&world.running("p").await), "n1");
    world.agents_are_content();
}
