//! Which dialect reads a resource. Whole cards by their vendors' names may be of two dialects; the pod then decides which of them reads it.
//!
//! It reads names alone, never amounts.

use std::{collections::BTreeMap, sync::Arc};

use super::{Dialect, Dialects, SharingMode, extended_resources, hami, well_known_mode};
use crate::object::{Pod, Quantity};

/// By resource, the places of the dialects that read it.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// The first that reads it.
    first: BTreeMap<String, usize>,
    /// Whole cards that two dialects read: the one that reads them in pods for whole cards alone, and the other.
    contested: BTreeMap<String, Contested>,
}

#[derive(Clone, Copy, Debug)]
struct Contested {
    of_whole_cards: usize,
    of_shares: usize,
}

impl Readers {
    /// The readers among these dialects.
    pub(super) fn of(dialects: &[Arc<dyn Dialect>]) -> Self {
        let mut readers = Self::default();
        for (at, dialect) in dialects.iter().enumerate() {
            let whole = dialect.whole_cards();
            for resource in dialect.resources() {
                let other = *readers.first.entry(resource.to_owned()).or_insert(at);
                if other != at && whole.contains(&resource) {
                    let contested = Contested { of_whole_cards: at, of_shares: other };
                    readers.contested.insert(resource.to_owned(), contested);
                }
            }
        }
        readers
    }

    /// The place of the first dialect that reads a resource, whatever the pod.
    pub(super) fn first(&self, resource: &str) -> Option<usize> {
        self.first.get(resource).copied()
    }
}

/// Which dialect reads each resource of one pod.
#[derive(Clone, Debug)]
pub struct InPod<'a> {
    dialects: &'a Dialects,
    /// Whole cards of which the pod asks no share, and the dialect that then reads them.
    whole: Vec<(&'a str, usize)>,
}

impl Dialects {
    /// Which dialect reads each resource of this pod. Whole cards that two dialects read are of the second, unless the pod names a further resource
    /// of the first or carries cards of the first.
    pub fn in_pod(&self, pod: &Pod) -> InPod<'_> {
        let mut whole = Vec::new();
        if self.readers.contested.is_empty() {
            return InPod { dialects: self, whole };
        }
        let named = |resource: &str| extended_resources(pod).any(|(name, _)| name == resource);
        for (resource, &Contested { of_whole_cards, of_shares }) in &self.readers.contested {
            let is_further = |name: &String| {
                self.readers.first(name) == Some(of_shares) && !self.readers.contested.contains_key(name)
            };
            let shares = || extended_resources(pod).any(|(name, _)| is_further(name));
            let carries = || !matches!(self.spoken[of_shares].assignment(pod), Ok(None));
            if named(resource) && !shares() && !carries() {
                whole.push((resource.as_str(), of_whole_cards));
            }
        }
        InPod { dialects: self, whole }
    }
}

impl<'a> InPod<'a> {
    /// The place of the dialect that reads a resource.
    pub(super) fn place(&self, resource: &str) -> Option<usize> {
        let whole = self.whole.iter().find(|(name, _)| *name == resource).map(|(_, at)| *at);
        whole.or_else(|| self.dialects.readers.first(resource))
    }

    /// The mode that a resource of this name speaks, whether or not it is enabled here.
    pub fn mode_of(&self, resource: &str) -> Option<&'a SharingMode> {
        let enabled = self.place(resource).map(|at| self.dialects.spoken[at].mode());
        enabled.or_else(|| well_known_mode(resource))
    }

    /// The mode in which so much of a resource requests a share, whether or not it is enabled here; `None`: it requests none, since the
    /// amount is 0 or the resource only describes a share. An amount that can't be read requests one: what is wrong with it is to be said.
    pub fn mode_requested(&self, resource: &str, amount: &Quantity) -> Option<&'a SharingMode> {
        let qualifies = match self.place(resource).map(|at| &self.dialects.spoken[at]) {
            Some(dialect) => dialect.qualifies(resource),
            None => resource == hami::names::PRIORITY,
        };
        self.mode_of(resource).filter(|_| !qualifies && !amount.is_zero())
    }
}
