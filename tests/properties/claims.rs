//! Whatever a node's drivers publish and whatever claims ask for: what is given can be given, and something is given whenever anything
//! can be. Both are judged by a model of their own, which shares nothing with the allocator.

use std::collections::{BTreeMap, BTreeSet};

use berth::{
    dra::{Claim, Classes, HeldDevices, Inventory, Node, allocate, device::DeviceId, held::Held},
    object::{DeviceClass, Labels, Quantity, ResourceClaim, ResourceSlice, resource_claim::AllocationResult},
};
use proptest::prelude::*;
use serde_json::{Value, json};

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
    devices: Vec<Made>,
    claims: Vec<MadeClaim>,
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
        .prop_map(|(devices, claims)| World { devices, claims })
}

impl World {
    fn slices(&self) -> Vec<ResourceSlice> {
        let slice = |driver: usize, number: usize, mut spec: Value| {
            spec["driver"] = json!(format!("d{driver}"));
            spec["pool"] = json!({"name": "node", "generation": 1, "resourceSliceCount": 2});
            spec["nodeName"] = json!("node");
            let slice = json!({"metadata": {"name": format!("d{driver}-{number}")}, "spec": spec});
            serde_json::from_value(slice).unwrap()
        };
        let of = |driver: usize| {
            let devices = self.devices.iter().enumerate().filter(|(_, made)| made.driver == driver);
            let devices: Vec<_> = devices.map(|(at, made)| made.published(at)).collect();
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
                Use::Whole => Held { whole: true, consumed: BTreeMap::new() },
                Use::Share(share) => {
                    Held { whole: false, consumed: BTreeMap::from([("memory".to_owned(), amount(share))]) }
                }
            };
            held.insert(DeviceId::new(&format!("d{}", made.driver), "node", &format!("dev-{at}")), one);
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

    fn allocate(&self) -> Option<(Vec<AllocationResult>, Vec<Vec<usize>>)> {
        let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "any"}})).unwrap();
        let classes = Classes::new([&class]);
        let claims = self.claim_objects();
        let claims: Vec<Claim> = claims.iter().map(|claim| Claim::read(claim, &classes).unwrap()).collect();
        let claims: Vec<&Claim> = claims.iter().collect();
        let labels = Labels::new();
        let node = Node { name: "node", labels: &labels };
        // The one error that such a world can have: a constraint refuses one of all devices. Then nothing is given either.
        let allocation =
            allocate(&claims, node, &Inventory::new(&self.slices()), &self.held()).ok().flatten();
        allocation.map(|allocation| (allocation.results, allocation.alternatives))
    }
}

impl Made {
    fn published(&self, at: usize) -> Value {
        let mut device = json!({
            "name": format!("dev-{at}"),
            "attributes": {"common/kind": {"int": self.kind}},
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

/// What is given: claim, request, alternative and devices.
type Given<'a> = Vec<(usize, usize, &'a Asked, Vec<usize>)>;

/// Whether all of it can be given together.
fn is_valid(world: &World, given: &Given<'_>) -> bool {
    let mut whole: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut shares: BTreeMap<usize, i64> = BTreeMap::new();
    for (claim, _, asked, devices) in given {
        for device in devices {
            let made = &world.devices[*device];
            if !asked.may_have(made) {
                return false;
            }
            if made.memory.is_some() {
                *shares.entry(*device).or_default() += Made::taken(asked);
                continue;
            }
            let users = whole.entry(*device).or_default();
            if users.contains(claim) || !asked.admin && !users.is_empty() {
                return false;
            }
            users.push(*claim);
        }
        let distinct: BTreeSet<_> = devices.iter().collect();
        let meant = world.devices.iter().filter(|made| asked.means(made)).count();
        if distinct.len() != devices.len() || devices.len() != asked.count.unwrap_or(meant.max(1)) {
            return false;
        }
    }
    let left = |(device, share): (&usize, &i64)| {
        let made = &world.devices[*device];
        let used = if let Use::Share(used) = made.used { used } else { 0 };
        used + share <= made.memory.unwrap()
    };
    shares.iter().all(left) && counters_suffice(world, &whole, &shares) && constraints_hold(world, given)
}

fn counters_suffice(
    world: &World,
    whole: &BTreeMap<usize, Vec<usize>>,
    shares: &BTreeMap<usize, i64>,
) -> bool {
    (0..2).all(|driver| {
        let of = |at: usize, made: &Made| {
            let held = i64::from(made.used != Use::Free);
            let times = if made.memory.is_some() {
                held.max(i64::from(shares.contains_key(&at)))
            } else {
                held + whole.get(&at).map_or(0, |users| i64::try_from(users.len()).unwrap())
            };
            times * made.counter
        };
        let mine = || world.devices.iter().enumerate().filter(|(_, made)| made.driver == driver);
        let consumed: i64 = mine().map(|(at, made)| of(at, made)).sum();
        let asks = mine().any(|(at, made)| {
            let opened = shares.contains_key(&at) && made.used == Use::Free;
            made.counter > 0 && (whole.contains_key(&at) || opened)
        });
        !asks || consumed <= COUNTER
    })
}

fn constraints_hold(world: &World, given: &Given<'_>) -> bool {
    world.claims.iter().enumerate().all(|(claim, (_, constraint))| {
        let Some((same, first)) = constraint else { return true };
        let about = given.iter().filter(|(of, request, ..)| *of == claim && (!first || *request == 0));
        let values: Vec<&Vec<i64>> =
            about.flat_map(|(.., devices)| devices.iter().map(|at| &world.devices[*at].x)).collect();
        let shared = |x: &i64| values.iter().all(|values| values.contains(x));
        let apart =
            |(at, a): (usize, &&Vec<i64>)| values[..at].iter().all(|b| !a.iter().any(|x| b.contains(x)));
        let present = values.iter().all(|values| !values.is_empty());
        let holds = if *same { (0..3).any(|x| shared(&x)) } else { values.iter().enumerate().all(apart) };
        values.is_empty() || present && holds
    })
}

/// The earliest alternatives with which everything can be given, by trying everything.
fn brute_force(world: &World) -> Option<Vec<usize>> {
    let requests = || world.claims.iter().flat_map(|(requests, _)| requests);
    let mut taken = vec![0; requests().count()];
    loop {
        if can_be_given(world, &taken, &mut Vec::new()) {
            return Some(taken);
        }
        // The next combination, the last request counting fastest.
        let lengths: Vec<_> = requests().map(Vec::len).collect();
        let at = (0..taken.len()).rev().find(|at| taken[*at] + 1 < lengths[*at])?;
        taken[at] += 1;
        taken[at + 1..].fill(0);
    }
}

fn can_be_given<'a>(world: &'a World, taken: &[usize], given: &mut Given<'a>) -> bool {
    let requests = world.claims.iter().enumerate();
    let mut requests =
        requests.flat_map(|(claim, (requests, _))| requests.iter().enumerate().map(move |one| (claim, one)));
    let Some((claim, (request, alternatives))) = requests.nth(given.len()) else { return true };
    let asked = &alternatives[taken[given.len()]];
    subsets(world, asked).into_iter().any(|devices| {
        given.push((claim, request, asked, devices));
        let possible = is_valid(world, given) && can_be_given(world, taken, given);
        given.pop();
        possible
    })
}

fn subsets(world: &World, asked: &Asked) -> Vec<Vec<usize>> {
    let meant: Vec<_> = (0..world.devices.len()).filter(|at| asked.means(&world.devices[*at])).collect();
    match asked.count {
        None => {
            if meant.is_empty() {
                vec![]
            } else {
                vec![meant]
            }
        }
        Some(1) => meant.into_iter().map(|at| vec![at]).collect(),
        Some(_) => {
            let pairs =
                |(at, a): (usize, &usize)| meant[at + 1..].iter().map(|b| vec![*a, *b]).collect::<Vec<_>>();
            meant.iter().enumerate().flat_map(pairs).collect()
        }
    }
}

/// What the allocations say, in the model's terms.
fn given<'a>(world: &'a World, results: &[AllocationResult], alternatives: &[Vec<usize>]) -> Given<'a> {
    let mut given = Vec::new();
    for (claim, (requests, _)) in world.claims.iter().enumerate() {
        for (request, list) in requests.iter().enumerate() {
            let at = alternatives[claim][request];
            let name = if list.len() == 1 { format!("r{request}") } else { format!("r{request}/a{at}") };
            let mine = results[claim].devices.results.iter().filter(|result| result.request == name);
            let devices = mine.map(|result| {
                let device: usize = result.device.strip_prefix("dev-").unwrap().parse().unwrap();
                let made = &world.devices[device];
                assert_eq!(result.driver, format!("d{}", made.driver));
                assert_eq!(result.share_id.is_some(), made.memory.is_some());
                let consumed = made.memory.map(|_| ("memory".to_owned(), Made::taken(&list[at]).to_string()));
                let told =
                    result.consumed_capacity.iter().map(|(name, amount)| (name.clone(), amount.to_string()));
                assert_eq!(told.collect::<Vec<_>>(), consumed.into_iter().collect::<Vec<_>>());
                device
            });
            given.push((claim, request, &list[at], devices.collect()));
        }
    }
    let count: usize = results.iter().map(|result| result.devices.results.len()).sum();
    assert_eq!(count, given.iter().map(|(.., devices): &(_, _, _, Vec<_>)| devices.len()).sum::<usize>());
    given
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
