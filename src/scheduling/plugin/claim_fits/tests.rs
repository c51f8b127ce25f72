//! What is kept, what is judged anew, and that nodes that are alike are found to be what each would be found to be by itself.

use std::{cell::Cell, collections::BTreeMap, ops::ControlFlow};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::scheduling::{
    Snapshot,
    decide::{class::Classes, outlook::Outlook},
    model::{kind::Kind, node::NodeInfo, pod::Demand, steps::DESCRIBE_DEVICE},
    plugin::{
        dynamic_resources::{PodClaims, tests},
        score::weights::ScoreWeights,
    },
    world::object::Object,
};

fn read<T: serde::de::DeserializeOwned>(object: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object).unwrap())
}

fn slice(node: &str) -> Object {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    let spec =
        json!({"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": [{"name": "gpu-0"}]});
    Object::ResourceSlice(read(json!({"metadata": {"name": format!("of-{node}")}, "spec": spec})))
}

fn claim(name: &str) -> Object {
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
    let metadata = json!({"namespace": "team", "name": name, "uid": name});
    Object::ResourceClaim(read(json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}})))
}

/// A cluster of these nodes, which have no devices, and a claim for one device.
fn cluster(nodes: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for name in nodes {
        let name: NodeName = (*name).into();
        snapshot.set_node(NodeInfo { uid: name.clone(), name, ..NodeInfo::default() });
    }
    snapshot.set_object(Object::DeviceClass(read(json!({"metadata": {"name": "gpu"}}))));
    snapshot.set_object(claim("shared"));
    snapshot
}

fn demand() -> Demand {
    tests::demand("shared")
}

fn chosen(classes: &mut Classes, snapshot: &Snapshot) -> Option<String> {
    classes.decide(&demand(), snapshot, |_| 0).ok().map(|decision| decision.node.to_string())
}

#[test]
fn nodes_are_judged_again_once_their_devices_change() {
    let (mut snapshot, mut classes) = (cluster(&["a", "b", "c"]), Classes::default());
    assert_eq!(chosen(&mut classes, &snapshot), None);
    snapshot.set_object(slice("b"));
    assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("b"));
    snapshot.set_object(slice("c"));
    snapshot.remove_object(Kind::ResourceSlice, &"of-b".into());
    assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("c"));
    let mut other = claim("other");
    if let Object::ResourceClaim(claim) = &mut other {
        let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "c", "device": "gpu-0"});
        let status = json!({"allocation": {"devices": {"results": [result]}}});
        Arc::make_mut(claim).status = serde_json::from_value(status).unwrap();
    }
    snapshot.set_object(other);
    assert_eq!(chosen(&mut classes, &snapshot), None);
    snapshot.remove_object(Kind::ResourceClaim, &"team/other".into());
    assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("c"));
    snapshot.remove_node("c");
    assert_eq!(chosen(&mut classes, &snapshot), None);
}

#[test]
fn the_node_is_chosen_where_a_list_gets_its_earliest_alternative() {
    let chosen_for = |list: [&str; 2]| {
        let (mut snapshot, mut classes) = (cluster(&["a", "b"]), Classes::default());
        for (node, driver) in [("a", "slow"), ("b", "fast")] {
            let expression = format!("device.driver == '{driver}'");
            let selectors = json!([{"cel": {"expression": expression}}]);
            snapshot.set_object(Object::DeviceClass(read(
                json!({"metadata": {"name": driver}, "spec": {"selectors": selectors}}),
            )));
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
            let spec = json!({"driver": driver, "pool": pool, "nodeName": node, "devices": [{"name": "0"}]});
            let metadata = json!({"name": format!("of-{node}")});
            snapshot.set_object(Object::ResourceSlice(read(json!({"metadata": metadata, "spec": spec}))));
        }
        let list = list.map(|class| json!({"name": class, "deviceClassName": class}));
        let requests = json!([{"name": "gpu", "firstAvailable": list}]);
        let metadata = json!({"namespace": "team", "name": "shared", "uid": "shared"});
        snapshot.set_object(Object::ResourceClaim(read(
            json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}}),
        )));
        chosen(&mut classes, &snapshot)
    };
    assert_eq!(chosen_for(["fast", "slow"]).as_deref(), Some("b"));
    assert_eq!(chosen_for(["slow", "fast"]).as_deref(), Some("a"));
}

/// Nodes are in the order in which they came, and not in that of their names.
#[test]
fn an_outlook_finds_the_devices_of_the_right_node() {
    let mut snapshot = cluster(&["c", "b", "a"]);
    snapshot.set_object(slice("c"));
    let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default());
    let placed = outlook.place(&demand(), || ControlFlow::Continue(())).unwrap();
    assert_eq!(placed.map(|prospect| prospect.node.info.name.to_string()).ok().as_deref(), Some("c"));
}

/// Not even one evaluation is begun that could take longer than a dry run may.
#[test]
fn a_dry_run_has_no_answer_where_a_selector_takes_too_long() {
    let mut snapshot = cluster(&["a"]);
    snapshot.set_object(slice("a"));
    let list = format!("[{}]", ["0"; 38].join(","));
    let loops = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
    let mut placed = |selector: &str| {
        let selectors = json!([{"cel": {"expression": selector}}]);
        let requests =
            json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}]);
        let metadata = json!({"namespace": "team", "name": "shared", "uid": "shared"});
        let claim = json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}});
        snapshot.set_object(Object::ResourceClaim(read(claim)));
        let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default());
        outlook.place(&demand(), || ControlFlow::Continue(())).map(|placed| placed.is_ok())
    };
    assert_eq!(placed("device.driver == 'gpu.example.com'"), Some(true));
    assert_eq!(placed("device.driver == 'other.example.com'"), Some(false));
    assert_eq!(placed(&loops), None);
}

/// Counts the nodes that are judged.
struct Counting<'a>(&'a Cell<u32>);

impl NodeJudge for Counting<'_> {
    fn judge(&self, _: &NodeState, _: &mut Selected, _: GoOn<'_>) -> Result<FoundDevices, ClaimRejection> {
        self.0.set(self.0.get() + 1);
        Ok(FoundDevices::default())
    }

    fn attributes(&self) -> Option<BTreeSet<String>> {
        Some(BTreeSet::new())
    }
}

#[test]
fn a_namespace_with_many_claims_does_not_push_out_what_was_found_for_another() {
    let (snapshot, mut fits) = (cluster(&["a"]), ClaimFits::default());
    let (one, many) = (Arc::from("one"), Arc::from("many"));
    let asked = |at: u64| (at, Beside::Nothing, Vec::new());
    let judged = Cell::new(0);
    let mut ask = |at: u64, namespace: &Arc<str>| {
        fits.of(
            (asked(at), namespace),
            (snapshot.world(), None),
            &mut Allowance::UNLIMITED.clone(),
            &Counting(&judged),
        );
        judged.take()
    };
    assert_eq!(ask(0, &one), 1);
    assert_eq!((1..1000).map(|at| ask(at, &many)).sum::<u32>(), 999);
    assert_eq!(ask(0, &one), 0, "it is still known");
    assert_eq!(ask(999, &many), 0);
    assert_eq!(ask(1, &many), 1, "the oldest of the same namespace are forgotten");
}

/// How many nodes are judged for claims that ask for this, whatever they find.
fn judged(fits: &mut ClaimFits, snapshot: &Snapshot, asked: u64, allowance: &mut Allowance) -> u32 {
    let judged = Cell::new(0);
    let asked = ((asked, Beside::Nothing, Vec::new()), &Arc::from("team"));
    fits.of(asked, (snapshot.world(), None), allowance, &Counting(&judged));
    judged.get()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("n{at:02}")).collect()
}

#[test]
fn of_nodes_that_are_alike_one_is_judged() {
    let names = names(2 * MANY);
    let mut snapshot = cluster(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut fits = ClaimFits::default();
    let every = || Allowance::UNLIMITED;
    for name in &names[MANY..] {
        snapshot.set_object(slice(name));
    }
    assert_eq!(judged(&mut fits, &snapshot, 0, &mut every()), 2, "those with a device, and those without");
    assert_eq!(judged(&mut fits, &snapshot, 0, &mut every()), 0);
    let mut held = claim("held");
    if let Object::ResourceClaim(claim) = &mut held {
        let result =
            json!({"request": "gpu", "driver": "gpu.example.com", "pool": names[MANY], "device": "gpu-0"});
        let status = json!({"allocation": {"devices": {"results": [result]}}});
        Arc::make_mut(claim).status = serde_json::from_value(status).unwrap();
    }
    snapshot.set_object(held);
    assert_eq!(judged(&mut fits, &snapshot, 0, &mut every()), 1, "that of which a device is held now");
    assert_eq!(judged(&mut fits, &snapshot, 1, &mut every()), 3, "claims that ask for something else");
    snapshot.set_object(slice(&names[0]));
    assert_eq!(judged(&mut fits, &snapshot, 0, &mut every()), 1, "that for which a driver publishes now");
    snapshot.remove_object(Kind::ResourceSlice, &format!("of-{}", names[0]).into());
    assert_eq!(judged(&mut fits, &snapshot, 0, &mut every()), 1, "that of which it no longer does");
}

#[test]
fn of_nodes_that_are_alike_one_is_left_to_be_compared() {
    let names = names(2 * MANY);
    let mut snapshot = cluster(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names[MANY..] {
        snapshot.set_object(slice(name));
    }
    let world = snapshot.world();
    let mut allowance = Allowance::UNLIMITED;
    DeviceLikenesses::default().of(
        &["resource.kubernetes.io/pcieRoot".to_owned()].into(),
        world,
        &mut allowance,
    );
    let described = Allowance::UNLIMITED.left() - allowance.left();
    let (demand, mut fits) = (demand(), ClaimFits::default());
    let claims = PodClaims::read(&demand, world, Allowance::UNLIMITED).unwrap().unwrap();
    // Nothing is left for a search among devices once all nodes are described.
    let asked = ((0, Beside::Nothing, Vec::new()), &Arc::from("team"));
    let found = fits.of(asked, (world, None), &mut Allowance::of(described), &claims);
    assert!(found.is_unfinished());
    let left = fits.take_unfinished().unwrap().nodes;
    assert_eq!(left.iter().map(|(_, node)| &**node).collect::<Vec<_>>(), [&*names[MANY]]);
}

#[test]
fn few_nodes_are_left_to_be_compared_while_others_are_described() {
    let names = names(8 * LEFT_AT_ONCE);
    let mut snapshot = cluster(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        snapshot.set_object(slice(name));
    }
    let (demand, mut fits, world) = (demand(), ClaimFits::default(), snapshot.world());
    let claims = PodClaims::read(&demand, world, Allowance::UNLIMITED).unwrap().unwrap();
    let mut decide = |steps: u64| {
        let asked = ((0, Beside::Nothing, Vec::new()), &Arc::from("team"));
        fits.of(asked, (world, None), &mut Allowance::of(steps), &claims);
        fits.take_unfinished().map(|left| left.nodes.len())
    };
    let steps = 200 * DESCRIBE_DEVICE;
    assert_eq!(decide(steps), Some(LEFT_AT_ONCE));
    let mut decisions = (0..100).map(|_| decide(2 * steps));
    assert_eq!(decisions.find(Option::is_none), Some(None), "each decision has described some");
}

/// What happens to one of the nodes.
#[derive(Clone, Debug)]
enum Change {
    /// Its driver publishes these devices: of this model, with so much memory, shared or not, tainted or not.
    Publish(usize, Vec<(usize, usize, bool, bool)>),
    /// Its driver no longer publishes anything, or publishes its devices for another node.
    Withdraw(usize, Option<usize>),
    /// A device is published for these nodes by their label, or for none.
    Share(Option<usize>),
    /// A claim holds the device in this place, whether it is published or not, or no longer does.
    Hold(usize, usize),
    /// It has other labels.
    Label(usize, usize),
    /// It is gone, or there again.
    Toggle(usize),
}

const NODES: usize = MANY + 8;

fn change() -> impl Strategy<Value = Change> {
    let device = (0..2_usize, 1..3_usize, any::<bool>(), prop::bool::weighted(0.2));
    prop_oneof![
        4 => (0..NODES, prop::collection::vec(device, 0..3)).prop_map(|(node, devices)| Change::Publish(node, devices)),
        1 => (0..NODES, prop::option::of(0..NODES)).prop_map(|(node, other)| Change::Withdraw(node, other)),
        1 => prop::option::of(0..2_usize).prop_map(Change::Share),
        4 => (0..NODES, 0..3_usize).prop_map(|(node, at)| Change::Hold(node, at)),
        1 => (0..NODES, 0..2_usize).prop_map(|(node, label)| Change::Label(node, label)),
        1 => (0..NODES).prop_map(Change::Toggle),
    ]
}

impl Change {
    fn make(&self, snapshot: &mut Snapshot, held: &mut BTreeSet<(usize, usize)>) {
        match self {
            Self::Publish(node, devices) => {
                let devices = devices.iter().enumerate().map(|(at, (model, memory, shared, tainted))| {
                    let mut device = json!({
                        "name": format!("gpu-{at}"), "allowMultipleAllocations": shared,
                        "attributes": {"model": {"int": model}, "uuid": {"string": format!("GPU-{node}-{at}")}},
                        "capacity": {"memory": {"value": memory.to_string(), "requestPolicy": {"default": "1"}}},
                    });
                    if *tainted {
                        device["taints"] = json!([{"key": "broken", "effect": "NoSchedule"}]);
                    }
                    device
                });
                let devices: Vec<Value> = devices.collect();
                let name = &names(NODES)[*node];
                let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
                let spec =
                    json!({"driver": "gpu.example.com", "pool": pool, "nodeName": name, "devices": devices});
                let slice = json!({"metadata": {"name": format!("of-{name}")}, "spec": spec});
                snapshot.set_object(Object::ResourceSlice(read(slice)));
            }
            Self::Withdraw(node, other) => {
                let (own, names) = (&names(NODES)[*node], names(NODES));
                let Some(other) = other.map(|other| &names[other]) else {
                    snapshot.remove_object(Kind::ResourceSlice, &format!("of-{own}").into());
                    return;
                };
                let pool = json!({"name": own, "generation": 1, "resourceSliceCount": 1});
                let devices = json!([{"name": "gpu-0", "attributes": {"model": {"int": 1}}}]);
                let spec =
                    json!({"driver": "gpu.example.com", "pool": pool, "nodeName": other, "devices": devices});
                let slice = json!({"metadata": {"name": format!("of-{own}")}, "spec": spec});
                snapshot.set_object(Object::ResourceSlice(read(slice)));
            }
            Self::Share(label) => {
                let Some(label) = label else {
                    snapshot.remove_object(Kind::ResourceSlice, &"shared".into());
                    return;
                };
                let expressions = json!([{"key": "label", "operator": "In", "values": [label.to_string()]}]);
                let nodes = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
                let pool = json!({"name": "shared", "generation": 1, "resourceSliceCount": 1});
                let devices = json!([{"name": "gpu-0", "attributes": {"model": {"int": 1}}}]);
                let spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeSelector": nodes, "devices": devices});
                let slice = json!({"metadata": {"name": "shared"}, "spec": spec});
                snapshot.set_object(Object::ResourceSlice(read(slice)));
            }
            Self::Hold(node, at) => {
                let (pool, name) = (&names(NODES)[*node], format!("held-{node}-{at}"));
                if held.remove(&(*node, *at)) {
                    snapshot.remove_object(Kind::ResourceClaim, &format!("team/{name}").into());
                    return;
                }
                held.insert((*node, *at));
                let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": pool, "device": format!("gpu-{at}")});
                let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
                snapshot.set_object(Object::ResourceClaim(read(json!({
                    "metadata": {"namespace": "team", "name": name, "uid": name},
                    "spec": {"devices": {"requests": requests}}, "status": {"allocation": {"devices": {"results": [result]}}},
                }))));
            }
            Self::Label(node, label) => {
                let name: NodeName = names(NODES)[*node].as_str().into();
                let labels = [("label", label.to_string())].into();
                snapshot.set_node(NodeInfo { uid: name.clone(), name, labels, ..NodeInfo::default() });
            }
            Self::Toggle(node) => {
                let name: NodeName = names(NODES)[*node].as_str().into();
                if snapshot.world().node(&name).is_some() {
                    snapshot.remove_node(&name);
                } else {
                    snapshot.set_node(NodeInfo { uid: name.clone(), name, ..NodeInfo::default() });
                }
            }
        }
    }
}

/// What the claim `shared` may ask for: any device, one of a model, a share, or two devices of one model.
fn requests(kind: usize) -> Value {
    let model = json!([{"cel": {"expression": "device.attributes['gpu.example.com'].model == 1"}}]);
    let mut exactly = json!({"deviceClassName": "gpu"});
    match kind {
        0 => {}
        1 => exactly["selectors"] = model,
        2 => exactly["capacity"] = json!({"requests": {"memory": "2"}}),
        _ => exactly["count"] = json!(2),
    }
    json!({"requests": [{"name": "gpu", "exactly": exactly}], "constraints": if kind == 3 {
        json!([{"matchAttribute": "gpu.example.com/model"}])
    } else {
        json!([])
    }})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn each_node_is_found_to_be_what_it_is_by_itself(
        before in prop::collection::vec(change(), 10..80),
        turns in prop::collection::vec((0..4_usize, prop::collection::vec(change(), 0..30)), 1..8),
    ) {
        let all = names(NODES);
        let mut snapshot = cluster(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut fits, mut held) = (ClaimFits::default(), BTreeSet::new());
        for change in before {
            change.make(&mut snapshot, &mut held);
        }
        for (kind, changes) in turns {
            for change in changes {
                change.make(&mut snapshot, &mut held);
            }
            let metadata = json!({"namespace": "team", "name": "shared", "uid": "shared"});
            let claim = json!({"metadata": metadata, "spec": {"devices": requests(kind)}});
            snapshot.set_object(Object::ResourceClaim(read(claim)));
            let (demand, world) = (demand(), snapshot.world());
            let claims = PodClaims::read(&demand, world, Allowance::UNLIMITED).unwrap().unwrap();
            let asked = (0, Beside::Nothing, vec![AskedOf::Extended(kind.to_string().into())]);
            let found = fits.of((asked, &Arc::from("team")), (world, None), &mut Allowance::UNLIMITED.clone(), &claims);
            for node in world.nodes() {
                let alone = claims.judge(node, &mut Selected::default(), &mut |_| ControlFlow::Continue(()));
                let points = alone.as_ref().map(|alone| alone.points).unwrap_or_default();
                prop_assert_eq!(found.points(node), points);
                prop_assert_eq!(found.on(node), alone.map(|alone| alone.taken));
            }
        }
    }
}
