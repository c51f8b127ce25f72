//! What must hold of claims of devices, read from ResourceClaims, ResourceSlices and pods by the API's own rules, without any of Berth's
//! code: what each claim was given, who uses it, and where its pods are.

#[path = "device_claims/ask.rs"]
mod ask;
#[path = "device_claims/pools.rs"]
mod pools;
#[path = "device_claims/read.rs"]
mod read;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth_sandbox::agent::node::Node;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    checker::Writer,
    dice::Dice,
    groups::Groups,
    record::{Pod, text},
};
pub(crate) use ask::{HELD, SHARED, Template, ask};
pub(crate) use pools::{Kind, Pool};
use read::{Allocation, Asked, Claim, Consumer, Device, Given, Key, User, devices};

/// The nodes of a story with claims of devices.
pub(crate) const NODES: [&str; 3] = ["dra-0", "dra-1", "dra-2"];
/// The group of the kinds.
pub(crate) const GROUP: &str = "resource.k8s.io";
/// How the names of claims and pods begin that another scheduler places.
pub(crate) const THEIRS: &str = "theirs-";
/// Keeps a claim until its devices are free again.
pub(crate) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The node of this name; its devices are published.
pub(crate) fn machine(name: &str) -> Node {
    Node::new(name)
}

/// The names of the claims that a pod uses; `None`: it is not made yet.
pub(crate) fn used(pod: &Value) -> Vec<Option<String>> {
    let made = pod["status"]["resourceClaimStatuses"].as_array().cloned().unwrap_or_default();
    let uses = pod["spec"]["resourceClaims"].as_array().into_iter().flatten();
    let name = |used: &Value| {
        let made = made.iter().find(|made| made["name"] == used["name"]);
        let name = used.get("resourceClaimName").or_else(|| made?.get("resourceClaimName"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    uses.map(name).collect()
}

/// All claims, and the devices that there are and were.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// By uid.
    standing: BTreeMap<String, Claim>,
    /// The devices that are published, in pools of which every slice is there.
    published: BTreeMap<Key, Device>,
    /// What each device was when it was last published without a taint, and when that was.
    known: BTreeMap<Key, (Timestamp, Device)>,
    /// The uids of claims that have what Berth has given them.
    given: BTreeSet<String>,
    /// By uid of each claim that has devices, which write gave it these, counted from the first, and when.
    since: BTreeMap<String, (usize, Timestamp)>,
    writes: usize,
}

impl Claims {
    /// Takes in slices and claims as they stand after a write of this writer; what is wrong with them. A decision may rest on what was so since
    /// then.
    pub(crate) fn see(
        &mut self,
        (slices, claims): (&[Arc<Value>], &[Arc<Value>]),
        writer: Writer,
        (since, now): (Timestamp, Timestamp),
    ) -> Vec<String> {
        self.published = devices(slices);
        for (key, device) in self.published.iter().filter(|(_, device)| !device.tainted) {
            self.known.insert(key.clone(), (now, device.clone()));
        }
        self.writes += 1;
        let mut before = std::mem::take(&mut self.standing);
        let mut violations = Vec::new();
        for claim in claims.iter().map(Claim::read) {
            let had = before.remove(&claim.uid).and_then(|claim| claim.allocation);
            violations.extend(self.judge(&claim, had.as_ref(), writer, since));
            if claim.allocation.is_some() {
                self.since.entry(claim.uid.clone()).or_insert((self.writes, now));
            }
            self.standing.insert(claim.uid.clone(), claim);
        }
        self.since.retain(|uid, _| self.standing.contains_key(uid));
        violations.extend(self.overcommitted());
        let memory = now.duration_since(since);
        let words = |(claim, key, other): (&Claim, &Key, &Claim)| {
            format!("claim {} was given {key:?}, which {} has had for long", claim.name, other.name)
        };
        violations.extend(self.preceded(memory).into_iter().map(words));
        violations
    }

    /// A device of this node that the template asks for, whoever has it.
    pub(crate) fn some_device(&self, dice: &mut Dice, template: Template, node: &str) -> Option<String> {
        let (driver, size) = (template.kind().driver(), template.size());
        let is_asked = |((of, pool, _), device): &(&Key, &Device)| {
            of == driver && pool == node && size.is_none_or(|size| device.size == size)
        };
        let devices: Vec<&String> =
            self.published.iter().filter(is_asked).map(|((_, _, device), _)| device).collect();
        let at = usize::try_from(dice.below(devices.len() as u64)).unwrap();
        devices.get(at).map(|device| (*device).clone())
    }

    fn judge(
        &mut self,
        claim: &Claim,
        had: Option<&Allocation>,
        writer: Writer,
        since: Timestamp,
    ) -> Option<String> {
        let name = &claim.name;
        let Some(allocation) = &claim.allocation else {
            self.given.remove(&claim.uid);
            self.since.remove(&claim.uid);
            let user = claim.users.first()?;
            return Some(format!("claim {name} is reserved for {} and has no devices", user.name));
        };
        if !claim.kept {
            return Some(format!("claim {name} has devices and no finalizer"));
        }
        match had {
            Some(had) if had != allocation => {
                Some(format!("claim {name} had {had:?} and was given {allocation:?} without giving it back"))
            }
            None if writer == Writer::Berth => {
                self.given.insert(claim.uid.clone());
                let error = self.is_right(&claim.asked, allocation, since).err()?;
                Some(format!("claim {name} asks for {:?}: {error}", claim.asked))
            }
            _ => None,
        }
    }

    /// Whether a claim was given what it asks for, of devices that its node had.
    fn is_right(&self, asked: &Asked, allocation: &Allocation, since: Timestamp) -> Result<(), String> {
        let given = &allocation.given;
        let distinct: BTreeSet<&Key> = given.iter().map(|one| &one.key).collect();
        if given.len() != asked.count || distinct.len() != given.len() {
            return Err(format!("{given:?} is another number of devices"));
        }
        for one in given {
            let recent = |(seen, _): &&(Timestamp, Device)| {
                *seen >= since || self.published.get(&one.key).is_some_and(|now| !now.tainted)
            };
            let Some((_, device)) = self.known.get(&one.key).filter(recent) else {
                return Err(format!("{:?} was not there", one.key));
            };
            let of_driver = one.key.0 == asked.driver && one.key.1 == allocation.node;
            let of_size = asked.size.as_ref().is_none_or(|size| *size == device.size);
            if !of_driver || !of_size || one.share != device.shared || one.amounts != asked.amounts {
                return Err(format!("{one:?} is something else"));
            }
        }
        Ok(())
    }

    /// What each device has given, with the names of the claims.
    fn held(&self) -> BTreeMap<&Key, Vec<(&str, &Given)>> {
        held_by(self.standing.values())
    }

    /// Devices, capacities and counters of which Berth has given more than there is.
    fn overcommitted(&self) -> Vec<String> {
        let mut violations = Vec::new();
        let mut cards: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for (key, mut holders) in self.held() {
            let names: Vec<&str> = holders.iter().map(|(name, _)| *name).collect();
            let ours = names.iter().filter(|name| !name.starts_with(THEIRS)).count();
            if ours > 1 && !holders.iter().all(|(_, given)| given.share) {
                violations.push(format!("device {key:?} is held by the claims {names:?}"));
            }
            // What another scheduler gives beyond that is judged by who was first.
            holders.retain(|(name, _)| !name.starts_with(THEIRS));
            let names: Vec<&str> = holders.iter().map(|(name, _)| *name).collect();
            if holders.is_empty() {
                continue;
            }
            let Some((_, device)) = self.known.get(key) else { continue };
            for (capacity, there) in &device.capacity {
                let used = used_of(&holders, capacity);
                if used > *there {
                    violations
                        .push(format!("device {key:?} has {there} {capacity}, and {names:?} hold {used}"));
                }
            }
            if let Some(of) = device.of {
                let card = cards.entry((&key.0, &key.1)).or_default();
                *card = (card.0 + device.takes, of);
            }
        }
        let over = cards.into_iter().filter(|(_, (used, there))| used > there);
        let words =
            |((driver, pool), (used, there))| format!("{driver} {pool} counts {there}, and {used} are held");
        violations.extend(over.map(words));
        violations
    }

    /// The claims that Berth has given a device of which a claim of another scheduler has so much that both can't have it, with the device and that claim,
    /// which had its devices before by more than this time.
    fn preceded(&self, by: SignedDuration) -> Vec<(&Claim, &Key, &Claim)> {
        let given = self.standing.values().filter(|claim| claim.allocation.is_some());
        let (theirs, ours): (Vec<&Claim>, Vec<&Claim>) =
            given.partition(|claim| claim.name.starts_with(THEIRS));
        let mut preceded = Vec::new();
        for claim in &ours {
            let (write, at) = self.since[&claim.uid];
            let came_before = |other: &Claim| {
                let (earlier, had) = self.since[&other.uid];
                earlier < write && (by.is_zero() || had + by < at)
            };
            let counts = |other: &Claim| {
                if other.name.starts_with(THEIRS) {
                    came_before(other)
                } else {
                    self.since.get(&other.uid).is_some_and(|(earlier, _)| *earlier <= write)
                }
            };
            for other in theirs.iter().filter(|other| came_before(other)) {
                let excludes = |given: &&Given| {
                    let same = other.given().find(|had| had.key == given.key);
                    let on_one_card = other.given().any(|had| is_on_one_card(&had.key, &given.key));
                    same.is_some_and(|had| !had.share || !given.share)
                        || (same.is_some() || on_one_card) && self.is_exceeded(&given.key, counts)
                };
                preceded.extend(claim.given().filter(excludes).map(|given| (*claim, &given.key, *other)));
            }
        }
        preceded
    }

    /// Whether these claims have more of the device, or of what it takes from, than there is.
    fn is_exceeded(&self, key: &Key, counts: impl Fn(&Claim) -> bool) -> bool {
        let Some((_, device)) = self.known.get(key) else { return false };
        let held = held_by(self.standing.values().filter(|claim| counts(claim)));
        let holders = held.get(key).map(Vec::as_slice).unwrap_or_default();
        let beyond = device.capacity.iter().any(|(name, there)| used_of(holders, name) > *there);
        let on_card = held.keys().filter(|other| **other == key || is_on_one_card(other, key));
        let taken: u64 = on_card.filter_map(|key| self.known.get(*key)).map(|(_, device)| device.takes).sum();
        beyond || device.of.is_some_and(|there| taken > there)
    }

    fn called(&self, name: &str) -> Option<&Claim> {
        self.standing.values().find(|claim| claim.name == name)
    }

    /// Whether a pod waits for a claim, as this reason says, of which another claim has a device, too.
    pub(crate) fn is_given_twice(&self, reason: &str) -> bool {
        let held = self.held();
        let doubled = |given: &Given| held[&given.key].len() > 1 || self.is_exceeded(&given.key, |_| true);
        let says = |claim: &&Claim| {
            let devices = claim.given().filter(|given| doubled(given)).map(|given| &given.key.2);
            let mut texts = devices.map(|device| {
                format!(
                    "resourceclaim {:?}: device {device:?} is allocated to another claim, too",
                    claim.name
                )
            });
            texts.any(|text| text == reason)
        };
        self.standing.values().any(|claim| says(&claim))
    }

    /// What keeps kubelet from starting a pod that has just been bound.
    pub(crate) fn judge_bound(&self, pod: &Pod, groups: &Groups) -> Vec<String> {
        let fault = |name: &Option<String>| {
            let Some(claim) = name.as_ref().and_then(|name| self.called(name)) else {
                return Some(format!("{} was bound, and its claim {name:?} is not there", pod.name));
            };
            let reserved = claim.users.iter().any(|user| match user.kind {
                Consumer::Pod => user.uid == pod.uid,
                Consumer::PodGroup => groups.is_for(&user.uid, &claim.name, pod),
            });
            let there = claim.allocation.as_ref().is_some_and(|given| given.node == pod.node);
            let words = || format!("{} was bound to {} and can't use {claim:?}", pod.name, pod.node);
            (!reserved || !there).then(words)
        };
        let own = |claim: &Claim| pod.device_claims.iter().flatten().any(|name| *name == claim.name);
        let preceded = self.preceded(SignedDuration::ZERO).into_iter().filter(|(claim, ..)| own(claim));
        let preceded = preceded.map(|(claim, key, other)| {
            format!("{} was bound with {key:?} for {}, which {} had before", pod.name, claim.name, other.name)
        });
        pod.device_claims.iter().filter_map(fault).chain(preceded).collect()
    }

    /// Once faults have stopped and time has run: what is left reserved, given or undeleted, and claims that wait for devices that are
    /// there.
    pub(crate) fn judge_the_end(
        &self,
        pods: &[Arc<Pod>],
        nodes: &[Arc<Value>],
        groups: &Groups,
    ) -> Vec<String> {
        let mut violations = Vec::new();
        for claim in self.standing.values() {
            let node = claim.allocation.as_ref().map(|allocation| allocation.node.as_str());
            for User { kind, uid, name } in &claim.users {
                let user = pods.iter().find(|pod| pod.uid == *uid && pod.is_live());
                let is_used = match kind {
                    Consumer::Pod => user.map(|pod| pod.node.as_str()) == node,
                    Consumer::PodGroup => groups.is_there(uid),
                };
                if !is_used {
                    violations.push(format!("claim {} is left reserved for {name}: {user:?}", claim.name));
                }
            }
            if claim.users.is_empty() && (claim.deleting || self.given.contains(&claim.uid)) {
                violations.push(format!("nobody uses what is left of {claim:?}"));
            }
        }
        for pod in pods.iter().filter(|pod| pod.ours && pod.is_live() && pod.node.is_empty() && !pod.gated) {
            let there = nodes.iter().filter(|node| node["spec"]["unschedulable"] != true);
            if pod.kubernetes_group.is_some() {
                violations.extend(self.has_room_for_group(pod, pods, there, groups));
                continue;
            }
            for node in there.filter(|node| self.would_fit(pod, text(node, "/metadata/name"), &self.held())) {
                let node = text(node, "/metadata/name");
                violations.push(format!("{} waits though {node} has devices for its claim", pod.name));
            }
        }
        violations
    }

    /// What is wrong with a pod that waits with those of its groups, where each of these asks for one whole card by a claim of its own: there are as many
    /// free cards, on whatever nodes, as pods that have to be placed together.
    fn has_room_for_group<'n>(
        &self,
        pod: &Pod,
        pods: &[Arc<Pod>],
        nodes: impl Iterator<Item = &'n Arc<Value>>,
        groups: &Groups,
    ) -> Option<String> {
        let tree = groups.tree(pod)?;
        let mut mates =
            pods.iter().filter(|pod| pod.kubernetes_group.as_ref().is_some_and(|group| tree.contains(group)));
        let lacking = groups.lacking(pod, pods).filter(|_| mates.all(|pod| self.asks_for_a_card(pod)))?;
        let (held, whole) = (self.held(), Kind::Whole.driver());
        let nodes: BTreeSet<&str> = nodes.map(|node| text(node, "/metadata/name")).collect();
        let is_free = |(key, device): &(&Key, &Device)| {
            key.0 == whole && nodes.contains(&*key.1) && !device.tainted && !held.contains_key(*key)
        };
        let free = self.published.iter().filter(is_free).count();
        (free >= lacking).then(|| {
            format!("{} waits though its groups lack {lacking} pods and {free} cards are free", pod.name)
        })
    }

    /// Whether the pod asks for one whole card by a claim of its own, which has none unless the pod is bound, and for nothing else.
    fn asks_for_a_card(&self, pod: &Pod) -> bool {
        let [Some(name)] = &pod.device_claims[..] else { return false };
        let of_its_own = |claim: &Claim| claim.users.iter().all(|user| user.uid == pod.uid);
        self.called(name).is_some_and(|claim| {
            let Asked { driver, count, .. } = &claim.asked;
            let is_plain = *driver == Kind::Whole.driver() && *count == 1 && !claim.deleting;
            is_plain
                && claim.is_made
                && of_its_own(claim)
                && (claim.allocation.is_none() || !pod.node.is_empty())
        })
    }

    /// Whether the node would have devices for the one claim of a pod if no other pods than these had some.
    pub(crate) fn would_fit_beside(&self, pod: &Pod, node: &str, others: &[Arc<Pod>]) -> bool {
        let uids: BTreeSet<&str> = others.iter().map(|other| other.uid.as_str()).collect();
        let stays = |claim: &&Claim| {
            let stays = |user: &User| user.kind == Consumer::PodGroup || uids.contains(user.uid.as_str());
            claim.users.is_empty() || claim.users.iter().any(stays)
        };
        self.would_fit(pod, node, &held_by(self.standing.values().filter(stays)))
    }

    /// Whether the node has devices for the one claim of a pod beside these; where it has more claims, or one with devices, that is left to the fresh
    /// look.
    fn would_fit(&self, pod: &Pod, node: &str, held: &BTreeMap<&Key, Vec<(&str, &Given)>>) -> bool {
        let [Some(name)] = &pod.device_claims[..] else { return false };
        let claim = self.called(name).filter(|claim| !claim.deleting && claim.allocation.is_none());
        let Some(Claim { asked, .. }) = claim else { return false };
        let taken: u64 = held
            .keys()
            .filter(|key| key.0 == asked.driver && key.1 == node)
            .filter_map(|key| self.known.get(*key))
            .map(|(_, device)| device.takes)
            .sum();
        let free = |(key, device): &(&Key, &Device)| {
            let holders = held.get(key).map(Vec::as_slice).unwrap_or_default();
            let mut amounts = asked.amounts.iter();
            let room = amounts
                .all(|(name, more)| device.capacity.get(name) >= Some(&(used_of(holders, name) + more)));
            let whole = device.shared || holders.is_empty();
            let counted = device.of.is_none_or(|of| taken + device.takes <= of);
            !device.tainted && room && whole && counted
        };
        let here = self.published.iter().filter(|(key, _)| key.0 == asked.driver && key.1 == node);
        let sized = here.filter(|(_, one)| asked.size.as_ref().is_none_or(|size| *size == one.size));
        sized.filter(free).count() >= asked.count
    }
}

/// Whether both are parts of one card.
fn is_on_one_card(one: &Key, other: &Key) -> bool {
    one.0 == Kind::Parted.driver() && (&one.0, &one.1) == (&other.0, &other.1)
}

/// What each device has given to these claims, with their names.
fn held_by<'c>(claims: impl Iterator<Item = &'c Claim>) -> BTreeMap<&'c Key, Vec<(&'c str, &'c Given)>> {
    let mut held: BTreeMap<&Key, Vec<(&str, &Given)>> = BTreeMap::new();
    for claim in claims {
        for given in claim.given() {
            held.entry(&given.key).or_default().push((&claim.name, given));
        }
    }
    held
}

/// How much of a capacity these hold.
fn used_of(holders: &[(&str, &Given)], capacity: &str) -> u64 {
    holders.iter().filter_map(|(_, given)| given.amounts.get(capacity)).sum()
}
