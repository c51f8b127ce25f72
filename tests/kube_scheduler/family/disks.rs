//! What volumes ask of a node beside their binding: one user at a time, zones, disks without a claim, room for attachments.

use serde_json::{Value, json};

use super::claims::{bound_claim, use_claim, volume};
use crate::kube_scheduler::{
    dice::Dice,
    family::Family,
    world::{HOSTNAME, World, ZONE, push},
};

const DRIVER: &str = "csi.example.com";

/// Claims that one pod at a time may use, some of them used by a pod on a node.
pub(super) fn once_pod(world: &mut World) {
    for pod in world.chosen() {
        let (name, namespace) = (format!("once-{pod}"), world.namespace(pod));
        let mode = world.dice.pick(&[("ReadWriteOncePod", 4), ("ReadWriteOnce", 1)]);
        let (mut claim, mut volume) = bound_claim(&name, &namespace, &format!("pv-{name}"));
        claim["spec"]["accessModes"] = json!([mode]);
        volume["spec"]["accessModes"] = json!([mode]);
        world.objects.extend([claim, volume]);
        if world.dice.in_thousand(500) {
            let user = world.bind_another(&format!("user-{pod}"), &namespace);
            use_claim(user, &name);
        }
        use_claim(&mut world.waiting[pod], &name);
        world.asks(pod, Family::OncePod);
    }
}

/// Bound claims whose volumes are of some zones, or of none.
pub(super) fn volume_zones(world: &mut World) {
    for pod in world.chosen() {
        let (name, namespace) = (format!("zoned-{pod}"), world.namespace(pod));
        let (claim, mut volume) = bound_claim(&name, &namespace, &format!("pv-{name}"));
        let key = world.dice.pick(&[(ZONE, 4), ("failure-domain.beta.kubernetes.io/zone", 1)]);
        volume["metadata"]["labels"] = match world.dice.below(4) {
            0 => json!({key: "a__b"}),
            1 => json!({key: "c"}),
            2 => json!({key: "a"}),
            _ => json!({}),
        };
        world.objects.extend([claim, volume]);
        use_claim(&mut world.waiting[pod], &name);
        world.asks(pod, Family::VolumeZones);
    }
}

/// The same few disks in waiting and in bound pods, some for reading only.
pub(super) fn disks(world: &mut World) {
    let kind = world.dice.below(4);
    for pod in &mut world.bound {
        if world.dice.in_thousand(500) {
            let disk = disk(&mut world.dice, kind);
            push(&mut pod["spec"]["volumes"], disk);
        }
    }
    for pod in world.chosen() {
        let disk = disk(&mut world.dice, kind);
        push(&mut world.waiting[pod]["spec"]["volumes"], disk);
        world.asks(pod, Family::Disks);
    }
}

/// A disk, most often of this kind.
fn disk(dice: &mut Dice, kind: u64) -> Value {
    let read_only = dice.in_thousand(500);
    let id = dice.one_of(&["d1", "d2"]);
    let mut disk = json!({"name": "disk"});
    let kind = if dice.in_thousand(800) { kind } else { dice.below(4) };
    match kind {
        0 => disk["gcePersistentDisk"] = json!({"pdName": id, "readOnly": read_only}),
        1 => disk["awsElasticBlockStore"] = json!({"volumeID": id, "readOnly": read_only}),
        2 => {
            let monitors = dice.one_of(&[&["m1"] as &[_], &["m2"], &["m1", "m2"]]);
            disk["rbd"] = json!({"monitors": monitors, "image": id, "readOnly": read_only});
        }
        _ => {
            let iqn = format!("iqn.2026-01.com.example:{id}");
            disk["iscsi"] =
                json!({"targetPortal": "10.0.0.1:3260", "iqn": iqn, "lun": 0, "readOnly": read_only});
        }
    }
    disk
}

/// Nodes that can have one or two volumes of a driver, with some of them taken.
pub(super) fn attach_limits(world: &mut World) {
    world.add(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {"attachRequired": true},
    }));
    let names: Vec<_> = world.nodes.iter().map(|node| node["metadata"]["name"].clone()).collect();
    for name in names {
        let mut driver = json!({"name": DRIVER, "nodeID": name, "topologyKeys": [HOSTNAME]});
        if world.dice.in_thousand(850) {
            driver["allocatable"] = json!({"count": 1 + world.dice.below(2)});
        }
        let drivers = if world.dice.in_thousand(850) { json!([driver]) } else { json!([]) };
        world.objects.push(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers},
        }));
    }
    for at in 0..world.dice.below(8) {
        let name = format!("attached-{at}");
        attached(world, &name);
    }
    for pod in world.chosen() {
        let namespace = world.namespace(pod);
        for number in 0..=world.dice.below(2) {
            let name = format!("new-{pod}-{number}");
            let (claim, volume) = bound_claim(&name, &namespace, &format!("pv-{name}"));
            world.objects.extend([claim, volume]);
            use_claim(&mut world.waiting[pod], &name);
        }
        world.asks(pod, Family::AttachLimits);
    }
}

/// A volume that is attached to a node: by a pod there, or by an attachment alone.
fn attached(world: &mut World, name: &str) {
    if world.dice.in_thousand(600) {
        let (claim, volume) = bound_claim(name, "default", &format!("pv-{name}"));
        world.objects.extend([claim, volume]);
        use_claim(world.bind_another(&format!("user-{name}"), "default"), name);
    } else {
        let node = world.any_node_name();
        world.objects.push(volume(&format!("pv-{name}")));
        world.objects.push(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": format!("pv-{name}")}},
            "status": {"attached": true},
        }));
    }
}
