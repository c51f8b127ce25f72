//! Where an outlook says that a pod would go: what the scheduler itself would do, in words for a person.

use std::cell::Cell;

use super::*;
use crate::{
    device::Usage,
    object::Taint,
    scheduling::{
        Ask, Footprint, NodeInfo, ResourceAmounts,
        fixtures::{self, ask},
        model::{footprint::ClaimUse, kind::Kind},
        world::{
            node_state::{ClaimedOnNode, NodeAgents, NodeReserved},
            nodes::Nodes,
            object::{Object, Objects},
        },
    },
};

/// A node of this kind with nothing on it.
pub(in crate::scheduling) fn unused(info: NodeInfo) -> NodeState {
    let generation = info.name.bytes().fold(1, |sum, byte| 31 * sum + u64::from(byte));
    NodeState {
        info: Arc::new(info),
        usage: Usage::default(),
        claimed: ClaimedOnNode::default(),
        requested: ResourceAmounts::default(),
        pods: Vec::new(),
        reservations: NodeReserved::default(),
        anti_affinity: Vec::new(),
        agents: NodeAgents::default(),
        zone: None,
        classes: Arc::default(),
        generation,
        slot: 0,
    }
}

/// A node with so many cards of this size, and nothing on it.
pub(in crate::scheduling) fn node(name: &str, cards: u32, memory: u64) -> NodeState {
    unused(fixtures::node(name, cards, memory))
}

pub(in crate::scheduling) fn tainted(mut node: NodeState) -> NodeState {
    let taint = Taint { key: "keep".into(), value: String::new(), effect: "NoSchedule".into() };
    Arc::make_mut(&mut node.info).taints.push(taint);
    node
}

pub(in crate::scheduling) fn outlook(nodes: Vec<NodeState>, full: &[(&str, usize)]) -> Outlook {
    let full = full.iter().map(|&(node, length)| (node.into(), length)).collect();
    Outlook::new(world(nodes), full, ScoreWeights::default())
}

/// A cluster of these nodes and nothing else.
fn world(nodes: Vec<NodeState>) -> World {
    let mut slots = Nodes::default();
    for mut state in nodes {
        state.slot = slots.take_slot(&state.info.name);
        slots.put(Arc::new(state));
    }
    World { nodes: Arc::new(slots), ..World::default() }
}

fn demand(ask: &Ask) -> Demand {
    fixtures::demand("pod", ask.clone())
}

fn place(outlook: &Outlook, ask: &Ask) -> Result<Prospect, String> {
    let placed = outlook.place(&demand(ask), || ControlFlow::Continue(())).expect("it was never stopped");
    placed.map_err(|error| error.to_string())
}

#[test]
fn a_pod_that_fits_gets_node_and_cards_and_what_the_others_lack() {
    let nodes = vec![
        node("a", 1, 8_000),
        node("b", 2, 16_000),
        node("c", 1, 32_000),
        tainted(node("d", 1, 32_000)),
        tainted(node("e", 1, 32_000)),
    ];
    let prospect = place(&outlook(nodes, &[]), &ask(1, 12_000, 30)).unwrap();
    assert_eq!(prospect.place(), "c: GPU-c-0 (12000 MiB, 30 %)");
    assert_eq!(
        prospect.elsewhere(Details::Full).as_deref(),
        Some("1/4 other nodes are available: 1 Insufficient GPU memory, 2 node(s) had untolerated taint(s).")
    );
    assert_eq!(prospect.others.as_ref().unwrap().fitting, 1);
    assert!(prospect.score > 0.0);
}

#[test]
fn others_that_would_do_are_counted_and_none_are_not_spoken_of() {
    let alone = place(&outlook(vec![node("a", 1, 8_000)], &[]), &ask(1, 1000, 0)).unwrap();
    assert_eq!(alone.elsewhere(Details::Full), None);
    let nodes = vec![node("a", 1, 8_000), node("b", 1, 8_000), node("c", 1, 8_000)];
    let equal = place(&outlook(nodes, &[]), &ask(1, 1000, 0)).unwrap();
    assert_eq!(&*equal.node.info.name, "a", "equals go by name");
    assert_eq!(equal.elsewhere(Details::Full).as_deref(), Some("2/2 other nodes are available."));
}

#[test]
fn a_node_whose_line_is_full_is_passed_over_as_the_scheduler_does() {
    let nodes = || vec![node("a", 1, 8_000), node("b", 1, 16_000)];
    let to = |full: &[(&str, usize)]| {
        place(&outlook(nodes(), full), &ask(1, 1000, 0)).unwrap().node.info.name.to_string()
    };
    assert_eq!((to(&[]), to(&[("a", 8)]), to(&[("a", 8), ("b", 9)])), ("a".into(), "b".into(), "a".into()));
}

#[test]
fn a_pod_that_fits_nowhere_gets_the_reason_in_kube_schedulers_words() {
    let nodes = vec![node("a", 1, 8_000), tainted(node("b", 1, 32_000)), node("c", 0, 0)];
    let error = place(&outlook(nodes, &[]), &ask(1, 12_000, 0)).unwrap_err();
    let expected = "0/3 nodes are available: 1 Insufficient GPU memory, \
                    1 node(s) had no GPUs of the kind that the Pod asks for, 1 node(s) had untolerated taint(s). \
                    nearest: a lacks 4000 MiB on GPU-a-0; fits with at most 8000 MiB per card.";
    assert_eq!(error, expected);
    let empty = place(&outlook(Vec::new(), &[]), &ask(1, 1, 0)).unwrap_err();
    assert_eq!(empty, "0/0 nodes are available: no nodes.");
}

#[test]
fn many_cards_are_called_by_their_number() {
    let prospect = place(&outlook(vec![node("a", 8, 8_000)], &[]), &ask(8, 1000, 5)).unwrap();
    let place = prospect.place();
    assert!(place.starts_with("a: GPU 7 (1000 MiB, 5 %), GPU 6 (1000 MiB, 5 %), "), "{place}");
    assert_eq!(place.matches("MiB").count(), 8);
}

#[test]
fn judging_ends_when_it_is_stopped_and_then_returns_nothing() {
    let outlook = outlook((0..9).map(|at| node(&format!("n{at}"), 1, 8_000)).collect(), &[]);
    let asked = Cell::new(0);
    let stop_at = |limit: u32| {
        asked.set(0);
        outlook.place(&demand(&ask(1, 1000, 0)), || {
            asked.set(asked.get() + 1);
            if asked.get() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    };
    assert!(stop_at(4).is_none());
    assert_eq!(asked.get(), 5, "no further node is judged");
    assert!(stop_at(9).is_some());
}

#[test]
fn a_claim_for_one_pod_only_keeps_others_out_while_a_pod_uses_it() {
    let claim = serde_json::json!({
        "metadata": {"namespace": "default", "name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "pv"}});
    let volume = serde_json::json!({"metadata": {"name": "pv"}});
    let mut objects = Objects::default();
    objects.set(Object::PersistentVolumeClaim(serde_json::from_value(claim).unwrap()));
    objects.set(Object::PersistentVolume(serde_json::from_value(volume).unwrap()));
    for kind in Kind::ALL {
        objects.note_listed(*kind);
    }
    let objects = Arc::new(objects);
    let claims = [ClaimUse { name: "data".into(), owner: None }].into();
    let footprint = Arc::new(Footprint { namespace: "default".into(), claims, ..Footprint::default() });
    let demand = Demand { footprint: footprint.clone(), ..demand(&ask(1, 1000, 0)) };
    let place = |pods: Vec<Arc<Footprint>>| {
        let mut used = node("a", 1, 8_000);
        used.pods = pods;
        let world = World { objects: objects.clone(), ..world(vec![used, node("b", 1, 8_000)]) };
        let outlook = Outlook::new(world, BTreeMap::new(), ScoreWeights::default());
        outlook.place(&demand, || ControlFlow::Continue(())).expect("it was never stopped")
    };
    assert_eq!(&*place(Vec::new()).unwrap().node.info.name, "a");
    let error = place(vec![footprint]).unwrap_err().to_string();
    assert!(error.contains("ReadWriteOncePod access mode already in-use"), "{error}");
}
