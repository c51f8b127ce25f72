//! A volume is found by what it is for at the time.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::*;
use crate::scheduling::model::label_set::LabelSet;

fn volume(claim: &Value, phase: &str) -> Object {
    let volume = json!({"metadata": {"name": "v"}, "spec": {"storageClassName": "local", "claimRef": claim},
        "status": {"phase": phase}});
    Object::PersistentVolume(serde_json::from_value(volume).unwrap())
}

fn claim(name: &str) -> PersistentVolumeClaim {
    let claim =
        json!({"metadata": {"namespace": "default", "name": name}, "spec": {"storageClassName": "local"}});
    serde_json::from_value(claim).unwrap()
}

#[test]
fn a_volume_is_found_by_the_claims_that_may_have_it() {
    let mut objects = Objects::default();
    let found = |objects: &Objects| {
        let claims = [claim("a"), claim("b")];
        let available = |claim: &PersistentVolumeClaim| -> usize {
            objects.available_volumes(claim.class(), &LabelSet::default()).map(BTreeSet::len).sum()
        };
        let counted = claims.each_ref().map(|claim| objects.storage_for(claim));
        let found = |claim| objects.volumes_for(claim).count() + available(claim);
        assert_eq!(claims.each_ref().map(found), counted);
        counted
    };
    objects.set(volume(&json!(null), "Available"));
    assert_eq!(found(&objects), [1, 1]);
    objects.set(volume(&json!({"namespace": "default", "name": "a"}), "Bound"));
    assert_eq!(found(&objects), [1, 0]);
    objects.set(volume(&json!(null), "Released"));
    assert_eq!(found(&objects), [0, 0]);
    objects.set(volume(&json!({"namespace": "default", "name": "b"}), "Bound"));
    assert_eq!(found(&objects), [0, 1]);
    objects.remove(Kind::PersistentVolume, "v");
    assert_eq!(found(&objects), [0, 0]);
}

fn capacity(name: &str, class: &str, topology: &Value) -> Object {
    let metadata = json!({"namespace": "kube-system", "name": name});
    let capacity = json!({"metadata": metadata, "storageClassName": class, "nodeTopology": topology});
    Object::CsiStorageCapacity(serde_json::from_value(capacity).unwrap())
}

/// The capacities of the class that are looked at on a node with these labels, and the one that comes first.
fn looked_at(objects: &Objects, class: &str, labels: &[(&str, &str)]) -> (Vec<String>, Option<String>) {
    let labels: LabelSet = labels.iter().copied().collect();
    let looked = RefCell::new(Vec::new());
    let refuse = |capacity: &CsiStorageCapacity| {
        looked.borrow_mut().push(capacity.metadata.name.clone());
        false
    };
    assert_eq!(objects.first_capacity(class, &labels, refuse), None);
    let first = objects.first_capacity(class, &labels, |_| true);
    (looked.into_inner(), first.map(|capacity| capacity.metadata.name.clone()))
}

#[test]
fn capacities_are_found_by_their_class_and_the_labels_of_a_node() {
    let mut objects = Objects::default();
    let on = |host: &str| json!({"matchLabels": {"host": host, "zone": "z"}});
    let either = json!({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r", "s"]}]});
    for (name, class, topology) in [
        ("f", "local", on("f")),
        ("e", "local", on("e")),
        ("d", "local", on("d")),
        ("c", "local", either.clone()),
        ("b", "local", json!({})),
        ("a", "other", json!(null)),
    ] {
        objects.set(capacity(name, class, &topology));
    }
    let found = |looked: &[&str], first: &str| {
        (looked.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), Some(first.to_owned()))
    };
    assert_eq!(looked_at(&objects, "local", &[("host", "e"), ("zone", "y")]), found(&["e", "b"], "b"));
    assert_eq!(looked_at(&objects, "local", &[("rack", "s")]), found(&["c", "b"], "b"));
    assert_eq!(looked_at(&objects, "other", &[]), found(&["a"], "a"));
    assert_eq!(looked_at(&objects, "none", &[]), (Vec::new(), None));
    assert_eq!(objects.storage_for(&claim("a")), 1, "one is looked at on every node");
    let (in_zone, _) = looked_at(&objects, "local", &[("zone", "z")]);
    assert!(in_zone.len() <= 2, "a label that many need leads to few: {in_zone:?}");

    objects.set(capacity("e", "local", &on("f")));
    objects.remove(Kind::CsiStorageCapacity, "kube-system/b");
    assert_eq!(looked_at(&objects, "local", &[("host", "e")]), (Vec::new(), None));
    let both = looked_at(&objects, "local", &[("host", "f"), ("zone", "z")]);
    assert_eq!(both, found(&["f", "e"], "e"), "each is found by the label by which fewer were");
    for name in ["c", "d", "e", "f"] {
        objects.remove(Kind::CsiStorageCapacity, &format!("kube-system/{name}"));
    }
    assert_eq!(
        looked_at(&objects, "local", &[("host", "f"), ("rack", "r"), ("zone", "z")]),
        (Vec::new(), None)
    );
}
