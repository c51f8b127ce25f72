//! Why the pods of a gang wait, and the words for that.

use std::sync::Arc;

use jiff::Timestamp;

use super::{GangShortfall, Pool};
use crate::scheduling::{
    decide::{blame::Blame, fit_error::FitError, no_room::NoRoom},
    model::{
        gang::{Gang, GangName, GroupApi},
        message::{Details, Message},
        name::Uid,
    },
};

/// Why no pod of a gang can be decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ungathered {
    /// There is no such PodGroup.
    NotFound,
    /// A CompositePodGroup is not there.
    NoParent {
        /// That one.
        parent: GangName,
        /// The group that names it.
        child: GangName,
    },
    /// The groups of this API are not listed yet.
    Unlisted(GroupApi),
    /// The PodGroup can't be read or served.
    Unserved(Arc<str>),
    /// So many pods hold a place or wait for one, which are too few.
    TooFew(usize),
    /// In a tree of groups, too few pods of this group hold a place or wait for one: this is missing.
    TooFewOfGroup(GangName, Arc<str>),
    /// So many pods hold a place, which is the maximum.
    Full(usize),
    /// Its pods are being evicted.
    RollingBack,
}

impl Ungathered {
    /// Its name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotFound => "PodGroupNotFound",
            Self::NoParent { .. } => "CompositePodGroupNotFound",
            Self::Unlisted(_) => "PodGroupsNotListed",
            Self::Unserved(_) => "PodGroupNotServed",
            Self::TooFew(_) | Self::TooFewOfGroup(..) => "TooFewPods",
            Self::Full(_) => "MaximumReached",
            Self::RollingBack => "RollingBack",
        }
    }

    /// The message for its pods.
    pub fn message(&self, name: &GangName, gang: Option<&Gang>) -> String {
        let least = gang.map(Gang::least).unwrap_or_default();
        match self {
            Self::NotFound => format!("{name} not found"),
            Self::NoParent { parent, child } => {
                format!("{parent} not found, which spec.parentCompositePodGroupName of {child} names")
            }
            Self::Unlisted(api) => {
                let kinds = match api {
                    GroupApi::Composite => ["CompositePodGroups", "compositepodgroups"],
                    _ => ["PodGroups", "podgroups"],
                };
                let [kinds, resource] = kinds;
                format!(
                    "{name}: {kinds} are not listed yet; Berth's ServiceAccount must be allowed to list and watch {resource}"
                )
            }
            Self::Unserved(why) => format!("{name}: {why}"),
            Self::TooFew(pods) => format!("{name}: waiting for more pods: there are {pods} ({least})"),
            Self::TooFewOfGroup(group, lacking) => format!("{group}: waiting for more pods: {lacking}"),
            Self::Full(pods) => format!("{name}: {pods} pods are placed, which is the maximum"),
            Self::RollingBack => {
                format!("{name}: its bound pods are being evicted, since not all could be bound in time")
            }
        }
    }
}

/// Why a pod of a gang waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GangReason {
    /// It can't be decided.
    Ungathered {
        /// The gang.
        name: GangName,
        /// What must hold of it, where that is known.
        gang: Option<Arc<Gang>>,
        /// Why not.
        why: Ungathered,
    },
    /// Its pods find no room together.
    NoRoom(GangNoRoom),
}

impl GangReason {
    /// Why the pod waits, as far as that is counted.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Ungathered { why, .. } => Blame::Gang(why.name()),
            Self::NoRoom(no_room) => no_room.error().map_or(Blame::Gang("TooFewFit"), FitError::blame),
        }
    }

    /// Whether groups are still to be listed: the pod may have a place then.
    pub fn is_of_unlisted(&self) -> bool {
        matches!(self, Self::Ungathered { why: Ungathered::Unlisted(_), .. })
    }

    /// Whether both are of one kind, whatever the pods and amounts that they name.
    pub fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ungathered { why: one, .. }, Self::Ungathered { why: other, .. }) => {
                one.name() == other.name()
            }
            (Self::NoRoom(one), Self::NoRoom(other)) => match (one.error(), other.error()) {
                (Some(one), Some(other)) => one.is_alike(other),
                (one, other) => one.is_none() && other.is_none(),
            },
            _ => false,
        }
    }

    /// What the pod is told.
    pub fn message(&self) -> Message {
        match self {
            Self::Ungathered { name, gang, why } => why.message(name, gang.as_deref()).into(),
            Self::NoRoom(no_room) => no_room.message(),
        }
    }
}

/// Why a gang finds no room, as it concerns one of its pods.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GangNoRoom {
    name: GangName,
    /// How many there must be, in words.
    least: Arc<str>,
    /// What of the gang is counted.
    counted: Counted,
    /// How many there are: pods that hold a place or wait for one, or groups.
    all: usize,
    /// How many find a place together at most.
    fitting: usize,
    /// The node label of which no value has room for enough pods, with the best value.
    domain: Option<(Arc<str>, Option<Arc<str>>)>,
    failing: Failing,
    /// Until when no pods are preempted for it.
    paused: Option<Timestamp>,
}

/// What is counted of a gang that finds no room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Counted {
    Pods,
    Groups,
}

impl Counted {
    fn word(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Groups => "groups",
        }
    }
}

/// Which pod of a gang finds no place; there is no error for one that finds it outside the domain alone.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Failing {
    None,
    Itself(Option<Arc<FitError>>),
    Others { first: Arc<str>, error: Option<Arc<FitError>>, more: usize },
}

/// A gang that finds no room: what each of its pods is told.
#[derive(Debug)]
pub struct GangRefusal<'a> {
    name: &'a GangName,
    least: Arc<str>,
    counted: Counted,
    all: usize,
    shortfall: &'a GangShortfall,
    /// What a pod is told that is not among those which find no place.
    others: Failing,
    paused: Option<Timestamp>,
}

impl<'a> GangRefusal<'a> {
    /// Of the pods of this pool; `named` is how pods are called. No pods are preempted for them before `paused`.
    pub fn new(
        name: &'a GangName,
        pool: &Pool<'a>,
        shortfall: &'a GangShortfall,
        named: impl Fn(&Uid) -> Arc<str>,
        paused: Option<Timestamp>,
    ) -> Self {
        let others = shortfall.failed.split_first().map_or(Failing::None, |((first, error), others)| {
            let error = error.clone().map(Arc::new);
            Failing::Others { first: named(first), error, more: others.len() }
        });
        let pods = pool.placed.total() + pool.applicants.len();
        let (name, least, counted, all) = match &pool.gang.groups {
            None => (name, pool.gang.least(), Counted::Pods, pods),
            Some(tree) => {
                let (node, least) = (tree.node(pool.part), tree.least(pool.part));
                let members = pool.applicants.iter().map(|applicant| &applicant.member);
                let all = pool.placed.clone().beside(members);
                if tree.is_leaf(pool.part) {
                    (&node.name, least, Counted::Pods, tree.sums(&all)[pool.part])
                } else {
                    (&node.name, least, Counted::Groups, node.children.len())
                }
            }
        };
        Self { name, least: least.into(), counted, all, shortfall, others, paused }
    }

    /// Why this pod waits.
    pub fn of(&self, uid: &Uid) -> GangNoRoom {
        let failing = match self.shortfall.failure_of(uid) {
            Some(error) => Failing::Itself(error.cloned().map(Arc::new)),
            None => self.others.clone(),
        };
        GangNoRoom {
            name: self.name.clone(),
            least: self.least.clone(),
            counted: self.counted,
            all: self.all,
            fitting: self.shortfall.fitting,
            domain: self.shortfall.domain.clone(),
            failing,
            paused: self.paused,
        }
    }
}

impl GangNoRoom {
    /// Why the pod finds no place itself; `None`: it does, or was not tried.
    pub fn error(&self) -> Option<&FitError> {
        match &self.failing {
            Failing::Itself(error) => error.as_deref(),
            Failing::None | Failing::Others { .. } => None,
        }
    }

    /// The gang.
    pub fn name(&self) -> &GangName {
        &self.name
    }

    /// How many of its pods fit, without naming a node.
    pub fn summary(&self) -> String {
        self.sum(Details::Own)
    }

    /// What the pod is told.
    pub fn message(&self) -> Message {
        Message::with_own(self.words(Details::Full), self.words(Details::Own))
    }

    /// How many of its pods fit. The domain in which most do may be a node.
    fn sum(&self, details: Details) -> String {
        let Self { name, least, counted, all, fitting, domain, .. } = self;
        let domain = domain.as_ref().map_or_else(String::new, |(key, best)| {
            let best = best.as_ref().filter(|_| details == Details::Full);
            let best = best.map_or_else(String::new, |best| format!(", at best {best}"));
            format!(" on nodes with one value of {key}{best}")
        });
        format!("{name}: {fitting} of {all} {} fit{domain} ({least})", counted.word())
    }

    fn words(&self, details: Details) -> String {
        let sum = self.sum(details);
        let why = |error: &Option<Arc<FitError>>| why(error.as_deref(), details);
        let words = match &self.failing {
            Failing::None => sum,
            Failing::Itself(error) => format!("{sum}; this one does not{}", why(error)),
            Failing::Others { first, error, more: 0 } => format!("{sum}; {first} does not{}", why(error)),
            Failing::Others { first, error, more } => {
                format!("{sum}; {first} and {more} more do not{}", why(error))
            }
        };
        self.paused.iter().fold(words, |words, until| format!("{words} {}", NoRoom::Paused(*until)))
    }
}

/// Nothing is said of a pod that fits outside the domain.
fn why(error: Option<&FitError>, details: Details) -> String {
    error.map_or_else(String::new, |error| format!(": {}", error.words(details)))
}
