//! Which cards of nodes become free together when which pods go.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{MovablePod, MovablePods, MoveGoal, NodeCard, Unmovable};
use crate::device::{CardId, CardUsage, ModelFilter};
use crate::scheduling::{
    model::{
        gang::{Membership, Policy},
        name::{NodeName, Uid},
        pod::{Deletion, PodInfo, Stage},
    },
    plan::{eviction::budgets::EvictionBudgets, preemption::whole_group},
    snapshot::Snapshot,
    world::{
        ledger::{Charge, Commitment},
        node_state::NodeState,
        object::Objects,
    },
};

/// Cards of one node that become free when these pods go.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) node: NodeName,
    pub(super) cards: BTreeSet<CardId>,
    /// The largest first.
    pub(super) pods: Vec<Uid>,
}

/// All of them, the cheapest first.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) all: Vec<Candidate>,
    /// The pods that may move, whichever cards they hold.
    pub(super) movable: Vec<Uid>,
    /// How many pods hold cards that count and can't be moved, by reason.
    pub(super) kept: BTreeMap<Unmovable, usize>,
}

/// What moving the pods of a candidate costs; of two that cost as much, the first by name comes first.
type Cost = (u64, i32, Reverse<Option<jiff::Timestamp>>, u64);

impl Candidate {
    /// The pods to move for each card that becomes free, the most important of them, how long ago the last was started, and what they hold.
    fn cost(&self, pods: &MovablePods, snapshot: &Snapshot) -> Cost {
        let movable = || self.pods.iter().filter_map(|uid| pods.movable.get(uid));
        let importance = movable().map(|pod| pod.info.importance.priority).max().unwrap_or(0);
        let youngest = movable().map(|pod| pod.info.importance.started).min().flatten();
        let held: u64 = self.pods.iter().map(|uid| memory(snapshot, uid)).sum();
        let each = self.pods.len() * 1_000 / self.cards.len().max(1);
        (each as u64, importance, Reverse(youngest), held)
    }
}

impl Candidates {
    /// Those of a cluster for a goal.
    pub(super) fn of(snapshot: &Snapshot, pods: &MovablePods, goal: &MoveGoal) -> Self {
        let mut found: BTreeMap<Vec<Uid>, Candidate> = BTreeMap::new();
        let mut kept = BTreeMap::new();
        // A pod with a whole card could only take another one.
        let is_any = goal.node.is_none() && goal.models == ModelFilter::default();
        let budgets = EvictionBudgets::new(snapshot.objects());
        let may_move = |uid: &Uid| is_movable(snapshot, pods, &budgets, uid);
        for state in snapshot.nodes() {
            let counted: Vec<&CardId> = goal.counted(state).collect();
            if counted.is_empty() {
                continue;
            }
            let users = users(snapshot, state);
            let holders: BTreeSet<&Uid> =
                counted.iter().filter_map(|card| users.get(*card)).flatten().collect();
            let mut held_back = BTreeSet::new();
            for uid in holders {
                if let Err(reason) = may_move(uid) {
                    *kept.entry(reason).or_insert(0) += 1;
                    held_back.insert(uid);
                }
            }
            for card in &counted {
                let Some(of_card) = users.get(*card).filter(|users| !users.is_empty()) else { continue };
                let stays =
                    |uid: &Uid| held_back.contains(uid) || (is_any && takes_whole(snapshot, state, uid));
                if of_card.iter().any(stays) {
                    continue;
                }
                let freed = counted.iter().filter(|other| {
                    users.get(**other).is_some_and(|users| !users.is_empty() && users.is_subset(of_card))
                });
                let cards: BTreeSet<CardId> = freed.map(|card| (*card).clone()).collect();
                let mut pods: Vec<Uid> = of_card.iter().cloned().collect();
                pods.sort_by_cached_key(|uid| Reverse(memory(snapshot, uid)));
                found.entry(pods.clone()).or_insert(Candidate { node: state.info.name.clone(), cards, pods });
            }
        }
        let mut all: Vec<Candidate> = found.into_values().collect();
        all.sort_by_cached_key(|one| (one.cost(pods, snapshot), one.node.clone(), one.cards.clone()));
        let movable = pods.movable.keys().filter(|uid| may_move(uid).is_ok()).cloned().collect();
        Self { all, movable, kept }
    }
}

/// The pods that hold something of each card of a node, by the name by which the card is counted.
fn users(snapshot: &Snapshot, state: &NodeState) -> BTreeMap<CardId, BTreeSet<Uid>> {
    let devices = &state.info.devices;
    let mut users: BTreeMap<CardId, BTreeSet<Uid>> = BTreeMap::new();
    for (uid, charge) in snapshot.ledger().on_node(&state.info.name) {
        for share in charge.shares() {
            let counted = devices.cards.iter().find(|counted| devices.is_one_card(&counted.id, &share.card));
            if let Some(counted) = counted {
                users.entry(counted.id.clone()).or_default().insert(uid.clone());
            }
        }
    }
    users
}

/// Whether the pod may be moved now.
fn is_movable(
    snapshot: &Snapshot,
    pods: &MovablePods,
    budgets: &EvictionBudgets<'_>,
    uid: &Uid,
) -> Result<(), Unmovable> {
    let unmovable = || pods.unmovable.get(uid).copied().unwrap_or(Unmovable::Unsettled);
    let MovablePod { info, readiness, .. } = pods.movable.get(uid).ok_or_else(unmovable)?;
    let charge = snapshot.ledger().get(uid).ok_or(Unmovable::Unsettled)?;
    if !is_settled(info, charge) {
        return Err(Unmovable::Unsettled);
    }
    if is_of_gang(info, snapshot.objects()) {
        return Err(Unmovable::Gang);
    }
    // Each pod is evicted once the successor of the one before stands, so that budgets are as they were.
    budgets.allow(info, *readiness).map_err(|_| Unmovable::Budget)
}

fn is_settled(info: &PodInfo, charge: &Charge) -> bool {
    info.stage == Stage::Running
        && info.importance.deletion == Deletion::None
        && charge.commitment == Commitment::Bound
        && charge.allocations.iter().all(|allocation| allocation.unknown.is_none())
}

fn is_of_gang(info: &PodInfo, objects: &Objects) -> bool {
    if whole_group(&info.importance, objects).is_some() {
        return true;
    }
    let membership = info.groups.gang().map(|member| objects.membership(&member.gang));
    membership.is_some_and(|membership| membership != Membership::Policy(Policy::Alone))
}

/// Whether a pod holds a whole card.
fn takes_whole(snapshot: &Snapshot, state: &NodeState, uid: &Uid) -> bool {
    let Some(charge) = snapshot.ledger().get(uid) else { return false };
    charge.shares().any(|share| {
        let card = state.info.devices.cards_named(&share.card).next();
        card.is_some_and(|(_, card)| {
            share.memory >= card.memory || (card.cores.get() > 0 && share.cores >= card.cores)
        })
    })
}

/// What the pod holds of memory of cards, in MiB.
fn memory(snapshot: &Snapshot, uid: &Uid) -> u64 {
    let shares = snapshot.ledger().get(uid).into_iter().flat_map(Charge::shares);
    shares.map(|share| share.memory.get()).fold(0, u64::saturating_add)
}

/// The cards that count and of which nothing is in use.
pub(super) fn free(snapshot: &Snapshot, goal: &MoveGoal) -> BTreeSet<NodeCard> {
    let of_node = |state: &NodeState| {
        let free = goal.counted(state).filter(|card| state.usage.card(card) == CardUsage::default());
        free.map(|card| NodeCard { node: state.info.name.clone(), card: card.clone() }).collect::<Vec<_>>()
    };
    snapshot.nodes().flat_map(|state| of_node(state)).collect()
}
