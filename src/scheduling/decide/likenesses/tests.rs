//! What tells nodes apart that have no card of a plugin, and that what is kept of descriptions is bounded by the nodes that there are.

use std::ops::ControlFlow;

use serde_json::json;

use super::*;
use crate::scheduling::{
    Snapshot, fixtures,
    world::{descriptions::KEPT, object::Object},
};

/// How many nodes are described anew.
fn refresh(likenesses: &mut Likenesses, snapshot: &Snapshot) -> usize {
    let slots = 0..snapshot.world().nodes.slots().len();
    likenesses
        .refresh(snapshot.world(), slots, &mut || ControlFlow::Continue(()))
        .expect("it is never stopped")
}

#[test]
fn descriptions_of_no_node_are_forgotten() {
    let mut snapshot = Snapshot::default();
    let mut likenesses = Likenesses::default();
    for version in 0..4 * KEPT as u64 {
        snapshot.set_node(fixtures::node("a", 1, 1_000 + version));
        assert_eq!(refresh(&mut likenesses, &snapshot), 1);
        assert_eq!(refresh(&mut likenesses, &snapshot), 0, "nothing has changed");
    }
    let known = likenesses.descriptions.count();
    assert!(known <= KEPT, "{known}");
}

/// Nodes a and b, each with a card that a driver publishes and no plugin offers, of which a claim holds that of this node.
fn publishing(held: Option<&str>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in ["a", "b"] {
        snapshot.set_node(fixtures::node_offering(node, Vec::new()));
        let slice = json!({
            "metadata": {"name": node},
            "spec": {
                "driver": "gpu.example.com", "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{
                    "name": "gpu-0", "attributes": {"uuid": {"string": format!("GPU-{node}")}},
                    "capacity": {"memory": {"value": "16Gi"}},
                }],
            },
        });
        snapshot.set_object(Object::ResourceSlice(serde_json::from_value(slice).unwrap()));
    }
    if let Some(node) = held {
        let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"});
        let claim = json!({
            "metadata": {"name": "c", "namespace": "default", "uid": "c"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        });
        snapshot.set_object(Object::ResourceClaim(serde_json::from_value(claim).unwrap()));
    }
    snapshot
}

#[test]
fn what_claims_hold_of_cards_that_no_plugin_offers_tells_nodes_apart() {
    let are_alike = |held| {
        let snapshot = publishing(held);
        let mut likenesses = Likenesses::default();
        refresh(&mut likenesses, &snapshot);
        let slots = ["a", "b"].map(|node| snapshot.world().node(node).unwrap().slot);
        let [one, other] = slots.map(|slot| likenesses.key(slot, &[NodePart::Rest]));
        one == other
    };
    assert!(are_alike(None));
    assert!(!are_alike(Some("a")));
}
