//! Which volume a claim gets on a node, and whether there is storage to make one, whatever the form of what leads to the node.

use serde_json::{Value, json};

use super::*;
use crate::scheduling::{Snapshot, fixtures, model::label_set::LabelSet, world::object::Object};

const AVAILABLE: &str = "Available";

fn volume(name: &str, size: &str, phase: &str, claim: Option<&str>, terms: &Value) -> Object {
    let reference = claim.map(|claim| json!({"namespace": "default", "name": claim}));
    let affinity = (*terms != json!(null)).then(|| json!({"required": {"nodeSelectorTerms": terms}}));
    let volume = json!({"metadata": {"name": name}, "status": {"phase": phase},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "claimRef": reference, "nodeAffinity": affinity}});
    Object::PersistentVolume(serde_json::from_value(volume).unwrap())
}

fn one_of(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

fn cluster(objects: Vec<Object>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for object in objects {
        snapshot.set_object(object);
    }
    snapshot
}

/// The claim `data`, which needs 8 GiB of the class `local`.
fn claim() -> PersistentVolumeClaim {
    let claim = json!({"metadata": {"namespace": "default", "name": "data"},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "8Gi"}}}});
    serde_json::from_value(claim).unwrap()
}

fn labels(labels: &[(&str, &str)]) -> LabelSet {
    labels.iter().copied().collect()
}

/// The claim among these volumes: what it gets, in turn, on a node with these labels until there is none left.
fn given(volumes: Vec<Object>, of_node: &[(&str, &str)]) -> Vec<String> {
    let (snapshot, claim) = (cluster(volumes), claim());
    let mut node = fixtures::node("n1", 0, 0);
    node.labels = labels(of_node);
    let delayed = Delayed::prepare(&claim, snapshot.world());
    let (mut chosen, mut given) = (BTreeSet::new(), Vec::new());
    while let Some(volume) = delayed.matching(&node, &chosen) {
        chosen.insert(volume.metadata.name.as_str());
        given.push(volume.metadata.name.clone());
    }
    given
}

fn volumes() -> Vec<Object> {
    let zone = |values: &[&str]| json!([{"matchExpressions": [one_of("zone", "In", values)]}]);
    let either = json!([{"matchExpressions": [one_of("zone", "In", &["z"])]},
        {"matchExpressions": [one_of("rack", "Exists", &[])]}]);
    let both =
        json!([{"matchExpressions": [one_of("rack", "NotIn", &["r1"]), one_of("zone", "In", &["x"])]}]);
    let twice =
        json!([{"matchExpressions": [one_of("rack", "In", &["r1", "r2"]), one_of("zone", "In", &["x"])]}]);
    vec![
        volume("a", "20Gi", AVAILABLE, None, &zone(&["x"])),
        volume("b", "10Gi", AVAILABLE, None, &zone(&["x", "y"])),
        volume("c", "10Gi", AVAILABLE, None, &zone(&["x"])),
        volume("d", "5Gi", AVAILABLE, None, &json!(null)),
        volume("e", "30Gi", AVAILABLE, None, &json!(null)),
        volume("f", "10Gi", AVAILABLE, None, &either),
        volume("g", "12Gi", AVAILABLE, None, &both),
        volume("h", "9Gi", "Released", None, &json!(null)),
        volume("i", "9Gi", AVAILABLE, Some("another"), &json!(null)),
        volume("j", "9Gi", AVAILABLE, None, &json!([])),
        volume("k", "9Gi", AVAILABLE, None, &twice),
    ]
}

#[test]
fn the_smallest_volume_that_the_node_can_mount_comes_first_and_equals_go_by_name() {
    assert_eq!(given(volumes(), &[("zone", "x")]), ["b", "c", "g", "a", "e"]);
    assert_eq!(given(volumes(), &[("zone", "x"), ("rack", "r1")]), ["k", "b", "c", "f", "a", "e"]);
    assert_eq!(given(volumes(), &[("zone", "x"), ("rack", "r3")]), ["b", "c", "f", "g", "a", "e"]);
    assert_eq!(given(volumes(), &[("zone", "y")]), ["b", "e"]);
    assert_eq!(given(volumes(), &[("zone", "z")]), ["f", "e"]);
    assert_eq!(given(volumes(), &[]), ["e"]);
}

#[test]
fn a_volume_that_is_meant_for_the_claim_comes_before_smaller_ones_and_keeps_other_nodes_out() {
    let in_y = json!([{"matchExpressions": [one_of("zone", "In", &["y"])]}]);
    let with =
        || volumes().into_iter().chain([volume("m", "50Gi", AVAILABLE, Some("data"), &in_y)]).collect();
    assert_eq!(given(with(), &[("zone", "y")]), ["m", "b", "e"]);
    assert_eq!(given(with(), &[("zone", "x")]), Vec::<String>::new());
}

/// A class and a driver that publishes this much storage, each for the nodes of a topology.
fn published(capacities: &[Value]) -> Vec<Object> {
    let class = json!({"metadata": {"name": "local"}, "provisioner": "csi.example"});
    let driver = json!({"metadata": {"name": "csi.example"}, "spec": {"storageCapacity": true}});
    let capacities = capacities.iter().map(|capacity| serde_json::from_value(capacity.clone()).unwrap());
    [
        Object::StorageClass(serde_json::from_value(class).unwrap()),
        Object::CsiDriver(serde_json::from_value(driver).unwrap()),
    ]
    .into_iter()
    .chain(capacities.map(Object::CsiStorageCapacity))
    .collect()
}

fn capacity(name: &str, class: &str, size: &str, topology: &Value) -> Value {
    json!({"metadata": {"namespace": "csi", "name": name}, "storageClassName": class, "capacity": size,
        "nodeTopology": topology})
}

/// Whether a volume can be made for the claim on nodes of zone x, of zone y, of zone y with a rack, and without labels.
fn can_be_made(capacities: &[Value]) -> [bool; 4] {
    let (snapshot, claim) = (cluster(published(capacities)), claim());
    let delayed = Delayed::prepare(&claim, snapshot.world());
    let nodes: [&[(&str, &str)]; 4] =
        [&[("zone", "x")], &[("zone", "y")], &[("zone", "y"), ("rack", "r")], &[]];
    nodes.map(|of_node| delayed.has_capacity(&labels(of_node)))
}

#[test]
fn a_volume_is_made_where_enough_storage_is_published_for_the_node() {
    let equal = json!({"matchLabels": {"zone": "x"}});
    let of = |size: &str, topology: &Value| capacity("c", "local", size, topology);
    assert_eq!(can_be_made(&[]), [false; 4]);
    assert_eq!(can_be_made(&[of("8Gi", &equal)]), [true, false, false, false]);
    assert_eq!(can_be_made(&[of("7Gi", &equal)]), [false; 4]);
    assert_eq!(can_be_made(&[capacity("c", "other", "8Gi", &equal)]), [false; 4]);
    assert_eq!(can_be_made(&[of("8Gi", &json!(null))]), [false; 4]);
    assert_eq!(can_be_made(&[of("8Gi", &json!({}))]), [true; 4]);
    let of_requirements =
        |requirements: Value| can_be_made(&[of("8Gi", &json!({"matchExpressions": requirements}))]);
    let in_zones = one_of("zone", "In", &["x", "y"]);
    assert_eq!(of_requirements(json!([in_zones])), [true, true, true, false]);
    assert_eq!(
        of_requirements(json!([one_of("rack", "Exists", &[]), in_zones])),
        [false, false, true, false]
    );
    assert_eq!(of_requirements(json!([one_of("zone", "NotIn", &["x"])])), [false, true, true, true]);
    let both =
        json!({"matchLabels": {"zone": "y"}, "matchExpressions": [one_of("rack", "DoesNotExist", &[])]});
    assert_eq!(can_be_made(&[of("8Gi", &both)]), [false, true, false, false]);
    let two = [capacity("c", "local", "7Gi", &equal), capacity("d", "local", "9Gi", &in_zone_y())];
    assert_eq!(can_be_made(&two), [false, true, true, false]);
}

fn in_zone_y() -> Value {
    json!({"matchLabels": {"zone": "y"}})
}

#[test]
fn the_largest_volume_that_a_driver_makes_counts_instead_of_its_capacity() {
    let mut published = capacity("c", "local", "100Gi", &json!({}));
    published["maximumVolumeSize"] = json!("7Gi");
    assert_eq!(can_be_made(&[published.clone()]), [false; 4]);
    published["maximumVolumeSize"] = json!("8Gi");
    published["capacity"] = json!("1Gi");
    assert_eq!(can_be_made(&[published]), [true; 4]);
}

#[test]
fn a_driver_that_publishes_nothing_makes_volumes_everywhere() {
    let mut objects = published(&[]);
    objects.truncate(1);
    let (snapshot, claim) = (cluster(objects), claim());
    assert!(Delayed::prepare(&claim, snapshot.world()).has_capacity(&labels(&[])));
}
