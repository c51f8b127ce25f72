//! Domains follow the labels of nodes, whichever slots the nodes are in.

use super::*;
use crate::scheduling::Snapshot;
use crate::scheduling::fixtures::node;

fn label(snapshot: &mut Snapshot, name: &str, zone: &str) {
    let mut info = node(name, 1, 8_000);
    info.labels = [("zone", zone)].into();
    snapshot.set_node(info);
}

fn unlooked() -> Arc<Topology> {
    Arc::new(Topology::of_key(&"zone".into()))
}

/// The domains of nodes with these zones, and the nodes.
fn zones(nodes: &[(&str, &str)]) -> (Arc<Topology>, Snapshot) {
    let mut snapshot = Snapshot::default();
    for (name, zone) in nodes {
        label(&mut snapshot, name, zone);
    }
    (unlooked().refreshed(snapshot.nodes.slots(), snapshot.nodes.generations()), snapshot)
}

fn domain(zones: &Topology, snapshot: &Snapshot, name: &str) -> Option<usize> {
    let node = snapshot.node(name).unwrap();
    assert_eq!(zones.of_node(node), zones.of_slot(node.slot));
    zones.of_node(node)
}

#[test]
fn nodes_with_one_value_are_in_one_domain_and_those_without_the_label_in_none() {
    let (zones, mut snapshot) = zones(&[("n1", "a"), ("n2", "b"), ("n3", "a")]);
    snapshot.set_node(node("n4", 1, 8_000));
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    let of = |name| domain(&zones, &snapshot, name);
    assert!(of("n1").is_some() && of("n1") == of("n3") && of("n2").is_some() && of("n1") != of("n2"));
    assert_eq!(of("n4"), None);
    assert_eq!(zones.numbers(), 2);
}

#[test]
fn a_node_that_got_another_label_or_came_into_a_free_slot_is_looked_at_again() {
    let (zones, mut snapshot) = zones(&[("n1", "a"), ("n2", "b")]);
    label(&mut snapshot, "n2", "a");
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(domain(&zones, &snapshot, "n2"), domain(&zones, &snapshot, "n1"));
    snapshot.remove_node("n1");
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(zones.of_slot(0), None);
    label(&mut snapshot, "n3", "c");
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(snapshot.node("n3").unwrap().slot, 0);
    assert_ne!(domain(&zones, &snapshot, "n3"), domain(&zones, &snapshot, "n2"));
}

#[test]
fn nodes_in_another_order_than_the_snapshots_are_not_mistaken() {
    let (_, snapshot) = zones(&[("n1", "a"), ("n2", "b")]);
    let reversed: Vec<_> = snapshot.nodes.slots().iter().rev().cloned().collect();
    let generations: Vec<_> = snapshot.nodes.generations().iter().rev().copied().collect();
    let zones = unlooked().refreshed(&reversed, &generations);
    let of = |name| zones.of_node(snapshot.node(name).unwrap());
    assert_eq!([of("n2"), of("n1")], [zones.of_slot(0), zones.of_slot(1)]);
    assert_ne!(of("n1"), of("n2"));
}

#[test]
fn domains_that_are_in_use_stay_as_they_are_and_are_shared_until_a_node_changes() {
    let (zones, mut snapshot) = zones(&[("n1", "a"), ("n2", "b")]);
    let in_use = zones.clone();
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert!(Arc::ptr_eq(&zones, &in_use));
    let mut pods = ByDomain::<i64>::of(in_use);
    *pods.of_slot_mut(1).unwrap() = 7;
    label(&mut snapshot, "n2", "c");
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!((zones.numbers(), pods.values()), (3, &[0, 7][..]));
}

#[test]
fn values_that_no_node_has_any_more_are_dropped() {
    let (mut zones, mut snapshot) = zones(&[("n1", "stays")]);
    for at in 0..100 {
        label(&mut snapshot, "n2", &format!("zone-{at}"));
        zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
        assert!(zones.numbers() <= 4, "{}", zones.numbers());
        assert_ne!(domain(&zones, &snapshot, "n1"), domain(&zones, &snapshot, "n2"));
    }
}

#[test]
fn the_nodes_of_each_domain_are_counted() {
    let (mut zones, mut snapshot) = zones(&[("n1", "a"), ("n2", "b"), ("n3", "a")]);
    assert_eq!(zones.nodes(), [2, 1]);
    label(&mut snapshot, "n3", "c");
    snapshot.remove_node("n1");
    snapshot.set_node(node("n4", 1, 8_000));
    zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(zones.nodes(), [0, 1, 1]);
    snapshot.set_node(node("n2", 1, 8_000));
    zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(zones.nodes(), [0, 0, 1]);
    assert_eq!(ByDomain::of_nodes(zones, |nodes| nodes > 0).values(), [false, false, true]);
}

#[test]
fn nodes_that_an_earlier_look_at_the_cluster_has_not_are_not_counted() {
    let (zones, mut snapshot) = zones(&[("n1", "a")]);
    let (slots, generations) = (snapshot.nodes.slots().to_vec(), snapshot.nodes.generations().to_vec());
    label(&mut snapshot, "n2", "a");
    let zones = zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations());
    assert_eq!(zones.nodes(), [2]);
    let zones = zones.refreshed(&slots, &generations);
    assert_eq!(zones.nodes(), [1]);
    assert_eq!(zones.refreshed(snapshot.nodes.slots(), snapshot.nodes.generations()).nodes(), [2]);
}
