//! The shares that a pod requests, in each dialect of which it names a resource: parsed once for all the rules of a review.
//!
//! Reads only; what is wrong with a request is the rules' to say.

use std::sync::Arc;

use super::facts::Facts;
use crate::{
    device::PodRequest,
    dialect::{Dialect, MissingCount, Unreadable},
    object::Pod,
};

/// What a pod requests in one dialect, as [`Dialect::request`] reads it.
type Reading = Result<Option<PodRequest>, Vec<Unreadable>>;

/// What one pod requests.
#[derive(Debug)]
pub struct PodShares<'a>(Vec<(&'a Arc<dyn Dialect>, Reading)>);

impl<'a> PodShares<'a> {
    /// Reads a pod.
    pub fn read(pod: &Pod, facts: &'a Facts, missing: MissingCount) -> Self {
        let asked = facts.dialects.asked(pod).into_iter();
        Self(asked.map(|dialect| (dialect, dialect.request(pod, missing))).collect())
    }

    /// The requests that can be read, and their dialects.
    pub fn requests(&self) -> impl Iterator<Item = (&dyn Dialect, &PodRequest)> {
        self.0.iter().filter_map(|(dialect, read)| Some((dialect.as_ref(), read.as_ref().ok()?.as_ref()?)))
    }

    /// What can't be read.
    pub fn unread(&self) -> impl Iterator<Item = &Unreadable> {
        self.0.iter().filter_map(|(_, read)| read.as_ref().err()).flatten()
    }
}
