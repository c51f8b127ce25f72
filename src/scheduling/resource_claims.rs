//! Claims of devices, and what decides on them: the slices that drivers publish, classes, and what allocated claims hold.

use std::{collections::BTreeMap, sync::Arc};

use super::object::full_name;
use crate::{
    dra::{Classes, HeldDevices, Inventory},
    object::{
        DeviceClass, Pod, ResourceClaim, ResourceSlice,
        pod::PodResourceClaim,
        resource_claim::{AllocationResult, ConsumerReference},
    },
};

/// How many pods may use a claim (kubernetes `api/resource/v1`, `ResourceClaimReservedForMaxSize`).
pub const MOST_CONSUMERS: usize = 256;

/// Every claim of devices, and what decides on it.
#[derive(Clone, Debug, Default)]
pub struct ResourceClaims {
    inventory: Arc<Inventory>,
    classes: Arc<Classes>,
    claims: BTreeMap<Arc<str>, Arc<ResourceClaim>>,
    held: HeldDevices,
}

impl ResourceClaims {
    /// The claims of a cluster with these slices and classes, none so far.
    pub fn new<'a>(
        slices: impl IntoIterator<Item = &'a ResourceSlice>,
        classes: impl IntoIterator<Item = &'a DeviceClass>,
    ) -> Self {
        let (inventory, classes) = (Arc::new(Inventory::new(slices)), Arc::new(Classes::new(classes)));
        Self { inventory, classes, ..Self::default() }
    }

    /// Takes in a claim and what it holds; returns what of its allocation can't be read, as field and reason.
    pub fn add(&mut self, claim: ResourceClaim) -> Vec<String> {
        let allocation = claim.status.allocation.as_ref();
        let unread = allocation.map(|allocation| self.held.add(allocation)).unwrap_or_default();
        self.claims.insert(full_name(&claim.metadata.namespace, &claim.metadata.name), Arc::new(claim));
        unread
    }

    /// A claim of a namespace.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(&full_name(namespace, name))
    }

    /// Takes in that a claim was given devices.
    pub fn assume(&mut self, namespace: &str, name: &str, allocation: &AllocationResult) {
        let Some(claim) = self.claims.get_mut(&full_name(namespace, name)) else { return };
        Arc::make_mut(claim).status.allocation = Some(allocation.clone());
        let unread = self.held.add(allocation);
        debug_assert!(unread.is_empty(), "the allocator writes readable amounts");
    }

    /// Takes in that a pod may use a claim.
    pub fn reserve(&mut self, namespace: &str, name: &str, consumer: &ConsumerReference) {
        let Some(claim) = self.claims.get_mut(&full_name(namespace, name)) else { return };
        if !claim.status.reserved_for.iter().any(|known| known.uid == consumer.uid) {
            Arc::make_mut(claim).status.reserved_for.push(consumer.clone());
        }
    }

    pub(super) fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(super) fn held(&self) -> &HeldDevices {
        &self.held
    }
}

/// A claim of devices that a pod uses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ResourceClaimUse {
    /// The name of the pod's entry.
    pub entry: Arc<str>,
    /// The claim's name; `None`: it is made from a template, and its name is not known yet.
    pub claim: Option<Arc<str>>,
}

impl ResourceClaimUse {
    /// The claims of a pod; an entry for which the pod's status names no claim needs none.
    pub(super) fn all(pod: &Pod) -> Vec<Self> {
        let statuses = &pod.status.resource_claim_statuses;
        let read = |entry: &PodResourceClaim| {
            let made = statuses.iter().find(|status| status.name == entry.name);
            let claim = match (&entry.resource_claim_name, made) {
                (Some(claim), _) => Some(claim),
                (None, Some(made)) => Some(made.resource_claim_name.as_ref()?),
                (None, None) => None,
            };
            Some(Self { entry: entry.name.as_str().into(), claim: claim.map(|claim| claim.as_str().into()) })
        };
        pod.spec.resource_claims.iter().filter_map(read).collect()
    }
}
