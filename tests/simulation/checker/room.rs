//! Where a plain search finds room for a pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::called;
use crate::{
    device_claims::Claims,
    preemption::Preemptions,
    record::{Amount, Family, Pod, Wish, cards, text},
    spread,
};

/// The Bindings of one turn arrive in any order: a pod that was decided for another node, and so needs what is kept for it no more, is bound
/// there within this time, and so is a pod of higher priority to which what was kept has gone.
const ONE_TURN: SignedDuration = SignedDuration::from_secs(30);

/// A pod has lost what a node kept for it to another.
#[derive(Debug)]
pub(super) struct TakenAway {
    /// The pod that lost it.
    pod: Arc<Pod>,
    /// The pod that was bound.
    by: String,
    /// The node that was kept.
    node: String,
    /// The other pods that it had then.
    there: BTreeSet<String>,
    since: Timestamp,
    /// What is wrong if it is not bound elsewhere.
    pub(super) words: String,
}

impl TakenAway {
    /// Whether the pod has been bound to a node or is gone, or would have no room on the node by now even if the other had not been bound:
    /// pods of no lower priority have come to it.
    pub(super) fn is_excused(&self, pods: &[Arc<Pod>], nodes: &[Arc<Value>], claims: &Claims) -> bool {
        let waits = |pod: &Arc<Pod>| {
            pod.uid == self.pod.uid && pod.is_live() && !pod.terminating && pod.node.is_empty()
        };
        let Some(node) = called(nodes, &self.node).filter(|_| pods.iter().any(waits)) else { return true };
        let counts =
            |pod: &&Arc<Pod>| pod.priority >= self.pod.priority || self.there.contains(pod.uid.as_str());
        let without: Vec<_> =
            staying(pods).filter(|pod| pod.uid != self.by).filter(counts).cloned().collect();
        !would_fit(&self.pod, node, (nodes, claims), &without)
    }

    /// Whether it has waited for so long that no Binding of it can be under way.
    pub(super) fn is_wrong(&self, now: Timestamp) -> bool {
        self.since + ONE_TURN < now
    }
}

/// The pods for which a node is kept and that have no room any more since this pod has been bound there.
pub(super) fn taken_away(
    bound: &Pod,
    preemptions: &Preemptions,
    pods: &[Arc<Pod>],
    there: (&[Arc<Value>], &Claims),
    now: Timestamp,
) -> Vec<TakenAway> {
    let (nodes, _) = there;
    let Some(node) = called(nodes, &bound.node) else { return Vec::new() };
    let with: Vec<_> = staying(pods).cloned().collect();
    let without: Vec<_> = with.iter().filter(|pod| pod.uid != bound.uid).cloned().collect();
    let kept = preemptions.kept_before(bound, pods, now);
    let robbed =
        kept.filter(|pod| would_fit(pod, node, there, &without) && !would_fit(pod, node, there, &with));
    let there = without.iter().filter(|pod| pod.node == bound.node).map(|pod| pod.uid.clone());
    let there: BTreeSet<String> = there.collect();
    let taken = |pod: &Arc<Pod>| TakenAway {
        pod: pod.clone(),
        by: bound.uid.clone(),
        node: bound.node.clone(),
        there: there.clone(),
        since: now,
        words: format!("{} was given what {} is kept for {}", bound.name, bound.node, pod.name),
    };
    robbed.map(taken).collect()
}

/// The pods that are not about to go.
fn staying(pods: &[Arc<Pod>]) -> impl Iterator<Item = &Arc<Pod>> {
    pods.iter().filter(|pod| !pod.terminating && !pod.preempted)
}

/// Whether a plain search, container by container, finds room: if it does, there is some.
pub(super) fn would_fit(
    pod: &Pod,
    node: &Value,
    (nodes, claims): (&[Arc<Value>], &Claims),
    pods: &[Arc<Pod>],
) -> bool {
    let name = text(node, "/metadata/name");
    let Some((family, capacity)) = cards(node) else { return claims.would_fit_beside(pod, name, pods) };
    // Where these may go is left to the fresh look.
    if pod.apart || !pod.claims.is_empty() {
        return false;
    }
    let skewed = |zone| !spread::admits(&spread::counts(nodes, pods), zone);
    if pod.spreads && spread::zone(node).is_none_or(skewed) {
        return false;
    }
    if pod.family != Some(family) || pod.wishes.iter().filter(|wish| wish.cards > 0).count() != 1 {
        return false;
    }
    let mut used: BTreeMap<String, Amount> = BTreeMap::new();
    for other in pods.iter().filter(|other| other.is_live() && other.node == name) {
        for (card, amount) in other.may_hold() {
            let used = used.entry(card).or_default();
            *used = used.plus(amount);
        }
    }
    if !kubelet_would(pod, name, &capacity, pods) {
        return false;
    }
    let wish = pod.wishes.iter().find(|wish| wish.cards > 0).copied().unwrap_or_default();
    let free = capacity
        .iter()
        .filter(|(card, has)| takes(used.get(*card).copied().unwrap_or_default(), **has, &wish));
    free.count() >= wish.cards
}

/// Whether Kubernetes' own account of extended resources, which knows no cards, has room.
fn kubelet_would(pod: &Pod, node: &str, capacity: &BTreeMap<String, Amount>, pods: &[Arc<Pod>]) -> bool {
    let there = pods.iter().filter(|other| other.is_live() && other.node == node);
    let asked = there.map(|pod| pod.asks()).fold(pod.asks(), Amount::plus);
    let has = capacity.values().copied().fold(Amount::default(), Amount::plus);
    let counted = if pod.family == Some(Family::Hami) {
        Amount { slots: asked.slots, ..Amount::default() }
    } else {
        asked
    };
    counted.within(has)
}

fn takes(used: Amount, has: Amount, wish: &Wish) -> bool {
    let more = Amount { slots: 1, memory: wish.memory, cores: wish.cores };
    let exclusive = wish.cores >= 100 && used.slots > 0;
    used.plus(more).within(has) && !exclusive && used.cores < has.cores
}
