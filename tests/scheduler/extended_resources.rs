//! Pods whose extended resources a class of devices serves: the claim that is made for each, once, and deleted where the pod goes elsewhere.

use std::sync::Arc;

use berth::{
    config::Config,
    object::{ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        Effect, Event, ObjectChange, PodChange, Setback, WriteOutcome,
        effect::PrebindWrite,
        model::{extended_resources::ExtendedClaim, kind::Kind},
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    device_claims::slice,
    machine::{Machine, node, parsed, pod},
};

const KEPT: &[&str] = &["resource.kubernetes.io/delete-protection"];

/// Nodes with so many devices each, whose class stands for `example.com/gpu`.
fn machine(nodes: &[(&str, usize)]) -> Machine {
    let named: Vec<Value> = nodes.iter().map(|(name, _)| node(name, &json!({}))).collect();
    let mut machine = Machine::new(&Config::default(), &named, &[]);
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::DeviceClass(parsed(&class)))));
    for (name, count) in nodes {
        machine.tell(slice(name, *count));
    }
    machine
}

fn asking(name: &str) -> Value {
    pod(name, &json!({"example.com/gpu": "1"}))
}

fn writes(effects: &[Effect]) -> Vec<PrebindWrite> {
    let write = |effect: &Effect| match effect {
        Effect::Prebind { write, .. } => Some(write.clone()),
        _ => None,
    };
    effects.iter().filter_map(write).collect()
}

fn answer(machine: &mut Machine, effects: &[Effect], outcome: &WriteOutcome) {
    for effect in effects {
        if let Effect::Prebind { pod, write } = effect {
            let (pod, write, outcome) = (pod.clone(), write.clone(), outcome.clone());
            machine.tell(Event::Prebound { pod, write, outcome });
        }
    }
}

fn written(version: u32) -> WriteOutcome {
    WriteOutcome::Written { resource_version: version.to_string() }
}

fn lost() -> WriteOutcome {
    WriteOutcome::Failed(Setback::default())
}

/// The one write of these effects, which creates a claim.
fn creation(effects: &[Effect]) -> (Arc<str>, Arc<ExtendedClaim>) {
    match &writes(effects)[..] {
        [PrebindWrite::CreateClaim { claim, made }] => (claim.clone(), made.clone()),
        other => panic!("{other:?}"),
    }
}

/// The claim of a pod as the API server shows it.
fn claim(
    (name, made): &(Arc<str>, Arc<ExtendedClaim>),
    pod: &str,
    version: u32,
    status: &Value,
) -> ResourceClaim {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": true});
    let metadata = json!({
        "name": **name, "namespace": "default", "uid": format!("uid-{name}"), "finalizers": KEPT,
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner], "resourceVersion": version.to_string(),
    });
    let claim: ResourceClaim = parsed(&json!({"metadata": metadata, "status": status}));
    ResourceClaim { spec: made.spec.clone(), ..claim }
}

fn seen(claim: ResourceClaim) -> Event {
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(Arc::new(claim))))
}

fn status(allocation: &AllocationResult, users: &[&str]) -> Value {
    let users: Vec<Value> =
        users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
    json!({"allocation": serde_json::to_value(allocation).unwrap(), "reservedFor": users})
}

/// The devices that the one write of these effects gives.
fn reserved(effects: &[Effect]) -> AllocationResult {
    match &writes(effects)[..] {
        [PrebindWrite::ReserveClaim { allocation: Some(allocation), .. }] => {
            AllocationResult::clone(allocation)
        }
        other => panic!("{other:?}"),
    }
}

fn is_bound(effects: &[Effect], name: &str) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Bind { pod, .. } if *pod.name == *name))
}

/// With the status that names the claim.
fn stating(mut pod: Value, effects: &[Effect]) -> Value {
    let [PrebindWrite::StateClaim { status: Some(status), .. }] = &writes(effects)[..] else {
        panic!("{effects:?}")
    };
    pod["status"] = json!({"extendedResourceClaimStatus": serde_json::to_value(&**status).unwrap()});
    pod
}

/// A claim that has its devices, and the effects that state it.
fn given(
    machine: &mut Machine,
    name: &str,
) -> ((Arc<str>, Arc<ExtendedClaim>), AllocationResult, Vec<Effect>) {
    machine.show_pod(&asking(name));
    let effects = machine.settle();
    let made = creation(&effects);
    answer(machine, &effects, &written(2));
    assert_eq!(writes(&machine.settle()), [], "the claim is awaited as it was made");
    machine.tell(seen(claim(&made, name, 2, &json!({}))));
    let effects = machine.settle();
    let allocation = reserved(&effects);
    answer(machine, &effects, &written(3));
    machine.tell(seen(claim(&made, name, 3, &status(&allocation, &[name]))));
    (made, allocation, machine.settle())
}

#[test]
fn the_claim_is_made_and_given_devices_then_the_status_names_it_then_the_pod_is_bound() {
    let mut machine = machine(&[("n1", 1)]);
    let (_, allocation, effects) = given(&mut machine, "p");
    assert_eq!(allocation.devices.results[0].device, "gpu-0");
    assert!(!is_bound(&effects, "p"), "{effects:?}");
    answer(&mut machine, &effects, &written(4));
    assert!(!is_bound(&machine.settle(), "p"), "the status is awaited as it was written");
    machine.show_pod(&stating(asking("p"), &effects));
    let effects = machine.settle();
    assert!(is_bound(&effects, "p"), "{effects:?}");
}

#[test]
fn a_creation_without_an_answer_is_repeated_under_the_same_name_and_taken_up_once_it_is_seen() {
    let mut machine = machine(&[("n1", 1)]);
    machine.show_pod(&asking("p"));
    let effects = machine.settle();
    let made = creation(&effects);
    answer(&mut machine, &effects, &lost());
    machine.pass(10);
    let effects = machine.settle();
    assert_eq!(creation(&effects).0, made.0);
    // The first has arrived: the second one is refused, since the name is taken.
    machine.tell(seen(claim(&made, "p", 2, &json!({}))));
    answer(&mut machine, &effects, &lost());
    machine.pass(10);
    reserved(&machine.settle());
}

#[test]
fn a_pod_that_is_gone_leaves_no_claim() {
    let mut machine = machine(&[("n1", 1)]);
    let (made, allocation, effects) = given(&mut machine, "p");
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    answer(&mut machine, &effects, &lost());
    machine.pass(15);
    let effects = machine.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::DeleteClaim { .. }]), "{effects:?}");
    answer(&mut machine, &effects, &written(4));
    let mut leaving = claim(&made, "p", 4, &status(&allocation, &["p"]));
    leaving.metadata.deletion_timestamp = Some(machine.now());
    machine.tell(seen(leaving));
    let effects = machine.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::UnprotectClaim { .. }]), "{effects:?}");
    answer(&mut machine, &effects, &written(5));
    assert_eq!(writes(&machine.settle()), []);
    machine.show_pod(&asking("q"));
    assert_eq!(writes(&machine.settle()), [], "the devices are held until the claim is gone");
    machine
        .tell(Event::Object(ObjectChange::Gone(Kind::ResourceClaim, format!("default/{}", made.0).into())));
    machine.pass(15);
    creation(&machine.settle());
}

#[test]
fn a_claim_that_a_former_binder_has_made_is_taken_up_or_deleted() {
    let (made, allocation) = {
        let mut machine = machine(&[("n1", 1), ("n2", 1)]);
        let (made, allocation, _) = given(&mut machine, "p");
        (made, allocation)
    };
    let held = claim(&made, "p", 3, &status(&allocation, &["p"]));
    let mut both = machine(&[("n1", 1), ("n2", 1)]);
    both.tell(seen(held.clone()));
    both.show_pod(&asking("p"));
    let effects = both.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::StateClaim { .. }]), "{effects:?}");
    // Its node is gone: the claim goes, and another is made.
    let other = if allocation.devices.results[0].pool == "n1" { "n2" } else { "n1" };
    let mut one = machine(&[(other, 1)]);
    one.tell(seen(held));
    one.show_pod(&asking("p"));
    let effects = [one.settle(), one.settle()].concat();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::DeleteClaim { .. }]), "{effects:?}");
    answer(&mut one, &effects, &written(4));
    one.tell(Event::Object(ObjectChange::Gone(Kind::ResourceClaim, format!("default/{}", made.0).into())));
    one.pass(15);
    assert_eq!(creation(&one.settle()).0, made.0);
}

/// A node that takes no new pods, or does again.
fn cordoned(name: &str, is_closed: bool) -> Value {
    let mut node = node(name, &json!({}));
    node["spec"] = json!({"unschedulable": is_closed});
    node
}

/// Pod `p` fits nowhere, its claim and status being as they are to be, and the claim is being deleted; then its node is open again.
fn open_again() -> (Machine, ResourceClaim, Vec<Effect>) {
    let mut machine = machine(&[("n1", 1)]);
    let (made, allocation, effects) = given(&mut machine, "p");
    answer(&mut machine, &effects, &written(4));
    machine.show_node(&cordoned("n1", true));
    machine.show_pod(&stating(asking("p"), &effects));
    let effects = [machine.settle(), later(&mut machine)].concat();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::DeleteClaim { .. }]), "{effects:?}");
    assert!(!is_bound(&effects, "p"), "{effects:?}");
    machine.show_node(&cordoned("n1", false));
    let after = later(&mut machine);
    assert!(writes(&after).is_empty() && !is_bound(&after, "p"), "{after:?}");
    (machine, claim(&made, "p", 3, &status(&allocation, &["p"])), effects)
}

fn later(machine: &mut Machine) -> Vec<Effect> {
    machine.pass(15);
    machine.settle()
}

#[test]
fn a_claim_that_was_deleted_is_not_used_before_that_is_seen() {
    let (mut machine, known, effects) = open_again();
    // It had no finalizer any more, so it is gone at once.
    answer(&mut machine, &effects, &WriteOutcome::Written { resource_version: String::new() });
    let after = [machine.settle(), later(&mut machine)].concat();
    assert!(writes(&after).is_empty() && !is_bound(&after, "p"), "{after:?}");
    let name = format!("default/{}", known.metadata.name).into();
    machine.tell(Event::Object(ObjectChange::Gone(Kind::ResourceClaim, name)));
    creation(&[machine.settle(), later(&mut machine)].concat());
}

#[test]
fn a_claim_whose_deletion_has_no_answer_is_used_once_it_is_known_to_be_there() {
    let (mut machine, known, effects) = open_again();
    answer(&mut machine, &effects, &lost());
    assert_eq!(writes(&machine.settle()), [], "the deletion may still arrive");
    let effects = later(&mut machine);
    assert_eq!(writes(&effects), [PrebindWrite::ProtectClaim { claim: Arc::new(known) }]);
    assert!(!is_bound(&effects, "p"), "{effects:?}");
    answer(&mut machine, &effects, &written(3));
    assert!(is_bound(&machine.settle(), "p"));
}

#[test]
fn a_claim_of_which_another_one_has_the_device_is_deleted_although_the_pod_names_it() {
    let (made, allocation, stated) = {
        let mut machine = machine(&[("n1", 1)]);
        let (made, allocation, effects) = given(&mut machine, "p");
        (made, allocation, stating(asking("p"), &effects))
    };
    let mut restarted = machine(&[("n1", 1)]);
    let held = claim(&made, "p", 3, &status(&allocation, &["p"]));
    let mut other = claim(&made, "o", 4, &status(&allocation, &["o"]));
    other.metadata.name = "other".to_owned();
    restarted.tell(seen(held.clone()));
    restarted.tell(seen(other));
    restarted.show_pod(&stated);
    let effects = [restarted.settle(), restarted.settle()].concat();
    assert_eq!(writes(&effects), [PrebindWrite::DeleteClaim { claim: Arc::new(held) }]);
    assert!(!is_bound(&effects, "p"), "{effects:?}");
}

#[test]
fn where_a_device_plugin_begins_to_provide_the_resource_the_pod_needs_no_claim() {
    let mut machine = machine(&[("n1", 0)]);
    machine.show_pod(&asking("p"));
    assert_eq!(writes(&machine.settle()), []);
    let mut provided = node("n1", &json!({}));
    provided["status"]["allocatable"]["example.com/gpu"] = json!("1");
    machine.show_node(&provided);
    machine.pass(15);
    let effects = machine.settle();
    assert!(is_bound(&effects, "p"), "{effects:?}");
}

#[test]
fn a_class_that_begins_to_stand_for_the_resource_wakes_the_pod() {
    let mut machine = machine(&[("n1", 1)]);
    machine.show_pod(&pod("p", &json!({"example.com/other": "1"})));
    assert_eq!(writes(&machine.settle()), []);
    let class = json!({"metadata": {"name": "other"}, "spec": {"extendedResourceName": "example.com/other"}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::DeviceClass(parsed(&class)))));
    machine.pass(15);
    creation(&machine.settle());
}
