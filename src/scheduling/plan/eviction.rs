//! Which pods leave the nodes of zones that are closed: one round of evictions.
//!
//! The pods of all closed zones together, the least important first, as many as the budget of each job and the PodDisruptionBudgets let
//! go. Which of them the API server really evicts is its own decision.

pub(super) mod budgets;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::scheduling::model::tdm::{
    TimeOfDay, ZoneState,
    job::{Evictable, JobBudget, JobMember, JobName, WITHOUT_BUDGET},
};
use crate::scheduling::{
    model::{
        message::Message,
        name::{NodeName, Uid},
        pod::{Binding, PodInfo, PodKey, Stage},
    },
    world::object::Objects,
};
use budgets::EvictionBudgets;

/// A pod that is to be evicted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Eviction {
    /// The pod.
    pub pod: PodKey,
    /// Its node.
    pub node: NodeName,
    /// The zone that is closed.
    pub zone: Arc<str>,
    /// When the zone opens again; `None`: never.
    pub until: Option<TimeOfDay>,
}

/// A pod of a closed zone that stays for now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Postponed {
    /// What would be done.
    pub eviction: Eviction,
    /// Why it is not.
    pub why: Postponement,
}

impl Postponed {
    /// Its text, in full and without what is not the pod's owner's.
    pub fn message(&self) -> Message {
        let Self { eviction, why } = self;
        Message::with_own(
            format!("Not evicted yet from {eviction}; {why}"),
            format!("Not evicted yet: {}; {why}", eviction.closed()),
        )
    }
}

/// Why a pod of a closed zone is not evicted for now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Postponement {
    /// The budget of its job lets no other pod go.
    Job,
    /// The PodDisruptionBudget of this name lets no other pod go.
    PodDisruptionBudget(Arc<str>),
    /// More than one PodDisruptionBudget covers it: the API server evicts no such pod.
    SeveralPodDisruptionBudgets,
    /// The API server refused, with this answer.
    Refused(String),
}

/// `node n1: revocable zone rz1 is closed until 01:00`.
impl fmt::Display for Eviction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}: {}", self.node, self.closed())
    }
}

impl Eviction {
    /// Which zone is closed, and until when.
    pub fn closed(&self) -> String {
        let until = self.until.iter().map(|until| format!(" until {until}"));
        format!("revocable zone {} is closed{}", self.zone, until.collect::<String>())
    }
}

/// In the words of an Event.
impl fmt::Display for Postponement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job => formatter.write_str("the budget of its job does not allow another eviction now"),
            Self::PodDisruptionBudget(name) => {
                write!(formatter, "PodDisruptionBudget {name} does not allow another eviction now")
            }
            Self::SeveralPodDisruptionBudgets => formatter.write_str(
                "more than one PodDisruptionBudget covers it, so the API server does not evict it",
            ),
            Self::Refused(answer) => formatter.write_str(answer),
        }
    }
}

/// One round of evictions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// The pods that are to be evicted, in this order.
    pub evictions: Vec<Eviction>,
    /// The pods that would be, were it not for a budget.
    pub postponed: Vec<Postponed>,
}

/// One job, as the budgets see it.
#[derive(Default)]
struct Job {
    /// Its pods that have not ended.
    total: usize,
    /// Those of them that run and are not on their way out.
    running: usize,
    /// Every budget that is stated for it.
    budgets: BTreeSet<JobBudget>,
    /// How many have been chosen of those that run.
    chosen: usize,
}

impl Job {
    /// How many more of its running pods may go. Where several budgets are stated, each holds.
    fn left(&self) -> usize {
        let allowed = self.budgets.iter().map(|budget| budget.allows(self.total, self.running)).min();
        allowed.unwrap_or(WITHOUT_BUDGET).saturating_sub(self.chosen)
    }
}

/// One round: `pods` are all pods of the cluster, `zone` says in which zone a node is, and `asked` which pods' evictions have been granted
/// and not been seen yet.
pub fn round<'a>(
    pods: impl Iterator<Item = &'a PodInfo> + Clone,
    zone: impl Fn(&NodeName) -> Option<ZoneState>,
    objects: &Objects,
    asked: impl Fn(&Uid) -> bool,
) -> Round {
    let mut jobs = jobs(pods.clone(), objects, &asked);
    let mut budgets = EvictionBudgets::new(objects);
    let mut round = Round::default();
    for (info, member, eviction) in candidates(pods, zone, objects, asked) {
        let job = jobs.entry(&member.job).or_default();
        let runs = info.stage == Stage::Running;
        let why = if runs && job.left() == 0 {
            Some(Postponement::Job)
        } else {
            budgets.take(info, member.readiness).err().filter(|_| runs)
        };
        if let Some(why) = why {
            round.postponed.push(Postponed { eviction, why });
        } else {
            job.chosen += usize::from(runs);
            round.evictions.push(eviction);
        }
    }
    round
}

/// The jobs. A pod that waits or leaves states no budget: neither has anything to lose, and a user can have any number of either.
fn jobs<'a>(
    pods: impl Iterator<Item = &'a PodInfo>,
    objects: &Objects,
    asked: impl Fn(&Uid) -> bool,
) -> BTreeMap<&'a JobName, Job> {
    let mut jobs: BTreeMap<&JobName, Job> = BTreeMap::new();
    for pod in pods.filter(|pod| pod.stage != Stage::Ended) {
        let Some(member) = pod.groups.job() else { continue };
        let job = jobs.entry(&member.job).or_default();
        job.total += 1;
        job.running += usize::from(pod.stage == Stage::Running && !leaves(pod) && !asked(&pod.key.uid));
        let of_group = member.group.as_ref().and_then(|group| objects.job_budget(group));
        let own = member.budget.filter(|_| bound(pod).is_some() && !leaves(pod));
        job.budgets.extend(of_group.or(own));
    }
    jobs
}

/// The pods that have to go, those that matter least first: by priority, then the youngest, as kube-scheduler chooses the victims of preemption.
fn candidates<'a>(
    pods: impl Iterator<Item = &'a PodInfo>,
    zone: impl Fn(&NodeName) -> Option<ZoneState>,
    objects: &Objects,
    asked: impl Fn(&Uid) -> bool,
) -> Vec<(&'a PodInfo, &'a JobMember, Eviction)> {
    let candidate = |pod: &'a PodInfo| {
        let member = pod.groups.job().filter(|member| may_go(&member.evictable, objects))?;
        let node = bound(pod)?;
        let stays = pod.stage != Stage::Ended && !leaves(pod) && !asked(&pod.key.uid);
        let closed = zone(node).filter(|state| stays && !state.is_open())?;
        let ZoneState { zone, until, .. } = closed;
        let eviction = Eviction { pod: pod.key.clone(), node: node.clone(), zone, until };
        Some((pod, member, eviction))
    };
    let mut candidates: Vec<_> = pods.filter_map(candidate).collect();
    candidates.sort_by(|(one, ..), (other, ..)| {
        let order = |pod: &'a PodInfo| {
            (pod.importance.priority, Reverse(pod.lifetime.created), &pod.key.namespace, &pod.key.name)
        };
        order(one).cmp(&order(other))
    });
    candidates
}

fn may_go(evictable: &Evictable, objects: &Objects) -> bool {
    match evictable {
        Evictable::Yes => true,
        Evictable::UnlessOf(set) => !objects.may_have_daemon_set(set),
        Evictable::No => false,
    }
}

/// The node that the pod is bound to.
fn bound(pod: &PodInfo) -> Option<&NodeName> {
    pod.holding.as_ref().filter(|holding| holding.binding == Binding::Bound).map(|holding| &holding.node)
}

fn leaves(pod: &PodInfo) -> bool {
    pod.lifetime.leaving.is_some()
}

#[cfg(test)]
mod tests;
