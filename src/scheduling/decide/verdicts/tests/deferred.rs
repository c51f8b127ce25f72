//! Of nodes of which others suit a pod better, or on which as much is free, few are judged, and the best of all is chosen nevertheless.

use super::*;

/// Nodes of which no two have as much free of their cards.
fn unequal_nodes(nodes: u64) -> Snapshot {
    holding_nodes(nodes, 8_000, |at| 1 + at * 37 % 7_000)
}

/// Nodes of two cards with so much memory, each with a share of its first card that has so much as is `held` on it.
fn holding_nodes(nodes: u64, memory: u64, held: impl Fn(u64) -> u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for at in 0..nodes {
        let node = format!("n{at:03}");
        snapshot.set_node(fixtures::node(&node, 2, memory));
        let share = fixtures::share(&format!("GPU-{node}-0"), held(at), 0);
        let held = fixtures::allocation(fixtures::PROFILE, share, Answer::Succeeded);
        snapshot.charge(format!("pod-{at}").as_str().into(), fixtures::charge(&node, vec![held]));
    }
    snapshot
}

/// The node that a class chooses, and a dry run too.
fn chosen_by_both(demand: &Demand, snapshot: &Snapshot) -> NodeName {
    let decided = Classes::default().decide(demand, snapshot, |_| 0).unwrap().node;
    let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default());
    let told = outlook.place(demand, || ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!(told.node.info.name, decided);
    decided
}

#[test]
fn of_nodes_that_all_differ_few_are_valued_and_dry_runs_choose_among_the_same() {
    let snapshot = unequal_nodes(200);
    let (world, weights) = (snapshot.world(), ScoreWeights::default());
    let demand = fixtures::demand("pod", Asked { memory: 500, cpu: 0, ..asking(0, 2) }.ask());
    let mut verdicts = Verdicts::new(&demand.ask, world, weights);
    let mut different = verdicts.scores.clone();
    different.sort_unstable_by(|one, other| other.total_cmp(one));
    different.dedup();
    verdicts.value_best(world.packing(), &weights);
    let valued: Vec<_> = (0..verdicts.slots()).filter(|slot| verdicts.listed[*slot] > UNFIT).collect();
    assert!((LISTED..200).contains(&valued.len()), "{}", valued.len());
    assert!(valued.iter().all(|slot| verdicts.scores[*slot] >= different[LISTED - 1]));
    assert_eq!(verdicts.best(world).unwrap().info.name, chosen_by_both(&demand, &snapshot));
}

#[test]
fn of_nodes_that_seem_to_cost_the_same_no_more_than_are_on_the_list_are_valued_and_few_judged() {
    // Less than a thousandth of a card, on each node another part of it.
    let snapshot = holding_nodes(200, 800_000, |at| 1 + at);
    let (world, weights) = (snapshot.world(), ScoreWeights::default());
    let demand = fixtures::demand("pod", Asked { memory: 50_000, cpu: 0, ..asking(0, 2) }.ask());
    let mut verdicts = Verdicts::new(&demand.ask, world, weights);
    let [least, most] = [f64::min, f64::max].map(|of| verdicts.scores.iter().copied().reduce(of).unwrap());
    assert!(most - least < 0.001, "{least} to {most}");
    verdicts.value_best(world.packing(), &weights);
    assert_eq!(verdicts.listed.iter().filter(|score| **score > UNFIT).count(), LISTED);
    assert_eq!(verdicts.best(world).unwrap().info.name, chosen_by_both(&demand, &snapshot));
    // Not many more are judged.
    let (mut verdicts, mut index) = (Verdicts::default(), NodeIndex::default());
    let changes = verdicts.update_alike(&demand.ask, world, weights, &mut index, Judging::Best(LISTED));
    assert!((LISTED..=2 * LISTED).contains(&changes.judged), "{changes:?}");
}

#[test]
fn of_nodes_that_all_differ_few_are_judged() {
    let snapshot = unequal_nodes(400);
    let (world, weights) = (snapshot.world(), ScoreWeights::default());
    let ask = Asked { memory: 500, cpu: 0, ..asking(0, 2) }.ask();
    let (mut verdicts, mut index) = (Verdicts::default(), NodeIndex::default());
    let mut judged = |verdicts: &mut Verdicts, judging| {
        verdicts.update_alike(&ask, world, weights, &mut index, judging).judged
    };
    let best = judged(&mut verdicts, Judging::Best(LISTED));
    assert!((LISTED..3 * LISTED).contains(&best), "{best}");
    assert_eq!(judged(&mut verdicts, Judging::Best(LISTED)), 0, "they are known by then");
    let more = judged(&mut verdicts, Judging::Best(4 * LISTED));
    assert!((3 * LISTED..9 * LISTED).contains(&(best + more)), "{best}, {more}");
    assert_eq!(best + more + judged(&mut verdicts, Judging::All), 400);
    compare(&verdicts, &Verdicts::new(&ask, world, weights), &ask, world).unwrap();
}

/// Says so often that a dry run may go on.
fn stopped_after(most: usize) -> impl FnMut() -> ControlFlow<()> {
    let mut asked = 0;
    move || {
        asked += 1;
        if asked > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The node that is chosen once every node is judged.
fn best_of_judged(
    demand: &Demand,
    world: &World,
    weights: ScoreWeights,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<NodeName> {
    of_judged(demand, world, weights, |evaluation| {
        evaluation.choose(rank).ok().map(|state| state.info.name.clone())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn of_many_nodes_that_differ_the_best_is_chosen_though_most_are_not_judged(
        rounds in prop::collection::vec(
            (prop::collection::vec((0..200_usize, 1..7_000_u64), 0..40), prop::collection::vec(coming(), 0..3), 1..8_000_u64, 0..200_usize, 0..3_usize),
            1..6,
        ),
    ) {
        let mut snapshot = unequal_nodes(200);
        let (mut classes, mut dry_runs, weights) =
            (Classes::default(), DryRuns::default(), ScoreWeights::default());
        for (round, (held, coming, memory, passed, beside)) in rounds.into_iter().enumerate() {
            for (pod, (node, memory)) in held.into_iter().enumerate() {
                let share = fixtures::share(&format!("GPU-n{node:03}-1"), memory, 0);
                let share = fixtures::allocation(fixtures::PROFILE, share, Answer::Succeeded);
                let charge = fixtures::charge(&format!("n{node:03}"), vec![share]);
                snapshot.charge(format!("{round}-{pod}").as_str().into(), charge);
            }
            snapshot.packing_mut().weigh(coming);
            for memory in [memory, 500] {
                let demand = demand(&Asked { memory, cpu: 0, ..asking(0, 2) }, [0, 1, 5][beside]);
                let best = best_of_judged(&demand, snapshot.world(), weights, |_| 0);
                // The lines of the best ones are full.
                let verdicts = Verdicts::new(&demand.ask, snapshot.world(), weights);
                let mut nodes: Vec<_> = snapshot.world().nodes.by_slot().collect();
                nodes.sort_by(|one, other| verdicts.scores[other.slot].total_cmp(&verdicts.scores[one.slot]));
                let passed_over: BTreeSet<_> =
                    nodes.into_iter().take(passed).map(|node| node.info.name.clone()).collect();
                let rank = |node: &NodeName| usize::from(passed_over.contains(node));
                let decided = classes.decide(&demand, &snapshot, rank).ok().map(|decided| decided.node);
                prop_assert_eq!(decided, best_of_judged(&demand, snapshot.world(), weights, rank));
                let decided = classes.decide(&demand, &snapshot, |_| 0).ok().map(|decided| decided.node);
                prop_assert_eq!(&decided, &best);
                // A dry run may be stopped at any time, and what it tells until then is right.
                let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), weights);
                let node = |told: Result<Prospect, _>| {
                    told.ok().map(|told| told.node.info.name.clone())
                };
                if let Some(told) = outlook.place_by(&mut dry_runs, &demand, stopped_after(2 * passed)) {
                    prop_assert_eq!(node(told), best.clone());
                }
                let told = outlook.place_by(&mut dry_runs, &demand, || ControlFlow::Continue(()));
                prop_assert_eq!(node(told.expect("it is never stopped")), best);
            }
        }
    }
}

#[test]
fn of_equal_nodes_one_is_judged_for_each_pod_and_more_only_where_pods_can_not_go_to_those() {
    // Two kinds of nodes, which are worth something else: those with a share on them come first.
    let mut snapshot = holding_nodes(120, 8_000, |at| 4_000 + at % 2);
    let weights = ScoreWeights::default();
    let demand = fixtures::demand("pod", Asked { memory: 1_000, cpu: 0, ..asking(0, 2) }.ask());
    let (mut verdicts, mut index) = (Verdicts::default(), NodeIndex::default());
    let (mut classes, mut dry_runs) = (Classes::default(), DryRuns::default());
    for round in 0..20 {
        let world = snapshot.world();
        let changes = verdicts.update_alike(&demand.ask, world, weights, &mut index, Judging::Best(LISTED));
        // The node that the last pod went to, and the next one that is as it was.
        assert!(changes.judged <= 2, "{round}: {changes:?}");
        check_deferred(
            &verdicts,
            &Verdicts::new(&demand.ask, world, weights),
            &demand.ask,
            (world, &mut index),
            LISTED,
        )
        .unwrap();
        let in_lines = |node: &NodeName| usize::from(**node < *format!("n{:03}", 3 * round));
        let best = best_of_judged(&demand, world, weights, in_lines).unwrap();
        let decided = classes.decide(&demand, &snapshot, in_lines).unwrap();
        assert_eq!(decided.node, best, "{round}");
        // A dry run is stopped before each node that it looks at, and goes on.
        let passed_over = world.nodes.names().map(|name| (name.clone(), in_lines(name))).collect();
        let outlook = Outlook::new(world.clone(), passed_over, weights);
        for most in 0.. {
            if let Some(told) = outlook.place_by(&mut dry_runs, &demand, stopped_after(most)) {
                assert_eq!(told.unwrap().node.info.name, best, "{round}");
                break;
            }
        }
        let share = fixtures::share(
            decided.allocations[0].assignment.shares().next().unwrap().card.as_str(),
            1_000,
            0,
        );
        let held = fixtures::allocation(fixtures::PROFILE, share, Answer::Succeeded);
        snapshot.charge(format!("placed-{round}").as_str().into(), fixtures::charge(&best, vec![held]));
    }
}

#[test]
fn equal_nodes_are_not_lost_where_judging_is_stopped_and_the_mix_of_pods_changes_before_it_goes_on() {
    let weights = ScoreWeights::default();
    let demand = fixtures::demand("pod", Asked { memory: 1_000, cpu: 0, ..asking(0, 2) }.ask());
    let mix = |(count, memory): (u32, u64), weight: u32| {
        let request = fixtures::request_of_one(fixtures::share_request(count, memory, 5));
        let devices = fixtures::ask_for(fixtures::profile(fixtures::PROFILE), request).devices;
        let cards = CardShape::of(&devices).expect("they are shares of cards");
        vec![(Arc::new(PodShape { cpu: 0, memory: 0, cards }), weight)]
    };
    // All nodes score more by what comes then.
    let (before, after) = (mix((1, 1_000), 1), mix((2, 7_000), 100_000));
    let mut stopped = 0;
    for most in 0..4 {
        // Half of the nodes are equal and the best. The others have more different scores than are on the shortlist.
        let mut snapshot = holding_nodes(120, 8_000, |at| if at < 60 { 7_000 } else { 1 + at * 37 % 6_500 });
        let (mut verdicts, mut index) = (Verdicts::default(), NodeIndex::default());
        let mut update = |snapshot: &Snapshot, most| {
            let (scene, judging) = ((snapshot.world(), weights), Judging::Best(LISTED));
            verdicts.update_alike_while(&demand.ask, scene, &mut index, judging, stopped_after(most))?;
            verdicts.value_best(snapshot.packing(), &weights);
            verdicts.best(snapshot.world()).map(|state| state.info.name.clone())
        };
        snapshot.packing_mut().weigh(before.clone());
        assert_eq!(update(&snapshot, usize::MAX), Some("n000".into()));
        // The others stand behind this one, which is full now, and is judged before the next one that has changed.
        for (node, card, memory) in [("n000", 0, 8_000), ("n000", 1, 8_000), ("n119", 1, 1)] {
            let share = fixtures::share(&format!("GPU-{node}-{card}"), memory, 0);
            let held = fixtures::allocation(fixtures::PROFILE, share, Answer::Succeeded);
            let uid = format!("placed-{node}-{card}");
            snapshot.charge(uid.as_str().into(), fixtures::charge(node, vec![held]));
        }
        stopped += usize::from(update(&snapshot, most).is_none());
        snapshot.packing_mut().weigh(after.clone());
        assert_eq!(best_of_judged(&demand, snapshot.world(), weights, |_| 0), Some("n001".into()));
        assert_eq!(update(&snapshot, usize::MAX), Some("n001".into()), "{most}");
    }
    assert!(stopped > 0);
}
