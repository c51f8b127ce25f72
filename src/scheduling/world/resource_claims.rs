//! Claims of devices, and what decides on them: the slices that drivers publish, classes, and what claims hold.
//!
//! A claim holds what its status says, or else what pods that are being placed have chosen for it: a fold over their charges. What is
//! held of a pool is folded anew where one of its claims changes, never adjusted. A claim whose users all leave on trial holds nothing
//! (`leaving`).

mod cards;
mod consumers;
pub(in crate::scheduling) mod double_allocation;
mod holders;
mod kept;
mod leaving;
mod published;
mod spec;
mod twins;
mod versions;

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    dra::{
        AllocationError, CompiledClasses, DevicePools, ExtendedResources, HeldDevices, PoolId, WaitingClaim,
        held,
    },
    object::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, resource_claim::AllocationResult},
    persistent::{PersistentMap, value_of},
    scheduling::model::{
        kind::TaintRuleVersion,
        name::{NodeName, Uid, full_name},
    },
};
use cards::ClaimedCards;
use leaving::ClaimsByUser;
use published::PublishedCards;
use spec::Specs;
use versions::DeviceVersions;

pub use crate::dra::held::unreadable;
pub(in crate::scheduling) use cards::{Doubt, NodeClaims};
pub(in crate::scheduling) use consumers::consumers;
pub use holders::DeviceHolder;
pub(in crate::scheduling) use kept::KeptDevices;
pub(in crate::scheduling) use leaving::{awaits_freeing, beside_those_of};
pub(in crate::scheduling) use spec::SpecId;
pub(in crate::scheduling) use twins::{Beside, describe_devices};

/// How many pods and PodGroups the status of a claim may name as its users (kubernetes `api/resource/v1`, `ResourceClaimReservedForMaxSize`).
pub const MOST_CONSUMERS: usize = 256;

/// What pods that are placed have of a claim.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClaimCharge {
    /// The devices that one of them chose for it.
    pub chosen: Option<Arc<AllocationResult>>,
    /// All of them.
    pub users: BTreeSet<Uid>,
    /// The uids that are to be written into its status for them: their own or those of their PodGroups.
    pub reserving: BTreeSet<Uid>,
}

/// What a claim asks for: a number that is equal for claims that ask for the same, and as it is read.
pub(in crate::scheduling) type Asked = (SpecId, Result<Arc<WaitingClaim>, AllocationError>);

/// A claim as it stands.
#[derive(Clone, Debug, Default)]
struct ClaimStanding {
    /// As it was last seen; `None`: it is gone.
    seen: Option<Arc<ResourceClaim>>,
    /// What it asks for while it waits, read by the classes as they stand.
    asked: Option<Asked>,
    /// What pods that are placed have of it.
    charge: ClaimCharge,
    /// What a write that may still arrive gives it, although the pod for which it was sent has gone elsewhere.
    lingering: Option<Arc<AllocationResult>>,
    /// The pods of its status that are taken to leave it.
    leaving: BTreeSet<Uid>,
}

impl ClaimStanding {
    /// What the claim holds.
    fn allocation(&self) -> Option<&AllocationResult> {
        let seen = self.seen.as_ref().filter(|_| !self.is_left());
        let seen = seen.and_then(|claim| claim.status.allocation.as_ref());
        seen.or(self.charge.chosen.as_deref()).or(self.lingering.as_deref())
    }

    /// Where it says what the claim holds, to be read once it has changed.
    fn source(&self) -> Source {
        match &self.seen {
            Some(claim) if claim.status.allocation.is_some() && !self.is_left() => {
                Source::Seen(claim.clone())
            }
            _ => Source::Chosen(self.charge.chosen.clone().or_else(|| self.lingering.clone())),
        }
    }
}

/// Where it says what a claim holds.
enum Source {
    Seen(Arc<ResourceClaim>),
    Chosen(Option<Arc<AllocationResult>>),
}

impl Source {
    fn allocation(&self) -> Option<&AllocationResult> {
        match self {
            Self::Seen(claim) => claim.status.allocation.as_ref(),
            Self::Chosen(allocation) => allocation.as_deref(),
        }
    }
}

/// Whether a change leaves more devices free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Freed {
    /// It may.
    Some,
    /// It does not.
    Nothing,
}

/// The nodes for which something has changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum ChangedNodes {
    /// These.
    These(BTreeSet<Arc<str>>),
    /// It may be each of them.
    Any,
}

/// Every claim of devices, and what decides on it. A copy takes no longer where there are more claims.
#[derive(Clone, Debug, Default)]
pub struct ResourceClaims {
    inventory: DevicePools,
    classes: CompiledClasses,
    /// The extended resources for which classes stand.
    extended: Arc<ExtendedResources>,
    claims: PersistentMap<Arc<str>, ClaimStanding>,
    /// The claims whose status names each pod as a user.
    by_user: ClaimsByUser,
    /// The claims that hold devices of each pool.
    by_pool: PersistentMap<PoolId, BTreeSet<Arc<str>>>,
    held: HeldDevices,
    /// What claims hold of registered cards.
    cards: ClaimedCards,
    published: PublishedCards,
    /// The drivers that publish devices of which none names its hardware.
    nameless: BTreeSet<Arc<str>>,
    /// What has changed when.
    versions: DeviceVersions,
    /// What claims asked for lately.
    specs: Specs,
}

impl ResourceClaims {
    /// Takes in a slice, new or changed; `None`: it is gone.
    pub(in crate::scheduling) fn set_slice(&mut self, name: &str, slice: Option<Arc<ResourceSlice>>) {
        let own = slice.as_ref().map(|slice| DevicePools::pool_of(slice));
        // It may leave a pool for another.
        let pools: BTreeSet<PoolId> =
            self.inventory.pool_of_slice(name).cloned().into_iter().chain(own).collect();
        let before: Vec<_> = pools.iter().map(|pool| self.inventory.nodes_near(pool)).collect();
        let touched = match slice {
            Some(slice) => self.inventory.set(slice),
            None => self.inventory.remove(name).into_iter().collect(),
        };
        self.versions.move_on();
        for (before, pool) in before.into_iter().zip(&pools) {
            self.versions.note_reach(before, self.inventory.nodes_near(pool));
        }
        self.note_published(touched);
    }

    /// Takes in a rule that taints devices, new or changed; `None`: it is gone. Where the API server serves two versions, it is seen in both.
    pub(in crate::scheduling) fn set_taint_rule(
        &mut self,
        version: TaintRuleVersion,
        name: &str,
        rule: Option<Arc<DeviceTaintRule>>,
    ) {
        let version = match version {
            TaintRuleVersion::V1 => "v1",
            TaintRuleVersion::V1Beta2 => "v1beta2",
        };
        let touched = self.inventory.set_rule(&format!("{version}/{name}").into(), rule);
        if !touched.is_empty() {
            self.note_published(touched);
        }
    }

    /// Takes in a class, new or changed.
    pub(in crate::scheduling) fn set_class(&mut self, class: &DeviceClass) {
        self.classes.set(class);
        Arc::make_mut(&mut self.extended).set(class);
        self.read_again();
    }

    /// Takes a class out.
    pub(in crate::scheduling) fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
        Arc::make_mut(&mut self.extended).remove(name);
        self.read_again();
    }

    /// The extended resources for which classes stand.
    pub fn extended(&self) -> &Arc<ExtendedResources> {
        &self.extended
    }

    /// A claim that does not exist yet, by the classes as they stand.
    pub(in crate::scheduling) fn read_new(
        &self,
        claim: &ResourceClaim,
    ) -> Result<WaitingClaim, AllocationError> {
        WaitingClaim::read(claim, &self.classes)
    }

    /// Takes in a claim as it is seen; `None`: it is gone.
    pub(in crate::scheduling) fn see(&mut self, name: &Arc<str>, claim: Option<Arc<ResourceClaim>>) -> Freed {
        let asked = claim.as_ref().and_then(|claim| match self.asked_before(name, claim) {
            // Selectors are compiled once, however often something else of the claim changes.
            Some(asked) => Some(asked),
            None => self.specs.read(claim, &self.classes),
        });
        self.change(name, |standing| (standing.seen, standing.asked) = (claim, asked))
    }

    /// What the claim was known to ask for, if it is the same claim, asks for the same and has no devices yet.
    fn asked_before(&self, name: &Arc<str>, claim: &ResourceClaim) -> Option<Asked> {
        let ClaimStanding { seen, asked, .. } = self.claims.get(name)?;
        let seen = seen.as_ref().filter(|_| claim.status.allocation.is_none())?;
        let is_same = seen.metadata.uid == claim.metadata.uid && seen.spec == claim.spec;
        asked.clone().filter(|_| is_same)
    }

    fn note_published(&mut self, pools: impl IntoIterator<Item = PoolId>) {
        self.versions.move_on();
        for pool in pools {
            self.published.note(&pool, &self.inventory);
            self.held.judge(&pool, &self.inventory);
            let nameless = !self.inventory.may_name_hardware(&pool.0);
            if nameless == self.nameless.contains(&pool.0) {
                self.refold_cards(&pool);
            } else {
                self.note_nameless(&pool.0, nameless);
            }
            self.versions.note_pool(pool);
        }
    }

    /// Devices of this driver that are no longer published can't be cards, or can again.
    fn note_nameless(&mut self, driver: &Arc<str>, nameless: bool) {
        if nameless {
            self.nameless.insert(driver.clone());
        } else {
            self.nameless.remove(driver);
        }
        let first: PoolId = (driver.clone(), Arc::default());
        let held = self.by_pool.range(first..).map(|(pool, _)| pool);
        let held: Vec<PoolId> = held.take_while(|pool| pool.0 == *driver).cloned().collect();
        for pool in &held {
            self.refold_cards(pool);
        }
    }

    /// The nodes for which what claims hold of registered cards has changed since this was last asked.
    pub(in crate::scheduling) fn take_moved(&mut self) -> BTreeSet<NodeName> {
        self.cards.take_moved()
    }

    /// What claims hold of the registered cards of a node; `None`: nothing.
    pub(in crate::scheduling) fn on_node(&self, node: &str) -> Option<NodeClaims<'_>> {
        self.cards.on_node(node)
    }

    fn refold_cards(&mut self, pool: &PoolId) {
        let claims = self.by_pool.get(pool).into_iter().flatten();
        let held = claims.filter_map(|name| self.claims.get(name)?.allocation());
        self.cards.refold(pool, &self.inventory, held);
    }

    /// Moves whenever the devices that a node can reach, or what is held of them, may have changed.
    pub(in crate::scheduling) fn stamp(&self, node: &str) -> u64 {
        self.versions.of(node, self.inventory.pools_near(node))
    }

    /// Greater after every change.
    pub(in crate::scheduling) fn version(&self) -> u64 {
        self.versions.now()
    }

    /// The nodes whose stamp may have moved since this version.
    pub(in crate::scheduling) fn changed_since(&self, version: u64) -> ChangedNodes {
        let Some((pools, nodes)) = self.versions.since(version) else { return ChangedNodes::Any };
        let mut nodes: BTreeSet<Arc<str>> = nodes.cloned().collect();
        for pool in pools {
            match self.inventory.nodes_near(pool) {
                Some(named) => nodes.extend(named),
                None => return ChangedNodes::Any,
            }
        }
        ChangedNodes::These(nodes)
    }

    /// Moves whenever a class changes.
    pub(in crate::scheduling) fn class_version(&self) -> u64 {
        self.versions.classes()
    }

    /// Reads every claim anew, by the classes as they stand now.
    fn read_again(&mut self) {
        self.versions.note_class();
        for (name, standing) in &std::mem::take(&mut self.claims) {
            let seen = standing.seen.as_ref();
            let asked = seen.and_then(|claim| self.specs.read(claim, &self.classes));
            self.claims.insert_mut(name.clone(), ClaimStanding { asked, ..standing.clone() });
        }
    }

    /// What a claim of a namespace asks for; `None`: it is gone, or has its devices.
    pub(in crate::scheduling) fn asked(&self, namespace: &str, name: &str) -> Option<Asked> {
        self.claims.get(&full_name(namespace, name))?.asked.clone()
    }

    /// Takes in what pods that are placed have of a claim.
    pub(in crate::scheduling) fn charge(&mut self, name: &Arc<str>, charge: ClaimCharge) -> Freed {
        self.change(name, |standing| standing.charge = charge)
    }

    /// Takes in what a write that may still arrive gives a claim; `None`: none may any more.
    pub(in crate::scheduling) fn linger(
        &mut self,
        name: &Arc<str>,
        allocation: Option<Arc<AllocationResult>>,
    ) -> Freed {
        self.change(name, |standing| standing.lingering = allocation)
    }

    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut ClaimStanding)) -> Freed {
        let standing = value_of(&mut self.claims, name);
        let before = standing.source();
        let seen_before = standing.seen.clone();
        change(standing);
        let after = standing.source();
        let seen = standing.seen.clone();
        let (before, after) = (before.allocation(), after.allocation());
        if standing.seen.is_none()
            && standing.charge == ClaimCharge::default()
            && standing.lingering.is_none()
        {
            self.claims.remove_mut(name);
        }
        let has_other_users = self.by_user.note(name, seen_before.as_deref(), seen.as_deref());
        if before == after {
            // What pods that leave would free, and so what is kept for others, depends on the users.
            for pool in after.into_iter().flat_map(held::pools).filter(|_| has_other_users) {
                self.versions.move_on();
                self.versions.note_pool(pool);
            }
            return Freed::Nothing;
        }
        for pool in before.into_iter().flat_map(held::pools) {
            if let Some(claims) = self.by_pool.get_mut(&pool)
                && claims.remove(name)
                && claims.is_empty()
            {
                self.by_pool.remove_mut(&pool);
            }
        }
        for pool in after.into_iter().flat_map(held::pools) {
            value_of(&mut self.by_pool, &pool).insert(name.clone());
        }
        for pool in before.into_iter().chain(after).flat_map(held::pools).collect::<BTreeSet<_>>() {
            self.refold(&pool);
        }
        if before.is_some() { Freed::Some } else { Freed::Nothing }
    }

    /// Folds anew what is held of a pool.
    fn refold(&mut self, pool: &PoolId) {
        self.versions.move_on();
        self.versions.note_pool(pool.clone());
        self.held.clear(pool);
        self.refold_cards(pool);
        let claims = self.by_pool.get(pool).into_iter().flatten();
        for allocation in claims.filter_map(|name| self.claims.get(name)?.allocation()) {
            self.held.add_of(allocation, pool);
        }
        self.held.judge(pool, &self.inventory);
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

    pub(in crate::scheduling) fn inventory(&self) -> &DevicePools {
        &self.inventory
    }

    /// What is in use of each device.
    pub fn held(&self) -> &HeldDevices {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The claim `c` with this selector, and an annotation of this value.
    fn claim(selector: &str, annotation: &str) -> Arc<ResourceClaim> {
        let exactly = json!({"deviceClassName": "gpu", "selectors": [{"cel": {"expression": selector}}]});
        let metadata =
            json!({"name": "c", "namespace": "team", "uid": "u", "annotations": {"note": annotation}});
        let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    #[test]
    fn selectors_are_compiled_once_whatever_else_of_the_claim_changes() {
        let mut claims = ResourceClaims::default();
        claims.set_class(&serde_json::from_value(json!({"metadata": {"name": "gpu"}})).unwrap());
        let name: Arc<str> = "team/c".into();
        let mut asked = |claim| {
            claims.see(&name, Some(claim));
            claims.asked("team", "c").unwrap().1.unwrap()
        };
        let first = asked(claim("true", "a"));
        assert!(Arc::ptr_eq(&first, &asked(claim("true", "b"))), "another annotation");
        assert!(!Arc::ptr_eq(&first, &asked(claim("false", "b"))), "another selector");
    }
}
