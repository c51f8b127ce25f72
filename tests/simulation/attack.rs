//! What a user does to all others with the rights to create pods, claims and groups in one namespace.
//!
//! It must not judge what that costs others ([`crate::probe`]).

use std::time::Duration;

use serde_json::{Value, json};

use crate::{gang::GROUP, pod::URGENT};

/// The class of the devices that claims ask for; named otherwise than their driver, so that no plain search takes these devices for what they
/// ask for.
pub(crate) const CLASS: &str = "slow";
const DRIVER: &str = "slow.example.com";

/// One kind of attack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Attack {
    /// Claims with selectors that take long for each device.
    Selectors,
    /// Dry runs of a pod with such a claim, and reviews of pods that are never created.
    DryRuns,
    /// Claims whose devices take a long search.
    Searches,
    /// Gangs with a pod that fits nowhere.
    Gangs,
    /// Pods that fit nowhere, each like no other.
    Classes,
    /// Pods that are deleted by force as soon as they are bound.
    Deletions,
    /// Pods that have others preempted, and whose volume is never made.
    Storms,
    /// Pods that hold whole cards for volumes that nobody makes.
    Places,
}

/// What is created at once.
#[derive(Debug, Default)]
pub(crate) struct Strike {
    /// The name of a PodGroup, and how many pods it needs.
    pub(crate) group: Option<(String, usize)>,
    /// The `spec` of a claim of devices that the pods use.
    pub(crate) claim: Option<Value>,
    /// Without their names.
    pub(crate) pods: Vec<Value>,
}

/// More memory than any card has, in MiB.
const TOO_MUCH: u64 = 90_001;

/// All memory of a card, in MiB.
pub(crate) const WHOLE: u64 = 16_384;

/// How many cards there are of the family that is attacked.
pub(crate) const CARDS: u64 = 6;

/// How many pods a gang has, each like no other. One of them fits nowhere.
const MEMBERS: usize = 12;

/// How many pods of which each is like no other come at once.
const CROWD: u64 = 8;

/// How many requests and devices a search has; its steps are about as many as these have orders.
const SEARCHED: usize = 7;

impl Attack {
    /// How often it strikes beside each pod of the second user.
    pub(crate) fn beside(self) -> u64 {
        match self {
            Self::Selectors | Self::Searches => 2,
            Self::Gangs => 8,
            Self::Classes => 16,
            Self::Places => 3,
            Self::DryRuns => 1,
            // They come by themselves.
            Self::Deletions | Self::Storms => 0,
        }
    }

    /// How many pods the second user creates.
    pub(crate) fn probes(self) -> u64 {
        match self {
            Self::Places => CARDS,
            Self::Deletions => 3,
            _ => 1,
        }
    }

    /// What such a pod asks for, in MiB.
    pub(crate) fn of_probe(self) -> u64 {
        match self {
            Self::Places | Self::Storms => WHOLE,
            _ => 1100,
        }
    }

    /// So long may the pod of this number wait, beside what is counted in steps.
    pub(crate) fn patience(self, number: u64) -> Duration {
        match self {
            // Cards are held for half a minute where others need them, and half of all cards of the cluster at most: one is free at once.
            Self::Places if number >= 1 => Duration::from_secs(35),
            _ => Duration::from_secs(2),
        }
    }

    /// What is created the next time, by this number.
    pub(crate) fn strike(self, number: u64) -> Strike {
        let of_pods = |pods| Strike { pods, ..Strike::default() };
        match self {
            Self::Selectors => Strike { claim: Some(slow_claim(number)), pods: vec![user()], group: None },
            // Their claim is there already.
            Self::DryRuns => of_pods(vec![user()]),
            Self::Searches => {
                let requests: Vec<Value> =
                    (0..SEARCHED).map(|at| request(&format!("r{at}-{number}"), &[])).collect();
                let constraint = json!({"matchAttribute": format!("{DRIVER}/group")});
                let claim = json!({"devices": {"requests": requests, "constraints": [constraint]}});
                Strike { claim: Some(claim), pods: vec![user()], group: None }
            }
            Self::Gangs => {
                let group = format!("gang-{number}");
                let member = |at: usize| {
                    let memory = if at + 1 == MEMBERS { TOO_MUCH } else { 1100 };
                    let mut pod = picky(memory, number * MEMBERS as u64 + at as u64);
                    pod["metadata"]["annotations"] = json!({GROUP: group});
                    pod
                };
                let pods = (0..MEMBERS).map(member).collect();
                Strike { group: Some((group, MEMBERS)), pods, claim: None }
            }
            Self::Classes => of_pods((0..CROWD).map(|at| picky(TOO_MUCH, CROWD * number + at)).collect()),
            Self::Deletions => of_pods(vec![share(1100)]),
            Self::Storms => {
                let mut pod = with_volume();
                pod["spec"]["priorityClassName"] = json!(URGENT);
                of_pods(vec![pod])
            }
            Self::Places => of_pods(vec![with_volume()]),
        }
    }

    /// The slices of the driver on this node.
    pub(crate) fn slices(self, node: &str) -> Option<Value> {
        let device = |at: usize, group: &str| {
            json!({"name": format!("device-{at}"), "allowMultipleAllocations": true,
                "attributes": {"group": {"string": group}, "number": {"int": at}},
                "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "80Gi"}}}})
        };
        let devices: Vec<Value> = match self {
            Self::Selectors | Self::DryRuns => (0..2).map(|at| device(at, "a")).collect(),
            Self::Searches if node == "hami-0" => {
                (0..SEARCHED).map(|at| device(at, if at + 1 < SEARCHED { "a" } else { "b" })).collect()
            }
            _ => return None,
        };
        Some(json!({"metadata": {"name": format!("{node}-{DRIVER}")},
            "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))
    }

    /// The class of its devices, where it has some.
    pub(crate) fn class(self) -> Option<Value> {
        let selector = json!({"cel": {"expression": format!("device.driver == '{DRIVER}'")}});
        let class = json!({"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}});
        matches!(self, Self::Selectors | Self::DryRuns | Self::Searches).then_some(class)
    }
}

/// A pod that asks for so much of one card, in MiB.
pub(crate) fn share(memory: u64) -> Value {
    // The API server writes a multiple of a thousand in another form.
    assert_ne!(memory % 1000, 0);
    let limits =
        json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "0"});
    json!({"metadata": {}, "spec": {"schedulerName": "berth", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}})
}

/// Such a pod that asks for nodes without any of many names; each number is a pod like no other.
fn picky(memory: u64, number: u64) -> Value {
    let names: Vec<String> = (0..900).map(|at| format!("{number}-{at}")).collect();
    let term = json!({"matchExpressions": [{"key": "name", "operator": "NotIn", "values": names}]});
    let mut pod = share(memory);
    pod["spec"]["affinity"] = json!({"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    pod
}

/// A pod that asks for a whole card and has a volume, whose claim is to be named.
fn with_volume() -> Value {
    let mut pod = share(WHOLE);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {}}]);
    pod
}

/// A pod that uses a claim of devices, whose name is to be filled in.
fn user() -> Value {
    json!({"metadata": {}, "spec": {"schedulerName": "berth", "terminationGracePeriodSeconds": 1,
        "resourceClaims": [{"name": "claim"}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "claim"}]}}]}})
}

/// A claim of one device, whose selectors take long.
pub(crate) fn slow_claim(number: u64) -> Value {
    json!({"devices": {"requests": [request("r", &slow(number))]}})
}

fn request(name: &str, selectors: &[String]) -> Value {
    let selectors: Vec<Value> = selectors.iter().map(|text| json!({"cel": {"expression": text}})).collect();
    json!({"name": name, "exactly": {"deviceClassName": CLASS, "selectors": selectors}})
}

/// Selectors with three loops in each other, of which no device passes the last; each number has other texts, so that none is evaluated already.
fn slow(number: u64) -> [String; 2] {
    let list = format!("[{}]", ["0"; 20].join(","));
    let loops = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
    ["!=", "=="].map(|sign| format!("{loops} && device.driver {sign} 'none-{number}'"))
}
