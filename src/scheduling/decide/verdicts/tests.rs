//! Whatever nodes there are, and whatever happens to them: what a class finds that judges one of alike nodes is what is found of each node by itself.

mod deferred;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    device::{
        Allocation, Amounts, Answer, ByClass, Card, CardPolicy, DeviceCount, DevicePortion, DeviceType,
        Dimension, Health, IdFilter, Inventory, JointRequest, MiB, Mode, NamedDimension, NodeDevice,
        NodeDevices, NodePolicy, SlicePlacement, SliceProfile, Slicing, Unit,
    },
    object::{
        NodeSelector, NodeSelectorTerm, Pod, PreferredTerm, Quantity, Requirement, Taint, Toleration,
        container::Protocol, node::HOSTNAME,
    },
    scheduling::{
        NodeInfo, Outlook, ResourceAmounts, Snapshot,
        decide::{
            Filters, class::Classes, dry_runs::DryRuns, evaluation::Evaluation, outlook::Prospect,
            shortlist::LISTED, verdict::best,
        },
        fixtures,
        model::{
            feature::Feature,
            footprint::{Footprint, HostPort, PortsAndDisks},
            name::NodeName,
            node::Offer,
            node_affinity::NodeAffinityTerms,
            pod::{Constraints, Demand},
            pod_shape::{CardShape, PodShape},
        },
        plugin::pod_counts::PodCounts,
        world::{
            ledger::Charge,
            node_state::Agent,
            quota::{Bound, QuotaInfo, QuotaKey},
        },
    },
};

/// More than are judged one by one.
const NODES: usize = FEW_NODES + 8;

/// What a node has that may be what others have.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
struct NodeKind {
    cards: u32,
    memory: u64,
    /// Whether they are cut, unhealthy from the second on, have one number, or are on two NUMA nodes.
    shape: u32,
    /// Whether a second plugin offers the first card under another name.
    alias: bool,
    typed: bool,
    /// Whole ones, and beside them so many KiB of memory more than a few GiB.
    cpu: Option<(u64, u64)>,
    taint: Option<&'static str>,
    zone: usize,
    cordoned: bool,
    feature: bool,
}

#[derive(Clone, Debug)]
struct StandingPod {
    card: usize,
    memory: u64,
    cpu: u64,
    port: bool,
    mark: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Node(usize, usize),
    Gone(usize),
    Come(usize, StandingPod),
    Go(usize),
    Agent(usize, Agent),
    Expired(usize),
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
struct Asked {
    cards: u32,
    memory: u64,
    cpu: u64,
    policy: usize,
    affinity: usize,
    tolerates: bool,
    port: bool,
    feature: bool,
    by_uuid: bool,
    shuns: bool,
    typed: bool,
}

fn kind() -> impl Strategy<Value = NodeKind> {
    let of_cards =
        (0..4_u32, prop_oneof![Just(8_000_u64), Just(16_000)], 0..5_u32, any::<bool>(), any::<bool>());
    let taint =
        prop_oneof![3 => Just(None), 1 => Just(Some("NoSchedule")), 1 => Just(Some("PreferNoSchedule"))];
    let cpu = prop_oneof![Just(None), Just(Some((4, 0))), Just(Some((8, 0))), Just(Some((8, 7)))];
    let others = (cpu, taint, 0..3_usize, prop::bool::weighted(0.1), any::<bool>());
    (of_cards, others).prop_map(
        |((cards, memory, shape, alias, typed), (cpu, taint, zone, cordoned, feature))| NodeKind {
            cards,
            memory,
            shape,
            alias,
            typed,
            cpu,
            taint,
            zone,
            cordoned,
            feature,
        },
    )
}

fn step(kinds: usize) -> impl Strategy<Value = Step> {
    let pod = (0..4_usize, prop_oneof![Just(1_000_u64), Just(6_000)], 0..3_u64, any::<bool>(), any::<bool>())
        .prop_map(|(card, memory, cpu, port, mark)| StandingPod { card, memory, cpu, port, mark });
    let agent = prop_oneof![Just(Agent::Silent), Just(Agent::Answering)];
    prop_oneof![
        4 => (0..NODES, 0..kinds).prop_map(|(node, kind)| Step::Node(node, kind)),
        1 => (0..NODES).prop_map(Step::Gone),
        12 => (0..NODES, pod).prop_map(|(node, pod)| Step::Come(node, pod)),
        6 => any::<usize>().prop_map(Step::Go),
        1 => (0..NODES, agent).prop_map(|(node, agent)| Step::Agent(node, agent)),
        1 => (0..NODES).prop_map(Step::Expired),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let amounts = (0..4_u32, prop_oneof![Just(1_000_u64), Just(6_000), Just(12_000)], 0..6_u64);
    let wishes = (0..4_usize, 0..6_usize, any::<bool>(), any::<bool>(), any::<bool>());
    let rare = || prop::bool::weighted(0.15);
    (amounts, wishes, (rare(), any::<bool>(), rare())).prop_map(
        |((cards, memory, cpu), (policy, affinity, tolerates, port, feature), (by_uuid, shuns, typed))| {
            Asked { cards, memory, cpu, policy, affinity, tolerates, port, feature, by_uuid, shuns, typed }
        },
    )
}

fn name(at: usize) -> String {
    format!("node-{at:02}")
}

/// So many whole cpus, and KiB of memory.
fn amounts(cpu: u64, memory: u64) -> ResourceAmounts {
    let amounts = [("cpu", cpu.to_string()), ("memory", format!("{memory}Ki"))];
    let quantities: BTreeMap<String, Quantity> =
        amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount.as_str().into())).collect();
    ResourceAmounts::read(&quantities).unwrap()
}

fn percent() -> NamedDimension {
    NamedDimension::new("share", Unit::Percent)
}

fn of_percent(percents: u64) -> Amounts {
    Amounts::from_iter([(percent(), percents)])
}

/// A uuid whose place among those of the node is another on each node.
fn uuid(at: usize, card: u32) -> String {
    format!("GPU-{}-{at}-{card}", (at as u64 * 7 + u64::from(card) * 5) % 8)
}

impl NodeKind {
    fn card(&self, at: usize, index: u32) -> Card {
        let slices = Slicing::Placements(vec![SliceProfile {
            name: "1g.5gb".into(),
            memory: MiB::new(5_000),
            cores: crate::device::Cores::new(15),
            slices: 1,
            placements: vec![SlicePlacement { start: 0, size: 1 }, SlicePlacement { start: 1, size: 1 }],
        }]);
        let card = fixtures::card(&uuid(at, index), index, self.memory);
        match self.shape {
            1 => Card { mode: Mode::Mig, slicing: slices, ..card },
            2 if index > 0 => Card { health: Health::Unhealthy, ..card },
            3 => Card { index: 0, ..card },
            4 => Card { numa: index % 2, ..card },
            _ => card,
        }
    }

    fn info(&self, at: usize) -> NodeInfo {
        let mut offers = vec![fixtures::offer(
            fixtures::PROFILE,
            (0..self.cards).map(|index| self.card(at, index)).collect(),
        )];
        let mut aliases = Vec::new();
        if self.alias && self.cards > 0 {
            let other = format!("other-{at}");
            aliases.push((uuid(at, 0).into(), other.as_str().into()));
            offers.push(fixtures::offer("other", vec![fixtures::card(&other, 0, self.memory)]));
        }
        if self.typed {
            let device = |minor: u32| NodeDevice {
                id: format!("typed-{at}-{minor}"),
                health: Health::Healthy,
                labels: BTreeMap::new(),
                total: of_percent(100),
                topology: None,
                functions: Vec::new(),
            };
            let gpus = (0..2).map(|minor| (minor, device(minor))).collect();
            let devices =
                NodeDevices { devices: BTreeMap::from([(DeviceType::Gpu, gpus)]), ..NodeDevices::default() };
            offers.push(Offer {
                inventory: Some(Inventory::default().with_devices(devices).into()),
                ..fixtures::offer("typed", Vec::new())
            });
        }
        let mut info = fixtures::node_offering(&name(at), offers);
        info.devices.aliases = aliases;
        info.labels = [(HOSTNAME, name(at)), ("zone", self.zone.to_string())].into();
        let taint = |effect: &str| Taint { key: "keep".into(), value: String::new(), effect: effect.into() };
        info.taints = self.taint.map(taint).into_iter().collect();
        info.cordoned = self.cordoned;
        let room = |(cpu, memory)| amounts(cpu, (8 << 20) + memory);
        info.allocatable = self.cpu.map(room).unwrap_or_default();
        info.features =
            self.feature.then(|| Feature::RestartAllContainers.name().to_owned()).into_iter().collect();
        info
    }
}

impl StandingPod {
    fn charge(&self, at: usize) -> Charge {
        let share = fixtures::share(&uuid(at, u32::try_from(self.card).unwrap()), self.memory, 10);
        let mut held: Allocation = fixtures::allocation(fixtures::PROFILE, share, Answer::Succeeded);
        if self.mark {
            let mut assignment = (*held.assignment).clone();
            assignment.marks.extend(["loud".into()]);
            held.assignment = Arc::new(assignment);
        }
        let footprint = Footprint {
            exclusive: Arc::new(ports(self.port)),
            ..footprint(
                &json!({"labels": {"mark": self.mark.to_string()}}),
                &json!({}),
                amounts(self.cpu, self.cpu << 20),
            )
        };
        Charge { footprint: Arc::new(footprint), ..fixtures::charge(&name(at), vec![held]) }
    }
}

/// A pod of the namespace `default` with this metadata and this specification.
fn footprint(metadata: &Value, spec: &Value, resources: ResourceAmounts) -> Footprint {
    let mut pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    pod.metadata.namespace = "default".into();
    Footprint::of_pod(&pod, resources)
}

/// What a pod may demand of the pods on its node and on others.
fn beside_others(choice: usize) -> Value {
    let selector = json!({"matchLabels": {"mark": "true"}});
    let near = |kind: &str, key: &str| {
        let terms = json!([{"topologyKey": key, "labelSelector": selector}]);
        json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    };
    let preferred = |kind: &str, key: &str| {
        let term = json!({"topologyKey": key, "labelSelector": selector});
        let terms = json!([{"weight": 30, "podAffinityTerm": term}]);
        json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}})
    };
    match choice {
        1 => near("podAntiAffinity", HOSTNAME),
        2 => near("podAntiAffinity", "zone"),
        3 => near("podAffinity", "zone"),
        4 => json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]}),
        5 => preferred("podAffinity", "zone"),
        6 => preferred("podAntiAffinity", HOSTNAME),
        7 => {
            let spread = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector});
            json!({"topologySpreadConstraints": [spread(HOSTNAME), spread("zone")]})
        }
        _ => json!({}),
    }
}

fn ports(has_one: bool) -> PortsAndDisks {
    let port = HostPort { ip: "0.0.0.0".to_owned(), protocol: Protocol::Tcp, port: 80 };
    PortsAndDisks { ports: has_one.then_some(port).into_iter().collect(), disks: Vec::new() }
}

impl Asked {
    fn affinity(&self) -> NodeAffinityTerms {
        let is = |key: &str, value: &str| Requirement {
            key: key.to_owned(),
            operator: "In".to_owned(),
            values: vec![value.to_owned()],
        };
        let term = |expression: Option<Requirement>, field: Option<Requirement>| NodeSelectorTerm {
            match_expressions: expression.into_iter().collect(),
            match_fields: field.into_iter().collect(),
        };
        let one = |term| Some(NodeSelector { node_selector_terms: vec![term] });
        let mut terms = NodeAffinityTerms::default();
        match self.affinity {
            1 => terms.selector = BTreeMap::from([("zone".to_owned(), "1".to_owned())]),
            2 => terms.selector = BTreeMap::from([(HOSTNAME.to_owned(), name(3))]),
            3 => terms.required = one(term(None, Some(is("metadata.name", &name(5))))),
            4 => {
                terms.preferred =
                    vec![PreferredTerm { weight: 3, preference: term(Some(is("zone", "2")), None) }];
            }
            _ => {}
        }
        terms
    }

    fn ask(&self) -> Ask {
        let mut request =
            fixtures::request_of_one(fixtures::share_request(self.cards.max(1), self.memory, 5));
        let (node, card) = [
            (NodePolicy::Binpack, CardPolicy::Binpack),
            (NodePolicy::Spread, CardPolicy::Spread),
            (NodePolicy::LeastWaste, CardPolicy::LeastWaste),
            (NodePolicy::Binpack, CardPolicy::Numa),
        ][self.policy];
        (request.node_policy, request.choice) = (node, card.into());
        if self.by_uuid {
            request.selection.ids = IdFilter { one_of: vec![uuid(3, 0)], none_of: Vec::new() };
        }
        if self.shuns {
            request.shuns = ["loud".into()].into();
        }
        let mut ask = fixtures::ask_for(fixtures::profile(fixtures::PROFILE), request);
        // As of every pod with shares, although no class of devices serves them.
        let by_class = ByClass { resource: "vendor.example/gpu".into(), otherwise: "gpu".into() };
        ask.devices[0].by_class = self.tolerates.then_some(by_class);
        if self.typed {
            let count = DeviceCount::Exactly(self.cards.max(1));
            let gpus = fixtures::typed_request(of_percent(self.memory / 200), count, DevicePortion::Share);
            let joint = JointRequest {
                types: BTreeMap::from([(DeviceType::Gpu, gpus)]),
                weights: [(percent(), 1)].into(),
                ..JointRequest::default()
            };
            ask.devices[0].profile.name = "typed".into();
            ask.devices[0].joint = Some(Arc::new(joint));
        } else if self.cards == 0 {
            ask.devices.clear();
        }
        let toleration = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
        ask.policy = node;
        ask.resources = Arc::new(amounts(self.cpu, self.cpu << 18));
        ask.constraints = Constraints {
            affinity: self.affinity(),
            tolerations: self.tolerates.then_some(toleration).into_iter().collect(),
            exclusive: Arc::new(ports(self.port)),
            features: self.feature.then_some(Feature::RestartAllContainers).into_iter().collect(),
            ..Constraints::default()
        };
        ask
    }
}

/// A cluster with the pods that stand on its nodes.
#[derive(Default)]
struct Cluster {
    snapshot: Snapshot,
    pods: Vec<String>,
    came: usize,
}

impl Cluster {
    fn take(&mut self, step: &Step, kinds: &[NodeKind]) {
        match step {
            Step::Node(at, kind) => self.snapshot.set_node(kinds[*kind].info(*at)),
            Step::Gone(at) => self.snapshot.remove_node(&name(*at)),
            Step::Come(at, pod) => {
                let uid = format!("pod-{}", self.came);
                self.snapshot.charge(uid.as_str().into(), pod.charge(*at));
                self.pods.push(uid);
                self.came += 1;
            }
            Step::Go(pod) if !self.pods.is_empty() => {
                let uid = self.pods.swap_remove(pod % self.pods.len());
                self.snapshot.release(&uid.as_str().into());
            }
            Step::Go(_) => {}
            Step::Agent(at, agent) => drop(self.snapshot.set_agent(&name(*at).as_str().into(), *agent)),
            Step::Expired(at) => {
                let expired = BTreeSet::from([fixtures::PROFILE.into()]);
                drop(self.snapshot.set_expired(&name(*at).as_str().into(), expired));
            }
        }
    }
}

fn compare(found: &Verdicts, expected: &Verdicts, ask: &Ask, world: &World) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.slots(), expected.slots());
    prop_assert_eq!(&found.relative, &expected.relative);
    for (slot, state) in world.nodes.slots().iter().enumerate() {
        let Some(state) = state else { continue };
        let (one, other) = (&*found.of_nodes[slot], &*expected.of_nodes[slot]);
        prop_assert_eq!(found.generations[slot], expected.generations[slot]);
        prop_assert_eq!(found.scores[slot].to_bits(), expected.scores[slot].to_bits());
        match (one, other) {
            (NodeVerdict::Fits(one), NodeVerdict::Fits(other)) => {
                prop_assert_eq!((one.scores.raw, &one.taken), (other.scores.raw, &other.taken));
                let alike = match (&one.scores.vacancy, &other.scores.vacancy) {
                    (Some(one), Some(other)) => one.is_alike(other),
                    (one, other) => one.is_none() && other.is_none(),
                };
                prop_assert!(alike, "{:?}, {:?}", one.scores.vacancy, other.scores.vacancy);
            }
            (NodeVerdict::Fails(one), NodeVerdict::Fails(other)) => {
                prop_assert_eq!(&one.reasons, &other.reasons);
                prop_assert_eq!(one.closeness(ask, state), other.closeness(ask, state));
            }
            (one, other) => prop_assert!(false, "{}: {one:?}, {other:?}", state.info.name),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn alike_nodes_are_what_each_is_by_itself(
        kinds in prop::collection::vec(kind(), 3),
        first in prop::collection::vec(0..3_usize, NODES),
        steps in prop::collection::vec((prop::collection::vec(step(3), 0..6), asked()), 1..8),
        kept in asked(),
    ) {
        let mut cluster = Cluster::default();
        for (at, kind) in first.into_iter().enumerate() {
            cluster.take(&Step::Node(at, kind), &kinds);
        }
        let (mut index, weights) = (NodeIndex::default(), ScoreWeights::default());
        let (kept, mut known) = (kept.ask(), Verdicts::default());
        for (steps, asked) in steps {
            for step in &steps {
                cluster.take(step, &kinds);
            }
            let world = cluster.snapshot.world();
            let (ask, mut found) = (asked.ask(), Verdicts::default());
            found.update_alike(&ask, world, weights, &mut index, Judging::All);
            compare(&found, &Verdicts::new(&ask, world, weights), &ask, world)?;
            known.update_alike(&kept, world, weights, &mut index, Judging::All);
            compare(&known, &Verdicts::new(&kept, world, weights), &kept, world)?;
        }
    }
}

proptest! {
    #[test]
    fn no_node_scores_more_than_it_may_and_the_best_are_judged(
        kinds in prop::collection::vec(kind(), 3),
        first in prop::collection::vec(0..3_usize, NODES),
        rounds in prop::collection::vec(
            (prop::collection::vec(step(3), 0..30), prop::collection::vec(coming(), 0..4), asked()),
            1..8,
        ),
        kept in asked(),
        wanted in 1..6_usize,
    ) {
        let mut cluster = Cluster::default();
        for (at, kind) in first.into_iter().enumerate() {
            cluster.take(&Step::Node(at, kind), &kinds);
        }
        let (mut index, weights, judging) =
            (NodeIndex::default(), ScoreWeights::default(), Judging::Best(wanted));
        let (kept, mut known) = (Asked { policy: 2, ..kept }.ask(), Verdicts::default());
        for (steps, coming, asked) in rounds {
            for step in &steps {
                cluster.take(step, &kinds);
            }
            cluster.snapshot.packing_mut().weigh(coming);
            let world = cluster.snapshot.world();
            let (ask, mut found) = (Asked { policy: 2, ..asked }.ask(), Verdicts::default());
            found.update_alike(&ask, world, weights, &mut index, judging);
            known.update_alike(&kept, world, weights, &mut index, judging);
            for (found, ask) in [(&mut found, &ask), (&mut known, &kept)] {
                let expected = Verdicts::new(ask, world, weights);
                check_deferred(found, &expected, ask, (world, &mut index), wanted)?;
                if wanted == 1 {
                    found.update_alike(ask, world, weights, &mut index, Judging::All);
                    compare(found, &expected, ask, world)?;
                }
            }
        }
    }
}

/// That nodes that were judged are what they are by themselves, and that those that were put off are none of so many with the highest different scores, or stand
/// behind one that is as good.
fn check_deferred(
    found: &Verdicts,
    expected: &Verdicts,
    ask: &Ask,
    (world, index): (&World, &mut NodeIndex),
    wanted: usize,
) -> Result<(), TestCaseError> {
    let mut highest: Vec<f64> = expected.scores.iter().copied().filter(|score| *score > UNFIT).collect();
    highest.sort_unstable_by(|one, other| other.total_cmp(one));
    highest.dedup();
    let least = highest.get(wanted.saturating_sub(1)).copied().unwrap_or(UNFIT);
    let weights = ScoreWeights::default();
    let estimates = ScoreEstimates::prepare(ask, world, weights);
    index.free_rooms.refresh(world, &mut || ControlFlow::Continue(())).expect("it is never stopped");
    let deferred: BTreeSet<usize> = found.deferred.slots().collect();
    let vacancy = |slot: usize| match &*expected.of_nodes[slot] {
        NodeVerdict::Fits(fit) => fit.scores.vacancy.clone(),
        NodeVerdict::Fails(_) => None,
    };
    let is_as_good = |front: &NodeState, slot: usize| {
        let names = world.nodes.at(slot).map(|state| front.info.name < state.info.name);
        !deferred.contains(&front.slot)
            && names == Some(true)
            && found.scores[front.slot].total_cmp(&expected.scores[slot]).is_eq()
            && vacancy(front.slot).zip(vacancy(slot)).is_some_and(|(one, other)| one.is_alike(&other))
    };
    for (slot, score) in expected.scores.iter().enumerate() {
        if let Some(estimates) = estimates.as_ref().filter(|_| world.nodes.at(slot).is_some()) {
            let (_, most) = index.free_rooms.most(vec![slot], estimates).next().expect("there is a node");
            let most = most.unwrap_or(UNFIT);
            prop_assert!(*score <= most, "{score} is above {most}: {:?}", world.nodes.at(slot));
            let is_exact = !estimates.are_exact() || !most.is_finite() || *score == UNFIT;
            prop_assert!(
                is_exact || score.total_cmp(&most).is_eq(),
                "{score} is not {most}: {:?}",
                world.nodes.at(slot)
            );
        }
        if deferred.contains(&slot) {
            let stands_behind = || world.nodes.by_slot().any(|front| is_as_good(front, slot));
            prop_assert!(
                *score == UNFIT || *score < least || stands_behind(),
                "{score} is not below {least}"
            );
        } else {
            prop_assert_eq!(found.scores[slot].to_bits(), score.to_bits());
        }
    }
    Ok(())
}

/// What this says of the nodes, of which each is judged; `None`: the pod can go to none of them for a reason that is not a node's.
fn of_judged<T>(
    demand: &Demand,
    world: &World,
    weights: ScoreWeights,
    say: impl FnOnce(&Evaluation<'_, '_>) -> Option<T>,
) -> Option<T> {
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(demand, world, &mut counts);
    if filters.rejected().is_some() {
        return None;
    }
    let verdicts = Verdicts::new(&demand.ask, world, weights);
    say(&Evaluation::of(filters, &verdicts, &mut counts, weights))
}

/// The best node by the scores of all nodes that fit, for each of which it is found out exactly what it costs by its room.
fn best_of_all(
    demand: &Demand,
    world: &World,
    weights: ScoreWeights,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<NodeName> {
    of_judged(demand, world, weights, |evaluation| {
        let mut judged = evaluation.judge_all();
        let nodes = evaluation.nodes(&mut judged);
        let totals =
            nodes.iter().filter_map(|(state, scores)| Some((*state, scores.as_ref().ok()?.total(&weights))));
        best(totals, rank).map(|state| state.info.name.clone())
    })
}

/// Pods that may come ask for so many cards and cpus, and for so much memory of a card.
fn coming() -> impl Strategy<Value = (Arc<PodShape>, u32)> {
    let weight = prop_oneof![Just(0), Just(1_024), 1..100_000_u32];
    (1..3_u32, 0..8_u32, prop_oneof![Just(1_000_u64), Just(6_000), Just(8_000)], weight).prop_map(
        |(count, cpu, memory, weight)| {
            let request = fixtures::request_of_one(fixtures::share_request(count, memory, 5));
            let devices = fixtures::ask_for(fixtures::profile(fixtures::PROFILE), request).devices;
            let cards = CardShape::of(&devices).expect("they are shares of cards");
            (Arc::new(PodShape { cpu: cpu * 1_000, memory: 0, cards }), weight)
        },
    )
}

proptest! {
    #[test]
    fn the_node_that_is_chosen_is_the_best_by_what_all_nodes_cost(
        kinds in prop::collection::vec(kind(), 3),
        first in prop::collection::vec(0..3_usize, NODES),
        rounds in prop::collection::vec(
            (prop::collection::vec(step(3), 0..6), prop::collection::vec(coming(), 0..4), asked(), 0..3_usize, 0..12_usize),
            1..8,
        ),
        kept in asked(),
        quota in prop::bool::weighted(0.3),
    ) {
        let mut cluster = Cluster::default();
        for (at, kind) in first.into_iter().enumerate() {
            cluster.take(&Step::Node(at, kind), &kinds);
        }
        if quota {
            let key = QuotaKey { namespace: "default".into(), name: "quota".into() };
            let (profile, dimension) = (fixtures::PROFILE.into(), Dimension::Memory);
            let bound = Bound { profile, dimension, key: "memory".into(), hard: 40_000, unit: 1 };
            cluster.snapshot.set_quota(QuotaInfo { key, bounds: vec![bound] });
        }
        let weights = ScoreWeights::default();
        let (mut classes, mut dry_runs) = (Classes::default(), DryRuns::default());
        for (steps, coming, asked, odd, others) in rounds {
            for step in &steps {
                cluster.take(step, &kinds);
            }
            cluster.snapshot.packing_mut().weigh(coming);
            let (snapshot, world) = (&cluster.snapshot, cluster.snapshot.world());
            let passed_over: BTreeMap<NodeName, usize> =
                (0..NODES).map(|at| (name(at).as_str().into(), usize::from(odd > 0 && at % 3 == odd))).collect();
            let rank = |node: &NodeName| passed_over[node];
            let outlook = Outlook::new(world.clone(), passed_over.clone(), weights);
            for mut asked in [&asked, &kept].map(Clone::clone) {
                // Most are to leave least of no use.
                asked.policy = if asked.policy == 0 { 0 } else { 2 };
                let demand = demand(&asked, others);
                let decided = classes.decide(&demand, snapshot, rank).ok();
                let told = outlook.place_by(&mut dry_runs, &demand, || ControlFlow::Continue(()));
                let told = told.expect("it is never stopped").ok();
                // Only now: it finds out what all rooms are worth, of which the others know more from then on.
                let best = best_of_all(&demand, world, weights, rank);
                prop_assert_eq!(decided.map(|decided| decided.node), best.clone());
                prop_assert_eq!(told.map(|told| told.node.info.name.clone()), best);
            }
        }
    }
}

/// A pod with a mark that asks for this, and demands this of the pods on its node and on others.
fn demand(asked: &Asked, others: usize) -> Demand {
    let mut demand = fixtures::demand("pod", asked.ask());
    let (labels, resources) = (json!({"labels": {"mark": "true"}}), &demand.ask.resources);
    let resources = ResourceAmounts::clone(resources);
    demand.footprint = footprint(&labels, &beside_others(others), resources).into();
    demand
}

/// A pod with a card, of one of the affinities and policies, and without other wishes.
fn asking(affinity: usize, policy: usize) -> Asked {
    Asked {
        cards: 1,
        memory: 1_000,
        cpu: 1,
        policy,
        affinity,
        tolerates: false,
        port: false,
        feature: false,
        by_uuid: false,
        shuns: false,
        typed: false,
    }
}

/// How many of these nodes a new class judges.
fn judged(nodes: impl IntoIterator<Item = NodeInfo>, ask: &Ask) -> usize {
    let mut snapshot = Snapshot::default();
    for node in nodes {
        snapshot.set_node(node);
    }
    let (mut verdicts, mut index) = (Verdicts::default(), NodeIndex::default());
    verdicts.update_alike(ask, snapshot.world(), ScoreWeights::default(), &mut index, Judging::All).judged
}

#[test]
fn of_alike_nodes_one_is_judged() {
    let kind = |zone, (cpu, memory)| NodeKind {
        cards: 2,
        memory: 8_000,
        shape: 0,
        alias: true,
        typed: true,
        cpu: Some((cpu, memory)),
        taint: None,
        zone,
        cordoned: false,
        feature: false,
    };
    let nodes = || (0..60).map(|at| kind(at % 3, (4 + at as u64 % 2, at as u64 + 1)).info(at));
    // Each has another amount of memory, and there are two of cpu.
    assert_eq!(judged(nodes(), &asking(0, 0).ask()), 2, "labels count only where they are read");
    assert_eq!(judged(nodes(), &asking(0, 2).ask()), 2, "rooms are counted in steps of memory");
    let by_class = Asked { tolerates: true, ..asking(0, 0) }.ask();
    assert_eq!(judged(nodes(), &by_class), 2, "whether a claim may serve a share follows from amounts");
    assert_eq!(judged(nodes(), &asking(1, 0).ask()), 6);
    assert_eq!(judged(nodes(), &asking(2, 0).ask()), 60, "each has a name of its own");
    assert_eq!(judged(nodes(), &Asked { by_uuid: true, ..asking(0, 0) }.ask()), 60);
    let numbered_alike = (0..60).map(|at| NodeKind { shape: 3, ..kind(0, (4, 0)) }.info(at));
    assert_eq!(judged(numbered_alike, &asking(0, 0).ask()), 60, "uuids say which card is tried first");
}
