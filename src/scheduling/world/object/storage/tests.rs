//! A volume is found by what it is for at the time.

use serde_json::{Value, json};

use super::*;

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
        let counted = claims.each_ref().map(|claim| objects.storage_for(claim));
        assert_eq!(claims.each_ref().map(|claim| objects.volumes_for(claim).count()), counted);
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

#[test]
fn capacities_are_found_by_their_class() {
    let mut objects = Objects::default();
    for (name, class) in [("b", "local"), ("a", "local"), ("c", "other")] {
        let capacity =
            json!({"metadata": {"namespace": "kube-system", "name": name}, "storageClassName": class});
        objects.set(Object::CsiStorageCapacity(serde_json::from_value(capacity).unwrap()));
    }
    let names =
        |class| objects.capacities(class).map(|capacity| capacity.metadata.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names("local"), names("other"), names("none")),
        (vec!["a".into(), "b".into()], vec!["c".into()], vec![])
    );
    assert_eq!(objects.storage_for(&claim("a")), 2);
}
