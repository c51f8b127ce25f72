//! What must hold of Kubernetes' PodGroups and CompositePodGroups, read from these objects and from pods by the API's own rules: no group is begun
//! before enough of its pods are there, none is left bound in part, the pods of one share their rack, and none waits that has room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::record::{Pod, text};

/// The API group of both kinds.
pub(crate) const API: &str = "scheduling.k8s.io";
/// The label of a node that names its rack.
pub(crate) const RACK: &str = "example.com/rack";

/// A decision may rest on pods and groups that are gone for so long.
const MEMORY: SignedDuration = SignedDuration::from_mins(2);
/// So long after it began to lead has a Berth read all pods.
const SYNC: SignedDuration = SignedDuration::from_mins(1);
/// So many levels a tree has at most.
const LEVELS: usize = 4;

/// A kind of groups.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    Leaf,
    Composite,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Leaf, Self::Composite];

    /// Its version, its name and that in paths.
    pub(crate) fn names(self) -> [&'static str; 3] {
        match self {
            Self::Leaf => ["v1beta1", "PodGroup", "podgroups"],
            Self::Composite => ["v1alpha3", "CompositePodGroup", "compositepodgroups"],
        }
    }
}

/// A group, by its kind and name.
type Key = (Kind, String);

/// What a group says.
#[derive(Clone, Debug)]
struct Group {
    uid: String,
    /// Pods of a PodGroup, groups of a CompositePodGroup.
    least: usize,
    parent: Option<String>,
    /// The label that the nodes of its pods share.
    rack: Option<String>,
    /// The claims of its pods.
    claims: Vec<String>,
    /// How the names of claims begin that are made for it.
    made: Vec<String>,
}

impl Group {
    fn read(kind: Kind, object: &Value) -> Self {
        let field = match kind {
            Kind::Leaf => "minCount",
            Kind::Composite => "minGroupCount",
        };
        let spec = &object["spec"];
        let least = spec["schedulingPolicy"]["gang"][field].as_u64().unwrap_or(1);
        let claims = || spec["resourceClaims"].as_array().into_iter().flatten();
        let is_made = |claim: &&Value| claim.get("resourceClaimTemplateName").is_some();
        let prefix = |claim: &Value| format!("{}-{}-", text(object, "/metadata/name"), text(claim, "/name"));
        Self {
            uid: text(object, "/metadata/uid").to_owned(),
            least: usize::try_from(least).unwrap(),
            parent: spec["parentCompositePodGroupName"].as_str().map(str::to_owned),
            rack: spec["schedulingConstraints"]["topology"][0]["key"].as_str().map(str::to_owned),
            claims: claims()
                .filter(|claim| !is_made(claim))
                .map(|claim| text(claim, "/resourceClaimName").to_owned())
                .collect(),
            made: claims().filter(is_made).map(prefix).collect(),
        }
    }
}

/// How many pods each PodGroup has, by its name.
type Counts<'a> = BTreeMap<&'a str, usize>;

/// Groups as they stand, or as they stood of late.
#[derive(Debug, Default)]
struct Forest(BTreeMap<Key, Group>);

impl Forest {
    /// The group and those that it is in, the root last; `None`: one of them is not there, or there are too many.
    fn chain(&self, leaf: &str) -> Option<Vec<Key>> {
        let mut chain = vec![(Kind::Leaf, leaf.to_owned())];
        loop {
            let group = self.0.get(chain.last().unwrap())?;
            let Some(parent) = &group.parent else { return Some(chain) };
            chain.push((Kind::Composite, parent.clone()));
            if chain.len() > LEVELS {
                return None;
            }
        }
    }

    fn children<'a>(&'a self, of: &'a Key) -> impl Iterator<Item = &'a Key> {
        let is_child = |group: &Group| of.0 == Kind::Composite && group.parent.as_ref() == Some(&of.1);
        self.0.iter().filter(move |(_, group)| is_child(group)).map(|(key, _)| key)
    }

    /// The PodGroups below a group, or itself. Parents form no circle in any run.
    fn leaves<'a>(&'a self, of: &'a Key) -> Vec<&'a str> {
        match of.0 {
            Kind::Leaf => vec![&of.1],
            Kind::Composite => self.children(of).flat_map(|child| self.leaves(child)).collect(),
        }
    }

    /// Whether the group has as many pods, or whole groups, as it asks for.
    fn is_whole(&self, key: &Key, counts: &Counts<'_>) -> bool {
        self.lacks(key, counts, &Counts::new()) == Some(0)
    }

    /// How many more pods are placed at least for the group to be whole, where each PodGroup has so many that are placed and so many that wait; `None`:
    /// there are too few.
    fn lacks(&self, key: &Key, placed: &Counts<'_>, waiting: &Counts<'_>) -> Option<usize> {
        let group = self.0.get(key)?;
        if key.0 == Kind::Leaf {
            let of = |counts: &Counts<'_>| counts.get(&*key.1).copied().unwrap_or_default();
            let lacking = group.least.saturating_sub(of(placed));
            return (lacking <= of(waiting)).then_some(lacking);
        }
        let mut lacking: Vec<usize> =
            self.children(key).filter_map(|child| self.lacks(child, placed, waiting)).collect();
        lacking.sort_unstable();
        (lacking.len() >= group.least).then(|| lacking.iter().take(group.least).sum())
    }
}

/// PodGroups and CompositePodGroups, as the API server has shown them.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    now: Forest,
    /// Those that are there, and those that were of late, with when.
    known: BTreeMap<Key, (Timestamp, Group)>,
    /// The PodGroup of each pod that lives or did of late, by uid, with when.
    members: BTreeMap<String, (Timestamp, String)>,
    /// The groups of which a pod was bound.
    begun: BTreeSet<Key>,
    /// Those that were bound as a whole at one time.
    complete: BTreeSet<Key>,
    /// Since when pods are seen to run, by uid.
    running: BTreeMap<String, Timestamp>,
    /// Which Berth leads, and since when.
    leader: (String, Option<Timestamp>),
}

fn is_bound(pod: &Pod) -> bool {
    !pod.node.is_empty()
}

/// How many of these pods each PodGroup has.
fn count<'a>(pods: impl Iterator<Item = &'a Pod>) -> Counts<'a> {
    let mut counts = Counts::new();
    for group in pods.filter_map(|pod| pod.kubernetes_group.as_deref()) {
        *counts.entry(group).or_default() += 1;
    }
    counts
}

fn live(pods: &[Arc<Pod>]) -> impl Iterator<Item = &Pod> {
    pods.iter().map(AsRef::as_ref).filter(|pod| pod.is_live())
}

fn name((kind, name): &Key) -> String {
    format!("{} {name}", kind.names()[1])
}

impl Groups {
    /// Takes in which Berth holds the Lease; none: nobody does.
    pub(crate) fn see_leader(&mut self, holder: &str, now: Timestamp) {
        if !holder.is_empty() && self.leader.0 != holder {
            self.leader = (holder.to_owned(), Some(now));
        }
    }

    /// Takes in all pods, groups by their kinds and nodes as they are; what is wrong with the pods that have been bound.
    pub(crate) fn see(
        &mut self,
        pods: &[Arc<Pod>],
        groups: &[(Kind, Vec<Arc<Value>>)],
        nodes: &[Arc<Value>],
        now: Timestamp,
    ) -> Vec<String> {
        let read = |kind: Kind, object: &Arc<Value>| {
            ((kind, text(object, "/metadata/name").to_owned()), Group::read(kind, object))
        };
        let all = groups.iter().flat_map(|(kind, objects)| objects.iter().map(|object| read(*kind, object)));
        self.now = Forest(all.collect());
        self.known.extend(self.now.0.iter().map(|(key, group)| (key.clone(), (now, group.clone()))));
        self.known.retain(|_, (seen, _)| *seen + MEMORY >= now);
        for pod in live(pods) {
            if let Some(group) = &pod.kubernetes_group {
                self.members.insert(pod.uid.clone(), (now, group.clone()));
            }
        }
        self.members.retain(|_, (seen, _)| *seen + MEMORY >= now);
        if self.members.is_empty() {
            return Vec::new();
        }
        for pod in live(pods).filter(|pod| pod.kubernetes_group.is_some() && pod.phase == "Running") {
            self.running.entry(pod.uid.clone()).or_insert(now);
        }
        let bound = count(live(pods).filter(|pod| is_bound(pod)));
        let mut violations = self.judge_begun(&bound);
        for key in self.now.0.keys().filter(|key| self.now.is_whole(key, &bound)) {
            self.complete.insert(key.clone());
        }
        let has_pods = |key: &Key| self.now.leaves(key).iter().any(|leaf| bound.contains_key(leaf));
        let over: Vec<Key> = self.begun.union(&self.complete).filter(|key| !has_pods(key)).cloned().collect();
        for key in over {
            self.begun.remove(&key);
            self.complete.remove(&key);
        }
        violations.extend(self.judge_racks(pods, nodes));
        violations
    }

    /// The groups of which the first pod has been bound although too few are there, or were of late.
    fn judge_begun(&mut self, bound: &Counts<'_>) -> Vec<String> {
        let recent =
            Forest(self.known.iter().map(|(key, (_, group))| (key.clone(), group.clone())).collect());
        let mut there = Counts::new();
        for (_, group) in self.members.values() {
            *there.entry(group).or_default() += 1;
        }
        let mut violations = Vec::new();
        for leaf in bound.keys() {
            for key in recent.chain(leaf).into_iter().flatten() {
                if self.begun.insert(key.clone()) && !recent.is_whole(&key, &there) {
                    violations.push(format!("{} was begun with too few pods: {there:?}", name(&key)));
                }
            }
        }
        violations
    }

    /// The groups whose pods are on several racks, though they are to share one.
    fn judge_racks(&self, pods: &[Arc<Pod>], nodes: &[Arc<Value>]) -> Vec<String> {
        let mut violations = Vec::new();
        for (key, group) in &self.now.0 {
            let Some(label) = &group.rack else { continue };
            let leaves = self.now.leaves(key);
            let is_below =
                |pod: &&Pod| pod.kubernetes_group.as_deref().is_some_and(|group| leaves.contains(&group));
            let of = |pod: &Pod| {
                let node = nodes.iter().find(|node| text(node, "/metadata/name") == pod.node)?;
                Some(node["metadata"]["labels"][label].clone().to_string())
            };
            let racks: BTreeSet<String> =
                live(pods).filter(|pod| is_bound(pod)).filter(is_below).filter_map(of).collect();
            if racks.len() > 1 {
                violations.push(format!("the pods of {} are on {racks:?}", name(key)));
            }
        }
        violations
    }

    /// Whether a claim that is reserved for the PodGroup of this uid is so for the pod: it is in that group, which has this claim.
    pub(crate) fn is_for(&self, uid: &str, claim: &str, pod: &Pod) -> bool {
        let key = pod.kubernetes_group.as_ref().map(|group| (Kind::Leaf, group.clone()));
        let known = key.and_then(|key| self.known.get(&key));
        known.is_some_and(|(_, group)| {
            let is_made = group.made.iter().any(|prefix| claim.starts_with(prefix));
            group.uid == uid && (is_made || group.claims.iter().any(|own| own == claim))
        })
    }

    /// Whether there is a PodGroup of this uid.
    pub(crate) fn is_there(&self, uid: &str) -> bool {
        self.now.0.iter().any(|((kind, _), group)| *kind == Kind::Leaf && group.uid == uid)
    }

    /// Whether a pod of the group had started before the Berth that leads knew of it: that can't tell whether the group was whole before, and leaves its
    /// pods where they are.
    fn was_found_started(&self, key: &Key, pods: &[Arc<Pod>]) -> bool {
        let leaves = self.now.leaves(key);
        let is_below =
            |pod: &&Pod| pod.kubernetes_group.as_deref().is_some_and(|group| leaves.contains(&group));
        let started = live(pods).filter(is_below).filter_map(|pod| self.running.get(&pod.uid)).min();
        let known = self.leader.1.map(|since| since + SYNC);
        started.zip(known).is_some_and(|(started, known)| *started <= known)
    }

    /// Once all is calm: the groups that are bound in part, were never whole, and have enough pods to be.
    pub(crate) fn judge_the_end(&self, pods: &[Arc<Pod>]) -> Vec<String> {
        let (bound, all) = (count(live(pods).filter(|pod| is_bound(pod))), count(live(pods)));
        let chains = bound.keys().filter_map(|leaf| self.now.chain(leaf));
        let keys: BTreeSet<Key> = chains.flatten().collect();
        let is_partial = |key: &&Key| {
            let is_left = !self.complete.contains(*key) && !self.now.is_whole(key, &bound);
            is_left && self.now.is_whole(key, &all) && !self.was_found_started(key, pods)
        };
        let words = |key: &Key| {
            let of = |counts: &Counts<'_>| -> Vec<String> {
                let leaves = self.now.leaves(key).into_iter();
                leaves.filter_map(|leaf| Some(format!("{leaf} {}", counts.get(leaf)?))).collect()
            };
            format!("{} is left bound in part: {:?} of {:?}", name(key), of(&bound), of(&all))
        };
        keys.iter().filter(is_partial).map(words).collect()
    }

    /// The PodGroups of the tree that the pod's is in; `None`: a group that it is in is not there.
    pub(crate) fn tree(&self, pod: &Pod) -> Option<BTreeSet<String>> {
        let root = self.now.chain(pod.kubernetes_group.as_deref()?)?.pop()?;
        Some(self.now.leaves(&root).into_iter().map(str::to_owned).collect())
    }

    /// How many pods have to be placed together with this one at least, itself included, where it waits: those that its groups lack, or none beside it.
    /// `None`: it has to wait for pods or groups that are not there, or its groups share racks.
    pub(crate) fn lacking(&self, pod: &Pod, pods: &[Arc<Pod>]) -> Option<usize> {
        let chain = self.now.chain(pod.kubernetes_group.as_deref()?)?;
        if chain.iter().any(|key| self.now.0[key].rack.is_some()) {
            return None;
        }
        let placed = count(live(pods).filter(|pod| is_bound(pod)));
        let waits = |pod: &&Pod| pod.node.is_empty() && !pod.terminating && !pod.gated;
        let waiting = count(live(pods).filter(waits));
        let root = chain.last().unwrap();
        if !self.now.is_whole(root, &placed) {
            return self.now.lacks(root, &placed, &waiting);
        }
        // What is lacking of the groups between is left to the fresh look.
        let between = &chain[1..];
        if !between.iter().all(|key| self.now.is_whole(key, &placed)) {
            return None;
        }
        self.now.lacks(&chain[0], &placed, &waiting).map(|lacking| lacking.max(1))
    }
}
