//! What the claims of a pod take of its node's own resources, as the pod's status says it (KEP-5517).
//!
//! Source: v1.37 `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`, `buildNodeAllocatableDRAInfo`.

use std::sync::Arc;

use super::{
    footprint::Footprint,
    pod::{Ask, Claim, PodInfo},
    prebind_step::PrebindStep,
    resources::ResourceAmounts,
};
use crate::{
    dra::{NodeResourcesTaken, device::OverheadTaken},
    object::{
        Amount, Quantity, UnreadableQuantity,
        pod::{NodeAllocatableClaimStatus, NodeAllocatableMapped, NodeAllocatableOverhead},
    },
};

/// What a pod's status says of a claim that takes this much, used by these containers; `None`: it takes nothing.
pub(in crate::scheduling) fn status_of<'a>(
    claim: &str,
    taken: &NodeResourcesTaken,
    containers: impl Iterator<Item = &'a str>,
) -> Option<NodeAllocatableClaimStatus> {
    let mapped = |(name, amount): (&Arc<str>, &Amount)| NodeAllocatableMapped {
        name: name.to_string(),
        quantity: Some(amount.exact()),
    };
    let overhead = |(name, taken): (&Arc<str>, &OverheadTaken)| NodeAllocatableOverhead {
        name: name.to_string(),
        per_pod: taken.per_pod.map(Amount::exact),
        per_container: taken.per_container.map(Amount::exact),
    };
    (!taken.is_nothing()).then(|| NodeAllocatableClaimStatus {
        resource_claim_name: claim.to_owned(),
        containers: containers.map(str::to_owned).collect(),
        mapping: taken.mapped.iter().map(mapped).collect(),
        overhead: taken.overhead.iter().map(overhead).collect(),
    })
}

/// Whether both say the same: the API server respells amounts.
pub(in crate::scheduling) fn say_the_same(
    one: &[NodeAllocatableClaimStatus],
    other: &[NodeAllocatableClaimStatus],
) -> bool {
    one.iter().map(respelt).eq(other.iter().map(respelt))
}

fn respelt(status: &NodeAllocatableClaimStatus) -> NodeAllocatableClaimStatus {
    let exact = |quantity: &mut Quantity| {
        if let Ok(amount) = quantity.amount() {
            *quantity = amount.exact();
        }
    };
    let mut status = status.clone();
    status.mapping.iter_mut().filter_map(|mapped| mapped.quantity.as_mut()).for_each(exact);
    let overhead = status.overhead.iter_mut();
    overhead.flat_map(|one| one.per_pod.iter_mut().chain(&mut one.per_container)).for_each(exact);
    status
}

/// What a pod is on its node once these steps are decided for it: what claims take there counts as requested. Where the steps say nothing of it, they are
/// carried out, and the pod's status says it.
pub fn charged(pod: &PodInfo, steps: &[PrebindStep]) -> Arc<Footprint> {
    let decided = steps.iter().find_map(PrebindStep::node_resources).map(|choice| choice.requested.clone());
    let stated = || match &pod.claim {
        Claim::Place(ask) if !pod.status.taken.is_empty() => requested(ask, &pod.status.taken).ok(),
        _ => None,
    };
    match decided.or_else(stated) {
        Some(resources) if resources != pod.footprint.resources => {
            Arc::new(Footprint { resources, ..Footprint::clone(&pod.footprint) })
        }
        _ => pod.footprint.clone(),
    }
}

/// What a pod requests of a node where its claims take this much. A quantity that can't be read is an error with the resource's name.
pub(in crate::scheduling) fn requested(
    ask: &Ask,
    taken: &[NodeAllocatableClaimStatus],
) -> Result<Arc<ResourceAmounts>, (String, UnreadableQuantity)> {
    if let Some(declared) = &ask.constraints.declared {
        return declared.beside(taken).map(Arc::new);
    }
    let mut requested = ResourceAmounts::clone(&ask.resources);
    requested.add(&ResourceAmounts::of_claims(taken)?);
    Ok(Arc::new(requested))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_that_are_spelt_otherwise_are_the_same() {
        let statuses = |cpu: &str, memory: &str| -> Vec<NodeAllocatableClaimStatus> {
            let overhead = json!([{"name": "memory", "perPod": memory}]);
            let mapping = json!([{"name": "cpu", "quantity": cpu}]);
            serde_json::from_value(
                json!([{"resourceClaimName": "c", "mapping": mapping, "overhead": overhead}]),
            )
            .unwrap()
        };
        assert!(say_the_same(&statuses("2", "1Gi"), &statuses("2000m", "1024Mi")));
        assert!(!say_the_same(&statuses("2", "1Gi"), &statuses("2", "1G")));
        assert!(!say_the_same(&statuses("2", "1Gi"), &[]));
    }
}
