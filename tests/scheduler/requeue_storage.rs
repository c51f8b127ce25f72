//! Which changes of storage have a waiting pod decided again, plugin by plugin.

use std::sync::Arc;

use berth::{
    config::Config,
    scheduling::{Event, ObjectChange, PodChange, model::kind::Kind, world::object::Object},
};
use serde_json::{Value, json};

use super::{
    machine::{Machine, bound, parsed},
    neighbours::{hami_node, other, share},
    requeue::{Row, Woken, check},
};

/// Storage that both nodes, in zones a and b, see; and pods on them.
fn machine(pods: &[Value], storage: impl IntoIterator<Item = Event>) -> Machine {
    let mut machine = Machine::new(&Config::default(), &[hami_node("n1", "a"), hami_node("n2", "b")], pods);
    for event in storage {
        machine.tell(event);
    }
    machine
}

fn uses(mut pod: Value, claim: &str) -> Value {
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

/// A share pod that uses the claim `data`.
fn waiting() -> Value {
    uses(share("p", "web", &json!({})), "data")
}

fn seen<T: serde::de::DeserializeOwned>(wrap: fn(Arc<T>) -> Object, object: &Value) -> Event {
    Event::Object(ObjectChange::Seen(wrap(Arc::new(parsed(object)))))
}

/// A claim that is bound to this volume, or to none.
fn claim(name: &str, volume: &str, mode: &str) -> Event {
    let completed =
        if volume.is_empty() { json!({}) } else { json!({"pv.kubernetes.io/bind-completed": "yes"}) };
    let claim = json!({"metadata": {"name": name, "namespace": "default", "uid": name, "annotations": completed},
        "spec": {"storageClassName": "late", "volumeName": volume, "accessModes": [mode]}});
    seen(Object::PersistentVolumeClaim, &claim)
}

/// A volume of a CSI driver with these labels, which can be mounted in this zone.
fn volume_with(name: &str, zone: &str, labels: &Value) -> Event {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
    let volume = json!({"metadata": {"name": name, "labels": labels},
        "spec": {"csi": {"driver": "csi.example", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}});
    seen(Object::PersistentVolume, &volume)
}

fn volume(name: &str, zone: &str) -> Event {
    volume_with(name, zone, &json!({}))
}

fn class(name: &str) -> Event {
    let class = json!({"metadata": {"name": name}, "provisioner": "csi.example"});
    seen(Object::StorageClass, &class)
}

fn namespace() -> Event {
    Event::Object(ObjectChange::Seen(Object::Namespace(
        "default".into(),
        Arc::new([("a".to_owned(), "b".to_owned())].into()),
    )))
}

#[test]
fn a_pod_whose_volume_or_claim_is_missing_is_woken_by_it() {
    let rows: &[Row] = &[
        ("the volume comes", |machine| machine.tell(volume("pv", "b")), Woken::Goes("n2")),
        ("another volume comes", |machine| machine.tell(volume("other", "b")), Woken::InVain),
        ("a namespace changes", |machine| machine.tell(namespace()), Woken::No),
        ("a pod comes", |machine| machine.show_pod(&other("noise", "noise", "n1", &json!({}))), Woken::No),
    ];
    let begin = || machine(&[], [claim("data", "pv", "ReadWriteOnce")]);
    check(begin, &waiting(), "bound to non-existent pv(s)", rows);
    let rows: &[Row] = &[
        ("the claim comes", |machine| machine.tell(claim("data", "pv", "ReadWriteOnce")), Woken::Goes("n2")),
        ("another claim comes", |machine| machine.tell(claim("other", "", "ReadWriteOnce")), Woken::No),
    ];
    check(|| machine(&[], [volume("pv", "b")]), &waiting(), "not found", rows);
}

#[test]
fn a_pod_whose_claim_is_bound_by_others_is_woken_by_that_and_by_its_class() {
    let rows: &[Row] = &[
        ("it is bound", |machine| machine.tell(claim("data", "pv", "ReadWriteOnce")), Woken::Goes("n2")),
        ("its class comes", |machine| machine.tell(class("late")), Woken::InVain),
        ("another claim is bound", |machine| machine.tell(claim("other", "pv", "ReadWriteOnce")), Woken::No),
    ];
    let begin = || machine(&[], [volume("pv", "b"), claim("data", "", "ReadWriteOnce")]);
    check(begin, &waiting(), "unbound immediate", rows);
}

#[test]
fn a_pod_whose_volume_can_be_mounted_nowhere_is_woken_by_a_node_and_by_the_volume() {
    let rows: &[Row] = &[
        ("a node of the zone joins", |machine| machine.show_node(&hami_node("n3", "c")), Woken::Goes("n3")),
        ("the volume changes", |machine| machine.tell(volume("pv", "a")), Woken::Goes("n1")),
    ];
    let begin = || machine(&[], [volume("pv", "c"), claim("data", "pv", "ReadWriteOnce")]);
    check(begin, &waiting(), "PersistentVolume's node affinity", rows);
}

/// A node in a zone by the label that volumes of a cloud name.
fn in_zone(name: &str, zone: &str) -> Value {
    let mut node = hami_node(name, "a");
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
    node
}

#[test]
fn a_pod_whose_volume_is_in_another_zone_is_woken_by_a_node_there() {
    let rows: &[Row] = &[
        ("a node of the zone joins", |machine| machine.show_node(&in_zone("n3", "east")), Woken::Goes("n3")),
        (
            "the volume says another zone",
            |machine| {
                let labels = json!({"topology.kubernetes.io/zone": "west"});
                machine.tell(volume_with("pv", "a", &labels));
            },
            Woken::Goes("n1"),
        ),
        ("a namespace changes", |machine| machine.tell(namespace()), Woken::No),
    ];
    let begin = || {
        let labels = json!({"topology.kubernetes.io/zone": "east"});
        let mut machine = Machine::new(&Config::default(), &[in_zone("n1", "west")], &[]);
        machine.tell(volume_with("pv", "a", &labels));
        machine.tell(claim("data", "pv", "ReadWriteOnce"));
        machine
    };
    check(begin, &waiting(), "no available volume zone", rows);
}

fn limit(node: &str, count: u32) -> Event {
    let csi = json!({"metadata": {"name": node},
        "spec": {"drivers": [{"name": "csi.example", "allocatable": {"count": count}}]}});
    seen(Object::CsiNode, &csi)
}

#[test]
fn a_pod_that_no_node_can_attach_a_volume_for_is_woken_by_limits_and_by_volumes_that_go() {
    let rows: &[Row] = &[
        ("a limit is raised", |machine| machine.tell(limit("n1", 2)), Woken::Goes("n1")),
        (
            "a pod with the volume ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("holder".into()))),
            Woken::Goes("n1"),
        ),
        (
            "a pod without claims ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("noise".into()))),
            Woken::No,
        ),
        (
            "an attachment goes",
            |machine| {
                let of = json!({"metadata": {"name": "a"}, "spec": {"attacher": "csi.example", "nodeName": "n2",
                    "source": {"persistentVolumeName": "other"}}});
                machine.tell(seen(Object::VolumeAttachment, &of));
                machine.tell(Event::Object(ObjectChange::Gone(Kind::VolumeAttachment, "a".into())));
            },
            Woken::InVain,
        ),
        ("a driver changes", |machine| machine.tell(namespace()), Woken::No),
    ];
    let pods =
        [uses(other("holder", "x", "n1", &json!({})), "held"), other("noise", "noise", "n1", &json!({}))];
    let begin = || {
        let any = |name: &str| {
            let volume = json!({"metadata": {"name": name},
                "spec": {"csi": {"driver": "csi.example", "volumeHandle": name}}});
            seen(Object::PersistentVolume, &volume)
        };
        let claims = [claim("data", "pv", "ReadWriteOnce"), claim("held", "other", "ReadWriteOnce")];
        let limits = [limit("n1", 1), limit("n2", 0)];
        machine(&pods, [any("pv"), any("other")].into_iter().chain(claims).chain(limits))
    };
    check(begin, &waiting(), "exceed max volume count", rows);
}

#[test]
fn a_pod_whose_claim_only_one_pod_may_use_is_woken_by_the_end_of_that_one() {
    let rows: &[Row] = &[
        (
            "that pod ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("holder".into()))),
            Woken::Goes("n2"),
        ),
        (
            "a pod with another claim ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("beside".into()))),
            Woken::No,
        ),
        ("a namespace changes", |machine| machine.tell(namespace()), Woken::No),
    ];
    let mode = "ReadWriteOncePod";
    let pods = [
        uses(bound(share("holder", "x", &json!({})), "n2", json!({})), "data"),
        uses(other("beside", "x", "n2", &json!({})), "other"),
    ];
    let begin = || {
        let claims = [claim("data", "pv", mode), claim("other", "pv-2", mode)];
        machine(&pods, claims.into_iter().chain([volume("pv", "b"), volume("pv-2", "b")]))
    };
    check(begin, &waiting(), "ReadWriteOncePod", rows);
}
