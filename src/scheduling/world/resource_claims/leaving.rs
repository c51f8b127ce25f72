//! Which claims become free with pods that leave: those that only such pods use.
//!
//! A fold over what the status of claims says and which pods are taken to leave. Kubernetes' resourceclaim controller frees the same claims
//! once the pods have ended (v1.36 `pkg/controller/resourceclaim/controller.go`, `syncClaim`). Nothing is written here.

use std::{collections::BTreeSet, sync::Arc};

use super::{ClaimStanding, ResourceClaims};
use crate::{
    dra::held,
    object::{ResourceClaim, resource_claim::ConsumerReference},
    persistent::{PersistentMap, value_of},
    scheduling::model::name::Uid,
};

/// The claims whose status names each pod as a user.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimsByUser(PersistentMap<Uid, BTreeSet<Arc<str>>>);

impl ClaimStanding {
    /// Whether each of its users is taken to leave: then it holds nothing. A claim that something else than a pod uses keeps its devices, and so does
    /// one without users.
    pub(super) fn is_left(&self) -> bool {
        let mut users = self.seen.iter().flat_map(|seen| &seen.status.reserved_for);
        !self.leaving.is_empty()
            && users.all(|user| user.resource == "pods" && self.leaving.contains(&*user.uid))
            && self.charge.users.is_subset(&self.leaving)
    }
}

impl ResourceClaims {
    /// The claims, by full name, whose status names the pod as a user.
    pub(in crate::scheduling) fn used_by(&self, pod: &Uid) -> impl Iterator<Item = &Arc<str>> {
        self.by_user.0.get(pod).into_iter().flatten()
    }

    /// The claims that the pod is taken to leave.
    pub(in crate::scheduling) fn left_by(&self, pod: &Uid) -> BTreeSet<Arc<str>> {
        let left = |claim: &&Arc<str>| {
            self.claims.get(*claim).is_some_and(|standing| standing.leaving.contains(pod))
        };
        self.used_by(pod).filter(left).cloned().collect()
    }

    /// Takes the pod to leave these of its claims and to use all others.
    pub(in crate::scheduling) fn set_left(&mut self, pod: &Uid, claims: &BTreeSet<Arc<str>>) {
        let used: Vec<Arc<str>> = self.used_by(pod).cloned().collect();
        for claim in used {
            self.change(&claim, |standing| {
                if claims.contains(&claim) {
                    standing.leaving.insert(pod.clone());
                } else {
                    standing.leaving.remove(pod);
                }
            });
        }
    }
}

impl ClaimsByUser {
    /// Takes in that the status of a claim names other users than before; whether it does.
    pub(super) fn note(
        &mut self,
        name: &Arc<str>,
        before: Option<&ResourceClaim>,
        now: Option<&ResourceClaim>,
    ) -> bool {
        let users = |claim: Option<&ResourceClaim>| -> BTreeSet<Uid> {
            let users = claim.into_iter().flat_map(|claim| &claim.status.reserved_for);
            users.map(|user| user.uid.as_str().into()).collect()
        };
        if before.map(|claim| &claim.status.reserved_for) == now.map(|claim| &claim.status.reserved_for) {
            return false;
        }
        let (before, now) = (users(before), users(now));
        for pod in before.difference(&now) {
            if let Some(claims) = self.0.get_mut(pod) {
                claims.remove(name);
                if claims.is_empty() {
                    self.0.remove_mut(pod);
                }
            }
        }
        for pod in now.difference(&before) {
            value_of(&mut self.0, pod).insert(name.clone());
        }
        true
    }
}

/// How many claims are added up anew where the pod leaves all of its own: those that hold devices of the same pools.
pub(in crate::scheduling) fn beside_those_of(known: &ResourceClaims, pod: &Uid) -> usize {
    let allocation = |claim: &Arc<str>| known.claims.get(claim)?.allocation();
    let pools = known.used_by(pod).filter_map(allocation).flat_map(held::pools);
    pools.filter_map(|pool| known.by_pool.get(&pool)).map(BTreeSet::len).sum()
}

/// Whether a claim that holds devices which the node can reach has no users but pods that are not there any more, `is_there` says which are: then
/// it is about to be freed.
pub(in crate::scheduling) fn awaits_freeing(
    known: &ResourceClaims,
    node: &str,
    is_there: impl Fn(&str) -> bool,
) -> bool {
    let claims = known.inventory.pools_near(node).filter_map(|pool| known.by_pool.get(pool)).flatten();
    let mut seen = claims.filter_map(|claim| known.claims.get(claim)?.seen.as_ref());
    seen.any(|claim| {
        let users = &claim.status.reserved_for;
        let has_gone = |user: &ConsumerReference| user.resource == "pods" && !is_there(&user.uid);
        !users.is_empty() && users.iter().all(has_gone)
    })
}
