//! Which pods move, where they go, and that as few move as can.

mod fewest;

use std::sync::Arc;

use super::*;
use crate::{
    device::{Answer, CardPolicy, ContainerRequest, Role},
    object::{LabelSelector, Labels, PodDisruptionBudget},
    scheduling::{
        Claim, Footprint, Holding, PodGroups,
        fixtures::{self, PROFILE, allocation, node, share},
        model::{
            gang::{GangName, GroupApi, Member},
            label_set::LabelSet,
            pod::{Ask, Stage},
        },
        plugin::score::weights::ScoreWeights,
        world::{ledger::Charge, object::Object},
    },
};

/// Cards have so many MiB, so that a share of 50 is half of one.
const CARD: u64 = 100;

/// What a pod asks for that takes so many MiB of a card, and the fullest card that has them.
fn ask(memory: u64) -> Ask {
    let share = Some(fixtures::share_request(1, memory, 0));
    let mut request = fixtures::request(vec![ContainerRequest { role: Role::App, share }]);
    request.choice = CardPolicy::Binpack.into();
    fixtures::ask_for(fixtures::profile(PROFILE), request)
}

/// A cluster on trial.
#[derive(Default)]
struct Cluster {
    snapshot: Snapshot,
    pods: MovablePods,
}

impl Cluster {
    fn new(nodes: &[(&str, u32)]) -> Self {
        let mut stage = Self::default();
        for (name, cards) in nodes {
            stage.snapshot.set_node(node(name, *cards, CARD));
        }
        stage
    }

    /// With a pod that holds so many MiB of a card of a node.
    fn with(mut self, name: &str, (node, card): (&str, u32), memory: u64) -> Self {
        let held = allocation(PROFILE, share(&format!("GPU-{node}-{card}"), memory, 0), Answer::Succeeded);
        let demand = fixtures::demand(name, ask(memory));
        let charge =
            Charge { footprint: demand.footprint.clone(), ..fixtures::charge(node, vec![held.clone()]) };
        let info = PodInfo {
            stage: Stage::Running,
            holding: Some(Holding::clone(&fixtures::holding(node, vec![held]))),
            footprint: demand.footprint.clone(),
            ..fixtures::pod(name, Claim::None)
        };
        self.snapshot.charge(name.into(), charge);
        self.pods.movable.insert(name.into(), MovablePod { info, demand, readiness: Readiness::Ready });
        self
    }

    /// With this pod otherwise.
    fn but(mut self, name: &str, change: impl FnOnce(&mut MovablePod)) -> Self {
        change(self.pods.movable.get_mut(name).unwrap());
        self
    }

    fn without_moving(mut self, name: &str, reason: Unmovable) -> Self {
        self.pods.movable.remove(name);
        self.pods.unmovable.insert(name.into(), reason);
        self
    }

    fn plan(&mut self, goal: &MoveGoal) -> MovePlan {
        let mut classes = Classes::new(ScoreWeights::default());
        plan(&mut self.snapshot, &mut classes, &self.pods, goal)
    }

    /// The moves for so many cards: `pod: node/card -> node/card`.
    fn moves(&mut self, free: usize) -> Vec<String> {
        let plan = self.plan(&free_of(free));
        plan.moves.iter().map(said).collect()
    }
}

fn said(one: &PodMove) -> String {
    let cards: Vec<_> = one.cards.iter().map(CardId::as_str).collect();
    let after: Vec<_> = one.after.iter().map(|pod| &*pod.name).collect();
    let after = if after.is_empty() { String::new() } else { format!(" after {}", after.join(", ")) };
    format!("{}: {} -> {}{after}", one.pod.name, one.from, cards.join(", "))
}

fn free_of(free: usize) -> MoveGoal {
    MoveGoal { free: Some(free), ..MoveGoal::default() }
}

#[test]
fn a_card_becomes_free_where_its_pod_fits_beside_others() {
    let mut stage = Cluster::new(&[("n1", 1), ("n2", 1)]).with("a", ("n1", 0), 40).with("b", ("n2", 0), 60);
    let before: Vec<_> = stage.snapshot.nodes().cloned().collect();
    let generation = stage.snapshot.generation();
    let plan = stage.plan(&free_of(1));
    assert_eq!(plan.moves.iter().map(said).collect::<Vec<_>>(), ["a: n1 -> GPU-n2-0"]);
    assert_eq!((plan.won, plan.is_cut_short), (1, false));
    assert_eq!(plan.freed, BTreeSet::from([NodeCard { node: "n1".into(), card: "GPU-n1-0".into() }]));
    let after = plan.after.node("n2").unwrap().usage.card(&"GPU-n2-0".into());
    assert_eq!(after.memory.get(), 100, "the picture afterwards has the pod in its new place");
    for (state, before) in stage.snapshot.nodes().zip(before) {
        assert_eq!((&state.usage, &state.info), (&before.usage, &before.info), "the plan leaves no trace");
    }
    assert!(stage.snapshot.generation() >= generation);
}

#[test]
fn a_card_of_the_same_node_will_do() {
    let mut stage = Cluster::new(&[("n1", 2)]).with("a", ("n1", 0), 40).with("b", ("n1", 1), 60);
    assert_eq!(stage.moves(1), ["a: n1 -> GPU-n1-1"]);
}

#[test]
fn a_pod_passes_over_a_free_card_that_it_would_be_given() {
    let mut stage = Cluster::new(&[("n1", 2), ("n2", 2)])
        .with("a", ("n1", 0), 30)
        .with("b", ("n1", 1), 30)
        .with("c", ("n2", 0), 80);
    let plan = stage.plan(&free_of(1));
    assert_eq!(plan.moves.iter().map(said).collect::<Vec<_>>(), ["a: n1 -> GPU-n1-1"]);
    assert_eq!(
        plan.moves[0].closed,
        BTreeSet::from([NodeCard { node: "n2".into(), card: "GPU-n2-1".into() }])
    );
}

#[test]
fn a_pod_that_could_only_take_a_free_card_stays() {
    let mut stage =
        Cluster::new(&[("n1", 1), ("n2", 1), ("n3", 2)]).with("a", ("n1", 0), 60).with("b", ("n2", 0), 50);
    let plan = stage.plan(&MoveGoal::default());
    assert!(plan.moves.is_empty() && plan.won == 0, "{:?}", plan.moves);
    assert!(stage.moves(1).is_empty());
}

#[test]
fn of_a_named_node_pods_may_take_free_cards_of_others() {
    let mut stage = Cluster::new(&[("n1", 2), ("n2", 2)]).with("a", ("n1", 0), 60).with("b", ("n1", 1), 100);
    let goal = MoveGoal { node: Some("n1".into()), ..MoveGoal::default() };
    let plan = stage.plan(&goal);
    assert_eq!(plan.won, 2);
    assert!(plan.moves.iter().all(|one| *one.to == *"n2"), "{:?}", plan.moves);
}

#[test]
fn the_fewest_and_cheapest_pods_move() {
    let stage = || {
        Cluster::new(&[("n1", 1), ("n2", 1), ("n3", 1), ("n4", 1)])
            .with("a1", ("n1", 0), 10)
            .with("a2", ("n1", 0), 10)
            .with("b", ("n2", 0), 30)
            .with("c", ("n3", 0), 30)
            .with("d", ("n4", 0), 70)
    };
    assert_eq!(stage().moves(1), ["b: n2 -> GPU-n4-0"], "one pod, and of equals the first by name");
    let important = |pod: &mut MovablePod| pod.info.importance.priority = 10;
    assert_eq!(stage().but("b", important).moves(1), ["c: n3 -> GPU-n4-0"], "the less important");
    let started = |second| {
        move |pod: &mut MovablePod| {
            pod.info.importance.started = jiff::Timestamp::from_second(second).ok();
        }
    };
    let mut young = stage().but("b", started(5)).but("c", started(9));
    assert_eq!(young.moves(1), ["c: n3 -> GPU-n4-0"], "the younger");
}

#[test]
fn another_pod_makes_room_where_nothing_else_helps_and_comes_first() {
    let mut stage = Cluster::new(&[("n1", 1), ("n2", 1), ("n3", 1)])
        .with("p", ("n1", 0), 60)
        .with("q", ("n2", 0), 30)
        .with("r", ("n2", 0), 40)
        .with("s", ("n3", 0), 70)
        .without_moving("r", Unmovable::LocalData)
        .without_moving("s", Unmovable::LocalData);
    assert_eq!(stage.moves(1), ["q: n2 -> GPU-n3-0", "p: n1 -> GPU-n2-0 after q"]);
}

#[test]
fn without_a_number_cards_pay_for_which_few_pods_move() {
    let stage = |pods: &[&str]| {
        let stage = Cluster::new(&[("n1", 1), ("n2", 1)]).with("z", ("n2", 0), 70);
        pods.iter().fold(stage, |stage, pod| stage.with(pod, ("n1", 0), 10))
    };
    assert_eq!(stage(&["a", "b"]).plan(&MoveGoal::default()).moves.len(), 1, "z moves");
    let kept = |pods| stage(pods).without_moving("z", Unmovable::LocalData);
    assert_eq!(kept(&["a", "b"]).plan(&MoveGoal::default()).moves.len(), 2);
    assert!(kept(&["a", "b", "c"]).plan(&MoveGoal::default()).moves.is_empty());
    assert_eq!(kept(&["a", "b", "c"]).plan(&free_of(1)).moves.len(), 3, "one card was asked for");
}

#[test]
fn pods_that_must_not_move_keep_their_cards_and_are_counted() {
    let stage = || Cluster::new(&[("n1", 1), ("n2", 1)]).with("a", ("n1", 0), 40).with("b", ("n2", 0), 60);
    let kept = |mut stage: Cluster| {
        let plan = stage.plan(&free_of(1));
        (plan.moves.len(), plan.kept.into_iter().collect::<Vec<_>>())
    };
    let both = |change: fn(&mut MovablePod)| stage().but("a", change).but("b", change);
    let one = stage().without_moving("a", Unmovable::NoController);
    assert_eq!(kept(one), (1, vec![(Unmovable::NoController, 1)]), "the other moves");
    let leaving = |pod: &mut MovablePod| {
        pod.info.importance.deletion = crate::scheduling::model::pod::Deletion::Requested;
    };
    assert_eq!(kept(both(leaving)), (0, vec![(Unmovable::Unsettled, 2)]));
    let gang = |pod: &mut MovablePod| {
        let gang = GangName { api: GroupApi::Volcano, group: "default/gang".into() };
        pod.info.groups = PodGroups::of(Some(Member { gang, task: None }), None);
    };
    assert_eq!(kept(both(gang)), (0, vec![(Unmovable::Gang, 2)]));
    let mut covered = both(|pod| {
        let labels = LabelSet::from([("app", "web")]);
        pod.info.footprint = Arc::new(Footprint { labels, ..Footprint::clone(&pod.info.footprint) });
    });
    let mut budget = PodDisruptionBudget::default();
    (budget.metadata.name, budget.metadata.namespace) = ("budget".to_owned(), "default".to_owned());
    let match_labels = Labels::from([("app".to_owned(), "web".to_owned())]);
    budget.spec.selector = Some(LabelSelector { match_labels, ..LabelSelector::default() });
    covered.snapshot.set_object(Object::PodDisruptionBudget(Arc::new(budget.clone())));
    assert_eq!(kept(covered), (0, vec![(Unmovable::Budget, 2)]));
}

#[test]
fn one_eviction_at_a_time_is_enough_of_a_budget() {
    let labelled = |pod: &mut MovablePod| {
        let labels = LabelSet::from([("app", "web")]);
        pod.info.footprint = Arc::new(Footprint { labels, ..Footprint::clone(&pod.info.footprint) });
    };
    let mut stage = Cluster::new(&[("n1", 1), ("n2", 1)])
        .with("a", ("n1", 0), 20)
        .with("b", ("n1", 0), 20)
        .with("c", ("n2", 0), 60)
        .but("a", labelled)
        .but("b", labelled)
        .without_moving("c", Unmovable::Refused);
    let mut budget = PodDisruptionBudget::default();
    (budget.metadata.name, budget.metadata.namespace) = ("budget".to_owned(), "default".to_owned());
    budget.spec.selector = Some(LabelSelector::default());
    budget.status.disruptions_allowed = 1;
    stage.snapshot.set_object(Object::PodDisruptionBudget(Arc::new(budget)));
    assert_eq!(stage.moves(1).len(), 2);
}

#[test]
fn cards_of_other_models_and_of_cordoned_nodes_do_not_count() {
    let mut stage = Cluster::new(&[("n1", 1), ("n2", 1)]).with("a", ("n1", 0), 40).with("b", ("n2", 0), 60);
    let models = ModelFilter { any_of: vec![vec!["h100".to_owned()]], none_of: Vec::new() };
    let plan = stage.plan(&MoveGoal { models, ..free_of(1) });
    assert!(plan.moves.is_empty());
    let mut cordoned = node("n1", 1, CARD);
    cordoned.cordoned = true;
    stage.snapshot.set_node(cordoned);
    assert!(stage.moves(1).is_empty(), "b can't go to the cordoned node, and a free card there is of no use");
    let goal = MoveGoal { node: Some("n1".into()), ..free_of(1) };
    assert_eq!(stage.plan(&goal).moves.iter().map(said).collect::<Vec<_>>(), ["a: n1 -> GPU-n2-0"]);
}
