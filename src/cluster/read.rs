//! Reads pods and nodes into the scheduler's form: the one place where dialects and scheduling meet.
//!
//! Pure translation. Parts that can't be read are returned beside the result, for the caller to report; they affect no other object.

pub mod by_class;
pub mod group;
mod holding;
mod movable;
mod names;
mod pod;
pub mod reservation;
mod scope;
pub mod shared;
pub mod time_division;
pub(super) mod unread;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use names::{Named, Names};
pub(in crate::cluster) use pod::{PREEMPTION_BY_SCHEDULER, ROOM_KEPT, room_reason, stated_room};
use pod::{constraints, importance, nominated, stage, told, unconstrained};
use scope::{ClaimingPods, Division, ReadPurpose};

use crate::{
    device::{CoreUnit, Inventory, Lock, LockName, NodePolicy, ProfileRequest},
    dialect::{
        Dialect, Dialects, LockForm, PluginRegistration, Problem, Registered, Unreadable, bounds::HardLimit,
        koordinator,
    },
    object::{ConfigMap, Device, Node, Pod, ResourceQuota, quota::key_of},
    scheduling::{
        Ask, Claim, Lifetime, NodeInfo, Offer, PodGroups, PodInfo, PodKey, QuotaInfo, QuotaKey,
        ResourceAmounts, WaitingPodStatus,
        model::{
            extended_resources::{ShareRequests, StatedClaim},
            footprint::Footprint,
            gang::GroupApi,
            images::NodeImages,
            kube_scheduler::KubeScheduler,
            label_set::LabelSet,
            name::full_name,
            node::{NodeLock, OfferedDevices, RequiredLocks, Signature},
            origin::{Origin, PodImages},
            pod::Placer,
            pod_shape::CardShape,
            resources::DeclaredResources,
        },
        plugin::{Plugin, score::weights::ScoreWeights},
        world::{object::Object, quota::Bound},
    },
};

/// Reads objects for the scheduler of this name.
#[derive(Clone, Debug)]
pub struct Reader {
    dialects: Dialects,
    names: Names,
    weights: ScoreWeights,
    followed: KubeScheduler,
    claims: ClaimingPods,
    judged: ReadPurpose,
    division: Division,
    pod_policy: NodePolicy,
}

/// A result, with the parts that could not be read.
pub type Reading<T> = (T, Vec<Unreadable>);

impl Reader {
    /// A reader for these dialects.
    pub fn new(dialects: Dialects, scheduler_name: String) -> Self {
        let names = Names { own: scheduler_name, adopted: BTreeSet::new() };
        Self {
            dialects,
            names,
            weights: ScoreWeights::default(),
            followed: KubeScheduler::default(),
            claims: ClaimingPods::Own,
            judged: ReadPurpose::Everything,
            division: Division::Off,
            pod_policy: NodePolicy::Indifferent,
        }
    }

    /// The same reader for a scheduler that also places share pods that name one of these schedulers, which must not run.
    #[must_use]
    pub fn adopting(self, schedulers: BTreeSet<String>) -> Self {
        Self { names: Names { adopted: schedulers, ..self.names }, ..self }
    }

    /// The same reader for a scheduler with these weights: fields that no score reads are not kept.
    #[must_use]
    pub fn weighing(self, weights: ScoreWeights) -> Self {
        Self { weights, ..self }
    }

    /// The same reader for a scheduler that follows this release of kube-scheduler.
    #[must_use]
    pub fn following(self, followed: KubeScheduler) -> Self {
        Self { followed, ..self }
    }

    /// The same reader for a scheduler that divides nodes by time.
    #[must_use]
    pub fn dividing_time(self) -> Self {
        Self { division: Division::On, ..self }
    }

    /// The same reader for a scheduler that chooses nodes by this for pods without a share.
    #[must_use]
    pub fn placing_pods(self, pod_policy: NodePolicy) -> Self {
        Self { pod_policy, ..self }
    }

    /// Whether nodes are divided by time.
    pub fn divides_time(&self) -> bool {
        self.division == Division::On
    }

    /// The same reader for a cluster whose dialects are these.
    #[must_use]
    pub fn speaking(self, dialects: Dialects) -> Self {
        Self { dialects, ..self }
    }

    /// The same reader for a shadow: every pod that requests a share is read as one that wants a place, whichever scheduler it names.
    #[must_use]
    pub fn shadowing(self) -> Self {
        Self { claims: ClaimingPods::Every, ..self }
    }

    /// The same reader for an extender of kube-scheduler: of a pod that waits only what decides on its cards is read, since kube-scheduler
    /// has decided the rest.
    #[must_use]
    pub fn judging_cards(self) -> Self {
        Self { judged: ReadPurpose::Cards, ..self }
    }

    /// The weights by which nodes are compared.
    pub fn weights(&self) -> &ScoreWeights {
        &self.weights
    }

    /// The dialects that are read.
    pub fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// The scheduler's name, as in `spec.schedulerName`.
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
        let resources = ResourceAmounts::of_pod(pod, self.followed).unwrap_or_else(|(name, error)| {
            troubles.push(Unreadable::new(
                Problem::Quantity,
                format!("spec (resource {name})"),
                error.to_string(),
            ));
            ResourceAmounts::default()
        });
        let too_many = pod.spec.check_constraints().err().filter(|_| self.judged == ReadPurpose::Everything);
        let mut footprint = pod::footprint(pod, resources, too_many);
        footprint.reservation = reservation::of_pod(&self.dialects, pod).map(Arc::new);
        let holding = self.holding(pod, &mut troubles);
        if holding.is_none() && self.judged == ReadPurpose::Cards && self.placer(pod) == Placer::Berth {
            let Footprint { namespace, labels, reservation, .. } = footprint;
            footprint = Footprint { namespace, labels, reservation, ..Footprint::default() };
        }
        let stated = |status| StatedClaim { status, lasts: self.followed.keeps_stated_claim() };
        let served = pod.status.extended_resource_claim_status.clone().map(stated);
        if holding.is_some() {
            // A pod that is bound counts among those that may come as it did while it waited.
            let asked = self.asked(pod).ok().flatten();
            footprint.cards = asked.and_then(|(device, _)| CardShape::of(&[device])).map(Arc::new);
        }
        let claim = if holding.is_some() {
            footprint = self.bound(pod, footprint);
            Claim::None
        } else {
            pod::unless_too_many(self.claim(pod, &mut footprint), too_many)
        };
        let gang = group::member(pod).filter(|_| self.judged == ReadPurpose::Everything);
        let job = self.divides_time().then(|| time_division::member(pod, self.placer(pod)));
        let of_kubernetes = gang.as_ref().filter(|member| member.gang.api == GroupApi::Kubernetes);
        let group = of_kubernetes.map(|member| member.gang.group.clone());
        let info = PodInfo {
            key: key(pod),
            resource_version: pod.metadata.resource_version.as_str().into(),
            importance: importance(pod, group),
            lifetime: Lifetime {
                created: pod.metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH),
                leaving: pod.metadata.deletion_timestamp.map(Box::new),
            },
            status: Arc::new(WaitingPodStatus {
                nominated: nominated(pod).filter(|_| holding.is_none()),
                served,
                taken: pod.status.node_allocatable_resource_claim_statuses.clone(),
                told: told(pod),
                room: stated_room(pod).filter(|_| holding.is_none()),
            }),
            placer: self.placer(pod),
            stage: stage(pod),
            origin: self.origin(pod, &claim).map(Arc::new),
            claim,
            holding,
            footprint: Arc::new(footprint),
            groups: PodGroups::of(gang, job),
        };
        (info, troubles)
    }

    /// What a pod that is to be placed is made from, as far as a score or a shadow reads it.
    fn origin(&self, pod: &Pod, claim: &Claim) -> Option<Origin> {
        let shadows = self.claims == ClaimingPods::Every;
        match claim {
            Claim::Place(_) => {}
            Claim::Unreadable(_) if shadows => {}
            Claim::Unreadable(_) | Claim::None => return None,
        }
        let (images, spread) =
            (self.weights.counts(Plugin::ImageLocality), self.weights.counts(Plugin::PodTopologySpread));
        Some(Origin {
            images: if images { PodImages::of_pod(pod) } else { PodImages::default() },
            controller: pod.metadata.controller.clone().filter(|_| spread || shadows),
        })
    }

    /// The images of a node, if a score reads them.
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
        let mut offers: Vec<_> =
            plugins.into_iter().map(|plugin| self.offer(plugin, &mut troubles)).collect();
        let offering =
            |dialect: &&Arc<dyn Dialect>| offers.iter().any(|offer| offer.profile == *dialect.name());
        let expiries = self.dialects.iter().filter(offering);
        let expiries =
            expiries.filter_map(|dialect| Some((dialect.name().clone(), dialect.expiry(node)?))).collect();
        let specs =
            self.dialects.iter().flat_map(|dialect| dialect.locks().iter().map(move |spec| (dialect, spec)));
        let locks = specs.map(|(dialect, spec)| {
            let state = spec.read(node);
            if let Lock::Malformed { value } = &state {
                let message = format!(
                    "`{value}` has neither a time nor a holder that can be read; Berth takes the lock over"
                );
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
            let name = LockName { profile: dialect.name().clone(), key: spec.key.as_str().into() };
            (dialect, NodeLock { name, state, signature, expiry: spec.expiry, need: spec.need })
        });
        let (of_devices, locks): (Vec<_>, Vec<_>) =
            locks.partition(|(dialect, _)| dialect.locks_by_devices());
        let [mut needed, mut of_vendors] =
            [locks, of_devices].map(|locks| locks.into_iter().map(|(_, lock)| lock).collect::<Vec<_>>());
        // There are many nodes: their lists take as much memory as they have items.
        offers.shrink_to_fit();
        needed.shrink_to_fit();
        of_vendors.shrink_to_fit();
        let info = NodeInfo {
            name: node.metadata.name.as_str().into(),
            uid: node.metadata.uid.as_str().into(),
            resource_version: node.metadata.resource_version.clone(),
            labels: node.metadata.labels.as_ref().map(LabelSet::from).unwrap_or_default(),
            taints: node.spec.taints.clone(),
            cordoned: node.spec.unschedulable,
            allocatable,
            images: self.images(node),
            features: node.status.declared_features.iter().cloned().collect(),
            devices: OfferedDevices {
                traits: koordinator::node::traits(&node.metadata),
                offers,
                aliases,
                expiries,
                ..OfferedDevices::default()
            },
            locks: RequiredLocks { needed, of_vendors },
        };
        (info, troubles)
    }

    fn offer(&self, plugin: PluginRegistration, troubles: &mut Vec<Unreadable>) -> Offer {
        let inventory = plugin.inventory.map(Arc::new).map_err(|trouble| troubles.push(trouble)).ok();
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

    /// The limits of a quota on shares of these dialects.
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

    /// What the pod asks of cards and devices, and the same of a class of devices.
    fn asked(&self, pod: &Pod) -> Result<Option<(ProfileRequest, Option<ShareRequests>)>, Vec<Unreadable>> {
        let Some((dialect, request)) = self.dialects.request(pod)? else { return Ok(None) };
        let joint = dialect.joint_request(pod)?.map(Arc::new);
        let device = ProfileRequest { profile: dialect.profile().clone(), request, joint, by_class: None };
        let shares = self.by_class(&**dialect, pod, &device);
        Ok(Some((device, shares)))
    }

    /// The claim of a pod that holds nothing.
    fn claim(&self, pod: &Pod, footprint: &mut Footprint) -> Claim {
        let ours = self.placer(pod) == Placer::Berth;
        let waits = pod.metadata.deletion_timestamp.is_some() || !pod.spec.scheduling_gates.is_empty();
        if !(ours || self.claims == ClaimingPods::Every) || waits || pod.is_terminal() {
            return Claim::None;
        }
        match self.asked(pod) {
            Ok(Some((device, shares))) => {
                let by_class;
                (*footprint, by_class) = std::mem::take(footprint).sharing(shares);
                footprint.cards = CardShape::of(std::slice::from_ref(&device)).map(Arc::new);
                self.place(pod, footprint, vec![ProfileRequest { by_class, ..device }])
            }
            Ok(None) if self.names.of(pod) != Named::Berth => Claim::None,
            Ok(None) if self.judged == ReadPurpose::Everything || self.asks_for_claims(pod, footprint) => {
                self.place(pod, footprint, Vec::new())
            }
            Ok(None) => Claim::unreadable("Pod requests no GPU share, so kube-scheduler binds it".to_owned()),
            Err(troubles) => {
                let word = |trouble: &Unreadable| format!("{trouble} ({})", trouble.problem);
                let troubles: Vec<_> = troubles.iter().map(word).collect();
                Claim::unreadable(format!("Pod's GPU request can't be read: {}", troubles.join("; ")))
            }
        }
    }

    /// Whether a pod without a share asks for devices by claim: its own, or extended resources for which a class may stand.
    fn asks_for_claims(&self, pod: &Pod, footprint: &Footprint) -> bool {
        let own =
            |name: &str| self.dialects.asked(pod).iter().any(|dialect| dialect.resources().contains(&name));
        let extended = footprint.extended.as_ref();
        !pod.spec.resource_claims.is_empty()
            || extended.is_some_and(|extended| extended.resources().into_iter().any(|name| !own(name)))
    }

    /// What a pod that wants a place asks for.
    fn place(&self, pod: &Pod, footprint: &Footprint, devices: Vec<ProfileRequest>) -> Claim {
        let mut constraints = match self.judged {
            ReadPurpose::Everything => constraints(pod, footprint),
            ReadPurpose::Cards => unconstrained(pod),
        };
        match DeclaredResources::of_pod(pod) {
            Ok(declared) => constraints.declared = declared.map(Arc::new),
            Err((name, error)) => {
                return Claim::unreadable(format!("Pod's resources can't be read: {name}: {error}"));
            }
        }
        let policy = self.pod_policy;
        Claim::Place(Arc::new(Ask { devices, resources: footprint.resources.clone(), constraints, policy }))
    }
}

/// What Koordinator's node side offers on a node: its devices by type.
pub fn devices(device: &Device) -> Reading<Offer> {
    let (devices, troubles) = match koordinator::node::devices(device) {
        Ok(devices) => (Some(devices), Vec::new()),
        Err(trouble) => (None, vec![trouble]),
    };
    let offer = Offer {
        core_unit: CoreUnit::default(),
        profile: koordinator::NAME.into(),
        inventory: devices.map(|devices| Inventory::default().with_devices(devices).into()),
    };
    (offer, troubles)
}

/// The templates of shares that the ConfigMap lists.
pub fn share_templates(config_map: &ConfigMap) -> Reading<Object> {
    let (templates, troubles) = koordinator::templates::read(config_map);
    let name = full_name(&config_map.metadata.namespace, &config_map.metadata.name);
    (Object::ShareTemplates(name, Arc::new(templates)), troubles)
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
