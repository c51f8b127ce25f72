//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
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
    /// The [`best`] node for an ask, or why there is none.
    pub fn best(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<NodeName, FitError> {
        let class = self.judged(ask, snapshot, device_resources, Known::Decided);
        let fitting = snapshot.slots().iter().zip(&class.verdicts);
        let fitting = fitting.filter_map(|(state, (_, verdict))| match (state, verdict) {
            (Some(state), NodeVerdict::Fits(score)) => Some((&state.info.name, *score)),
            _ => None,
        });
        best(fitting, rank).cloned().ok_or_else(|| class.fit_error(snapshot))
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

    fn judged(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        by: Known,
    ) -> &Class {
        self.make_known(ask, by);
        let class = self.by_ask.get_mut(ask).expect("it was just made known");
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
        let new = || Class { known: by, verdicts: Vec::new(), waiting: BTreeSet::new() };
        self.by_ask.entry(ask.clone()).or_insert_with(new);
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

#[cfg(test)]
mod tests;
