//! Whatever plugins that look at more than one node demand: the node that is found from the highest score down is the one that is found by testing all, and
//! what plugins know of all nodes at once is what they find of each.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    device::NodePolicy,
    object::{Pod, node::HOSTNAME},
    scheduling::{
        Demand, NodeInfo, ResourceAmounts, Snapshot,
        decide::{Filters, class::Classes, evaluation::Evaluation, fit_error::FitError, verdicts::Verdicts},
        fixtures,
        model::{footprint::Footprint, name::NodeName},
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::{ledger::Charge, object::Object},
    },
};

const ZONE: &str = "topology.kubernetes.io/zone";

/// How many devices the driver of each node publishes.
const DEVICES: usize = 2;

/// What a pod demands beside a share of a card.
#[derive(Clone, Copy, Debug)]
enum Demanded {
    NearOwn,
    AwayFromOwn(&'static str),
    AwayFromOthers,
    Spread(&'static str, u32),
    SpreadTwice,
    Device,
    DeviceAndSpread,
    Nothing,
}

/// One of the pods that come one after the other.
#[derive(Clone, Copy, Debug)]
struct Coming {
    app: usize,
    demanded: Demanded,
    memory: u64,
    by_room: bool,
}

fn coming() -> impl Strategy<Value = Coming> {
    let demanded = prop_oneof![
        Just(Demanded::NearOwn),
        Just(Demanded::AwayFromOwn(ZONE)),
        Just(Demanded::AwayFromOwn(HOSTNAME)),
        Just(Demanded::AwayFromOthers),
        (prop_oneof![Just(ZONE), Just(HOSTNAME)], 1..3_u32)
            .prop_map(|(key, skew)| Demanded::Spread(key, skew)),
        Just(Demanded::SpreadTwice),
        Just(Demanded::Device),
        Just(Demanded::DeviceAndSpread),
        Just(Demanded::Nothing),
    ];
    (0..3_usize, demanded, prop_oneof![Just(1_000_u64), Just(3_000), Just(7_000)], any::<bool>())
        .prop_map(|(app, demanded, memory, by_room)| Coming { app, demanded, memory, by_room })
}

fn read<T: serde::de::DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).unwrap()
}

fn app(number: usize) -> Value {
    json!({"matchLabels": {"app": format!("app-{number}")}})
}

fn spread(key: &str, most: u32, own: usize) -> Value {
    json!({"topologyKey": key, "maxSkew": most, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": app(own)})
}

impl Coming {
    fn has_claim(self) -> bool {
        matches!(self.demanded, Demanded::Device | Demanded::DeviceAndSpread)
    }

    fn spec(self) -> Value {
        let term = |key: &str, of: usize| json!([{"topologyKey": key, "labelSelector": app(of)}]);
        let near = |term: Value| json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
        let away = |term: Value| json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
        let spread_by = |constraints: Value| json!({"topologySpreadConstraints": constraints});
        match self.demanded {
            Demanded::NearOwn => near(term(ZONE, self.app)),
            Demanded::AwayFromOwn(key) => away(term(key, self.app)),
            Demanded::AwayFromOthers => away(term(HOSTNAME, (self.app + 1) % 3)),
            Demanded::Spread(key, most) => spread_by(json!([spread(key, most, self.app)])),
            Demanded::SpreadTwice => {
                spread_by(json!([spread(ZONE, 1, self.app), spread(HOSTNAME, 2, self.app)]))
            }
            Demanded::DeviceAndSpread => spread_by(json!([spread(ZONE, 1, self.app)])),
            Demanded::Device | Demanded::Nothing => json!({}),
        }
    }

    /// What the pod of this number asks for, whose claim is one of its own.
    fn demand(self, number: usize) -> Demand {
        let mut spec = self.spec();
        let mut status = json!({});
        if self.has_claim() {
            spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "gpu"}]);
            status = json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": format!("claim-{number}")}]});
        }
        let metadata = json!({"namespace": "default", "labels": {"app": format!("app-{}", self.app)}});
        let pod: Pod = read(json!({"metadata": metadata, "spec": spec, "status": status}));
        let mut ask = fixtures::ask(1, self.memory, 0);
        if self.by_room {
            ask.policy = NodePolicy::LeastWaste;
            for device in &mut ask.devices {
                device.request.node_policy = NodePolicy::LeastWaste;
            }
        }
        let footprint = Arc::new(Footprint::of_pod(&pod, ResourceAmounts::default()));
        Demand { footprint, ..fixtures::demand(&format!("pod-{number}"), ask) }
    }
}

/// So many nodes, in three zones or none, of which each third has no devices.
fn cluster(nodes: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.set_object(Object::DeviceClass(read(json!({"metadata": {"name": "gpu"}}))));
    for node in 0..nodes {
        let name = format!("node-{node:02}");
        let mut info = NodeInfo { ..fixtures::node(&name, 1, 8_000) };
        let zone = (node % 4 < 3).then(|| (ZONE, format!("zone-{}", node % 4)));
        info.labels = [(HOSTNAME, name.clone())].into_iter().chain(zone).collect();
        snapshot.set_node(info);
        if !node.is_multiple_of(3) {
            let devices: Vec<Value> = (0..DEVICES).map(|at| json!({"name": format!("gpu-{at}")})).collect();
            let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
            let spec =
                json!({"driver": "gpu.example.com", "pool": pool, "nodeName": name, "devices": devices});
            snapshot
                .set_object(Object::ResourceSlice(read(json!({"metadata": {"name": name}, "spec": spec}))));
        }
    }
    snapshot
}

fn add_claim(snapshot: &mut Snapshot, number: usize) {
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
    let metadata =
        json!({"namespace": "default", "name": format!("claim-{number}"), "uid": format!("claim-{number}")});
    let claim = json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}});
    snapshot.set_object(Object::ResourceClaim(read(claim)));
}

/// That a node which may not pass by what plugins know of all nodes at once fails by itself; how many these are.
fn judge_narrowing(demand: &Demand, snapshot: &Snapshot) -> Result<usize, TestCaseError> {
    let world = snapshot.world();
    let filters = Filters::prepare(demand, world, &mut PodCounts::default());
    let Some(may_pass) = filters.may_pass(world.nodes.slots().len()) else { return Ok(0) };
    let cycle = filters.cycle.as_ref().unwrap();
    for state in world.nodes.by_slot() {
        prop_assert_eq!(may_pass[state.slot], cycle.test(state).is_ok(), "{}", &state.info.name);
    }
    Ok(may_pass.iter().filter(|may_pass| !**may_pass).count())
}

/// Where the pod goes, by a test of every node.
fn found_by_testing_all(demand: &Demand, snapshot: &Snapshot) -> Result<NodeName, FitError> {
    let (world, weights, mut counts) = (snapshot.world(), ScoreWeights::default(), PodCounts::default());
    let filters = Filters::prepare(demand, world, &mut counts);
    if let Some(error) = filters.rejected() {
        return Err(error);
    }
    let verdicts = Verdicts::new(&demand.ask, world, weights);
    let evaluation = Evaluation::of(filters, &verdicts, &mut counts, weights);
    let mut judged = evaluation.judge_all();
    let best = evaluation.best(&mut judged, |_| 0).map(|node| node.info.name.clone());
    best.ok_or_else(|| evaluation.fit_error(&judged.refusals))
}

/// Decides and charges one pod after the other, each as it is found by testing all nodes; how many nodes were known to fail without a test.
fn play(nodes: usize, pods: &[Coming]) -> Result<usize, TestCaseError> {
    let (mut snapshot, mut classes) = (cluster(nodes), Classes::default());
    let mut narrowed = 0;
    for (number, coming) in pods.iter().enumerate() {
        if coming.has_claim() {
            add_claim(&mut snapshot, number);
        }
        let demand = coming.demand(number);
        narrowed += judge_narrowing(&demand, &snapshot)?;
        let decided = classes.decide(&demand, &snapshot, |_| 0);
        match (decided, found_by_testing_all(&demand, &snapshot)) {
            (Ok(decided), Ok(found)) => {
                prop_assert_eq!(&decided.node, &found, "{:?}", coming);
                let charge = fixtures::charge(&decided.node, decided.allocations);
                let charge = Charge { footprint: demand.footprint, steps: decided.steps.into(), ..charge };
                snapshot.charge(demand.uid, charge);
            }
            (Err(decided), Err(found)) => {
                prop_assert_eq!(decided.to_string(), found.to_string(), "{:?}", coming);
            }
            (decided, found) => prop_assert!(false, "{coming:?}: {decided:?}, {found:?}"),
        }
    }
    Ok(narrowed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_best_is_found_that_is_found_by_testing_all(
        nodes in 1..40_usize,
        pods in prop::collection::vec(coming(), 1..24),
    ) {
        play(nodes, &pods)?;
    }
}

#[test]
fn nodes_without_devices_left_are_known_to_fail_at_once() {
    let pod = Coming { app: 0, demanded: Demanded::Device, memory: 1_000, by_room: false };
    // Of three nodes one has no driver; each pod takes one of two devices of the others.
    assert_eq!(play(3, &[pod; 6]).unwrap(), 1 + 1 + 2 + 2 + 3 + 3);
}
