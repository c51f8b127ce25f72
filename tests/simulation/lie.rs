//! Deliberate bugs: Berth is lied to, or its words are changed, exactly as if it had been written wrongly.
//!
//! No switch is in the product: a lock without its version on the wire is a lock without compare-and-swap.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use berth_sandbox::{
    Sandbox,
    fault::{Call, CallFault},
};
use serde_json::{Value, json};

use crate::{
    bug::Bug,
    device_claims::{FINALIZER, Kind, THEIRS},
    devices::{ALLOCATED, GROUP as DEVICES, quantity},
    dice::Dice,
    gang::GROUP,
    groups,
    record::annotation,
    rival,
    time_division::{JOBS, Stated, zone_of},
    usage,
};

/// One bug at work.
pub(crate) struct Lie {
    bug: Bug,
    sandbox: Sandbox,
    /// The pods of the last list, and those that have been seen to come since; or the cards of each node.
    known: BTreeMap<String, Value>,
    /// The pods that this Berth has evicted, by name.
    evicted: BTreeSet<String>,
}

impl Lie {
    pub(crate) fn of(bug: Bug, sandbox: Sandbox) -> Self {
        Self { bug, sandbox, known: BTreeMap::new(), evicted: BTreeSet::new() }
    }

    /// What becomes of a call because of the bug, where `fault` would have become of it.
    pub(crate) fn call(&mut self, call: &Call, fault: CallFault, dice: &mut Dice) -> Option<CallFault> {
        let binding = call.path.ends_with("/binding");
        match (self.bug, fault) {
            (Bug::FenceIgnored, _) if binding && dice.in_thousand(500) => {
                Some(CallFault::Late(dice.millis(30_000)))
            }
            // What was done and not heard of is taken to have been refused.
            (Bug::AssumptionDroppedOnTimeout, CallFault::AnswerLost | CallFault::DoneButRefused(500..))
                if binding =>
            {
                Some(CallFault::DoneButRefused(422))
            }
            (Bug::WriteNotAwaited, CallFault::AnswerLost | CallFault::DoneButRefused(500..))
                if call.path.contains("/resourceclaims/") && call.path.ends_with("/status") =>
            {
                Some(CallFault::DoneButRefused(422))
            }
            _ => None,
        }
    }

    pub(crate) fn request(&mut self, call: &Call, body: Bytes) -> Bytes {
        let Ok(mut sent) = serde_json::from_slice::<Value>(&body) else { return body };
        if call.path.ends_with("/eviction") {
            self.evicted.extend(call.path.rsplit('/').nth(1).map(str::to_owned));
        }
        let lock = call.path.starts_with("/api/v1/nodes/");
        let binding = call.path.ends_with("/binding");
        let lease = call.path.contains("/leases/");
        let claim = call.path.contains("/resourceclaims/");
        match self.bug {
            Bug::LockWithoutCompareAndSwap if lock => forget(&mut sent["metadata"], "resourceVersion"),
            // The API server takes no Lease without a version: it is told the one that the Lease has.
            Bug::LeaseWithoutCompareAndSwap if lease => {
                for lease in self.sandbox.objects_of("coordination.k8s.io", "leases") {
                    sent["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"].clone();
                }
            }
            Bug::ClaimOutlastsLease if call.path.contains("/leases") => {
                sent["spec"]["leaseDurationSeconds"] = json!(3);
            }
            Bug::BindingWithoutUid | Bug::ConfirmWithoutUid if binding => {
                forget(&mut sent["metadata"], "uid");
            }
            Bug::ClaimLeftSelected if call.path.contains("/persistentvolumeclaims/") => {
                let annotations = &sent["metadata"]["annotations"];
                if annotations.get("volume.kubernetes.io/selected-node").is_some_and(Value::is_null) {
                    forget(&mut sent["metadata"], "annotations");
                }
            }
            Bug::NominationNotWritten if call.path.ends_with("/status") => {
                forget(&mut sent["status"], "nominatedNodeName");
            }
            Bug::WrongAssignment if binding => {
                for value in sent["metadata"]["annotations"]
                    .as_object_mut()
                    .into_iter()
                    .flatten()
                    .map(|(_, value)| value)
                {
                    let wrong = value.as_str().unwrap_or_default().replace("-0,NVIDIA", "-1,NVIDIA");
                    *value = json!(wrong);
                }
            }
            Bug::GroupReservationNotWritten if claim && is_for_group(&sent["status"]) => {
                forget(&mut sent["status"], "reservedFor");
            }
            Bug::ClaimLeftReserved if claim && is_removal(&sent["status"]) => sent["status"] = json!({}),
            Bug::ClaimWithoutCompareAndSwap if claim && call.path.ends_with("/status") => {
                forget(&mut sent["metadata"], "resourceVersion");
            }
            _ => return body,
        }
        Bytes::from(sent.to_string())
    }

    pub(crate) fn answer(&mut self, call: &Call, status: u16, body: Bytes) -> (u16, Bytes) {
        let Ok(mut value) = serde_json::from_slice::<Value>(&body) else { return (status, body) };
        let one_pod = call.method == "GET" && call.path.contains("/pods/pod-");
        if self.bug == Bug::AssumptionDroppedInDoubt && one_pod {
            let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
            return (404, Bytes::from(gone.to_string()));
        }
        if self.bug == Bug::ResyncMissesDeletions && call.method == "GET" && call.path == "/api/v1/pods" {
            self.add_ghosts(call, &mut value);
        }
        if self.bug == Bug::UsageCountedTwice && call.method == "GET" && call.path.ends_with(usage::NAME) {
            usage::forget_a_minute(&mut value);
        }
        let event = value.get("object").is_some();
        if self.bug == Bug::CountNotUndone && value["type"] == "DELETED" {
            leave_counted(&mut value);
        }
        if self.bug == Bug::NominationOutlivesPod && value["type"] == "DELETED" {
            leave_nominated(&mut value);
        }
        if self.bug == Bug::DeviceOutlivesItsObject
            && call.path.contains("/devices")
            && value["type"] == "DELETED"
        {
            value["type"] = json!("MODIFIED");
        }
        match value.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(|item| self.tell(call, item)),
            None if event => self.tell(call, &mut value["object"]),
            None => self.tell(call, &mut value),
        }
        (status, Bytes::from(format!("{value}\n")))
    }

    /// Changes one object on its way to Berth.
    fn tell(&mut self, call: &Call, object: &mut Value) {
        let (pod, node) = (call.path.contains("/pods"), call.path.contains("/nodes"));
        let bound = object["spec"].get("nodeName").is_some();
        match self.bug {
            Bug::TerminatingNotCharged if pod && object["metadata"].get("deletionTimestamp").is_some() => {
                object["status"]["phase"] = json!("Failed");
            }
            Bug::AnswerNotAwaited if pod && bound => {
                for key in ["hami.io/bind-phase", "volcano.sh/bind-phase"] {
                    object["metadata"]["annotations"][key] = json!("success");
                }
            }
            // Of two pods of one name the second is taken for the first.
            Bug::ConfirmWithoutUid if pod && object["metadata"].get("uid").is_some() => {
                object["metadata"]["uid"] = object["metadata"]["name"].clone();
            }
            Bug::HolderNotRespected if node => {
                if let Some(Value::String(lock)) =
                    object["metadata"]["annotations"].get_mut("hami.io/mutex.lock")
                {
                    *lock = lock.replace(",foreign-", ",gone-");
                }
            }
            // Its pod seems to have ended.
            Bug::LockLeftOut if pod && rival::is_its(object) => {
                object["status"]["phase"] = json!("Succeeded");
            }
            Bug::GangMemberForgotten if pod && bound && !call.is_watch() => {
                forget(&mut object["metadata"]["annotations"], GROUP);
            }
            Bug::GroupMinimumNotRead if call.path.contains("/podgroups") => {
                object["spec"]["schedulingPolicy"]["gang"]["minCount"] = json!(1);
            }
            Bug::ParentNotRead if call.path.contains("/podgroups") => {
                forget(&mut object["spec"], "parentCompositePodGroupName");
            }
            Bug::RackNotRead if call.path.contains("/compositepodgroups") => {
                forget(&mut object["spec"], "schedulingConstraints");
            }
            Bug::GroupReservationNotWritten if call.path.contains("/resourceclaims") => {
                self.reserve_for_group(object);
            }
            Bug::PodOfGroupForgotten if pod && bound && !call.is_watch() => {
                forget(&mut object["spec"], "schedulingGroup");
            }
            Bug::FreedCapacityGivenTwice | Bug::FreedDevicesGivenTwice if pod => {
                forget(&mut object["status"], "nominatedNodeName");
            }
            Bug::NeighbourNotCounted if pod && bound => forget(&mut object["metadata"], "labels"),
            Bug::BudgetCountedByZone if pod && bound => name_job_by_zone(object),
            Bug::EvictionRepeated if pod && bound && !self.evicted.contains(name_of(object)) => {
                forget(&mut object["metadata"], "deletionTimestamp");
            }
            Bug::MarkTakenBack if pod && bound => {
                forget(&mut object["metadata"]["annotations"], "assigned.berth.dev/revocable-zone");
            }
            Bug::UseForgottenWithDevice if pod && bound && !self.has_device(object) => {
                forget(&mut object["metadata"]["annotations"], ALLOCATED);
            }
            Bug::FunctionGivenTwice if pod && bound => forget_functions(object),
            Bug::SickDeviceGiven if call.path.contains("/devices") => {
                for device in object["spec"]["devices"].as_array_mut().into_iter().flatten() {
                    device["health"] = json!(true);
                }
            }
            Bug::ReservationNotRead if call.path.contains("/reservations") => {
                object["status"] = json!({});
            }
            Bug::CapacityNotCounted if call.path.contains("/resourceclaims") => {
                results(object).for_each(|result| forget(result, "consumedCapacity"));
            }
            Bug::OthersAllocationNotRead if name_of(object).starts_with(THEIRS) => {
                forget(&mut object["status"], "allocation");
            }
            Bug::OthersShareNotCounted if name_of(object).starts_with(THEIRS) => {
                results(object).for_each(|result| forget(result, "consumedCapacity"));
            }
            // No counter knows a device of another name.
            Bug::OthersPartNotCounted if name_of(object).starts_with(THEIRS) => {
                let parts = results(object).filter(|result| result["driver"] == Kind::Parted.driver());
                parts.for_each(|result| result["device"] = json!("gone"));
            }
            Bug::CapacityCountedTwice if call.path.contains("/resourceclaims") => {
                results(object).for_each(double);
            }
            Bug::FinalizerLeftOut if call.path.contains("/resourceclaims") => {
                object["metadata"]["finalizers"] = json!([FINALIZER]);
            }
            Bug::NodeReadOnce if node => self.remember_cards(object),
            Bug::QuotaNotRead if call.path.contains("/resourcequotas") => object["spec"] = json!({}),
            Bug::LockNotRead if node => forget(&mut object["metadata"]["annotations"], "hami.io/mutex.lock"),
            _ => {}
        }
    }

    /// Whether the pod's node has a Device.
    fn has_device(&self, pod: &Value) -> bool {
        let devices = self.sandbox.objects_of(DEVICES, "devices");
        devices.iter().any(|device| device["metadata"]["name"] == pod["spec"]["nodeName"])
    }

    /// A claim that has devices, and the name of a PodGroup, is reserved for that.
    fn reserve_for_group(&self, claim: &mut Value) {
        let groups = self.sandbox.objects_of(groups::API, groups::Kind::Leaf.names()[2]);
        let group = groups.iter().find(|group| group["metadata"]["name"] == claim["metadata"]["name"]);
        if let Some(group) = group.filter(|_| claim["status"].get("allocation").is_some()) {
            let (name, uid) = (&group["metadata"]["name"], &group["metadata"]["uid"]);
            claim["status"]["reservedFor"] =
                json!([{"apiGroup": groups::API, "resource": "podgroups", "name": name, "uid": uid}]);
        }
    }

    /// The cards of a node stay as they were first seen.
    fn remember_cards(&mut self, node: &mut Value) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for key in ["hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register"] {
            if let Some(cards) = node["metadata"]["annotations"].get_mut(key) {
                *cards = self.known.entry(name.clone()).or_insert(cards.clone()).clone();
            }
        }
    }

    fn add_ghosts(&mut self, call: &Call, value: &mut Value) {
        if call.is_watch() {
            let object = &value["object"];
            match value["type"].as_str() {
                Some("ADDED" | "MODIFIED") => drop(self.known.insert(uid(object), object.clone())),
                Some("DELETED") => drop(self.known.remove(&uid(object))),
                _ => {}
            }
            return;
        }
        for pod in value["items"].as_array().into_iter().flatten() {
            self.known.insert(uid(pod), pod.clone());
        }
        value["items"] = self.known.values().cloned().collect();
    }
}

/// The event that a pod is gone which counts in its zone says that it stays there, without its cards.
fn leave_counted(event: &mut Value) {
    let pod = &mut event["object"];
    if pod["metadata"]["labels"]["app"] == "spread" && pod["spec"].get("nodeName").is_some() {
        for key in ["deletionTimestamp", "annotations"] {
            forget(&mut pod["metadata"], key);
        }
        pod["spec"]["schedulerName"] = json!("other");
        pod["spec"]["containers"][0]["resources"] = json!({});
        pod["status"]["phase"] = json!("Running");
        event["type"] = json!("MODIFIED");
    }
}

/// The event that a pod is gone for which a node is kept says that it waits, for another scheduler.
fn leave_nominated(event: &mut Value) {
    let pod = &mut event["object"];
    if pod["status"].get("nominatedNodeName").is_some() && pod["spec"].get("nodeName").is_none() {
        forget(&mut pod["metadata"], "deletionTimestamp");
        pod["spec"]["schedulerName"] = json!("other");
        event["type"] = json!("MODIFIED");
    }
}

/// What the pod was given names no virtual function.
fn forget_functions(pod: &mut Value) {
    let Some(given) = annotation(pod, ALLOCATED) else { return };
    let mut given: Value = serde_json::from_str(given).unwrap();
    for device in given["rdma"].as_array_mut().into_iter().flatten() {
        forget(device, "extension");
    }
    pod["metadata"]["annotations"][ALLOCATED] = json!(given.to_string());
}

/// The pods of a job in one zone are taken for another job than those in the other. What a PodGroup states is left together.
fn name_job_by_zone(pod: &mut Value) {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let (Some(zone), Some(job)) = (zone_of(node), annotation(pod, GROUP)) else { return };
    let stated = JOBS.iter().find(|(name, ..)| *name == job).map(|(.., stated)| *stated);
    if stated == Some(Stated::OnPods) {
        pod["metadata"]["annotations"][GROUP] = json!(format!("{job}-{zone}"));
    }
}

/// Whether a PodGroup is added to the users of a claim.
fn is_for_group(status: &Value) -> bool {
    status["reservedFor"][0]["resource"] == "podgroups"
}

/// Whether a pod is taken from the users of a claim.
fn is_removal(status: &Value) -> bool {
    status["reservedFor"][0].get("$patch").is_some()
}

/// The devices that a claim has.
fn results(claim: &mut Value) -> impl Iterator<Item = &mut Value> {
    let results = claim.pointer_mut("/status/allocation/devices/results").and_then(Value::as_array_mut);
    results.into_iter().flatten()
}

/// The device seems to have given twice as much.
fn double(result: &mut Value) {
    for (_, amount) in result.get_mut("consumedCapacity").and_then(Value::as_object_mut).into_iter().flatten()
    {
        let read = amount.as_str().and_then(quantity).unwrap();
        *amount = json!((2 * read).to_string());
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn forget(value: &mut Value, key: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(key);
    }
}
