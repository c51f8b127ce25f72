//! What a ResourceQuota allows of shares, and what is used of that, as JSON.

use serde::{Deserialize, Serialize};

use crate::scheduling::world::quota::BoundStanding;

/// One bound of a quota.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BoundRow {
    /// The ResourceQuota.
    quota: String,
    /// The key under which it has the bound.
    pub resource: String,
    /// Units of the resource.
    pub used: u64,
    /// Units of the resource.
    pub hard: u64,
}

impl From<BoundStanding<'_>> for BoundRow {
    fn from(bound: BoundStanding<'_>) -> Self {
        let BoundStanding { quota, key, used, limit, .. } = bound;
        Self { quota: quota.to_owned(), resource: key.to_owned(), used, hard: limit }
    }
}
