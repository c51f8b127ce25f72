//! What scheduling sees of a pod and of a node: the place where dialects and scheduling meet.
//!
//! Pure translation. What can't be read is returned beside the result, for the caller to report; it costs its own object only.

mod names;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use names::{Named, Names};

use crate::{
    device::{Allocation, DeviceRequest, InitPhase, Lock, ProfileName, Remains},
    dialect::{
        Carried, Dialect, Dialects, LockForm, Problem, Registered, Registration, Unreadable,
        bounds::HardLimit,
    },
    object::{Node, Pod, ResourceQuota, quota::key_of},
    scheduling::{
        Ask, Claim, Constraints, Holding, NodeInfo, Offer, PodInfo, PodKey, QuotaInfo, QuotaKey,
        ResourceAmounts, Stage,
        footprint::Footprint,
        images::NodeImages,
        node::{NodeLock, NodeName, Signature},
        origin::{Origin, PodImages},
        plugin::{Plugin, node_affinity::NodeAffinity, node_declared_features::Feature},
        pod::{Binding, Placer},
        quota::Bound,
        score::ScoreWeights,
    },
};

/// Reads objects for the scheduler of this name.
#[derive(Clone, Debug)]
pub struct Reader {
    dialects: Dialects,
    names: Names,
    weights: ScoreWeights,
}

/// A reading, and what could not be read.
pub type Reading<T> = (T, Vec<Unreadable>);

impl Reader {
    /// A reader of these dialects.
    pub fn new(dialects: Dialects, scheduler_name: String) -> Self {
        let names = Names { own: scheduler_name, adopted: BTreeSet::new() };
        Self { dialects, names, weights: ScoreWeights::default() }
    }

    /// The same reader for a scheduler that also places share pods that name one of these schedulers, which must not run.
    #[must_use]
    pub fn adopting(self, schedulers: BTreeSet<String>) -> Self {
        Self { names: Names { adopted: schedulers, ..self.names }, ..self }
    }

    /// The same reader for a scheduler that compares nodes by these weights: what no score reads is not kept.
    #[must_use]
    pub fn weighing(self, weights: ScoreWeights) -> Self {
        Self { weights, ..self }
    }

    /// The weights by which nodes are compared.
    pub fn weights(&self) -> &ScoreWeights {
        &self.weights
    }

    /// The dialects that are read.
    pub fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// The name under which pods ask to be placed.
    pub fn scheduler_name(&self) -> &str {
        &self.names.own
    }

    /// The dialects' own resources.
    pub fn device_resources(&self) -> BTreeSet<String> {
        self.dialects.iter().flat_map(|dialect| dialect.resources()).map(str::to_owned).collect()
    }

    /// A pod.
    pub fn pod(&self, pod: &Pod) -> Reading<PodInfo> {
        let mut troubles = Vec::new();
        let resources = ResourceAmounts::of_pod(pod).unwrap_or_else(|(name, error)| {
            troubles.push(Unreadable::new(
                Problem::Quantity,
                format!("spec (resource {name})"),
                error.to_string(),
            ));
            ResourceAmounts::default()
        });
        let footprint = Footprint::of_pod(pod, resources);
        let holding = self.holding(pod, &mut troubles);
        let claim = if holding.is_some() { Claim::None } else { self.claim(pod, &footprint) };
        let info = PodInfo {
            key: key(pod),
            resource_version: pod.metadata.resource_version.clone(),
            priority: pod.spec.priority.unwrap_or(0),
            created: pod.metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH),
            nominated: nominated(pod).filter(|_| holding.is_none()),
            placer: self.placer(pod),
            stage: stage(pod),
            leaving: pod.metadata.deletion_timestamp,
            origin: self.origin(pod, &claim).map(Arc::new),
            claim,
            holding,
            footprint: Arc::new(footprint),
            told: told(pod),
        };
        (info, troubles)
    }

    /// What a pod that is to be placed is made from, as far as a score reads it.
    fn origin(&self, pod: &Pod, claim: &Claim) -> Option<Origin> {
        let Claim::Place(_) = claim else { return None };
        let (images, spread) =
            (self.weights.counts(Plugin::ImageLocality), self.weights.counts(Plugin::PodTopologySpread));
        Some(Origin {
            images: if images { PodImages::of_pod(pod) } else { PodImages::default() },
            controller: pod.metadata.controller.clone().filter(|_| spread),
        })
    }

    /// The images of a node, where a score reads them.
    fn images(&self, node: &Node) -> NodeImages {
        if !self.weights.counts(Plugin::ImageLocality) {
            return NodeImages::default();
        }
        let images = node.status.images.iter();
        NodeImages::new(
            images.flat_map(|image| image.names.iter().map(|name| (name.as_str(), image.size_bytes))),
        )
    }

    /// A node.
    pub fn node(&self, node: &Node) -> Reading<NodeInfo> {
        let mut troubles = Vec::new();
        let allocatable = ResourceAmounts::read(node.allocatable()).unwrap_or_else(|(name, error)| {
            let field = format!("status.allocatable[{name}]");
            troubles.push(Unreadable::new(Problem::Quantity, field, error.to_string()));
            ResourceAmounts::default()
        });
        let Registered { plugins, aliases } = Registered::read(&self.dialects, node);
        let offers: Vec<_> = plugins.into_iter().map(|plugin| self.offer(plugin, &mut troubles)).collect();
        let offering =
            |dialect: &&Arc<dyn Dialect>| offers.iter().any(|offer| offer.profile == *dialect.name());
        let expiries = self.dialects.iter().filter(offering);
        let expiries =
            expiries.filter_map(|dialect| Some((dialect.name().clone(), dialect.expiry(node)?))).collect();
        let locks = self.dialects.iter().filter_map(|dialect| {
            let spec = dialect.lock()?;
            let state = spec.read(node);
            if let Lock::Malformed { value } = &state {
                let message =
                    format!("`{value}` says neither since when nor by whom it is held: it is taken over");
                let trouble = Unreadable::annotation(Problem::Lock, &spec.key, message);
                // Dialects may have one lock in common.
                if !troubles.contains(&trouble) {
                    troubles.push(trouble);
                }
            }
            let signature = match spec.form {
                LockForm::Comma | LockForm::Underscore => Signature::Pod,
                LockForm::Bare => Signature::Time,
            };
            Some(NodeLock { profile: dialect.name().clone(), state, signature, expiry: spec.expiry })
        });
        let locks = locks.collect();
        let info = NodeInfo {
            name: node.metadata.name.as_str().into(),
            uid: node.metadata.uid.as_str().into(),
            resource_version: node.metadata.resource_version.clone(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: node.spec.taints.clone(),
            cordoned: node.spec.unschedulable,
            allocatable,
            images: self.images(node),
            features: node.status.declared_features.iter().cloned().collect(),
            offers,
            aliases,
            expiries,
            locks,
        };
        (info, troubles)
    }

    fn offer(&self, plugin: Registration, troubles: &mut Vec<Unreadable>) -> Offer {
        let inventory = plugin.inventory.map_err(|trouble| troubles.push(trouble)).ok();
        let dialect = self.dialects.named(&plugin.profile);
        let core_unit = dialect.map(|dialect| dialect.profile().core_budget.unit()).unwrap_or_default();
        Offer { core_unit, profile: plugin.profile, inventory }
    }

    fn placer(&self, pod: &Pod) -> Placer {
        match self.names.of(pod) {
            Named::Berth => Placer::Berth,
            // A scheduler such as Volcano's also places pods that request no share.
            Named::Adopted if !self.dialects.asked(pod).is_empty() => Placer::Berth,
            Named::Adopted | Named::Another => Placer::Another,
        }
    }

    /// A quota, as far as it bounds shares of these dialects.
    pub fn quota(&self, quota: &ResourceQuota) -> Reading<QuotaInfo> {
        let (bounds, troubles) = self.dialects.bounds(quota);
        let bounds = bounds.into_iter().map(|HardLimit { profile, counted, units }| Bound {
            profile: profile.clone(),
            dimension: counted.dimension,
            key: key_of(counted.resource).into(),
            hard: units,
            unit: counted.unit,
        });
        (QuotaInfo { key: quota_key(quota), bounds: bounds.collect() }, troubles)
    }

    /// What is to be done for a pod that holds nothing.
    fn claim(&self, pod: &Pod, footprint: &Footprint) -> Claim {
        let ours = self.placer(pod) == Placer::Berth;
        let waits = pod.metadata.deletion_timestamp.is_some() || !pod.spec.scheduling_gates.is_empty();
        if !ours || waits || pod.is_terminal() {
            return Claim::None;
        }
        match self.dialects.request(pod) {
            Ok(Some((dialect, request))) => Claim::Place(Arc::new(Ask {
                devices: vec![DeviceRequest { profile: dialect.profile().clone(), request }],
                resources: footprint.resources.clone(),
                constraints: constraints(pod, footprint),
            })),
            Ok(None) if self.names.of(pod) == Named::Adopted => Claim::None,
            Ok(None) => Claim::Unreadable(self.no_share(pod)),
            Err(troubles) => {
                let word = |trouble: &Unreadable| format!("{trouble} ({})", trouble.problem);
                let troubles: Vec<_> = troubles.iter().map(word).collect();
                Claim::Unreadable(format!("Pod's GPU request can't be read: {}", troubles.join("; ")))
            }
        }
    }

    /// Why a pod that names this scheduler is not placed although it requests no share, and what to change.
    fn no_share(&self, pod: &Pod) -> String {
        let names = self.dialects.asked(pod).into_iter().flat_map(|dialect| dialect.resources());
        let names: BTreeSet<&str> = names.collect();
        let stated = pod.containers().find_map(|(path, container)| {
            let resources = &container.resources;
            let name = resources.names().find(|name| names.contains(name))?;
            Some(format!(" ({path}.resources: `{name}: {}`)", resources.limit_or_request(name)?))
        });
        format!(
            "Pod names scheduler {} but requests no GPU share{}; create it again with a share, or without schedulerName",
            self.names.own,
            stated.unwrap_or_default()
        )
    }

    /// What the pod holds: where it is bound, or where another scheduler means it to be.
    fn holding(&self, pod: &Pod, troubles: &mut Vec<Unreadable>) -> Option<Holding> {
        let bound = pod.spec.node_name.as_deref().filter(|node| !node.is_empty());
        let ours = self.placer(pod) == Placer::Berth;
        if bound.is_none() && ours {
            return None;
        }
        let (mut allocations, meant_for) = self.allocations(pod, troubles);
        let (node, binding) = match (bound, meant_for) {
            (Some(node), _) => (node.to_owned(), Binding::Bound),
            (None, Some(node)) => {
                // Until the pod is bound, its node has given it nothing.
                for allocation in &mut allocations {
                    allocation.unread = None;
                }
                (node, Binding::Intended)
            }
            (None, None) => return None,
        };
        Some(Holding {
            node: node.as_str().into(),
            binding,
            init: if pod.init_is_done() { InitPhase::Done } else { InitPhase::Ahead },
            takeable: self.takeable(pod),
            allocations,
        })
    }

    /// The dialects whose agents may serve another pod with what this one carries, once it is dead.
    fn takeable(&self, pod: &Pod) -> Vec<ProfileName> {
        let takeable = self.dialects.iter().filter(|dialect| dialect.remains(pod) == Remains::Takeable);
        takeable.map(|dialect| dialect.name().clone()).collect()
    }

    /// What the pod carries, one allocation for each dialect, since HAMi's scheduler gives a pod cards of several vendors; and the node that
    /// the first of them names.
    fn allocations(&self, pod: &Pod, troubles: &mut Vec<Unreadable>) -> (Vec<Allocation>, Option<String>) {
        let (mut allocations, mut node) = (Vec::new(), None);
        for dialect in self.dialects.iter() {
            let Some((carried, unread)) = self.carried_in(dialect, pod, troubles) else { continue };
            node = node.or(carried.node);
            allocations.push(Allocation {
                profile: dialect.name().clone(),
                assignment: Arc::new(carried.assignment),
                unread,
                answer: dialect.answer(pod),
            });
        }
        (allocations, node)
    }

    /// What the pod carries in one dialect, and why some of its cards are unknown. A pod that asks for none of its cards was given none, whatever it is annotated with: only
    /// of one that does a card may be missing.
    fn carried_in(
        &self,
        dialect: &Arc<dyn Dialect>,
        pod: &Pod,
        troubles: &mut Vec<Unreadable>,
    ) -> Option<(Carried, Option<String>)> {
        let (mut carried, unread) = match dialect.assignment(pod) {
            Ok(carried) => {
                let mut carried = carried?;
                let unread = std::mem::take(&mut carried.unread);
                (Some(carried), unread)
            }
            Err(trouble) => (None, vec![trouble]),
        };
        let missing = unread.iter().find(|trouble| trouble.problem == Problem::Card);
        let missing =
            missing.filter(|_| self.dialects.are_asked(pod, dialect.mode())).map(ToString::to_string);
        if missing.is_some() {
            carried.get_or_insert_default();
        }
        // Dialects may have one annotation in common.
        let new: Vec<_> = unread.into_iter().filter(|trouble| !troubles.contains(trouble)).collect();
        troubles.extend(new);
        Some((carried?, missing))
    }
}

/// How a pod is named.
pub fn key(pod: &Pod) -> PodKey {
    PodKey {
        uid: pod.metadata.uid.as_str().into(),
        namespace: pod.metadata.namespace.as_str().into(),
        name: pod.metadata.name.as_str().into(),
    }
}

/// How a quota is named.
pub fn quota_key(quota: &ResourceQuota) -> QuotaKey {
    QuotaKey {
        namespace: quota.metadata.namespace.as_str().into(),
        name: quota.metadata.name.as_str().into(),
    }
}

/// The node that is kept for a pod that has not ended.
fn nominated(pod: &Pod) -> Option<NodeName> {
    let node = pod.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())?;
    (!pod.is_terminal()).then(|| node.into())
}

fn stage(pod: &Pod) -> Stage {
    match pod.status.phase.as_str() {
        "Succeeded" | "Failed" => Stage::Ended,
        "" | "Pending" => Stage::Pending,
        _ => Stage::Running,
    }
}

fn told(pod: &Pod) -> Option<String> {
    let scheduled = pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled");
    let unschedulable =
        scheduled.filter(|condition| condition.status == "False" && condition.reason == "Unschedulable");
    unschedulable.map(|condition| condition.message.clone())
}

fn constraints(pod: &Pod, footprint: &Footprint) -> Constraints {
    let affinity = pod.spec.affinity.node_affinity.clone().unwrap_or_default();
    Constraints {
        affinity: NodeAffinity {
            selector: pod.spec.node_selector.clone().unwrap_or_default(),
            required: affinity.required,
            preferred: affinity.preferred,
        },
        tolerations: pod.spec.tolerations.clone(),
        exclusive: footprint.exclusive.clone(),
        features: Feature::needed(pod),
        unserved: pod.spec.unserved_constraints().map(str::to_owned).collect(),
    }
}
