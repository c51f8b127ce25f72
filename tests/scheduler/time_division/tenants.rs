//! What users write on their own pods: it keeps none of them on a node whose zone has closed, and moves no pod of another user.

use std::sync::Arc;

use berth::{
    config::Config,
    scheduling::{Event, ObjectChange, model::kind::Kind, world::object::Object},
};
use serde_json::{Value, json};

use super::{
    super::{
        machine::{Machine, bound},
        neighbours::hami_node,
    },
    annotated, config, lent, preemptable,
    rounds::{evictions, lent_out, names},
};

const MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";

/// A running pod of a user on node `n1`, with these annotations beside the mark that it is preemptable.
fn running(user: &str, name: &str, annotations: &Value) -> Value {
    let mut pod = bound(annotated(name, &json!({})), "n1", json!({"volcano.sh/preemptable": "true"}));
    pod["metadata"]["namespace"] = json!(user);
    for (key, value) in annotations.as_object().unwrap() {
        pod["metadata"]["annotations"][key] = value.clone();
    }
    pod["status"]["phase"] = json!("Running");
    pod
}

/// The pod, which names the controller of this kind, name and uid.
fn owned(mut pod: Value, (version, kind): (&str, &str), name: &str, uid: &str) -> Value {
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    pod
}

const JOB: (&str, &str) = ("batch/v1", "Job");
const DAEMON_SET: (&str, &str) = ("apps/v1", "DaemonSet");

/// A pod of the job `train` of the user `victim`, three of whose four pods must run.
fn victim(name: &str) -> Value {
    owned(running("victim", name, &json!({MIN_AVAILABLE: "3"})), JOB, "train", "uid-of-train")
}

const VICTIMS: [&str; 4] = ["v1", "v2", "v3", "v4"];

fn with_victims(others: impl IntoIterator<Item = Value>) -> Vec<Value> {
    VICTIMS.map(victim).into_iter().chain(others).collect()
}

/// The pods that are evicted in the round that comes when the zone closes.
fn evicted(pods: &[Value]) -> Vec<String> {
    first_round(&mut lent_out("7:00-9:00", pods))
}

fn first_round(machine: &mut Machine) -> Vec<String> {
    machine.pass(3600);
    names(&evictions(machine).0).into_iter().map(str::to_owned).collect()
}

fn of_victims(evicted: Vec<String>) -> Vec<String> {
    evicted.into_iter().filter(|name| VICTIMS.contains(&&**name)).collect()
}

#[test]
fn pods_that_name_the_controller_of_another_namespace_count_in_none_of_its_jobs() {
    let forge = |name: &str| owned(running("tenant", name, &json!({})), JOB, "train", "uid-of-train");
    // Four more that run would leave all four of the job to spare.
    assert_eq!(of_victims(evicted(&with_victims(["t1", "t2", "t3", "t4"].map(forge)))), ["v1"]);
    let strict = owned(running("tenant", "t", &json!({MIN_AVAILABLE: "1000"})), JOB, "train", "uid-of-train");
    assert_eq!(of_victims(evicted(&with_victims([strict]))), ["v1"]);
}

#[test]
fn a_uid_that_is_written_like_a_group_or_like_another_pod_makes_no_job_with_either() {
    let grouped = |name: &str| {
        let annotations = json!({"scheduling.k8s.io/group-name": "train", MIN_AVAILABLE: "2"});
        running("victim", name, &annotations)
    };
    let forge = |name: &str, uid: &str| owned(running("tenant", name, &json!({})), JOB, "train", uid);
    let mut pods =
        vec![grouped("g1"), grouped("g2"), forge("t1", "victim/train"), forge("t2", "victim/train")];
    assert!(!evicted(&pods).iter().any(|name| name.starts_with('g')));
    pods = vec![running("victim", "alone", &json!({})), forge("t1", "alone")];
    // Each is a job of its own, without a budget.
    assert_eq!(evicted(&pods), ["t1", "alone"]);
}

#[test]
fn a_pod_that_waits_or_leaves_states_no_budget_for_the_others_of_its_job() {
    let strict = |name: &str| {
        let mut pod = victim(name);
        pod["metadata"]["annotations"][MIN_AVAILABLE] = json!("1000");
        pod
    };
    let mut leaving = strict("l");
    leaving["metadata"]["deletionTimestamp"] = json!("2027-01-15T12:00:00Z");
    let mut waiting = strict("w");
    waiting["spec"]["nodeName"] = Value::Null;
    waiting["spec"]["schedulingGates"] = json!([{"name": "never"}]);
    waiting["status"]["phase"] = json!("Pending");
    for pod in [leaving, waiting] {
        assert_eq!(evicted(&with_victims([pod.clone()])), ["v1"], "{pod}");
    }
    // One that stays states one.
    assert_eq!(evicted(&with_victims([strict("s")])), Vec::<String>::new());
}

#[test]
fn a_budget_that_can_not_be_read_or_forbids_everything_is_none() {
    for budget in ["100%", "0", "-1", "all", "", "5%0", "99999999999"] {
        for key in [MIN_AVAILABLE, "volcano.sh/jdb-max-unavailable"] {
            let pods = ["a", "b"].map(|name| {
                owned(running("tenant", name, &json!({key: budget})), JOB, "train", "uid-of-train")
            });
            // A job without a budget loses one pod in a round.
            assert_eq!(evicted(&pods), ["a"], "{key}: {budget:?}");
        }
    }
}

#[test]
fn an_owner_keeps_a_pod_that_berth_has_placed_on_no_node() {
    let pod = |name| running("tenant", name, &json!({}));
    let mut machine = lent_out(
        "7:00-9:00",
        &[
            owned(pod("daemon"), DAEMON_SET, "agents", "u1"),
            owned(pod("forged-daemon"), DAEMON_SET, "none", "u2"),
            owned(pod("forged-node"), ("v1", "Node"), "n1", "n1"),
            owned(pod("made-up"), ("example.com/v1", "DaemonSet"), "agents", "u3"),
        ],
    );
    let set = Object::DaemonSet("tenant/agents".into(), "u1".into());
    machine.tell(Event::Object(ObjectChange::Listed(Kind::DaemonSet, vec![set])));
    assert_eq!(first_round(&mut machine), ["daemon", "forged-daemon", "forged-node", "made-up"]);
}

#[test]
fn of_pods_of_another_scheduler_those_of_a_daemon_set_that_exists_stay() {
    let pod = |user: &str, name: &str, version: &str, uid: &str| {
        let mut pod = running(user, name, &json!({}));
        pod["spec"]["schedulerName"] = json!("default-scheduler");
        owned(pod, (version, "DaemonSet"), "agents", uid)
    };
    let pods = [
        pod("tenant", "another-namespace", "apps/v1", "u1"),
        pod("victim", "another-uid", "apps/v1", "u2"),
        pod("victim", "another-group", "example.com/v1", "u1"),
        pod("victim", "own", "apps/v1", "u1"),
    ];
    let mut machine = lent_out("7:00-9:00", &pods);
    machine.pass(3600);
    // Until they are listed, any may exist.
    assert_eq!(names(&evictions(&mut machine).0), ["another-group"]);
    let set = Object::DaemonSet("victim/agents".into(), Arc::from("u1"));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::DaemonSet, vec![set])));
    machine.pass(60);
    assert_eq!(names(&evictions(&mut machine).0), ["another-namespace", "another-uid"]);
    machine.tell(Event::Object(ObjectChange::Gone(Kind::DaemonSet, "victim/agents".into())));
    machine.pass(60);
    assert_eq!(names(&evictions(&mut machine).0), ["own"]);
}

#[test]
fn a_pod_is_that_of_a_file_by_its_mark_and_the_node_that_it_is_on() {
    let mirror = json!({"kubernetes.io/config.mirror": "1"});
    let pods = [
        owned(running("kube-system", "file", &mirror), ("v1", "Node"), "n1", "n1"),
        owned(running("tenant", "no-mark", &json!({})), ("v1", "Node"), "n1", "n1"),
        owned(running("tenant", "other-node", &mirror), ("v1", "Node"), "n2", "n2"),
        owned(running("tenant", "other-kind", &mirror), JOB, "n1", "uid-of-n1"),
        running("tenant", "without-owner", &mirror),
    ];
    assert_eq!(evicted(&pods), ["no-mark", "other-kind", "other-node", "without-owner"]);
}

#[test]
fn what_a_pod_was_bound_as_counts_and_not_what_it_says_later() {
    let bound_as = json!({"assigned.berth.dev/revocable-zone": "rz1"});
    let mut pods = vec![];
    for (name, said) in
        [("silent", Value::Null), ("taken-back", json!("false")), ("unreadable", json!("no!"))]
    {
        let mut pod = running("tenant", name, &bound_as);
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = said;
        if pod["metadata"]["annotations"]["volcano.sh/preemptable"].is_null() {
            pod["metadata"]["annotations"].as_object_mut().unwrap().remove("volcano.sh/preemptable");
        }
        pods.push(pod);
    }
    assert_eq!(evicted(&pods), ["silent", "taken-back", "unreadable"]);
}

#[test]
fn the_binding_in_a_zone_states_the_zone() {
    let zone_of = |config: &Config, node: Value| {
        let mut machine = Machine::new(config, &[node], &[]);
        machine.show_pod(&preemptable("p"));
        machine.run();
        machine.zone_of("p")
    };
    assert_eq!(zone_of(&config("7:00-9:00"), lent("n1")).as_deref(), Some("rz1"));
    assert_eq!(zone_of(&config("7:00-9:00"), hami_node("n1", "a")), None);
    assert_eq!(zone_of(&Config::default(), lent("n1")), None);
}
