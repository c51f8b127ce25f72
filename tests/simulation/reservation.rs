//! What must hold of Koordinator's Reservations: what one holds is given to no pod that it is not for, and no pod of others uses it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    devices::{ALLOCATED, Key},
    dice::Dice,
    record::{Pod, annotation, text},
};

/// The value of the label `app` of pods that Reservations are for.
pub(crate) const OWNER: &str = "reserved";

/// The annotation that says which Reservation a pod uses.
const USED: &str = "scheduling.koordinator.sh/reservation-allocated";

/// A Reservation of one whole GPU, once or for several pods.
pub(crate) fn object(dice: &mut Dice, name: &str, node: &str, minor: u64) -> Value {
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"});
    let devices = json!({"gpu": [{"minor": minor, "resources": resources}]}).to_string();
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": name, "annotations": {ALLOCATED: devices}},
        "spec": {
            "template": {}, "allocateOnce": dice.in_thousand(500),
            "allocatePolicy": dice.one_of(&["Aligned", "Restricted"]),
            "owners": [{"labelSelector": {"matchLabels": {"app": OWNER}}}],
        },
        "status": {"phase": "Available", "nodeName": node, "allocatable": {"koordinator.sh/gpu": "100"}},
    })
}

/// The uid of the Reservation that a pod uses.
pub(crate) fn used(pod: &Value) -> Option<String> {
    let written: Value = serde_json::from_str(annotation(pod, USED)?).unwrap_or_default();
    Some(text(&written, "/uid").to_owned())
}

/// One Reservation.
#[derive(Clone, Debug)]
struct Reservation {
    name: String,
    node: String,
    gpu: Key,
    once: bool,
    /// When it was seen first.
    since: Timestamp,
    /// Whether a pod has ever used it.
    used: bool,
}

/// All Reservations, by uid.
#[derive(Debug, Default)]
pub(crate) struct Reservations(BTreeMap<String, Reservation>);

impl Reservations {
    /// Takes in the Reservations and pods as they stand.
    pub(crate) fn see(&mut self, objects: &[Arc<Value>], pods: &[Arc<Pod>], now: Timestamp) {
        let mut before = std::mem::take(&mut self.0);
        for object in objects {
            let uid = text(object, "/metadata/uid").to_owned();
            let known = before.remove(&uid).unwrap_or_else(|| Reservation::read(object, now));
            self.0.insert(uid, known);
        }
        for pod in pods.iter().filter(|pod| !pod.node.is_empty()) {
            if let Some(reservation) = pod.reservation.as_ref().and_then(|uid| self.0.get_mut(uid)) {
                reservation.used = true;
            }
        }
    }

    /// The Reservations that a decision which rests on what was so since then must have kept whole from this pod: each with its GPU.
    /// One that was used at any time may have been open to others for a moment.
    pub(crate) fn kept_from(&self, pod: &Pod, since: Timestamp) -> impl Iterator<Item = (&str, &Key)> {
        let own = pod.reservation.clone();
        let kept = self
            .0
            .iter()
            .filter(move |(uid, one)| one.since < since && !one.used && own.as_ref() != Some(*uid));
        kept.filter(|(_, one)| one.node == pod.node).map(|(_, one)| (one.name.as_str(), &one.gpu))
    }

    /// How much of each GPU of the node is held for pods to come, in percent.
    pub(crate) fn left(
        &self,
        node: &str,
        pods: &[Arc<Pod>],
        taken: impl Fn(&Pod, &Key) -> u64,
    ) -> Vec<(Key, u64)> {
        let of_node = self.0.iter().filter(|(_, one)| one.node == node);
        let left = of_node.map(|(uid, one)| {
            let users = pods.iter().filter(|pod| pod.is_live() && pod.reservation.as_ref() == Some(uid));
            let users: Vec<_> = users.collect();
            let taken: u64 = users.iter().map(|pod| taken(pod, &one.gpu)).sum();
            let over = one.once && !users.is_empty();
            (one.gpu.clone(), if over { 0 } else { 100_u64.saturating_sub(taken) })
        });
        left.collect()
    }

    /// Whether a Reservation holds the GPU.
    pub(crate) fn holds(&self, node: &str, gpu: &Key) -> bool {
        self.0.values().any(|one| one.node == node && one.gpu == *gpu)
    }
}

impl Reservation {
    fn read(object: &Value, since: Timestamp) -> Self {
        let devices: Value = serde_json::from_str(annotation(object, ALLOCATED).unwrap()).unwrap();
        Self {
            name: text(object, "/metadata/name").to_owned(),
            node: text(object, "/status/nodeName").to_owned(),
            gpu: ("gpu".to_owned(), devices["gpu"][0]["minor"].as_u64().unwrap()),
            once: object["spec"]["allocateOnce"] == true,
            since,
            used: false,
        }
    }
}
