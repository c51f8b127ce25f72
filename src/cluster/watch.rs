//! Watches: lists and changes of pods, nodes and quotas as the scheduler's events.
//!
//! A list becomes one event, so that objects that were deleted during a gap are noticed.

use std::{fmt::Debug, sync::Arc};

use futures::{Stream, StreamExt, stream, stream::BoxStream};
use kube::Client;
use serde::de::DeserializeOwned;

use super::{
    read::{self, Reader, Reading, group::pod_group, quota_key},
    reflector::{Told, reflect, reflect_if_served},
    wire::{CoschedulingPodGroup, KubernetesPodGroup, KubernetesPodGroupAlpha, Watched, Wire},
};
use crate::{
    dialect::{Unreadable, koordinator::templates},
    object::{
        ConfigMap, Device, DeviceClass, Metadata, Namespace, Node, Pod, PodGroup, Reservation, ResourceClaim,
        ResourceQuota, ResourceSlice,
    },
    scheduling::{
        Event, QuotaKey,
        object::{Kind, Object, full_name},
        plugin::Plugin,
        resource_claims::unreadable,
    },
};

/// Pods that ended well hold nothing and were allocated: they arrive as deleted. One that failed may not have been allocated, and what
/// it carries may have to be withdrawn.
pub(super) const PODS: &str = "status.phase!=Succeeded";

/// The most lines that are logged for one object, since a user may write thousands of unreadable values.
const MOST_LOGGED: usize = 16;

/// All watches of the scheduler, as events.
pub fn all(client: &Client, reader: &Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let pods = pods(client, reader.clone());
    let nodes = nodes(client, reader.clone());
    let quotas = quotas(client, reader.clone());
    let namespaces = objects(client, Kind::Namespace, read_namespace);
    let selecting = if reader.weights().counts(Plugin::PodTopologySpread) {
        selecting(client)
    } else {
        stream::empty().boxed()
    };
    let budgets = objects(client, Kind::PodDisruptionBudget, Object::PodDisruptionBudget);
    let groups = pod_groups(client);
    let devices = stream::select(devices(client), share_templates(client)).boxed();
    let (claims, reservations) = (device_claims(client), reservations(client));
    let few = [quotas.boxed(), namespaces, budgets, groups, devices, claims, reservations];
    let few = stream::select_all(few);
    let others = stream::select(few, storage(client));
    stream::select(stream::select(pods, nodes), stream::select(others, selecting))
}

/// Pods, as events.
pub fn pods(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |pod: &Pod| {
        let (info, troubles) = reader.pod(pod);
        each(&troubles, |field, message| tracing::warn!(pod = %info.key, field, "{message}"));
        info
    };
    let gone = |pod: &Pod| {
        let uid = pod.metadata.uid.as_str().into();
        if pod.is_terminal() { Event::PodEnded(uid) } else { Event::PodGone(uid) }
    };
    let told = reflect(client.clone(), Some(PODS), read);
    events(told, Event::Pods, |pod| Event::PodSeen(Box::new(pod)), gone)
}

/// Nodes, as events.
pub fn nodes(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |node: &Node| {
        let (info, troubles): Reading<_> = reader.node(node);
        let name = &node.metadata.name;
        each(&troubles, |field, message| tracing::warn!(node = name, field, "{message}"));
        info
    };
    let gone = |node: &Node| Event::NodeGone(node.metadata.name.as_str().into());
    let told = reflect(client.clone(), None, read);
    events(told, Event::Nodes, |node| Event::NodeSeen(Box::new(node)), gone)
}

/// Quotas, as events.
pub fn quotas(client: &Client, reader: Arc<Reader>) -> impl Stream<Item = Event> + Send + use<> {
    let read = move |quota: &ResourceQuota| {
        let (info, troubles) = reader.quota(quota);
        let QuotaKey { namespace, name } = &info.key;
        let key = format!("{namespace}/{name}");
        each(&troubles, |field, message| tracing::warn!(resource_quota = key, field, "{message}"));
        info
    };
    let gone = |quota: &ResourceQuota| Event::QuotaGone(quota_key(quota));
    events(reflect(client.clone(), None, read), Event::Quotas, Event::QuotaSeen, gone)
}

/// Objects of another kind that plugins read, as events.
fn objects<T>(client: &Client, kind: Kind, wrap: fn(Arc<T>) -> Object) -> BoxStream<'static, Event>
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
{
    let read = move |object: &T| wrap(Arc::new(object.clone()));
    let gone =
        move |object: &T| Event::Gone(kind, full_name(&object.metadata().namespace, &object.metadata().name));
    let listed = move |all| Event::Listed(kind, all);
    events(reflect(client.clone(), None, read), listed, Event::Seen, gone).boxed()
}

/// Claims of devices and what decides on them. An API server before Kubernetes 1.34 serves none of these kinds.
fn device_claims(client: &Client) -> BoxStream<'static, Event> {
    let claim = |claim: &ResourceClaim| {
        let name = full_name(&claim.metadata.namespace, &claim.metadata.name);
        for trouble in claim.status.allocation.iter().flat_map(unreadable).take(MOST_LOGGED) {
            tracing::warn!(resource_claim = &*name, "{trouble}; the device is given to no other claim");
        }
        Object::ResourceClaim(Arc::new(claim.clone()))
    };
    let all = [
        served_objects(client, Kind::ResourceClaim, claim),
        served_objects(client, Kind::ResourceSlice, |slice: &ResourceSlice| {
            Object::ResourceSlice(Arc::new(slice.clone()))
        }),
        served_objects(client, Kind::DeviceClass, |class: &DeviceClass| {
            Object::DeviceClass(Arc::new(class.clone()))
        }),
    ];
    stream::select_all(all).boxed()
}

/// Objects of a kind that the API server may not serve, as events.
fn served_objects<T>(client: &Client, kind: Kind, read: fn(&T) -> Object) -> BoxStream<'static, Event>
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
{
    let gone =
        move |object: &T| Event::Gone(kind, full_name(&object.metadata().namespace, &object.metadata().name));
    if_served(reflect_if_served(client.clone(), None, read), kind, gone)
}

/// Groups of pods: what is placed together, and the budgets of jobs. The API server may serve none of these kinds.
fn pod_groups(client: &Client) -> BoxStream<'static, Event> {
    let all = [
        pod_groups_of::<PodGroup>(client, Kind::PodGroup),
        pod_groups_of::<CoschedulingPodGroup>(client, Kind::CoschedulingPodGroup),
        pod_groups_of::<KubernetesPodGroup>(client, Kind::KubernetesPodGroup),
        pod_groups_of::<KubernetesPodGroupAlpha>(client, Kind::KubernetesPodGroupAlpha),
    ];
    stream::select_all(all).boxed()
}

/// The devices of nodes that Koordinator's node side lists, where its kind is installed.
fn devices(client: &Client) -> BoxStream<'static, Event> {
    let read = |device: &Device| {
        let name = &device.metadata.name;
        let (offer, troubles) = read::devices(device);
        each(&troubles, |field, message| tracing::warn!(device = name, field, "{message}"));
        Object::Device(name.as_str().into(), Arc::new(offer))
    };
    let gone = |device: &Device| Event::Gone(Kind::Device, device.metadata.name.as_str().into());
    if_served(reflect_if_served(client.clone(), None, read), Kind::Device, gone)
}

/// The one ConfigMap with the templates of shares. Nothing waits until it is listed, since only some vendors' shares are templates.
fn share_templates(client: &Client) -> BoxStream<'static, Event> {
    let read = |config_map: &ConfigMap| {
        let Metadata { namespace, name, .. } = &config_map.metadata;
        let (object, troubles) = read::share_templates(config_map);
        each(&troubles, |field, message| {
            tracing::warn!(config_map = format!("{namespace}/{name}"), field, "{message}");
        });
        object
    };
    let gone = |config_map: &ConfigMap| {
        let Metadata { namespace, name, .. } = &config_map.metadata;
        Event::Gone(Kind::ShareTemplates, full_name(namespace, name))
    };
    let listed = |all| Event::Listed(Kind::ShareTemplates, all);
    events(reflect(client.clone(), Some(templates::FIELDS), read), listed, Event::Seen, gone).boxed()
}

/// What Koordinator's scheduler has reserved, where its kind is installed.
fn reservations(client: &Client) -> BoxStream<'static, Event> {
    let read = |reservation: &Reservation| {
        let name = &reservation.metadata.name;
        let (object, troubles) = read::reservation::reservation(reservation);
        each(&troubles, |field, message| tracing::warn!(reservation = name, field, "{message}"));
        object
    };
    let gone =
        |reservation: &Reservation| Event::Gone(Kind::Reservation, reservation.metadata.name.as_str().into());
    if_served(reflect_if_served(client.clone(), None, read), Kind::Reservation, gone)
}

fn pod_groups_of<T>(client: &Client, kind: Kind) -> BoxStream<'static, Event>
where
    T: Wire + AsRef<PodGroup> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    Watched<T>: kube::Resource<DynamicType = ()>,
{
    let gone =
        move |group: &T| Event::Gone(kind, full_name(&group.metadata().namespace, &group.metadata().name));
    let told = reflect_if_served(client.clone(), None, move |group: &T| pod_group(kind, group.as_ref()));
    if_served(told, kind, gone)
}

/// The events of a kind that the API server may not serve.
fn if_served<T>(
    told: impl Stream<Item = Told<T, Object>> + Send + 'static,
    kind: Kind,
    gone: impl Fn(&T) -> Event + Send + 'static,
) -> BoxStream<'static, Event> {
    told.map(move |told| match told {
        Told::Listed(all) => Event::Listed(kind, all),
        Told::Unserved => Event::Unserved(kind),
        Told::Seen(one) => Event::Seen(one),
        Told::Gone(one) => gone(&one),
    })
    .boxed()
}

/// The storage objects, which decide where pods with claims can be placed.
fn storage(client: &Client) -> impl Stream<Item = Event> + Send + use<> {
    stream::select_all([
        objects(client, Kind::PersistentVolume, Object::PersistentVolume),
        objects(client, Kind::PersistentVolumeClaim, Object::PersistentVolumeClaim),
        objects(client, Kind::StorageClass, Object::StorageClass),
        objects(client, Kind::CsiNode, Object::CsiNode),
        objects(client, Kind::CsiDriver, Object::CsiDriver),
        objects(client, Kind::CsiStorageCapacity, Object::CsiStorageCapacity),
        objects(client, Kind::VolumeAttachment, Object::VolumeAttachment),
    ])
}

/// What selects pods that are spread by default. Nothing waits until it is listed: it moves scores alone, and where a role that was
/// granted earlier lacks the right to list it, pods are placed all the same.
fn selecting(client: &Client) -> BoxStream<'static, Event> {
    let all = [
        objects(client, Kind::Service, Object::service),
        objects(client, Kind::ReplicationController, Object::replication_controller),
        objects(client, Kind::ReplicaSet, Object::replica_set),
        objects(client, Kind::StatefulSet, Object::stateful_set),
    ];
    stream::select_all(all).boxed()
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

/// The events of a kind, in the scheduler's form.
fn events<T, I>(
    told: impl Stream<Item = Told<T, I>> + Send,
    listed: impl Fn(Vec<I>) -> Event + Send,
    seen: impl Fn(I) -> Event + Send,
    gone: impl Fn(&T) -> Event + Send,
) -> impl Stream<Item = Event> + Send {
    told.map(move |told| match told {
        Told::Listed(all) => listed(all),
        // Only kinds that an API server always serves arrive here.
        Told::Unserved => listed(Vec::new()),
        Told::Seen(one) => seen(one),
        Told::Gone(one) => gone(&one),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::dialect::Problem;

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
