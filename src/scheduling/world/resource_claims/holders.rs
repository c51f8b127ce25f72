//! What holds a device: the pods and PodGroups that use its claims, by name.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{ClaimStanding, ResourceClaims};
use crate::{
    dra::{PoolId, device::DeviceId},
    object::resource_claim::ConsumerReference,
};

/// What holds a device.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum DeviceHolder {
    /// A pod that uses a claim.
    Pod {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// A PodGroup that uses a claim for all its pods.
    PodGroup {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// A claim that no pod uses yet, as far as its status says.
    Claim {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// Pods with shares of the same hardware, which a device plugin registers.
    Shares,
}

impl DeviceHolder {
    /// Whether it is an object of this namespace.
    pub fn is_of(&self, own: &str) -> bool {
        match self {
            Self::Pod { namespace, .. }
            | Self::PodGroup { namespace, .. }
            | Self::Claim { namespace, .. } => **namespace == *own,
            Self::Shares => false,
        }
    }
}

impl fmt::Display for DeviceHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { namespace, name } => write!(formatter, "{namespace}/{name}"),
            Self::PodGroup { namespace, name } => write!(formatter, "PodGroup {namespace}/{name}"),
            Self::Claim { namespace, name } => write!(formatter, "claim {namespace}/{name}"),
            Self::Shares => formatter.write_str("GPU shares of pods"),
        }
    }
}

/// So many claims of a pool are looked at: a pool that many nodes reach may have thousands.
pub(super) const MOST_CLAIMS: usize = 1024;

impl ResourceClaims {
    /// What holds these devices, each once. Of a pool with very many claims, those by the first of them are found.
    pub(in crate::scheduling) fn holders(&self, devices: &[DeviceId]) -> BTreeSet<DeviceHolder> {
        let sought: BTreeSet<&DeviceId> = devices.iter().collect();
        let pools: BTreeSet<PoolId> =
            devices.iter().map(|device| (device.driver.clone(), device.pool.clone())).collect();
        let claims = pools.iter().filter_map(|pool| self.by_pool.get(pool));
        let mut claimed = BTreeSet::new();
        let mut holders = BTreeSet::new();
        for claim in claims.flat_map(|claims| claims.iter().take(MOST_CLAIMS)) {
            let allocation = self.claims.get(claim).and_then(ClaimStanding::allocation);
            let results = allocation.into_iter().flat_map(|allocation| &allocation.devices.results);
            let held = results.map(DeviceId::from);
            let held: Vec<_> = held.filter(|device| sought.contains(device)).collect();
            if !held.is_empty() {
                holders.extend(self.users_named(claim));
            }
            claimed.extend(held);
        }
        if devices.iter().any(|device| self.held.is_claimed(device) && !claimed.contains(device)) {
            // By a claim that was not looked at.
            return holders;
        }
        if claimed.len() < sought.len() {
            holders.insert(DeviceHolder::Shares);
        }
        holders
    }

    /// The pods and PodGroups that use the claim; where its status names none, the claim.
    fn users_named(&self, claim: &str) -> Vec<DeviceHolder> {
        let (namespace, name) = claim.split_once('/').unwrap_or(("", claim));
        let namespace: Arc<str> = namespace.into();
        let seen = self.claims.get(claim).and_then(|standing| standing.seen.as_ref());
        let users = seen.into_iter().flat_map(|seen| &seen.status.reserved_for);
        let holder = |user: &ConsumerReference| {
            let (namespace, name) = (namespace.clone(), user.name.as_str().into());
            match &*user.resource {
                "pods" => Some(DeviceHolder::Pod { namespace, name }),
                "podgroups" => Some(DeviceHolder::PodGroup { namespace, name }),
                _ => None,
            }
        };
        let holders: Vec<_> = users.filter_map(holder).collect();
        if holders.is_empty() {
            return vec![DeviceHolder::Claim { namespace: namespace.clone(), name: name.into() }];
        }
        holders
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::ResourceClaim;

    const MORE: usize = 6;

    fn device(at: usize) -> String {
        format!("gpu-{at:04}")
    }

    /// The claim that holds the device of this number, for a pod of the same number.
    fn claim(at: usize) -> Arc<ResourceClaim> {
        let result =
            json!({"request": "r", "driver": "gpu.example.com", "pool": "shared", "device": device(at)});
        let claim = json!({
            "metadata": {"name": format!("claim-{at:04}"), "namespace": "team", "uid": format!("u{at}")},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": format!("pod-{at:04}"), "uid": format!("p{at}")}],
            },
        });
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    #[test]
    fn of_a_pool_with_very_many_claims_no_more_than_the_bound_are_looked_at() {
        let mut claims = ResourceClaims::default();
        let all = MOST_CLAIMS + MORE;
        for at in 0..all {
            claims.see(&format!("team/claim-{at:04}").into(), Some(claim(at)));
        }
        let devices: Vec<_> =
            (0..all).map(|at| DeviceId::new("gpu.example.com", "shared", &device(at))).collect();
        let holders = claims.holders(&devices);
        assert_eq!(holders.len(), MOST_CLAIMS);
        assert!(!holders.contains(&DeviceHolder::Shares), "the others are held by claims, too");
        let pod = |at: usize| DeviceHolder::Pod {
            namespace: "team".into(),
            name: format!("pod-{at:04}").as_str().into(),
        };
        assert_eq!(claims.holders(&devices[..1]), [pod(0)].into());
        assert_eq!(claims.holders(&devices[all - 1..]), [].into(), "not found, and no other is named");
    }
}
