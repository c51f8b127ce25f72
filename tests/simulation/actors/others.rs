//! Other schedulers, who lock nodes, place pods and reserve devices.

use k8s_openapi::api::core::v1 as core;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use super::{
    Actors,
    api::{nodes, patch, pods, reservations},
};
use crate::{
    checker::LOCK,
    devices, reservation, rival,
    world::{NODES, World},
};

impl Actors {
    /// Another scheduler holds a node's lock for its pod; or gives one back; or its pod dies first.
    pub(super) async fn foreign_lock(&mut self, world: &World) -> Option<()> {
        let name = self.dice.one_of(&NODES[..3]);
        let node = nodes(world).get_opt(name).await.unwrap()?;
        let now = world.sandbox.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let lock = node.annotations().get(LOCK).cloned();
        if let Some(lock) = lock {
            let holder = lock.rsplit(',').next().unwrap_or_default();
            if lock.contains(",foreign-") || !lock.contains(',') {
                if holder.starts_with("foreign-") && self.dice.in_thousand(500) {
                    drop(pods(world).delete(holder, &DeleteParams::default().grace_period(0)).await);
                } else {
                    set_lock(world, &node, json!(null)).await;
                }
            }
            return Some(());
        }
        self.foreign += 1;
        let value = match self.dice.below(5) {
            0 => now,
            1 => "nobody knows".to_owned(),
            2 => format!("{now},default,never-was"),
            _ => {
                let pod = format!("foreign-{}", self.foreign);
                let object = json!({"metadata": {"name": pod}, "spec": {"schedulerName": "other", "containers": [{"name": "c", "image": "i"}]}});
                drop(
                    pods(world)
                        .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
                        .await,
                );
                format!("{now},default,{pod}")
            }
        };
        world.watch.say(&format!("another scheduler locks {name}: {value}"));
        set_lock(world, &node, json!(value)).await;
        Some(())
    }

    /// A scheduler of HAMi's comes; or takes a lock or gives one back, once it has started; or goes.
    pub(super) async fn rival(&mut self, world: &World) -> Option<()> {
        let name = "hami-scheduler";
        let Some(since) = self.rival else {
            if !self.dice.in_thousand(150) {
                return None;
            }
            let (key, value) = rival::LABEL;
            let pod = json!({"metadata": {"name": name, "labels": {key: value}},
                "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]}});
            pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
            self.rival = Some(world.sandbox.now());
            world.watch.say("another scheduler comes");
            return Some(());
        };
        if world.sandbox.now() < since + rival::START {
            return None;
        }
        if self.dice.in_thousand(150) {
            pods(world).delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
            self.rival = None;
            world.watch.say("the other scheduler goes");
            return Some(());
        }
        self.foreign_lock(world).await
    }

    /// Another scheduler places a pod that asks for no card.
    pub(super) async fn foreign_pod(&mut self, world: &World) {
        self.foreign += 1;
        let name = format!("plain-{}", self.foreign);
        let mut object = json!({"metadata": {"name": name}, "spec": {"schedulerName": "other", "nodeName": self.node(),
            "containers": [{"name": "c", "image": "i"}]}});
        if self.story.crowd.spread > 0 {
            object["metadata"]["labels"] = json!({"app": "spread"});
            // As many go as come.
            let gone = format!("plain-{}", 1 + self.dice.below(self.foreign));
            drop(pods(world).delete(&gone, &DeleteParams::default().grace_period(0)).await);
            world.watch.say(&format!("{name} comes, {gone} goes"));
        }
        drop(pods(world).create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await);
    }

    /// Another scheduler reserves a GPU that is free, or a Reservation ends.
    pub(super) async fn reserve(&mut self, world: &World) -> Option<()> {
        let there = world.sandbox.objects_of(devices::GROUP, "reservations");
        if let Some(oldest) = there.first().filter(|_| there.len() > 1) {
            let name = oldest["metadata"]["name"].as_str().unwrap();
            let gone = reservations(world).delete(name, &DeleteParams::default()).await.is_ok();
            world.watch.say(&format!("{name} ends: {gone}"));
            return Some(());
        }
        let (node, minor) = world.watch.log().checker.free_gpu(&mut self.dice)?;
        self.foreign += 1;
        let name = format!("reservation-{}", self.foreign);
        let object = reservation::object(&mut self.dice, &name, &node, minor);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        reservations(world).create(&PostParams::default(), &object).await.unwrap();
        world.watch.say(&format!("{name} holds GPU {minor} of {node}: {}", object.data["spec"]));
        Some(())
    }
}

async fn set_lock(world: &World, node: &core::Node, value: Value) {
    let version = node.resource_version().unwrap();
    let metadata = json!({"resourceVersion": version, "annotations": {LOCK: value}});
    patch(world, &node.name_any(), json!({"metadata": metadata})).await;
}
