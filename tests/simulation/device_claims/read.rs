//! Claims and devices, read from ResourceClaims and ResourceSlices by the API's own rules.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::FINALIZER;
use crate::{devices::quantity, record::text};

/// A device: its driver, its pool and its name.
pub(super) type Key = (String, String, String);

/// What a claim asks for: so many devices of a driver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Asked {
    pub(super) driver: String,
    pub(super) count: usize,
    /// How much of each.
    pub(super) amounts: BTreeMap<String, u64>,
    /// The size, as a selector has it.
    pub(super) size: Option<String>,
}

/// A device that a claim was given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Given {
    pub(super) key: Key,
    /// Whether it is a share of the device.
    pub(super) share: bool,
    pub(super) amounts: BTreeMap<String, u64>,
}

/// Devices, and the node where these can be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Allocation {
    pub(super) given: Vec<Given>,
    pub(super) node: String,
}

/// What a claim is reserved for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Consumer {
    Pod,
    /// A PodGroup of Kubernetes.
    PodGroup,
}

/// A pod or a PodGroup that a claim is reserved for.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) kind: Consumer,
    pub(super) uid: String,
    pub(super) name: String,
}

/// A claim as it stands.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) asked: Asked,
    pub(super) allocation: Option<Allocation>,
    pub(super) users: Vec<User>,
    /// Whether it was made for one pod.
    pub(super) is_made: bool,
    pub(super) kept: bool,
    pub(super) deleting: bool,
}

fn amounts(object: &Value) -> BTreeMap<String, u64> {
    let all = object.as_object().into_iter().flatten();
    let read = |amount: &Value| quantity(amount.as_str().unwrap()).unwrap();
    all.map(|(name, amount)| (name.clone(), read(amount.get("value").unwrap_or(amount)))).collect()
}

impl Claim {
    pub(super) fn read(object: &Arc<Value>) -> Self {
        let exactly = &object["spec"]["devices"]["requests"][0]["exactly"];
        let expression = text(exactly, "/selectors/0/cel/expression");
        let asked = Asked {
            driver: text(exactly, "/deviceClassName").to_owned(),
            count: exactly["count"].as_u64().map_or(1, |count| usize::try_from(count).unwrap()),
            amounts: amounts(&exactly["capacity"]["requests"]),
            size: expression.split('\'').nth(3).map(str::to_owned),
        };
        let status = &object["status"];
        let users = status["reservedFor"].as_array().into_iter().flatten();
        let users = users.map(|user| User {
            kind: match text(user, "/resource") {
                "pods" => Consumer::Pod,
                "podgroups" => Consumer::PodGroup,
                other => panic!("a claim is reserved for {other}"),
            },
            uid: text(user, "/uid").to_owned(),
            name: text(user, "/name").to_owned(),
        });
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        Self {
            uid: text(object, "/metadata/uid").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            asked,
            allocation: status.get("allocation").filter(|given| !given.is_null()).map(Allocation::read),
            users: users.collect(),
            is_made: text(object, "/metadata/ownerReferences/0/kind") == "Pod",
            kept: finalizers.into_iter().any(|finalizer| finalizer == FINALIZER),
            deleting: !text(object, "/metadata/deletionTimestamp").is_empty(),
        }
    }
}

impl Claim {
    /// The devices that it has.
    pub(super) fn given(&self) -> impl Iterator<Item = &Given> {
        self.allocation.iter().flat_map(|allocation| &allocation.given)
    }
}

impl Allocation {
    fn read(object: &Value) -> Self {
        let results = object["devices"]["results"].as_array().into_iter().flatten();
        let given = |result: &Value| Given {
            key: ["/driver", "/pool", "/device"].map(|field| text(result, field).to_owned()).into(),
            share: !text(result, "/shareID").is_empty(),
            amounts: amounts(&result["consumedCapacity"]),
        };
        let node = "/nodeSelector/nodeSelectorTerms/0/matchFields/0/values/0";
        Self { given: results.map(given).collect(), node: text(object, node).to_owned() }
    }
}

/// A device of a pool of which every slice is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Device {
    pub(super) tainted: bool,
    pub(super) shared: bool,
    pub(super) capacity: BTreeMap<String, u64>,
    pub(super) size: String,
    /// What it takes of the memory of its card.
    pub(super) takes: u64,
    /// What the card has, where it can be parted.
    pub(super) of: Option<u64>,
}

/// The devices of all pools of which every slice is there.
pub(super) fn devices(slices: &[Arc<Value>]) -> BTreeMap<Key, Device> {
    let mut pools: BTreeMap<(&str, &str), Vec<&Arc<Value>>> = BTreeMap::new();
    for slice in slices {
        pools.entry((text(slice, "/spec/driver"), text(slice, "/spec/pool/name"))).or_default().push(slice);
    }
    let generation = |slice: &Value| slice["spec"]["pool"]["generation"].as_i64();
    let mut devices = BTreeMap::new();
    for ((driver, pool), mut slices) in pools {
        let newest = slices.iter().map(|slice| generation(slice)).max().flatten();
        slices.retain(|slice| generation(slice) == newest);
        let counts = |slice: &&Arc<Value>| slice["spec"]["pool"]["resourceSliceCount"] == slices.len();
        if !slices.iter().all(counts) {
            continue;
        }
        let card = slices.iter().find_map(|slice| slice["spec"]["sharedCounters"].get(0));
        let card = card.map(|set| amounts(&set["counters"])["memory"]);
        let listed = slices.iter().filter_map(|slice| slice["spec"]["devices"].as_array()).flatten();
        devices.extend(listed.map(|device| {
            let key = (driver.to_owned(), pool.to_owned(), text(device, "/name").to_owned());
            (key, Device::read(device, card))
        }));
    }
    devices
}

impl Device {
    fn read(device: &Value, card: Option<u64>) -> Self {
        let taken = amounts(&device["consumesCounters"][0]["counters"]);
        Self {
            tainted: device.get("taints").is_some(),
            shared: device["allowMultipleAllocations"] == true,
            capacity: amounts(&device["capacity"]),
            size: text(device, "/attributes/size/string").to_owned(),
            takes: taken.get("memory").copied().unwrap_or_default(),
            of: card,
        }
    }
}
