//! Pods with claims of devices among those that may come: what they count as, from when, and that it is a function of the cluster's objects alone.

use std::collections::{BTreeMap, BTreeSet};

use berth::{
    config::Config,
    device::CardUsage,
    scheduling::{
        Event, NodeChange, ObjectChange, PodChange,
        model::{card_kind::CountedCard, kind::Kind, pod_shape::PodShape},
        world::{node_state::NodeState, object::Object},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, parsed, pod};

const DRIVER: &str = "gpu.example.com";

/// A card as a driver publishes it: its product, its memory, and whether it can be shared.
type Card = (&'static str, &'static str, bool);

const SMALL: Card = ("Small", "16Gi", false);
const LARGE: Card = ("Large", "80Gi", false);
const SHARED: Card = ("Shared", "16Gi", true);

fn device(node: &str, at: usize, (product, memory, shareable): Card) -> Value {
    let policy = json!({"default": memory, "validRange": {"min": "1Mi", "max": memory, "step": "1Mi"}});
    let policy = shareable.then_some(policy);
    json!({
        "name": format!("gpu-{at}"),
        "attributes": {"uuid": {"string": format!("GPU-{node}-{at}")}, "productName": {"string": product}},
        "capacity": {"memory": {"value": memory, "requestPolicy": policy}},
        "allowMultipleAllocations": shareable,
    })
}

/// A slice of a node with these cards.
fn slice(node: &str, cards: &[Card]) -> Value {
    let devices: Vec<_> = cards.iter().enumerate().map(|(at, card)| device(node, at, *card)).collect();
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    json!({
        "metadata": {"name": format!("of-{node}")},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    })
}

fn selecting(selector: &str) -> Value {
    if selector.is_empty() { json!([]) } else { json!([{"cel": {"expression": selector}}]) }
}

fn class(name: &str, selector: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selectors": selecting(selector)}})
}

/// A claim of so many devices of a class.
fn claim(name: &str, class: &str, selector: &str, count: usize) -> Value {
    let exactly = json!({"deviceClassName": class, "selectors": selecting(selector), "count": count});
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    })
}

/// A pod that was created so many seconds after others, uses these claims and waits.
fn waiting(name: &str, seconds: u32, claims: &[&str]) -> Value {
    let mut pod = pod(name, &json!({"cpu": "1"}));
    let uses = claims.iter().map(|claim| json!({"name": format!("of-{claim}"), "resourceClaimName": claim}));
    pod["spec"]["resourceClaims"] = uses.collect();
    pod["metadata"]["creationTimestamp"] = json!(format!("2027-01-15T07:00:{seconds:02}Z"));
    pod["status"]["conditions"] = json!([{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available",
    }]);
    pod
}

/// What the API server has.
#[derive(Clone, Debug, Default)]
struct Objects {
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    others: BTreeMap<(Kind, String), Value>,
}

fn read(kind: Kind, object: &Value) -> Object {
    match kind {
        Kind::ResourceClaim => Object::ResourceClaim(parsed(object)),
        Kind::ResourceSlice => Object::ResourceSlice(parsed(object)),
        _ => Object::DeviceClass(parsed(object)),
    }
}

fn full_name(kind: Kind, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    if kind == Kind::ResourceClaim { format!("default/{name}") } else { name.to_owned() }
}

impl Objects {
    /// A scheduler that begins with these.
    fn begin(&self) -> Watched {
        let all = |objects: &BTreeMap<String, Value>| objects.values().cloned().collect::<Vec<_>>();
        let machine = Machine::new(&Config::default(), &all(&self.nodes), &all(&self.pods));
        let mut watched = Watched { objects: self.clone(), machine };
        for kind in Kind::DEVICE_CLAIMS {
            let of_kind = self.others.iter().filter(|((other, _), _)| other == kind);
            let of_kind = of_kind.map(|(_, object)| read(*kind, object)).collect();
            watched.machine.tell(Event::Object(ObjectChange::Listed(*kind, of_kind)));
        }
        watched
    }
}

/// A scheduler, and the objects that it has seen.
struct Watched {
    objects: Objects,
    machine: Machine,
}

impl Watched {
    fn put(&mut self, kind: Kind, object: Value) {
        self.machine.tell(Event::Object(ObjectChange::Seen(read(kind, &object))));
        self.objects.others.insert((kind, full_name(kind, &object)), object);
    }

    fn take(&mut self, kind: Kind, name: &str) {
        if self.objects.others.remove(&(kind, name.to_owned())).is_some() {
            self.machine.tell(Event::Object(ObjectChange::Gone(kind, name.into())));
        }
    }

    fn put_node(&mut self, name: &str) {
        let object = node(name, &json!({}));
        self.machine.show_node(&object);
        self.objects.nodes.insert(name.to_owned(), object);
    }

    fn take_node(&mut self, name: &str) {
        if self.objects.nodes.remove(name).is_some() {
            self.machine.tell(Event::Node(NodeChange::Gone(name.into())));
        }
    }

    fn put_pod(&mut self, object: Value) {
        self.machine.show_pod(&object);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.objects.pods.insert(name, object);
    }

    fn take_pod(&mut self, name: &str) {
        if self.objects.pods.remove(name).is_some() {
            self.machine.tell(Event::Pod(PodChange::Ended(name.into())));
        }
    }

    /// The shapes of the pods that may come, with how much they count.
    fn shapes(&mut self) -> BTreeMap<PodShape, u32> {
        loop {
            let effects = self.machine.settle();
            let now = self.machine.now();
            if effects.is_empty() && self.machine.next_deadline().is_none_or(|at| at > now) {
                break;
            }
        }
        let packing = self.machine.scheduler().snapshot().packing();
        packing.shapes().map(|(shape, weight)| (PodShape::clone(shape), weight)).collect()
    }

    /// The cards of each node, each with its product, its memory and what is in use of it.
    fn cards(&self) -> BTreeMap<String, Vec<(String, String, u32, CardUsage)>> {
        let snapshot = self.machine.scheduler().snapshot();
        let cards = |state: &NodeState| {
            let of_card = |card: &CountedCard| {
                let kind = snapshot.packing().kinds().get(card.kind);
                (card.id.to_string(), kind.model.to_string(), kind.memory, state.usage.card(&card.id))
            };
            state.info.devices.cards.iter().map(of_card).collect()
        };
        snapshot.nodes().map(|state| (state.info.name.to_string(), cards(state))).collect()
    }

    /// How many cards of which products the pods ask for that count, each with how many pods do.
    fn asked(&mut self) -> BTreeSet<(u32, Vec<String>, u32)> {
        let products = |shape: &PodShape| {
            let kinds = shape.cards.share.devices.keys();
            kinds.map(|kind| kind.model().to_owned()).collect::<Vec<_>>()
        };
        let shapes = self.shapes().into_iter();
        shapes.map(|(shape, weight)| (shape.cards.count, products(&shape), weight / 1024)).collect()
    }
}

fn asked(cards: u32, products: &[&str], pods: u32) -> BTreeSet<(u32, Vec<String>, u32)> {
    BTreeSet::from([(cards, products.iter().map(|&product| product.to_owned()).collect(), pods)])
}

/// A node with cards of two products, and a class of all.
fn cluster() -> Watched {
    let mut watched = Objects::default().begin();
    watched.put_node("n1");
    watched.put(Kind::ResourceSlice, slice("n1", &[SMALL, SMALL, LARGE]));
    watched.put(Kind::DeviceClass, class("gpu", ""));
    watched
}

#[test]
fn a_pod_counts_with_its_claim_and_as_class_and_slices_have_it() {
    let mut cluster = cluster();
    cluster.put_pod(waiting("p", 0, &["c"]));
    assert_eq!(cluster.asked(), BTreeSet::new(), "there is no claim yet");
    cluster.put(Kind::ResourceClaim, claim("c", "gpu", "", 2));
    assert_eq!(cluster.asked(), asked(2, &["Large", "Small"], 1));
    cluster
        .put(Kind::DeviceClass, class("gpu", "device.attributes['gpu.example.com'].productName == 'Large'"));
    assert_eq!(cluster.asked(), asked(2, &["Large"], 1));
    cluster.put(Kind::ResourceSlice, slice("n1", &[SMALL]));
    assert_eq!(cluster.asked(), BTreeSet::new(), "no card serves it");
    cluster.put(Kind::ResourceSlice, slice("n1", &[LARGE]));
    assert_eq!(cluster.asked(), asked(2, &["Large"], 1));
    cluster.take(Kind::ResourceClaim, "default/c");
    assert_eq!(cluster.asked(), BTreeSet::new());
    cluster.put(Kind::ResourceClaim, claim("c", "gpu", "", 1));
    cluster.put_pod(bound(waiting("p", 0, &["c"]), "n1", json!({})));
    assert_eq!(cluster.asked(), asked(1, &["Large"], 1), "it counts where it is");
    cluster.take_pod("p");
    assert_eq!(cluster.asked(), BTreeSet::new());
}

#[test]
fn a_claim_of_several_pods_counts_with_the_oldest_of_them() {
    let mut cluster = cluster();
    cluster.put(Kind::ResourceClaim, claim("c", "gpu", "", 1));
    cluster.put(Kind::ResourceClaim, claim("own", "gpu", "", 3));
    cluster.put_pod(waiting("young", 2, &["c", "own"]));
    let all: &[&str] = &["Large", "Small"];
    assert_eq!(cluster.asked(), asked(4, all, 1));
    cluster.put_pod(waiting("old", 1, &["c"]));
    assert_eq!(cluster.asked(), &asked(1, all, 1) | &asked(3, all, 1));
    cluster.put_pod(waiting("oldest", 0, &["c"]));
    assert_eq!(cluster.asked(), &asked(1, all, 1) | &asked(3, all, 1));
    cluster.take_pod("oldest");
    cluster.take_pod("old");
    assert_eq!(cluster.asked(), asked(4, all, 1));
}

#[test]
fn a_claim_from_a_template_counts_with_the_pod_that_owns_it() {
    let mut cluster = cluster();
    let mut pod = waiting("p", 0, &[]);
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]);
    cluster.put_pod(pod.clone());
    let mut made = claim("made", "gpu", "", 1);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": true});
    made["metadata"]["ownerReferences"] = json!([owner]);
    cluster.put(Kind::ResourceClaim, made.clone());
    assert_eq!(cluster.asked(), BTreeSet::new(), "the pod's status does not name it yet");
    pod["status"]["resourceClaimStatuses"] = json!([{"name": "gpu", "resourceClaimName": "made"}]);
    cluster.put_pod(pod);
    assert_eq!(cluster.asked(), asked(1, &["Large", "Small"], 1));
    made["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    cluster.put(Kind::ResourceClaim, made);
    assert_eq!(cluster.asked(), BTreeSet::new());
}

#[test]
fn what_can_not_be_read_or_asks_for_too_much_adds_nothing() {
    let list = format!("[{}]", ["0"; 38].join(","));
    let slow = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
    let long = format!("true || device.driver == '{}'", "x".repeat(10 * 1024));
    let uuid = "device.attributes['gpu.example.com'].uuid == 'GPU-n1-0'";
    let none = [("1 +", 1), (&*slow, 1), (&*long, 1), (uuid, 1), ("false", 1), ("", 33)];
    let mut cluster = cluster();
    cluster.put_pod(waiting("p", 0, &["c"]));
    for (selector, count) in none {
        cluster.put(Kind::ResourceClaim, claim("c", "gpu", selector, count));
        assert_eq!(cluster.asked(), BTreeSet::new(), "{count} of {selector:.40}");
        cluster.put(Kind::ResourceClaim, claim("c", "gpu", "true", 32));
        assert_eq!(cluster.asked(), asked(32, &["Large", "Small"], 1));
    }
    let claims: Vec<String> = (0..40).map(|at| format!("c-{at}")).collect();
    for name in &claims {
        cluster.put(Kind::ResourceClaim, claim(name, "gpu", "true", 1));
    }
    let names: Vec<&str> = claims.iter().map(String::as_str).collect();
    cluster.put_pod(waiting("p", 0, &names));
    assert_eq!(cluster.asked(), asked(16, &["Large", "Small"], 1), "the first 16 claims of a pod count");
}

#[test]
fn a_pod_without_claims_goes_where_claims_need_its_cpu_least() {
    let mut cluster = Objects::default().begin();
    for name in ["n0", "n1"] {
        cluster.put_node(name);
        cluster.put(Kind::ResourceSlice, slice(name, &[SMALL]));
    }
    cluster.put(Kind::DeviceClass, class("gpu", ""));
    // The card of one node is held. Else the other node would be filled first.
    let mut held = claim("c", "gpu", "", 1);
    let result = json!({"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"});
    held["status"] = json!({"allocation": {"devices": {"results": [result]}}});
    cluster.put(Kind::ResourceClaim, held);
    cluster.put_pod(bound(waiting("user", 0, &["c"]), "n1", json!({})));
    cluster.put_pod(bound(pod("other", &json!({"cpu": "3"})), "n0", json!({})));
    assert_eq!(cluster.asked(), asked(1, &["Small"], 1));
    cluster.put_pod(pod("cpu", &json!({"cpu": "60"})));
    let (_, placed) = cluster.machine.run();
    assert_eq!(placed, super::machine::placed(&[("cpu", "n1")]));
}

#[test]
fn many_pods_are_counted_anew_turn_by_turn() {
    let mut cluster = cluster();
    let pods = 200;
    for at in 0..pods {
        let name = format!("c-{at}");
        // Each selector takes about as long as one may.
        let list = format!("[{}]", ["0"; 20].join(","));
        let selector = format!("{list}.all(x, {list}.all(y, x + y >= 0)) || {at} > 0");
        cluster.put(Kind::ResourceClaim, claim(&name, "gpu", &selector, 1));
        cluster.put_pod(bound(waiting(&format!("p-{at}"), 0, &[&name]), "n1", json!({})));
    }
    cluster.machine.take_steps();
    assert_eq!(cluster.asked(), asked(1, &["Large", "Small"], 64), "their number, rounded to a power of 4");
    let steps = cluster.machine.take_steps();
    let most = steps.iter().max().copied().unwrap();
    assert!(steps.len() > 3 && most < 400_000, "{steps:?}");
}

/// What happens to one object.
#[derive(Clone, Debug)]
enum Step {
    Node(usize, bool),
    Slice(usize, Option<Vec<usize>>),
    Class(usize, Option<usize>),
    Claim(usize, Option<MadeClaim>),
    Pod(usize, Option<MadePod>),
    Settle,
}

#[derive(Clone, Debug)]
struct MadeClaim {
    class: usize,
    selector: usize,
    count: usize,
    owner: Option<usize>,
    is_given: bool,
}

#[derive(Clone, Debug)]
struct MadePod {
    created: u32,
    cpu: u32,
    /// Which claims it uses, and whether each is from a template.
    claims: Vec<(usize, bool)>,
    is_bound: bool,
    is_told: bool,
}

const CARDS: [Card; 3] = [SMALL, LARGE, SHARED];

const SELECTORS: [&str; 5] = [
    "",
    "device.attributes['gpu.example.com'].productName == 'Large'",
    "device.capacity['gpu.example.com'].memory.isLessThan(quantity('20Gi'))",
    "device.attributes['gpu.example.com'].uuid == 'GPU-n0-0'",
    "1 +",
];

fn step() -> impl Strategy<Value = Step> {
    let selector = || prop_oneof![3 => 0..3_usize, 1 => 3..5_usize];
    let cards = prop::collection::vec(0..CARDS.len(), 1..3);
    let claim = (0..2_usize, selector(), 1..3_usize, prop::option::weighted(0.3, 0..3_usize), any::<bool>())
        .prop_map(|(class, selector, count, owner, is_given)| MadeClaim {
            class,
            selector,
            count,
            owner,
            is_given,
        });
    let uses = prop::collection::vec((0..3_usize, prop::bool::weighted(0.3)), 0..3);
    let pod = (0..3_u32, 1..3_u32, uses, any::<bool>(), prop::bool::weighted(0.8)).prop_map(
        |(created, cpu, claims, is_bound, is_told)| MadePod { created, cpu, claims, is_bound, is_told },
    );
    let maybe = 0.8;
    prop_oneof![
        1 => (0..2_usize, prop::bool::weighted(maybe)).prop_map(|(at, is)| Step::Node(at, is)),
        2 => (0..2_usize, prop::option::weighted(maybe, cards)).prop_map(|(at, is)| Step::Slice(at, is)),
        2 => (0..2_usize, prop::option::weighted(maybe, selector())).prop_map(|(at, is)| Step::Class(at, is)),
        4 => (0..3_usize, prop::option::weighted(maybe, claim)).prop_map(|(at, is)| Step::Claim(at, is)),
        4 => (0..3_usize, prop::option::weighted(maybe, pod)).prop_map(|(at, is)| Step::Pod(at, is)),
        3 => Just(Step::Settle),
    ]
}

impl MadeClaim {
    fn object(&self, at: usize) -> Value {
        let mut object =
            claim(&format!("c{at}"), &format!("class{}", self.class), SELECTORS[self.selector], self.count);
        if let Some(owner) = self.owner {
            let uid = format!("p{owner}");
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": true}]);
        }
        if self.is_given {
            let result = json!({"request": "gpu", "driver": DRIVER, "pool": "n0", "device": "gpu-0"});
            object["status"] = json!({"allocation": {"devices": {"results": [result]}}});
        }
        object
    }
}

impl MadePod {
    fn object(&self, at: usize) -> Value {
        let mut pod = waiting(&format!("p{at}"), self.created, &[]);
        pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(self.cpu.to_string());
        let (mut uses, mut made) = (Vec::new(), Vec::new());
        for (number, (claim, own)) in self.claims.iter().enumerate() {
            let (entry, claim) = (format!("e{number}"), format!("c{claim}"));
            if *own {
                uses.push(json!({"name": entry, "resourceClaimTemplateName": "t"}));
                made.push(json!({"name": entry, "resourceClaimName": claim}));
            } else {
                uses.push(json!({"name": entry, "resourceClaimName": claim}));
            }
        }
        pod["spec"]["resourceClaims"] = json!(uses);
        pod["status"]["resourceClaimStatuses"] = json!(made);
        // No node has it: what a scheduler that begins would decide is not what is compared.
        pod["spec"]["nodeSelector"] = json!({"example.com/nowhere": "true"});
        if !self.is_told {
            pod["status"]["conditions"] = json!([]);
        }
        if self.is_bound { bound(pod, "n0", json!({})) } else { pod }
    }
}

impl Watched {
    fn take_step(&mut self, step: &Step) {
        match step {
            Step::Node(at, true) => self.put_node(&format!("n{at}")),
            Step::Node(at, false) => self.take_node(&format!("n{at}")),
            Step::Slice(at, Some(cards)) => {
                let cards: Vec<Card> = cards.iter().map(|card| CARDS[*card]).collect();
                self.put(Kind::ResourceSlice, slice(&format!("n{at}"), &cards));
            }
            Step::Slice(at, None) => self.take(Kind::ResourceSlice, &format!("of-n{at}")),
            Step::Class(at, Some(selector)) => {
                self.put(Kind::DeviceClass, class(&format!("class{at}"), SELECTORS[*selector]));
            }
            Step::Class(at, None) => self.take(Kind::DeviceClass, &format!("class{at}")),
            Step::Claim(at, Some(claim)) => self.put(Kind::ResourceClaim, claim.object(*at)),
            Step::Claim(at, None) => self.take(Kind::ResourceClaim, &format!("default/c{at}")),
            Step::Pod(at, Some(pod)) => self.put_pod(pod.object(*at)),
            Step::Pod(at, None) => self.take_pod(&format!("p{at}")),
            Step::Settle => drop(self.machine.settle()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever came and went in whatever order, pods count as they do after a restart, and on another replica; and so do the cards of nodes.
    #[test]
    fn what_pods_with_claims_count_as_is_a_function_of_the_objects(steps in prop::collection::vec(step(), 1..60)) {
        let mut cluster = Objects::default().begin();
        for (at, card) in CARDS.iter().enumerate().take(2) {
            cluster.put_node(&format!("n{at}"));
            cluster.put(Kind::DeviceClass, class(&format!("class{at}"), ""));
            cluster.put(Kind::ResourceSlice, slice(&format!("n{at}"), &[*card]));
        }
        for step in &steps {
            cluster.take_step(step);
        }
        let mut fresh = cluster.objects.begin();
        prop_assert_eq!(cluster.shapes(), fresh.shapes());
        prop_assert_eq!(cluster.cards(), fresh.cards());
    }
}
