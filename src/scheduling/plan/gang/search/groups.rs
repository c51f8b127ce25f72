//! The search for places for a tree of groups: group by group, so that no pod of a group that finds too few places takes room from others.
//!
//! A group is tried with all its pods or groups, and nothing of it is placed where too few of them find room. A group whose pods share a value of a
//! node label is tried on the nodes of one value after another, among those that the groups above leave it. The first order places as many pods of
//! each group as find room. Where that leaves others too little, a second one places only as many of each as there must be, those groups first that
//! lack the fewest pods, and the rest behind.
//! Source for the order: kubernetes v1.37 `pkg/scheduler/schedule_one_podgroup.go` (`compositePodGroupSchedulingDefaultAlgorithm`), which has the
//! first alone.
//!
//! A search that goes on later goes the same way again: places that were found are confirmed, and values of a label that were tried are passed over.

#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    rc::Rc,
    sync::Arc,
};

use super::{Found, Ground, Placed, fails_alike, nodes_by_value};
use crate::scheduling::{
    decide::{Decision, fit_error::FitError},
    model::{
        gang::tree::GroupTree,
        name::{NodeName, Uid},
    },
    plan::{
        Savepoint,
        gang::{
            order::size,
            place::{GangShortfall, NodesByValue, OUTSIDE, TrialRoom},
            pool::{Applicant, Pool},
        },
    },
};

/// Whether node labels are observed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Scope {
    /// Not yet: where pods find no room anywhere, each says why.
    #[default]
    Anywhere,
    /// Each group is placed on nodes with one value of its label.
    Domains,
}

/// How many pods of a group are placed before others are looked at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Portion {
    /// As many as find room, in the order of the queue.
    #[default]
    All,
    /// As many as there must be: the smallest, the largest of them first. Of groups, those that lack the fewest pods.
    Least,
}

/// How far the search for places for a tree of groups is.
#[derive(Debug, Default)]
pub(super) struct TreeSearch {
    scope: Scope,
    portion: Portion,
    /// What the first portion came to, while the second is tried.
    shortfall: Option<GangShortfall>,
    /// What was found so far in the trial under way.
    found: HashMap<Uid, Found>,
    /// Of each group whose pods share a value of a label, the values.
    domains: BTreeMap<usize, GroupDomains>,
}

/// The values of a node label that a group may be placed at.
#[derive(Debug)]
struct GroupDomains {
    /// Those that are still to be tried.
    left: VecDeque<Arc<str>>,
    /// The value with room for most, of those that were tried, and which pods find none there.
    best: Option<(Arc<str>, GroupTrial, Failed)>,
    /// Where the group goes.
    chosen: Option<Arc<str>>,
}

/// Pods that find no place, and why; no error where they would outside the domain.
type Failed = Vec<(Uid, Option<FitError>)>;

/// What came of placing a group.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct GroupTrial {
    /// Whether enough of it find room; if not, nothing of it is placed.
    whole: bool,
    /// How many pods are placed.
    placed: usize,
    /// How many of its pods hold a place or find one, or how many of its groups are whole.
    fitting: usize,
    /// Whether nothing of it is left over.
    complete: bool,
}

/// What there is of each group before one is tried.
struct GroupPools<'s> {
    /// The pods that are to be placed of each group, in the order of the queue.
    applicants: BTreeMap<usize, Vec<&'s Applicant>>,
    /// How many pods of each group hold a place.
    held: Vec<usize>,
    /// How many each group lacks at least.
    needs: Vec<usize>,
    /// Where the first pod of each group is in the queue.
    first: BTreeMap<usize, usize>,
}

/// One way through the tree.
struct Walk<'w, 's, 'p, R> {
    search: &'w mut TreeSearch,
    tree: &'s GroupTree,
    ground: &'w mut Ground<'s, 'p, R>,
    rank: &'w dyn Fn(&NodeName) -> usize,
    groups: GroupPools<'s>,
    /// The nodes with each value of the labels that were looked up.
    labels: HashMap<Arc<str>, Rc<NodesByValue>>,
    /// The domains that the group under way is in.
    inside: Vec<(Rc<NodesByValue>, Arc<str>)>,
    /// The groups in those that were placed which were found whole.
    whole: BTreeSet<usize>,
    placed: Vec<(Uid, Decision)>,
    failed: Failed,
    /// The label of which no value has room for a group, with the best value.
    domain: Option<(Arc<str>, Option<Arc<str>>)>,
}

/// A point of a walk that can be gone back to.
#[derive(Clone, Copy)]
struct Waypoint {
    plan: Savepoint,
    placed: usize,
}

impl TreeSearch {
    /// As [`GangSearch::go_on`](super::GangSearch::go_on), for the part of the tree that the pool says.
    pub(super) fn go_on<'s, R: TrialRoom>(
        &mut self,
        tree: &'s GroupTree,
        ground: &mut Ground<'s, '_, R>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Option<Placed> {
        let (mark, part) = (ground.plan.mark(), ground.pool.part);
        loop {
            let mut walk = Walk::new(self, tree, ground, rank);
            walk.enter_domains_above(part);
            let trial = walk.place(part)?;
            if trial.whole && walk.search.portion == Portion::Least {
                walk.place_rest(part)?;
            }
            // Pods beyond the minimum are no success where none of them is placed.
            if trial.whole && !walk.placed.is_empty() {
                if walk.search.scope == Scope::Domains || !tree.has_topology(part) {
                    return Some(Ok(walk.placed));
                }
                ground.plan.undo(mark);
                *self = Self { scope: Scope::Domains, ..Self::default() };
                continue;
            }
            let Walk { failed, domain, .. } = walk;
            let shortfall = GangShortfall { fitting: trial.fitting, failed, domain };
            ground.plan.undo(mark);
            if let Some(shortfall) = self.shortfall.take() {
                return Some(Err(shortfall));
            }
            let (scope, portion) = (self.scope, Portion::Least);
            *self = Self { scope, portion, shortfall: Some(shortfall), ..Self::default() };
        }
    }
}

impl<'s> GroupPools<'s> {
    fn of(tree: &GroupTree, pool: &'s Pool<'_>) -> Self {
        let (mut applicants, mut first) = (BTreeMap::<usize, Vec<&Applicant>>::new(), BTreeMap::new());
        for (place, applicant) in pool.applicants.iter().enumerate() {
            let chain = tree.chain(&applicant.member.gang);
            if let Some(leaf) = chain.clone().next() {
                applicants.entry(leaf).or_default().push(applicant);
            }
            for at in chain {
                first.entry(at).or_insert(place);
            }
        }
        let all = pool.placed.clone().beside(pool.applicants.iter().map(|applicant| &applicant.member));
        Self { applicants, held: tree.sums(&pool.placed), needs: tree.needs(&pool.placed, &all), first }
    }
}

impl<'w, 's, 'p, R: TrialRoom> Walk<'w, 's, 'p, R> {
    fn new(
        search: &'w mut TreeSearch,
        tree: &'s GroupTree,
        ground: &'w mut Ground<'s, 'p, R>,
        rank: &'w dyn Fn(&NodeName) -> usize,
    ) -> Self {
        Self {
            search,
            tree,
            rank,
            groups: GroupPools::of(tree, ground.pool),
            ground,
            labels: HashMap::new(),
            inside: Vec::new(),
            whole: BTreeSet::new(),
            placed: Vec::new(),
            failed: Vec::new(),
            domain: None,
        }
    }

    fn mark(&self) -> Waypoint {
        Waypoint { plan: self.ground.plan.mark(), placed: self.placed.len() }
    }

    fn undo(&mut self, to: Waypoint) {
        self.ground.plan.undo(to.plan);
        self.placed.truncate(to.placed);
    }

    /// The label of which all pods of the group share a value, where labels are observed.
    fn label(&self, at: usize) -> Option<&'s Arc<str>> {
        self.tree.node(at).topology.as_ref().filter(|_| self.search.scope == Scope::Domains)
    }

    /// The nodes with each value of the label. A plan changes no label: they are gone through once.
    fn nodes_by_value(&mut self, key: &Arc<str>) -> Rc<NodesByValue> {
        if let Some(known) = self.labels.get(key) {
            return known.clone();
        }
        let nodes = Rc::new(nodes_by_value(self.ground.plan, key));
        self.ground.room.classes().count_folded(self.ground.plan.nodes.count());
        self.labels.insert(key.clone(), nodes.clone());
        nodes
    }

    /// The value of the label that pods of the group have taken.
    fn taken(&self, at: usize, key: &str) -> Option<Arc<str>> {
        let of_group = self
            .ground
            .pool
            .nodes
            .iter()
            .filter(|(group, _)| self.tree.chain(group).any(|above| above == at));
        let mut values = of_group.filter_map(|(_, node)| {
            let state = self.ground.plan.node(node)?;
            state.info.labels.get(key).map(Into::into)
        });
        values.next()
    }

    /// The groups above have enough pods: where these are, the others go.
    fn enter_domains_above(&mut self, part: usize) {
        let above = std::iter::successors(self.tree.node(part).parent, |at| self.tree.node(*at).parent);
        for at in above {
            let Some(key) = self.label(at) else { continue };
            if let Some(value) = self.taken(at, key) {
                let nodes = self.nodes_by_value(key);
                self.inside.push((nodes, value));
            }
        }
    }

    /// Places a group. `None`: interrupted.
    fn place(&mut self, at: usize) -> Option<GroupTrial> {
        if self.groups.needs[at] == usize::MAX {
            return Some(GroupTrial::default());
        }
        let Some(key) = self.label(at) else { return self.place_here(at) };
        let nodes = self.nodes_by_value(key);
        if !self.search.domains.contains_key(&at) {
            let domains = GroupDomains { left: self.values(at, key, &nodes), best: None, chosen: None };
            self.ground.room.classes().count_folded(nodes.values().map(BTreeSet::len).sum());
            self.search.domains.insert(at, domains);
        }
        loop {
            let domains = self.search.domains.get_mut(&at)?;
            let chosen = domains.chosen.clone();
            let Some(value) = chosen.clone().or_else(|| domains.left.front().cloned()) else {
                match domains.best.clone() {
                    Some((value, GroupTrial { whole: true, .. }, _)) => {
                        domains.chosen = Some(value);
                        continue;
                    }
                    best => return Some(self.fail(at, key, best)),
                }
            };
            let (mark, failed) = (self.mark(), self.failed.len());
            self.inside.push((nodes.clone(), value.clone()));
            let trial = self.place_here(at);
            self.inside.pop();
            let trial = trial?;
            let domains = self.search.domains.get_mut(&at)?;
            if chosen.is_some() || trial.whole && trial.complete {
                domains.chosen = Some(value);
                return Some(trial);
            }
            domains.left.pop_front();
            if domains.best.as_ref().is_none_or(|(_, best, _)| trial > *best) {
                domains.best = Some((value, trial, self.failed.split_off(failed)));
            }
            self.failed.truncate(failed);
            self.undo(mark);
            self.forget_below(at);
        }
    }

    /// No value of the label has room for enough of the group; what was found at the best one.
    fn fail(
        &mut self,
        at: usize,
        key: &Arc<str>,
        best: Option<(Arc<str>, GroupTrial, Failed)>,
    ) -> GroupTrial {
        let (value, trial, failed) = if let Some((value, trial, failed)) = best {
            (Some(value), trial, failed)
        } else {
            let failed = self.below(at).into_iter().map(|applicant| (applicant.uid().clone(), None));
            (None, GroupTrial::default(), failed.collect())
        };
        self.failed.extend(failed);
        if self.domain.is_none() || at == self.ground.pool.part {
            self.domain = Some((key.clone(), value));
        }
        trial
    }

    /// The values at which the group may be placed, those with the fewest nodes first: they leave the larger ones whole.
    fn values(&self, at: usize, key: &str, nodes: &NodesByValue) -> VecDeque<Arc<str>> {
        if let Some(taken) = self.taken(at, key) {
            return VecDeque::from([taken]);
        }
        let count =
            |nodes: &BTreeSet<NodeName>| nodes.iter().filter(|node| is_inside(&self.inside, node)).count();
        let mut values: Vec<_> = nodes.iter().map(|(value, nodes)| (count(nodes), value.clone())).collect();
        values.retain(|(nodes, _)| *nodes > 0);
        values.sort();
        values.into_iter().map(|(_, value)| value).collect()
    }

    /// The pods that are to be placed of the groups below this one, and of itself.
    fn below(&self, at: usize) -> Vec<&'s Applicant> {
        let below = self.groups.applicants.iter().filter(|(leaf, _)| self.tree.is_below(at, **leaf));
        below.flat_map(|(_, applicants)| applicants.iter().copied()).collect()
    }

    /// What was found for the group holds in the domain alone in which it was tried.
    fn forget_below(&mut self, at: usize) {
        for applicant in self.below(at) {
            self.search.found.remove(applicant.uid());
        }
        self.search.domains.retain(|other, _| *other == at || !self.tree.is_below(at, *other));
    }

    /// Places a group within the domains that were entered. `None`: interrupted.
    fn place_here(&mut self, at: usize) -> Option<GroupTrial> {
        if self.tree.is_leaf(at) { self.place_pods(at) } else { self.place_groups(at) }
    }

    fn place_groups(&mut self, at: usize) -> Option<GroupTrial> {
        let (mark, node) = (self.mark(), self.tree.node(at));
        let children = self.in_order(at);
        self.whole.retain(|other| *other == at || !self.tree.is_below(at, *other));
        let mut all = GroupTrial { complete: true, ..GroupTrial::default() };
        for (tried, child) in children.iter().enumerate() {
            let is_enough = all.fitting >= node.least && self.search.portion == Portion::Least;
            if is_enough || all.fitting + (children.len() - tried) < node.least {
                break;
            }
            let trial = self.place(*child)?;
            self.whole.extend(trial.whole.then_some(*child));
            all.fitting += usize::from(trial.whole);
            all.placed += if trial.whole { trial.placed } else { 0 };
            all.complete &= trial.complete;
        }
        all.whole = all.fitting >= node.least;
        if !all.whole {
            self.undo(mark);
        }
        Some(all)
    }

    fn place_pods(&mut self, at: usize) -> Option<GroupTrial> {
        let (mark, least, held) = (self.mark(), self.tree.node(at).least, self.groups.held[at]);
        let mut order = self.groups.applicants.get(&at).cloned().unwrap_or_default();
        if self.search.portion == Portion::Least {
            let size = |applicant: &&Applicant| size(&applicant.demand.ask);
            order.sort_by_cached_key(size);
            let needed = least.saturating_sub(held).min(order.len());
            order[..needed].sort_by_cached_key(|applicant| Reverse(size(applicant)));
        }
        let mut trial = GroupTrial { complete: true, fitting: held, ..GroupTrial::default() };
        // The pod that failed last, as long as none was placed after it: one like it fails for the same.
        let mut refused: Option<(&Applicant, Option<FitError>)> = None;
        for (tried, applicant) in order.iter().copied().enumerate() {
            let is_enough = trial.fitting >= least && self.search.portion == Portion::Least;
            if is_enough || trial.fitting + (order.len() - tried) < least {
                break;
            }
            let like = refused.as_ref().filter(|(other, _)| fails_alike(&other.demand, &applicant.demand));
            let found = match like {
                Some((_, error)) => Err(error.clone()),
                None => self.place_pod(applicant)?,
            };
            match found {
                Ok(()) => {
                    refused = None;
                    trial.placed += 1;
                    trial.fitting += 1;
                }
                Err(error) => {
                    trial.complete = false;
                    refused = Some((applicant, error.clone()));
                    if !self.failed.iter().any(|(uid, _)| uid == applicant.uid()) {
                        self.failed.push((applicant.uid().clone(), error));
                    }
                }
            }
        }
        trial.whole = trial.fitting >= least;
        if !trial.whole {
            trial.complete = false;
            trial.placed = 0;
            self.undo(mark);
        }
        Some(trial)
    }

    /// Places a pod, or says why it finds no place. `None`: interrupted.
    fn place_pod(&mut self, applicant: &Applicant) -> Option<Result<(), Option<FitError>>> {
        let (inside, rank) = (&self.inside, self.rank);
        let ranked = |node: &NodeName| if is_inside(inside, node) { rank(node) } else { OUTSIDE };
        let before = self.search.found.remove(applicant.uid());
        let confirmed = before.and_then(|found| self.ground.confirm(applicant, found));
        let found = confirmed.or_else(|| self.ground.find(applicant, &ranked))?;
        self.search.found.insert(applicant.uid().clone(), found.clone());
        Some(match found {
            Ok(decision) if ranked(&decision.node) != OUTSIDE => {
                self.ground.place(applicant, &decision);
                self.placed.push((applicant.uid().clone(), decision));
                Ok(())
            }
            Ok(_) => Err(None),
            Err(error) => Err(error),
        })
    }

    /// The groups in this one, in the order in which they are tried: by the place of their first pod in the queue. One without pods that wait takes no
    /// room.
    fn in_order(&self, at: usize) -> Vec<usize> {
        let mut children = self.tree.node(at).children.clone();
        children.sort_by_key(|child| {
            let need = if self.search.portion == Portion::Least { self.groups.needs[*child] } else { 0 };
            (need, self.groups.first.get(child))
        });
        children
    }

    /// Places what there is of a whole group beyond what there must be, as far as that finds room. `None`: interrupted.
    fn place_rest(&mut self, at: usize) -> Option<()> {
        let entered = self.inside.len();
        let chosen = self.search.domains.get(&at).and_then(|domains| domains.chosen.clone());
        if let Some((key, value)) = self.label(at).zip(chosen) {
            let nodes = self.nodes_by_value(key);
            self.inside.push((nodes, value));
        }
        let done =
            if self.tree.is_leaf(at) { self.place_other_pods(at) } else { self.place_other_groups(at) };
        self.inside.truncate(entered);
        done
    }

    fn place_other_groups(&mut self, at: usize) -> Option<()> {
        for child in self.in_order(at) {
            if self.whole.contains(&child) || self.place(child)?.whole {
                self.place_rest(child)?;
            }
        }
        Some(())
    }

    fn place_other_pods(&mut self, at: usize) -> Option<()> {
        let placed: HashSet<Uid> = self.placed.iter().map(|(uid, _)| uid.clone()).collect();
        for applicant in self.groups.applicants.get(&at).cloned().unwrap_or_default() {
            let is_refused = matches!(self.search.found.get(applicant.uid()), Some(Err(_)));
            if !is_refused && !placed.contains(applicant.uid()) {
                // One that finds no place is left over, and is placed later.
                self.place_pod(applicant)?.ok();
            }
        }
        Some(())
    }
}

/// Whether the node is in all these domains.
fn is_inside(domains: &[(Rc<NodesByValue>, Arc<str>)], node: &NodeName) -> bool {
    domains.iter().all(|(nodes, value)| nodes.get(value).is_some_and(|nodes| nodes.contains(node)))
}
