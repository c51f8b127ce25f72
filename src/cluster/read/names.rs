//! Under which scheduler's name a pod asks to be placed.
//!
//! It must not say whether that scheduler runs.

use std::collections::BTreeSet;

use crate::object::Pod;

/// The names under which Berth places pods.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Its own.
    pub(super) own: String,
    /// Those of schedulers that do not run: their share pods are Berth's.
    pub(super) adopted: BTreeSet<String>,
}

/// Whose name a pod names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Named {
    /// Berth's own.
    Berth,
    /// That of a scheduler whose share pods Berth places.
    Adopted,
    /// Another.
    Another,
}

impl Names {
    /// Whose name the pod names.
    pub(super) fn of(&self, pod: &Pod) -> Named {
        match pod.spec.scheduler_name.as_deref() {
            Some(name) if name == self.own => Named::Berth,
            Some(name) if self.adopted.contains(name) => Named::Adopted,
            _ => Named::Another,
        }
    }
}
