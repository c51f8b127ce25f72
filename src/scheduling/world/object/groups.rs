//! Groups of pods: what is known of a group.

use std::sync::Arc;

use super::{
    Object, Objects,
    forest::{Ancestry, AncestryEnd, GroupLister, TreeTrouble},
};
use crate::scheduling::model::{
    claim_use::{ClaimConsumer, ResourceClaimUse},
    gang::{
        DisruptionMode, GangName, Group, GroupApi, GroupPreemption, Membership, Policy, tree::MOST_LEVELS,
    },
    group_condition::GroupStatus,
    kind::{Kind, PodGroupKind},
    tdm::job::JobBudget,
};

impl Objects {
    /// The budget that a PodGroup states for its job.
    pub fn job_budget(&self, group: &str) -> Option<JobBudget> {
        self.group(Kind::PodGroup(PodGroupKind::Volcano), group)?.budget
    }

    /// What is so of preemption for the pods of a PodGroup of Kubernetes, by its full name: the priority and the policy of the root of its tree count,
    /// and each CompositePodGroup above it can say that they are disrupted together (v1.37 `GetPodPriority`, `getHighestAllAncestor`). `None`: there is
    /// no such PodGroup.
    pub fn group_preemption(&self, group: &str) -> Option<GroupPreemption> {
        let (_, own) = self.of_kubernetes(group)?;
        if own.parent.is_none() {
            return Some(own.preemption);
        }
        let groups = self.groups().known_ancestry(group).groups;
        let stated = groups.iter().filter_map(|name| Some(self.groups().group_of(name)?.preemption));
        stated.reduce(|below, above| GroupPreemption {
            disruption: if below.disruption == DisruptionMode::All { below } else { above }.disruption,
            ..above
        })
    }

    /// What the status of a PodGroup of Kubernetes says, by its full name, and which kind it is of; `None`: there is no such PodGroup.
    pub fn group_status(&self, group: &str) -> Option<(PodGroupKind, &GroupStatus)> {
        let (kind, group) = self.of_kubernetes(group)?;
        Some((kind, &group.status))
    }

    /// Whom the status of a claim names as its user, where a pod of this PodGroup of Kubernetes uses it (k8s.io/dynamic-resource-allocation v0.37
    /// `resourceclaim/resourceclaim.go`, `BindTo`); `None`: the pod is in no such group.
    pub fn claim_consumer(&self, group: Option<&str>, used: &ResourceClaimUse) -> ClaimConsumer {
        let Some((name, (_, group))) = group.and_then(|name| Some((name, self.of_kubernetes(name)?))) else {
            return ClaimConsumer::Pod;
        };
        if !group.has_claim(used) {
            return ClaimConsumer::Pod;
        }
        let name = name.split_once('/').map_or(name, |(_, name)| name);
        ClaimConsumer::PodGroup { name: name.into(), uid: group.status.uid.clone() }
    }

    fn of_kubernetes(&self, name: &str) -> Option<(PodGroupKind, &Group)> {
        let kinds = Kind::of_groups(GroupApi::Kubernetes);
        kinds.iter().find_map(|kind| match self.get(*kind, name)? {
            Object::PodGroup(kind, _, group) => Some((*kind, &**group)),
            _ => None,
        })
    }

    pub(super) fn group(&self, kind: Kind, name: &str) -> Option<&Group> {
        match self.get(kind, name)? {
            Object::PodGroup(_, _, group) => Some(group),
            _ => None,
        }
    }

    /// How the pods of this group are placed, by its PodGroup and the groups that it is in.
    pub fn membership(&self, gang: &GangName) -> Membership {
        let kinds = Kind::of_groups(gang.api);
        if let Some(group) = self.groups().group_of(gang) {
            let is_of_tree = group.parent.is_some() || gang.api == GroupApi::Composite;
            return if is_of_tree {
                self.groups().membership_of_tree(gang)
            } else {
                Membership::Policy(group.policy.clone())
            };
        }
        if !self.are_listed(kinds) {
            return Membership::Unlisted(gang.api);
        }
        if gang.api != GroupApi::Composite && kinds.iter().all(|kind| self.is_unserved(*kind)) {
            return Membership::Policy(Policy::Alone);
        }
        Membership::NotFound
    }

    /// Groups of pods, with those that they are in.
    pub fn groups(&self) -> GroupLister<'_> {
        GroupLister(self)
    }
}

impl GroupLister<'_> {
    /// The largest group with which the pods of a PodGroup of Kubernetes are disrupted together, by the PodGroup's full name; `None`: each is disrupted by
    /// itself.
    pub fn disrupted_whole(self, group: &str) -> Option<GangName> {
        let says_all = |group: &Group| group.preemption.disruption == DisruptionMode::All;
        // Most groups are in no other: each pod that may be preempted is asked for its group.
        let (_, own) = self.0.of_kubernetes(group)?;
        if own.parent.is_none() {
            let name = || GangName { api: GroupApi::Kubernetes, group: group.into() };
            return says_all(own).then(name);
        }
        let goes_whole = |name: &GangName| self.group_of(name).is_some_and(says_all);
        let mut groups = self.known_ancestry(group).groups;
        let last = groups.iter().rposition(goes_whole)?;
        Some(groups.swap_remove(last))
    }

    /// A PodGroup of Kubernetes and the groups above it.
    fn known_ancestry(self, group: &str) -> Ancestry {
        self.ancestry(&GangName { api: GroupApi::Kubernetes, group: group.into() })
    }

    fn membership_of_tree(self, gang: &GangName) -> Membership {
        let unserved = |why: Arc<str>| Membership::Policy(Policy::Unserved(why));
        let Ancestry { groups, end } = self.ancestry(gang);
        let parent =
            |above: &str| format!("spec.parentCompositePodGroupName is {}, {above}", self.parent_of(gang));
        match (end, groups.as_slice()) {
            (AncestryEnd::Cycle, _) => {
                return unserved(parent("and the groups above that form a circle").into());
            }
            (AncestryEnd::TooDeep, _) => {
                let why = format!(
                    "above which are so many groups that the tree has more than {MOST_LEVELS} levels"
                );
                return unserved(parent(&why).into());
            }
            (AncestryEnd::Missing, _) if !self.0.are_listed(Kind::of_groups(GroupApi::Composite)) => {
                return Membership::Unlisted(GroupApi::Composite);
            }
            (AncestryEnd::Missing, [.., child, parent]) => {
                return Membership::NoParent { parent: parent.clone(), child: child.clone() };
            }
            (AncestryEnd::Missing | AncestryEnd::Root, _) => {}
        }
        let Some(root) = groups.last() else { return Membership::NotFound };
        for name in &groups {
            if let Some(Policy::Unserved(why)) = self.group_of(name).map(|group| &group.policy) {
                return unserved(if name == root { why.clone() } else { format!("{name}: {why}").into() });
            }
        }
        match self.gang_of_tree(&root.group) {
            Some(Ok(gang)) => Membership::Policy(Policy::Gang(gang)),
            Some(Err(why @ TreeTrouble::TooLarge)) => unserved(format!("{root}: {}", why.words()).into()),
            Some(Err(why)) => unserved(why.words()),
            None => Membership::NotFound,
        }
    }

    /// The name of the CompositePodGroup that the group names.
    fn parent_of(&self, group: &GangName) -> &str {
        let parent = self.group_of(group).and_then(|group| group.parent.as_deref()).unwrap_or_default();
        parent.split_once('/').map_or(parent, |(_, name)| name)
    }
}
