//! Nodes of which half of the devices are held by claims, and pods each with a claim of its own, as a template makes them.

use std::sync::Arc;

use berth::{
    object::Pod,
    scheduling::{Snapshot, world::object::Object},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::objects::{self, Kind};

/// Publishes the devices of so many nodes, and has half of them held.
pub(super) fn publish(snapshot: &mut Snapshot, nodes: usize, kind: Kind) {
    snapshot.set_object(Object::DeviceClass(read(objects::class(kind))));
    for node in 0..nodes {
        snapshot.set_object(Object::ResourceSlice(read(objects::slice(node, kind))));
    }
    for node in 0..nodes {
        for place in 0..kind.room() / 2 {
            let (name, uid) = (format!("standing-{node}-{place}"), format!("standing/{node}/{place}"));
            let mut claim = objects::claim((&name, &uid), kind, "gpu");
            claim["status"] = objects::allocated((&name, &uid), kind, (node, place));
            snapshot.set_object(Object::ResourceClaim(read(claim)));
        }
    }
}

/// The uid of the pod of this number.
pub(super) fn uid(number: usize) -> String {
    format!("placed/{number}")
}

/// The claim of the pod of this number; claims of one class ask for the same.
pub(super) fn claim(number: usize, kind: Kind, class: u64) -> Object {
    let claim = objects::claim((&name(number), &uid(number)), kind, &format!("gpu-{class}"));
    Object::ResourceClaim(read(claim))
}

/// The pod of this number.
pub(super) fn pod(number: usize) -> Pod {
    let name = name(number);
    let mut pod = objects::pod(&name, "berth");
    pod["status"] = json!({"resourceClaimStatuses": objects::claim_statuses(&name)});
    serde_json::from_value(pod).unwrap()
}

fn name(number: usize) -> String {
    format!("placed-{number}")
}

fn read<T: DeserializeOwned>(written: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(written).unwrap())
}
