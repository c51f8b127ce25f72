//! Hints and looking on change nothing: with and without them the same is decided, and what an outlook says of a pod is what becomes of it. A scheduler
//! that was just started says the same.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use berth::{
    device::{Allocation, Answer, Assignment, Card, Dimension, InitPhase, PodRequest, Profile},
    scheduling::{
        Ask, BindOutcome, Claim, Computed, Demand, Effect, Event, Footprint, Holding, NodeChange, NodeInfo,
        NodeName, PodChange, PodInfo, PodKey, QuotaChange, Scheduler, Uid,
        model::pod_shape::CardShape,
        world::quota::{Bound, QuotaInfo, QuotaKey},
    },
};
use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    fixtures::{self, demand, offer},
    worlds::{cards, pod, profile},
};

const NODES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A pod is created; first its webhook hints at it, or not.
    Come(Box<PodRequest>),
    /// Somebody hints at a pod that never comes.
    Hint(Box<PodRequest>),
    Go(usize),
    Node(usize, Vec<Card>),
    NodeGone(usize),
    /// The namespace may hold so much memory from now on.
    Quota(u64),
    QuotaGone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let request = || pod().prop_map(Box::new);
    let step = prop_oneof![
        6 => request().prop_map(Step::Come),
        4 => request().prop_map(Step::Hint),
        3 => any::<usize>().prop_map(Step::Go),
        2 => (0..NODES, cards()).prop_map(|(node, cards)| Step::Node(node, cards)),
        1 => (0..NODES).prop_map(Step::NodeGone),
        1 => (0..100_000_u64).prop_map(Step::Quota),
        1 => Just(Step::QuotaGone),
    ];
    prop::collection::vec(step, 1..25)
}

fn node(at: usize, cards: Vec<Card>, profile: &Profile, version: u64) -> NodeInfo {
    let name = format!("node-{at}");
    let named = |card: Card| Card { id: format!("{}-{name}", card.id).into(), ..card };
    let offer = offer(profile.name.as_str(), cards.into_iter().map(named).collect());
    NodeInfo { resource_version: version.to_string(), ..fixtures::node_offering(&name, vec![offer]) }
}

fn ask(request: PodRequest, profile: Profile) -> Arc<Ask> {
    Arc::new(fixtures::ask_for(profile, request))
}

fn quota() -> QuotaKey {
    QuotaKey { namespace: "default".into(), name: "quota".into() }
}

fn key(at: usize) -> PodKey {
    fixtures::key(&format!("pod-{at}"))
}

/// The pod as it counts among those that may come, if it does.
fn seen(
    key: &PodKey,
    version: u64,
    (claim, cards): (Claim, Option<CardShape>),
    holding: Option<Holding>,
) -> Event {
    let pod = fixtures::pod(&key.name, claim);
    let footprint = Footprint { cards: cards.map(Arc::new), ..Footprint::clone(&pod.footprint) };
    let footprint = Arc::new(footprint);
    let version = version.to_string().into();
    Event::Pod(PodChange::Seen(Box::new(PodInfo { resource_version: version, holding, footprint, ..pod })))
}

/// Two schedulers that see the same, but one of them is given hints as well, and one that looks on. With what there is, as it was seen last.
struct Trio {
    plain: Scheduler,
    hinted: Scheduler,
    onlooker: Scheduler,
    version: u64,
    nodes: BTreeMap<NodeName, NodeInfo>,
    pods: BTreeMap<Uid, PodInfo>,
    quota: Option<QuotaInfo>,
}

impl Trio {
    fn new() -> Self {
        let settings = fixtures::settings();
        let (plain, hinted) = (Scheduler::new(settings.clone()), Scheduler::new(settings.clone()));
        let (nodes, pods, quota) = (BTreeMap::new(), BTreeMap::new(), None);
        Self { plain, hinted, onlooker: Scheduler::standing_by(settings), version: 1, nodes, pods, quota }
    }

    fn version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn observe(&mut self, event: &Event) {
        self.note(event);
        for scheduler in [&mut self.plain, &mut self.hinted, &mut self.onlooker] {
            scheduler.observe(event.clone(), Timestamp::UNIX_EPOCH);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Node(NodeChange::Listed(nodes)) => {
                self.nodes = nodes.iter().map(|node| (node.name.clone(), node.clone())).collect();
            }
            Event::Node(NodeChange::Seen(node)) => {
                self.nodes.insert(node.name.clone(), NodeInfo::clone(node));
            }
            Event::Node(NodeChange::Gone(node)) => drop(self.nodes.remove(node)),
            Event::Pod(PodChange::Seen(pod)) => {
                self.pods.insert(pod.key.uid.clone(), PodInfo::clone(pod));
            }
            Event::Pod(PodChange::Gone(pod)) => drop(self.pods.remove(pod)),
            Event::Quota(QuotaChange::Seen(quota)) => self.quota = Some(quota.clone()),
            Event::Quota(QuotaChange::Gone(_)) => self.quota = None,
            _ => {}
        }
    }

    /// A scheduler that was started just now, and finds what there is.
    fn restarted(&self) -> Scheduler {
        let mut scheduler = Scheduler::standing_by(fixtures::settings());
        // In another order than it came.
        let events = fixtures::lists(self.nodes.values().rev().cloned().collect());
        let pods = self.pods.values().rev().cloned().map(|pod| Event::Pod(PodChange::Seen(Box::new(pod))));
        let quota = self.quota.clone().map(|quota| Event::Quota(QuotaChange::Seen(quota)));
        for event in events.chain(quota).chain(pods) {
            scheduler.observe(event, Timestamp::UNIX_EPOCH);
        }
        scheduler
    }

    /// Whether a pod that waits fits once another one has these cards, as one of several shares may. Both are in the line of the node then, and its turn
    /// may give the other one other cards than it was told.
    fn makes_another_fit(&self, pod: &PodKey, (node, given): &(NodeName, Vec<Allocation>)) -> bool {
        let mut scheduler = self.restarted();
        let placed =
            seen(pod, self.version + 1, (Claim::None, None), Some(fixtures::holding(node, given.clone())));
        scheduler.observe(placed, Timestamp::UNIX_EPOCH);
        let others = self.pods.values().filter(|other| other.key != *pod);
        others.filter_map(PodInfo::demand).any(|demand| told(&scheduler, &demand).is_some())
    }

    /// Lets both decide and has the API server and the agents answer at once, until nothing is left to do.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        loop {
            let effects = self.plain.settle(Timestamp::UNIX_EPOCH);
            let of_hinted = self.hinted.settle(Timestamp::UNIX_EPOCH);
            prop_assert_eq!(&effects, &of_hinted);
            for (scheduler, effects) in [(&mut self.plain, &effects), (&mut self.hinted, &of_hinted)] {
                for effect in effects {
                    if let Effect::RenewMix(renewal) = effect {
                        let renewed = Computed::Mix(renewal.clone().skip());
                        scheduler.observe(Event::Computed(renewed), Timestamp::UNIX_EPOCH);
                    }
                }
            }
            prop_assert_eq!(self.onlooker.settle(Timestamp::UNIX_EPOCH), vec![]);
            prop_assert_eq!(
                self.plain.view().standing(Timestamp::UNIX_EPOCH),
                self.hinted.view().standing(Timestamp::UNIX_EPOCH)
            );
            let binds: Vec<_> = effects.into_iter().filter_map(bind).collect();
            if binds.is_empty() {
                return Ok(());
            }
            for (pod, node, mut allocations) in binds {
                let answer =
                    Event::BindAnswered { pod: pod.clone(), node: node.clone(), outcome: BindOutcome::Bound };
                self.plain.observe(answer.clone(), Timestamp::UNIX_EPOCH);
                self.hinted.observe(answer, Timestamp::UNIX_EPOCH);
                for one in &mut allocations {
                    one.answer = Answer::Succeeded;
                }
                let holding = Holding { init: InitPhase::Ahead, ..fixtures::holding(&node, allocations) };
                let version = self.version();
                let cards = self.pods[&pod.uid].footprint.cards.as_deref().cloned();
                self.observe(&seen(&pod, version, (Claim::None, cards), Some(holding)));
            }
        }
    }
}

fn bind(effect: Effect) -> Option<(PodKey, Arc<str>, Vec<Allocation>)> {
    match effect {
        Effect::Bind { pod, node, allocations, .. } => Some((pod, node, allocations)),
        _ => None,
    }
}

type Placed = Option<(NodeName, Vec<Allocation>)>;

/// Where a pod would go, and with which cards.
fn told(scheduler: &Scheduler, demand: &Demand) -> Placed {
    let told = scheduler.view().outlook().place(demand, || ControlFlow::Continue(())).unwrap().ok()?;
    Some((told.node.info.name.clone(), told.allocations.iter().map(|(one, _)| one.clone()).collect()))
}

fn assignments((node, given): &(NodeName, Vec<Allocation>)) -> (&NodeName, Vec<&Arc<Assignment>>) {
    (node, given.iter().map(|one| &one.assignment).collect())
}

proptest! {
    #[test]
    fn hints_decide_nothing_and_an_outlook_says_what_will_be(
        first in prop::collection::vec(cards(), NODES),
        profile in profile(),
        steps in steps(),
    ) {
        let mut trio = Trio::new();
        let nodes = first.into_iter().enumerate().map(|(at, cards)| node(at, cards, &profile, 1)).collect();
        for event in fixtures::lists(nodes) {
            trio.observe(&event);
        }
        for (at, step) in steps.into_iter().enumerate() {
            let version = trio.version();
            match step {
                Step::Hint(request) => {
                    trio.hinted.observe(Event::Hinted(ask(*request, profile.clone())), Timestamp::UNIX_EPOCH);
                }
                Step::Come(request) => {
                    let ask = ask(*request, profile.clone());
                    trio.hinted.observe(Event::Hinted(ask.clone()), Timestamp::UNIX_EPOCH);
                    let demand = demand(&key(at).uid, Ask::clone(&ask));
                    let told_before = told(&trio.onlooker, &demand);
                    prop_assert_eq!(&told_before, &told(&trio.restarted(), &demand));
                    let cards = CardShape::of(&ask.devices);
                    trio.observe(&seen(&key(at), version, (Claim::Place(ask), cards), None));
                    trio.settle()?;
                    let held = trio.plain.snapshot().ledger().get(&key(at).uid);
                    let held = held.map(|charge| (charge.node.clone(), charge.allocations.to_vec()));
                    if let (Some(held), Some(told)) = (&held, &told_before)
                        && assignments(held) != assignments(told)
                    {
                        prop_assert!(trio.makes_another_fit(&key(at), told), "{held:?} instead of {told:?}");
                        prop_assert_eq!(&held.0, &told.0);
                    } else {
                        prop_assert_eq!(held.is_some(), told_before.is_some());
                    }
                }
                Step::Go(pod) => trio.observe(&Event::Pod(PodChange::Gone(key(pod % (at + 1)).uid))),
                Step::Node(at, cards) => {
                    trio.observe(&Event::Node(NodeChange::Seen(Box::new(node(at, cards, &profile, version)))));
                }
                Step::Quota(memory) => {
                    let bound = Bound {
                        profile: profile.name.clone(),
                        dimension: Dimension::Memory,
                        key: "memory".into(),
                        hard: memory,
                        unit: 1,
                    };
                    trio.observe(&Event::Quota(QuotaChange::Seen(QuotaInfo { key: quota(), bounds: vec![bound] })));
                }
                Step::QuotaGone => trio.observe(&Event::Quota(QuotaChange::Gone(quota()))),
                Step::NodeGone(at) => trio.observe(&Event::Node(NodeChange::Gone(format!("node-{at}").as_str().into()))),
            }
            trio.settle()?;
        }
    }
}
