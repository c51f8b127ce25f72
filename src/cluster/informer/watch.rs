//! Watches: lists and changes of pods, nodes and quotas as the scheduler's events.
//!
//! A list becomes one event, so that objects that were deleted during a gap are noticed.
//!
//! An object of which not all can be read frees nothing and is given nothing: a pod holds what its readable fields say and is not placed, a
//! node and a Device are given no pods, a Reservation may hold any device of its node, the pods of a PodGroup wait. Of a quota, the limits
//! that can be read count. An object of any other kind stays as it was last seen.

use std::{fmt::Debug, sync::Arc};

use futures::{Stream, StreamExt, stream, stream::BoxStream};
use kube::Client;
use serde::de::DeserializeOwned;

use super::{
    newest::newest_served,
    reflector::{ObjectSelection, ReflectorEvent, reflect, reflect_if_served},
    unread::{Unread, UnreadObjects},
    wire::{
        CompositePodGroup, CoschedulingPodGroup, DeviceTaintRuleBeta, KubernetesPodGroup,
        KubernetesPodGroupAlpha2, KubernetesPodGroupAlpha3, Watched, Wire,
    },
};
use crate::{
    cluster::read::{
        self, Reader, Reading, group, quota_key, reservation::reservation, shared::SharedParts, unread,
    },
    dialect::{Unreadable, koordinator::templates},
    object::{
        ConfigMap, Device, DeviceClass, DeviceTaintRule, Metadata, Namespace, Node, Pod, PodGroup,
        Reservation, ResourceClaim, ResourceQuota, ResourceSlice,
    },
    scheduling::{
        Event, NodeChange, ObjectChange, PodChange, PodList, QuotaChange, QuotaKey,
        model::{
            claim_use::DeviceClaims,
            kind::{Kind, PodGroupKind, SelectingKind, TaintRuleVersion},
            name::full_name,
        },
        plugin::Plugin,
        world::{object::Object, resource_claims::unreadable},
    },
};

/// Pods that ended well hold nothing and were allocated: they arrive as deleted. One that failed may not have been allocated, and what
/// it carries may have to be withdrawn.
pub(in crate::cluster) const PODS: &str = "status.phase!=Succeeded";

/// The most lines that are logged for one object, since a user may write thousands of unreadable values.
const MOST_LOGGED: usize = 16;

/// All watches of the scheduler, as events; `objects` counts what can't be read completely. Of claims of devices nothing is watched where
/// they are not served.
pub fn all(
    client: &Client,
    reader: &Arc<Reader>,
    claims: DeviceClaims,
    objects: &UnreadObjects,
) -> impl Stream<Item = Event> + Send + use<> {
    let source = WatchSource { client: client.clone(), objects: objects.clone() };
    let pods_and_nodes = pods_and_nodes(client, reader, objects);
    let quotas = source.quotas(reader.clone());
    let namespaces = source.objects(Kind::Namespace, read_namespace);
    let selecting = if reader.weights().counts(Plugin::PodTopologySpread) {
        source.selecting()
    } else {
        stream::empty().boxed()
    };
    let budgets = source.objects(Kind::PodDisruptionBudget, Object::PodDisruptionBudget);
    // Nothing waits until they are listed: until then, pods that name one stay.
    let daemons = if reader.divides_time() {
        source.objects(Kind::DaemonSet, Object::daemon_set)
    } else {
        stream::empty().boxed()
    };
    let groups = source.pod_groups();
    let devices = stream::select(source.devices(), source.share_templates()).boxed();
    let claims = match claims {
        DeviceClaims::Served => source.device_claims(),
        DeviceClaims::Off => stream::empty().boxed(),
    };
    let reservations = source.reservations();
    let few = [quotas.boxed(), namespaces, budgets, daemons, groups, devices, claims, reservations];
    let few = stream::select_all(few);
    let others = stream::select(few, source.storage());
    stream::select(pods_and_nodes, stream::select(others, selecting))
}

/// The watches of pods and nodes alone, as events; `objects` counts what can't be read completely.
pub fn pods_and_nodes(
    client: &Client,
    reader: &Arc<Reader>,
    objects: &UnreadObjects,
) -> impl Stream<Item = Event> + Send + use<> {
    let source = WatchSource { client: client.clone(), objects: objects.clone() };
    let parts = Arc::new(SharedParts::default());
    stream::select(source.pods(reader.clone(), parts.clone()), source.nodes(reader.clone(), parts))
}

/// Where the objects come from, and where those are counted that can't be read completely.
#[derive(Clone)]
struct WatchSource {
    client: Client,
    objects: UnreadObjects,
}

impl WatchSource {
    /// Pods, as events.
    fn pods(&self, reader: Arc<Reader>, parts: Arc<SharedParts>) -> impl Stream<Item = Event> + Send + use<> {
        let read = move |pod: &Pod, gaps: &[Unread]| {
            let (mut info, troubles) = reader.pod(pod);
            each(&troubles, |field, message| tracing::warn!(pod = %info.key, field, "{message}"));
            unread::pod(&mut info, gaps);
            Box::new(parts.share(info))
        };
        let gone = |pod: &Pod| {
            let uid = pod.metadata.uid.as_str().into();
            if pod.is_terminal() { PodChange::Ended(uid) } else { PodChange::Gone(uid) }
        };
        let told = reflect(self.client.clone(), ObjectSelection::by_fields(PODS), self.objects.clone(), read);
        changes(told, |pods| PodChange::Listed(PodList::from(pods)), PodChange::Seen, gone).map(Event::Pod)
    }

    /// Nodes, as events.
    fn nodes(
        &self,
        reader: Arc<Reader>,
        parts: Arc<SharedParts>,
    ) -> impl Stream<Item = Event> + Send + use<> {
        let read = move |node: &Node, gaps: &[Unread]| {
            let (mut info, troubles): Reading<_> = reader.node(node);
            let name = &node.metadata.name;
            each(&troubles, |field, message| tracing::warn!(node = name, field, "{message}"));
            unread::node(&mut info, gaps);
            parts.share_node(info)
        };
        let gone = |node: &Node| NodeChange::Gone(node.metadata.name.as_str().into());
        let told = reflect(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read);
        changes(told, NodeChange::Listed, |node| NodeChange::Seen(Box::new(node)), gone).map(Event::Node)
    }

    /// Quotas, as events.
    fn quotas(&self, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
        let read = move |quota: &ResourceQuota, _: &[Unread]| {
            let (info, troubles) = reader.quota(quota);
            let QuotaKey { namespace, name } = &info.key;
            let key = format!("{namespace}/{name}");
            each(&troubles, |field, message| tracing::warn!(resource_quota = key, field, "{message}"));
            info
        };
        let gone = |quota: &ResourceQuota| QuotaChange::Gone(quota_key(quota));
        changes(
            reflect(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read),
            QuotaChange::Listed,
            QuotaChange::Seen,
            gone,
        )
        .map(Event::Quota)
    }

    /// Objects of another kind that plugins read, as events.
    fn objects<T>(&self, kind: Kind, wrap: fn(Arc<T>) -> Object) -> BoxStream<'static, Event>
    where
        T: Wire + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        Watched<T>: kube::Resource<DynamicType = ()>,
    {
        let read = move |object: &T, gaps: &[Unread]| {
            if gaps.is_empty() {
                wrap(Arc::new(object.clone()))
            } else {
                unread::object(kind, object.metadata())
            }
        };
        let gone = move |object: &T| {
            ObjectChange::Gone(kind, full_name(&object.metadata().namespace, &object.metadata().name))
        };
        let listed = move |all| ObjectChange::Listed(kind, all);
        changes(
            reflect(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read),
            listed,
            ObjectChange::Seen,
            gone,
        )
        .map(Event::Object)
        .boxed()
    }

    /// Claims of devices and what decides on them. An API server before Kubernetes 1.34 serves none of these kinds, and one before 1.37 no rules that
    /// taint devices unless it was told to.
    fn device_claims(&self) -> BoxStream<'static, Event> {
        let claim = |claim: &ResourceClaim| {
            let name = full_name(&claim.metadata.namespace, &claim.metadata.name);
            for trouble in claim.status.allocation.iter().flat_map(unreadable).take(MOST_LOGGED) {
                tracing::warn!(resource_claim = &*name, "{trouble}; the device is given to no other claim");
            }
            Object::ResourceClaim(Arc::new(claim.clone()))
        };
        let all = [
            self.served_objects(Kind::ResourceClaim, claim),
            self.served_objects(Kind::ResourceSlice, |slice: &ResourceSlice| {
                Object::ResourceSlice(Arc::new(slice.clone()))
            }),
            self.served_objects(Kind::DeviceClass, |class: &DeviceClass| {
                Object::DeviceClass(Arc::new(class.clone()))
            }),
            self.served_objects(Kind::DeviceTaintRule(TaintRuleVersion::V1), |rule: &DeviceTaintRule| {
                Object::DeviceTaintRule(TaintRuleVersion::V1, Arc::new(rule.clone()))
            }),
            self.served_objects(
                Kind::DeviceTaintRule(TaintRuleVersion::V1Beta2),
                |rule: &DeviceTaintRuleBeta| {
                    Object::DeviceTaintRule(TaintRuleVersion::V1Beta2, Arc::new(rule.0.clone()))
                },
            ),
        ];
        stream::select_all(all).boxed()
    }

    /// Objects of a kind that the API server may not serve, as events.
    fn served_objects<T>(&self, kind: Kind, read: fn(&T) -> Object) -> BoxStream<'static, Event>
    where
        T: Wire + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        Watched<T>: kube::Resource<DynamicType = ()>,
    {
        let gone = move |object: &T| {
            ObjectChange::Gone(kind, full_name(&object.metadata().namespace, &object.metadata().name))
        };
        let read = move |object: &T, gaps: &[Unread]| {
            if gaps.is_empty() { read(object) } else { unread::object(kind, object.metadata()) }
        };
        if_served(
            reflect_if_served(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read),
            kind,
            gone,
        )
    }

    /// Groups of pods: what is placed together, and the budgets of jobs. The API server may serve none of these kinds.
    fn pod_groups(&self) -> BoxStream<'static, Event> {
        let all = [
            self.pod_groups_of::<PodGroup>(PodGroupKind::Volcano),
            self.pod_groups_of::<CoschedulingPodGroup>(PodGroupKind::Coscheduling),
            self.pod_groups_of_1_37(),
            self.pod_groups_of::<KubernetesPodGroupAlpha2>(PodGroupKind::KubernetesAlpha2),
            self.pod_groups_of::<CompositePodGroup>(PodGroupKind::Composite),
        ];
        stream::select_all(all).boxed()
    }

    /// The devices of nodes that Koordinator's node side lists, where its kind is installed.
    fn devices(&self) -> BoxStream<'static, Event> {
        let read = |device: &Device, gaps: &[Unread]| {
            let name = &device.metadata.name;
            let (mut offer, troubles) = read::devices(device);
            each(&troubles, |field, message| tracing::warn!(device = name, field, "{message}"));
            if !gaps.is_empty() {
                offer.inventory = None;
            }
            Object::Device(name.as_str().into(), Arc::new(offer))
        };
        let gone = |device: &Device| ObjectChange::Gone(Kind::Device, device.metadata.name.as_str().into());
        if_served(
            reflect_if_served(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read),
            Kind::Device,
            gone,
        )
    }

    /// The one ConfigMap with the templates of shares. Nothing waits until it is listed, since only some vendors' shares are templates.
    fn share_templates(&self) -> BoxStream<'static, Event> {
        let read = |config_map: &ConfigMap, _: &[Unread]| {
            let Metadata { namespace, name, .. } = &config_map.metadata;
            let (object, troubles) = read::share_templates(config_map);
            each(&troubles, |field, message| {
                tracing::warn!(config_map = format!("{namespace}/{name}"), field, "{message}");
            });
            object
        };
        let gone = |config_map: &ConfigMap| {
            let Metadata { namespace, name, .. } = &config_map.metadata;
            ObjectChange::Gone(Kind::ShareTemplates, full_name(namespace, name))
        };
        let listed = |all| ObjectChange::Listed(Kind::ShareTemplates, all);
        changes(
            reflect(
                self.client.clone(),
                ObjectSelection::by_fields(templates::FIELDS),
                self.objects.clone(),
                read,
            ),
            listed,
            ObjectChange::Seen,
            gone,
        )
        .map(Event::Object)
        .boxed()
    }

    /// What Koordinator's scheduler has reserved, where its kind is installed.
    fn reservations(&self) -> BoxStream<'static, Event> {
        let read = |read: &Reservation, gaps: &[Unread]| {
            let name = &read.metadata.name;
            let (object, troubles) = reservation(read);
            each(&troubles, |field, message| tracing::warn!(reservation = name, field, "{message}"));
            unread::reservation(object, gaps)
        };
        let gone = |reservation: &Reservation| {
            ObjectChange::Gone(Kind::Reservation, reservation.metadata.name.as_str().into())
        };
        if_served(
            reflect_if_served(self.client.clone(), ObjectSelection::default(), self.objects.clone(), read),
            Kind::Reservation,
            gone,
        )
    }

    /// PodGroups of Kubernetes 1.37. It may serve them in two versions with the same fields (k8s.io/api v0.37 `scheduling/v1beta1/types.go`,
    /// `scheduling/v1alpha3/types.go`), of which each has all of them.
    fn pod_groups_of_1_37(&self) -> BoxStream<'static, Event> {
        let (source, older) = (self.clone(), PodGroupKind::KubernetesAlpha3);
        newest_served(
            self.pod_groups_of::<KubernetesPodGroup>(PodGroupKind::Kubernetes),
            Kind::PodGroup(older),
            move || source.pod_groups_of::<KubernetesPodGroupAlpha3>(older),
        )
    }

    fn pod_groups_of<T>(&self, of: PodGroupKind) -> BoxStream<'static, Event>
    where
        T: Wire + AsRef<PodGroup> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        Watched<T>: kube::Resource<DynamicType = ()>,
    {
        let kind = Kind::PodGroup(of);
        let gone = move |group: &T| {
            ObjectChange::Gone(kind, full_name(&group.metadata().namespace, &group.metadata().name))
        };
        let told = reflect_if_served(
            self.client.clone(),
            ObjectSelection::default(),
            self.objects.clone(),
            move |group: &T, gaps: &[Unread]| unread::pod_group(group::pod_group(of, group.as_ref()), gaps),
        );
        if_served(told, kind, gone)
    }

    /// The storage objects, which decide where pods with claims can be placed.
    fn storage(&self) -> impl Stream<Item = Event> + Send + use<> {
        stream::select_all([
            self.objects(Kind::PersistentVolume, Object::PersistentVolume),
            self.objects(Kind::PersistentVolumeClaim, Object::PersistentVolumeClaim),
            self.objects(Kind::StorageClass, Object::StorageClass),
            self.objects(Kind::CsiNode, Object::CsiNode),
            self.objects(Kind::CsiDriver, Object::CsiDriver),
            self.objects(Kind::CsiStorageCapacity, Object::CsiStorageCapacity),
            self.objects(Kind::VolumeAttachment, Object::VolumeAttachment),
        ])
    }

    /// What selects pods that are spread by default. Nothing waits until it is listed: it moves scores alone, and where a role that was
    /// granted earlier lacks the right to list it, pods are placed all the same.
    fn selecting(&self) -> BoxStream<'static, Event> {
        let all = [
            self.objects(Kind::Selecting(SelectingKind::Service), Object::service),
            self.objects(
                Kind::Selecting(SelectingKind::ReplicationController),
                Object::replication_controller,
            ),
            self.objects(Kind::Selecting(SelectingKind::ReplicaSet), Object::replica_set),
            self.objects(Kind::Selecting(SelectingKind::StatefulSet), Object::stateful_set),
        ];
        stream::select_all(all).boxed()
    }
}

/// The events of a kind that the API server may not serve.
fn if_served<T>(
    told: impl Stream<Item = ReflectorEvent<T, Object>> + Send + 'static,
    kind: Kind,
    gone: impl Fn(&T) -> ObjectChange + Send + 'static,
) -> BoxStream<'static, Event> {
    told.map(move |told| match told {
        ReflectorEvent::Listed(all) => ObjectChange::Listed(kind, all),
        ReflectorEvent::Unserved => ObjectChange::Unserved(kind),
        ReflectorEvent::Seen(one) => ObjectChange::Seen(one),
        ReflectorEvent::Gone(one) => gone(&one),
    })
    .map(Event::Object)
    .boxed()
}

/// A namespace and its labels.
pub fn read_namespace(namespace: Arc<Namespace>) -> Object {
    let Metadata { name, labels, .. } = Arc::unwrap_or_clone(namespace).metadata;
    let mut labels = labels.unwrap_or_default();
    // The API server sets this one on every namespace.
    labels.entry("kubernetes.io/metadata.name".to_owned()).or_insert_with(|| name.clone());
    Object::Namespace(name.as_str().into(), Arc::new(labels))
}

/// Logs the unreadable parts of one object: the first ones, and the number of the others.
fn each(troubles: &[Unreadable], log: impl Fn(&str, &str)) {
    for Unreadable { field, message, .. } in troubles.iter().take(MOST_LOGGED) {
        log(field, message);
    }
    if let Some(rest) = troubles.len().checked_sub(MOST_LOGGED).filter(|rest| *rest > 0) {
        log("", &format!("{rest} more of its values can't be read"));
    }
}

/// The changes of a kind, in the scheduler's form.
fn changes<T, I, C>(
    told: impl Stream<Item = ReflectorEvent<T, I>> + Send,
    listed: impl Fn(Vec<I>) -> C + Send,
    seen: impl Fn(I) -> C + Send,
    gone: impl Fn(&T) -> C + Send,
) -> impl Stream<Item = C> + Send {
    told.map(move |told| match told {
        ReflectorEvent::Listed(all) => listed(all),
        // Only kinds that an API server always serves arrive here.
        ReflectorEvent::Unserved => listed(Vec::new()),
        ReflectorEvent::Seen(one) => seen(one),
        ReflectorEvent::Gone(one) => gone(&one),
    })
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        collections::BTreeSet,
        sync::{Mutex, PoisonError},
    };

    use futures::FutureExt as _;

    use super::*;
    use crate::dialect::{Dialects, Problem};

    /// The paths below `/apis/resource.k8s.io` that the watches ask for first, and how many others.
    fn asked(claims: DeviceClaims) -> (BTreeSet<String>, usize) {
        let paths: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let seen = paths.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let path = request.uri().path().to_owned();
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::new(service, "default");
            let reader = Arc::new(Reader::new(Dialects::default(), "berth".to_owned()));
            let mut events = all(&client, &reader, claims, &UnreadObjects::default()).boxed();
            // The requests pass through a task of the client's.
            for _ in 0..100 {
                assert!(events.next().now_or_never().is_none());
                tokio::task::yield_now().await;
            }
        });
        let paths = paths.lock().unwrap();
        let of_claims = |path: &&String| path.starts_with("/apis/resource.k8s.io/");
        (
            paths.iter().filter(of_claims).cloned().collect(),
            paths.iter().filter(|path| !of_claims(path)).count(),
        )
    }

    #[test]
    fn nothing_is_watched_of_claims_that_are_off() {
        let (served, others) = asked(DeviceClaims::Served);
        let paths = ["deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices"];
        let paths = paths.map(|kind| format!("/apis/resource.k8s.io/v1/{kind}"));
        let mut paths = BTreeSet::from(paths);
        paths.insert("/apis/resource.k8s.io/v1beta2/devicetaintrules".to_owned());
        assert_eq!(served, paths);
        assert!(others > 10, "{others}");
        assert_eq!(asked(DeviceClaims::Off), (BTreeSet::new(), others));
    }

    #[test]
    fn of_an_object_full_of_faults_a_few_short_lines_are_logged() {
        let fault = || Unreadable::new(Problem::Card, "k".repeat(100_000), "v".repeat(100_000));
        let troubles: Vec<_> = (0..1000).map(|_| fault()).collect();
        let lines = RefCell::new(Vec::new());
        each(&troubles, |field, message| lines.borrow_mut().push(format!("{field} {message}")));
        let lines = lines.into_inner();
        assert_eq!(lines.len(), MOST_LOGGED + 1);
        assert!(lines.iter().all(|line| line.len() < 1500), "{lines:?}");
        assert_eq!(lines.last().unwrap(), " 984 more of its values can't be read");
    }
}
