//! Claims whose devices take of their node's own resources: what counts on the node, and what is written into the pod's status before it is bound.

use std::sync::Arc;

use berth::{
    config::Config,
    object::{pod::NodeAllocatableClaimStatus, resource_claim::AllocationResult},
    scheduling::{
        BindOutcome, Effect, Event, NodeChange, ObjectChange, PodChange, Setback, WriteOutcome,
        effect::PrebindWrite, world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    device_claims::{answer, bindings, claim, device_of, later, listed, two_turns, user, writes, written},
    machine::{Machine, key, node, parsed, told},
};

/// Nodes with 4 cpu each and two devices that stand for 2 cpu, and take 1 GiB of each pod.
fn machine(nodes: &[&str], objects: impl IntoIterator<Item = Event>) -> Machine {
    let named = |name: &&str| {
        let mut node = node(name, &json!({}));
        node["status"]["allocatable"]["cpu"] = json!("4");
        node
    };
    let named: Vec<Value> = nodes.iter().map(named).collect();
    let mut machine = Machine::new(&Config::default(), &named, &[]);
    listed(&mut machine);
    nodes.iter().map(|name| slice(name)).chain(objects).for_each(|event| machine.tell(event));
    machine
}

fn slice(node: &str) -> Event {
    let takes =
        json!({"cpu": {"mapping": {"deviceMultiplier": "2"}}, "memory": {"overhead": {"perPod": "1Gi"}}});
    let device = |at: usize| json!({"name": format!("gpu-{at}"), "nodeAllocatableResources": takes});
    let slice = json!({
        "metadata": {"name": format!("{node}-gpu.example.com")},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": [device(0), device(1)],
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
}

/// A claim that holds a device of the node, used by these pods.
fn held(name: &str, version: u32, allocation: &AllocationResult, users: &[&str]) -> Event {
    let users: Vec<Value> =
        users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
    let allocation = serde_json::to_value(allocation).unwrap();
    claim(name, version, &json!({"allocation": allocation, "reservedFor": users}))
}

fn device(node: &str, at: usize) -> AllocationResult {
    let mut allocation = device_of(node);
    allocation.devices.results[0].device = format!("gpu-{at}");
    allocation
}

/// What the status of a pod says whose claim has one device.
fn statuses(claim: &str) -> Value {
    json!([{"resourceClaimName": claim, "mapping": [{"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "memory", "perPod": "1Gi"}]}])
}

fn stating(mut pod: Value, statuses: &Value) -> Value {
    pod["status"]["nodeAllocatableResourceClaimStatuses"] = statuses.clone();
    pod
}

/// What is to be written into the status of a pod; `None`: nothing.
fn stated(effects: &[Effect]) -> Option<Value> {
    match &writes(effects)[..] {
        [] => None,
        [PrebindWrite::StateNodeResources { statuses, .. }] => {
            let statuses: &Arc<[NodeAllocatableClaimStatus]> = statuses;
            Some(serde_json::to_value(&**statuses).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

fn lost() -> WriteOutcome {
    WriteOutcome::Failed(Setback::default())
}

#[test]
fn the_status_says_what_claims_take_before_the_pod_is_bound() {
    let mut machine = machine(&["n1"], [claim("c", 2, &json!({}))]);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    let [PrebindWrite::ReserveClaim { allocation: Some(given), .. }] = &writes(&effects)[..] else {
        panic!("{effects:?}")
    };
    let given = AllocationResult::clone(given);
    answer(&mut machine, &effects, &written(3));
    assert_eq!(stated(&machine.settle()), None, "the claim is seen first");
    machine.tell(held("c", 3, &given, &["p"]));
    let effects = machine.settle();
    assert_eq!(stated(&effects), Some(statuses("c")));
    answer(&mut machine, &effects, &written(3));
    assert_eq!(bindings(&machine.settle()), [], "the status is seen first");
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    let effects = machine.settle();
    assert_eq!((stated(&effects), bindings(&effects)), (None, vec![("p".to_owned(), "n1".to_owned())]));
}

#[test]
fn what_claims_take_is_missing_from_the_node_until_the_pod_is_gone() {
    let claims = || [claim("c", 2, &json!({})), claim("d", 2, &json!({}))];
    let mut machine = machine(&["n1"], claims());
    machine.show_pod(&user("p", "c"));
    machine.show_pod(&user("q", "d"));
    let effects = two_turns(&mut machine);
    assert_eq!(told(&effects, "q"), "0/1 nodes are available: 1 Insufficient cpu.", "3 of 4 cpu are taken");
    let requested = |machine: &Machine| {
        let node = machine.scheduler().snapshot().node("n1").unwrap();
        (node.requested.get("cpu"), node.requested.get("memory"))
    };
    assert_eq!(requested(&machine), (3000, 1 << 30));
    // The write for the first is answered once it is gone, and has not been written.
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    answer(&mut machine, &effects, &WriteOutcome::Refused("404".to_owned()));
    machine.pass(15);
    let effects = machine.settle();
    assert!(
        matches!(&writes(&effects)[..], [PrebindWrite::ReserveClaim { claim, .. }] if claim.metadata.name == "d")
    );
}

#[test]
fn a_bound_pod_counts_with_what_its_status_says_whichever_scheduler_has_placed_it() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"]), claim("d", 2, &json!({}))]);
    let mut other = stating(user("p", "c"), &statuses("c"));
    other["spec"]["schedulerName"] = json!("default-scheduler");
    other["spec"]["nodeName"] = json!("n1");
    machine.show_pod(&other);
    machine.show_pod(&user("q", "d"));
    let effects = two_turns(&mut machine);
    assert_eq!(told(&effects, "q"), "0/1 nodes are available: 1 Insufficient cpu.");
    // Less is taken, and the pod is decided again although no device is free that was not.
    let less = json!([{"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "0"}]}]);
    machine.show_pod(&stating(other, &less));
    machine.pass(15);
    assert!(matches!(&writes(&machine.settle())[..], [PrebindWrite::ReserveClaim { .. }]));
}

#[test]
fn a_claim_that_another_scheduler_has_given_devices_counts_too() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    let mut greedy = user("p", "c");
    greedy["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("2500m");
    machine.show_pod(&greedy);
    assert_eq!(told(&two_turns(&mut machine), "p"), "0/1 nodes are available: 1 Insufficient cpu.");
    machine.tell(held("d", 3, &device("n1", 1), &["q"]));
    machine.show_pod(&user("q", "d"));
    assert_eq!(stated(&machine.settle()), Some(statuses("d")));
}

#[test]
fn what_is_stated_already_is_not_written_again_after_a_restart() {
    let begun = |statuses: &Value| {
        let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
        machine.show_pod(&stating(user("p", "c"), statuses));
        let effects = machine.settle();
        (stated(&effects), bindings(&effects).len())
    };
    assert_eq!(begun(&statuses("c")), (None, 1));
    let respelt = json!([{"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "2000m"}],
        "overhead": [{"name": "memory", "perPod": "1024Mi"}]}]);
    assert_eq!(begun(&respelt), (None, 1));
    let other = json!([{"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "3"}]}]);
    assert_eq!(begun(&other), (Some(statuses("c")), 0));
}

#[test]
fn what_was_stated_for_claims_that_take_nothing_is_taken_back() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    // The driver publishes the devices anew, and they take nothing any more.
    machine.tell(super::device_claims::slice("n1", 2));
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    let effects = machine.settle();
    assert_eq!((stated(&effects), bindings(&effects).len()), (Some(json!([])), 0));
    answer(&mut machine, &effects, &written(3));
    machine.show_pod(&user("p", "c"));
    assert_eq!(bindings(&machine.settle()).len(), 1);
}

/// Pod `p` whose status is being written for node `n1`, which then is gone.
fn interrupted() -> (Machine, Vec<Effect>) {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    assert_eq!(stated(&effects), Some(statuses("c")));
    machine.tell(Event::Node(NodeChange::Gone("n1".into())));
    (machine, effects)
}

/// The writes into the pod's status among these effects.
fn all_stated(effects: &[Effect]) -> Vec<usize> {
    let count = |write: &PrebindWrite| match write {
        PrebindWrite::StateNodeResources { statuses, .. } => Some(statuses.len()),
        _ => None,
    };
    writes(effects).iter().filter_map(count).collect()
}

#[test]
fn what_was_stated_for_a_node_that_is_gone_is_taken_back() {
    let (mut machine, effects) = interrupted();
    answer(&mut machine, &effects, &written(3));
    machine.settle();
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    machine.pass(1);
    let effects = two_turns(&mut machine);
    assert_eq!(all_stated(&effects), [0]);
}

#[test]
fn a_status_that_is_being_taken_back_is_written_again_where_the_pod_is_placed_again() {
    let (mut machine, effects) = interrupted();
    answer(&mut machine, &effects, &written(3));
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    machine.pass(1);
    let effects = two_turns(&mut machine);
    assert_eq!(all_stated(&effects), [0]);
    // The node is there again, and what the pod states is what it would state there: but that is on its way out.
    let mut again = node("n1", &json!({}));
    again["status"]["allocatable"]["cpu"] = json!("4");
    machine.show_node(&again);
    machine.pass(15);
    let placed = two_turns(&mut machine);
    assert_eq!((all_stated(&placed), bindings(&placed)), (vec![], vec![]));
    answer(&mut machine, &effects, &written(5));
    assert_eq!(bindings(&machine.settle()), []);
    machine.show_pod(&user("p", "c"));
    let effects = two_turns(&mut machine);
    assert_eq!((all_stated(&effects), bindings(&effects)), (vec![1], vec![]));
    answer(&mut machine, &effects, &written(6));
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    assert_eq!(bindings(&machine.settle()).len(), 1);
}

#[test]
fn a_status_that_may_have_been_written_is_taken_back_once_it_can_no_longer_arrive() {
    let (mut machine, effects) = interrupted();
    answer(&mut machine, &effects, &lost());
    assert_eq!(all_stated(&two_turns(&mut machine)), [0; 0], "it may still arrive");
    machine.pass(12);
    let effects = two_turns(&mut machine);
    assert_eq!(all_stated(&effects), [0], "whether it has arrived is not known");
}

#[test]
fn a_status_whose_write_had_no_answer_is_written_again_if_it_is_not_there() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    answer(&mut machine, &effects, &lost());
    assert_eq!(all_stated(&machine.settle()), [0; 0], "after a pause");
    machine.pass(5);
    let effects = machine.settle();
    assert_eq!(all_stated(&effects), [1]);
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    answer(&mut machine, &effects, &lost());
    machine.pass(15);
    let effects = machine.settle();
    assert_eq!((all_stated(&effects), bindings(&effects).len()), (vec![], 1), "it has arrived");
}

#[test]
fn an_api_server_that_does_not_keep_the_status_is_named() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    answer(&mut machine, &effects, &WriteOutcome::Refused("it is not kept".to_owned()));
    assert_eq!(
        told(&two_turns(&mut machine), "p"),
        "resourceclaim \"c\": the write was refused: it is not kept"
    );
}

#[test]
fn a_claim_that_stands_for_resources_of_its_node_has_one_pod() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["other"])]);
    machine.show_pod(&user("p", "c"));
    let effects = two_turns(&mut machine);
    let words = "resourceclaim \"c\" stands for resources of its node, and another pod uses it";
    assert_eq!(told(&effects, "p"), format!("0/1 nodes are available: {words}."));
    machine.tell(held("c", 4, &device("n1", 0), &[]));
    let effects = later(&mut machine);
    assert!(matches!(&writes(&effects)[..], [PrebindWrite::ReserveClaim { .. }]), "{effects:?}");
}

#[test]
fn what_claims_take_counts_on_while_the_pod_stands_in_line_and_once_it_is_bound() {
    let mut machine = machine(&["n1"], [held("c", 3, &device("n1", 0), &["p"])]);
    machine.show_pod(&stating(user("p", "c"), &statuses("c")));
    assert_eq!(bindings(&machine.settle()).len(), 1);
    let requested =
        |machine: &Machine| machine.scheduler().snapshot().node("n1").map(|node| node.requested.get("cpu"));
    assert_eq!(requested(&machine), Some(3000));
    machine.tell(Event::BindAnswered { pod: key("p"), node: "n1".into(), outcome: BindOutcome::Bound });
    machine.settle();
    assert_eq!(requested(&machine), Some(3000));
    let mut bound = stating(user("p", "c"), &statuses("c"));
    bound["spec"]["nodeName"] = json!("n1");
    machine.show_pod(&bound);
    machine.settle();
    assert_eq!(requested(&machine), Some(3000));
}
