//! Pods with claims: where bound volumes let them go, how claims are bound with them, and what becomes of that when they go elsewhere (`failures`).

#[path = "claims/failures.rs"]
mod failures;
#[path = "claims/unlisted.rs"]
mod unlisted;

use std::sync::Arc;

use berth::{
    config::Config,
    scheduling::{
        Effect, Event, ObjectChange, PodChange, Setback, WriteOutcome, effect::PrebindWrite,
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, counted, heard, node, pod};

const SELECTED: &str = "volume.kubernetes.io/selected-node";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";

fn hami_node(name: &str, memory: u32) -> Value {
    let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 10, "devmem": memory, "devcore": 100,
        "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
    let mut node = node(name, &json!({"hami.io/node-nvidia-register": card.to_string()}));
    node["metadata"]["labels"] = json!({"zone": name});
    node
}

/// A pod that asks for a share and uses the claim `data`.
fn share(name: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod
}

fn object<T: serde::de::DeserializeOwned>(value: &Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value.clone()).unwrap())
}

/// The claim `data` of class `local`, with these annotations and bound to this volume or none.
fn claim(version: u32, annotations: &Value, volume: &str) -> Event {
    let claim = json!({
        "metadata": {"name": "data", "namespace": "default", "uid": "claim", "resourceVersion": version.to_string(),
            "annotations": annotations},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}}},
    });
    Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(object(&claim))))
}

/// A volume of class `local` in a zone, bound to the claim with this uid or to none.
fn volume(name: &str, version: u32, zone: &str, uid: Option<&str>) -> Event {
    let reference = uid.map(|uid| json!({"namespace": "default", "name": "data", "uid": uid}));
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
    let volume = json!({
        "metadata": {"name": name, "resourceVersion": version.to_string()},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"},
            "claimRef": reference, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
        "status": {"phase": if uid.is_some() { "Bound" } else { "Available" }},
    });
    Event::Object(ObjectChange::Seen(Object::PersistentVolume(object(&volume))))
}

fn class(provisioner: &str) -> Event {
    let class = json!({"metadata": {"name": "local"}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer"});
    Event::Object(ObjectChange::Seen(Object::StorageClass(object(&class))))
}

/// Two nodes with a free card each; what there is of storage is listed and empty but for these.
fn machine(objects: impl IntoIterator<Item = Event>) -> Machine {
    let mut machine =
        Machine::new(&Config::default(), &[hami_node("n1", 16_000), hami_node("n2", 16_000)], &[]);
    for object in objects {
        machine.tell(object);
    }
    machine
}

fn dynamic() -> [Event; 2] {
    [class("csi.example"), claim(1, &json!({}), "")]
}

/// The one write that is to be done for claims, and nothing else.
#[track_caller]
fn write(effects: &[Effect]) -> PrebindWrite {
    let writes: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Prebind { write, .. } => Some(write.clone()),
            _ => None,
        })
        .collect();
    let [write] = &writes[..] else { panic!("not one write but {effects:?}") };
    write.clone()
}

/// The node that the write selects for the claim.
#[track_caller]
fn selected(effects: &[Effect]) -> Option<String> {
    match write(effects) {
        PrebindWrite::SelectNode { node, .. } => node.map(|node| node.to_string()),
        other => panic!("another write: {other:?}"),
    }
}

/// Pod `p`, whose claim is to be selected for a node: the write that does so, and the node.
#[track_caller]
fn selecting() -> (Machine, Vec<Effect>, String) {
    let mut machine = machine(dynamic());
    machine.show_pod(&share("p"));
    let effects = machine.settle();
    let node = selected(&effects).unwrap();
    (machine, effects, node)
}

/// Answers the write that is under way for a pod.
fn answer(machine: &mut Machine, effects: &[Effect], outcome: &WriteOutcome) {
    for effect in effects {
        if let Effect::Prebind { pod, write } = effect {
            let (pod, write) = (pod.clone(), write.clone());
            machine.tell(Event::Prebound { pod, write, outcome: outcome.clone() });
        }
    }
}

fn written(version: u32) -> WriteOutcome {
    WriteOutcome::Written { resource_version: version.to_string() }
}

/// Writes every condition that is to be written, so that the next can be.
fn tell(machine: &mut Machine, effects: &[Effect]) {
    for effect in effects {
        if let Effect::TellUnschedulable { pod, reason, .. } = effect {
            machine.tell(heard(pod.clone(), reason));
        }
    }
}

fn said(effects: &[Effect]) -> Vec<String> {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::TellUnschedulable { reason, .. } => Some(counted(reason)),
        _ => None,
    });
    said.collect()
}

#[test]
fn a_pod_goes_where_its_bound_volume_can_be_mounted() {
    let bound = claim(1, &json!({COMPLETED: "yes"}), "pv-1");
    let mut machine = machine([volume("pv-1", 1, "n2", Some("claim")), bound]);
    machine.show_pod(&share("p"));
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
}

#[test]
fn a_pod_waits_for_its_claim_and_for_the_claims_volume() {
    let mut machine = machine([]);
    machine.show_pod(&share("p"));
    let (effects, bound) = machine.run();
    assert_eq!(said(&effects), [r#"0/2 nodes are available: persistentvolumeclaim "data" not found."#]);
    assert_eq!(bound, []);
    tell(&mut machine, &effects);
    machine.tell(claim(1, &json!({}), ""));
    let (effects, bound) = machine.run();
    assert_eq!(
        said(&effects),
        ["0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."]
    );
    assert_eq!(bound, []);
    machine.tell(volume("pv-1", 1, "n1", Some("claim")));
    machine.tell(claim(2, &json!({COMPLETED: "yes"}), "pv-1"));
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_volume_is_made_for_the_node_before_the_pod_is_bound() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &written(2));
    assert_eq!(machine.run().1, [], "the provisioner has not made the volume yet");
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    assert_eq!(machine.run().1, []);
    machine.tell(volume("pv-1", 3, &node, Some("claim")));
    machine.tell(claim(4, &json!({SELECTED: node, COMPLETED: "yes"}), "pv-1"));
    assert_eq!(machine.run().1, [("p".to_owned(), node)]);
}

#[test]
fn a_volume_that_is_there_is_bound_before_the_pod_is() {
    let objects =
        [class("kubernetes.io/no-provisioner"), claim(1, &json!({}), ""), volume("pv-2", 5, "n2", None)];
    let mut machine = machine(objects);
    machine.show_pod(&share("p"));
    let effects = machine.settle();
    let PrebindWrite::BindVolume { volume: written_to, claim: Some(_) } = write(&effects) else {
        panic!("{effects:?}")
    };
    assert_eq!(written_to.metadata.name, "pv-2");
    answer(&mut machine, &effects, &written(6));
    machine.tell(volume("pv-2", 6, "n2", Some("claim")));
    assert_eq!(machine.run().1, []);
    machine.tell(claim(7, &json!({COMPLETED: "yes"}), "pv-2"));
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
}

#[test]
fn two_pods_are_not_given_the_same_volume() {
    let objects =
        [class("kubernetes.io/no-provisioner"), claim(1, &json!({}), ""), volume("pv-2", 5, "n2", None)];
    let mut machine = machine(objects);
    let other = json!({"metadata": {"name": "more", "namespace": "default", "uid": "more"},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(object(&other)))));
    machine.show_pod(&share("p"));
    write(&machine.settle());
    let mut second = share("q");
    second["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!("more");
    machine.show_pod(&second);
    let effects = machine.settle();
    let counted = "2 node(s) didn't find available persistent volumes to bind";
    assert_eq!(said(&effects), [format!("0/2 nodes are available: {counted}.")]);
    machine.tell(Event::Pod(PodChange::Ended("p".into())));
    // The first write is still under way, and the volume is bound to the first claim as far as anyone can know.
    let effects = machine.settle();
    let PrebindWrite::BindVolume { claim: Some(claim), .. } = write(&effects) else { panic!("{effects:?}") };
    assert_eq!(claim.metadata.name, "more");
}

#[test]
fn pods_of_one_claim_go_to_the_node_that_was_selected_for_it() {
    let (mut machine, effects, node) = selecting();
    machine.show_pod(&share("q"));
    let again = machine.settle();
    assert_eq!(selected(&again), Some(node.clone()));
    answer(&mut machine, &effects, &written(2));
    answer(&mut machine, &again, &WriteOutcome::Failed(Setback::default()));
    machine.tell(volume("pv-1", 3, &node, Some("claim")));
    machine.tell(claim(4, &json!({SELECTED: node, COMPLETED: "yes"}), "pv-1"));
    assert_eq!(machine.run().1, [("p".to_owned(), node)]);
}

#[test]
fn after_a_restart_the_pod_goes_on_with_what_was_written() {
    let selected = claim(2, &json!({SELECTED: "n2"}), "");
    let mut machine = machine([class("csi.example"), selected]);
    machine.show_pod(&share("p"));
    assert_eq!(machine.run().1, []);
    machine.tell(volume("pv-1", 3, "n2", Some("claim")));
    machine.tell(claim(4, &json!({SELECTED: "n2", COMPLETED: "yes"}), "pv-1"));
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
}

/// The claim `data` for one pod only, bound to a volume of the second node.
fn of_one_pod() -> Machine {
    let single = json!({
        "metadata": {"name": "data", "namespace": "default", "uid": "claim", "resourceVersion": "2",
            "annotations": {COMPLETED: "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "pv-1"},
    });
    let single = Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(object(&single))));
    machine([volume("pv-1", 1, "n2", Some("claim")), single])
}

#[test]
fn a_claim_of_one_pod_is_kept_for_the_pod_that_the_node_is_kept_for() {
    let mut machine = of_one_pod();
    let mut first = share("first");
    first["spec"]["schedulerName"] = json!("default-scheduler");
    first["status"] = json!({"nominatedNodeName": "n2"});
    machine.show_pod(&first);
    machine.show_pod(&share("next"));
    assert_eq!(machine.run().1, []);
    machine.tell(Event::Pod(PodChange::Gone("first".into())));
    assert_eq!(machine.run().1, [("next".to_owned(), "n2".to_owned())]);
}

#[test]
fn a_claim_of_one_pod_keeps_the_next_waiting_until_that_has_ended() {
    let mut machine = of_one_pod();
    let mut first = bound(share("first"), "n2", json!({}));
    first["status"]["phase"] = json!("Running");
    machine.show_pod(&first);
    machine.show_pod(&share("next"));
    let counted = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
    assert_eq!(said(&machine.run().0), [format!("0/2 nodes are available: {counted}.")]);
    machine.tell(Event::Pod(PodChange::Ended("first".into())));
    assert_eq!(machine.run().1, [("next".to_owned(), "n2".to_owned())]);
}

#[test]
fn a_node_whose_driver_can_attach_no_more_is_passed_over() {
    let csi = |node: &str, count: i64| {
        let csi = json!({"metadata": {"name": node}, "spec": {"drivers": [{"name": "csi.example",
            "allocatable": {"count": count}}]}});
        Event::Object(ObjectChange::Seen(Object::CsiNode(object(&csi))))
    };
    let mut machine = machine(dynamic().into_iter().chain([csi("n1", 0), csi("n2", 0)]));
    machine.show_pod(&share("p"));
    let effects = machine.settle();
    assert_eq!(said(&effects), ["0/2 nodes are available: 2 node(s) exceed max volume count."]);
    machine.tell(csi("n2", 1));
    assert_eq!(selected(&machine.settle()), Some("n2".to_owned()));
}

#[test]
fn what_is_said_of_a_pod_with_a_claim_is_not_said_of_one_without() {
    let nodes = [hami_node("n1", 500), hami_node("n2", 500)];
    let mut machine = Machine::new(&Config::default(), &nodes, &[]);
    let plain = pod("plain", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    machine.show_pod(&plain);
    machine.show_pod(&share("claims"));
    let (effects, _) = machine.run();
    let missing = r#"0/2 nodes are available: persistentvolumeclaim "data" not found."#;
    assert_eq!(said(&effects), ["0/2 nodes are available: 2 Insufficient GPU memory.", missing]);
    tell(&mut machine, &effects);
    // The audit decides each waiting pod again.
    machine.pass(61);
    assert_eq!(said(&machine.run().0), [""; 0]);
}
