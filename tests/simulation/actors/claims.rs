//! Users of claims of devices, and the drivers that publish these.

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    Actors,
    api::{nodes, pods},
};
use crate::{
    device_claims::{FINALIZER, HELD, Kind, NODES, SHARED, THEIRS, Template},
    world::World,
};

/// After this time everybody has seen the claims that have devices already.
const SEEN: std::time::Duration = std::time::Duration::from_secs(5);

impl Actors {
    /// Classes, templates, claims that have devices already and one that has none, and then the devices.
    pub(super) async fn begin_device_claims(&mut self, world: &World) {
        let classes: Api<DeviceClass> = Api::all(world.client.clone());
        for kind in Kind::ALL {
            create(&classes, kind.class()).await;
        }
        let templates = templates(world);
        for template in Template::ALL {
            let object = json!({"metadata": {"name": template.name()}, "spec": {"spec": template.spec()}});
            create(&templates, object).await;
        }
        let share = json!({"shareID": "5c1c6f31-0c0a-4e0c-9d3b-5a4f5e1d7a10",
            "consumedCapacity": {"memory": "40Gi", "cores": "30"}});
        hold(world, HELD[0], Template::Whole, (Kind::Whole, "gpu-1", NODES[0]), json!({})).await;
        hold(world, HELD[1], Template::ALL[2], (Kind::Shared, "hami-gpu-0", NODES[1]), share).await;
        create(&claims(world), json!({"metadata": {"name": SHARED[0]}, "spec": Template::Whole.spec()}))
            .await;
        tokio::time::sleep(SEEN).await;
        for name in NODES {
            self.install_drivers(world, name).await;
        }
    }

    /// A machine comes with its drivers.
    pub(super) async fn install_drivers(&mut self, world: &World, node: &'static str) {
        for kind in Kind::ALL {
            self.pools.entry((node, kind)).or_default().come();
            self.write_slices(world, node, kind).await;
        }
    }

    /// The slices of a machine that is gone are collected.
    pub(super) async fn remove_drivers(&mut self, world: &World, node: &'static str) {
        for kind in Kind::ALL {
            self.pools.entry((node, kind)).or_default().leave();
            self.write_slices(world, node, kind).await;
        }
    }

    /// Devices of a node appear, disappear, fail or recover, or their driver does.
    pub(super) async fn publish(&mut self, world: &World) -> Option<()> {
        let (node, kind) = (self.node(), self.dice.one_of(&Kind::ALL));
        nodes(world).get_opt(node).await.unwrap()?;
        let pool = self.pools.entry((node, kind)).or_default();
        pool.change(&mut self.dice);
        world.watch.say(&format!("{} publishes for {node}: {pool:?}", kind.driver()));
        self.write_slices(world, node, kind).await;
        Some(())
    }

    async fn write_slices(&mut self, world: &World, node: &'static str, kind: Kind) {
        let slices: Api<ResourceSlice> = Api::all(world.client.clone());
        let published = kind.slices(node, &self.pools[&(node, kind)]);
        if published.is_empty() {
            for name in kind.names(node) {
                drop(slices.delete(&name, &DeleteParams::default()).await);
            }
        }
        for slice in published {
            let name = slice["metadata"]["name"].as_str().unwrap();
            let patch = Patch::Merge(json!({"spec": slice["spec"]}));
            if slices.patch(name, &PatchParams::default(), &patch).await.is_err() {
                create(&slices, slice).await;
            }
        }
    }

    /// A claim that several pods use is created or deleted, or deleted and created again with another request.
    pub(super) async fn claim(&mut self, world: &World) {
        let (name, claims) = (self.dice.one_of(&SHARED), claims(world));
        let mut gone = true;
        if claims.get_opt(name).await.unwrap().is_some() {
            drop(claims.delete(name, &DeleteParams::default()).await);
            gone = claims.get_opt(name).await.unwrap().is_none();
            world.watch.say(&format!("a user deletes claim {name}, gone: {gone}"));
            if self.dice.in_thousand(500) {
                return;
            }
        }
        if gone {
            let template = self.dice.one_of(&Template::ALL);
            world.watch.say(&format!("a user creates claim {name}: {template:?}"));
            create(&claims, json!({"metadata": {"name": name}, "spec": template.spec()})).await;
        }
    }
}

impl Actors {
    /// Another scheduler gives one of the devices of a node that a template asks for to the claim of a pod and binds the pod, whoever has the device; or
    /// such a pod ends.
    pub(super) async fn allocate(&mut self, world: &World, templates: &[Template]) -> Option<()> {
        if self.dice.in_thousand(450) {
            let theirs =
                world.watch.log().checker.pods().into_iter().find(|pod| pod.name.starts_with(THEIRS))?;
            pods(world).delete(&theirs.name, &DeleteParams::default().grace_period(0)).await.unwrap();
            world.watch.say(&format!("the pod {} of another scheduler ends", theirs.name));
            return Some(());
        }
        let node = self.node();
        nodes(world).get_opt(node).await.unwrap()?;
        let template = self.dice.one_of(templates);
        let device = world.watch.log().checker.some_device(&mut self.dice, template, node)?;
        self.foreign += 1;
        let name = format!("{THEIRS}{}", self.foreign);
        let uses = json!([{"name": "own", "resourceClaimName": name}]);
        let pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "other", "resourceClaims": uses,
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "own"}]}}]}});
        let pod = serde_json::from_value(pod).unwrap();
        let pod = pods(world).create(&PostParams::default(), &pod).await.unwrap();
        let uid = pod.metadata.uid.unwrap();
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true});
        let metadata = json!({"name": name, "finalizers": [FINALIZER], "ownerReferences": [owner]});
        create(&claims(world), json!({"metadata": metadata, "spec": template.spec()})).await;
        let mut share = json!({});
        if let Template::Share(_, memory, cores) = template {
            let id = format!("{:08x}-0000-4000-8000-000000000000", self.foreign);
            share = json!({"shareID": id, "consumedCapacity": {"memory": memory, "cores": cores}});
        }
        let mut status = allocation((template.kind(), &device, node), share);
        status["status"]["reservedFor"] = json!([{"resource": "pods", "name": name, "uid": uid}]);
        let status = Patch::Merge(status);
        claims(world).patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
        let bound: kube::Result<k8s_openapi::apimachinery::pkg::apis::meta::v1::Status> =
            pods(world).create_subresource("binding", &name, &PostParams::default(), &binding).await;
        world.watch.say(&format!(
            "another scheduler gives {device} of {node} to {name} ({template:?}): {}",
            bound.is_ok()
        ));
        Some(())
    }
}

/// Another scheduler has given the device to a claim that nobody uses yet.
async fn hold(world: &World, name: &str, template: Template, device: (Kind, &str, &str), share: Value) {
    let metadata = json!({"name": name, "finalizers": [FINALIZER]});
    create(&claims(world), json!({"metadata": metadata, "spec": template.spec()})).await;
    let status = Patch::Merge(allocation(device, share));
    claims(world).patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// A status of a claim with this device of a node, or a share of it.
fn allocation((kind, device, node): (Kind, &str, &str), share: Value) -> Value {
    let mut result = share;
    result["request"] = json!("gpu");
    (result["driver"], result["pool"], result["device"]) = (json!(kind.driver()), json!(node), json!(device));
    let here = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let allocation = json!({"devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]}});
    json!({"status": {"allocation": allocation}})
}

pub(super) fn claims(world: &World) -> Api<ResourceClaim> {
    Api::default_namespaced(world.client.clone())
}

pub(super) fn templates(world: &World) -> Api<ResourceClaimTemplate> {
    Api::default_namespaced(world.client.clone())
}

pub(super) async fn create<K>(all: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    all.create(&PostParams::default(), &object).await.unwrap();
}
