//! Storage that would be left beside a pod's new claims.

use super::*;

#[test]
fn a_node_scores_by_the_storage_that_stays_free() {
    let capacity = ScoreWeights::each(|plugin| u32::from(plugin == Plugin::VolumeBinding));
    let read = |kind: &str, json: &str| match kind {
        "class" => Object::StorageClass(serde_json::from_str(json).unwrap()),
        "driver" => Object::CsiDriver(serde_json::from_str(json).unwrap()),
        "claim" => Object::PersistentVolumeClaim(serde_json::from_str(json).unwrap()),
        "volume" => Object::PersistentVolume(serde_json::from_str(json).unwrap()),
        _ => Object::CsiStorageCapacity(serde_json::from_str(json).unwrap()),
    };
    let published = |name: &str, zone: &str, size: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"default"}},"storageClassName":"made",
                "nodeTopology":{{"matchLabels":{{"zone":"{zone}"}}}},"capacity":"{size}"}}"#
        )
    };
    let claim = |name: &str, class: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"default"}},"spec":{{"storageClassName":"{class}",
                "resources":{{"requests":{{"storage":"5Gi"}}}}}}}}"#
        )
    };
    let class =
        r#"{"metadata":{"name":"CLASS"},"provisioner":"csi","volumeBindingMode":"WaitForFirstConsumer"}"#;
    let volume = r#"{"metadata":{"name":"v"},"status":{"phase":"Available"},"spec":{"capacity":{"storage":"8Gi"},
        "storageClassName":"kept","nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
        {"key":"zone","operator":"Exists"}]}]}}}}"#;
    let mut cluster = Cluster::new(&ZONES[..3]);
    for (kind, json) in [
        ("class", class.replace("CLASS", "made")),
        ("class", class.replace("CLASS", "kept")),
        ("driver", r#"{"metadata":{"name":"csi"},"spec":{"storageCapacity":true}}"#.to_owned()),
        ("capacity", published("one", "1", "10Gi")),
        ("capacity", published("two", "2", "20Gi")),
        ("volume", volume.to_owned()),
        ("claim", claim("x", "made")),
        ("claim", claim("y", "made")),
        ("claim", claim("z", "kept")),
    ] {
        cluster = cluster.with_object(read(kind, &json));
    }
    for kind in Kind::STORAGE {
        cluster.0.note_listed(*kind);
    }
    let pod = |claims: &[&str]| {
        let volume =
            |claim| format!(r#"{{"name":"{claim}","persistentVolumeClaim":{{"claimName":"{claim}"}}}}"#);
        let volumes: Vec<_> = claims.iter().map(volume).collect();
        demand(&format!(r#"{{"spec":{{"volumes":[{}]}}}}"#, volumes.join(",")))
    };
    let scores = |claims: &[&str]| cluster.weighed(&pod(claims), Plugin::VolumeBinding, &capacity);
    // 5 of 10 and 5 of 20; of two claims of one class 10 of 10 and 10 of 20.
    assert_eq!(scores(&["x"]), [Some(50), Some(50), Some(75)]);
    assert_eq!(scores(&["x", "y"]), [Some(0), Some(0), Some(50)]);
    // 5 of the 8 GiB of a volume: what is made beside it does not count.
    assert_eq!(scores(&["x", "z"]), [Some(38); 3]);
    assert_eq!(scores(&[]), [None; 3]);
    assert_eq!(cluster.scores(&pod(&["x"]), Plugin::VolumeBinding), [None; 3], "the default weight is 0");
    assert_eq!(&*cluster.place(&pod(&["x"]), capacity), "c");
}
