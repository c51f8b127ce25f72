//! Another scheduler that gives devices to claims: the API has no reservation, so it can give a device that Berth gives at the same time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use berth_sandbox::claims::driver::Driver;
use futures::{TryStreamExt as _, future};
use http::Request;
use k8s_openapi::api::{
    core::v1::{self as core, Pod},
    resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    client::Body,
    runtime::watcher::{self, Event, watcher},
};
use serde_json::{Value, json};
use tower::service_fn;

use crate::{
    deaths::{Write, write_of},
    device_claims::{
        claim_of, claims, create_claim, create_template, device_of, of_claim, of_template, request,
        without_berth,
    },
    support::floor::Floor,
    world::{LIMIT, World, node_of},
};

/// Berth's way to the API server, on which the rival's claim gets the devices that Berth is about to give, just before; and whether it has
/// got them.
fn overtaken(client: Client, rival: Pod) -> (Client, Arc<AtomicBool>) {
    let is_over: Arc<AtomicBool> = Arc::default();
    let overtaken = is_over.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (client, rival, is_over) = (client.clone(), rival.clone(), overtaken.clone());
        async move {
            if write_of(&request) != Some(Write::ReserveClaim) || is_over.swap(true, Ordering::SeqCst) {
                return client.send(request).await;
            }
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let written: Value = serde_json::from_slice(&body).unwrap();
            give(&client, &rival, &written["status"]["allocation"]).await;
            client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await
        }
    });
    (Client::new(service, "default"), is_over)
}

/// The other scheduler gives its pod's claim these devices.
async fn give(client: &Client, rival: &Pod, allocation: &Value) {
    let user = json!({"resource": "pods", "name": rival.name_any(), "uid": rival.uid()});
    let status = json!({"status": {"allocation": allocation, "reservedFor": [user]}});
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    claims.patch_status("rival", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// A pod of the other scheduler, which uses the claim `rival` with this request.
async fn rival(world: &World, request: Value) -> Pod {
    create_claim(world, "rival", request).await;
    let mut rival = of_claim("rival", "rival");
    rival["spec"]["schedulerName"] = json!("other");
    world.create(rival).await
}

/// The other scheduler binds its pod to the node `gpu-1`.
async fn bind_rival(world: &World) {
    let binding = json!({"metadata": {"name": "rival"}, "target": {"kind": "Node", "name": "gpu-1"}});
    let _: Value =
        world.pods().create_subresource("binding", "rival", &PostParams::default(), &binding).await.unwrap();
}

/// The devices that a claim was given, as its status states them.
fn given(claim: &ResourceClaim) -> Value {
    serde_json::to_value(claim.status.as_ref().unwrap().allocation.as_ref().unwrap()).unwrap()
}

/// The other scheduler gives its pod's claim these devices; what the pod `train` is told of that, within a second.
async fn told_of(world: &World, rival: &Pod, allocation: &Value) -> core::Event {
    let asked = tokio::time::Instant::now();
    give(&world.cluster.client, rival, allocation).await;
    let told = world.event("train", "DeviceAllocatedTwice").await;
    let elapsed = asked.elapsed();
    assert!(elapsed < Duration::from_secs(1), "it was told after {elapsed:?}");
    told
}

/// Berth learns that another claim has the device before it binds its pod, and gives that another device.
pub(crate) async fn a_pod_that_is_not_bound_gives_way_to_another_scheduler(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 2)]).await else {
        return;
    };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    let (client, rival) = (world.cluster.client.clone(), rival(&world, request(Driver::Nvidia, None)).await);
    let (overtaken, is_over) = overtaken(client, rival);
    world.start_berth_through(overtaken);
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    assert!(is_over.load(Ordering::SeqCst), "the other scheduler was first");
    let other = claims(&world).get("rival").await.unwrap();
    assert_ne!(device_of(&claim_of(&world, &train).await).device, device_of(&other).device);
    world.agents_are_content();
}

/// A pod that is bound keeps its devices; whoever can end that is told.
pub(crate) async fn a_device_that_another_scheduler_gives_again_is_found(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 1)]).await else {
        return;
    };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.start_berth();
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    let own = claim_of(&world, &train).await;
    let rival = rival(&world, request(Driver::Nvidia, None)).await;
    give(&world.cluster.client, &rival, &given(&own)).await;
    let told = world.event("train", "DeviceAllocatedTwice").await;
    let message = format!(
        "Device gpu-0 of pool gpu-1 (gpu.nvidia.com) is allocated to more than one claim: default/rival, default/{}. \
         Delete all but one of their Pods",
        own.name_any()
    );
    assert_eq!(told.message.as_deref(), Some(&*message));
    let metric = "berth_scheduler_doubly_allocated_devices{node=\"gpu-1\"} 1";
    until_counted(&world, |counts| counts.contains(metric)).await;

    bind_rival(&world).await;
    let told = world.event("rival", "DeviceAllocatedTwice").await;
    assert_eq!(told.message.as_deref(), Some(&*message));

    world.delete("rival").await;
    until_counted(&world, |counts| !counts.contains("doubly_allocated_devices{")).await;
    world.agents_are_content();
}

/// Shares of a card that are more than it has are found like a card that was given twice. Berth gives nothing more of the card meanwhile.
pub(crate) async fn shares_that_another_scheduler_gives_beyond_a_card_are_found(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Hami, &[("gpu-1", 1)]).await else {
        return;
    };
    create_template(&world, "half", request(Driver::Hami, Some(("40Gi", "30")))).await;
    create_template(&world, "little", request(Driver::Hami, Some(("1Mi", "0")))).await;
    world.start_berth();
    world.create(of_template("train", "half")).await;
    let train = world.running("train").await;
    let own = claim_of(&world, &train).await;
    let rival = rival(&world, request(Driver::Hami, Some(("60Gi", "30")))).await;
    let mut given = given(&own);
    given["devices"]["results"][0]["shareID"] = json!("7a52f3de-6a0c-4a7e-8b6a-2f6d1c3e9b01");
    given["devices"]["results"][0]["consumedCapacity"]["memory"] = json!("60Gi");
    let told = told_of(&world, &rival, &given).await;
    let message = format!(
        "More of capacity memory is allocated than there is, with device hami-gpu-0 of pool gpu-1 (hami-core-gpu.project-hami.io), to claims \
         default/rival, default/{}. Delete Pods of some of them",
        own.name_any()
    );
    assert_eq!(told.message.as_deref(), Some(&*message));
    let metric = "berth_scheduler_doubly_allocated_devices{node=\"gpu-1\"} 1";
    until_counted(&world, |counts| counts.contains(metric)).await;
    world.create(of_template("next", "little")).await;
    world.unschedulable_with("next", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.delete("rival").await;
    until_counted(&world, |counts| !counts.contains("doubly_allocated_devices{")).await;
    world.running("next").await;
    world.agents_are_content();
}

/// A card of 80 GiB that can be given as a whole or by halves, which take from one counter.
async fn publish_parts(world: &World, node: &str) {
    const DRIVER: &str = "part.example.com";
    let part = |name: &str, size: &str, memory: &str| {
        let taken = json!([{"counterSet": "card", "counters": {"memory": {"value": memory}}}]);
        json!({"name": name, "attributes": {"size": {"string": size}}, "consumesCounters": taken})
    };
    let parts = json!([
        part("whole", "whole", "80Gi"),
        part("half-0", "half", "40Gi"),
        part("half-1", "half", "40Gi")
    ]);
    let card = json!([{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]);
    let slices: Api<ResourceSlice> = Api::all(world.cluster.client.clone());
    for (name, field, content) in [("counters", "sharedCounters", card), ("devices", "devices", parts)] {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 2});
        let spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool, field: content});
        let slice = json!({"metadata": {"name": format!("{node}-{name}")}, "spec": spec});
        slices.create(&PostParams::default(), &serde_json::from_value(slice).unwrap()).await.unwrap();
    }
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{DRIVER}'")}}]);
    let class = json!({"metadata": {"name": DRIVER}, "spec": {"selectors": selectors}});
    let classes: Api<DeviceClass> = Api::all(world.cluster.client.clone());
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
}

/// A request for one part of this size.
fn part(size: &str) -> Value {
    let expression = format!("device.attributes['part.example.com'].size == '{size}'");
    let exactly =
        json!({"deviceClassName": "part.example.com", "selectors": [{"cel": {"expression": expression}}]});
    json!({"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})
}

/// Devices that together take more of a counter than there is are found, though each was given once. Berth gives nothing more that takes of the counter.
pub(crate) async fn devices_that_take_more_of_a_counter_than_there_is_are_found(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 0)]).await else {
        return;
    };
    publish_parts(&world, "gpu-1").await;
    create_template(&world, "half", part("half")).await;
    world.start_berth();
    world.create(of_template("train", "half")).await;
    let train = world.running("train").await;
    let own = claim_of(&world, &train).await;
    let rival = rival(&world, part("whole")).await;
    let mut given = given(&own);
    given["devices"]["results"][0]["device"] = json!("whole");
    let told = told_of(&world, &rival, &given).await;
    let message = format!(
        "More of counter card/memory is allocated than there is, with device {} of pool gpu-1 (part.example.com), to claims default/rival, default/{}. \
         Delete Pods of some of them",
        device_of(&own).device,
        own.name_any()
    );
    assert_eq!(told.message.as_deref(), Some(&*message));
    // Devices of bound pods are counted.
    let metric = |count| format!("berth_scheduler_doubly_allocated_devices{{node=\"gpu-1\"}} {count}");
    until_counted(&world, |counts| counts.contains(&metric(1))).await;
    bind_rival(&world).await;
    until_counted(&world, |counts| counts.contains(&metric(2))).await;
    world.event("rival", "DeviceAllocatedTwice").await;
    world.create(of_template("next", "half")).await;
    world.unschedulable_with("next", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.delete("rival").await;
    until_counted(&world, |counts| !counts.contains("doubly_allocated_devices{")).await;
    world.running("next").await;
    world.agents_are_content();
}

async fn until_counted(world: &World, is_met: impl Fn(&str) -> bool) {
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let met = async {
        while !is_met(&world.counts()) {
            again.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, met).await.expect("it is counted in time");
}

/// How often kube-scheduler and Berth are to give the one card at the same moment; `BERTH_RIVAL_ROUNDS` may ask for more.
const ROUNDS: usize = 12;

/// What was seen of a claim or of a pod, in the order of its writes.
#[derive(Debug, Default)]
struct Seen {
    /// By the claim's name: at which revision it got its device, and at which it had none any more.
    held: BTreeMap<String, (u64, Option<u64>)>,
    /// By the pod's name: at which revision it was bound, and its claim.
    bound: BTreeMap<String, (u64, String)>,
}

impl Seen {
    fn see_claim(&mut self, event: Event<ResourceClaim>) {
        let (claim, is_there) = match event {
            Event::Apply(claim) | Event::InitApply(claim) => (claim, true),
            Event::Delete(claim) => (claim, false),
            Event::Init | Event::InitDone => return,
        };
        let at = revision(&claim);
        let has_devices = claim.status.as_ref().is_some_and(|status| status.allocation.is_some()) && is_there;
        match self.held.get_mut(&claim.name_any()) {
            None if has_devices => drop(self.held.insert(claim.name_any(), (at, None))),
            Some((_, gone @ None)) if !has_devices => *gone = Some(at),
            // It was given back, and got one again.
            Some(held @ (_, Some(_))) if has_devices => *held = (at, None),
            _ => {}
        }
    }

    fn see_pod(&mut self, event: Event<Pod>) {
        let (Event::Apply(pod) | Event::InitApply(pod)) = event else { return };
        let mut claims = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
        let claim = claims.find_map(|status| status.resource_claim_name.clone());
        if let (true, Some(claim)) = (!node_of(&pod).is_empty(), claim) {
            self.bound.entry(pod.name_any()).or_insert_with(|| (revision(&pod), claim));
        }
    }

    /// The pods of Berth's that were bound with a device which a claim of kube-scheduler's had before theirs, and still had.
    fn wrongly_bound(&self) -> Vec<&String> {
        let ours = self.bound.iter().filter(|(name, _)| name.starts_with("ours-"));
        let wrongly = ours.filter(|(_, (bound, claim))| {
            let (given, _) = self.held[claim];
            let had = |(other, (since, gone)): (&String, &(u64, Option<u64>))| {
                other.starts_with("theirs-") && *since < given && gone.is_none_or(|gone| gone > *bound)
            };
            self.held.iter().any(had)
        });
        wrongly.map(|(name, _)| name).collect()
    }

    /// How often both had the card at once.
    fn doubled(&self) -> usize {
        let of =
            |whose| self.held.iter().filter(move |(name, _)| name.starts_with(whose)).map(|(_, held)| held);
        let overlap = |one: &(u64, Option<u64>), other: &(u64, Option<u64>)| {
            one.1.is_none_or(|gone| gone > other.0) && other.1.is_none_or(|gone| gone > one.0)
        };
        of("ours-").flat_map(|one| of("theirs-").filter(move |other| overlap(one, other))).count()
    }
}

fn revision<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_ref().unwrap().parse().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how often is asked from outside")]
fn rounds() -> usize {
    std::env::var("BERTH_RIVAL_ROUNDS").ok().map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

/// The real kube-scheduler and Berth want the one card for a pod each, at the same moment. A pod of Berth's is never bound with a card that the other has
/// given before, and each pod gets it once the other's is gone.
pub(crate) async fn beside_kube_scheduler_no_pod_is_bound_with_what_that_has_given_before() {
    let nodes = [("gpu-1", 1)];
    let Some((mut world, _claims)) = without_berth(Floor::Real, Driver::Nvidia, &nodes).await else { return };
    let plane = world.cluster.control_plane().expect("the real floor has processes");
    let settings = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": plane.kubeconfig("admin")}, "leaderElection": {"leaderElect": false}});
    plane.start_scheduler(&settings.to_string()).unwrap();
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.start_berth();
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let (of_claims, of_pods) = (seen.clone(), seen.clone());
    let claims_seen = watcher(claims(&world), watcher::Config::default()).try_for_each(|event| {
        of_claims.lock().unwrap().see_claim(event);
        future::ok(())
    });
    let pods_seen = watcher(world.pods(), watcher::Config::default()).try_for_each(|event| {
        of_pods.lock().unwrap().see_pod(event);
        future::ok(())
    });
    let watching = async { future::try_join(claims_seen, pods_seen).await.unwrap() };
    let competing = async {
        let mut told = 0;
        for round in 0..rounds() {
            told += usize::from(Box::pin(compete(&world, round)).await);
        }
        told
    };
    let told = tokio::select! {
        _ = watching => unreachable!("a watcher never ends"),
        told = competing => told,
    };
    let seen = seen.lock().unwrap();
    println!(
        "in {} rounds both had the card {} times, and {told} pods were told so",
        rounds(),
        seen.doubled()
    );
    assert_eq!(seen.wrongly_bound(), Vec::<&String>::new());
    world.agents_are_content();
}

/// A pod of each comes, and both are gone once each of them has had the card. Whether both have had it at once and Berth's pod, which had it first, was
/// told so.
async fn compete(world: &World, round: usize) -> bool {
    let names = ["ours", "theirs"].map(|whose| format!("{whose}-{round}"));
    let [ours, theirs] = &names;
    let mut other = of_template(theirs, "gpu");
    other["spec"]["schedulerName"] = json!("default-scheduler");
    tokio::join!(world.create(of_template(ours, "gpu")), world.create(other));
    let is_bound = |pod: &Pod| !node_of(pod).is_empty();
    let first = tokio::select! {
        _ = world.pod_when(ours, is_bound) => ours,
        _ = world.pod_when(theirs, is_bound) => theirs,
    };
    let pods = [world.pods().get(ours).await.unwrap(), world.pods().get(theirs).await.unwrap()];
    let is_told = pods.iter().all(is_bound);
    if is_told {
        world.event(ours, "DeviceAllocatedTwice").await;
    }
    world.delete_and_await(&[first]).await;
    let second = if first == ours { theirs } else { ours };
    world.pod_when(second, is_bound).await;
    world.delete_and_await(&[second]).await;
    is_told
}
