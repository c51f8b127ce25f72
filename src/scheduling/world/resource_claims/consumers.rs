//! Whom the status of a claim names as its users, or is going to name: pods, and PodGroups for all their pods.

use std::collections::BTreeSet;

use super::ResourceClaims;
use crate::scheduling::model::name::full_name;

/// The uids that the status of a claim of a namespace names as its users, and those that are to be written there for pods that are being placed.
pub(in crate::scheduling) fn consumers<'a>(
    known: &'a ResourceClaims,
    namespace: &str,
    name: &str,
) -> BTreeSet<&'a str> {
    let Some(standing) = known.claims.get(&full_name(namespace, name)) else { return BTreeSet::new() };
    let seen = standing.seen.iter().flat_map(|claim| &claim.status.reserved_for);
    let reserving = standing.charge.reserving.iter().map(|uid| &**uid);
    seen.map(|user| user.uid.as_str()).chain(reserving).collect()
}
