//! Whatever a node's drivers publish and whatever claims ask for: what is given can be given, and something is given whenever anything
//! can be. Both are judged by a model (`model`) that shares nothing with the allocator. And nodes that are described alike are given alike devices.

#[path = "claims/model.rs"]
mod model;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
};

use berth::{
    dra::{
        CompiledClasses, DevicePools, HeldDevices, TargetNode, WaitingClaim, allocate, describe,
        device::DeviceId, held::DeviceInUse,
    },
    object::{DeviceClass, Labels, Quantity, ResourceClaim, ResourceSlice, resource_claim::AllocationResult},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::model::{brute_force, given, is_valid};

const CASES: u32 = 10_000;
const COUNTER: i64 = 3;

/// A device: its driver, its kind, the values of its attribute `x`, what can be shared of it (`None`: it is given as a whole), what it
/// takes of its driver's counter, and whether it is tainted.
#[derive(Clone, Debug)]
struct Made {
    driver: usize,
    kind: usize,
    x: Vec<i64>,
    memory: Option<i64>,
    counter: i64,
    tainted: bool,
    used: Use,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Use {
    Free,
    Whole,
    Share(i64),
}

/// `None`: all devices of the kind.
#[derive(Clone, Debug)]
struct Asked {
    kind: usize,
    count: Option<usize>,
    memory: Option<i64>,
    admin: bool,
    tolerates: bool,
}

/// The alternatives of each request, and a constraint: whether `x` is the same or different, and whether for the first request alone.
type MadeClaim = (Vec<Vec<Asked>>, Option<(bool, bool)>);

#[derive(Clone, Debug)]
struct World {
    /// The name of the node and of its pools, and what those of its devices begin with.
    node: &'static str,
    devices: Vec<Made>,
    claims: Vec<MadeClaim>,
}

/// What a world gives: by claim, the request and the place of each device, and what is taken of it; and the alternatives.
type Given = (Vec<Vec<(String, String, BTreeMap<String, Quantity>)>>, Vec<Vec<usize>>);

/// The bytes that values write when they are hashed.
#[derive(Default)]
struct Written(Vec<u8>);

impl Hasher for Written {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

fn device() -> impl Strategy<Value = Made> {
    let x = prop_oneof![1 => Just(vec![]), 5 => (0..2_i64).prop_map(|x| vec![x]), 2 => Just(vec![0, 1]), 1 => Just(vec![1, 2])];
    let memory = prop_oneof![3 => Just(None), 2 => (1..4_i64).prop_map(Some)];
    let used = prop_oneof![8 => Just(Use::Free), 1 => Just(Use::Whole), 2 => (1..3_i64).prop_map(Use::Share)];
    let counter = prop_oneof![3 => Just(0), 2 => 1..3_i64];
    (0..2_usize, 0..2_usize, x, memory, counter, prop::bool::weighted(0.15), used).prop_map(
        |(driver, kind, x, memory, counter, tainted, used)| {
            let used = if memory.is_none() && matches!(used, Use::Share(_)) { Use::Whole } else { used };
            Made { driver, kind, x, memory, counter, tainted, used }
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let count = prop_oneof![4 => Just(Some(1)), 3 => Just(Some(2)), 1 => Just(None)];
    let memory = prop_oneof![4 => Just(None), 2 => (1..3_i64).prop_map(Some)];
    (0..2_usize, count, memory, prop::bool::weighted(0.1), prop::bool::weighted(0.3))
        .prop_map(|(kind, count, memory, admin, tolerates)| Asked { kind, count, memory, admin, tolerates })
}

fn claim() -> impl Strategy<Value = MadeClaim> {
    // Alternatives of a list have no admin access.
    let list = prop::collection::vec(asked(), 2..=3)
        .prop_map(|list| list.into_iter().map(|asked| Asked { admin: false, ..asked }).collect::<Vec<_>>());
    let request = prop_oneof![3 => asked().prop_map(|asked| vec![asked]), 1 => list];
    let constraint = prop::option::weighted(0.4, (any::<bool>(), any::<bool>()));
    (prop::collection::vec(request, 1..=2), constraint)
}

fn world() -> impl Strategy<Value = World> {
    (prop::collection::vec(device(), 1..=5), prop::collection::vec(claim(), 1..=2))
        .prop_map(|(devices, claims)| World { node: "dev", devices, claims })
}

impl World {
    fn slices(&self) -> Vec<ResourceSlice> {
        let slice = |driver: usize, number: usize, mut spec: Value| {
            spec["driver"] = json!(format!("d{driver}"));
            spec["pool"] = json!({"name": self.node, "generation": 1, "resourceSliceCount": 2});
            spec["nodeName"] = json!(self.node);
            let slice = json!({"metadata": {"name": format!("d{driver}-{number}")}, "spec": spec});
            serde_json::from_value(slice).unwrap()
        };
        let of = |driver: usize| {
            let devices = self.devices.iter().enumerate().filter(|(_, made)| made.driver == driver);
            let devices: Vec<_> = devices.map(|(at, made)| made.published(&self.device(at))).collect();
            let counters = json!([{"name": "set", "counters": {"c": {"value": COUNTER.to_string()}}}]);
            [
                slice(driver, 0, json!({ "devices": devices })),
                slice(driver, 1, json!({ "sharedCounters": counters })),
            ]
        };
        (0..2).flat_map(of).collect()
    }

    fn held(&self) -> HeldDevices {
        let mut held = HeldDevices::default();
        for (at, made) in self.devices.iter().enumerate() {
            let amount = |share: i64| Quantity::from(share.to_string()).amount().unwrap();
            let one = match made.used {
                Use::Free => continue,
                Use::Whole => DeviceInUse { whole: true, given: 1, consumed: BTreeMap::new() },
                Use::Share(share) => DeviceInUse {
                    whole: false,
                    given: 1,
                    consumed: BTreeMap::from([("memory".to_owned(), amount(share))]),
                },
            };
            held.insert(DeviceId::new(&format!("d{}", made.driver), self.node, &self.device(at)), one);
        }
        held
    }

    fn claim_objects(&self) -> Vec<ResourceClaim> {
        let of = |(number, (requests, constraint)): (usize, &MadeClaim)| {
            let requests = requests.iter().enumerate().map(|(at, alternatives)| match &alternatives[..] {
                [one] => json!({"name": format!("r{at}"), "exactly": one.requested("")}),
                list => {
                    let list: Vec<_> =
                        list.iter().enumerate().map(|(at, one)| one.requested(&format!("a{at}"))).collect();
                    json!({"name": format!("r{at}"), "firstAvailable": list})
                }
            });
            let constraints: Vec<_> = constraint
                .iter()
                .map(|(same, first)| {
                    let key = if *same { "matchAttribute" } else { "distinctAttribute" };
                    json!({key: "common/x", "requests": if *first { vec!["r0"] } else { vec![] }})
                })
                .collect();
            let devices = json!({"requests": requests.collect::<Vec<_>>(), "constraints": constraints});
            let claim = json!({"metadata": {"name": format!("c{number}")}, "spec": {"devices": devices}});
            serde_json::from_value(claim).unwrap()
        };
        self.claims.iter().enumerate().map(of).collect()
    }

    fn device(&self, at: usize) -> String {
        format!("{}-{at}", self.node)
    }

    fn waiting(&self) -> Vec<WaitingClaim> {
        let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "any"}})).unwrap();
        let classes = CompiledClasses::new([&class]);
        let claims = self.claim_objects();
        claims.iter().map(|claim| WaitingClaim::read(claim, &classes).unwrap()).collect()
    }

    /// The node as its claims see it, whatever it is called; `None`: it can't be described.
    fn described(&self) -> Option<Vec<u8>> {
        let claims = self.waiting();
        let attributes = claims.iter().flat_map(|claim| claim.attributes().expect("literals name them"));
        let (labels, mut written) = (Labels::new(), Written::default());
        let (pools, held) = (DevicePools::new(&self.slices()), self.held());
        let node = TargetNode::plain(self.node, &labels);
        describe(node, (&pools, &held), &attributes.collect(), &mut written).map(|_| written.0)
    }

    /// What is given, whatever node and devices are called.
    fn given(&self) -> Option<Given> {
        let (results, alternatives) = self.allocate()?;
        let of = |result: AllocationResult| {
            let devices = result.devices.results.into_iter();
            devices.map(|one| (one.request, one.device[self.node.len()..].to_owned(), one.consumed_capacity))
        };
        Some((results.into_iter().map(|result| of(result).collect()).collect(), alternatives))
    }

    fn allocate(&self) -> Option<(Vec<AllocationResult>, Vec<Vec<usize>>)> {
        let claims = self.waiting();
        let claims: Vec<&WaitingClaim> = claims.iter().collect();
        let labels = Labels::new();
        let node = TargetNode::plain(self.node, &labels);
        // The one error that such a world can have: a constraint refuses one of all devices. Then nothing is given either.
        let allocation =
            allocate(&claims, node, &DevicePools::new(&self.slices()), &self.held()).ok().flatten();
        allocation.map(|allocation| (allocation.results, allocation.alternatives))
    }
}

impl Made {
    fn published(&self, name: &str) -> Value {
        let mut device = json!({
            "name": name,
            "attributes": {"common/kind": {"int": self.kind}, "common/uuid": {"string": name}},
            "allowMultipleAllocations": self.memory.is_some(),
        });
        match &self.x[..] {
            [] => {}
            [one] => device["attributes"]["common/x"] = json!({"int": one}),
            list => device["attributes"]["common/x"] = json!({"ints": list}),
        }
        if let Some(memory) = self.memory {
            let policy = json!({"default": "1"});
            device["capacity"] = json!({"memory": {"value": memory.to_string(), "requestPolicy": policy}});
        }
        if self.counter > 0 {
            let counters = json!({"c": {"value": self.counter.to_string()}});
            device["consumesCounters"] = json!([{"counterSet": "set", "counters": counters}]);
        }
        if self.tainted {
            device["taints"] = json!([{"key": "broken", "effect": "NoSchedule"}]);
        }
        device
    }

    /// What a share takes.
    fn taken(asked: &Asked) -> i64 {
        asked.memory.unwrap_or(1)
    }
}

impl Asked {
    fn requested(&self, name: &str) -> Value {
        let expression = format!("device.attributes['common'].kind == {}", self.kind);
        let mut requested =
            json!({"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]});
        if !name.is_empty() {
            requested["name"] = json!(name);
        }
        match self.count {
            Some(count) => requested["count"] = json!(count),
            None => requested["allocationMode"] = json!("All"),
        }
        if let Some(memory) = self.memory {
            requested["capacity"] = json!({"requests": {"memory": memory.to_string()}});
        }
        if self.admin {
            requested["adminAccess"] = json!(true);
        }
        if self.tolerates {
            requested["tolerations"] = json!([{"operator": "Exists"}]);
        }
        requested
    }

    /// Whether a device is one of those that are asked for, in use or not.
    fn means(&self, made: &Made) -> bool {
        let in_use = if let Use::Share(share) = made.used { share } else { 0 };
        let fits = match made.memory {
            Some(memory) => in_use + Made::taken(self) <= memory,
            None => self.memory.is_none(),
        };
        made.kind == self.kind && fits
    }

    /// Whether a device is free for it.
    fn may_have(&self, made: &Made) -> bool {
        let free = self.admin || made.used != Use::Whole;
        self.means(made) && free && (self.tolerates || !made.tainted)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn devices_are_given_whenever_they_can_be_and_as_they_can_be(world in world()) {
        let possible = brute_force(&world);
        match world.allocate() {
            None => prop_assert_eq!(possible, None, "nothing is given"),
            Some((results, alternatives)) => {
                prop_assert!(is_valid(&world, &given(&world, &results, &alternatives)), "{results:?}");
                prop_assert_eq!(Some(alternatives.concat()), possible, "a list has an earlier alternative");
                let ids = results.iter().flat_map(|result| &result.devices.results).filter_map(|one| one.share_id.clone());
                let ids: Vec<_> = ids.collect();
                prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "two shares have one id");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES / 4, ..ProptestConfig::default() })]

    #[test]
    fn nodes_that_are_described_alike_are_given_alike_devices(world in world(), at in 0..5_usize, other in device()) {
        let twin = World { node: "twin", ..world.clone() };
        prop_assert_eq!(world.described(), twin.described());
        let has_lists = world.devices.iter().any(|made| made.x.len() > 1);
        prop_assert_eq!(world.described().is_none(), has_lists, "an expression sees more of a list than constraints");
        prop_assert_eq!(world.given(), twin.given());
        let mut changed = twin;
        let at = at % changed.devices.len();
        changed.devices[at] = Made { driver: changed.devices[at].driver, ..other };
        if changed.described().is_some() && changed.described() == world.described() {
            prop_assert_eq!(world.given(), changed.given());
        }
    }
}
