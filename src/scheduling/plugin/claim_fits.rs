//! On which nodes there are devices for claims: found anew where a node, its devices or what is held of them has changed, kept everywhere else. Of nodes
//! that are alike one is judged.

mod judged;
mod likenesses;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::dynamic_resources::alternatives::AlternativePoints;
use super::dynamic_resources::found::{FoundDevices, TakenByEach};
use super::dynamic_resources::rejection::ClaimRejection;
use crate::{
    dra::{GoOn, Selected},
    scheduling::{
        model::{name::NodeName, steps::Allowance},
        world::{
            World, by_slot,
            node_parts::PartId,
            node_state::NodeState,
            nodes::Nodes,
            resource_claims::{Beside, ChangedNodes, SpecId},
        },
    },
};
use judged::{JudgedNode, JudgedNodes};
use likenesses::{DescribedNodes, DeviceLikenesses, Likeness};

/// What claims ask for, the version of the classes by which that is read, and whether the pod asks for shares too.
pub(in crate::scheduling) type Asked = (u64, Beside, Vec<AskedOf>);

/// What one claim asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling) enum AskedOf {
    /// A claim that exists.
    Claim(SpecId),
    /// The one that is made for extended resources, as a text that is equal for pods for which the allocator finds the same.
    Extended(Arc<str>),
}

/// What the allocator finds on each node, for claims that ask for the same. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduling) struct NodeFits {
    judged: Arc<JudgedNodes>,
    /// The nodes that were judged.
    nodes: Arc<Nodes>,
    /// Whether all of them were, as they are now.
    is_of_all: bool,
    /// Whether nodes are left that were not judged.
    is_unfinished: bool,
}

impl NodeFits {
    /// Whether nodes are left that were not judged: the decision may take no longer.
    pub(in crate::scheduling) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Whether the node has devices for the claims, and what each of these claims takes of the node with them.
    pub(in crate::scheduling) fn on(&self, node: &NodeState) -> Result<TakenByEach, ClaimRejection> {
        let Some(found) = self.found(node) else { return Ok(TakenByEach::default()) };
        found.as_ref().map(|found| found.taken.clone()).map_err(Clone::clone)
    }

    /// By slot, whether it is known that the node lacks devices for the claims, as [`Self::on`] says; none where the nodes were not all looked at.
    pub(in crate::scheduling) fn lacking(&self) -> &[bool] {
        if self.is_of_all { self.judged.lacking() } else { &[] }
    }

    /// How early the alternatives are that the claims get on the node, if it has devices for them.
    pub(in crate::scheduling) fn points(&self, node: &NodeState) -> AlternativePoints {
        let found = self.found(node).and_then(|found| found.as_ref().ok());
        found.map(|found| found.points).unwrap_or_default()
    }

    /// Which of the node's devices selectors admit, as far as it is known.
    pub(in crate::scheduling) fn selected(&self, node: &NodeState) -> Selected {
        self.of(node).map(JudgedNode::selected).unwrap_or_default()
    }

    fn found(&self, node: &NodeState) -> Option<&Result<FoundDevices, ClaimRejection>> {
        self.of(node)?.found.as_deref()
    }

    fn of(&self, node: &NodeState) -> Option<&JudgedNode> {
        let in_slot = self.judged.of_generation(node.slot, node.generation);
        // The state is not the one that was judged.
        in_slot.or_else(|| self.judged.get(self.nodes.slot(&node.info.name)?))
    }
}

/// What is known of claims that ask for the same.
#[derive(Debug, Default)]
struct Known {
    judged: Arc<JudgedNodes>,
    /// Up to which version changes of claims and devices have been taken in.
    version: u64,
    /// The slots of nodes whose verdict holds for one decision, or that are still to be judged.
    unsettled: BTreeSet<usize>,
    /// The namespace of the claims that asked last, and when.
    asked_by: Arc<str>,
    asked_at: u64,
}

/// What the allocator finds on each node, by what claims ask for.
#[derive(Debug, Default)]
pub struct ClaimFits {
    by_asked: HashMap<Asked, Known>,
    likenesses: DeviceLikenesses,
    asked: u64,
    /// What a decision has left to be judged: the first since this was last taken.
    unfinished: Option<Unfinished>,
}

/// Nodes that were not judged for some claims: the decision may take no longer. Of those that are alike, one.
#[derive(Clone, Debug)]
pub(in crate::scheduling) struct Unfinished {
    pub(in crate::scheduling) asked: Asked,
    pub(in crate::scheduling) nodes: Vec<(usize, NodeName)>,
    /// What was found until then.
    judged: Arc<JudgedNodes>,
}

impl Unfinished {
    /// Which devices of the node in this slot selectors admit, as far as it is known.
    pub(in crate::scheduling) fn selected(&self, slot: usize) -> Selected {
        self.judged.get(slot).map(JudgedNode::selected).unwrap_or_default()
    }
}

/// What was found for one node beside the decisions.
#[derive(Clone, Debug)]
pub(in crate::scheduling) struct Compared {
    pub(in crate::scheduling) slot: usize,
    pub(in crate::scheduling) node: NodeName,
    pub(in crate::scheduling) generation: u64,
    pub(in crate::scheduling) stamp: u64,
    /// `None`: it was not found out.
    pub(in crate::scheduling) found: Option<Result<FoundDevices, ClaimRejection>>,
    pub(in crate::scheduling) selected: Selected,
}

/// So many different asks are remembered: few clusters have more than a handful of templates.
const REMEMBERED: usize = 256;

/// So many of them from one namespace, so that no namespace pushes out what others have asked for.
const REMEMBERED_OF_ONE: usize = 16;

/// Where so many nodes are to be judged, it is found out which of them are alike.
const MANY: usize = 16;

/// So many nodes are left to be compared at a time as long as it is not known which of them are alike: the next decision finds out about more.
const LEFT_AT_ONCE: usize = 64;

/// Who judges nodes for claims.
pub(in crate::scheduling) trait NodeJudge {
    /// Whether the node has devices for the claims.
    fn judge(
        &self,
        node: &NodeState,
        selected: &mut Selected,
        go_on: GoOn<'_>,
    ) -> Result<FoundDevices, ClaimRejection>;

    /// The attributes of devices that matter, by their full names; `None`: more of a node matters than its devices, or any attribute may.
    fn attributes(&self) -> Option<BTreeSet<String>>;
}

impl ClaimFits {
    /// On which nodes there are devices for the claims of a pod of this namespace, as `judge` finds out. It judges as many nodes as `allowance`
    /// has steps for; what is left can be taken by [`Self::take_unfinished`]. With `only`, it judges the node in this slot alone, and leaves the others to
    /// the next decision. Of nodes that are alike it judges the first.
    pub(in crate::scheduling) fn of(
        &mut self,
        (asked, namespace): (Asked, &Arc<str>),
        (world, only): (&World, Option<usize>),
        allowance: &mut Allowance,
        judge: &impl NodeJudge,
    ) -> NodeFits {
        if !self.by_asked.contains_key(&asked) {
            self.forget_for(namespace);
        }
        self.asked += 1;
        let known = self.by_asked.entry(asked.clone()).or_default();
        (known.asked_by, known.asked_at) = (namespace.clone(), self.asked);
        let mut outdated = known.outdated(world);
        if let Some(only) = only {
            known.unsettled.extend(outdated.extract_if(.., |slot| *slot != only));
        }
        let mut is_unfinished = false;
        let attributes = if outdated.len() < MANY { None } else { judge.attributes() };
        let described = attributes.map(|read| self.likenesses.of(&read, world, allowance));
        let mut alike = described.map_or_else(AlikeNodes::default, |nodes| known.alike(nodes, world));
        for slot in outdated {
            let likeness = described.and_then(|nodes| nodes.likeness(slot, world));
            if let Some((of, judged)) = likeness.and_then(|of| Some((of, *alike.get(&of.number)?))) {
                known.copy(judged, (slot, of));
            } else if is_unfinished {
                known.unsettled.insert(slot);
            } else if known.judge(slot, world, allowance, judge) == Judging::Interrupted {
                is_unfinished = true;
            } else if known.is_settled(slot) {
                alike.extend(likeness.map(|of| (of.number, slot)));
            }
        }
        let is_of_all = only.is_none() && !is_unfinished;
        let fits =
            NodeFits { judged: known.judged.clone(), nodes: world.nodes.clone(), is_of_all, is_unfinished };
        if is_unfinished && only.is_none() {
            let (nodes, judged) = (known.left(described, world), known.judged.clone());
            self.unfinished.get_or_insert(Unfinished { asked, nodes, judged });
        }
        fits
    }

    /// What a decision has left to be judged: the first since this was last called.
    pub(in crate::scheduling) fn take_unfinished(&mut self) -> Option<Unfinished> {
        self.unfinished.take()
    }

    /// What earlier decisions have left to be judged is no longer asked for.
    pub(in crate::scheduling) fn forget_unfinished(&mut self) {
        self.unfinished = None;
    }

    /// Takes in what was found beside the decisions, where it still holds.
    pub(in crate::scheduling) fn take_in(&mut self, asked: &Asked, compared: Vec<Compared>, world: &World) {
        let Some(known) = self.by_asked.get_mut(asked) else { return };
        for compared in compared {
            known.take_in(compared, world);
        }
    }

    /// Makes room for what a pod of this namespace asks.
    fn forget_for(&mut self, namespace: &str) {
        let own = || self.by_asked.iter().filter(|(_, known)| *known.asked_by == *namespace);
        let oldest = if own().count() >= REMEMBERED_OF_ONE {
            own().min_by_key(|(_, known)| known.asked_at)
        } else if self.by_asked.len() >= REMEMBERED {
            self.by_asked.iter().min_by_key(|(_, known)| known.asked_at)
        } else {
            None
        };
        if let Some(asked) = oldest.map(|(asked, _)| asked.clone()) {
            self.by_asked.remove(&asked);
        }
    }
}

/// By likeness, the slot of a node that was judged.
type AlikeNodes = HashMap<PartId, usize, FixedState>;

/// Whether a node was judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Judging {
    Done,
    Interrupted,
}

impl Known {
    /// The slots of the nodes that may have to be judged anew, in their order.
    fn outdated(&mut self, world: &World) -> Vec<usize> {
        let judged = Arc::make_mut(&mut self.judged);
        judged.resize(world.nodes.slots().len());
        let mut outdated = changed(world, judged.generations(), &mut self.version);
        outdated.extend(std::mem::take(&mut self.unsettled));
        in_order(outdated)
    }

    /// The nodes that were judged, by their likeness.
    fn alike(&self, described: &DescribedNodes, world: &World) -> AlikeNodes {
        let judged = self.judged.all().filter_map(|(slot, generation, judged)| {
            let likeness = described.likeness(slot, world)?;
            let is_of_now = (generation, judged.stamp) == (likeness.generation, Some(likeness.stamp));
            (is_of_now && !self.unsettled.contains(&slot)).then_some((likeness.number, slot))
        });
        judged.collect()
    }

    /// Whether what was found holds for more than one decision.
    fn is_settled(&self, slot: usize) -> bool {
        self.judged.get(slot).is_some_and(|judged| judged.stamp.is_some())
    }

    /// Takes what was found for the node in one slot for the node in another, which is like this.
    fn copy(&mut self, from: usize, (slot, likeness): (usize, Likeness)) {
        let Likeness { generation, stamp, .. } = likeness;
        let judged = Arc::make_mut(&mut self.judged);
        if let Some(found) = judged.get(from).and_then(|from| from.found.clone()) {
            judged.set(slot, (generation, Some(stamp)), found);
        }
    }

    /// The nodes that are still to be judged; of those that are alike, the first.
    fn left(&self, described: Option<&DescribedNodes>, world: &World) -> Vec<(usize, NodeName)> {
        let mut seen: HashSet<PartId, FixedState> = HashSet::default();
        let mut is_first = |slot: usize| {
            let likeness = described.and_then(|nodes| nodes.likeness(slot, world));
            likeness.is_none_or(|of| seen.insert(of.number))
        };
        let slots = self.unsettled.iter().copied().filter(|slot| is_first(*slot));
        let left = slots.filter_map(|slot| Some((slot, world.nodes.at(slot)?.info.name.clone())));
        let at_once =
            if described.is_some_and(|nodes| !nodes.are_complete()) { LEFT_AT_ONCE } else { usize::MAX };
        left.take(at_once).collect()
    }

    fn judge(
        &mut self,
        slot: usize,
        world: &World,
        allowance: &mut Allowance,
        judge: &impl NodeJudge,
    ) -> Judging {
        let judged = Arc::make_mut(&mut self.judged);
        if judged.get(slot).is_none() {
            return Judging::Done;
        }
        let Some(state) = world.nodes.at(slot) else {
            judged.clear(slot);
            return Judging::Done;
        };
        let (generation, stamp) = (state.generation, world.resource_claims().stamp(&state.info.name));
        if judged.of_generation(slot, generation).is_some_and(|judged| judged.stamp == Some(stamp)) {
            return Judging::Done;
        }
        let selected = judged.selected_mut(slot).get_or_insert_default();
        let found = judge.judge(state, selected, &mut |toll| allowance.take(toll));
        if is_unfinished(&found) {
            judged.outdate(slot);
            self.unsettled.insert(slot);
            return Judging::Interrupted;
        }
        self.set(slot, (generation, stamp), found);
        Judging::Done
    }

    fn set(
        &mut self,
        slot: usize,
        (generation, stamp): (u64, u64),
        found: Result<FoundDevices, ClaimRejection>,
    ) {
        // An error names the claim, which is another the next time.
        let keeps = !matches!(&found, Err(ClaimRejection::Undecidable(_)));
        let judged = Arc::make_mut(&mut self.judged);
        judged.set(slot, (generation, keeps.then_some(stamp)), Arc::new(found));
        if !keeps {
            self.unsettled.insert(slot);
        }
    }

    fn take_in(&mut self, compared: Compared, world: &World) {
        let Compared { slot, node, generation, stamp, found, selected } = compared;
        let Some(state) = world.nodes.at(slot).filter(|state| state.info.name == node) else { return };
        let judged = Arc::make_mut(&mut self.judged);
        if judged.get(slot).is_none() {
            return;
        }
        // Which devices selectors admit holds whatever else has changed.
        *judged.selected_mut(slot) = Some(Box::new(selected));
        let is_of_now = (state.generation, world.resource_claims().stamp(&node)) == (generation, stamp);
        if let Some(found) = found.filter(|_| is_of_now) {
            self.unsettled.remove(&slot);
            self.set(slot, (generation, stamp), found);
        }
    }
}

/// The slots of the nodes that may have changed, or whose devices may have, since each was in one of these generations and claims in this version, which
/// becomes that of now. A slot may be there twice.
fn changed(world: &World, generations: &[u64], version: &mut u64) -> Vec<usize> {
    let (claims, nodes) = (world.resource_claims(), &world.nodes);
    let before = std::mem::replace(version, claims.version());
    if before == 0 {
        // Nothing was known yet, so that it makes no difference what has changed.
        return (0..nodes.slots().len()).collect();
    }
    match claims.changed_since(before) {
        ChangedNodes::These(names) => {
            let mut changed = by_slot::changed(generations, nodes.generations());
            changed.extend(names.iter().filter_map(|name| nodes.slot(name)));
            changed
        }
        ChangedNodes::Any => (0..nodes.slots().len()).collect(),
    }
}

fn in_order(mut slots: Vec<usize>) -> Vec<usize> {
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Whether it was not found out whether the node has devices: that would take longer than the decision may.
pub(in crate::scheduling) fn is_unfinished<T>(found: &Result<T, ClaimRejection>) -> bool {
    matches!(found, Err(ClaimRejection::Unfinished))
}
