//! Which dialect reads a resource. Whole cards by their vendors' names may be of two dialects; the pod then decides which of them reads it.
//!
//! It reads names alone, never amounts.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;

use super::{Dialect, Dialects, SharingMode, extended_resources, hami, well_known_mode};
use crate::object::{Pod, Quantity};

/// By resource, the places of the dialects that read it.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// The first that reads it.
    first: HashMap<String, usize, FixedState>,
    /// Whole cards that two dialects read: the one that reads them in pods for whole cards alone, and the other.
    contested: HashMap<String, Contested, FixedState>,
    /// Resources by which kubelet asks vendors' device plugins, and the place of the dialect that reads them beside its own.
    of_plugins: HashMap<String, usize, FixedState>,
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
            let plugins = dialect.plugin_resources().into_iter();
            readers.of_plugins.extend(plugins.map(|resource| (resource.to_owned(), at)));
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
    /// Resources that another dialect reads than in most pods: whole cards of which the pod asks no share, and those of device plugins.
    others: Vec<(&'a str, usize)>,
}

impl Dialects {
    /// Which dialect reads each resource of this pod. Whole cards that two dialects read are of the second, unless the pod names a further resource
    /// of the first or carries cards of the first.
    pub fn in_pod(&self, pod: &Pod) -> InPod<'_> {
        let mut others = self.plugins_asked(pod);
        if self.readers.contested.is_empty() {
            return InPod { dialects: self, others };
        }
        let of_plugins = others.len();
        for (name, _) in extended_resources(pod) {
            let Some((resource, contested)) = self.readers.contested.get_key_value(name) else { continue };
            let Contested { of_whole_cards, of_shares } = *contested;
            let is_further = |name: &String| {
                self.readers.first(name) == Some(of_shares) && !self.readers.contested.contains_key(name)
            };
            let known = || others[of_plugins..].iter().any(|(other, _)| other == resource);
            let shares = || extended_resources(pod).any(|(name, _)| is_further(name));
            let carries = || !matches!(self.spoken[of_shares].assignment(pod), Ok(None));
            if !known() && !shares() && !carries() {
                others.push((resource.as_str(), of_whole_cards));
            }
        }
        InPod { dialects: self, others }
    }

    /// The resources of vendors' device plugins in this pod, each with the dialect that it names another resource of.
    fn plugins_asked(&self, pod: &Pod) -> Vec<(&str, usize)> {
        let is_own = |name: &str, at: usize| {
            self.readers.first(name) == Some(at)
                && !self.readers.contested.contains_key(name)
                && !self.spoken[at].qualifies(name)
        };
        let mut asked: Vec<(&str, usize)> = Vec::new();
        for (name, _) in extended_resources(pod) {
            let Some((resource, &at)) = self.readers.of_plugins.get_key_value(name) else { continue };
            let known = asked.iter().any(|(other, _)| other == resource);
            if !known && extended_resources(pod).any(|(name, _)| is_own(name, at)) {
                asked.push((resource.as_str(), at));
            }
        }
        asked
    }
}

impl<'a> InPod<'a> {
    /// The place of the dialect that reads a resource.
    pub(super) fn place(&self, resource: &str) -> Option<usize> {
        let other = self.others.iter().find(|(name, _)| *name == resource).map(|(_, at)| *at);
        other.or_else(|| self.dialects.readers.first(resource))
    }

    /// Whether the resource has a vendor's device plugin asked for what the pod asks for by other names.
    pub fn is_of_plugin(&self, resource: &str) -> bool {
        self.dialects.readers.of_plugins.contains_key(resource)
            && self.others.iter().any(|(name, _)| *name == resource)
    }

    /// The mode that a resource of this name speaks, whether or not it is enabled here.
    pub fn mode_of(&self, resource: &str) -> Option<&'a SharingMode> {
        let enabled = self.place(resource).map(|at| self.dialects.spoken[at].mode());
        enabled.or_else(|| well_known_mode(resource))
    }

    /// The mode in which so much of a resource requests a share, whether or not it is enabled here; `None`: it requests none, since the
    /// amount is 0 or the resource only describes a share. An amount that can't be read requests one: what is wrong with it is to be said.
    pub fn mode_requested(&self, resource: &str, amount: &Quantity) -> Option<&'a SharingMode> {
        self.mode_of_request(resource).filter(|_| !amount.is_zero())
    }

    /// The mode in which more than 0 of a resource requests a share.
    pub fn mode_of_request(&self, resource: &str) -> Option<&'a SharingMode> {
        match self.place(resource).map(|at| &self.dialects.spoken[at]) {
            Some(dialect) => (!dialect.qualifies(resource)).then(|| dialect.mode()),
            None => well_known_mode(resource).filter(|_| resource != hami::names::PRIORITY),
        }
    }
}
