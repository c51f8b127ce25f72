//! Groups of groups: which groups name which CompositePodGroup, and what must hold of each tree.
//!
//! A group that names a CompositePodGroup is known as one of its groups whether that is there or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{Object, Objects};
use crate::scheduling::model::{
    gang::{
        Gang, GangName, Group, GroupApi, Policy, SharedTopology,
        tree::{GroupTree, MOST_LEVELS},
    },
    kind::{Kind, PodGroupKind},
};

/// So many node labels the groups of a tree name at most: each is looked up at every node in each turn of a search for places.
const MOST_LABELS: usize = 8;

/// So many groups a tree has at most: each is looked at whenever something changes of the tree.
const MOST_GROUPS: usize = 1000;

/// What must hold of a tree, or why its pods are not placed.
type GangOfTree = Result<Arc<Gang>, TreeTrouble>;

/// Why none of the pods of a tree is placed.
#[derive(Clone, Debug)]
pub(super) enum TreeTrouble {
    /// It has more groups than are served. Each of its PodGroups is looked at by itself.
    TooLarge,
    /// Its groups say what can't be served.
    Unserved(Arc<str>),
}

impl TreeTrouble {
    /// Why not, in words.
    pub(super) fn words(&self) -> Arc<str> {
        match self {
            Self::TooLarge => format!("more than {MOST_GROUPS} groups are in it or in its groups").into(),
            Self::Unserved(why) => why.clone(),
        }
    }
}

/// Which groups are in which CompositePodGroup.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupForest {
    /// By the full name of a CompositePodGroup, the groups that name it as their parent.
    children: BTreeMap<Arc<str>, BTreeSet<GangName>>,
    /// What must hold of the pods below each CompositePodGroup, once that was asked for.
    gangs: BTreeMap<Arc<str>, OnceLock<GangOfTree>>,
}

/// A group with those that it is in, as far as they are known.
#[derive(Debug)]
pub(super) struct Ancestry {
    /// The group first, then each that the one before is in.
    pub(super) groups: Vec<GangName>,
    /// Where that ends.
    pub(super) end: AncestryEnd,
}

/// Where the groups above a group end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AncestryEnd {
    /// The last group is in no other.
    Root,
    /// The last group is not there.
    Missing,
    /// The last group names one of those before as its parent.
    Cycle,
    /// The last group is on the lowest level that there may be, and is in another.
    TooDeep,
}

fn named(object: &Object) -> Option<(GangName, &Group)> {
    match object {
        Object::PodGroup(kind, name, group) => {
            Some((GangName { api: kind.api(), group: name.clone() }, group))
        }
        _ => None,
    }
}

impl GroupForest {
    fn children(&self, composite: &str) -> impl Iterator<Item = &GangName> {
        self.children.get(composite).into_iter().flatten()
    }
}

/// Takes in an object that is a group, and is among the objects now.
pub(super) fn plant(objects: &mut Objects, object: &Object) {
    let Some((name, group)) = named(object) else { return };
    if name.api == GroupApi::Composite {
        objects.forest.gangs.insert(name.group.clone(), OnceLock::new());
    }
    if let Some(parent) = &group.parent {
        objects.forest.children.entry(parent.clone()).or_default().insert(name.clone());
    }
    forget_tree(objects, &name, group);
}

/// Takes out an object that is a group, and is still among the objects.
pub(super) fn uproot(objects: &mut Objects, object: &Object) {
    let Some((name, group)) = named(object) else { return };
    forget_tree(objects, &name, group);
    let forest = &mut objects.forest;
    if name.api == GroupApi::Composite {
        forest.gangs.remove(&name.group);
    }
    if let Some(parent) = &group.parent
        && let Some(children) = forest.children.get_mut(parent)
    {
        children.remove(&name);
        if children.is_empty() {
            forest.children.remove(parent);
        }
    }
}

/// What was found out of the tree that the group is in may not hold any more.
fn forget_tree(objects: &mut Objects, name: &GangName, group: &Group) {
    if group.parent.is_none() && name.api != GroupApi::Composite {
        return;
    }
    let root = objects.groups().ancestry(name).groups.pop();
    if let Some(known) = root.and_then(|root| objects.forest.gangs.get_mut(&root.group)) {
        known.take();
    }
}

/// Groups of pods, with those that they are in.
#[derive(Clone, Copy, Debug)]
pub struct GroupLister<'a>(pub(super) &'a Objects);

impl<'a> GroupLister<'a> {
    /// What the group says, if it is there.
    pub(super) fn group_of(self, name: &GangName) -> Option<&'a Group> {
        Kind::of_groups(name.api).iter().find_map(|kind| self.0.group(*kind, &name.group))
    }

    /// The group and those that it is in.
    pub(super) fn ancestry(self, of: &GangName) -> Ancestry {
        let mut groups = vec![of.clone()];
        let mut last = self.group_of(of);
        let end = loop {
            let Some(group) = last else { break AncestryEnd::Missing };
            let Some(parent) = &group.parent else { break AncestryEnd::Root };
            let parent = GangName { api: GroupApi::Composite, group: parent.clone() };
            if groups.contains(&parent) {
                break AncestryEnd::Cycle;
            }
            if groups.len() == MOST_LEVELS {
                break AncestryEnd::TooDeep;
            }
            last = self.group_of(&parent);
            groups.push(parent);
        };
        Ancestry { groups, end }
    }

    /// The group of pods and those that it is in, the one with which its pods are placed last: the root of its tree. Only the group, where that is not
    /// known or can't be served: a group above is not there, the parents form a circle or are too many, or the tree is too large.
    pub fn lineage(self, group: &GangName) -> Vec<GangName> {
        let Ancestry { mut groups, end } = self.ancestry(group);
        let is_too_large = || {
            let root = groups.last().filter(|root| root.api == GroupApi::Composite);
            let gang = root.and_then(|root| self.gang_of_tree(&root.group));
            matches!(gang, Some(Err(TreeTrouble::TooLarge)))
        };
        if end != AncestryEnd::Root || is_too_large() {
            groups.truncate(1);
        }
        groups
    }

    /// The group with which the pods of this one are placed.
    pub fn root(self, group: &GangName) -> GangName {
        let mut lineage = self.lineage(group);
        lineage.pop().unwrap_or_else(|| group.clone())
    }

    /// Whether the group is there.
    pub fn is_there(self, name: &GangName) -> bool {
        self.group_of(name).is_some()
    }

    /// The groups of pods below this group, or itself if it has no groups; of more than a tree can have, not all.
    pub fn leaves(self, group: &GangName) -> BTreeSet<GangName> {
        let mut leaves = BTreeSet::new();
        self.gather_leaves(group, MOST_LEVELS, &mut leaves);
        leaves
    }

    fn gather_leaves(self, group: &GangName, levels: usize, leaves: &mut BTreeSet<GangName>) {
        if group.api != GroupApi::Composite {
            leaves.insert(group.clone());
        } else if levels > 1 {
            for child in self.0.forest.children(&group.group) {
                if leaves.len() > MOST_GROUPS {
                    return;
                }
                self.gather_leaves(child, levels - 1, leaves);
            }
        }
    }

    /// How many groups are below this one, on so many levels; not all are counted if they are more than a tree can have.
    fn count_below(self, composite: &str, levels: usize) -> usize {
        let mut count = 0;
        for child in self.0.forest.children(composite).take(MOST_GROUPS + 1) {
            count += 1;
            if child.api == GroupApi::Composite && levels > 1 {
                count += self.count_below(&child.group, levels - 1);
            }
            if count > MOST_GROUPS {
                break;
            }
        }
        count
    }

    /// What must hold of the pods below a CompositePodGroup that is in no other; `None`: it is not there.
    ///
    /// # Errors
    ///
    /// Why none of them is placed.
    pub(super) fn gang_of_tree(self, root: &str) -> Option<GangOfTree> {
        let known = self.0.forest.gangs.get(root)?;
        Some(known.get_or_init(|| self.read_tree(root)).clone())
    }

    fn read_tree(self, root: &str) -> GangOfTree {
        let name = GangName { api: GroupApi::Composite, group: root.into() };
        let kind = Kind::PodGroup(PodGroupKind::Composite);
        let unserved = |why: &str| TreeTrouble::Unserved(why.into());
        if self.count_below(root, MOST_LEVELS - 1) >= MOST_GROUPS {
            return Err(TreeTrouble::TooLarge);
        }
        let gang = match self.0.group(kind, root).map(|group| &group.policy) {
            Some(Policy::Gang(gang)) => gang,
            Some(Policy::Unserved(why)) => return Err(unserved(why)),
            Some(Policy::Alone) | None => return Err(unserved("spec.schedulingPolicy can't be read")),
        };
        let mut tree = GroupTree::new(name, gang.min, label(gang));
        self.grow(&mut tree, GroupTree::ROOT, MOST_LEVELS - 1);
        let labels: BTreeSet<&Arc<str>> =
            tree.nodes().iter().filter_map(|node| node.topology.as_ref()).collect();
        if labels.len() > MOST_LABELS {
            return Err(unserved(&format!(
                "its groups name {} node labels in spec.schedulingConstraints.topology, and Berth serves {MOST_LABELS} at most",
                labels.len()
            )));
        }
        Ok(Arc::new(Gang { groups: Some(tree), timeout: gang.timeout, ..Gang::default() }))
    }

    /// Adds the groups that name this one, on so many more levels. A group that can't be served is left out, with all below it.
    fn grow(self, tree: &mut GroupTree, at: usize, levels: usize) {
        if levels == 0 {
            return;
        }
        let of = tree.node(at).name.group.clone();
        for child in self.0.forest.children(&of) {
            if let Some(Policy::Gang(gang)) = self.group_of(child).map(|group| &group.policy) {
                let added = tree.add(at, child.clone(), gang.min, label(gang));
                if child.api == GroupApi::Composite {
                    self.grow(tree, added, levels - 1);
                }
            }
        }
    }
}

/// The node label of which all pods of the group share one value.
fn label(gang: &Gang) -> Option<Arc<str>> {
    gang.topology.as_ref().map(|SharedTopology { key, .. }| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::model::gang::{DisruptionMode, GroupPreemption, Membership, Strictness};

    fn name(api: GroupApi, of: &str) -> GangName {
        GangName { api, group: format!("default/{of}").into() }
    }

    fn leaf(of: &str) -> GangName {
        name(GroupApi::Kubernetes, of)
    }

    fn composite(of: &str) -> GangName {
        name(GroupApi::Composite, of)
    }

    fn group(parent: &str, min: usize, key: &str) -> Group {
        let topology =
            (!key.is_empty()).then(|| SharedTopology { key: key.into(), strictness: Strictness::Required });
        let parent = (!parent.is_empty()).then(|| format!("default/{parent}").into());
        let gang = Gang { min, topology, ..Gang::default() };
        Group { parent, ..Group::of(Policy::Gang(Arc::new(gang))) }
    }

    fn object(kind: PodGroupKind, name: &str, group: Group) -> Object {
        Object::PodGroup(kind, format!("default/{name}").into(), Arc::new(group))
    }

    /// These groups of groups, and PodGroups of two pods, each with the group that it is in.
    fn objects(composites: &[(&str, &str)], leaves: &[(&str, &str)]) -> Objects {
        let mut objects = Objects::default();
        for kind in Kind::POD_GROUPS {
            objects.note_listed(*kind);
        }
        for (name, parent) in composites {
            objects.set(object(PodGroupKind::Composite, name, group(parent, 1, "")));
        }
        for (name, parent) in leaves {
            objects.set(object(PodGroupKind::Kubernetes, name, group(parent, 2, "")));
        }
        objects
    }

    fn unserved(objects: &Objects, of: &str) -> String {
        match objects.membership(&leaf(of)) {
            Membership::Policy(Policy::Unserved(why)) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn tree(objects: &Objects, of: &str) -> Vec<String> {
        match objects.membership(&leaf(of)) {
            Membership::Policy(Policy::Gang(gang)) => {
                let nodes = gang.groups.as_ref().unwrap().nodes().iter();
                nodes.map(|node| node.name.group.trim_start_matches("default/").to_owned()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pods_are_placed_with_the_root_of_the_tree_that_their_group_is_in() {
        let mut objects =
            objects(&[("root", ""), ("inner", "root")], &[("a", "inner"), ("b", "root"), ("c", "")]);
        assert_eq!(objects.groups().lineage(&leaf("a")), [leaf("a"), composite("inner"), composite("root")]);
        assert_eq!(
            (objects.groups().root(&leaf("b")), objects.groups().root(&leaf("c"))),
            (composite("root"), leaf("c"))
        );
        assert_eq!(objects.groups().leaves(&composite("root")), [leaf("a"), leaf("b")].into());
        assert_eq!(tree(&objects, "a"), ["root", "b", "inner", "a"]);
        assert_eq!(tree(&objects, "b"), tree(&objects, "a"));
        objects.set(object(PodGroupKind::Kubernetes, "d", group("inner", 2, "")));
        assert_eq!(tree(&objects, "a"), ["root", "b", "inner", "a", "d"]);
        objects.remove(Kind::PodGroup(PodGroupKind::Kubernetes), "default/b");
        assert_eq!(tree(&objects, "a"), ["root", "inner", "a", "d"]);
        objects.set(object(PodGroupKind::Composite, "other", group("", 1, "")));
        assert_eq!(tree(&objects, "a"), ["root", "inner", "a", "d"], "each tree is by itself");
    }

    #[test]
    fn a_group_above_that_is_missing_keeps_the_pods_of_its_groups_alone() {
        let mut objects = objects(&[("inner", "root")], &[("a", "inner"), ("b", "none")]);
        let missing = |parent, child| Membership::NoParent { parent: composite(parent), child };
        assert_eq!(objects.membership(&leaf("a")), missing("root", composite("inner")));
        assert_eq!(objects.membership(&leaf("b")), missing("none", leaf("b")));
        assert_eq!(objects.groups().root(&leaf("a")), leaf("a"));
        objects.set(object(PodGroupKind::Composite, "root", group("", 1, "")));
        assert_eq!(tree(&objects, "a"), ["root", "inner", "a"]);
        objects.remove(Kind::PodGroup(PodGroupKind::Composite), "default/root");
        assert_eq!(objects.membership(&leaf("a")), missing("root", composite("inner")));
        let mut unlisted = Objects::default();
        unlisted.set(object(PodGroupKind::Kubernetes, "a", group("root", 2, "")));
        assert_eq!(unlisted.membership(&leaf("a")), Membership::Unlisted(GroupApi::Composite));
    }

    #[test]
    fn parents_in_a_circle_and_too_many_levels_are_errors_of_the_groups_below_alone() {
        let composites = [
            ("x", "y"),
            ("y", "x"),
            ("self", "self"),
            ("one", ""),
            ("two", "one"),
            ("three", "two"),
            ("four", "three"),
        ];
        let leaves = [("a", "x"), ("b", "self"), ("deep", "three"), ("deeper", "four")];
        let objects = objects(&composites, &leaves);
        let circle = |parent| {
            format!("spec.parentCompositePodGroupName is {parent}, and the groups above that form a circle")
        };
        assert_eq!((unserved(&objects, "a"), unserved(&objects, "b")), (circle("x"), circle("self")));
        assert_eq!(
            unserved(&objects, "deeper"),
            "spec.parentCompositePodGroupName is four, above which are so many groups that the tree has more than 4 levels"
        );
        assert_eq!(objects.groups().lineage(&leaf("deeper")), [leaf("deeper")]);
        assert_eq!(tree(&objects, "deep"), ["one", "two", "three", "deep", "four"]);
        assert_eq!(objects.groups().leaves(&composite("one")), [leaf("deep")].into());
        assert_eq!(objects.groups().leaves(&composite("x")), [leaf("a")].into());
    }

    #[test]
    fn a_group_that_can_not_be_served_is_named_and_the_others_are_a_tree_without_it() {
        let mut objects = objects(&[("root", ""), ("inner", "root")], &[("a", "inner"), ("b", "root")]);
        let broken = Group { policy: Policy::Unserved("no".into()), ..group("root", 1, "") };
        objects.set(object(PodGroupKind::Composite, "inner", broken));
        assert_eq!(unserved(&objects, "a"), "CompositePodGroup default/inner: no");
        assert_eq!(tree(&objects, "b"), ["root", "b"]);
        for at in 0..9 {
            objects.set(object(
                PodGroupKind::Kubernetes,
                &format!("l{at}"),
                group("root", 1, &format!("label-{at}")),
            ));
        }
        assert_eq!(
            unserved(&objects, "b"),
            "its groups name 9 node labels in spec.schedulingConstraints.topology, and Berth serves 8 at most"
        );
    }

    #[test]
    fn of_a_tree_that_is_too_large_each_group_waits_by_itself() {
        let mut objects = objects(&[("root", ""), ("inner", "root")], &[]);
        for at in 0..MOST_GROUPS - 2 {
            let parent = if at % 2 == 0 { "root" } else { "inner" };
            objects.set(object(PodGroupKind::Kubernetes, &format!("l{at}"), group(parent, 1, "")));
        }
        assert_eq!(objects.groups().lineage(&leaf("l0")), [leaf("l0"), composite("root")]);
        objects.set(object(PodGroupKind::Kubernetes, "more", group("inner", 1, "")));
        assert_eq!(objects.groups().lineage(&leaf("l0")), [leaf("l0")]);
        assert_eq!(
            unserved(&objects, "l0"),
            "CompositePodGroup default/root: more than 1000 groups are in it or in its groups"
        );
        objects.remove(Kind::PodGroup(PodGroupKind::Kubernetes), "default/l1");
        assert_eq!(objects.groups().root(&leaf("more")), composite("root"));
    }

    #[test]
    fn the_root_says_the_priority_and_the_largest_group_that_says_so_is_disrupted_together() {
        let preemption =
            |disruption, priority| GroupPreemption { disruption, priority: Some(priority), policy: None };
        let with = |parent, disruption, priority| Group {
            preemption: preemption(disruption, priority),
            ..group(parent, 1, "")
        };
        let mut objects = objects(&[], &[]);
        let (all, single) = (DisruptionMode::All, DisruptionMode::Single);
        objects.set(object(PodGroupKind::Composite, "root", with("", single, 7)));
        objects.set(object(PodGroupKind::Composite, "inner", with("root", all, 5)));
        objects.set(object(PodGroupKind::Kubernetes, "a", with("inner", all, 3)));
        objects.set(object(PodGroupKind::Kubernetes, "b", with("root", all, 3)));
        objects.set(object(PodGroupKind::Kubernetes, "c", with("root", single, 3)));
        let of = |name: &str| objects.group_preemption(&format!("default/{name}")).unwrap();
        assert_eq!((of("a"), of("c")), (preemption(all, 7), preemption(single, 7)));
        assert_eq!(objects.groups().disrupted_whole("default/a"), Some(composite("inner")));
        assert_eq!(objects.groups().disrupted_whole("default/b"), Some(leaf("b")));
        assert_eq!(objects.groups().disrupted_whole("default/c"), None);
    }
}
