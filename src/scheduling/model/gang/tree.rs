//! Groups of groups: the tree below a CompositePodGroup, and which of its groups have enough pods.
//!
//! Source: kubernetes v1.37 `pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go` (`isCPGTreeReady`, `getMinCount`).

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use super::{GangName, GroupApi, Tally};

/// So many levels a tree has at most, that of the PodGroups included (k8s.io/api v0.37 `scheduling/v1alpha3/types.go`,
/// `WorkloadMaxTreeDepth`).
pub const MOST_LEVELS: usize = 4;

/// A group of a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupNode {
    /// Its name.
    pub name: GangName,
    /// The group that it is in; `None`: it is the root.
    pub parent: Option<usize>,
    /// So many of its pods are placed together, of a CompositePodGroup so many of its groups.
    pub least: usize,
    /// The node label of which all pods below it share one value.
    pub topology: Option<Arc<str>>,
    /// The groups in it.
    pub children: Vec<usize>,
}

/// The groups below a CompositePodGroup: the root, and each other group behind the one that it is in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupTree {
    nodes: Vec<GroupNode>,
    /// By full name, where each PodGroup is.
    leaves: BTreeMap<Arc<str>, usize>,
}

impl GroupTree {
    /// Where the root is.
    pub const ROOT: usize = 0;

    /// A tree that has only a root: so many of its groups are placed together.
    pub fn new(name: GangName, least: usize, topology: Option<Arc<str>>) -> Self {
        let root = GroupNode { name, parent: None, least, topology, children: Vec::new() };
        Self { nodes: vec![root], leaves: BTreeMap::new() }
    }

    /// Adds a group to one that is in the tree, and returns where it is.
    pub fn add(&mut self, parent: usize, name: GangName, least: usize, topology: Option<Arc<str>>) -> usize {
        let at = self.nodes.len();
        if name.api != GroupApi::Composite {
            self.leaves.insert(name.group.clone(), at);
        }
        self.nodes[parent].children.push(at);
        self.nodes.push(GroupNode { name, parent: Some(parent), least, topology, children: Vec::new() });
        at
    }

    /// Every group, each behind the one that it is in.
    pub fn nodes(&self) -> &[GroupNode] {
        &self.nodes
    }

    /// The group at this place.
    pub fn node(&self, at: usize) -> &GroupNode {
        &self.nodes[at]
    }

    /// Whether the group has pods, and no groups.
    pub fn is_leaf(&self, at: usize) -> bool {
        self.nodes[at].name.api != GroupApi::Composite
    }

    /// Where a PodGroup is, and the groups that it is in, the root last; nothing: it is not in the tree.
    pub fn chain(&self, leaf: &GangName) -> impl Iterator<Item = usize> + Clone {
        std::iter::successors(self.leaves.get(&leaf.group).copied(), |at| self.nodes[*at].parent)
    }

    /// Whether the second group is the first, or is below it.
    pub fn is_below(&self, at: usize, below: usize) -> bool {
        std::iter::successors(Some(below), |at| self.nodes[*at].parent).any(|above| above == at)
    }

    /// How many of these pods are below each group.
    pub fn sums(&self, tally: &Tally) -> Vec<usize> {
        self.fold(|node, of_children: &[usize]| {
            if node.name.api == GroupApi::Composite {
                of_children.iter().sum()
            } else {
                tally.of_group(&node.name.group)
            }
        })
    }

    /// Which groups have enough pods.
    pub fn wholes(&self, tally: &Tally) -> Vec<bool> {
        self.fold(|node, of_children: &[bool]| {
            let enough = if node.name.api == GroupApi::Composite {
                of_children.iter().filter(|whole| **whole).count()
            } else {
                tally.of_group(&node.name.group)
            };
            enough >= node.least
        })
    }

    /// How many pods each group lacks at least beside those that are placed, if those of its groups are completed that lack the fewest. `usize::MAX`: all
    /// the pods that there are do not complete it.
    pub fn needs(&self, placed: &Tally, all: &Tally) -> Vec<usize> {
        self.fold(|node, of_children: &[usize]| {
            if node.name.api == GroupApi::Composite {
                let mut fewest = of_children.to_vec();
                fewest.sort_unstable();
                let sum =
                    |fewest: &[usize]| fewest.iter().fold(0_usize, |sum, need| sum.saturating_add(*need));
                return fewest.get(..node.least).map_or(usize::MAX, sum);
            }
            let of = |tally: &Tally| tally.of_group(&node.name.group);
            if of(all) < node.least { usize::MAX } else { node.least.saturating_sub(of(placed)) }
        })
    }

    /// What is so of each group, by what is so of the groups in it.
    fn fold<T: Clone + Default>(&self, of: impl Fn(&GroupNode, &[T]) -> T) -> Vec<T> {
        let mut found = vec![T::default(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let of_children: Vec<T> = node.children.iter().map(|child| found[*child].clone()).collect();
            found[at] = of(node, &of_children);
        }
        found
    }

    /// With which part of the tree a pod of this PodGroup is placed beside so many: the largest that has too few pods, or else the PodGroup itself.
    /// `None`: the PodGroup is not in the tree.
    pub fn part_of(&self, leaf: &GangName, placed: &Tally) -> Option<usize> {
        let wholes = self.wholes(placed);
        let lacking = self.chain(leaf).filter(|at| !wholes[*at]).last();
        lacking.or_else(|| self.chain(leaf).next())
    }

    /// Whether a pod of this PodGroup is placed alone beside so many: all groups that it is in have enough pods, and none says where they run.
    pub fn is_settled(&self, leaf: &GangName, placed: &Tally) -> bool {
        let wholes = self.wholes(placed);
        self.chain(leaf).all(|at| wholes[at] && self.nodes[at].topology.is_none())
    }

    /// Whether a group of this part of the tree, or one that the part is in, says where its pods run.
    pub fn has_topology(&self, part: usize) -> bool {
        let states = |at: &usize| self.nodes[*at].topology.is_some();
        let above = std::iter::successors(Some(part), |at| self.nodes[*at].parent);
        let mut below = (part..self.nodes.len()).filter(|at| self.is_below(part, *at));
        above.into_iter().any(|at| states(&at)) || below.any(|at| states(&at))
    }

    /// How many there must be, in words: `minimum 2 groups`, of a PodGroup `minimum 2`.
    pub fn least(&self, at: usize) -> String {
        let least = self.nodes[at].least;
        match (self.is_leaf(at), least) {
            (true, _) => format!("minimum {least}"),
            (false, 1) => "minimum 1 group".to_owned(),
            (false, _) => format!("minimum {least} groups"),
        }
    }

    /// What the group lacks if there are so many pods, in words; the group is not named.
    pub fn lacking(&self, at: usize, tally: &Tally) -> String {
        let node = &self.nodes[at];
        let least = self.least(at);
        if self.is_leaf(at) {
            return format!("there are {} ({least})", tally.of_group(&node.name.group));
        }
        if node.children.len() < node.least {
            return format!("there are {} of its groups ({least})", node.children.len());
        }
        let wholes = self.wholes(tally);
        let (enough, lacking): (Vec<usize>, Vec<usize>) =
            node.children.iter().partition(|child| wholes[**child]);
        let mut words = format!("{} of {} groups have enough ({least})", enough.len(), node.children.len());
        if let Some(first) = lacking.first() {
            let name = &self.nodes[*first].name;
            write!(words, "; {name}: {}", self.lacking(*first, tally)).expect("a text can be written to");
        }
        let more = lacking.len().saturating_sub(1);
        if more > 0 {
            write!(words, "; {more} more lack pods").expect("a text can be written to");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::model::gang::Member;

    fn name(api: GroupApi, name: &str) -> GangName {
        GangName { api, group: format!("default/{name}").into() }
    }

    fn leaf(of: &str) -> GangName {
        name(GroupApi::Kubernetes, of)
    }

    /// `llm` of at least so many of: `router`, one pod; and `shards`, both of `prefill` and `decode`, two pods each.
    fn llm(least: usize, topology: Option<&str>) -> GroupTree {
        let mut tree = GroupTree::new(name(GroupApi::Composite, "llm"), least, None);
        tree.add(GroupTree::ROOT, leaf("router"), 1, None);
        let shards =
            tree.add(GroupTree::ROOT, name(GroupApi::Composite, "shards"), 2, topology.map(Into::into));
        tree.add(shards, leaf("prefill"), 2, None);
        tree.add(shards, leaf("decode"), 2, None);
        tree
    }

    fn tally(pods: &[(&str, usize)]) -> Tally {
        let mut tally = Tally::default();
        for (group, pods) in pods {
            for _ in 0..*pods {
                tally.count(&Member { gang: leaf(group), task: None });
            }
        }
        tally
    }

    #[test]
    fn a_group_of_groups_is_whole_with_as_many_whole_groups_as_it_asks_for() {
        let wholes = |least, pods: &[(&str, usize)]| llm(least, None).wholes(&tally(pods));
        assert_eq!(wholes(1, &[("router", 1)]), [true, true, false, false, false]);
        assert_eq!(wholes(2, &[("router", 1), ("prefill", 3)]), [false, true, false, true, false]);
        assert_eq!(wholes(1, &[("prefill", 1), ("decode", 1)]), [false; 5], "two halves make no whole");
        assert_eq!(wholes(2, &[("router", 1), ("prefill", 2), ("decode", 2)]), [true; 5]);
        assert_eq!(llm(1, None).sums(&tally(&[("prefill", 2), ("decode", 1)])), [3, 0, 3, 2, 1]);
    }

    #[test]
    fn a_pod_is_placed_with_the_largest_part_that_lacks_pods() {
        let tree = llm(1, None);
        let part = |of: &str, pods: &[(&str, usize)]| {
            let at = tree.part_of(&leaf(of), &tally(pods)).unwrap();
            tree.node(at).name.group.to_string()
        };
        assert_eq!(part("prefill", &[]), "default/llm");
        assert_eq!(part("prefill", &[("router", 1)]), "default/shards");
        let all = [("router", 1), ("prefill", 2), ("decode", 2)];
        assert_eq!(part("prefill", &all), "default/prefill");
        assert_eq!(tree.part_of(&leaf("other"), &tally(&[])), None);
        assert!(tree.is_settled(&leaf("prefill"), &tally(&all)));
        assert!(!tree.is_settled(&leaf("prefill"), &tally(&[("router", 1)])));
        let in_a_rack = llm(1, Some("rack"));
        assert!(!in_a_rack.is_settled(&leaf("prefill"), &tally(&all)), "its pods go on as they began");
        assert!(in_a_rack.is_settled(&leaf("router"), &tally(&all)));
        assert!(in_a_rack.has_topology(GroupTree::ROOT) && in_a_rack.has_topology(3));
        assert!(!in_a_rack.has_topology(1));
    }

    #[test]
    fn what_lacks_is_said_down_to_the_first_group_that_lacks_pods() {
        let lacking = |pods: &[(&str, usize)]| llm(2, None).lacking(GroupTree::ROOT, &tally(pods));
        assert_eq!(
            lacking(&[("router", 1), ("prefill", 2), ("decode", 1)]),
            "1 of 2 groups have enough (minimum 2 groups); CompositePodGroup default/shards: 1 of 2 groups have enough \
             (minimum 2 groups); PodGroup default/decode: there are 1 (minimum 2)"
        );
        assert!(lacking(&[]).ends_with("; 1 more lack pods"), "{}", lacking(&[]));
        assert_eq!(
            llm(3, None).lacking(GroupTree::ROOT, &tally(&[])),
            "there are 2 of its groups (minimum 3 groups)"
        );
    }
}
