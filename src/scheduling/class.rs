//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::{
    filter::filter,
    fit_error::FitError,
    node::NodeName,
    pod::{Ask, Uid},
    reason::NodeReasons,
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
    let offer = node.info.offer(&ask.profile.name).and_then(|offer| offer.inventory.as_ref());
    let inventory = offer.expect("a node without an inventory does not pass the filter");
    let score = score::node(ask, &node.info, inventory, &node.usage, &assignment);
    Ok((assignment, score))
}

impl NodeVerdict {
    /// What becomes of the node for this ask, whatever the quota.
    pub(super) fn of(ask: &Ask, node: &NodeState, device_resources: &BTreeSet<String>) -> Self {
        match judge(ask, node, device_resources, Quota::default()) {
            Ok((assignment, score)) => Self::Fits(score, usage::total(&assignment, InitPhase::Ahead)),
            Err(reasons) => Self::Fails(reasons),
        }
    }
}

/// The score of a node that fits whatever the quota, with this score and so much taken, under the quota; or why it would not do. Where
/// that would take too much, other cards of the node may do.
pub(super) fn within(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quota: Quota,
    (score, total): (f64, CardUsage),
) -> Result<f64, NodeReasons> {
    if quota.admits(total) {
        return Ok(score);
    }
    judge(ask, node, device_resources, quota).map(|(_, score)| score)
}

/// The best of the nodes that fit: a smaller `rank` comes before a higher score, 0 is the best; equals go by name.
pub fn best<'a>(
    fitting: impl IntoIterator<Item = (&'a NodeName, f64)>,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<&'a NodeName> {
    let mut best: Option<(usize, f64, &NodeName)> = None;
    for (name, score) in fitting {
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
    best.map(|(_, _, name)| name)
}

/// How a class came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    /// A pod of it was decided.
    Decided,
    /// It was only hinted at.
    Hinted,
}

/// One class of pods.
#[derive(Debug)]
struct Class {
    known: Known,
    verdicts: Vec<(u64, NodeVerdict)>,
    /// Pods that no node would have.
    waiting: BTreeSet<Uid>,
    /// What was last found to be too little of a quota, and of which generation the nodes were.
    too_little: Option<(Quota, u64, FitError)>,
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
    /// The asks that were only hinted at, oldest first.
    hinted: VecDeque<Arc<Ask>>,
}

/// Classes without waiting pods that are remembered; beyond, they are judged anew.
const REMEMBERED: usize = 1024;

/// Classes that are remembered beside those although no pod of them was decided: hints push out older hints and nothing else.
const HINTED: usize = 64;

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
        let (quotas, profile) = (snapshot.quotas(), &ask.profile.name);
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
        let class = self.judged(ask, snapshot, device_resources, Known::Decided);
        // Many pods may wait for one quota: what is too little for the first is so for all.
        if let Some((too_little, generation, error)) = &class.too_little
            && (*too_little, *generation) == (quota, snapshot.generation())
        {
            return Err((error.clone(), ByQuota::Some));
        }
        let mut refused: Vec<NodeReasons> = Vec::new();
        let judged = snapshot.slots().iter().zip(&class.verdicts);
        let fitting = judged.filter_map(|(state, (_, verdict))| {
            let (Some(state), NodeVerdict::Fits(score, total)) = (state, verdict) else { return None };
            let score = within(ask, state, device_resources, quota, (*score, *total));
            score.map(|score| (&state.info.name, score)).map_err(|reasons| refused.push(reasons)).ok()
        });
        if let Some(name) = best(fitting, rank) {
            return Ok(name.clone());
        }
        let error = class.fit_error(snapshot, &refused);
        if refused.is_empty() {
            return Err((error, ByQuota::None));
        }
        class.too_little = Some((quota, snapshot.generation(), error.clone()));
        Err((error, ByQuota::Some))
    }

    /// Judges for pods that may come: when one does, only nodes that have changed since are asked. Nothing else follows from it.
    pub fn warm(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot, device_resources: &BTreeSet<String>) {
        self.judged(ask, snapshot, device_resources, Known::Hinted);
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

    fn judged(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        by: Known,
    ) -> &mut Class {
        self.make_known(ask, by);
        let class = self.by_ask.get_mut(ask).expect("it was just made known");
        class.verdicts.resize_with(snapshot.slots().len(), || (0, NodeVerdict::Fails(Vec::new())));
        for (state, verdict) in snapshot.slots().iter().zip(&mut class.verdicts) {
            let Some(state) = state else { continue };
            if verdict.0 != state.generation {
                *verdict = (state.generation, NodeVerdict::of(ask, state, device_resources));
            }
        }
        class
    }

    fn make_known(&mut self, ask: &Arc<Ask>, by: Known) {
        match (self.by_ask.get_mut(ask), by) {
            (Some(class), Known::Decided) if class.known == Known::Hinted => {
                class.known = Known::Decided;
                self.hinted.retain(|hinted| hinted != ask);
            }
            (Some(_), _) => return,
            (None, Known::Decided) => {}
            (None, Known::Hinted) => {
                if self.hinted.len() >= HINTED {
                    let oldest = self.hinted.pop_front();
                    oldest.and_then(|oldest| self.by_ask.remove(&oldest));
                }
                self.hinted.push_back(ask.clone());
            }
        }
        if by == Known::Decided && self.by_ask.len() - self.hinted.len() > REMEMBERED {
            self.by_ask.retain(|known, class| {
                !class.waiting.is_empty() || class.known == Known::Hinted || known == ask
            });
        }
        let new = || Class { known: by, verdicts: Vec::new(), waiting: BTreeSet::new(), too_little: None };
        self.by_ask.entry(ask.clone()).or_insert_with(new);
    }
}

impl Class {
    /// Why each node failed; those that are refused for the quota would do without it.
    fn fit_error(&self, snapshot: &Snapshot, refused: &[NodeReasons]) -> FitError {
        let judged = snapshot.slots().iter().zip(&self.verdicts).filter(|(state, _)| state.is_some());
        let failed = judged.filter_map(|(_, (_, verdict))| match verdict {
            NodeVerdict::Fails(reasons) => Some(reasons),
            NodeVerdict::Fits(..) => None,
        });
        FitError::of_nodes(failed.chain(refused))
    }
}

#[cfg(test)]
mod tests;
