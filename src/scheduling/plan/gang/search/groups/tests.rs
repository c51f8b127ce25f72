//! Places for trees of groups: which groups are placed, on which values of node labels, and what a search in pieces finds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{GangSearch, Placed};
use crate::scheduling::{
    decide::{Decision, class::Classes},
    fixtures::{self, ask, demand, node},
    model::{
        gang::{Gang, GangName, GroupApi, Member, Tally, tree::GroupTree},
        name::Uid,
    },
    plan::{
        Plan,
        gang::{Applicant, AsItIs, GangShortfall, Pool},
    },
    snapshot::Snapshot,
    world::ledger::Charge,
};

/// Nodes `n0`, `n1` and so on, each with room for one pod, in these zones and racks.
fn cluster(places: &[(&str, &str)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (at, (zone, rack)) in places.iter().enumerate() {
        let mut info = node(&format!("n{at}"), 1, 16_000);
        info.labels = [("zone", *zone), ("rack", *rack)].into();
        snapshot.set_node(info);
    }
    snapshot
}

fn name(api: GroupApi, of: &str) -> GangName {
    GangName { api, group: format!("default/{of}").into() }
}

fn leaf(of: &str) -> GangName {
    name(GroupApi::Kubernetes, of)
}

fn label(key: &str) -> Option<std::sync::Arc<str>> {
    (!key.is_empty()).then(|| key.into())
}

/// A tree of two levels that needs at least `least` of these PodGroups. Each has its name, its minimum of pods and the label whose value they share,
/// which is empty if there is none.
fn llm(least: usize, key: &str, groups: &[(&str, usize, &str)]) -> GroupTree {
    let mut tree = GroupTree::new(name(GroupApi::Composite, "llm"), least, label(key));
    for (group, least, key) in groups {
        tree.add(GroupTree::ROOT, leaf(group), *least, label(key));
    }
    tree
}

/// So many pods of each of these groups, each of which takes a node.
fn applicants(groups: &[(&str, usize)]) -> Vec<Applicant> {
    let of_group = |(group, pods): &(&str, usize)| {
        let member = Member { gang: leaf(group), task: None };
        let pods = (0..*pods).map(|at| demand(&format!("{group}-{at}"), ask(1, 16_000, 10)));
        pods.map(|demand| Applicant { demand, member: member.clone() }).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

fn charge(_: &Uid, decision: &Decision) -> Charge {
    fixtures::charge(&decision.node, decision.allocations.clone())
}

fn search(snapshot: &mut Snapshot, pool: &Pool<'_>, most_steps: u64) -> (Placed, usize) {
    let (mut classes, mut search) = (Classes::default(), GangSearch::default());
    for interrupted in 0..10_000 {
        let mut room = AsItIs { classes: &mut classes, charge };
        let mut plan = Plan::new(snapshot);
        let found = search.go_on(pool, &mut plan, &mut room, &|_| 0, most_steps);
        if let Some(found) = found {
            return (found, interrupted);
        }
    }
    panic!("each time one place is looked for at least");
}

/// On which node each pod goes, or what is missing. A search in pieces must find the same.
fn places(
    snapshot: &mut Snapshot,
    tree: GroupTree,
    pods: &[(&str, usize)],
    placed: &[(&str, &str)],
) -> Result<BTreeMap<String, String>, GangShortfall> {
    let gang = Gang { groups: Some(tree), ..Gang::default() };
    let mut tally = Tally::default();
    for (group, _) in placed {
        tally.count(&Member { gang: leaf(group), task: None });
    }
    let nodes = placed.iter().map(|(group, node)| (leaf(group), (*node).into())).collect();
    let mut applicants = applicants(pods);
    let tree = gang.groups.as_ref().unwrap();
    let part = applicants.first().and_then(|first| tree.part_of(&first.member.gang, &tally));
    let part = part.unwrap_or(GroupTree::ROOT);
    applicants.retain(|applicant| tree.chain(&applicant.member.gang).any(|at| at == part));
    let pool = Pool { gang: &gang, placed: tally, nodes, applicants, part };
    let words = |placed: Placed| {
        let word = |(uid, decision): (Uid, Decision)| (uid.to_string(), decision.node.to_string());
        placed.map(|placed| placed.into_iter().map(word).collect::<BTreeMap<_, _>>())
    };
    let (at_once, interrupted) = search(snapshot, &pool, u64::MAX);
    assert_eq!(interrupted, 0);
    let at_once = words(at_once);
    let (in_pieces, _) = search(snapshot, &pool, 0);
    let in_pieces = words(in_pieces);
    assert_eq!(at_once.as_ref().ok(), in_pieces.as_ref().ok(), "in pieces");
    assert_eq!(at_once.as_ref().err().map(|short| short.fitting), in_pieces.err().map(|short| short.fitting));
    at_once
}

/// How many pods of each group are placed.
fn counts(placed: &BTreeMap<String, String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for pod in placed.keys() {
        *counts.entry(pod.rsplit_once('-').unwrap().0.to_owned()).or_default() += 1;
    }
    counts
}

fn of(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(group, pods)| ((*group).to_owned(), *pods)).collect()
}

const NODES: [(&str, &str); 6] = [("z", "a"), ("z", "a"), ("z", "b"), ("z", "b"), ("y", "c"), ("y", "c")];

#[test]
fn nothing_is_placed_of_a_group_that_finds_too_few_places() {
    let three = || cluster(&NODES[..3]);
    let of_two = |least| llm(least, "", &[("large", 4, ""), ("small", 1, "")]);
    let placed = places(&mut three(), of_two(1), &[("large", 4), ("small", 3)], &[]).unwrap();
    assert_eq!(counts(&placed), of(&[("small", 3)]), "the large one takes no room");
    let short = places(&mut three(), of_two(2), &[("large", 4), ("small", 3)], &[]).unwrap_err();
    assert_eq!((short.fitting, short.failed.len()), (0, 1), "{short:?}");
    assert_eq!(short.failed[0].0.to_string(), "large-3");
}

#[test]
fn pods_beyond_the_minimum_leave_room_for_what_there_must_be() {
    let tree = llm(2, "", &[("prefill", 1, ""), ("decode", 2, "")]);
    let placed = places(&mut cluster(&NODES[..4]), tree, &[("prefill", 4), ("decode", 2)], &[]).unwrap();
    assert_eq!(counts(&placed), of(&[("prefill", 2), ("decode", 2)]));
}

#[test]
fn of_more_groups_than_there_must_be_those_are_placed_that_find_room() {
    let groups = [("a", 3, ""), ("b", 1, ""), ("c", 1, "")];
    let pods = [("a", 3), ("b", 1), ("c", 1)];
    let placed = places(&mut cluster(&NODES[..3]), llm(2, "", &groups), &pods, &[]).unwrap();
    assert_eq!(counts(&placed), of(&[("b", 1), ("c", 1)]));
    let placed = places(&mut cluster(&NODES[..5]), llm(2, "", &groups), &pods, &[]).unwrap();
    assert_eq!(counts(&placed), of(&[("a", 3), ("b", 1), ("c", 1)]), "the others go with them");
}

#[test]
fn the_groups_of_a_zone_are_each_in_a_rack_of_it() {
    let racks = |placed: &BTreeMap<String, String>, group: &str| {
        let nodes = placed.iter().filter(|(pod, _)| pod.starts_with(group));
        let at = nodes.map(|(_, node)| NODES[node[1..].parse::<usize>().unwrap()]);
        let mut at: Vec<_> = at.collect();
        at.dedup();
        at
    };
    let tree = |of_root| llm(2, of_root, &[("prefill", 2, "rack"), ("decode", 2, "rack")]);
    let pods = [("prefill", 2), ("decode", 2)];
    let placed = places(&mut cluster(&NODES), tree("zone"), &pods, &[]).unwrap();
    let mut found = [racks(&placed, "prefill"), racks(&placed, "decode")];
    found.sort();
    assert_eq!(found, [[("z", "a")], [("z", "b")]], "zone y has room for one of them alone");
    // With one node of rack b taken, no zone has room for both, but the cluster has.
    let mut taken = cluster(&NODES);
    let whole = demand("other", ask(1, 16_000, 10));
    let decision = Classes::default().decide_on(&whole, &"n3".into(), &taken).unwrap();
    taken.charge("other".into(), charge(&"other".into(), &decision));
    let short = places(&mut taken, tree("zone"), &pods, &[]).unwrap_err();
    assert_eq!(short.domain, Some(("zone".into(), Some("y".into()))), "{short:?}");
    let placed = places(&mut taken, tree(""), &pods, &[]).unwrap();
    let mut found = [racks(&placed, "prefill"), racks(&placed, "decode")];
    found.sort();
    assert_eq!(found, [[("y", "c")], [("z", "a")]]);
}

#[test]
fn pods_that_come_later_go_where_those_of_their_groups_are() {
    let tree = || llm(1, "zone", &[("prefill", 1, "rack"), ("decode", 2, "")]);
    let at = |placed: &[(&str, &str)], pods: &[(&str, usize)]| {
        let mut snapshot = cluster(&NODES);
        for (at, (_, node)) in placed.iter().enumerate() {
            let uid = format!("placed-{at}");
            let whole = demand(&uid, ask(1, 16_000, 10));
            let decision = Classes::default().decide_on(&whole, &(*node).into(), &snapshot).unwrap();
            snapshot.charge(uid.as_str().into(), charge(&uid.as_str().into(), &decision));
        }
        places(&mut snapshot, tree(), pods, placed)
    };
    let placed = at(&[("prefill", "n2")], &[("prefill", 1)]).unwrap();
    assert_eq!(placed.values().collect::<Vec<_>>(), ["n3"], "the other node of its rack");
    let placed = at(&[("prefill", "n4")], &[("decode", 2)]);
    assert!(placed.is_err(), "the zone has one node left: {placed:?}");
    let placed = at(&[("prefill", "n0")], &[("decode", 2)]).unwrap();
    assert!(placed.values().all(|node| ["n1", "n2", "n3"].contains(&node.as_str())), "{placed:?}");
}

#[test]
fn where_the_first_label_has_no_node_each_pod_waits_for_that() {
    let tree = llm(1, "row", &[("prefill", 1, "")]);
    let short = places(&mut cluster(&NODES), tree, &[("prefill", 1)], &[]).unwrap_err();
    assert_eq!((short.domain, short.fitting), (Some(("row".into(), None)), 0));
    assert!(matches!(short.failed.as_slice(), [(_, None)]), "{:?}", short.failed);
}

/// A tree of three levels, how many pods there are of each of its PodGroups, and the zone and the rack of each node.
type TreeCase = (GroupTree, Vec<(String, usize)>, Vec<(&'static str, &'static str)>);

fn trees() -> impl Strategy<Value = TreeCase> {
    let labelled = || prop_oneof![3 => Just(""), 1 => Just("rack"), 1 => Just("zone")];
    let leaf_of = (1..4_usize, labelled(), 0..4_usize);
    let inner = (1..3_usize, labelled(), prop::collection::vec(leaf_of.clone(), 1..3));
    let parts = (prop::collection::vec(leaf_of, 0..3), prop::collection::vec(inner, 0..3));
    let places = prop_oneof![Just(("z", "a")), Just(("z", "b")), Just(("y", "c"))];
    (1..4_usize, labelled(), parts, prop::collection::vec(places, 0..8)).prop_map(
        |(least, key, (leaves, inners), places)| {
            let mut tree = GroupTree::new(name(GroupApi::Composite, "root"), least, label(key));
            let mut pods = Vec::new();
            let mut add = |tree: &mut GroupTree, at, (least, key, count): (usize, &str, usize)| {
                let of = format!("g{}", pods.len());
                tree.add(at, leaf(&of), least, label(key));
                pods.push((of, count));
            };
            for of_root in leaves {
                add(&mut tree, GroupTree::ROOT, of_root);
            }
            for (at, (least, key, leaves)) in inners.into_iter().enumerate() {
                let inner = name(GroupApi::Composite, &format!("inner{at}"));
                let inner = tree.add(GroupTree::ROOT, inner, least, label(key));
                for leaf in leaves {
                    add(&mut tree, inner, leaf);
                }
            }
            (tree, pods, places)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every group of which a pod is placed is whole and is at one value of its label. Without labels, a tree is placed whenever the nodes are enough.
    #[test]
    fn a_tree_is_placed_as_its_groups_say((tree, pods, nodes) in trees()) {
        let pods: Vec<(&str, usize)> = pods.iter().map(|(group, count)| (group.as_str(), *count)).collect();
        let mut snapshot = cluster(&nodes);
        let found = places(&mut snapshot, tree.clone(), &pods, &[]);
        let tally = |of: &dyn Fn(&str) -> usize| {
            let mut tally = Tally::default();
            for (group, _) in &pods {
                (0..of(group)).for_each(|_| tally.count(&Member { gang: leaf(group), task: None }));
            }
            tally
        };
        let Ok(placed) = found else {
            let there = tally(&|group| pods.iter().find(|(other, _)| *other == group).unwrap().1);
            let has_labels = tree.nodes().iter().any(|node| node.topology.is_some());
            let fewest = least_pods(&tree, GroupTree::ROOT, &there);
            prop_assert!(has_labels || fewest.is_none_or(|fewest| fewest > nodes.len()), "{fewest:?} pods would do");
            return Ok(());
        };
        let of_group = counts(&placed);
        let all = tally(&|group| of_group.get(group).copied().unwrap_or(0));
        let (wholes, sums) = (tree.wholes(&all), tree.sums(&all));
        prop_assert!(wholes[GroupTree::ROOT] && sums[GroupTree::ROOT] > 0);
        for (at, node) in tree.nodes().iter().enumerate() {
            prop_assert!(sums[at] == 0 || wholes[at], "{} is placed in part: {placed:?}", node.name);
            let Some(key) = &node.topology else { continue };
            let below = placed.iter().filter(|(pod, _)| {
                tree.chain(&leaf(pod.rsplit_once('-').unwrap().0)).any(|above| above == at)
            });
            let mut values: Vec<&str> = below
                .map(|(_, on)| nodes[on[1..].parse::<usize>().unwrap()])
                .map(|(zone, rack)| if **key == *"zone" { zone } else { rack })
                .collect();
            values.sort_unstable();
            values.dedup();
            prop_assert!(values.len() <= 1, "{} is on {values:?} of {key}", node.name);
        }
    }
}

/// With how many of these pods the group would be whole; `None`: with none. Each choice of its groups is tried.
fn least_pods(tree: &GroupTree, at: usize, there: &Tally) -> Option<usize> {
    let node = tree.node(at);
    if tree.is_leaf(at) {
        return (there.of_group(&node.name.group) >= node.least).then_some(node.least);
    }
    let children: Vec<_> = node.children.iter().map(|child| least_pods(tree, *child, there)).collect();
    let choices = (0_u32..1 << children.len()).filter(|choice| choice.count_ones() as usize == node.least);
    let sum = |choice: u32| {
        let chosen = children.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
        chosen.map(|(_, pods)| *pods).sum::<Option<usize>>()
    };
    choices.filter_map(sum).min()
}
