//! Places that pods hold without a container and give to others: which of these pods go so that another finds room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::Plan;
use crate::{
    device::{Allocation, CardId, DeviceType, Minor, ProfileName},
    scheduling::{
        decide::{Filters, blame::Resolvable, class::Classes},
        model::{
            name::{NodeName, Uid},
            pod::Demand,
            steps::JUDGE,
        },
        plugin::filter::filter,
        snapshot::Snapshot,
        world::{ledger::Charge, node_state::NodeState},
    },
};

/// Taking a place on trial and giving it back, in steps.
pub(super) const TAKE: u64 = 16 * JUDGE;

/// On so many nodes places are looked for at most.
const MOST_NODES: usize = 100;

/// A pod that gives its place to others, by its priority and since when it holds that.
pub(in crate::scheduling) type Holder = (i32, Timestamp, Uid);

/// Such pods by node, each in the order in which they go.
pub(in crate::scheduling) type Holders = BTreeMap<NodeName, Vec<Holder>>;

/// A card or a device by type, on its node.
pub(in crate::scheduling) type HeldCard = (NodeName, ProfileName, Result<CardId, Minor>);

/// The cards of the node on which a pod with these allocations holds something.
pub(in crate::scheduling) fn cards(node: &NodeName, allocations: &[Allocation]) -> BTreeSet<HeldCard> {
    let of = |allocation: &Allocation| {
        let shares = allocation.assignment.shares().map(|share| Ok(share.card.clone()));
        let devices = allocation.assignment.devices.get(&DeviceType::Gpu).into_iter().flatten();
        let devices = devices.map(|device| Err(device.minor));
        let cards: Vec<Result<CardId, Minor>> = shares.chain(devices).collect();
        let profile = allocation.profile.clone();
        cards.into_iter().map(move |card| (node.clone(), profile.clone(), card))
    };
    allocations.iter().flat_map(of).collect()
}

/// The node as it would be without these pods.
pub(in crate::scheduling) fn without(
    holders: Option<&Vec<Holder>>,
    node: &NodeName,
    snapshot: &mut Snapshot,
) -> Option<Arc<NodeState>> {
    let mut plan = Plan::new(snapshot);
    for (.., uid) in holders.into_iter().flatten() {
        plan.evict(uid);
    }
    plan.node(node).cloned()
}

/// As few of these pods as make room for one that fits nowhere, on the node where the least important pods go; `None`: there is no room
/// without them either.
pub(in crate::scheduling) fn choose(
    demand: &Demand,
    holders: Holders,
    classes: &mut Classes,
    snapshot: &mut Snapshot,
) -> Option<BTreeSet<Uid>> {
    let mut nodes: Vec<_> = holders.into_iter().collect();
    nodes.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut search = HeldPlaceSearch { demand, classes };
    let mut plan = Plan::new(snapshot);
    let nodes = nodes.iter().filter(|(node, _)| search.may_help(&plan, node));
    let nodes: Vec<_> = nodes.take(MOST_NODES).collect();
    nodes.into_iter().find_map(|(node, holders)| {
        let mark = plan.mark();
        let put_back = search.on_node(&mut plan, node, holders);
        plan.undo(mark);
        put_back
    })
}

/// Looks for places of pods that give them to others.
struct HeldPlaceSearch<'a> {
    demand: &'a Demand,
    classes: &'a mut Classes,
}

impl HeldPlaceSearch<'_> {
    /// Whether the node could have the pod if fewer pods were there.
    fn may_help(&self, plan: &Plan<'_>, node: &NodeName) -> bool {
        let Some(state) = plan.node(node) else { return false };
        match filter(&self.demand.ask, state, plan.device_resources(), &[]) {
            Ok(_) => true,
            Err(reasons) => Resolvable::on_node(&reasons) == Resolvable::Yes,
        }
    }

    /// The pods that go so that the node has room, as few as do; `None`: it has none without them either.
    fn on_node(&mut self, plan: &mut Plan<'_>, node: &NodeName, holders: &[Holder]) -> Option<BTreeSet<Uid>> {
        self.classes.counts().steps().add(TAKE, holders.len());
        let mut held: Vec<(Uid, Arc<Charge>)> = Vec::new();
        for (.., uid) in holders {
            held.push((uid.clone(), plan.evict(uid)?));
        }
        if !self.fits(plan, node) {
            return None;
        }
        let mut put_back = BTreeSet::new();
        // Those of the highest priority keep their places first, and of these those that have held theirs for the shortest time.
        for (uid, charge) in held.into_iter().rev() {
            plan.place(&uid, charge);
            if !self.fits(plan, node) {
                plan.evict(&uid);
                put_back.insert(uid);
            }
        }
        Some(put_back)
    }

    fn fits(&mut self, plan: &Plan<'_>, node: &NodeName) -> bool {
        let counts = self.classes.counts();
        counts.steps().add(JUDGE + self.demand.ask.cost(), 1);
        let filters = Filters::prepare(self.demand, plan.world(), counts);
        filters.rejected().is_none() && plan.node(node).is_some_and(|state| filters.passes(state))
    }
}
