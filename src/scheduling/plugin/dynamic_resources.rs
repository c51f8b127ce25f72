//! Whether the pod's claims of devices can be used on a node: those that are allocated by their node selector, the others by what the
//! allocator finds there.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources`. Claims are decided on as they stand: pods that would be preempted
//! free none, as upstream has it.

use std::{fmt, sync::Arc};

use crate::{
    dra::{self, Claim},
    object::{ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        node::NodeInfo,
        pod::Demand,
        pod_counts::Surroundings,
        reason::Reason,
        resource_claims::{MOST_CONSUMERS, ResourceClaims},
    },
};

/// The devices that a claim is given with the pod.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimChoice {
    /// The claim's name in the pod's namespace.
    pub claim: Arc<str>,
    /// The devices.
    pub allocation: AllocationResult,
}

/// Why a pod's claims keep it from a node.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ClaimRejection {
    /// The node has no devices for them.
    Unallocatable,
    /// One was given devices that can't be used from the node.
    Elsewhere,
    /// One can't be decided on, as this text says.
    Undecidable(Arc<str>),
}

impl ClaimRejection {
    /// The name, as `berth simulate --explain` prints it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unallocatable => "ResourceClaimUnallocatable",
            Self::Elsewhere => "ResourceClaimElsewhere",
            Self::Undecidable(_) => "ResourceClaimUndecidable",
        }
    }
}

/// In kube-scheduler's words, where it has some.
impl fmt::Display for ClaimRejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unallocatable => "cannot allocate all claims",
            Self::Elsewhere => "resourceclaim not available on the node",
            Self::Undecidable(why) => why,
        })
    }
}

/// The claims of one pod that is to be placed.
#[derive(Debug)]
pub(in crate::scheduling) struct PodClaims<'a> {
    known: &'a ResourceClaims,
    /// What claims were given before.
    allocated: Vec<&'a AllocationResult>,
    /// Claims that are given devices with the pod, by name.
    waiting: Vec<(Arc<str>, Claim)>,
}

impl<'a> PodClaims<'a> {
    /// The claims as they stand; `None`: the pod has none. The error holds on every node.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'a>,
    ) -> Result<Option<Self>, Reason> {
        let uses = &demand.footprint.resource_claims;
        let Some(known) = around.objects.resource_claims().filter(|_| !uses.is_empty()) else {
            return Ok(None);
        };
        let mut claims = Self { known, allocated: Vec::new(), waiting: Vec::new() };
        for one in uses {
            let Some(name) = &one.claim else {
                let entry = &one.entry;
                return Err(rejected(&format!("waiting for the resourceclaim of {entry:?} to be created")));
            };
            let claim = known.claim(&demand.footprint.namespace, name);
            let claim = claim.ok_or_else(|| rejected(&format!("resourceclaim {name:?} not found")))?;
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(rejected(&format!("resourceclaim {name:?} is being deleted")));
            }
            claims.add(name, claim, demand)?;
        }
        Ok(Some(claims))
    }

    fn add(&mut self, name: &Arc<str>, claim: &'a ResourceClaim, demand: &Demand) -> Result<(), Reason> {
        let Some(allocation) = &claim.status.allocation else {
            if self.waiting.iter().all(|(known, _)| known != name) {
                let read = Claim::read(claim, self.known.classes());
                self.waiting.push((name.clone(), read.map_err(|error| rejected(&error.to_string()))?));
            }
            return Ok(());
        };
        let users = &claim.status.reserved_for;
        let reserved = users.iter().any(|user| *user.uid == *demand.uid);
        if !reserved && users.len() >= MOST_CONSUMERS {
            return Err(rejected(&format!(
                "resourceclaim {name:?} is used by {MOST_CONSUMERS} pods, which is the most"
            )));
        }
        self.allocated.push(allocation);
        Ok(())
    }

    /// What the claims are given with the pod on this node.
    pub(in crate::scheduling) fn choose(&self, node: &NodeInfo) -> Result<Vec<ClaimChoice>, Reason> {
        let node = dra::Node { name: &node.name, labels: &node.labels };
        let selectors = self.allocated.iter().filter_map(|allocation| allocation.node_selector.as_ref());
        if !selectors.into_iter().all(|selector| node.matches(selector)) {
            return Err(Reason::ResourceClaims(ClaimRejection::Elsewhere));
        }
        if self.waiting.is_empty() {
            return Ok(Vec::new());
        }
        let claims: Vec<&Claim> = self.waiting.iter().map(|(_, claim)| claim).collect();
        let allocation = dra::allocate(&claims, node, self.known.inventory(), self.known.held());
        let allocation = allocation.map_err(|error| rejected(&error.to_string()))?;
        let allocation = allocation.ok_or(Reason::ResourceClaims(ClaimRejection::Unallocatable))?;
        let names = self.waiting.iter().map(|(name, _)| name.clone());
        Ok(names
            .zip(allocation.results)
            .map(|(claim, allocation)| ClaimChoice { claim, allocation })
            .collect())
    }
}

fn rejected(message: &str) -> Reason {
    Reason::ResourceClaims(ClaimRejection::Undecidable(message.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::scheduling::{
        Ask, Constraints, PreemptionPolicy, ResourceAmounts, Snapshot, footprint::Footprint,
        resource_claims::ResourceClaimUse,
    };

    fn demand(pod: &str) -> Demand {
        let used = ResourceClaimUse { entry: "gpu".into(), claim: Some("shared".into()) };
        let ask = Ask {
            devices: Vec::new(),
            resources: ResourceAmounts::default(),
            constraints: Constraints::default(),
        };
        let footprint =
            Footprint { namespace: "team".into(), resource_claims: vec![used], ..Footprint::default() };
        Demand {
            ask: ask.into(),
            footprint: footprint.into(),
            priority: 0,
            uid: pod.into(),
            preemption_policy: PreemptionPolicy::PreemptLowerPriority,
            nominated: None,
            origin: None,
        }
    }

    fn prepared(claims: Option<ResourceClaims>, pod: &str) -> Result<Option<usize>, String> {
        let mut snapshot = Snapshot::new(BTreeSet::new());
        if let Some(claims) = claims {
            snapshot.set_resource_claims(claims);
        }
        let prepared = PodClaims::prepare(&demand(pod), snapshot.surroundings());
        let allocated = prepared.map(|claims| claims.map(|claims| claims.allocated.len()));
        allocated.map_err(|reason| reason.to_string())
    }

    fn claim(reserved_for: &[Value]) -> ResourceClaims {
        let status = json!({"allocation": {"devices": {"results": []}}, "reservedFor": reserved_for});
        let claim = json!({"metadata": {"namespace": "team", "name": "shared"}, "status": status});
        let mut claims = ResourceClaims::default();
        assert_eq!(claims.add(serde_json::from_value(claim).unwrap()), Vec::<String>::new());
        claims
    }

    #[test]
    fn a_claim_has_256_users_and_no_more() {
        let user = |at: usize| json!({"resource": "pods", "name": format!("p{at}"), "uid": format!("u{at}")});
        let users: Vec<_> = (0..MOST_CONSUMERS).map(user).collect();
        assert_eq!(prepared(Some(claim(&users[1..])), "another"), Ok(Some(1)));
        assert_eq!(prepared(Some(claim(&users)), "u7"), Ok(Some(1)), "it is one of them");
        let message = "resourceclaim \"shared\" is used by 256 pods, which is the most";
        assert_eq!(prepared(Some(claim(&users)), "another"), Err(message.to_owned()));
    }

    #[test]
    fn claims_are_looked_at_only_where_they_are_served() {
        assert_eq!(prepared(None, "pod"), Ok(None));
        let missing = prepared(Some(ResourceClaims::default()), "pod");
        assert_eq!(missing, Err("resourceclaim \"shared\" not found".to_owned()));
    }
}
