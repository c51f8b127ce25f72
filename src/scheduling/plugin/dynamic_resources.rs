//! Whether the pod's claims of devices can be used on a node: those that are allocated by their node selector, the others by what the
//! allocator finds there.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources`. A claim whose users all leave on trial counts as free;
//! upstream's preemption frees none.

pub(in crate::scheduling) mod alternatives;
mod extended;
pub(in crate::scheduling) mod found;
mod node_resources;
pub mod rejection;
mod scoring;
pub mod shortage;

use std::{cell::Cell, collections::BTreeSet, ops::ControlFlow, sync::Arc};

use smallvec::smallvec;

use super::{
    claim_fits::{Asked, AskedOf, NodeFits, NodeJudge},
    contract::{PreFilter, PreFiltered, PreScored, Reach, Reasons, SchedulingPlugin},
    pod_counts::PodCounts,
};
use crate::{
    dra::{self, AllocationError, GoOn, NodeResourcesTaken, Selected, WaitingClaim},
    object::{ResourceClaim, metadata::Controller, resource_claim::AllocationResult},
    scheduling::{
        model::{
            change::Change,
            claim_use::{ClaimConsumer, ClaimSource, ResourceClaimUse},
            footprint::Footprint,
            kind::Kind,
            name::full_name,
            pod::{Ask, Demand},
            prebind_step::{ClaimChoice, PrebindStep},
            steps::{Allowance, PER_MILLISECOND},
        },
        world::{
            World,
            node_state::NodeState,
            object::Objects,
            resource_claims::{Beside, MOST_CONSUMERS, ResourceClaims, consumers},
        },
    },
};
use alternatives::AlternativePoints;
use extended::PodExtended;
use found::{FoundDevices, TakenByEach};
use node_resources::{ClaimedNodeResources, refuse_extended, taken_by_each};
pub use rejection::ClaimRejection;
use scoring::AlternativeScores;
use shortage::{ClaimShortage, Holders};

/// Rejects a node on which the pod's claims can't be used, and that has no devices for those that hold none yet. Prefers nodes where prioritized lists
/// get earlier alternatives.
#[derive(Debug)]
pub struct DynamicResources;

impl SchedulingPlugin for DynamicResources {
    const NAME: &'static str = "DynamicResources";
    const REACH: Reach = Reach::Cluster;
    const WEIGHT: Option<u32> = Some(2);

    type Reason = ClaimRejection;

    /// Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources`, `EventsToRegister`.
    fn helps(pod: &Footprint, change: &Change, _objects: &Objects) -> bool {
        match change {
            Change::DevicesFreed | Change::ResourcesFreed | Change::Node => true,
            Change::Object(Kind::ResourceClaim, name) => {
                name.is_empty() || pod.claim_names().any(|claim| full_name(&pod.namespace, claim) == *name)
            }
            Change::Object(Kind::PodGroup(_), group) => {
                // A claim that was made for the group may turn out to be the pod's to use.
                let is_near = group.split_once('/').is_none_or(|(namespace, _)| *namespace == *pod.namespace);
                let is_made = |used: &ResourceClaimUse| matches!(used.source, ClaimSource::Template(_));
                is_near && pod.resource_claims.iter().any(is_made)
            }
            Change::Object(kind, _) => {
                matches!(kind, Kind::ResourceSlice | Kind::DeviceClass | Kind::DeviceTaintRule(_))
            }
            Change::PodAdded(_)
            | Change::Charged(_)
            | Change::CardsClaimed(_)
            | Change::PodRemoved(_)
            | Change::Nomination => false,
        }
    }
}

impl PreFilter for DynamicResources {
    type Found<'a> = PodClaims<'a>;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Option<PodClaims<'a>>, ClaimRejection> {
        PodClaims::of(demand, world, counts)
    }
}

impl<'a> PreFiltered<'a, ClaimRejection> for PodClaims<'a> {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<ClaimRejection>> {
        let taken = self.test_on(node).map_err(|reason| smallvec![reason])?;
        self.of_node.test((&self.ask, node), self.by_waiting(&taken))
    }

    /// Where the node lacks devices, it does so beside those that are kept for other pods, too.
    fn narrow(&self, may_pass: &mut [bool]) -> bool {
        let lacking = self.fits.lacking();
        for (may_pass, lacks) in may_pass.iter_mut().zip(lacking) {
            *may_pass &= !lacks;
        }
        !lacking.is_empty()
    }

    fn detailed(&self, node: &NodeState, reason: &ClaimRejection) -> Option<ClaimRejection> {
        let found = (*reason == ClaimRejection::Unallocatable).then(|| self.shortage(node)).flatten();
        found.map(|shortage| ClaimRejection::Short(Arc::new(shortage)))
    }

    fn steps(&self, node: &NodeState) -> Result<Vec<PrebindStep>, Reasons<ClaimRejection>> {
        let (mut steps, taken) = self.choose(node).map_err(|reason| smallvec![reason])?;
        let of_node = self.of_node.choose((&self.ask, node), self.by_waiting(&taken))?;
        steps.extend(of_node.map(PrebindStep::NodeResources));
        Ok(steps)
    }

    fn scoring(&self) -> Option<Box<dyn PreScored + 'a>> {
        let has_lists = self.waiting.iter().any(|waiting| alternatives::has_lists(waiting.claim));
        has_lists.then(|| {
            let held = self.held.iter().map(|(claim, allocation)| AlternativePoints::of(claim, allocation));
            Box::new(AlternativeScores::new(self.fits.clone(), held.sum())) as Box<dyn PreScored + 'a>
        })
    }
}

/// The claims of one pod that is to be placed.
#[derive(Debug)]
pub struct PodClaims<'a> {
    known: &'a ResourceClaims,
    /// The pod's namespace.
    namespace: Arc<str>,
    /// What the pod asks for, shares of cards included.
    ask: Arc<Ask>,
    /// Claims that hold devices already, with these.
    held: Vec<(&'a ResourceClaim, &'a AllocationResult)>,
    /// The pod is to be added to the users of these claims, which hold devices already.
    joined: Vec<ClaimChoice>,
    /// Claims that are given devices with the pod.
    waiting: Vec<ClaimToAllocate<'a>>,
    /// The claim that serves extended resources.
    extended: Option<PodExtended<'a>>,
    /// What the waiting claims ask for.
    asked: Vec<AskedOf>,
    /// By slot, whether the node has devices for the waiting claims.
    fits: NodeFits,
    /// How much a choice of devices may take.
    allowance: Allowance,
    /// How much is left for comparing them with devices beside those that are kept for other pods.
    beside_kept: Cell<Allowance>,
    /// What the claims take of a node's own resources.
    of_node: ClaimedNodeResources,
}

/// A claim that is given devices with the pod.
#[derive(Debug)]
struct ClaimToAllocate<'a> {
    claim: &'a ResourceClaim,
    asked: Arc<WaitingClaim>,
    consumer: ClaimConsumer,
}

/// The nodes for which is read what claims for extended resources ask for.
#[derive(Clone, Copy, Debug)]
enum NodesLookedAt<'n> {
    All,
    One(Option<&'n NodeState>),
}

impl<'a> PodClaims<'a> {
    /// The claims as they stand; `None`: the pod has none. The error holds on every node.
    fn of(demand: &Demand, world: &'a World, counts: &mut PodCounts) -> Result<Option<Self>, ClaimRejection> {
        let only = counts.one_slot();
        let looked_at = match only {
            Some(slot) => NodesLookedAt::One(world.nodes.at(slot).map(|node| &**node)),
            None => NodesLookedAt::All,
        };
        let Some(mut claims) = Self::read_for(demand, world, looked_at, counts.claim_allowance())? else {
            return Ok(None);
        };
        if let Some(asked) = claims.asked() {
            let mut allowance = counts.claim_allowance();
            let asked = (asked, &demand.footprint.namespace);
            claims.fits = counts.claim_fits().of(asked, (world, only), &mut allowance, &claims);
            claims.beside_kept = Cell::new(allowance);
            if only.is_some() && !world.nominations().is_empty() {
                // As much again, and a little more, for comparing them beside what is kept for other pods.
                let taken = counts.claim_allowance().left() - allowance.left();
                let left = allowance.less(2 * taken + PER_MILLISECOND / 10);
                claims.beside_kept = Cell::new(Allowance::of(allowance.left() - left.left()));
                allowance = left;
            }
            counts.take_claim_steps(allowance);
        }
        if claims.fits.is_unfinished() {
            return Err(ClaimRejection::Unfinished);
        }
        Ok(Some(claims))
    }

    /// As [`Self::of`], without a look at any node.
    pub(in crate::scheduling) fn read(
        demand: &Demand,
        world: &'a World,
        allowance: Allowance,
    ) -> Result<Option<Self>, ClaimRejection> {
        Self::read_for(demand, world, NodesLookedAt::All, allowance)
    }

    fn read_for(
        demand: &Demand,
        world: &'a World,
        nodes: NodesLookedAt<'_>,
        allowance: Allowance,
    ) -> Result<Option<Self>, ClaimRejection> {
        let uses = &demand.footprint.resource_claims;
        let extended = PodExtended::prepare(demand, world, nodes);
        if uses.is_empty() && extended.is_none() {
            return Ok(None);
        }
        if !uses.is_empty() && world.objects().is_left_out(Kind::ResourceClaim) {
            return Err(ClaimRejection::Off);
        }
        let known = world.resource_claims();
        let mut claims = Self {
            known,
            namespace: demand.footprint.namespace.clone(),
            ask: demand.ask.clone(),
            held: Vec::new(),
            joined: Vec::new(),
            waiting: Vec::new(),
            asked: extended.iter().filter_map(PodExtended::asked).map(AskedOf::Extended).collect(),
            extended,
            fits: NodeFits::default(),
            allowance,
            beside_kept: Cell::new(allowance),
            of_node: ClaimedNodeResources::of(demand),
        };
        for one in uses {
            let consumer = world.objects().claim_consumer(demand.group.as_deref(), one);
            if let Some(claim) = &one.claim {
                claims.of_node.add_use(claim, &one.entry);
            }
            claims.add(claim_of(one, demand, (known, &consumer))?, demand, consumer)?;
        }
        Ok(Some(claims))
    }

    /// The devices that a node would give to the pod's claims, within so many steps; none where it has too few, or where that takes longer.
    pub(in crate::scheduling) fn devices_on(
        demand: &Demand,
        world: &'a World,
        node: &NodeState,
        mut allowance: Allowance,
    ) -> Vec<Arc<AllocationResult>> {
        let claims = Self::read_for(demand, world, NodesLookedAt::One(Some(node)), allowance);
        let Ok(Some(claims)) = claims else { return Vec::new() };
        let found = claims.allocate(node, &mut Selected::default(), &mut |toll| allowance.take(toll));
        let Ok((given, extended)) = found else { return Vec::new() };
        given.into_iter().filter_map(|choice| choice.allocation).chain(extended.map(Arc::new)).collect()
    }

    /// What the allocator has to find; `None`: nothing.
    fn asked(&self) -> Option<Asked> {
        let beside = if self.ask.devices.is_empty() { Beside::Nothing } else { Beside::Shares };
        (!self.asked.is_empty()).then(|| (self.known.class_version(), beside, self.asked.clone()))
    }

    fn add(
        &mut self,
        claim: &'a ResourceClaim,
        demand: &Demand,
        consumer: ClaimConsumer,
    ) -> Result<(), ClaimRejection> {
        let name = &claim.metadata.name;
        let Some(allocation) = self.known.allocation(&demand.footprint.namespace, name) else {
            let asked = self.known.asked(&demand.footprint.namespace, name);
            // One that pods would leave on trial which this pod shares it with: to whom it goes then is not known.
            let (spec, asked) = asked.ok_or(ClaimRejection::Unallocatable)?;
            if self.waiting.iter().all(|known| known.claim.metadata.name != *name) {
                let asked = asked.map_err(|error| ClaimRejection::Undecidable(Arc::new(error)))?;
                self.waiting.push(ClaimToAllocate { claim, asked, consumer });
                self.asked.push(AskedOf::Claim(spec));
            }
            return Ok(());
        };
        let user = consumer.uid(&demand.uid);
        let users = consumers(self.known, &demand.footprint.namespace, name);
        if !users.contains(&**user) && users.len() >= MOST_CONSUMERS {
            return Err(ClaimRejection::FullyReserved(name.as_str().into()));
        }
        let pools = self.known.inventory();
        if NodeResourcesTaken::are_mapped(allocation, pools) {
            // Other pods of its PodGroup are others too, though the status names the group alone.
            let users = self.known.users(&demand.footprint.namespace, name);
            if users.iter().any(|uid| **uid != *demand.uid && **uid != **user) {
                return Err(ClaimRejection::Mapped(name.as_str().into()));
            }
        }
        self.of_node.add_held(&name.as_str().into(), allocation, pools)?;
        self.held.push((claim, allocation));
        let reserved = claim.status.reserved_for.iter().any(|one| *one.uid == **user);
        if !reserved && self.joined.iter().all(|joined| *joined.claim != **name) {
            self.joined.push(ClaimChoice::of(claim, None, consumer));
        }
        Ok(())
    }

    /// With the names of the claims that are given devices, what each of them takes.
    fn by_waiting<'t>(
        &'t self,
        taken: &'t TakenByEach,
    ) -> impl Iterator<Item = (&'t str, &'t NodeResourcesTaken)> {
        let names = self.waiting.iter().map(|waiting| waiting.claim.metadata.name.as_str());
        names.zip(taken.iter())
    }

    /// Fails on a node from which the claims can't be used, and that has no devices for those that hold none; what these take of it.
    fn test_on(&self, node: &NodeState) -> Result<TakenByEach, ClaimRejection> {
        self.test_allocated(node)?;
        self.extended.as_ref().map_or(Ok(()), |extended| extended.test(node))?;
        if node.claimed.kept.is_none() {
            return self.fits.on(node);
        }
        // What is kept for other pods is not part of what was judged.
        let mut allowance = self.beside_kept.get();
        let mut selected = self.fits.selected(node);
        let found = self.judge(node, &mut selected, &mut |toll| allowance.take(toll));
        self.beside_kept.set(allowance);
        found.map(|found| found.taken)
    }

    /// What the claims are given with the pod on this node, and what they take of it with that.
    fn choose(&self, node: &NodeState) -> Result<(Vec<PrebindStep>, TakenByEach), ClaimRejection> {
        self.test_allocated(node)?;
        let (selected, mut allowance) = (self.fits.selected(node), self.allowance);
        let mut found = self.allocate(node, &mut selected.clone(), &mut |toll| allowance.take(toll));
        if super::claim_fits::is_unfinished(&found) {
            // Rare: the node has changed since it was judged, and so that the devices that were found are not to be had.
            found = self.allocate(node, &mut selected.clone(), &mut |_| ControlFlow::Continue(()));
        }
        let (given, found) = found?;
        let taken = taken_by_each(&given, self.known.inventory())?;
        let extended = self.extended.as_ref().and_then(|extended| extended.choose(node, found));
        let given = self.joined.iter().cloned().chain(given);
        Ok((given.map(PrebindStep::Devices).chain(extended.map(PrebindStep::Extended)).collect(), taken))
    }

    fn test_allocated(&self, node: &NodeState) -> Result<(), ClaimRejection> {
        if self.held.is_empty() {
            return Ok(());
        }
        let node = node.target();
        let usable = self.held.iter().all(|(_, allocation)| node.can_use(allocation));
        if usable { Ok(()) } else { Err(ClaimRejection::Elsewhere) }
    }

    /// Devices of the node for the waiting claims, and for the one that serves extended resources.
    pub(in crate::scheduling) fn allocate(
        &self,
        node: &NodeState,
        selected: &mut Selected,
        go_on: GoOn<'_>,
    ) -> Result<(Vec<ClaimChoice>, Option<AllocationResult>), ClaimRejection> {
        let claims = self.sought(node)?;
        if claims.is_empty() {
            return Ok((Vec::new(), None));
        }
        let held = self.known.in_use(node, self.beside(node));
        let on = node.target();
        let allocation = dra::allocate_again(&claims, on, (self.known.inventory(), &held), selected, go_on);
        let allocation = allocation.map_err(|error| match error {
            AllocationError::Interrupted => ClaimRejection::Unfinished,
            error => ClaimRejection::Undecidable(Arc::new(error)),
        })?;
        let results = allocation.map(|allocation| allocation.results);
        let results = results.filter(|results| !self.known.are_one_card(on.name, results));
        let mut results = results.ok_or(ClaimRejection::Unallocatable)?.into_iter();
        let given = self.waiting.iter().zip(&mut results);
        let given = given.map(|(waiting, allocation)| {
            ClaimChoice::of(waiting.claim, Some(Arc::new(allocation)), waiting.consumer.clone())
        });
        let (given, extended) = (given.collect(), results.next());
        refuse_extended(extended.as_ref(), self.known.inventory())?;
        Ok((given, extended))
    }

    /// The claims that are to be given devices on the node, the one for extended resources last.
    fn sought(&self, node: &NodeState) -> Result<Vec<&WaitingClaim>, ClaimRejection> {
        let extended = self.extended.as_ref().map_or(Ok(None), |extended| extended.sought(node))?;
        Ok(self.waiting.iter().map(|waiting| &*waiting.asked).chain(extended).collect())
    }

    /// What the node lacks for the claims; `None`: that takes too long to find out.
    fn shortage(&self, node: &NodeState) -> Option<ClaimShortage> {
        let claims = self.sought(node).ok()?;
        // Claims that ask for the same are read once, whatever their names.
        let name = |at: usize| Some(self.waiting.get(at)?.called());
        let held = self.known.in_use(node, self.beside(node));
        let on = node.target();
        let (mut selected, mut allowance) = (self.fits.selected(node), self.allowance);
        let mut interrupted = false;
        let mut go_on = |toll| {
            let flow = allowance.take(toll);
            interrupted |= flow.is_break();
            flow
        };
        let found = dra::shortfall(&claims, on, (self.known.inventory(), &held), &mut selected, &mut go_on);
        let Some(found) = found else {
            let names = (0..self.waiting.len()).filter_map(name).collect();
            return (!interrupted && !self.waiting.is_empty()).then_some(ClaimShortage::Together(names));
        };
        let all = self.known.holders(&found.in_use).into_iter().collect();
        Some(ClaimShortage::Request {
            claim: name(found.claim),
            request: found.request.as_str().into(),
            wanted: found.wanted,
            matching: found.matching,
            tainted: found.tainted,
            featureless: found.featureless,
            in_use: found.in_use.len(),
            holders: Holders { all, namespace: self.namespace.clone() },
        })
    }

    /// Whether the pod gets shares of registered cards on the node beside its claims.
    fn beside(&self, node: &NodeState) -> Beside {
        let by_claim = self.ask.devices.iter().all(|device| node.serves_by_claim(device));
        if by_claim { Beside::Nothing } else { Beside::Shares }
    }
}

impl NodeJudge for PodClaims<'_> {
    /// Whether the node has devices for the waiting claims, and what these get.
    fn judge(
        &self,
        node: &NodeState,
        selected: &mut Selected,
        go_on: GoOn<'_>,
    ) -> Result<FoundDevices, ClaimRejection> {
        let (given, _) = self.allocate(node, selected, go_on)?;
        let taken = taken_by_each(&given, self.known.inventory())?;
        let both = self.waiting.iter().zip(&given);
        let both = both.filter_map(|(waiting, given)| Some((waiting.claim, given.allocation.as_ref()?)));
        let points = both.map(|(claim, allocation)| AlternativePoints::of(claim, allocation)).sum();
        Ok(FoundDevices { points, taken })
    }

    /// Which shares a node serves by a claim, and what extended resources stand for there, follows from more than its devices.
    fn attributes(&self) -> Option<BTreeSet<String>> {
        if self.extended.is_some() || !self.ask.devices.is_empty() {
            return None;
        }
        let mut names = BTreeSet::new();
        for waiting in &self.waiting {
            names.extend(waiting.asked.attributes()?);
        }
        Some(names)
    }
}

/// The claim of an entry of the pod, unless something keeps the pod from all nodes.
fn claim_of<'a>(
    used: &ResourceClaimUse,
    demand: &Demand,
    (known, consumer): (&'a ResourceClaims, &ClaimConsumer),
) -> Result<&'a ResourceClaim, ClaimRejection> {
    let ResourceClaimUse { entry, claim, source } = used;
    let Some(name) = claim else {
        let (entry, group) = (entry.clone(), consumer.group().cloned());
        return Err(ClaimRejection::NotCreated { entry, group });
    };
    let claim = known.claim(&demand.footprint.namespace, name);
    let claim = claim.ok_or_else(|| ClaimRejection::NotFound(name.clone()))?;
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(ClaimRejection::Terminating(name.clone()));
    }
    let is_own =
        |owner: &Controller| owner.uid() == &*demand.uid || owner.uid() == &**consumer.uid(&demand.uid);
    if *source != ClaimSource::Named && !claim.metadata.controller.as_ref().is_none_or(is_own) {
        let (claim, group) = (name.clone(), consumer.group().cloned());
        return Err(ClaimRejection::NotOwned { claim, group });
    }
    Ok(claim)
}

impl ClaimToAllocate<'_> {
    /// What messages call it, by whose it is.
    fn called(&self) -> Arc<str> {
        let name = self.claim.metadata.name.as_str();
        match self.consumer.group() {
            Some(group) => format!("{name} of PodGroup {group}").into(),
            None => name.into(),
        }
    }
}

#[cfg(test)]
pub(in crate::scheduling) mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::device::NodePolicy;
    use crate::scheduling::{
        Ask, Constraints, PreemptionPolicy, ResourceAmounts, Snapshot,
        model::{
            claim_use::ResourceClaimUse, footprint::Footprint, plugin_arguments::PluginArguments,
            tdm::RevocableZones,
        },
        world::object::Object,
    };

    pub(in crate::scheduling) fn demand(pod: &str) -> Demand {
        let source = ClaimSource::Template("gpu".into());
        let used = ResourceClaimUse { entry: "gpu".into(), claim: Some("shared".into()), source };
        let ask = Ask {
            devices: Vec::new(),
            resources: Arc::new(ResourceAmounts::default()),
            constraints: Constraints::default(),
            policy: NodePolicy::Indifferent,
        };
        let footprint =
            Footprint { namespace: "team".into(), resource_claims: [used].into(), ..Footprint::default() };
        Demand {
            ask: ask.into(),
            footprint: footprint.into(),
            priority: 0,
            uid: pod.into(),
            preemption_policy: PreemptionPolicy::PreemptLowerPriority,
            group: None,
            nominated: None,
            origin: None,
            served: None,
            taken: Arc::default(),
        }
    }

    fn prepared(claim: Option<Value>, pod: &str) -> Result<Option<usize>, String> {
        let mut snapshot =
            Snapshot::new(BTreeSet::new(), PluginArguments::default(), RevocableZones::default());
        if let Some(claim) = claim {
            snapshot.set_object(Object::ResourceClaim(serde_json::from_value(claim).unwrap()));
        }
        let prepared = PodClaims::of(&demand(pod), snapshot.world(), &mut PodCounts::default());
        let allocated = prepared.map(|claims| claims.map(|claims| claims.held.len()));
        allocated.map_err(|reason| reason.to_string())
    }

    fn claim(reserved_for: &[Value]) -> Value {
        let status = json!({"allocation": {"devices": {"results": []}}, "reservedFor": reserved_for});
        json!({"metadata": {"namespace": "team", "name": "shared"}, "status": status})
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
    fn a_claim_that_was_made_for_another_pod_is_not_the_pods() {
        let of = |uid: &str| {
            let owner =
                json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true});
            let metadata = json!({"namespace": "team", "name": "shared", "ownerReferences": [owner]});
            prepared(Some(json!({"metadata": metadata})), "mine")
        };
        assert_eq!(of("mine"), Ok(Some(0)));
        assert_eq!(of("another"), Err("resourceclaim \"shared\" was not created for this pod".to_owned()));
    }

    #[test]
    fn a_claim_that_is_missing_is_named() {
        assert_eq!(prepared(None, "pod"), Err("resourceclaim \"shared\" not found".to_owned()));
    }
}
