//! Claims of devices, and what decides on them: the slices that drivers publish, classes, and what claims hold.
//!
//! A claim holds what its status says, or else what pods that are being placed have chosen for it: a fold over their charges. What is
//! held of a pool is folded anew where one of its claims changes, never adjusted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{object::full_name, pod::Uid};
use crate::{
    dra::{AllocationError, Claim, Classes, ExtendedResources, HeldDevices, Inventory, PoolId, held},
    object::{
        DeviceClass, Pod, ResourceClaim, ResourceSlice, pod::PodResourceClaim,
        resource_claim::AllocationResult,
    },
};

pub use crate::dra::held::unreadable;

/// How many pods may use a claim (kubernetes `api/resource/v1`, `ResourceClaimReservedForMaxSize`).
pub const MOST_CONSUMERS: usize = 256;

/// Devices that a pod is given with its node for one of its claims.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClaimChoice {
    /// The claim's name in the pod's namespace.
    pub claim: Arc<str>,
    /// The claim's uid: another claim of this name may ask for other devices.
    pub uid: Arc<str>,
    /// The devices; `None`: the claim has them already, and the pod is to be added to its users.
    pub allocation: Option<Arc<AllocationResult>>,
}

/// What pods that are placed have of a claim.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClaimCharge {
    /// The devices that one of them chose for it.
    pub chosen: Option<Arc<AllocationResult>>,
    /// All of them.
    pub users: BTreeSet<Uid>,
}

/// What a claim asks for: as a text that is equal for claims that ask for the same, and read.
pub(super) type Asked = (Arc<str>, Result<Arc<Claim>, AllocationError>);

/// A claim as it stands.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// As it was last seen; `None`: it is gone.
    seen: Option<Arc<ResourceClaim>>,
    /// What it asks for while it waits, read by the classes as they stand.
    asked: Option<Asked>,
    /// What pods that are placed have of it.
    charge: ClaimCharge,
    /// What a write that may still arrive gives it, although the pod for which it was sent has gone elsewhere.
    lingering: Option<Arc<AllocationResult>>,
}

impl Standing {
    /// What the claim holds.
    fn allocation(&self) -> Option<&AllocationResult> {
        let seen = self.seen.as_ref().and_then(|claim| claim.status.allocation.as_ref());
        seen.or(self.charge.chosen.as_deref()).or(self.lingering.as_deref())
    }
}

/// Whether a change leaves more devices free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Freed {
    /// It may.
    Some,
    /// It does not.
    Nothing,
}

/// Every claim of devices, and what decides on it.
#[derive(Clone, Debug, Default)]
pub struct ResourceClaims {
    inventory: Inventory,
    classes: Classes,
    /// The extended resources for which classes stand.
    extended: Arc<ExtendedResources>,
    claims: BTreeMap<Arc<str>, Standing>,
    /// The claims that hold devices of each pool.
    by_pool: BTreeMap<PoolId, BTreeSet<Arc<str>>>,
    held: HeldDevices,
    /// Greater after every change.
    version: u64,
    /// By pool, the version at which its devices or what is held of them changed last.
    changed: BTreeMap<PoolId, u64>,
    /// The version at which a pool last began or ceased to be reached by some node.
    reach: u64,
    /// The version at which a class changed last.
    class_version: u64,
}

impl ResourceClaims {
    /// Takes in a slice, new or changed.
    pub(super) fn set_slice(&mut self, slice: Arc<ResourceSlice>) {
        let touched = self.inventory.set(slice);
        self.note_published(touched);
    }

    /// Takes a slice out.
    pub(super) fn remove_slice(&mut self, name: &str) {
        let touched = self.inventory.remove(name);
        self.note_published(touched);
    }

    /// Takes in a class, new or changed.
    pub(super) fn set_class(&mut self, class: &DeviceClass) {
        self.classes.set(class);
        Arc::make_mut(&mut self.extended).set(class);
        self.read_again();
    }

    /// Takes a class out.
    pub(super) fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
        Arc::make_mut(&mut self.extended).remove(name);
        self.read_again();
    }

    /// The extended resources for which classes stand.
    pub fn extended(&self) -> &Arc<ExtendedResources> {
        &self.extended
    }

    /// A claim that does not exist yet, by the classes as they stand.
    pub(super) fn read_new(&self, claim: &ResourceClaim) -> Result<Claim, AllocationError> {
        Claim::read(claim, &self.classes)
    }

    /// Takes in a claim as it is seen; `None`: it is gone.
    pub(super) fn see(&mut self, name: &Arc<str>, claim: Option<Arc<ResourceClaim>>) -> Freed {
        let asked = claim.as_ref().and_then(|claim| self.read(claim));
        self.change(name, |standing| (standing.seen, standing.asked) = (claim, asked))
    }

    /// What a claim asks for, unless it has its devices.
    fn read(&self, claim: &ResourceClaim) -> Option<Asked> {
        let read = || (format!("{:?}", claim.spec).into(), Claim::read(claim, &self.classes).map(Arc::new));
        claim.status.allocation.is_none().then(read)
    }

    fn note_published(&mut self, pools: impl IntoIterator<Item = PoolId>) {
        self.version += 1;
        self.reach = self.version;
        self.changed.extend(pools.into_iter().map(|pool| (pool, self.version)));
    }

    /// Moves whenever the devices that a node can reach, or what is held of them, may have changed.
    pub(super) fn stamp(&self, node: &str) -> u64 {
        let changed = self.inventory.pools_near(node).filter_map(|pool| self.changed.get(pool));
        changed.copied().fold(self.reach, u64::max)
    }

    /// Moves whenever a class changes.
    pub(super) fn class_version(&self) -> u64 {
        self.class_version
    }

    /// Reads every claim anew, by the classes as they stand now.
    fn read_again(&mut self) {
        self.version += 1;
        self.class_version = self.version;
        let mut claims = std::mem::take(&mut self.claims);
        for standing in claims.values_mut() {
            standing.asked = standing.seen.as_ref().and_then(|claim| self.read(claim));
        }
        self.claims = claims;
    }

    /// What a claim of a namespace asks for; `None`: it is gone, or has its devices.
    pub(super) fn asked(&self, namespace: &str, name: &str) -> Option<Asked> {
        self.claims.get(&full_name(namespace, name))?.asked.clone()
    }

    /// Takes in what pods that are placed have of a claim.
    pub(super) fn charge(&mut self, name: &Arc<str>, charge: ClaimCharge) -> Freed {
        self.change(name, |standing| standing.charge = charge)
    }

    /// Takes in what a write that may still arrive gives a claim; `None`: none may any more.
    pub(super) fn linger(&mut self, name: &Arc<str>, allocation: Option<Arc<AllocationResult>>) -> Freed {
        self.change(name, |standing| standing.lingering = allocation)
    }

    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Standing)) -> Freed {
        let standing = self.claims.entry(name.clone()).or_default();
        let before = standing.allocation().cloned();
        change(standing);
        let after = standing.allocation().cloned();
        if standing.seen.is_none()
            && standing.charge == ClaimCharge::default()
            && standing.lingering.is_none()
        {
            self.claims.remove(name);
        }
        if before == after {
            return Freed::Nothing;
        }
        for pool in before.iter().flat_map(held::pools) {
            if let Some(claims) = self.by_pool.get_mut(&pool)
                && claims.remove(name)
                && claims.is_empty()
            {
                self.by_pool.remove(&pool);
            }
        }
        for pool in after.iter().flat_map(held::pools) {
            self.by_pool.entry(pool).or_default().insert(name.clone());
        }
        for pool in before.iter().chain(&after).flat_map(held::pools).collect::<BTreeSet<_>>() {
            self.refold(&pool);
        }
        if before.is_some() { Freed::Some } else { Freed::Nothing }
    }

    /// Folds anew what is held of a pool.
    fn refold(&mut self, pool: &PoolId) {
        self.version += 1;
        self.changed.insert(pool.clone(), self.version);
        self.held.clear(pool);
        let Some(claims) = self.by_pool.get(pool) else { return };
        for allocation in claims.iter().filter_map(|name| self.claims.get(name)?.allocation()) {
            self.held.add_of(allocation, pool);
        }
    }

    /// A claim of a namespace, as it was last seen.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(&full_name(namespace, name))?.seen.as_ref()
    }

    /// What a claim of a namespace holds, by its status or by the choice of a pod that is being placed.
    pub fn allocation(&self, namespace: &str, name: &str) -> Option<&AllocationResult> {
        self.claims.get(&full_name(namespace, name))?.allocation()
    }

    /// The pods that use a claim of a namespace or are going to: those of its status and those that are being placed.
    pub fn users(&self, namespace: &str, name: &str) -> BTreeSet<&str> {
        let Some(standing) = self.claims.get(&full_name(namespace, name)) else { return BTreeSet::new() };
        let seen = standing.seen.iter().flat_map(|claim| &claim.status.reserved_for);
        let placed = standing.charge.users.iter().map(|uid| &**uid);
        seen.map(|user| user.uid.as_str()).chain(placed).collect()
    }

    pub(super) fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// What is in use of each device.
    pub fn held(&self) -> &HeldDevices {
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
    /// Whether the claim is made from a template: then it has to be the pod's own.
    pub own: bool,
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
            let (entry, own) = (entry.name.as_str().into(), entry.resource_claim_name.is_none());
            Some(Self { entry, claim: claim.map(|claim| claim.as_str().into()), own })
        };
        pod.spec.resource_claims.iter().filter_map(read).collect()
    }
}
