//! Whatever nodes register and drivers publish of the same cards, and whatever pods ask for: never is more in use of a card than there is, over
//! shares of pods and claims of devices; what is remembered of nodes is what would be found anew; and what was tried leaves no trace.
//!
//! What is in use is summed here from charges and allocations; the accounts of the scheduler are not asked.

use std::{collections::BTreeMap, sync::Arc};

use berth::scheduling::plan::Plan;
use berth::{
    device::{Answer, Card, NodePolicy},
    object::{DeviceClass, ResourceClaim, ResourceSlice},
    scheduling::{
        Ask, Constraints, Demand, Footprint, NodeInfo, ResourceAmounts, Snapshot, Stage, Uid,
        decide::{Decision, class::Classes},
        model::{
            claim_use::{ClaimSource, ResourceClaimUse},
            prebind_step::PrebindStep,
        },
        plugin::score::weights::ScoreWeights,
        world::{
            ledger::{Charge, Commitment},
            node_state::NodeState,
            object::Object,
        },
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixtures::{self, PROFILE, ask};

const SLOTS: u32 = 3;
const MEMORY: u64 = 10;
const PODS: usize = 10;

/// Whether a plugin registers the card, whether a driver publishes it as a whole, and whether another does so in shares.
type Made = (bool, bool, bool);

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Shares of so many cards with so much memory.
    Shares(u32, u64),
    /// A claim of a whole device.
    Whole,
    /// A claim of a share with so much memory and compute.
    Part(u64, u32),
}

#[derive(Clone, Debug)]
enum Step {
    /// The pod is placed where it fits.
    Place(usize),
    /// It goes. What its claim has by its status stays.
    Release(usize),
    /// What was chosen for its claim is written.
    Write(usize),
    /// Its claim is freed.
    Free(usize),
    /// The slices of a node are gone, or there again.
    Republish(usize),
    /// Pods are placed, or go, in a plan that is undone.
    Try(Vec<(usize, bool)>),
}

fn nodes() -> impl Strategy<Value = Vec<Vec<Made>>> {
    let card = (prop::bool::weighted(0.8), prop::bool::weighted(0.5), prop::bool::weighted(0.6));
    prop::collection::vec(prop::collection::vec(card, 1..=2), 1..=2)
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        4 => (1..=2_u32, 1..=MEMORY).prop_map(|(cards, memory)| Asked::Shares(cards, memory)),
        2 => Just(Asked::Whole),
        4 => (1..=MEMORY, 0..=100_u32).prop_map(|(memory, cores)| Asked::Part(memory, cores)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..PODS).prop_map(Step::Place),
        3 => (0..PODS).prop_map(Step::Release),
        3 => (0..PODS).prop_map(Step::Write),
        2 => (0..PODS).prop_map(Step::Free),
        1 => (0..2_usize).prop_map(Step::Republish),
        2 => prop::collection::vec((0..PODS, prop::bool::weighted(0.7)), 1..5).prop_map(Step::Try),
    ];
    prop::collection::vec(step, 1..30)
}

fn id(node: usize, card: usize) -> String {
    format!("GPU-{node}-{card}")
}

fn uid(pod: usize) -> Uid {
    format!("pod-{pod}").into()
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn info(node: usize, cards: &[Made]) -> NodeInfo {
    let of = |at: usize| Card {
        slots: SLOTS,
        ..fixtures::card(&id(node, at), u32::try_from(at).unwrap(), MEMORY)
    };
    let registered = (0..cards.len()).filter(|at| cards[*at].0);
    let offer = fixtures::offer(PROFILE, registered.map(of).collect());
    fixtures::node_offering(&format!("node-{node}"), vec![offer])
}

fn slices(node: usize, cards: &[Made]) -> [ResourceSlice; 2] {
    let slice = |driver: &str, published: &dyn Fn(&Made) -> bool, device: Value| {
        let devices = (0..cards.len()).filter(|at| published(&cards[*at])).map(|at| {
            let mut device = device.clone();
            device["name"] = json!(format!("gpu-{at}"));
            device["attributes"] = json!({"uuid": {"string": id(node, at)}});
            device
        });
        let pool = json!({"name": format!("node-{node}"), "generation": 1, "resourceSliceCount": 1});
        parsed(json!({
            "metadata": {"name": format!("node-{node}-{driver}")},
            "spec": {"driver": driver, "nodeName": format!("node-{node}"), "pool": pool,
                "devices": devices.collect::<Vec<_>>()},
        }))
    };
    let capacity = json!({"memory": {"value": format!("{MEMORY}Mi")}, "cores": {"value": "100"}});
    [
        slice("whole", &|made| made.1, json!({})),
        slice("parts", &|made| made.2, json!({"allowMultipleAllocations": true, "capacity": capacity})),
    ]
}

fn claim(pod: usize, asked: Asked, allocation: &Value) -> Option<ResourceClaim> {
    let exactly = match asked {
        Asked::Shares(..) => return None,
        Asked::Whole => json!({"deviceClassName": "whole"}),
        Asked::Part(memory, cores) => json!({"deviceClassName": "parts",
            "capacity": {"requests": {"memory": format!("{memory}Mi"), "cores": cores.to_string()}}}),
    };
    Some(parsed(json!({
        "metadata": {"name": format!("claim-{pod}"), "namespace": "default", "uid": format!("claim-{pod}")},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {"allocation": allocation},
    })))
}

struct World {
    nodes: Vec<Vec<Made>>,
    asked: Vec<Asked>,
    snapshot: Snapshot,
    /// Lives as long as the world, and remembers what it found.
    classes: Classes,
    published: [bool; 2],
}

impl World {
    fn new(nodes: Vec<Vec<Made>>, asked: Vec<Asked>) -> Self {
        let mut snapshot = Snapshot::default();
        for name in ["whole", "parts"] {
            let expression = format!("device.driver == '{name}'");
            let class: DeviceClass = parsed(json!({"metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": expression}}]}}));
            snapshot.set_object(Object::DeviceClass(Arc::new(class)));
        }
        for (node, cards) in nodes.iter().enumerate() {
            snapshot.set_node(info(node, cards));
        }
        let classes = Classes::new(ScoreWeights::default());
        let mut world = Self { nodes, asked, snapshot, classes, published: [false; 2] };
        for node in 0..world.nodes.len() {
            world.republish(node);
        }
        for pod in 0..PODS {
            world.set_claim(pod, &Value::Null);
        }
        world
    }

    fn set_claim(&mut self, pod: usize, allocation: &Value) {
        if let Some(claim) = claim(pod, self.asked[pod], allocation) {
            self.snapshot.set_object(Object::ResourceClaim(Arc::new(claim)));
        }
    }

    fn republish(&mut self, node: usize) {
        let Some(cards) = self.nodes.get(node) else { return };
        self.published[node] = !self.published[node];
        for slice in slices(node, cards) {
            let object = Object::ResourceSlice(Arc::new(slice));
            if self.published[node] {
                self.snapshot.set_object(object);
            } else {
                self.snapshot.remove_object(object.kind(), &object.name());
            }
        }
    }

    fn demand(&self, pod: usize) -> Demand {
        let used = ResourceClaimUse {
            entry: "gpu".into(),
            claim: Some(format!("claim-{pod}").into()),
            source: ClaimSource::Named,
        };
        let (ask, resource_claims) = match self.asked[pod] {
            Asked::Shares(cards, memory) => (ask(cards, memory, 0), Vec::new()),
            Asked::Whole | Asked::Part(..) => {
                let (resources, constraints) = (ResourceAmounts::default(), Constraints::default());
                let policy = NodePolicy::Indifferent;
                (Ask { devices: Vec::new(), resources: Arc::new(resources), constraints, policy }, vec![used])
            }
        };
        let resource_claims = resource_claims.into();
        let footprint = Footprint { namespace: "default".into(), resource_claims, ..Footprint::default() };
        Demand { footprint: Arc::new(footprint), ..fixtures::demand(&uid(pod), ask) }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Place(pod) => self.place(*pod)?,
            Step::Release(pod) => drop(self.snapshot.release(&uid(*pod))),
            Step::Write(pod) => {
                let known = self.snapshot.resource_claims();
                let chosen = known.allocation("default", &format!("claim-{pod}")).cloned();
                if let Some(chosen) = chosen {
                    self.set_claim(*pod, &serde_json::to_value(chosen).unwrap());
                }
            }
            Step::Free(pod) => self.set_claim(*pod, &Value::Null),
            Step::Republish(node) => self.republish(*node),
            Step::Try(pods) => self.attempt(pods)?,
        }
        self.is_within_capacity(&self.snapshot)
    }

    fn place(&mut self, pod: usize) -> Result<(), TestCaseError> {
        if self.snapshot.ledger().get(&uid(pod)).is_some() {
            return Ok(());
        }
        let demand = self.demand(pod);
        if let Some(decision) = decided(&mut self.classes, &demand, &self.snapshot)? {
            self.snapshot.charge(uid(pod), charge(&demand, decision));
        }
        Ok(())
    }

    /// Tries it in a plan that is undone.
    fn attempt(&mut self, pods: &[(usize, bool)]) -> Result<(), TestCaseError> {
        let states = |snapshot: &Snapshot| snapshot.nodes().cloned().collect::<Vec<Arc<NodeState>>>();
        let held = |snapshot: &Snapshot| snapshot.resource_claims().held().clone();
        let before = (states(&self.snapshot), held(&self.snapshot));
        let demands: Vec<Demand> = (0..PODS).map(|pod| self.demand(pod)).collect();
        let mut snapshot = std::mem::take(&mut self.snapshot);
        let mut classes = std::mem::replace(&mut self.classes, Classes::new(ScoreWeights::default()));
        let mut plan = Plan::new(&mut snapshot);
        for &(pod, comes) in pods {
            if !comes {
                plan.evict(&uid(pod));
            } else if plan.ledger().get(&uid(pod)).is_none()
                && let Some(decision) = decided(&mut classes, &demands[pod], &plan)?
            {
                plan.place(&uid(pod), charge(&demands[pod], decision));
            }
            self.is_within_capacity(&plan)?;
        }
        drop(plan);
        (self.snapshot, self.classes) = (snapshot, classes);
        let after = (states(&self.snapshot), held(&self.snapshot));
        let same = before.0.iter().zip(&after.0).all(|(before, after)| Arc::ptr_eq(before, after));
        prop_assert!(same && before.1 == after.1, "{before:#?} became {after:#?}");
        Ok(())
    }

    /// No card has more in use than there is of it.
    fn is_within_capacity(&self, snapshot: &Snapshot) -> Result<(), TestCaseError> {
        let mut used: BTreeMap<String, Used> = BTreeMap::new();
        for share in snapshot.ledger().all().flat_map(|(_, charge)| charge.shares()) {
            let card = used.entry(share.card.to_string()).or_default();
            card.add(share.memory.get(), share.cores.get().into());
        }
        for pod in 0..PODS {
            let known = snapshot.resource_claims();
            let Some(allocation) = known.allocation("default", &format!("claim-{pod}")) else { continue };
            for result in &allocation.devices.results {
                let node = result.pool.strip_prefix("node-").unwrap();
                let card = result.device.strip_prefix("gpu-").unwrap();
                let card = used.entry(format!("GPU-{node}-{card}")).or_default();
                let amount = |name: &str| {
                    let amount = result.consumed_capacity[name].amount().unwrap();
                    u64::try_from(amount.units_rounded_up()).unwrap()
                };
                match &*result.driver {
                    "whole" => card.wholes += 1,
                    _ => card.add(amount("memory") >> 20, amount("cores")),
                }
            }
        }
        for (node, cards) in self.nodes.iter().enumerate() {
            for (at, (registered, ..)) in cards.iter().enumerate() {
                let used = used.remove(&id(node, at)).unwrap_or_default();
                prop_assert!(used.fits(*registered), "{} has {used:?}", id(node, at));
            }
        }
        Ok(())
    }
}

/// What is in use of one card.
#[derive(Debug, Default)]
struct Used {
    shares: u32,
    memory: u64,
    cores: u64,
    wholes: u32,
}

impl Used {
    fn add(&mut self, memory: u64, cores: u64) {
        self.shares += 1;
        self.memory += memory;
        self.cores += cores;
    }

    /// A card that a plugin registers has slots.
    fn fits(&self, registered: bool) -> bool {
        let slots = !registered || self.shares <= SLOTS;
        let alone = self.wholes == 0 || (self.wholes, self.shares) == (1, 0);
        slots && alone && self.memory <= MEMORY && self.cores <= 100
    }
}

/// Where the pod goes, which is where it would go if nothing were remembered.
fn decided(
    classes: &mut Classes,
    demand: &Demand,
    snapshot: &Snapshot,
) -> Result<Option<Decision>, TestCaseError> {
    let decision = classes.decide(demand, snapshot, |_| 0).ok();
    let anew = Classes::new(ScoreWeights::default()).decide(demand, snapshot, |_| 0).ok();
    let place = |decision: &Option<Decision>| {
        decision.as_ref().map(|one| (one.node.clone(), format!("{:?}{:?}", one.allocations, one.steps)))
    };
    prop_assert_eq!(place(&decision), place(&anew), "what is remembered is not so any more");
    Ok(decision)
}

fn charge(demand: &Demand, decision: Decision) -> Charge {
    let Decision { node, mut allocations, steps } = decision;
    for allocation in &mut allocations {
        allocation.answer = Answer::Succeeded;
    }
    let steps: Vec<PrebindStep> = steps;
    Charge {
        footprint: demand.footprint.clone(),
        steps: steps.into(),
        commitment: Commitment::Assumed,
        stage: Stage::Pending,
        ..fixtures::charge(&node, allocations)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_card_is_never_given_twice(
        nodes in nodes(),
        asked in prop::collection::vec(asked(), PODS),
        steps in steps(),
    ) {
        let mut world = World::new(nodes, asked);
        for step in &steps {
            world.step(step)?;
        }
    }
}
