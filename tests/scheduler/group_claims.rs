//! Pods that share a claim of devices through their PodGroup: it gets its devices once, and its status names the PodGroup.

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    object::resource_claim::AllocationResult,
    scheduling::{
        Effect, Event, ObjectChange, PodChange, Setback, WriteOutcome,
        effect::PrebindWrite,
        model::kind::{Kind, PodGroupKind},
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    device_claims::{
        answer, asked, bindings, device_of, given, later, listed, slice, two_turns, writes, written,
    },
    machine::{Machine, bound, node, parsed, placed, pod, told},
};

/// `spec` of the PodGroup `train`: so many pods are placed together, and one claim is made for them.
fn gang(least: usize) -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": least}},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})
}

/// The same of pods that are placed one by one.
fn basic() -> Value {
    json!({"schedulingPolicy": {"basic": {}}, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})
}

/// The PodGroup `train`.
fn group(spec: &Value) -> Object {
    let metadata = json!({"name": "train", "namespace": "default", "uid": "uid-train"});
    pod_group(PodGroupKind::Kubernetes, &parsed(&json!({"metadata": metadata, "spec": spec})))
}

/// Nodes with a device each, and the PodGroup `train`.
fn machine(nodes: &[&str], spec: &Value) -> Machine {
    let mut machine = without_groups(nodes);
    list_group(&mut machine, spec);
    machine
}

fn list_group(machine: &mut Machine, spec: &Value) {
    let kind = Kind::PodGroup(PodGroupKind::Kubernetes);
    machine.tell(Event::Object(ObjectChange::Listed(kind, vec![group(spec)])));
}

/// The same before PodGroups are listed.
fn without_groups(nodes: &[&str]) -> Machine {
    let named: Vec<Value> = nodes.iter().map(|name| node(name, &json!({}))).collect();
    let config = Config::default();
    let mut machine = Machine::begin_with(&config, config.scheduler_settings(), &named, &[]);
    for kind in Kind::STORAGE {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine.serve_none(Kind::DEVICES_BY_TYPE);
    let others = Kind::POD_GROUPS.iter().filter(|kind| **kind != Kind::PodGroup(PodGroupKind::Kubernetes));
    machine.serve_none(others);
    listed(&mut machine);
    for name in nodes {
        machine.tell(slice(name, 1));
    }
    machine
}

/// The claim that was made for a PodGroup with this uid, with this status.
fn made_for(group: &str, version: u32, status: &Value) -> Event {
    let owner = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "train", "uid": group,
        "controller": true});
    let claim = json!({
        "metadata": {"name": "train-gpu", "namespace": "default", "uid": "uid-claim", "ownerReferences": [owner],
            "resourceVersion": version.to_string(), "finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": status,
    });
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
}

fn claim(version: u32, status: &Value) -> Event {
    made_for("uid-train", version, status)
}

/// A pod of the PodGroup that uses its claim.
fn member(name: &str) -> Value {
    let mut pod = pod(name, &json!({"cpu": "1"}));
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "gpus"}]);
    pod["status"]["resourceClaimStatuses"] = json!([{"name": "gpu", "resourceClaimName": "train-gpu"}]);
    pod
}

fn user() -> Value {
    json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "uid-train"})
}

/// The status of the claim once it has these devices and the PodGroup is its user.
fn in_use(allocation: &AllocationResult) -> Value {
    json!({"allocation": serde_json::to_value(allocation).unwrap(), "reservedFor": [user()]})
}

/// For which users the claim is written, by the uids that are written for pod `p`.
fn users(effects: &[Effect]) -> Vec<String> {
    let user = |write: PrebindWrite| match write {
        PrebindWrite::ReserveClaim { consumer, .. } | PrebindWrite::ReleaseClaim { consumer, .. } => {
            Some(consumer.uid(&"p".into()).to_string())
        }
        _ => None,
    };
    writes(effects).into_iter().filter_map(user).collect()
}

fn nodes_of(effects: &[Effect]) -> Vec<String> {
    bindings(effects).into_iter().map(|(_, node)| node).collect()
}

#[test]
fn the_claim_of_a_gang_gets_its_devices_once_and_all_pods_go_where_they_are() {
    let mut machine = machine(&["n1", "n2"], &gang(3));
    machine.tell(claim(1, &json!({})));
    for name in ["p", "q", "r"] {
        machine.show_pod(&member(name));
    }
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["give train-gpu"], "one write for three pods");
    assert_eq!(users(&effects), ["uid-train"]);
    let allocation = given(&effects);
    answer(&mut machine, &effects, &written(2));
    assert_eq!(bindings(&machine.settle()), [], "what was written is seen first");
    machine.tell(claim(2, &in_use(&allocation)));
    let (effects, bound) = machine.run();
    assert_eq!(asked(&effects), [""; 0], "the PodGroup is the user for each of them");
    let node = &*allocation.devices.results[0].pool;
    assert_eq!(bound, placed(&[("p", node), ("q", node), ("r", node)]));
}

#[test]
fn a_pod_that_is_placed_alone_uses_the_claim_that_its_group_has_already() {
    let mut machine = machine(&["n1", "n2"], &basic());
    machine.tell(claim(3, &in_use(&device_of("n2"))));
    machine.show_pod(&member("p"));
    let effects = machine.settle();
    assert_eq!((asked(&effects), nodes_of(&effects)), (vec![], vec!["n2".to_owned()]));
}

#[test]
fn the_group_is_added_once_to_the_users_of_a_claim_that_has_its_devices() {
    let mut machine = machine(&["n1", "n2"], &gang(3));
    let allocation = device_of("n1");
    let status = |users: Value| {
        let allocation = serde_json::to_value(&allocation).unwrap();
        json!({"allocation": allocation, "reservedFor": users})
    };
    machine.tell(claim(3, &status(json!([]))));
    for name in ["p", "q", "r"] {
        machine.show_pod(&member(name));
    }
    let effects = machine.settle();
    assert_eq!(
        (asked(&effects), users(&effects)),
        (vec!["join train-gpu".to_owned()], vec!["uid-train".to_owned()])
    );
    answer(&mut machine, &effects, &written(4));
    machine.tell(claim(4, &status(json!([user()]))));
    let (effects, bound) = machine.run();
    assert_eq!(asked(&effects), [""; 0]);
    assert_eq!(bound, placed(&[("p", "n1"), ("q", "n1"), ("r", "n1")]));
}

/// The first pod by uid writes for all: another does once it is gone.
#[test]
fn another_pod_adds_the_group_if_the_one_that_would_have_is_gone() {
    let mut machine = machine(&["n1"], &basic());
    let status = json!({"allocation": serde_json::to_value(device_of("n1")).unwrap()});
    machine.tell(claim(3, &status));
    machine.show_pod(&member("p"));
    machine.show_pod(&member("q"));
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["join train-gpu"]);
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    let effects = later(&mut machine);
    assert_eq!(asked(&effects), ["protect train-gpu"], "the write of the first may have arrived");
    answer(&mut machine, &effects, &written(3));
    assert_eq!(asked(&machine.settle()), ["join train-gpu"]);
}

#[test]
fn pods_wait_until_the_claim_of_their_group_is_made() {
    let mut machine = machine(&["n1"], &basic());
    let mut early = member("p");
    early["status"] = json!({});
    machine.show_pod(&early);
    let words =
        "0/1 nodes are available: waiting for the resourceclaim of \"gpu\" of PodGroup train to be created.";
    assert_eq!(told(&machine.settle(), "p"), words);
    machine.tell(claim(1, &json!({})));
    machine.show_pod(&member("p"));
    assert_eq!(asked(&later(&mut machine)), ["give train-gpu"]);
}

#[test]
fn a_claim_that_was_made_for_another_group_is_not_used() {
    let mut machine = machine(&["n1"], &basic());
    machine.tell(made_for("uid-former", 1, &json!({})));
    machine.show_pod(&member("p"));
    let words = "0/1 nodes are available: resourceclaim \"train-gpu\" was not created for this pod or its PodGroup train.";
    assert_eq!(told(&machine.settle(), "p"), words);
}

/// Where pods are not placed together, they do not wait for their PodGroup.
#[test]
fn pods_that_are_never_placed_together_use_the_claim_once_their_group_is_seen() {
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[]);
    listed(&mut machine);
    machine.tell(slice("n1", 1));
    machine.tell(claim(1, &json!({})));
    machine.show_pod(&member("p"));
    let words = "0/1 nodes are available: resourceclaim \"train-gpu\" was not created for this pod.";
    assert_eq!(told(&machine.settle(), "p"), words);
    machine.tell(Event::Object(ObjectChange::Seen(group(&gang(2)))));
    let effects = later(&mut machine);
    assert_eq!(
        (asked(&effects), users(&effects)),
        (vec!["give train-gpu".to_owned()], vec!["uid-train".to_owned()])
    );
}

#[test]
fn an_entry_that_differs_from_that_of_the_group_is_the_pods_own() {
    let mut machine = machine(&["n1"], &basic());
    let status = json!({"allocation": serde_json::to_value(device_of("n1")).unwrap()});
    machine.tell(claim(3, &status));
    let mut other = member("p");
    other["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "train-gpu"}]);
    machine.show_pod(&other);
    let effects = machine.settle();
    assert_eq!((asked(&effects), users(&effects)), (vec!["join train-gpu".to_owned()], vec!["p".to_owned()]));
}

/// Pods `p` and `q` of a group are placed, and the claim has its devices for them, which no Binding has used.
fn written_for_two() -> (Machine, AllocationResult) {
    let mut machine = machine(&["n1"], &basic());
    machine.tell(claim(1, &json!({})));
    machine.show_pod(&member("p"));
    let effects = machine.settle();
    machine.show_pod(&member("q"));
    assert_eq!(asked(&machine.settle()), [""; 0], "the write for the first is awaited");
    let allocation = given(&effects);
    answer(&mut machine, &effects, &written(2));
    (machine, allocation)
}

#[test]
fn the_claim_stays_the_groups_while_another_of_its_pods_uses_it() {
    let (mut machine, allocation) = written_for_two();
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    machine.tell(claim(2, &in_use(&allocation)));
    let effects = two_turns(&mut machine);
    assert_eq!(asked(&effects), [""; 0]);
    assert_eq!(bindings(&effects), [("q".to_owned(), "n1".to_owned())]);
}

#[test]
fn the_claim_is_taken_back_with_the_last_pod_of_the_group_that_was_to_use_it() {
    let (mut machine, allocation) = written_for_two();
    machine.tell(Event::Pod(PodChange::Gone("q".into())));
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    machine.tell(claim(2, &in_use(&allocation)));
    let effects = two_turns(&mut machine);
    assert_eq!(
        (asked(&effects), users(&effects)),
        (vec!["free train-gpu".to_owned()], vec!["uid-train".to_owned()])
    );
}

/// The claim of the group has a device of a node that takes no pods.
fn on_a_closed_node(spec: &Value, pods: &[&str]) -> (Machine, Vec<Effect>) {
    let mut machine = machine(&["n1", "n2"], spec);
    let mut closed = node("n1", &json!({}));
    closed["spec"] = json!({"unschedulable": true});
    machine.show_node(&closed);
    machine.tell(claim(3, &in_use(&device_of("n1"))));
    for name in pods {
        machine.show_pod(&member(name));
    }
    let effects = two_turns(&mut machine);
    assert_eq!(
        (asked(&effects), users(&effects)),
        (vec!["free train-gpu".to_owned()], vec!["uid-train".to_owned()])
    );
    (machine, effects)
}

#[test]
fn devices_that_no_pod_of_the_group_can_use_are_given_up_once_for_others() {
    for (spec, pods) in [(basic(), &["p"][..]), (gang(2), &["p", "q"])] {
        let (mut machine, effects) = on_a_closed_node(&spec, pods);
        answer(&mut machine, &effects, &written(4));
        machine.tell(claim(4, &json!({})));
        let effects = [machine.settle(), later(&mut machine)].concat();
        assert_eq!(asked(&effects), ["give train-gpu"], "{pods:?}");
        assert_eq!(given(&effects).devices.results[0].pool, "n2");
    }
}

/// A binder that has ended gave the claim its device, and a pod of the group has gone since.
#[test]
fn the_device_of_a_group_that_lacks_pods_is_given_up_once_that_is_known() {
    let mut machine = without_groups(&["n1"]);
    machine.tell(claim(3, &in_use(&device_of("n1"))));
    machine.show_pod(&member("p"));
    assert_eq!(asked(&two_turns(&mut machine)), [""; 0], "the group may have enough pods");
    list_group(&mut machine, &gang(2));
    let effects = two_turns(&mut machine);
    assert_eq!(asked(&effects), ["free train-gpu"]);
    assert_eq!(users(&effects), ["uid-train"]);
}

#[test]
fn no_pod_of_the_group_is_bound_while_its_claim_is_being_given_up() {
    let (mut machine, effects) = on_a_closed_node(&basic(), &["p"]);
    machine.show_node(&node("n1", &json!({})));
    machine.show_pod(&member("q"));
    assert_eq!(bindings(&later(&mut machine)), [], "the claim may have lost its devices");
    answer(&mut machine, &effects, &written(4));
    assert_eq!(bindings(&machine.settle()), [], "it is not seen yet");
    machine.tell(claim(4, &json!({})));
    machine.settle();
    assert_eq!(asked(&later(&mut machine)), ["give train-gpu"]);
}

/// The status of a claim names at most 256 users; the PodGroup is one of them, however many pods it has.
#[test]
fn more_pods_than_a_claim_may_have_users_use_the_claim_of_their_group() {
    let mut machine = machine(&["n1", "n2", "n3", "n4"], &basic());
    machine.tell(claim(3, &json!({"allocation": {"devices": {"results": []}}, "reservedFor": [user()]})));
    for at in 0..257 {
        let mut pod = member(&format!("p{at}"));
        pod["spec"]["containers"][0]["resources"] = json!({});
        machine.show_pod(&pod);
    }
    let (_, bound) = machine.run();
    assert_eq!(bound.len(), 257);
}

/// Kubernetes frees the claim once the PodGroup is deleted, and not when its pods are.
#[test]
fn no_pod_of_a_group_is_preempted_for_the_devices_of_its_claim() {
    let mut machine = machine(&["n1"], &basic());
    machine.tell(claim(3, &in_use(&device_of("n1"))));
    let low = bound(member("low"), "n1", json!({}));
    machine.show_pod(&low);
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
    let other = json!({"metadata": {"name": "other", "namespace": "default", "uid": "uid-other", "resourceVersion": "1"},
        "spec": {"devices": {"requests": [request]}}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&other)))));
    let mut high = super::device_claims::user("high", "other");
    high["spec"]["priority"] = json!(1000);
    machine.show_pod(&high);
    let effects = two_turns(&mut machine);
    let waits: Vec<String> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::TellUnschedulable { reason, .. } => Some(reason.message().full),
            _ => None,
        })
        .collect();
    let held =
        "claim other, request gpu: 0 of 1 matching device(s) free, 1 needed; held by PodGroup default/train.";
    assert!(waits.iter().all(|message| message.ends_with(held)) && !waits.is_empty(), "{waits:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Nominate { .. } | Effect::Preempt { .. })));
}
