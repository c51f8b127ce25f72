//! Pods that are placed together: what their group demands, and how many of them there are.

pub mod tree;

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::SignedDuration;

use super::{
    claim_use::{GroupClaim, ResourceClaimUse},
    group_condition::GroupStatus,
    importance::{Importance, PreemptionPolicy},
    tdm::job::JobBudget,
};
use tree::GroupTree;

/// Whose groups.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum GroupApi {
    /// Volcano's: `scheduling.volcano.sh`.
    Volcano,
    /// The coscheduling plugin's: `scheduling.x-k8s.io`.
    Coscheduling,
    /// Kubernetes': `scheduling.k8s.io`.
    Kubernetes,
    /// Kubernetes' groups of groups: CompositePodGroups.
    Composite,
}

/// A group of pods, or of groups.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GangName {
    /// Whose PodGroup it is.
    pub api: GroupApi,
    /// The group's name, behind its namespace and a `/`.
    pub group: Arc<str>,
}

impl fmt::Display for GangName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.api == GroupApi::Composite { "CompositePodGroup" } else { "PodGroup" };
        write!(formatter, "{kind} {}", self.group)
    }
}

/// What a pod is in its group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// The group.
    pub gang: GangName,
    /// The task of a Volcano Job that the pod belongs to, or the PodClique of Grove.
    pub task: Option<Arc<str>>,
}

/// In which nodes all pods of a group run: those with one value of a node label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SharedTopology {
    /// The node label, such as `topology.kubernetes.io/rack`.
    pub key: Arc<str>,
    /// Whether the group waits until one value has room.
    pub strictness: Strictness,
}

/// Whether a wish must be met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Strictness {
    /// It must.
    Required,
    /// It is, where that is possible.
    Preferred,
}

/// What must hold of a group before any of its pods is bound.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gang {
    /// So many of its pods are placed together.
    pub min: usize,
    /// At most so many of its pods run at a time.
    pub max: Option<usize>,
    /// So many of each task's pods are placed together (Volcano's `minTaskMember`).
    pub tasks: BTreeMap<Arc<str>, usize>,
    /// So many of its pods have ended well: they count as placed.
    pub succeeded: usize,
    /// Where its pods run.
    pub topology: Option<SharedTopology>,
    /// For so long pods that are bound wait for the others; `None`: as the settings say.
    pub timeout: Option<SignedDuration>,
    /// The groups that it consists of, where it is a CompositePodGroup: these say how many pods there must be, and where they run.
    pub groups: Option<GroupTree>,
}

/// What a PodGroup says of its pods.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Policy {
    /// They are placed together.
    Gang(Arc<Gang>),
    /// Each is placed alone.
    Alone,
    /// It can't be read or served, for this reason: they are not placed.
    Unserved(Arc<str>),
}

/// A PodGroup, or a CompositePodGroup.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group {
    /// The full name of the CompositePodGroup that it is in; `None`: it is in none.
    pub parent: Option<Arc<str>>,
    /// How many of its pods may be evicted at a time when their window closes.
    pub budget: Option<JobBudget>,
    /// How its pods are placed.
    pub policy: Policy,
    /// What it says of preemption.
    pub preemption: GroupPreemption,
    /// The claims of devices that it has for its pods.
    pub claims: Vec<GroupClaim>,
    /// What its status says.
    pub status: GroupStatus,
}

impl Group {
    /// One that says only how its pods are placed.
    pub fn of(policy: Policy) -> Self {
        let preemption = GroupPreemption::default();
        let (claims, status) = (Vec::new(), GroupStatus::default());
        Self { parent: None, budget: None, policy, preemption, claims, status }
    }

    /// Whether a pod of the group uses one of the group's claims by this entry.
    pub fn has_claim(&self, used: &ResourceClaimUse) -> bool {
        self.claims.iter().any(|claim| claim.is_used_by(used))
    }

    /// Whether the other says the same of its pods, whatever its status says.
    pub fn is_alike(&self, other: &Self) -> bool {
        let Self { parent, budget, policy, preemption, claims, status: _ } = self;
        (parent, budget, policy, preemption, claims)
            == (&other.parent, &other.budget, &other.policy, &other.preemption, &other.claims)
    }
}

/// Which pods of a group are disrupted together: `spec.disruptionMode` of Kubernetes' PodGroup.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DisruptionMode {
    /// Each by itself: `Single`, in `v1alpha2` `Pod`.
    #[default]
    Single,
    /// All or none: `All`, in `v1alpha2` `PodGroup`.
    All,
}

/// What a PodGroup of Kubernetes says of preemption. PodGroups of others say nothing of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GroupPreemption {
    /// Which pods of the group are disrupted together.
    pub disruption: DisruptionMode,
    /// Its priority; `None`: none is stated, and each pod has its own.
    pub priority: Option<i32>,
    /// Whether others may be preempted for it; `None`: each of its pods says that.
    pub policy: Option<PreemptionPolicy>,
}

impl GroupPreemption {
    /// Why a pod of this importance is not placed in the group; `None`: it is as the group says. kube-scheduler places no pod of such a group
    /// (v1.37 `schedule_one_podgroup.go`, `validatePodGroup`).
    pub fn contradiction(&self, pod: &Importance) -> Option<String> {
        if let Some(priority) = self.priority.filter(|priority| *priority != pod.priority) {
            return Some(format!(
                "spec.priority is {priority}, but that of this pod is {}; both must be equal",
                pod.priority
            ));
        }
        let policy = self.policy.filter(|policy| *policy != pod.preemption_policy)?;
        Some(format!(
            "spec.preemptionPolicy is {policy}, but that of this pod is {}; both must be equal",
            pod.preemption_policy
        ))
    }
}

/// What becomes of the pods of a group, as far as its PodGroup is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Membership {
    /// The groups of this API are still to be listed.
    Unlisted(GroupApi),
    /// The API server serves such PodGroups, and there is none of this name.
    NotFound,
    /// A CompositePodGroup is not there.
    NoParent {
        /// That one.
        parent: GangName,
        /// The group that names it.
        child: GangName,
    },
    /// The PodGroup says this. Where the API server serves no such kind, each pod is placed alone.
    Policy(Policy),
}

/// How many pods of a gang.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    total: usize,
    by_task: BTreeMap<Arc<str>, usize>,
    /// Those of each PodGroup of Kubernetes.
    by_group: BTreeMap<Arc<str>, usize>,
}

impl Tally {
    /// Counts one more pod.
    pub fn count(&mut self, member: &Member) {
        self.total += 1;
        if let Some(task) = &member.task {
            *self.by_task.entry(task.clone()).or_default() += 1;
        }
        if member.gang.api == GroupApi::Kubernetes {
            *self.by_group.entry(member.gang.group.clone()).or_default() += 1;
        }
    }

    /// These pods and others.
    #[must_use]
    pub fn beside<'a>(mut self, members: impl IntoIterator<Item = &'a Member>) -> Self {
        for member in members {
            self.count(member);
        }
        self
    }

    fn of_task(&self, task: &str) -> usize {
        self.by_task.get(task).copied().unwrap_or_default()
    }

    /// How many pods there are of this PodGroup of Kubernetes, by its full name.
    pub fn of_group(&self, group: &str) -> usize {
        self.by_group.get(group).copied().unwrap_or_default()
    }

    /// How many pods there are of all tasks.
    pub fn total(&self) -> usize {
        self.total
    }
}

impl Gang {
    /// Whether so many pods are enough.
    pub fn is_whole(&self, tally: &Tally) -> bool {
        if let Some(tree) = &self.groups {
            return tree.wholes(tally)[GroupTree::ROOT];
        }
        self.lacks(tally) == 0 && self.minima().all(|(task, least)| tally.of_task(task) >= *least)
    }

    /// The minima of tasks that count. Volcano asks for them only where they are within the group's (`pkg/scheduler/api/job_info.go`,
    /// `CheckTaskReady`).
    fn minima(&self) -> impl Iterator<Item = (&Arc<str>, &usize)> {
        let asked: usize = self.tasks.values().sum();
        self.tasks.iter().filter(move |_| asked <= self.min && self.succeeded == 0)
    }

    /// How many pods are missing beside so many, whatever their tasks.
    pub fn lacks(&self, tally: &Tally) -> usize {
        self.min.saturating_sub(tally.total + self.succeeded)
    }

    /// Whether a pod of this pod's task is missing beside so many.
    pub fn lacks_of_task(&self, tally: &Tally, member: &Member) -> bool {
        let mut minima = self.minima();
        minima.any(|(task, least)| member.task.as_ref() == Some(task) && tally.of_task(task) < *least)
    }

    /// Whether so many more pods could make it whole, whatever their tasks.
    pub fn can_be_whole(&self, tally: &Tally, more: usize) -> bool {
        tally.total + more + self.succeeded >= self.min
    }

    /// How many more pods may be placed beside so many.
    pub fn room(&self, tally: &Tally) -> usize {
        self.max.map_or(usize::MAX, |max| max.saturating_sub(tally.total))
    }

    /// Whether a pod of this member's group is placed alone beside so many: there are enough, and nothing says where they run together.
    pub fn is_settled(&self, tally: &Tally, member: &Member) -> bool {
        match &self.groups {
            Some(tree) => tree.is_settled(&member.gang, tally),
            None => self.is_whole(tally) && self.topology.is_none(),
        }
    }

    /// How many pods must be there, in words: `minMember 4 (worker 3)`.
    pub fn least(&self) -> String {
        if let Some(tree) = &self.groups {
            return tree.least(GroupTree::ROOT);
        }
        let tasks: Vec<_> = self.tasks.iter().map(|(task, least)| format!("{task} {least}")).collect();
        let tasks = if tasks.is_empty() { String::new() } else { format!(" ({})", tasks.join(", ")) };
        format!("minimum {}{tasks}", self.min)
    }
}
