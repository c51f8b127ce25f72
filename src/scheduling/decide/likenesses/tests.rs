//! What is kept of descriptions is bounded by the nodes that there are.

use super::*;
use crate::scheduling::{Snapshot, fixtures};

#[test]
fn descriptions_of_no_node_are_forgotten() {
    let mut snapshot = Snapshot::default();
    let mut likenesses = Likenesses::default();
    for version in 0..4 * KEPT as u64 {
        snapshot.set_node(fixtures::node("a", 1, 1_000 + version));
        assert_eq!(likenesses.refresh(snapshot.world()), 1);
        assert_eq!(likenesses.refresh(snapshot.world()), 0, "nothing has changed");
    }
    assert!(likenesses.known.len() <= KEPT, "{}", likenesses.known.len());
}
