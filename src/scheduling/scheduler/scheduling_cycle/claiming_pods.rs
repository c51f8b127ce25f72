//! The pods that count among those that may come by what their claims of devices ask for.
//!
//! What such a pod counts as is a function of the pod, its claims, the classes, and the kinds of cards that drivers publish. It is found anew when one of
//! them changes: pod by pod, so that no turn takes long. A claim that several pods use counts with the one that was created first, of several by uid.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    dra::{self, AllocationError, AskedDevices, KnownKind, WaitingClaim, device::DeviceKind},
    object::{
        ResourceClaim,
        metadata::Controller,
        resource_claim::{DeviceClaim, ResourceClaimSpec},
    },
    scheduling::{
        model::{
            claim_use::ClaimSource,
            footprint::Footprint,
            name::{Uid, full_name},
            pod_shape::{CardShape, PodShape},
            steps::{Allowance, PER_MILLISECOND},
        },
        world::World,
    },
};

/// So many claims of a pod count. Few pods have more than one.
const MOST_CLAIMS: usize = 16;

/// So many bytes the requests of a claim may have to count, as JSON: reading them takes up to 2 ms.
const LONGEST: usize = 10 * 1024;

/// A claim counts only if finding out which kinds of cards its selectors admit takes no more steps: about half a millisecond.
const MOST_STEPS: u64 = PER_MILLISECOND / 2;

/// What reading a byte of requests takes.
const READ: u64 = 13;

/// What counting a pod anew takes beside reading claims.
const RECOUNT: u64 = 256;

/// What so many different claims ask for is remembered.
const REMEMBERED: usize = 4096;

/// A pod that counts.
#[derive(Debug)]
struct ClaimingPod {
    footprint: Arc<Footprint>,
    created: Timestamp,
    /// The full names of those of its claims that count.
    claims: Vec<Arc<str>>,
    /// As what it counts.
    shape: Option<PodShape>,
}

/// A pod that counts as something else than before.
#[derive(Debug)]
pub(super) struct Recounted {
    pub(super) before: Option<PodShape>,
    pub(super) after: Option<PodShape>,
    /// How many steps it has taken to find out.
    pub(super) steps: u64,
}

/// The pods that use claims of devices, and count.
#[derive(Debug, Default)]
pub(super) struct ClaimingPods {
    pods: BTreeMap<Uid, ClaimingPod>,
    /// The pods that use each claim, the oldest first.
    users: HashMap<Arc<str>, BTreeSet<(Timestamp, Uid)>>,
    /// Those that are to be counted anew.
    outdated: BTreeSet<Uid>,
    asked: AskedByClaims,
}

/// What claims ask for, read by the classes and for the kinds of cards as they stand.
#[derive(Debug, Default)]
struct AskedByClaims {
    class_version: u64,
    kinds: Arc<BTreeSet<Arc<DeviceKind>>>,
    known: Vec<KnownKind>,
    /// By what claims say.
    by_requests: HashMap<String, Arc<[AskedDevices]>>,
}

impl ClaimingPods {
    /// Takes in that a pod counts with these claims, and when it was created; `None`: it does not count any more. Returns as what it does not count any
    /// more.
    pub(super) fn see(
        &mut self,
        uid: &Uid,
        claiming: Option<(Arc<Footprint>, Timestamp)>,
    ) -> Option<PodShape> {
        let known = self.pods.get(uid);
        let Some((footprint, created)) = claiming else {
            known?;
            let gone = self.pods.remove(uid)?;
            self.outdated.remove(uid);
            self.leave(uid, &gone);
            return gone.shape;
        };
        let is_same = |known: &ClaimingPod| {
            known.created == created
                && known.footprint.resource_claims == footprint.resource_claims
                && known.footprint.resources == footprint.resources
        };
        if known.is_some_and(is_same) {
            return None;
        }
        let before = self.pods.remove(uid);
        if let Some(before) = &before {
            self.leave(uid, before);
        }
        let mut claims: Vec<Arc<str>> = Vec::new();
        for claim in footprint.claims_of_devices() {
            if claims.len() < MOST_CLAIMS && !claims.contains(&claim) {
                claims.push(claim);
            }
        }
        for claim in &claims {
            let users = self.users.entry(claim.clone()).or_default();
            // The claim may count with this pod now, and with another no more.
            self.outdated.extend(users.first().map(|(_, first)| first.clone()));
            users.insert((created, uid.clone()));
        }
        let shape = before.and_then(|before| before.shape);
        self.pods.insert(uid.clone(), ClaimingPod { footprint, created, claims, shape });
        self.outdated.insert(uid.clone());
        None
    }

    /// The pod uses its claims no more: each counts with the next of its users.
    fn leave(&mut self, uid: &Uid, pod: &ClaimingPod) {
        for claim in &pod.claims {
            let Some(users) = self.users.get_mut(claim) else { continue };
            users.remove(&(pod.created, uid.clone()));
            self.outdated.extend(users.first().map(|(_, first)| first.clone()));
            if users.is_empty() {
                self.users.remove(claim);
            }
        }
    }

    /// The claim of this full name is another one than before, or gone.
    pub(super) fn note_claim(&mut self, name: &str) {
        let first = self.users.get(name).and_then(BTreeSet::first);
        self.outdated.extend(first.map(|(_, uid)| uid.clone()));
    }

    /// Whether pods are to be counted anew.
    pub(super) fn is_outdated(&self, world: &World) -> bool {
        !self.pods.is_empty() && (!self.outdated.is_empty() || self.asked.is_outdated(world))
    }

    /// Counts one pod anew; `None`: each counts as it should.
    pub(super) fn recount_next(&mut self, world: &World) -> Option<Recounted> {
        if self.pods.is_empty() {
            return None;
        }
        if self.asked.is_outdated(world) {
            self.asked = AskedByClaims::of(world);
            self.outdated.extend(self.pods.keys().cloned());
        }
        let uid = self.outdated.pop_first()?;
        let (after, steps) = self.shape(&uid, world);
        let pod = self.pods.get_mut(&uid)?;
        let before = std::mem::replace(&mut pod.shape, after.clone());
        Some(Recounted { before, after, steps: RECOUNT + steps })
    }

    /// As what the pod counts, with the steps that finding out has taken.
    fn shape(&mut self, uid: &Uid, world: &World) -> (Option<PodShape>, u64) {
        let Self { pods, users, asked, .. } = self;
        let Some(ClaimingPod { footprint, claims, .. }) = pods.get(uid) else { return (None, 0) };
        let counts_here = |claim: &&Arc<str>| {
            users.get(*claim).and_then(BTreeSet::first).is_some_and(|(_, first)| first == uid)
        };
        let (mut all, mut steps) = (Vec::new(), 0);
        for name in claims.iter().filter(counts_here) {
            let Some(claim) = claim_of(name, (uid, footprint), world) else { continue };
            let (asked, taken) = asked.of_claim(claim, world);
            all.extend(asked.iter().cloned());
            steps += taken;
        }
        let cards = CardShape::of_claims(all);
        (cards.map(|cards| PodShape::new(&footprint.resources, cards)), steps)
    }
}

/// The claim, if the pod can have it: one that was made from a template is of one pod alone, or of one PodGroup.
fn claim_of<'a>(
    name: &str,
    (uid, footprint): (&Uid, &Footprint),
    world: &'a World,
) -> Option<&'a Arc<ResourceClaim>> {
    let used = footprint.resource_claims.iter().find(|used| {
        used.claim.as_ref().is_some_and(|claim| *full_name(&footprint.namespace, claim) == *name)
    })?;
    let claim = world.resource_claims().claim(&footprint.namespace, used.claim.as_ref()?)?;
    let is_of_another = |owner: &Controller| *owner.uid() != **uid && owner.kind() != "PodGroup";
    let of_another = claim.metadata.controller.as_ref().is_some_and(is_of_another);
    (used.source == ClaimSource::Named || !of_another).then_some(claim)
}

impl AskedByClaims {
    fn is_outdated(&self, world: &World) -> bool {
        self.class_version != world.resource_claims().class_version()
            || !Arc::ptr_eq(&self.kinds, world.packing().device_kinds())
    }

    /// Nothing was read yet.
    fn of(world: &World) -> Self {
        let kinds = world.packing().device_kinds().clone();
        let known = kinds.iter().map(KnownKind::of).collect();
        let class_version = world.resource_claims().class_version();
        Self { class_version, kinds, known, by_requests: HashMap::new() }
    }

    /// What the claim asks for of cards, with the steps that finding out has taken; nothing where it can't be read, or not in time.
    fn of_claim(&mut self, claim: &ResourceClaim, world: &World) -> (Arc<[AskedDevices]>, u64) {
        let nothing = Arc::default();
        let waiting = world.resource_claims().asked(&claim.metadata.namespace, &claim.metadata.name);
        let waiting = match waiting {
            Some((_, Err(_))) => return (nothing, 0),
            Some((_, Ok(waiting))) => Some(waiting),
            None => None,
        };
        let requests = serde_json::to_string(&claim.spec.devices.requests).unwrap_or_default();
        if requests.is_empty() || requests.len() > LONGEST {
            return (nothing, 0);
        }
        if let Some(known) = self.by_requests.get(&requests) {
            return (known.clone(), 0);
        }
        let read = waiting.is_none().then_some(requests.len() as u64 * READ);
        let mut allowance = Allowance::of(MOST_STEPS);
        let asked = waiting
            .map_or_else(|| read_requests(claim, world).map(Arc::new), Ok)
            .and_then(|claim| dra::asked(&claim, &self.known, &mut |toll| allowance.take(toll)));
        let asked: Arc<[AskedDevices]> = asked.unwrap_or_default().into();
        if self.by_requests.len() >= REMEMBERED {
            self.by_requests.clear();
        }
        self.by_requests.insert(requests, asked.clone());
        (asked, read.unwrap_or(0) + MOST_STEPS - allowance.left())
    }
}

/// A claim that has its devices is not kept as it was read.
fn read_requests(claim: &ResourceClaim, world: &World) -> Result<WaitingClaim, AllocationError> {
    let devices = DeviceClaim { requests: claim.spec.devices.requests.clone(), ..DeviceClaim::default() };
    let metadata = claim.metadata.clone();
    let claim = ResourceClaim { metadata, spec: ResourceClaimSpec { devices }, ..ResourceClaim::default() };
    world.resource_claims().read_new(&claim)
}
