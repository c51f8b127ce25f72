//! Pods whose place depends on other nodes and their pods: where they go, what is said while they wait, and which change ends the wait.

use std::sync::Arc;

use berth::{
    config::Config,
    scheduling::{Effect, Event, ObjectChange, PodChange, model::kind::Kind, world::object::Object},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, counted, node, pod};

/// A node with one free card, in a zone.
pub(super) fn hami_node(name: &str, zone: &str) -> Value {
    let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 10, "devmem": 16000, "devcore": 100,
        "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
    let mut node = node(name, &json!({"hami.io/node-nvidia-register": card.to_string()}));
    node["metadata"]["labels"] = json!({"zone": zone, "kubernetes.io/hostname": name});
    node
}

/// A pod that asks for a share, with this label and these further fields of its spec.
pub(super) fn share(name: &str, app: &str, spec: &Value) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["metadata"]["labels"] = json!({"app": app});
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// A pod of another scheduler without shares, bound to a node.
pub(super) fn other(name: &str, app: &str, node: &str, spec: &Value) -> Value {
    let mut pod = bound(share(name, app, spec), node, json!({}));
    pod["spec"]["schedulerName"] = json!("default-scheduler");
    pod["spec"]["containers"][0]["resources"] = json!({});
    pod["status"]["phase"] = json!("Running");
    pod
}

fn term(app: &str) -> Value {
    json!([{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}])
}

pub(super) fn near(app: &str) -> Value {
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
}

pub(super) fn away(app: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term(app)}}})
}

pub(super) fn spread(app: &str) -> Value {
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}}}]})
}

/// Two nodes in two zones, and these pods on them.
fn machine(pods: &[Value]) -> Machine {
    Machine::new(&Config::default(), &[hami_node("n1", "a"), hami_node("n2", "b")], pods)
}

/// Shows a pod that is to be placed, and expects that it waits with these counted reasons.
#[track_caller]
fn waits(machine: &mut Machine, pod: &Value, expected: &str) {
    machine.show_pod(pod);
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let told = effects.iter().find_map(|effect| match effect {
        Effect::TellUnschedulable { reason, .. } => Some(counted(reason)),
        _ => None,
    });
    assert_eq!(told, Some(format!("0/2 nodes are available: {expected}.")));
}

/// Expects that what has happened lets the pod go to this node.
#[track_caller]
fn goes(machine: &mut Machine, pod: &str, node: &str) {
    assert_eq!(machine.run().1, [(pod.to_owned(), node.to_owned())]);
}

/// Expects that what has happened wakes no pod.
#[track_caller]
fn stays(machine: &mut Machine) {
    assert_eq!(machine.run().1, []);
}

const AWAY: &str = "2 node(s) didn't match pod anti-affinity rules";
const KEPT_AWAY: &str = "2 node(s) didn't satisfy existing pods anti-affinity rules";
const NEAR: &str = "2 node(s) didn't match pod affinity rules";
const SKEWED: &str = "1 node(s) didn't match pod topology spread constraints";

#[test]
fn replicas_that_avoid_each_other_go_to_different_zones_and_the_next_waits_for_one_to_go() {
    let mut machine = machine(&[]);
    for name in ["one", "two"] {
        machine.show_pod(&share(name, "web", &away("web")));
    }
    let mut zones = machine.run().1;
    zones.sort();
    assert_eq!(zones.iter().map(|(pod, _)| pod.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_ne!(zones[0].1, zones[1].1);
    waits(&mut machine, &share("three", "web", &away("web")), AWAY);
    machine.tell(Event::Pod(PodChange::Gone("unrelated".into())));
    stays(&mut machine);
    let (gone, node) = zones[0].clone();
    machine.tell(Event::Pod(PodChange::Ended(gone.as_str().into())));
    goes(&mut machine, "three", &node);
}

#[test]
fn the_anti_affinity_of_a_pod_of_another_scheduler_keeps_a_share_pod_away() {
    let quiet = |node: &str, name: &str| other(name, "db", node, &away("train"));
    let mut machine = machine(&[quiet("n1", "db-1"), quiet("n2", "db-2")]);
    waits(&mut machine, &share("train", "train", &json!({})), KEPT_AWAY);
    let mut relabelled = quiet("n2", "db-2");
    relabelled["metadata"]["labels"] = json!({"app": "other"});
    machine.show_pod(&relabelled);
    stays(&mut machine);
    machine.tell(Event::Pod(PodChange::Ended("db-2".into())));
    goes(&mut machine, "train", "n2");
}

#[test]
fn a_pod_that_must_be_near_another_waits_until_that_is_there() {
    let mut machine = machine(&[]);
    waits(&mut machine, &share("client", "client", &near("cache")), NEAR);
    machine.show_pod(&other("noise", "noise", "n1", &json!({})));
    stays(&mut machine);
    machine.show_pod(&other("cache", "cache", "n2", &json!({})));
    goes(&mut machine, "client", "n2");
}

#[test]
fn the_first_pod_of_a_group_needs_no_other() {
    let mut machine = machine(&[]);
    machine.show_pod(&share("first", "ring", &near("ring")));
    let (pod, node) = machine.run().1.remove(0);
    assert_eq!(pod, "first");
    let mut first = bound(share("first", "ring", &near("ring")), &node, json!({}));
    first["status"]["phase"] = json!("Running");
    machine.show_pod(&first);
    machine.show_pod(&share("second", "ring", &near("ring")));
    goes(&mut machine, "second", &node);
}

#[test]
fn a_namespace_that_gets_the_label_lets_the_pod_near_its_pods() {
    let mut cache = other("cache", "cache", "n1", &json!({}));
    cache["metadata"]["namespace"] = json!("infra");
    let mut machine = machine(&[cache]);
    let mut affinity = near("cache");
    let term = &mut affinity["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    term["namespaceSelector"] = json!({"matchLabels": {"shared": "yes"}});
    waits(&mut machine, &share("client", "client", &affinity), NEAR);
    let labelled =
        Object::Namespace("infra".into(), Arc::new([("shared".to_owned(), "yes".to_owned())].into()));
    machine.tell(Event::Object(ObjectChange::Seen(labelled)));
    goes(&mut machine, "client", "n1");
    machine.tell(Event::Object(ObjectChange::Gone(Kind::Namespace, "infra".into())));
    stays(&mut machine);
}

#[test]
fn a_node_that_joins_the_domain_is_tried() {
    let mut machine = machine(&[other("cache", "cache", "n1", &json!({}))]);
    let mut full = hami_node("n1", "a");
    full["metadata"]["annotations"] = json!({});
    machine.show_node(&full);
    let counted =
        "1 node(s) didn't match pod affinity rules, 1 node(s) had no GPUs of the kind that the Pod asks for";
    waits(&mut machine, &share("client", "client", &near("cache")), counted);
    machine.show_node(&hami_node("n2", "a"));
    goes(&mut machine, "client", "n2");
}

#[test]
fn pods_are_spread_and_the_next_waits_for_the_other_zone() {
    let mut machine = machine(&[other("web-0", "web", "n1", &json!({}))]);
    machine.show_pod(&share("web-1", "web", &spread("web")));
    goes(&mut machine, "web-1", "n2");
    let mut cordoned = hami_node("n2", "b");
    cordoned["spec"]["unschedulable"] = json!(true);
    machine.show_node(&cordoned);
    machine.show_pod(&share("web-2", "web", &spread("web")));
    goes(&mut machine, "web-2", "n1");
    let mut running = bound(share("web-2", "web", &spread("web")), "n1", json!({}));
    running["status"]["phase"] = json!("Running");
    machine.show_pod(&running);
    waits(
        &mut machine,
        &share("web-3", "web", &spread("web")),
        &format!("{SKEWED}, 1 node(s) were unschedulable"),
    );
    // One more in the zone that has the fewest makes room in the other.
    machine.show_pod(&other("web-4", "web", "n2", &json!({})));
    goes(&mut machine, "web-3", "n1");
}

#[test]
fn a_pod_waits_until_the_port_of_the_node_is_free() {
    let port = json!({"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]});
    let holders = ["n1", "n2"].map(|node| {
        let mut pod = other(&format!("{node}-port"), "port", node, &json!({}));
        pod["spec"]["containers"] = port["containers"].clone();
        pod
    });
    let mut machine = machine(&holders);
    let mut pod = share("web", "web", &json!({}));
    pod["spec"]["containers"][0]["ports"] = port["containers"][0]["ports"].clone();
    waits(&mut machine, &pod, "2 node(s) didn't have free ports for the requested pod ports");
    machine.tell(Event::Pod(PodChange::Ended("n2-port".into())));
    goes(&mut machine, "web", "n2");
}
