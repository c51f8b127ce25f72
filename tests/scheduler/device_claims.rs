//! Pods with claims of devices: what is written before they are bound, and what becomes of that when they go elsewhere.

use berth::{
    config::Config,
    object::resource_claim::AllocationResult,
    scheduling::{
        BindOutcome, Effect, Event, Setback, TellOutcome, WriteOutcome,
        effect::PrebindWrite,
        object::{Kind, Object},
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, key, node, parsed, pod, told};

/// A pod that uses the claim of this name.
pub(crate) fn user(name: &str, claim: &str) -> Value {
    let mut pod = pod(name, &json!({"cpu": "1"}));
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
    pod
}

/// A claim of one device of class `gpu`, with this status.
pub(crate) fn claim(name: &str, version: u32, finalizers: &[&str], status: &Value) -> Event {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "finalizers": finalizers},
        "spec": {"devices": {"requests": [request]}},
        "status": status,
    });
    Event::Seen(Object::ResourceClaim(parsed(&claim)))
}

fn free(name: &str) -> Event {
    claim(name, 1, &[], &json!({}))
}

/// A slice of a node with so many devices.
fn slice(node: &str, count: usize) -> Event {
    let devices: Vec<Value> = (0..count).map(|at| json!({"name": format!("gpu-{at}")})).collect();
    let slice = json!({
        "metadata": {"name": format!("{node}-gpu.example.com")},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    });
    Event::Seen(Object::ResourceSlice(parsed(&slice)))
}

/// Shows that there is nothing yet but the class `gpu`.
pub(crate) fn listed(machine: &mut Machine) {
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Listed(*kind, Vec::new()));
    }
    machine.tell(Event::Seen(Object::DeviceClass(parsed(&json!({"metadata": {"name": "gpu"}})))));
}

/// Nodes with so many devices each, and what else there is.
fn machine(nodes: &[(&str, usize)], objects: impl IntoIterator<Item = Event>) -> Machine {
    let named: Vec<Value> = nodes.iter().map(|(name, _)| node(name, &json!({}))).collect();
    let mut machine = Machine::new(&Config::default(), &named, &[]);
    listed(&mut machine);
    let slices = nodes.iter().map(|(name, count)| slice(name, *count));
    slices.chain(objects).for_each(|event| machine.tell(event));
    machine
}

pub(crate) fn writes(effects: &[Effect]) -> Vec<PrebindWrite> {
    let write = |effect: &Effect| match effect {
        Effect::Prebind { write, .. } => Some(write.clone()),
        _ => None,
    };
    effects.iter().filter_map(write).collect()
}

/// Answers the writes that are under way.
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

const KEPT: &[&str] = &["resource.kubernetes.io/delete-protection"];

fn status(allocation: &AllocationResult, users: &[&str]) -> Value {
    let users: Vec<Value> =
        users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
    json!({"allocation": serde_json::to_value(allocation).unwrap(), "reservedFor": users})
}

/// The first device of a node, which can be used there alone.
fn device_of(node: &str) -> AllocationResult {
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"});
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [name]}]});
    parsed(&json!({"devices": {"results": [result]}, "nodeSelector": selector}))
}

/// Takes the claim `c` of pod `p` to the write of its status; returns what that gives the claim.
fn reserving(machine: &mut Machine) -> (Vec<Effect>, AllocationResult) {
    let effects = machine.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::ProtectClaim { .. }]), "{effects:?}");
    answer(machine, &effects, &written(2));
    assert_eq!(writes(&machine.settle()), [], "the claim is awaited as it was written");
    machine.tell(claim("c", 2, KEPT, &json!({})));
    let effects = machine.settle();
    let [PrebindWrite::ReserveClaim { allocation: Some(allocation), .. }] = &writes(&effects)[..] else {
        panic!("{effects:?}")
    };
    let allocation = AllocationResult::clone(allocation);
    (effects, allocation)
}

/// The pods that are bound by these effects, with their nodes.
fn bindings(effects: &[Effect]) -> Vec<(String, String)> {
    let binding = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some((pod.name.to_string(), node.to_string())),
        _ => None,
    };
    effects.iter().filter_map(binding).collect()
}

#[test]
fn the_finalizer_comes_first_then_the_devices_then_the_binding() {
    let mut machine = machine(&[("n1", 1)], [free("c")]);
    machine.show_pod(&user("p", "c"));
    let (effects, given) = reserving(&mut machine);
    assert_eq!(given.devices.results[0].device, "gpu-0");
    answer(&mut machine, &effects, &written(3));
    assert_eq!(bindings(&machine.settle()), [], "what was written is seen first");
    machine.tell(claim("c", 3, KEPT, &status(&given, &["p"])));
    assert_eq!(bindings(&machine.settle()), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_device_is_given_once_and_free_again_with_its_claim() {
    let mut machine = machine(&[("n1", 1)], [free("c"), free("d")]);
    machine.show_pod(&user("p", "c"));
    machine.show_pod(&user("q", "d"));
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1, "{effects:?}");
    assert_eq!(told(&effects, "q"), "0/1 nodes are available: 1 cannot allocate all claims.");
    // Another program gives the claim its device, and a user that ends.
    let allocation = json!({"devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1",
        "device": "gpu-0"}]}});
    machine.tell(Event::PodGone("p".into()));
    machine.tell(claim("c", 9, KEPT, &json!({"allocation": allocation, "reservedFor": []})));
    assert_eq!(writes(&machine.settle()), []);
    machine.tell(claim("c", 10, KEPT, &json!({})));
    machine.pass(15);
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1, "the second pod has the device now: {effects:?}");
}

#[test]
fn what_was_begun_before_a_restart_is_taken_up() {
    let allocation = device_of("n2");
    let nodes = [("n1", 1), ("n2", 1)];
    let mut finished = machine(&nodes, [claim("c", 3, KEPT, &status(&allocation, &["p"]))]);
    finished.show_pod(&user("p", "c"));
    assert_eq!(bindings(&finished.settle()), [("p".to_owned(), "n2".to_owned())]);
    let mut without_user = machine(&nodes, [claim("c", 3, KEPT, &status(&allocation, &[]))]);
    without_user.show_pod(&user("p", "c"));
    let effects = without_user.settle();
    assert!(
        matches!(&writes(&effects)[..], [PrebindWrite::ReserveClaim { allocation: None, .. }]),
        "{effects:?}"
    );
}

#[test]
fn the_second_pod_of_a_claim_goes_where_the_first_is() {
    let mut machine = machine(&[("n1", 1), ("n2", 1)], [free("c")]);
    machine.show_pod(&user("p", "c"));
    let (effects, given) = reserving(&mut machine);
    machine.show_pod(&user("q", "c"));
    assert_eq!(writes(&machine.settle()), [], "the write of the first is awaited");
    answer(&mut machine, &effects, &written(3));
    machine.tell(claim("c", 3, KEPT, &status(&given, &["p"])));
    let effects = machine.settle();
    let [PrebindWrite::ReserveClaim { allocation: None, .. }] = &writes(&effects)[..] else {
        panic!("{effects:?}")
    };
    answer(&mut machine, &effects, &written(4));
    machine.tell(claim("c", 4, KEPT, &status(&given, &["p", "q"])));
    let node = given.node_selector.unwrap().node_selector_terms[0].match_fields[0].values[0].clone();
    let outcome = BindOutcome::Bound;
    machine.tell(Event::BindAnswered { pod: key("p"), node: node.as_str().into(), outcome });
    assert_eq!(bindings(&machine.settle()), [("q".to_owned(), node)]);
}

#[test]
fn a_pod_that_is_gone_leaves_no_devices_behind() {
    let mut machine = machine(&[("n1", 1)], [free("c"), free("d")]);
    machine.show_pod(&user("p", "c"));
    let (effects, given) = reserving(&mut machine);
    machine.tell(Event::PodGone("p".into()));
    machine.show_pod(&user("q", "d"));
    let effects_of_q = machine.settle();
    assert_eq!(writes(&effects_of_q), [], "the write for the first may still arrive");
    answer(&mut machine, &effects, &written(3));
    machine.tell(claim("c", 3, KEPT, &status(&given, &["p"])));
    let effects = machine.settle();
    let [PrebindWrite::ReleaseClaim { deallocate: true, .. }] = &writes(&effects)[..] else {
        panic!("{effects:?}")
    };
    answer(&mut machine, &effects, &written(4));
    machine.tell(claim("c", 4, KEPT, &json!({})));
    machine.pass(15);
    let effects = machine.settle();
    assert!(
        matches!(&writes(&effects)[..], [PrebindWrite::ProtectClaim { claim }] if claim.metadata.name == "d")
    );
}

#[test]
fn a_write_without_an_answer_holds_the_devices_until_it_can_no_longer_arrive() {
    let mut machine = machine(&[("n1", 1)], [free("c"), free("d")]);
    machine.show_pod(&user("p", "c"));
    let (effects, _) = reserving(&mut machine);
    machine.tell(Event::PodGone("p".into()));
    machine.show_pod(&user("q", "d"));
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(writes(&machine.settle()), []);
    machine.pass(5);
    assert_eq!(writes(&machine.settle()), []);
    machine.pass(12);
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1, "{effects:?}");
}

#[test]
fn an_allocation_that_nobody_uses_is_given_up_for_a_node_with_room() {
    let allocation = device_of("gone");
    let mut machine = machine(&[("n1", 1)], [claim("c", 3, KEPT, &status(&allocation, &["p"]))]);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    assert_eq!(told(&effects, "p"), "0/1 nodes are available: 1 resourceclaim not available on the node.");
    let effects = [effects, machine.settle()].concat();
    let [PrebindWrite::ReleaseClaim { deallocate: true, .. }] = &writes(&effects)[..] else {
        panic!("{effects:?}")
    };
    answer(&mut machine, &effects, &written(4));
    machine.tell(claim("c", 4, KEPT, &json!({})));
    machine.pass(15);
    let effects = machine.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::ReserveClaim { .. }]), "{effects:?}");
}

#[test]
fn a_claim_that_is_being_given_up_is_used_again_only_once_that_is_seen() {
    let allocation = device_of("n1");
    let mut machine = machine(&[("n1", 1)], [claim("c", 3, KEPT, &status(&allocation, &["p"]))]);
    let mut closed = node("n1", &json!({}));
    closed["spec"] = json!({"unschedulable": true});
    machine.show_node(&closed);
    machine.show_pod(&user("p", "c"));
    let effects = [machine.settle(), machine.settle()].concat();
    assert!(
        matches!(&writes(&effects)[..], [PrebindWrite::ReleaseClaim { deallocate: true, .. }]),
        "{effects:?}"
    );
    machine.show_node(&node("n1", &json!({})));
    machine.pass(15);
    assert_eq!(bindings(&machine.settle()), [], "its claim may have lost its devices");
    answer(&mut machine, &effects, &written(4));
    assert_eq!(bindings(&machine.settle()), [], "it is not seen yet");
    machine.tell(claim("c", 4, KEPT, &json!({})));
    machine.settle();
    machine.pass(15);
    let effects = machine.settle();
    assert!(
        matches!(&writes(&effects)[..], [PrebindWrite::ReserveClaim { allocation: Some(_), .. }]),
        "{effects:?}"
    );
}

#[test]
fn a_claim_that_was_not_given_up_after_all_is_used_as_it_is() {
    let allocation = device_of("n1");
    let mut machine = machine(&[("n1", 1)], [claim("c", 3, KEPT, &status(&allocation, &["p"]))]);
    let mut closed = node("n1", &json!({}));
    closed["spec"] = json!({"unschedulable": true});
    machine.show_node(&closed);
    machine.show_pod(&user("p", "c"));
    let effects = [machine.settle(), machine.settle()].concat();
    machine.show_node(&node("n1", &json!({})));
    machine.pass(15);
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(bindings(&machine.settle()), [], "the write may still arrive");
    machine.pass(7);
    assert_eq!(bindings(&machine.settle()), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn an_allocation_in_use_stays() {
    let allocation = device_of("gone");
    let mut machine = machine(&[("n1", 1)], [claim("c", 3, KEPT, &status(&allocation, &["p", "other"]))]);
    machine.show_pod(&user("p", "c"));
    let effects = [machine.settle(), machine.settle()].concat();
    assert_eq!(writes(&effects), []);
}

#[test]
fn devices_that_have_to_be_prepared_are_awaited() {
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0",
        "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]});
    let allocation: AllocationResult = parsed(&json!({"devices": {"results": [result]}}));
    let with = |version: u32, condition: &str| {
        let mut status = status(&allocation, &["p"]);
        status["devices"] = json!([{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0",
            "conditions": [{"type": condition, "status": "True"}]}]);
        claim("c", version, KEPT, &status)
    };
    let begun = || {
        let mut machine = machine(&[("n1", 1)], [claim("c", 2, KEPT, &status(&allocation, &[]))]);
        machine.show_pod(&user("p", "c"));
        let effects = machine.settle();
        answer(&mut machine, &effects, &written(3));
        machine.tell(claim("c", 3, KEPT, &status(&allocation, &["p"])));
        assert_eq!(bindings(&machine.settle()), []);
        machine
    };
    let mut ready = begun();
    ready.tell(with(4, "Attached"));
    assert_eq!(bindings(&ready.settle()), [("p".to_owned(), "n1".to_owned())]);
    let mut broken = begun();
    broken.tell(with(4, "Broken"));
    let effects = broken.settle();
    assert_eq!(told(&effects, "p"), "resourceclaim \"c\": device \"gpu-0\" has the condition Broken");
    assert_eq!(bindings(&effects), []);
}

#[test]
fn nothing_is_decided_before_claims_are_listed() {
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[]);
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), "");
    machine.pass(5);
    assert_eq!(told(&machine.settle(), "p"), "");
    machine.pass(31);
    let message = told(&machine.settle(), "p");
    assert!(message.contains("resourceclaims, resourceslices, deviceclasses"), "{message}");
    machine.tell(Event::Told { pod: key("p"), message, outcome: TellOutcome::Done });
    let missing = "the Pod has claims, and these are not listed yet";
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Unserved(*kind));
    }
    // What was last said is said again until it is answered.
    let message = told(&machine.settle(), "p");
    assert!(message.starts_with(missing), "{message}");
    machine.tell(Event::Told { pod: key("p"), message, outcome: TellOutcome::Done });
    let message = told(&machine.settle(), "p");
    assert_eq!(message, "0/1 nodes are available: resourceclaim \"c\" not found.");
}

#[test]
fn a_pod_of_another_scheduler_holds_what_its_claim_has() {
    let allocation = json!({"devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1",
        "device": "gpu-0"}]}});
    let status =
        json!({"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "o", "uid": "o"}]});
    let mut machine = machine(&[("n1", 1)], [claim("d", 1, KEPT, &status), free("c")]);
    let mut other = user("o", "d");
    other["spec"]["schedulerName"] = json!("default-scheduler");
    machine.show_pod(&bound(other, "n1", json!({})));
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), "0/1 nodes are available: 1 cannot allocate all claims.");
}

#[test]
fn a_class_that_is_missing_is_named_and_wakes_the_pod_once_it_is_there() {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "late"}});
    let asking = json!({"metadata": {"name": "c", "namespace": "default", "uid": "uid-c", "resourceVersion": "1"},
        "spec": {"devices": {"requests": [request]}}});
    let mut machine = machine(&[("n1", 1)], [Event::Seen(Object::ResourceClaim(parsed(&asking)))]);
    machine.show_pod(&user("p", "c"));
    let message = told(&machine.settle(), "p");
    assert!(message.contains("late"), "{message}");
    machine.tell(Event::Seen(Object::DeviceClass(parsed(&json!({"metadata": {"name": "late"}})))));
    machine.pass(15);
    let effects = machine.settle();
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::ProtectClaim { .. }]), "{effects:?}");
}

#[test]
fn what_was_found_of_a_node_holds_until_its_devices_or_what_is_held_of_them_change() {
    let mut machine = machine(&[("n1", 1), ("n2", 0)], ["a", "b", "c"].map(free));
    for (pod, claim) in [("p", "a"), ("q", "b"), ("r", "c")] {
        machine.show_pod(&user(pod, claim));
    }
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1);
    for waits in ["q", "r"] {
        assert_eq!(told(&effects, waits), "0/2 nodes are available: 2 cannot allocate all claims.");
    }
    machine.tell(slice("n2", 1));
    machine.pass(15);
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1, "one more device is there: {effects:?}");
    machine.tell(slice("n2", 2));
    machine.pass(15);
    let effects = machine.settle();
    assert_eq!(writes(&effects).len(), 1, "and one more: {effects:?}");
}
