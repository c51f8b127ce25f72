//! Why the pods of a gang wait, in words.

use std::sync::Arc;

use super::Shortfall;
use crate::scheduling::{
    decide::fit_error::FitError,
    model::{
        gang::{Gang, GangName},
        message::{Details, Message},
        name::Uid,
    },
};

/// Why no pod of a gang can be decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ungathered {
    /// There is no such PodGroup.
    NotFound,
    /// PodGroups are not listed yet.
    Unlisted,
    /// The PodGroup can't be read or served.
    Unserved(Arc<str>),
    /// So many pods hold a place or wait for one, which are too few.
    TooFew(usize),
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
            Self::Unlisted => "PodGroupsNotListed",
            Self::Unserved(_) => "PodGroupNotServed",
            Self::TooFew(_) => "TooFewPods",
            Self::Full(_) => "MaximumReached",
            Self::RollingBack => "RollingBack",
        }
    }

    /// The message for its pods.
    pub fn message(&self, name: &GangName, gang: Option<&Gang>) -> String {
        let least = gang.map(Gang::least).unwrap_or_default();
        match self {
            Self::NotFound => format!("{name} not found"),
            Self::Unlisted => {
                format!(
                    "{name}: PodGroups are not listed yet; Berth's ServiceAccount must be allowed to list and watch podgroups"
                )
            }
            Self::Unserved(why) => format!("{name}: {why}"),
            Self::TooFew(pods) => format!("{name}: waiting for more pods: there are {pods} ({least})"),
            Self::Full(pods) => format!("{name}: {pods} pods are placed, which is the maximum"),
            Self::RollingBack => {
                format!("{name}: its bound pods are being evicted, since not all could be bound in time")
            }
        }
    }
}

/// What is said of a gang that finds no room, to each of its pods.
#[derive(Debug)]
pub struct Words<'a> {
    /// The gang.
    pub name: &'a GangName,
    /// What must hold of it.
    pub gang: &'a Gang,
    /// How many pods hold a place or wait for one.
    pub pods: usize,
    /// Why it finds no room.
    pub shortfall: &'a Shortfall,
}

impl Words<'_> {
    /// What a pod of the gang is told; `named` is how pods are called.
    pub fn told(&self, uid: &Uid, named: impl Fn(&Uid) -> Arc<str>, details: Details) -> Message {
        let own = (details == Details::Own).then(|| self.message(uid, &named, Details::Own));
        Message { full: self.message(uid, named, Details::Full), own }
    }

    /// How many of its pods fit. The domain in which most do may be a node.
    fn sum(&self, details: Details) -> String {
        let Self { name, gang, pods, shortfall } = self;
        let domain = shortfall.domain.as_ref().map_or_else(String::new, |(key, best)| {
            let best = best.as_ref().filter(|_| details == Details::Full);
            let best = best.map_or_else(String::new, |best| format!(", at best {best}"));
            format!(" on nodes with one value of {key}{best}")
        });
        format!("{name}: {} of {pods} pods fit{domain} ({})", shortfall.fitting, gang.least())
    }

    /// The message with these details.
    pub fn message(&self, uid: &Uid, named: impl Fn(&Uid) -> Arc<str>, details: Details) -> String {
        let failed = &self.shortfall.failed;
        let sum = self.sum(details);
        let why = |error: Option<&FitError>| why(error, details);
        if let Some(error) = self.shortfall.failure_of(uid) {
            return format!("{sum}; this one does not{}", why(error));
        }
        match failed.split_first() {
            None => sum,
            Some(((first, error), [])) => format!("{sum}; {} does not{}", named(first), why(error.as_ref())),
            Some(((first, error), others)) => {
                format!("{sum}; {} and {} more do not{}", named(first), others.len(), why(error.as_ref()))
            }
        }
    }
}

/// Nothing is said of a pod that fits outside the domain.
fn why(error: Option<&FitError>, details: Details) -> String {
    error.map_or_else(String::new, |error| format!(": {}", error.message(details).told(details).0))
}
