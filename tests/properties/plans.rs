//! Whatever is tried in a plan: undone, the cluster is as it was, and committed, it is as if nothing had been tried.

use std::sync::Arc;

use berth::{
    device::{Answer, CardUsage, Dimension, MiB},
    dra::HeldDevices,
    object::resource_claim::{AllocatedDevice, AllocationResult, DeviceAllocationResult},
    scheduling::{
        Footprint, NodeInfo, QuotaInfo, QuotaKey, Snapshot, Stage, Uid,
        model::{
            claim_use::{ClaimConsumer, ClaimSource, ResourceClaimUse},
            prebind_step::{ClaimChoice, PrebindStep, VolumeChoice},
        },
        plan::{Plan, Savepoint},
        world::{
            ledger::{Charge, Commitment},
            node_state::NodeState,
            quota::Bound,
        },
    },
};
use proptest::prelude::*;

use super::fixtures::{self, PROFILE, allocation, share};

/// Something that is tried.
#[derive(Clone, Debug)]
enum Step {
    /// A pod is placed: its number, that of its node, and how much memory it takes.
    Place(u8, u8, u64),
    Evict(u8),
    Mark,
    /// Back to a mark that was set.
    Undo(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..6_u8, 0..4_u8, 1..9_u64).prop_map(|(pod, node, memory)| Step::Place(pod, node, memory)),
        3 => (0..6_u8).prop_map(Step::Evict),
        2 => Just(Step::Mark),
        2 => any::<usize>().prop_map(Step::Undo),
    ];
    prop::collection::vec(step, 1..24)
}

fn uid(pod: u8) -> Uid {
    format!("pod-{pod}").into()
}

/// What a pod takes of the one card of a node; every other pod has chosen a volume, every third a device for its claim, and each belongs to one
/// of two namespaces.
fn charge(pod: u8, node: u8, memory: u64) -> Charge {
    let namespace: Arc<str> = format!("team-{}", pod % 2).into();
    let held = allocation(PROFILE, share("GPU", memory, 10), Answer::Awaited);
    let volume = VolumeChoice::Bind { claim: "data".into(), volume: format!("volume-{pod}").into() };
    let volume = pod.is_multiple_of(2).then_some(PrebindStep::Volume(volume));
    // Pods 0 and 3 are of different namespaces, so that each has a claim of its own.
    let used =
        ResourceClaimUse { entry: "gpu".into(), claim: Some("claim".into()), source: ClaimSource::Named };
    let claims = pod.is_multiple_of(3).then_some(used).into_iter().collect();
    let device = pod.is_multiple_of(3).then(|| device(pod, node));
    Charge {
        pod: fixtures::key(&format!("{namespace}/p")),
        footprint: Arc::new(Footprint { namespace, resource_claims: claims, ..Footprint::default() }),
        steps: volume.into_iter().chain(device).collect(),
        commitment: Commitment::Assumed,
        stage: Stage::Pending,
        ..fixtures::charge(&format!("node-{node}"), vec![held])
    }
}

/// A device of the node for the claim of the pod.
fn device(pod: u8, node: u8) -> PrebindStep {
    let device = AllocatedDevice {
        driver: "gpu.example.com".into(),
        pool: format!("node-{node}"),
        device: format!("gpu-{pod}"),
        ..AllocatedDevice::default()
    };
    let devices = DeviceAllocationResult { results: vec![device], ..DeviceAllocationResult::default() };
    let allocation = AllocationResult { devices, node_selector: None };
    let allocation = Some(Arc::new(allocation));
    PrebindStep::Devices(ClaimChoice {
        claim: "claim".into(),
        uid: "uid".into(),
        allocation,
        consumer: ClaimConsumer::Pod,
    })
}

/// Three nodes (a fourth is not known), and a quota in one of the namespaces.
fn cluster(held: &[(u8, u8, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in 0..3 {
        snapshot.set_node(NodeInfo { name: format!("node-{node}").into(), ..NodeInfo::default() });
    }
    let bound = Bound {
        profile: "test".into(),
        dimension: Dimension::Memory,
        key: "memory".into(),
        hard: 100,
        unit: 1,
    };
    let key = QuotaKey { namespace: "team-0".into(), name: "quota".into() };
    snapshot.set_quota(QuotaInfo { key, bounds: vec![bound] });
    for &(pod, node, memory) in held {
        snapshot.charge(uid(pod), charge(pod, node, memory));
    }
    snapshot
}

/// All that anything is decided by; node states by identity.
#[derive(Debug)]
struct Seen {
    states: Vec<Arc<NodeState>>,
    charges: Vec<Option<Charge>>,
    left: Option<MiB>,
    reserved: String,
    claims: HeldDevices,
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            states: snapshot.nodes().cloned().collect(),
            charges: (0..6).map(|pod| snapshot.ledger().get(&uid(pod)).cloned()).collect(),
            left: snapshot.quotas().left("team-0", &"test".into()).memory,
            reserved: format!("{:?}", snapshot.reservations()),
            claims: snapshot.resource_claims().held().clone(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let states = self.states.iter().zip(&other.states).all(|(own, other)| Arc::ptr_eq(own, other));
        states && self.is_alike(other)
    }

    /// The same but for when it became so.
    fn is_alike(&self, other: &Self) -> bool {
        let used = |seen: &Self| -> Vec<CardUsage> {
            seen.states.iter().map(|state| state.usage.card(&"GPU".into())).collect()
        };
        (used(self), &self.charges, self.left, &self.reserved, &self.claims)
            == (used(other), &other.charges, other.left, &other.reserved, &other.claims)
    }
}

fn run(plan: &mut Plan<'_>, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut marks: Vec<(Savepoint, Seen)> = vec![(plan.mark(), Seen::of(plan))];
    for step in steps {
        match step {
            Step::Place(pod, node, memory) => plan.place(&uid(*pod), charge(*pod, *node, *memory)),
            Step::Evict(pod) => drop(plan.evict(&uid(*pod))),
            Step::Mark => marks.push((plan.mark(), Seen::of(plan))),
            Step::Undo(at) => {
                marks.truncate(at % marks.len() + 1);
                let (mark, before) = &marks[marks.len() - 1];
                plan.undo(*mark);
                prop_assert!(before.is_same(&Seen::of(plan)), "{before:#?} became {:#?}", Seen::of(plan));
            }
        }
    }
    Ok(())
}

/// What is left of the steps once those that were undone are taken out.
fn effective(steps: &[Step]) -> Vec<Step> {
    let (mut kept, mut marks) = (Vec::new(), vec![0]);
    for step in steps {
        match step {
            Step::Mark => marks.push(kept.len()),
            Step::Undo(at) => {
                marks.truncate(at % marks.len() + 1);
                kept.truncate(marks[marks.len() - 1]);
            }
            Step::Place(..) | Step::Evict(_) => kept.push(step.clone()),
        }
    }
    kept
}

proptest! {
    #[test]
    fn a_plan_that_is_undone_leaves_no_trace(
        held in prop::collection::vec((0..6_u8, 0..4_u8, 1..9_u64), 0..6),
        steps in steps(),
    ) {
        let mut snapshot = cluster(&held);
        let before = Seen::of(&snapshot);
        run(&mut Plan::new(&mut snapshot), &steps)?;
        prop_assert!(before.is_same(&Seen::of(&snapshot)));
    }

    #[test]
    fn a_plan_that_is_committed_is_what_was_not_undone(
        held in prop::collection::vec((0..6_u8, 0..4_u8, 1..9_u64), 0..6),
        steps in steps(),
    ) {
        let (mut planned, mut direct) = (cluster(&held), cluster(&held));
        let mut plan = Plan::new(&mut planned);
        run(&mut plan, &steps)?;
        plan.commit();
        for step in effective(&steps) {
            match step {
                Step::Place(pod, node, memory) => direct.charge(uid(pod), charge(pod, node, memory)),
                Step::Evict(pod) => drop(direct.release(&uid(pod))),
                Step::Mark | Step::Undo(_) => {}
            }
        }
        prop_assert!(Seen::of(&planned).is_alike(&Seen::of(&direct)));
    }
}
