//! Whether a node that its operator keeps for shares may have a pod: one that asks for no share stays away from it.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use smallvec::smallvec;

use super::{
    contract::{Cure, PreFilter, PreFiltered, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::PodCounts,
};
use crate::scheduling::{
    model::{
        change::Change, extended_resources::ExtendedRequests, footprint::Footprint, kind::Kind, pod::Demand,
    },
    world::{World, node_state::NodeState, object::Objects},
};

/// Rejects a node that is kept for shares, for a pod that asks for none: for no GPU cards, no devices and no claim of devices.
#[derive(Debug)]
pub struct SharesOnly;

impl SchedulingPlugin for SharesOnly {
    const NAME: &'static str = "SharesOnly";
    // A pod's claims are no part of its ask.
    const REACH: Reach = Reach::Cluster;

    type Reason = KeptForShares;

    fn helps(_pod: &Footprint, change: &Change, _objects: &Objects) -> bool {
        matches!(change, Change::Node | Change::Object(Kind::DeviceClass, _))
    }
}

impl PreFilter for SharesOnly {
    type Found<'a> = Shareless<'a>;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        _counts: &mut PodCounts,
    ) -> Result<Option<Shareless<'a>>, KeptForShares> {
        let Demand { ask, footprint, .. } = demand;
        let asks = !ask.devices.is_empty() || !footprint.resource_claims.is_empty();
        let (extended, own) = (footprint.extended.as_ref(), world.device_resources());
        Ok((!asks && world.nodes.has_shares_only()).then_some(Shareless { extended, own }))
    }
}

/// A pod that asks for no share, unless a node serves its extended resources by a claim of devices.
#[derive(Debug)]
pub struct Shareless<'a> {
    extended: Option<&'a Arc<ExtendedRequests>>,
    /// Resources of the dialects' own.
    own: &'a BTreeSet<String>,
}

impl PreFiltered<'_, KeptForShares> for Shareless<'_> {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<KeptForShares>> {
        let by_claim = || self.extended.is_some_and(|asked| !asked.served_on(node, self.own).is_empty());
        if node.info.is_for_shares_only() && !by_claim() { Err(smallvec![KeptForShares]) } else { Ok(()) }
    }
}

/// The node is kept for shares, and the pod asks for none.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) were reserved for Pods with a GPU share")]
pub struct KeptForShares;

impl Rejection for KeptForShares {
    fn name(&self) -> Cow<'static, str> {
        SharesOnly::NAME.into()
    }

    fn cure(&self) -> Cure {
        Cure::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        Snapshot,
        fixtures::{ask, demand, node},
        model::{label_set::LabelSet, node::SHARES_ONLY},
    };

    /// Whether a node with this value of the label rejects the pod.
    fn rejects(demand: &Demand, label: &str) -> bool {
        let mut info = node("a", 1, 8_000);
        info.labels = [(SHARES_ONLY, label)].into();
        let mut snapshot = Snapshot::default();
        snapshot.set_node(info);
        let found = SharesOnly::prepare(demand, snapshot.world(), &mut PodCounts::default());
        let state = snapshot.node("a").unwrap();
        found.unwrap().is_some_and(|found| found.test(state).is_err())
    }

    #[test]
    fn a_node_with_the_label_rejects_a_pod_without_a_share() {
        let share = demand("pod", ask(1, 1_000, 0));
        let mut plain = share.clone();
        Arc::make_mut(&mut plain.ask).devices.clear();
        assert!(rejects(&plain, "true"));
        assert!(!rejects(&plain, "false"), "the value decides");
        assert!(!rejects(&share, "true"));
        let mut claiming = plain.clone();
        let used = crate::scheduling::model::claim_use::ResourceClaimUse {
            entry: "gpu".into(),
            claim: Some("shared".into()),
            source: crate::scheduling::model::claim_use::ClaimSource::Named,
        };
        Arc::make_mut(&mut claiming.footprint).resource_claims.push(used);
        assert!(!rejects(&claiming, "true"), "a claim of devices is a share");
    }

    #[test]
    fn no_node_is_tested_while_none_has_the_label() {
        let mut plain = demand("pod", ask(1, 1_000, 0));
        Arc::make_mut(&mut plain.ask).devices.clear();
        let mut kept = node("b", 1, 8_000);
        kept.labels = [(SHARES_ONLY, "true")].into();
        let mut snapshot = Snapshot::default();
        snapshot.set_node(node("a", 1, 8_000));
        let tests = |snapshot: &Snapshot| {
            SharesOnly::prepare(&plain, snapshot.world(), &mut PodCounts::default()).unwrap().is_some()
        };
        assert!(!tests(&snapshot));
        snapshot.set_node(kept.clone());
        assert!(tests(&snapshot));
        kept.labels = LabelSet::default();
        snapshot.set_node(kept.clone());
        assert!(!tests(&snapshot), "it has lost the label");
        kept.labels = [(SHARES_ONLY, "true")].into();
        snapshot.set_node(kept);
        snapshot.remove_node("b");
        assert!(!tests(&snapshot), "it is gone");
    }
}
