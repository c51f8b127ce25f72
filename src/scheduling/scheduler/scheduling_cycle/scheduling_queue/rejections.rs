//! Why pods were rejected since the last change: a pod like one of these is rejected for the same.

use std::collections::HashMap;

use crate::scheduling::{
    decide::{class::Classes, fit_error::FitError},
    scheduler::scheduling_cycle::alike::{Alike, Versions},
    snapshot::Snapshot,
};

/// Why pods were rejected, as long as nothing has changed since.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Rejections {
    versions: Versions,
    pub(in crate::scheduling::scheduler) errors: HashMap<Alike, FitError>,
}

impl Rejections {
    /// Why a pod like this was rejected since the last change.
    pub(in crate::scheduling::scheduler) fn find(
        &mut self,
        alike: &Alike,
        versions: Versions,
        classes: &Classes,
    ) -> Option<&FitError> {
        if self.versions != versions {
            *self = Self { versions, errors: HashMap::new() };
        }
        // A class that was forgotten would not take the pod in among those that wait.
        self.errors.get(alike).filter(|_| alike.is_known(classes))
    }

    /// What was found for a pod holds for those like it, until something changes.
    pub(in crate::scheduling::scheduler) fn note(&mut self, alike: Alike, error: &FitError) {
        self.errors.insert(alike, error.clone());
    }

    /// What has been tried since these versions was undone: what was found then still holds.
    pub(in crate::scheduling::scheduler) fn keep(&mut self, since: Versions, snapshot: &Snapshot) {
        if self.versions == since {
            self.versions = Versions::of(snapshot);
        }
    }
}
