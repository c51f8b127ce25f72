//! Whatever pods hold by claims, by claims that they share and by their assignments: those go for a pod of higher priority that have to, in
//! kube-scheduler's order, and no others; and what they leave is kept for it until the last of their claims is freed.
//!
//! Which pods have to go is found out here by building the cluster anew without them. Claims are freed here as Kubernetes' resourceclaim
//! controller does it; the accounts of the scheduler are not asked.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use berth::{
    device::{Allocation, Answer, Card},
    object::{DeviceClass, LabelSelector, Labels, Pod, PodDisruptionBudget, ResourceClaim, ResourceSlice},
    scheduling::{
        Ask, Claim, Constraints, Demand, Footprint, Importance, PodInfo, ResourceAmounts, Snapshot, Stage,
        Uid, WaitingPodStatus,
        decide::class::Classes,
        model::{
            claim_use::{ClaimSource, ResourceClaimUse},
            extended_resources::ExtendedRequests,
            kind::Kind,
            label_set::LabelSet,
            pod::Deletion,
            prebind_step::PrebindStep,
        },
        plan::preemption::{Candidate, Rules, choose},
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::{
            ledger::{Charge, Commitment},
            object::Object,
        },
    },
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixtures::{self, PROFILE, ask};

const SLOTS: u32 = 3;
const MEMORY: u64 = 10;
/// The claims that several pods may share: one for a whole device, one for a part.
const SHARED: [Asks; 2] = [Asks::Whole, Asks::Part(4)];

/// How much of its counter a card has that is published in pieces, and how much a half takes; the whole card takes all.
const CARD: u32 = 2;
const HALF: u32 = 1;

/// Whether a plugin registers the card, whether a driver publishes it as a whole, and whether another does so in shares; and whether there is one more card
/// beside it, which a driver publishes in pieces.
type Made = (bool, bool, bool, bool);

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
enum Asks {
    /// A share of a registered card with so much memory.
    Share(u64),
    /// A claim of a whole device.
    Whole,
    /// A claim of a share with so much memory.
    Part(u64),
    /// A claim of the device that each node can reach.
    Remote,
    /// A claim of half a card that is published in pieces.
    Half,
    /// A claim of all of such a card.
    Card,
    /// A claim of one of two links that each node can reach, or of both as one device: they share a counter.
    Link,
    /// See [`Self::Link`].
    Trunk,
    /// The shared claim of this number.
    Shared(usize),
    /// An extended resource, which a claim of a whole device serves.
    Extended,
}

#[derive(Clone, Copy, Debug)]
struct Tenant {
    asks: Asks,
    priority: i32,
    /// Whether a budget allows no disruption of it.
    is_protected: bool,
}

/// What else uses the claim of a pod.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    Job,
    UnknownPod,
}

fn nodes() -> impl Strategy<Value = Vec<Vec<Made>>> {
    let has = prop::bool::weighted;
    let card = (has(0.7), has(0.6), has(0.6), has(0.5));
    prop::collection::vec(prop::collection::vec(card, 1..=2), 1..=3)
}

fn asks() -> impl Strategy<Value = Asks> {
    prop_oneof![
        3 => (1..=MEMORY).prop_map(Asks::Share),
        3 => Just(Asks::Whole),
        4 => (1..=MEMORY).prop_map(Asks::Part),
        1 => Just(Asks::Remote),
        5 => Just(Asks::Half),
        3 => Just(Asks::Card),
        1 => Just(Asks::Link),
        1 => Just(Asks::Trunk),
        3 => (0..SHARED.len()).prop_map(Asks::Shared),
        1 => Just(Asks::Extended),
    ]
}

/// More often than others, it wants what two pods can have of one counter.
fn asks_of_the_preemptor() -> impl Strategy<Value = Asks> {
    prop_oneof![3 => asks(), 1 => Just(Asks::Card), 1 => Just(Asks::Trunk)]
}

fn tenants() -> impl Strategy<Value = Vec<Tenant>> {
    let tenant = (asks(), 0..4_i32, prop::bool::weighted(0.2));
    let tenant = tenant.prop_map(|(asks, priority, is_protected)| Tenant { asks, priority, is_protected });
    prop::collection::vec(tenant, 4..12)
}

fn strangers() -> impl Strategy<Value = Vec<(usize, Stranger)>> {
    let stranger = prop_oneof![Just(Stranger::Job), Just(Stranger::UnknownPod)];
    prop::collection::vec((0..12_usize, stranger), 0..2)
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn name(node: usize) -> String {
    format!("node-{node}")
}

fn uid(pod: usize) -> Uid {
    format!("pod-{pod}").into()
}

/// The name of the claim of a pod that asks for this; `None`: it has none, or Berth makes it.
fn claim_name(pod: &str, asks: Asks) -> Option<String> {
    match asks {
        Asks::Share(_) | Asks::Extended => None,
        Asks::Shared(number) => Some(format!("shared-{number}")),
        _ => Some(format!("{pod}-claim")),
    }
}

fn spec(asks: Asks) -> Value {
    let exactly = match asks {
        Asks::Shared(number) => return spec(SHARED[number]),
        Asks::Share(_) | Asks::Whole | Asks::Extended => json!({"deviceClassName": "whole"}),
        Asks::Part(memory) => {
            json!({"deviceClassName": "parts", "capacity": {"requests": {"memory": format!("{memory}Mi"), "cores": "10"}}})
        }
        Asks::Remote => json!({"deviceClassName": "remote"}),
        Asks::Half => json!({"deviceClassName": "half"}),
        Asks::Card => json!({"deviceClassName": "card"}),
        Asks::Link => json!({"deviceClassName": "link"}),
        Asks::Trunk => json!({"deviceClassName": "trunk"}),
    };
    json!({"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})
}

/// What a pod asks for, with this uid, which is also its name.
fn demand(pod: &str, tenant: Tenant) -> Demand {
    let claim = claim_name(pod, tenant.asks);
    let used = claim.map(|claim| ResourceClaimUse {
        entry: "gpu".into(),
        claim: Some(claim.as_str().into()),
        source: ClaimSource::Named,
    });
    let ask = match tenant.asks {
        Asks::Share(memory) => ask(1, memory, 0),
        _ => Ask {
            devices: Vec::new(),
            resources: Arc::new(ResourceAmounts::default()),
            constraints: Constraints::default(),
            policy: berth::device::NodePolicy::Indifferent,
        },
    };
    let extended = matches!(tenant.asks, Asks::Extended).then(|| {
        let container = json!({"name": "main", "resources": {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}});
        let metadata = json!({"name": pod, "namespace": "default", "uid": pod});
        let pod: Pod = parsed(json!({"metadata": metadata, "spec": {"containers": [container]}}));
        Arc::new(ExtendedRequests::of_pod(&pod).unwrap())
    });
    let labels = if tenant.is_protected { "protected" } else { "other" };
    let footprint = Footprint {
        namespace: "default".into(),
        labels: LabelSet::from([("app", labels)]),
        resource_claims: used.into_iter().collect(),
        extended,
        ..Footprint::default()
    };
    let priority = tenant.priority;
    Demand { footprint: Arc::new(footprint), priority, ..fixtures::demand(pod, ask) }
}

/// A claim as its status says.
#[derive(Clone, Debug)]
struct Standing {
    spec: Value,
    allocation: Value,
    users: BTreeSet<(&'static str, String)>,
}

/// A pod on its node.
#[derive(Clone, Debug)]
struct Placed {
    node: String,
    tenant: Tenant,
    allocations: Vec<Allocation>,
    footprint: Arc<Footprint>,
}

/// What the API server has.
#[derive(Clone, Debug)]
struct Objects {
    nodes: Vec<Vec<Made>>,
    pods: BTreeMap<usize, Placed>,
    claims: BTreeMap<String, Standing>,
}

impl Objects {
    fn new(nodes: Vec<Vec<Made>>) -> Self {
        let new = |asks| Standing { spec: spec(asks), allocation: Value::Null, users: BTreeSet::new() };
        let claims = SHARED.iter().enumerate().map(|(at, asks)| (format!("shared-{at}"), new(*asks)));
        Self { nodes, pods: BTreeMap::new(), claims: claims.collect() }
    }

    /// A scheduler that has just started and listed everything.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for class in ["whole", "parts", "remote", "half", "card", "link", "trunk"] {
            let expression = match class {
                "half" | "card" | "link" | "trunk" => {
                    format!("device.driver == 'pieces' && device.attributes['pieces'].kind == '{class}'")
                }
                _ => format!("device.driver == '{class}'"),
            };
            let mut spec = json!({"selectors": [{"cel": {"expression": expression}}]});
            if class == "whole" {
                spec["extendedResourceName"] = json!("example.com/gpu");
            }
            let class: DeviceClass = parsed(json!({"metadata": {"name": class}, "spec": spec}));
            snapshot.set_object(Object::DeviceClass(Arc::new(class)));
        }
        for (node, cards) in self.nodes.iter().enumerate() {
            let of = |at: usize| Card {
                slots: SLOTS,
                ..fixtures::card(&format!("GPU-{node}-{at}"), u32::try_from(at).unwrap(), MEMORY)
            };
            let registered = (0..cards.len()).filter(|at| cards[*at].0);
            let offer = fixtures::offer(PROFILE, registered.map(of).collect());
            snapshot.set_node(fixtures::node_offering(&name(node), vec![offer]));
        }
        for slice in self.slices() {
            snapshot.set_object(Object::ResourceSlice(Arc::new(slice)));
        }
        for claim in self.claims.keys() {
            self.show_claim(&mut snapshot, claim);
        }
        for pod in self.pods.keys() {
            snapshot.charge(uid(*pod), self.charge(*pod, Deletion::None));
        }
        let budget: PodDisruptionBudget = parsed(json!({
            "metadata": {"name": "budget", "namespace": "default"}, "spec": {},
            "status": {"disruptionsAllowed": 0},
        }));
        let mut budget = budget;
        budget.spec.selector = Some(LabelSelector {
            match_labels: Labels::from([("app".to_owned(), "protected".to_owned())]),
            ..LabelSelector::default()
        });
        snapshot.set_object(Object::PodDisruptionBudget(Arc::new(budget)));
        snapshot
    }

    fn slices(&self) -> Vec<ResourceSlice> {
        let slice = |driver: &str, of: Value, devices: Vec<Value>| {
            let pool = of["nodeName"].as_str().unwrap_or("remote");
            let mut spec = json!({"driver": driver, "devices": devices,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
            spec.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
            parsed(json!({"metadata": {"name": format!("{driver}-{pool}")}, "spec": spec}))
        };
        let mut slices = vec![slice("remote", json!({"allNodes": true}), vec![json!({"name": "remote-0"})])];
        let capacity = json!({"memory": {"value": format!("{MEMORY}Mi")}, "cores": {"value": "100"}});
        for (node, cards) in self.nodes.iter().enumerate() {
            let device = |at: usize| json!({"name": format!("gpu-{at}"), "attributes": {"uuid": {"string": format!("GPU-{node}-{at}")}}});
            let shared = |at: usize| {
                let mut device = device(at);
                device["allowMultipleAllocations"] = json!(true);
                device["capacity"] = capacity.clone();
                device
            };
            let of = json!({"nodeName": name(node)});
            let published = |published: &dyn Fn(&Made) -> bool| {
                (0..cards.len()).filter(|at| published(&cards[*at])).collect::<Vec<_>>()
            };
            let wholes = published(&|made| made.1).into_iter().map(device).collect();
            let parts = published(&|made| made.2).into_iter().map(shared).collect();
            slices.extend([slice("whole", of.clone(), wholes), slice("parts", of.clone(), parts)]);
            let cards: Vec<String> =
                published(&|made| made.3).iter().map(|at| format!("card-{at}")).collect();
            slices.extend(pieces(&name(node), &of, ["card", "half"], &cards));
        }
        slices.extend(pieces(
            "fabric",
            &json!({"allNodes": true}),
            ["trunk", "link"],
            &["fabric".to_owned()],
        ));
        slices
    }

    fn show_claim(&self, snapshot: &mut Snapshot, claim: &str) {
        let Some(Standing { spec, allocation, users }) = self.claims.get(claim) else {
            snapshot.remove_object(Kind::ResourceClaim, &format!("default/{claim}").as_str().into());
            return;
        };
        let users: Vec<_> =
            users.iter().map(|(kind, uid)| json!({"resource": kind, "name": uid, "uid": uid})).collect();
        let claim: ResourceClaim = parsed(json!({
            "metadata": {"name": claim, "namespace": "default", "uid": claim},
            "spec": spec, "status": {"allocation": allocation, "reservedFor": users},
        }));
        snapshot.set_object(Object::ResourceClaim(Arc::new(claim)));
    }

    fn charge(&self, pod: usize, deletion: Deletion) -> Charge {
        let Placed { node, tenant, allocations, footprint } = &self.pods[&pod];
        Charge {
            footprint: footprint.clone(),
            commitment: Commitment::Bound,
            stage: Stage::Pending,
            importance: Importance {
                priority: tenant.priority,
                started: Timestamp::from_second(i64::try_from(pod).unwrap()).ok(),
                deletion,
                ..Importance::default()
            },
            ..fixtures::charge(node, allocations.clone())
        }
    }

    /// A pod goes where it fits, and its claims say so.
    fn place(&mut self, snapshot: &mut Snapshot, pod: usize, tenant: Tenant) -> bool {
        if let Some(claim) = claim_name(&uid(pod), tenant.asks) {
            let new = Standing { spec: spec(tenant.asks), allocation: Value::Null, users: BTreeSet::new() };
            self.claims.entry(claim.clone()).or_insert(new);
            self.show_claim(snapshot, &claim);
        }
        let demand = demand(&uid(pod), tenant);
        let decision = Classes::new(ScoreWeights::default()).decide(&demand, snapshot, |_| 0);
        let Ok(decision) = decision else { return false };
        let mut allocations = decision.allocations;
        for allocation in &mut allocations {
            allocation.answer = Answer::Succeeded;
        }
        let node = decision.node.to_string();
        self.pods.insert(pod, Placed { node, tenant, allocations, footprint: demand.footprint });
        for step in &decision.steps {
            let claim = step.claim().to_string();
            let new = Standing { spec: spec(tenant.asks), allocation: Value::Null, users: BTreeSet::new() };
            let standing = self.claims.entry(claim.clone()).or_insert(new);
            if let Some((_, allocation)) = PrebindStep::given(step) {
                standing.allocation = serde_json::to_value(&**allocation).unwrap();
            }
            standing.users.insert(("pods", uid(pod).to_string()));
            self.show_claim(snapshot, &claim);
        }
        snapshot.charge(uid(pod), self.charge(pod, Deletion::None));
        true
    }

    /// The claims that the controller frees once this pod is gone, but for this one.
    fn leave(&mut self, pod: usize, but: Option<&str>) -> Vec<String> {
        let mut left = Vec::new();
        for (name, standing) in &mut self.claims {
            let user = ("pods", uid(pod).to_string());
            if standing.users.contains(&user) {
                left.push(name.clone());
                standing.users.remove(&user);
                if standing.users.is_empty() && Some(name.as_str()) != but {
                    standing.allocation = Value::Null;
                }
            }
        }
        left
    }

    /// The same without these pods.
    fn without(&self, pods: &BTreeSet<usize>, but: Option<&str>) -> Self {
        let mut others = self.clone();
        for pod in pods {
            others.pods.remove(pod);
            others.leave(*pod, but);
        }
        others
    }

    /// Whether the node has the pod if these pods are gone.
    fn fits(&self, gone: &BTreeSet<usize>, demand: &Demand, node: &str) -> bool {
        let own = demand.footprint.resource_claims.first().and_then(|used| used.claim.clone());
        let snapshot = self.without(gone, own.as_deref()).snapshot();
        let rank = |name: &Arc<str>| usize::from(**name != *node);
        let decided = Classes::new(ScoreWeights::default()).decide(demand, &snapshot, rank);
        decided.is_ok_and(|decision| *decision.node == *node)
    }

    /// Who has to go from the node, as kube-scheduler would have it, and how many of them a budget protects.
    fn victims(&self, demand: &Demand, node: &str) -> Option<(usize, Vec<usize>)> {
        let may_go = |placed: &Placed| placed.node == node && placed.tenant.priority < demand.priority;
        let may_go = self.pods.iter().filter(|(_, placed)| may_go(placed));
        let mut potential: Vec<(usize, Tenant)> = may_go.map(|(pod, placed)| (*pod, placed.tenant)).collect();
        potential.sort_by_key(|(pod, tenant)| (Reverse(tenant.priority), *pod));
        let mut gone: BTreeSet<usize> = potential.iter().map(|(pod, _)| *pod).collect();
        if gone.is_empty() || !self.fits(&gone, demand, node) {
            return None;
        }
        let (protected, others): (Vec<_>, Vec<_>) =
            potential.iter().partition(|(_, tenant)| tenant.is_protected);
        let (mut violations, mut victims) = (0, Vec::new());
        for (pod, tenant) in protected.into_iter().chain(others) {
            gone.remove(&pod);
            if !self.fits(&gone, demand, node) {
                gone.insert(pod);
                violations += usize::from(tenant.is_protected);
                victims.push(pod);
            }
        }
        victims.sort_by_key(|pod| (Reverse(self.pods[pod].tenant.priority), *pod));
        (!victims.is_empty()).then_some((violations, victims))
    }

    /// The node where the least harm is done.
    fn expected(&self, demand: &Demand) -> Option<(String, usize, Vec<usize>)> {
        let found = (0..self.nodes.len()).filter_map(|node| {
            let (violations, victims) = self.victims(demand, &name(node))?;
            Some((name(node), violations, victims))
        });
        found.min_by_key(|(node, violations, victims)| {
            let priorities = || victims.iter().map(|pod| self.pods[pod].tenant.priority);
            let highest = priorities().max().unwrap();
            let sum: i64 = priorities().map(|priority| i64::from(priority) - i64::from(i32::MIN)).sum();
            let first = victims.iter().filter(|pod| self.pods[pod].tenant.priority == highest).min().copied();
            (*violations, highest, sum, victims.len(), Reverse(first), node.clone())
        })
    }
}

/// The slices of a pool with these cards: of each the whole, two halves, and the counter that they take of.
fn pieces(pool: &str, of: &Value, [whole, half]: [&str; 2], cards: &[String]) -> Vec<ResourceSlice> {
    let counters = |amount: u32| json!({"slots": {"value": amount.to_string()}});
    let device = |card: &String, name: &str, kind: &str, takes: u32| {
        json!({"name": format!("{card}-{name}"), "attributes": {"kind": {"string": kind}},
            "consumesCounters": [{"counterSet": card, "counters": counters(takes)}]})
    };
    let devices: Vec<Value> = cards
        .iter()
        .flat_map(|card| {
            [device(card, "all", whole, CARD), device(card, "a", half, HALF), device(card, "b", half, HALF)]
        })
        .collect();
    let sets: Vec<Value> =
        cards.iter().map(|card| json!({"name": card, "counters": counters(CARD)})).collect();
    let slice = |part: &str, field: &str, content: Vec<Value>| {
        let mut spec =
            json!({"driver": "pieces", "pool": {"name": pool, "generation": 1, "resourceSliceCount": 2}});
        spec.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        spec[field] = json!(content);
        parsed(json!({"metadata": {"name": format!("pieces-{pool}-{part}")}, "spec": spec}))
    };
    vec![slice("devices", "devices", devices), slice("counters", "sharedCounters", sets)]
}

/// Whether it is a device that takes of a counter.
fn takes_of_a_counter(asks: Asks) -> bool {
    matches!(asks, Asks::Half | Asks::Card | Asks::Link | Asks::Trunk)
}

fn number(uid: &Uid) -> usize {
    uid.strip_prefix("pod-").unwrap().parse().unwrap()
}

fn waiting(demand: &Demand, nominated: Option<&str>) -> PodInfo {
    PodInfo {
        importance: Importance { priority: demand.priority, ..Importance::default() },
        footprint: demand.footprint.clone(),
        status: Arc::new(WaitingPodStatus {
            nominated: nominated.map(Into::into),
            ..WaitingPodStatus::default()
        }),
        ..fixtures::pod(&demand.uid, Claim::Place(demand.ask.clone()))
    }
}

/// Whether Berth starts anew between the steps of a preemption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Memory {
    Kept,
    Lost,
}

/// How often a pod preempted others.
#[derive(Debug, Default)]
struct Tally {
    /// For a device that takes of a counter.
    for_counters: AtomicUsize,
    /// For such a device, and several pods went that had some of the same counter.
    several: AtomicUsize,
    /// For anything else.
    others: AtomicUsize,
}

#[test]
fn those_pods_go_whose_devices_are_needed_and_what_they_leave_is_kept() {
    let tally = Tally::default();
    proptest!(ProptestConfig { cases: 1_000, ..ProptestConfig::default() }, |(
        nodes in nodes(),
        tenants in tenants(),
        strangers in strangers(),
        asks in asks_of_the_preemptor(),
        priority in 1..5_i32,
        later in prop::collection::vec((asks_of_others(), 0..5_i32), 0..4),
        memory in prop_oneof![Just(Memory::Kept), Just(Memory::Lost)],
    )| {
        let mut objects = Objects::new(nodes);
        let mut snapshot = objects.snapshot();
        for (pod, tenant) in tenants.iter().enumerate() {
            objects.place(&mut snapshot, pod, *tenant);
        }
        for (pod, stranger) in strangers {
            let user = ("pods", uid(pod).to_string());
            let shared = objects.claims.iter_mut().find(|(_, standing)| standing.users.contains(&user));
            let Some((claim, standing)) = shared else { continue };
            standing.users.insert(match stranger {
                Stranger::Job => ("jobs", "job".to_owned()),
                Stranger::UnknownPod => ("pods", "unknown".to_owned()),
            });
            let claim = claim.clone();
            objects.show_claim(&mut snapshot, &claim);
        }
        let demand = demand("preemptor", Tenant { asks, priority, is_protected: false });
        if let Some(claim) = claim_name("preemptor", asks) {
            let new = Standing { spec: spec(asks), allocation: Value::Null, users: BTreeSet::new() };
            objects.claims.entry(claim.clone()).or_insert(new);
            objects.show_claim(&mut snapshot, &claim);
        }
        let fits = |snapshot: &Snapshot| Classes::new(ScoreWeights::default()).decide(&demand, snapshot, |_| 0);
        prop_assume!(fits(&snapshot).is_err());

        let before: Vec<_> = snapshot.nodes().cloned().collect();
        let held = snapshot.resource_claims().held().clone();
        let chosen = choose(&demand, &mut snapshot, &mut PodCounts::default(), Rules::default()).ok();
        let same = snapshot.nodes().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before));
        prop_assert!(same, "what was tried has left a trace");
        prop_assert_eq!(&held, snapshot.resource_claims().held());
        let found = chosen.map(|Candidate { node, victims, violations }| {
            let victims = victims.iter().map(|victim| number(&victim.pod)).collect::<Vec<_>>();
            (node.to_string(), violations, victims)
        });
        prop_assert_eq!(&found, &objects.expected(&demand));
        let Some((node, _, victims)) = found else { return Ok(()) };
        tally.count(asks, victims.len());

        // The victims end one after the other, and their claims are freed one after the other. Other pods come meanwhile.
        let going: BTreeSet<Uid> = victims.iter().map(|pod| uid(*pod)).collect();
        snapshot.keep_for(&waiting(&demand, None), &node.as_str().into(), going, None);
        for pod in &victims {
            snapshot.charge(uid(*pod), objects.charge(*pod, Deletion::Preempted));
        }
        let restart = |objects: &Objects, left: &[usize]| {
            let mut snapshot = objects.snapshot();
            for pod in left {
                snapshot.charge(uid(*pod), objects.charge(*pod, Deletion::Preempted));
            }
            snapshot.nominate(&waiting(&demand, Some(&node)));
            snapshot
        };
        let mut coming = later.into_iter().enumerate().map(|(at, (asks, priority))| {
            (100 + at, Tenant { asks, priority: priority.min(demand.priority), is_protected: false })
        });
        let own = claim_name("preemptor", asks);
        for (at, pod) in victims.iter().enumerate() {
            if let Some((pod, tenant)) = coming.next() {
                objects.place(&mut snapshot, pod, tenant);
            }
            objects.pods.remove(pod);
            snapshot.release(&uid(*pod));
            if memory == Memory::Lost {
                snapshot = restart(&objects, &victims[at + 1..]);
            }
            // After a restart, what a pod that is gone leaves of a shared card is kept once its claim is freed.
            if memory == Memory::Kept
                && let Some((pod, tenant)) = coming.next()
            {
                objects.place(&mut snapshot, pod, tenant);
            }
            for claim in objects.leave(*pod, own.as_deref()) {
                objects.show_claim(&mut snapshot, &claim);
            }
        }
        for (pod, tenant) in coming {
            objects.place(&mut snapshot, pod, tenant);
        }
        let decided = fits(&snapshot);
        prop_assert!(decided.is_ok(), "its room was given away: {:?}", decided.err());
    });
    println!("{tally:?}");
    let [for_counters, several, others] =
        [&tally.for_counters, &tally.several, &tally.others].map(|count| count.load(Ordering::Relaxed));
    assert!(
        for_counters >= 150 && several >= 15 && others >= 100,
        "such preemptions are too rare: {tally:?}"
    );
}

impl Tally {
    fn count(&self, asks: Asks, victims: usize) {
        let counts = match (takes_of_a_counter(asks), victims) {
            (true, 1) => vec![&self.for_counters],
            (true, _) => vec![&self.for_counters, &self.several],
            (false, _) => vec![&self.others],
        };
        for count in counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What pods ask for that come while others end: they have no claim in common with them, and want no device that is kept on one of its nodes alone.
fn asks_of_others() -> impl Strategy<Value = Asks> {
    prop_oneof![
        2 => (1..=MEMORY).prop_map(Asks::Share),
        2 => Just(Asks::Whole),
        3 => (1..=MEMORY).prop_map(Asks::Part),
        1 => Just(Asks::Extended),
        2 => Just(Asks::Half),
        1 => Just(Asks::Card),
    ]
}
