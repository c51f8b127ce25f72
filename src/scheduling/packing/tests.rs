//! What rooms are worth: a function of the pods and nodes that there are, however they came, and what it says.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use proptest::prelude::*;

use super::{census::MOST_SHAPES, fleet::NodeSize, *};
use crate::{
    device::{Card, CoreRequest, Cores, MemoryRequest, MiB, ModelFilter},
    object::Quantity,
    scheduling::{
        fixtures,
        model::pod_shape::{CardShape, ShareShape},
        packing::census::Census,
    },
};

/// A share of so many MiB of each of so many cards; all 8,000 MiB of a card are a whole card.
fn shape(cpu: u32, cards: u32, memory: u64) -> PodShape {
    let share = ShareShape {
        profile: fixtures::PROFILE.into(),
        memory: MemoryRequest::Exact(MiB::new(memory)),
        cores: CoreRequest::Exact(Cores::new(if memory == 8_000 { 100 } else { 0 })),
        alone: false,
        models: ModelFilter::default(),
        modes: None,
        typed: false,
        devices: BTreeMap::new(),
    };
    PodShape { cpu, memory: 0, cards: CardShape { count: cards, share } }
}

/// A node with so many whole cpus, so many cards of 8,000 MiB, and much memory.
fn node(name: &str, cpu: u32, cards: u32) -> NodeInfo {
    let quantities = [("cpu", cpu.to_string()), ("memory", "1Ti".to_owned())];
    let quantities = quantities.map(|(name, text)| (name.to_owned(), Quantity::from(text.as_str())));
    let allocatable = ResourceAmounts::read(quantities.iter().map(|(name, one)| (name, one))).unwrap();
    NodeInfo { allocatable, ..fixtures::node(name, cards, 8_000) }
}

/// Pods and nodes as they come and go.
#[derive(Default)]
struct Cluster {
    packing: Packing,
    census: Census,
    nodes: BTreeMap<String, NodeInfo>,
}

impl Cluster {
    fn put(&mut self, mut node: NodeInfo) {
        let name = node.name.to_string();
        self.packing.replace_node(self.nodes.get(&name), Some(&mut node), Vec::new());
        self.nodes.insert(name, node);
    }

    fn take(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.packing.replace_node(Some(&node), None, Vec::new());
        }
    }

    /// The mix counts that there is by now.
    fn renew(&mut self) {
        if let Some(renewal) = self.packing.begin_renewal() {
            self.packing.renew(renewal.run(|| ControlFlow::Continue(())));
        }
    }

    fn come(&mut self, shape: PodShape) {
        let weighed = self.census.add(shape);
        self.packing.weigh(weighed);
    }

    fn go(&mut self, shape: PodShape) {
        let weighed = self.census.remove(shape);
        self.packing.weigh(weighed);
    }

    /// How much more is asked of a node of this size than if none were too small.
    fn pressure(&self, name: &str) -> u64 {
        NodeSize::of(&self.nodes[name]).map_or(0, |size| self.packing.pressure().of_size(size))
    }

    /// What is free of a node where so many MiB of its first card are in use.
    fn room(&self, name: &str, used: u64) -> Arc<ValuedRoom> {
        let node = &self.nodes[name];
        let first = node.devices.cards[0].id.clone();
        let usage = |card: &CardId| {
            let slots = u32::from(used > 0 && *card == first);
            CardUsage { slots, memory: MiB::new(if slots > 0 { used } else { 0 }), cores: Cores::NONE }
        };
        self.packing.valued(self.packing.room(node, [0, 0], usage))
    }

    /// What it is worth.
    fn worth(&self, name: &str, used: u64) -> i64 {
        self.packing.worth(&self.room(name, used))
    }

    /// What it is worth by few sequences.
    fn worth_by_few(&self, name: &str, used: u64) -> i64 {
        self.room_by_few(&self.room(name, used))
    }

    fn room_by_few(&self, room: &ValuedRoom) -> i64 {
        self.packing.worth_by_few(room, || alone::all(&room.room, &self.packing.mix))
    }
}

#[test]
fn a_room_is_worth_what_the_pods_that_come_can_take_of_it() {
    let mut cluster = Cluster::default();
    for (name, cpu) in [("starved", 0), ("half", 16), ("fed", 64)] {
        cluster.put(node(name, cpu, 4));
    }
    for _ in 0..4096 {
        cluster.come(shape(8_000, 1, 8_000));
    }
    // A card is a million; what a shape could take alone counts half as much again.
    let worth = |name: &str| cluster.worth(name, 0) / 1000;
    assert_eq!(worth("starved"), 0);
    assert!((2_700..=3_000).contains(&worth("half")), "{}", worth("half"));
    assert!((5_700..=6_000).contains(&worth("fed")), "{}", worth("fed"));
    // Whole cards are all that comes: a card of which a bit is in use is of no use.
    assert!(cluster.worth("fed", 1) < cluster.worth("fed", 0) - 1_000_000);
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "a number of draws")]
fn all_sequences_together_hold_each_shape_about_as_often_as_it_counts() {
    let mut cluster = Cluster::default();
    for _ in 0..64 {
        (1..=4).for_each(|cpu| cluster.come(shape(cpu, 1, 8_000)));
    }
    let of_first = |at: usize| {
        let mix = &cluster.packing.mix;
        let drawn = (0..mix::SEQUENCES).filter_map(|sequence| mix.shape(mix.sequence(sequence)[at]));
        drawn.filter(|shape| shape.cpu == 1).count() as f64
    };
    let (expected, draws) = (mix::SEQUENCES as f64 / 4.0, mix::DRAWS as f64);
    let mean = (0..mix::DRAWS).map(of_first).sum::<f64>() / draws;
    assert!((mean - expected).abs() < 0.1 * expected, "{mean}");
    // Of numbers drawn apart from each other it would be three quarters of what is expected.
    let variance = (0..mix::DRAWS).map(|at| (of_first(at) - expected).powi(2)).sum::<f64>() / draws;
    assert!(variance < 0.55 * expected, "{variance}");
}

#[test]
fn few_pods_count_beside_pods_that_are_made_up_by_how_nodes_are_cut() {
    let mut cluster = Cluster::default();
    cluster.put(node("a", 64, 4));
    let empty = cluster.worth("a", 0);
    assert!(empty > 3_000_000, "{empty}");
    assert!(cluster.worth("a", 6_000) < empty - 500_000);
    cluster.come(shape(0, 1, 1_000));
    assert!(cluster.worth("a", 0) > empty * 9 / 10);
}

#[test]
fn cards_that_pods_ask_for_by_their_model_are_under_pressure() {
    let mut cluster = Cluster::default();
    cluster.put(node("a", 64, 4));
    let mut other = node("b", 64, 4);
    for offer in &mut other.devices.offers {
        offer.map_cards(|card| Card { model: "H100".into(), ..card });
    }
    cluster.put(other);
    let kinds = |cluster: &Cluster| ["a", "b"].map(|name| cluster.nodes[name].devices.cards[0].kind);
    for _ in 0..4096 {
        cluster.come(shape(0, 1, 8_000));
    }
    let of = |cluster: &Cluster| kinds(cluster).map(|kind| cluster.packing.pressure().of_kind(kind));
    assert_eq!(of(&cluster), [0, 0]);
    let mut asking = shape(0, 1, 8_000);
    asking.cards.share.models.any_of = vec![vec!["H100".to_owned()]];
    for _ in 0..4096 {
        cluster.come(asking.clone());
    }
    let version = cluster.packing.version();
    cluster.put(node("c", 64, 4));
    assert!(
        cluster.packing.version() > version,
        "there are more cards of the other kind: what it costs is asked anew"
    );
    let [a, b] = of(&cluster);
    assert!(a == 0 && (950_000..=1_000_000).contains(&b), "{a} {b}");
}

#[test]
fn nodes_that_large_pods_need_are_under_pressure_by_how_few_they_are() {
    let mut cluster = Cluster::default();
    cluster.put(node("small", 16, 4));
    cluster.put(node("large", 64, 4));
    let both = |cluster: &Cluster| ["small", "large"].map(|name| cluster.pressure(name));
    for _ in 0..4096 {
        cluster.come(shape(4_000, 4, 8_000));
    }
    let [small, large] = both(&cluster);
    assert!(small == 0 && large < 5_000, "made-up pods alone fit on one only: {small} {large}");
    for _ in 0..1024 {
        cluster.come(shape(60_000, 4, 8_000));
    }
    // A fifth of all that is asked fits on the half that is large: two fifths of that, where it would be one fifth of all.
    let [small, large] = both(&cluster);
    assert!(small == 0 && (195_000..=205_000).contains(&large), "{small} {large}");
    cluster.put(node("more", 64, 4));
    let [small, large] = both(&cluster);
    assert!(small == 0 && (95_000..=105_000).contains(&large), "{small} {large}");
    // What fits nowhere presses nowhere.
    for _ in 0..4096 {
        cluster.come(shape(100_000, 1, 8_000));
    }
    assert!(both(&cluster)[1] < 105_000);
}

#[test]
fn nodes_that_differ_by_a_little_are_of_one_size() {
    let size = |cpu: u32, memory: &str| {
        let mut cluster = Cluster::default();
        let quantities = [("cpu", format!("{cpu}m")), ("memory", memory.to_owned())];
        let quantities = quantities.map(|(name, text)| (name.to_owned(), Quantity::from(text.as_str())));
        let allocatable = ResourceAmounts::read(quantities.iter().map(|(name, one)| (name, one))).unwrap();
        cluster.put(NodeInfo { allocatable, ..node("a", 1, 1) });
        NodeSize::of(&cluster.nodes["a"]).unwrap()
    };
    assert_eq!(size(95_400, "500000Mi"), size(95_900, "503000Mi"));
    assert_ne!(size(96_000, "500000Mi"), size(104_000, "500000Mi"));
    let NodeSize { cpu, memory, .. } = size(1, "1Ki");
    assert_eq!((cpu, memory), (1, 1));
}

#[test]
fn any_number_of_shapes_count_with_those_that_most_pods_have() {
    let mut census = Census::default();
    let mut counted = BTreeMap::new();
    let mut note = |weighed: Vec<Weighed>| {
        for (shape, weight) in weighed {
            if weight == 0 {
                counted.remove(&shape)
            } else {
                counted.insert(shape, weight)
            };
        }
        counted.clone()
    };
    for _ in 0..17 {
        note(census.add(shape(1, 1, 1)));
    }
    let shapes = u32::try_from(3 * MOST_SHAPES).unwrap();
    let all = (2..shapes).map(|cpu| note(census.add(shape(cpu, 1, 1)))).last().unwrap();
    assert_eq!((all.len(), all[&Arc::new(shape(1, 1, 1))]), (MOST_SHAPES, 16));
    let rest = (2..shapes).map(|cpu| note(census.remove(shape(cpu, 1, 1)))).last().unwrap();
    assert_eq!(rest.into_iter().collect::<Vec<_>>(), [(Arc::new(shape(1, 1, 1)), 16)]);
}

/// Renewals, with a room that was asked for: the packing, and the room.
fn with_a_room() -> (Cluster, Arc<ValuedRoom>) {
    let mut cluster = Cluster::default();
    cluster.put(node("a", 64, 4));
    cluster.packing.renew_beside();
    let room = cluster.packing.room(&cluster.nodes["a"], [0, 0], |_| CardUsage::default());
    let room = cluster.packing.valued(room);
    cluster.packing.worth(&room);
    (cluster, room)
}

#[test]
fn pods_that_come_count_once_rooms_have_been_valued_by_them() {
    let (mut cluster, room) = with_a_room();
    let before = (cluster.packing.worth(&room), cluster.packing.version());
    for _ in 0..4096 {
        cluster.come(shape(60_000, 1, 8_000));
    }
    let renewal = cluster.packing.begin_renewal().unwrap();
    assert_eq!(cluster.packing.begin_renewal(), None, "one at a time");
    assert_eq!((cluster.packing.worth(&room), cluster.packing.version()), before);
    let renewed = renewal.run(|| ControlFlow::Continue(()));
    assert!(room.is_valued_by(&renewed.0));
    assert!(room.is_valued_by(&cluster.packing.mix), "a decision may ask for it meanwhile");
    assert_eq!((cluster.packing.worth(&room), cluster.packing.version()), before);
    cluster.packing.renew(renewed);
    assert!(cluster.packing.version() > before.1);
    assert!(
        cluster.packing.worth(&room) < before.0 / 2,
        "one cpu for each card is left: a pod takes all of them"
    );
    assert_eq!(cluster.packing.begin_renewal(), None, "nothing has changed since");
}

#[test]
fn what_a_room_is_worth_by_few_sequences_is_close_to_what_it_is_worth_by_all() {
    let (mut cluster, _) = with_a_room();
    (0..12).for_each(|number| cluster.come(of_number(number)));
    cluster.renew();
    let room = cluster.room("a", 700);
    let (few, all) = (cluster.room_by_few(&room), cluster.packing.worth(&room));
    // Sixteen sequences hold each shape as often as it counts, four do not.
    assert!((few - all).abs() < all / 4 && few != all, "{few}, {all}");
    assert_eq!(cluster.room_by_few(&room), few, "what all have filled is known of few, too");
}

proptest! {
    #[test]
    fn what_shapes_could_take_alone_of_what_each_choice_leaves_is_found_for_all_choices_together(
        shapes in prop::collection::vec((0..9_u32, 1..4_u32, 1..9_u64), 1..12),
        used in prop::collection::vec(0..9_u64, 1..9),
        (cpu, memory) in (1..9_u32, 1..9_u64),
    ) {
        let mut cluster = Cluster::default();
        cluster.put(node("a", 16, u32::try_from(used.len()).unwrap()));
        for (cpu, cards, memory) in shapes {
            cluster.come(shape(cpu * 1000, cards, memory * 1000));
        }
        cluster.renew();
        let (packing, info) = (&cluster.packing, &cluster.nodes["a"]);
        let of_card = |card: &CardId| {
            let at = info.devices.cards.iter().position(|known| known.id == *card).unwrap();
            let memory = MiB::new(used[at] * 1000 + 7);
            CardUsage { slots: 1, memory: if used[at] == 0 { MiB::new(0) } else { memory }, cores: Cores::NONE }
        };
        let before = packing.room(info, [0, 0], of_card);
        let portion = shape(0, 1, memory * 1000).cards.share.on(packing.kinds().get(before.cards[0].kind));
        let taken = vacancy::TakenCards::Any([(before.cards[0].kind, portion.unwrap())].into_iter().collect());
        let choices: Vec<_> = taken.choices(&before).map(|(cards, _)| cards).collect();
        let left = [before.cpu - cpu, before.memory];
        let together = alone::of_choices(&before, left, &choices, &packing.mix).unwrap();
        for ([card, with_pod], alone) in choices.iter().zip(together) {
            let mut cards = before.cards.clone();
            *cards.iter_mut().find(|other| *other == card).unwrap() = *with_pod;
            let after = room::Room::of(left, cards, packing.kinds());
            prop_assert_eq!(alone, alone::all(&after, &packing.mix));
        }
    }
}

#[test]
fn what_changes_while_rooms_are_valued_is_renewed_after_that() {
    let (mut cluster, room) = with_a_room();
    (0..16).for_each(|_| cluster.come(shape(60_000, 1, 8_000)));
    let first = cluster.packing.begin_renewal().unwrap();
    (0..4096).for_each(|_| cluster.come(shape(60_000, 1, 8_000)));
    cluster.packing.renew(first.skip());
    let between = cluster.packing.worth(&room);
    let second = cluster.packing.begin_renewal().unwrap();
    cluster.packing.renew(second.skip());
    assert!(cluster.packing.worth(&room) < between);
    assert_eq!(cluster.packing.begin_renewal(), None);
}

#[test]
fn rooms_with_cards_of_a_kind_that_comes_while_rooms_are_valued_are_valued_when_they_are_asked_for() {
    let (mut cluster, room) = with_a_room();
    (0..16).for_each(|_| cluster.come(shape(60_000, 1, 8_000)));
    let renewal = cluster.packing.begin_renewal().unwrap();
    let mut larger = node("b", 64, 4);
    let size = |card: Card| Card { memory: MiB::new(16_000), ..card };
    larger.devices.offers[0].map_cards(size);
    cluster.put(larger);
    let of_larger = cluster.room("b", 0);
    cluster.packing.worth(&of_larger);
    let renewed = renewal.run(|| ControlFlow::Continue(()));
    assert_eq!([&room, &of_larger].map(|room| room.is_valued_by(&renewed.0)), [true, false]);
    cluster.packing.renew(renewed);
    let mut anew = Cluster::default();
    (0..16).for_each(|_| anew.come(shape(60_000, 1, 8_000)));
    cluster.nodes.values().for_each(|node| anew.put(node.clone()));
    assert_eq!(cluster.worth("b", 0), anew.worth("b", 0));
}

#[test]
fn rooms_that_nobody_asks_for_any_more_are_not_valued() {
    let (mut cluster, room) = with_a_room();
    let changes = u32::try_from(mix::REMEMBERED).unwrap();
    for cpu in 1..=changes {
        cluster.come(shape(cpu, 1, 8_000));
    }
    let renewed = cluster.packing.begin_renewal().unwrap().run(|| ControlFlow::Continue(()));
    assert!(!room.is_valued_by(&renewed.0));
    cluster.packing.renew(renewed);
    cluster.packing.worth(&room);
    cluster.come(shape(changes + 1, 1, 8_000));
    let renewed = cluster.packing.begin_renewal().unwrap().run(|| ControlFlow::Continue(()));
    assert!(room.is_valued_by(&renewed.0));
}

#[derive(Clone, Debug)]
enum Step {
    Come(u8),
    Go(u8),
    Put(u8),
    Take(u8),
    Look,
    LookByFew,
    /// A renewal is begun.
    Begin,
    /// It is over, when so many rooms have been valued.
    End(u8),
}

/// A few shapes of which some fit nowhere, some everywhere.
fn of_number(number: u8) -> PodShape {
    let number = u32::from(number);
    shape(number * 500, 1 + number % 3, if number % 2 == 0 { 8_000 } else { u64::from(number) * 700 })
}

/// Some of the nodes have cards of two sizes.
fn of_node(number: u8) -> NodeInfo {
    let size = |card: Card| {
        let memory = if number >= 128 && card.index % 2 == 1 { 16_000 } else { 8_000 };
        Card { memory: MiB::new(memory), ..card }
    };
    let mut node =
        node(&format!("n{}", number % 4), 8 * (1 + u32::from(number) % 3), 1 + u32::from(number) % 5);
    node.devices.offers[0].map_cards(size);
    node
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..12).prop_map(Step::Come),
        2 => (0_u8..12).prop_map(Step::Go),
        1 => any::<u8>().prop_map(Step::Put),
        1 => (0_u8..4).prop_map(Step::Take),
        1 => Just(Step::Look),
        1 => Just(Step::LookByFew),
        1 => Just(Step::Begin),
        1 => (0_u8..9).prop_map(Step::End),
    ]
}

proptest! {
    #[test]
    fn what_was_there_before_changes_nothing(steps in prop::collection::vec(step(), 1..120)) {
        let mut cluster = Cluster::default();
        cluster.packing.renew_beside();
        let mut begun = None;
        // As classes of pods keep what they have found.
        let mut kept = Vec::new();
        let mut pods: BTreeMap<u8, u32> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Come(number) => {
                    *pods.entry(number).or_default() += 1;
                    cluster.come(of_number(number));
                }
                Step::Go(number) => {
                    if let Some(count) = pods.get_mut(&number).filter(|count| **count > 0) {
                        *count -= 1;
                        cluster.go(of_number(number));
                    }
                }
                Step::Put(number) => cluster.put(of_node(number)),
                Step::Take(number) => cluster.take(&format!("n{number}")),
                // What is found here is kept, and made to fit later mixes.
                Step::Look => for name in cluster.nodes.keys() {
                    cluster.worth(name, 700);
                    kept.push(cluster.room(name, 700));
                },
                Step::LookByFew => for name in cluster.nodes.keys() {
                    cluster.worth_by_few(name, 700);
                    cluster.worth_by_few(name, 8_000);
                },
                Step::Begin => begun = begun.or_else(|| cluster.packing.begin_renewal()),
                Step::End(rooms) => if let Some(renewal) = begun.take() {
                    let mut left = rooms;
                    let renewed = renewal.run(|| match left.checked_sub(1) {
                        Some(less) => { left = less; ControlFlow::Continue(()) }
                        None => ControlFlow::Break(()),
                    });
                    cluster.packing.renew(renewed);
                },
            }
        }
        if let Some(renewal) = begun {
            cluster.packing.renew(renewal.skip());
        }
        cluster.renew();
        let mut anew = Cluster::default();
        for (number, count) in pods.into_iter().rev() {
            (0..count).for_each(|_| anew.come(of_number(number)));
        }
        for node in cluster.nodes.values().rev() {
            anew.put(NodeInfo { devices: OfferedDevices { cards: Arc::default(), ..node.devices.clone() }, ..node.clone() });
        }
        for name in cluster.nodes.keys() {
            prop_assert_eq!(cluster.pressure(name), anew.pressure(name), "{}", name);
            for used in [0, 700, 8_000] {
                let by_few = [&cluster, &anew].map(|cluster| cluster.worth_by_few(name, used));
                prop_assert_eq!(by_few[0], by_few[1], "{} {} by few sequences", name, used);
                prop_assert_eq!(cluster.worth(name, used), anew.worth(name, used), "{} {}", name, used);
            }
        }
    }
}
