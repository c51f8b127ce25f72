//! Pods that are decided for a node and do not stay there.
//!
//! What a pod was decided by may change with each of its decisions, and without end.

use std::collections::BTreeMap;

use crate::scheduling::model::name::Uid;

/// A pod that nodes have turned away so often in one turn is not decided again in it.
const MOST: u32 = 3;

/// How often nodes have turned away each pod in this turn.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct TurnedAway(BTreeMap<Uid, u32>);

impl TurnedAway {
    /// The node that the pod was decided for turns it away; whether it may be decided again in this turn.
    pub(in crate::scheduling::scheduler) fn note(&mut self, pod: &Uid) -> bool {
        let times = self.0.entry(pod.clone()).or_default();
        *times += 1;
        *times < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_nodes_turn_away_time_and_again_is_not_decided_again() {
        let mut turned_away = TurnedAway::default();
        let pods = ["a", "b"].map(Uid::from);
        assert_eq!([(); 4].map(|()| turned_away.note(&pods[0])), [true, true, false, false]);
        assert!(turned_away.note(&pods[1]));
    }
}
