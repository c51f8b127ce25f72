//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    filter::filter,
    node::NodeName,
    pod::{Ask, Uid},
    reason::{FitError, NodeReasons},
    score,
    snapshot::{NodeState, Snapshot},
};
use crate::device::{Assignment, CardUsage, InitPhase, Quota, usage};

/// What a class makes of a node.
#[derive(Clone, Debug)]
pub enum NodeVerdict {
    /// It fits, whatever the quota: with this score, and so much of the quota taken.
    Fits(f64, CardUsage),
    /// It does not.
    Fails(NodeReasons),
}

/// Judges one node for one ask of a namespace that may still take so much: the cards that it would give and its score.
pub fn judge(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quota: Quota,
) -> Result<(Assignment, f64), NodeReasons> {
    let assignment = filter(ask, node, device_resources, quota)?;
    let offer = node.info.offer(ask.profile.name).and_then(|offer| offer.inventory.as_ref());
    let inventory = offer.expect("a node without an inventory does not pass the filter");
    let score = score::node(ask, &node.info, inventory, &node.usage, &assignment);
    Ok((assignment, score))
}

/// One class of pods.
#[derive(Debug)]
struct Class {
    verdicts: Vec<(u64, NodeVerdict)>,
    /// Pods that no node would have.
    waiting: BTreeSet<Uid>,
}

/// Whether nodes failed for the quota alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ByQuota {
    Some,
    None,
}

/// Every class.
#[derive(Debug, Default)]
pub struct Classes {
    by_ask: HashMap<Arc<Ask>, Class>,
    /// The asks with pods waiting, in the order in which they began to.
    waiting: Vec<Arc<Ask>>,
}

/// Classes without waiting pods that are remembered; beyond, they are judged anew.
const REMEMBERED: usize = 1024;

impl Classes {
    /// The best node for an ask of this namespace, and the cards that it would give: a smaller `rank` comes before a higher score, 0
    /// is the best; equals go by name.
    pub fn decide(
        &mut self,
        ask: &Arc<Ask>,
        namespace: &str,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<(NodeName, Assignment), FitError> {
        let (quotas, profile) = (snapshot.quotas(), ask.profile.name);
        if let Some(exceeded) = quotas.exceeded(namespace, profile, ask.request.least()) {
            return Err(FitError::of_quota(exceeded));
        }
        let quota = quotas.left(namespace, profile);
        let node = self.best(ask, snapshot, device_resources, quota, rank).map_err(|(error, cause)| {
            let standing = || quotas.standing(namespace, profile);
            if cause == ByQuota::Some { error.beside_quota(standing()) } else { error }
        })?;
        let state = snapshot.node(&node).expect("the best node is one of the snapshot");
        let judged = judge(ask, state, device_resources, quota);
        let (assignment, _) = judged.expect("a class's verdict is of the node as it is");
        Ok((node, assignment))
    }

    /// The best node, or why there is none.
    ///
    /// Verdicts are kept as they are without a quota. What an ask comes to is mostly the same on every node, and [`decide`] has
    /// compared that with the quota; where it depends on the cards, a node that would take too much is judged anew.
    ///
    /// [`decide`]: Self::decide
    fn best(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        quota: Quota,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<NodeName, (FitError, ByQuota)> {
        let class = self.judged(ask, snapshot, device_resources);
        let mut best: Option<(usize, f64, &NodeName)> = None;
        let mut refused: Vec<NodeReasons> = Vec::new();
        for (state, (_, verdict)) in snapshot.slots().iter().zip(&class.verdicts) {
            let (Some(state), NodeVerdict::Fits(score, total)) = (state, verdict) else {
                continue;
            };
            let score = if quota.admits(*total) {
                Ok(*score)
            } else {
                judge(ask, state, device_resources, quota).map(|(_, score)| score)
            };
            let score = match score {
                Ok(score) => score,
                Err(reasons) => {
                    refused.push(reasons);
                    continue;
                }
            };
            let name = &state.info.name;
            let Some((best_rank, best_score, best_name)) = best else {
                best = Some((rank(name), score, name));
                continue;
            };
            let scores_higher = score.total_cmp(&best_score).then_with(|| best_name.cmp(name)).is_gt();
            // The rank is looked up only where it can matter.
            if !scores_higher && best_rank == 0 {
                continue;
            }
            let own = rank(name);
            if own < best_rank || (own == best_rank && scores_higher) {
                best = Some((own, score, name));
            }
        }
        best.map(|(_, _, name)| name.clone()).ok_or_else(|| class.fit_error(snapshot, &refused))
    }

    /// How many pods of all classes wait for a node to change.
    pub fn waiting(&self) -> usize {
        let classes = self.waiting.iter().filter_map(|ask| self.by_ask.get(ask));
        classes.map(|class| class.waiting.len()).sum()
    }

    /// A pod of this class found no node: it waits for one to change.
    pub fn wait(&mut self, ask: &Arc<Ask>, uid: Uid) {
        let Some(class) = self.by_ask.get_mut(ask) else {
            return;
        };
        class.waiting.insert(uid);
        if !self.waiting.contains(ask) {
            self.waiting.push(ask.clone());
        }
    }

    /// A pod of this class waits no more.
    pub fn leave(&mut self, ask: &Arc<Ask>, uid: &Uid) {
        if let Some(class) = self.by_ask.get_mut(ask) {
            class.waiting.remove(uid);
            if class.waiting.is_empty() {
                self.waiting.retain(|waiting| waiting != ask);
            }
        }
    }

    /// Whether a pod of this class waits.
    pub fn holds(&self, ask: &Arc<Ask>, uid: &Uid) -> bool {
        self.by_ask.get(ask).is_some_and(|class| class.waiting.contains(uid))
    }

    /// The waiting pods that this node, as it now is, would have, were it not for their quotas.
    pub fn wake(&mut self, node: &NodeState, device_resources: &BTreeSet<String>) -> Vec<Uid> {
        let mut woken = Vec::new();
        let fits = |ask: &Arc<Ask>| filter(ask, node, device_resources, Quota::default()).is_ok();
        let (awake, asleep): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(fits);
        self.waiting = asleep;
        for ask in awake {
            woken.extend(
                self.by_ask
                    .get_mut(&ask)
                    .map(|class| std::mem::take(&mut class.waiting))
                    .into_iter()
                    .flatten(),
            );
        }
        woken
    }

    fn judged(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot, device_resources: &BTreeSet<String>) -> &Class {
        if self.by_ask.len() > REMEMBERED && !self.by_ask.contains_key(ask) {
            self.by_ask.retain(|_, class| !class.waiting.is_empty());
        }
        let new = || Class { verdicts: Vec::new(), waiting: BTreeSet::new() };
        let class = self.by_ask.entry(ask.clone()).or_insert_with(new);
        class.verdicts.resize_with(snapshot.slots().len(), || (0, NodeVerdict::Fails(Vec::new())));
        for (state, verdict) in snapshot.slots().iter().zip(&mut class.verdicts) {
            let Some(state) = state else { continue };
            if verdict.0 != state.generation {
                let judged = judge(ask, state, device_resources, Quota::default());
                let judged = judged.map_or_else(NodeVerdict::Fails, |(assignment, score)| {
                    NodeVerdict::Fits(score, usage::total(&assignment, InitPhase::Ahead))
                });
                *verdict = (state.generation, judged);
            }
        }
        class
    }
}

impl Class {
    /// Why each node failed; those that are refused for the quota would do without it.
    fn fit_error(&self, snapshot: &Snapshot, refused: &[NodeReasons]) -> (FitError, ByQuota) {
        let judged = snapshot.slots().iter().zip(&self.verdicts).filter(|(state, _)| state.is_some());
        let failed = judged.filter_map(|(_, (_, verdict))| match verdict {
            NodeVerdict::Fails(reasons) => Some(reasons),
            NodeVerdict::Fits(..) => None,
        });
        let cause = if refused.is_empty() { ByQuota::None } else { ByQuota::Some };
        (FitError::of_nodes(failed.chain(refused)), cause)
    }
}
