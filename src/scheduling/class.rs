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
use crate::device::Assignment;

/// What a class makes of a node.
#[derive(Clone, Debug)]
pub enum NodeVerdict {
    /// It fits, with this score.
    Fits(f64),
    /// It does not.
    Fails(NodeReasons),
}

/// Judges one node for one ask: the cards that it would give and its score.
pub fn judge(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
) -> Result<(Assignment, f64), NodeReasons> {
    let assignment = filter(ask, node, device_resources)?;
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
    /// The best node for an ask: a smaller `rank` comes before a higher score, 0 is the best; equals go by name.
    pub fn best(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<NodeName, FitError> {
        let class = self.judged(ask, snapshot, device_resources);
        let mut best: Option<(usize, f64, &NodeName)> = None;
        for (state, (_, verdict)) in snapshot.slots().iter().zip(&class.verdicts) {
            let (Some(state), NodeVerdict::Fits(score)) = (state, verdict) else {
                continue;
            };
            let name = &state.info.name;
            let Some((best_rank, best_score, best_name)) = best else {
                best = Some((rank(name), *score, name));
                continue;
            };
            let scores_higher = score.total_cmp(&best_score).then_with(|| best_name.cmp(name)).is_gt();
            // The rank is looked up only where it can matter.
            if !scores_higher && best_rank == 0 {
                continue;
            }
            let own = rank(name);
            if own < best_rank || (own == best_rank && scores_higher) {
                best = Some((own, *score, name));
            }
        }
        best.map(|(_, _, name)| name.clone()).ok_or_else(|| class.fit_error(snapshot))
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

    /// The waiting pods that this node, as it now is, would have.
    pub fn wake(&mut self, node: &NodeState, device_resources: &BTreeSet<String>) -> Vec<Uid> {
        let mut woken = Vec::new();
        let fits = |ask: &Arc<Ask>| filter(ask, node, device_resources).is_ok();
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
                let judged = judge(ask, state, device_resources);
                let judged = judged.map_or_else(NodeVerdict::Fails, |(_, score)| NodeVerdict::Fits(score));
                *verdict = (state.generation, judged);
            }
        }
        class
    }
}

impl Class {
    fn fit_error(&self, snapshot: &Snapshot) -> FitError {
        let judged = snapshot.slots().iter().zip(&self.verdicts).filter(|(state, _)| state.is_some());
        FitError::of_nodes(judged.filter_map(|(_, (_, verdict))| match verdict {
            NodeVerdict::Fails(reasons) => Some(reasons),
            NodeVerdict::Fits(_) => None,
        }))
    }
}
